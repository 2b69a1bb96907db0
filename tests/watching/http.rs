//! The HTTP endpoint: what it serves, whom it refuses, and that nobody can hold it up.

use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use crate::support::client::Client;
use crate::support::http::{get, get_as, talk, token};
use crate::support::{BIN, Server, TempDir, free_port};

/// A server with an endpoint on a port of its own.
fn serve(dir: &TempDir) -> (Server, u16) {
    let port = free_port();
    let server = Server::start(&dir.path().join("data"), &[&format!("http_port={port}")]);
    (server, port)
}

/// Checks Prometheus's text format and returns the samples by name and labels.
fn samples(text: &str) -> HashMap<String, f64> {
    let mut kinds: HashMap<&str, &str> = HashMap::new();
    let mut helped = HashSet::new();
    let mut samples = HashMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a help text");
            assert!(help.ends_with('.') && helped.insert(name), "{line}");
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            assert!(helped.contains(name), "{line}: no help");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(kinds.insert(name, kind).is_none(), "{line}: twice");
            continue;
        }
        let (series, value) = line.rsplit_once(' ').expect("a value");
        let name = series.split('{').next().expect("a name");
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{line}");
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|s| name.strip_suffix(s));
        let histogram = family.is_some_and(|f| kinds.get(f) == Some(&"histogram"));
        assert!(histogram || kinds.contains_key(name), "{line}: no type");
        let value = value.parse().unwrap_or_else(|_| panic!("{line}: not a number"));
        assert!(samples.insert(series.to_owned(), value).is_none(), "{line}: twice");
    }
    samples
}

#[test]
fn metrics_are_what_prometheus_reads() {
    let dir = TempDir::new("metrics");
    let (server, port) = serve(&dir);
    server.query("CREATE TABLE t (a int); INSERT INTO t SELECT generate_series(1, 1000)");
    let answer = get(port, "/metrics");
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("content-type: text/plain; version=0.0.4"), "{}", answer.head);
    let before = samples(&answer.body);
    assert!(before["threadgres_wal_records_total"] > 0.0);
    assert!(before["threadgres_buffer_pool_bytes"] > 0.0);
    server.query("SELECT pg_sleep(0.001)");
    let after = samples(&get(port, "/metrics").body);
    let slept = "threadgres_wait_duration_seconds_count{type=\"Timeout\",event=\"PgSleep\"}";
    assert_eq!(after[slept], before.get(slept).unwrap_or(&0.0) + 1.0);
    let waiting = "{type=\"Timeout\",event=\"PgSleep\",le=\"+Inf\"}";
    assert_eq!(after[&format!("threadgres_wait_duration_seconds_bucket{waiting}")], after[slept]);
}

#[test]
fn documents_are_for_everybody_on_this_machine() {
    let dir = TempDir::new("http-docs");
    let port = free_port();
    let _server = Server::start(&dir.path().join("data"), &[&format!("http_port={port}")]);
    let moved = get_as(port, "/docs", "");
    assert_eq!(moved.status, 301, "{moved:?}");
    assert!(moved.head.contains("location: /docs/"), "{}", moved.head);
    // Whether a book lies beside the program of this test is open.
    let first = get_as(port, "/docs/", "");
    assert!([200, 404].contains(&first.status), "{first:?}");
    for path in ["/docs/../threadgres", "/docs//etc/passwd", "/docs/%2e%2e/x.html", "/docs/x.html"]
    {
        assert_eq!(get_as(port, path, "").status, 404, "{path}");
    }
    for path in ["/", "/docsx", "/doc", "/metrics"] {
        assert_eq!(get_as(port, path, "").status, 401, "{path}");
    }
    let other =
        talk(port, "GET /docs/ HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    assert_eq!(other.status, 403, "{other:?}");
}

#[test]
fn strangers_and_nonsense_are_refused() {
    let dir = TempDir::new("strangers");
    let (server, port) = serve(&dir);
    for (request, status) in [
        ("GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", 403),
        ("GET /api/now.json HTTP/1.1\r\nConnection: close\r\n\r\n", 403),
        (
            "GET / HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\nConnection: close\r\n\r\n",
            403,
        ),
        ("GET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 401),
        ("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", 413),
        ("\x16\x03\x01 not HTTP at all\r\n\r\n", 400),
    ] {
        assert_eq!(talk(port, request).status, status, "{request}");
    }
    assert_eq!(get(port, "/nothing").status, 404);
    assert_eq!(get(port, "/api/views/no.json").status, 404);
    let token = token(port);
    let head = talk(
        port,
        &format!(
            "HEAD / HTTP/1.1\r\nHost: [::1]\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
        ),
    );
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert!(head.head.contains("content-security-policy: default-src 'none'"), "{}", head.head);
    assert_eq!(get(port, "/api/views/pg_stat_user_tables.json?database=no").status, 404);
    server.query("ALTER SYSTEM SET work_mem = '5MB'");
    let settings = get(port, "/api/views/pg_file_settings.json");
    assert!(settings.body.contains("\"name\":\"work_mem\""), "{}", settings.body);
}

#[test]
fn views_are_about_the_database_that_is_asked_for() {
    let dir = TempDir::new("views");
    let (server, port) = serve(&dir);
    server.query("CREATE TABLE here (a int)");
    server.query("CREATE DATABASE other");
    let mut other = Client::connect_to(server.port, "postgres", "other").expect("it is there");
    assert!(other.query("CREATE TABLE there (a int)").expect("an answer").error.is_none());
    let tables =
        |query: &str| get(port, &format!("/api/views/pg_stat_user_tables.json{query}")).body;
    let (own, others) = (tables(""), tables("?database=other"));
    assert!(own.contains("\"here\"") && !own.contains("\"there\""), "{own}");
    assert!(others.contains("\"there\"") && !others.contains("\"here\""), "{others}");
}

#[test]
fn one_connection_serves_many_requests() {
    let dir = TempDir::new("keepalive");
    let (_server, port) = serve(&dir);
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let token = token(port);
    let one = format!(
        "GET /page.css HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    let last = one.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    // Also when they come all at once.
    stream.write_all(format!("{one}{one}{last}").as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 3);
}

#[test]
fn slow_clients_hold_nothing() {
    let dir = TempDir::new("slow");
    let (server, port) = serve(&dir);
    // Many more than there are places, each in the middle of a request.
    let slow: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: loc");
            stream
        })
        .collect();
    assert_eq!(get(port, "/metrics").status, 200);
    drop(slow);
    assert!(server.stop(), "and they do not hold up a shutdown");
}

#[test]
fn the_endpoint_comes_and_goes_with_its_setting() {
    let dir = TempDir::new("setting");
    let data = dir.path().join("data");
    let server = Server::start(&data, &[]);
    let port = free_port();
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    server.query(&format!("ALTER SYSTEM SET http_port = {port}"));
    crate::support::http::belongs(port, &data);
    server.query("SELECT pg_reload_conf()");
    while TcpStream::connect(("127.0.0.1", port)).is_err() {}
    assert_eq!(get(port, "/").status, 200);
    // A bad address is logged, and the endpoint stays.
    server.query("ALTER SYSTEM SET http_address = '0.0.0.0'");
    server.query("SELECT pg_reload_conf()");
    let log = data.with_extension("log");
    while !std::fs::read_to_string(&log).unwrap().contains("0.0.0.0") {}
    assert_eq!(get(port, "/").status, 200);
    server.query("ALTER SYSTEM RESET ALL");
    server.query("SELECT pg_reload_conf()");
    while TcpStream::connect(("127.0.0.1", port)).is_ok() {}
    assert!(server.stop());
}

#[test]
fn what_cannot_be_served_is_said_before_anything_is_touched() {
    let dir = TempDir::new("http-refused");
    let data = dir.path().join("data");
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let busy = format!("http_port={}", holder.local_addr().unwrap().port());
    for (settings, word) in [
        (&[busy.as_str()][..], "http_port"),
        (&["http_port=1", "http_address=0.0.0.0"], "not encrypted"),
        (&["http_port=1", "http_address=elsewhere"], "http_address"),
    ] {
        let mut command = Command::new(BIN);
        command
            .args(["serve", "--allow-root", "-D"])
            .arg(&data)
            .args(["-p", &free_port().to_string()]);
        command.args(settings.iter().flat_map(|s| ["-c", s]));
        let out = command.output().unwrap();
        let text = String::from_utf8_lossy(&out.stderr);
        assert!(!out.status.success() && text.contains(word), "{settings:?}: {text}");
        assert!(!data.exists(), "{settings:?} left something behind");
    }
}

#[test]
fn the_terminal_shows_the_same() {
    let dir = TempDir::new("top");
    let (server, port) = serve(&dir);
    let data = dir.path().join("data");
    let top = |args: &[&str]| Command::new(BIN).arg("top").args(args).output().unwrap();
    for args in [
        ["-D", data.to_str().unwrap()],
        ["--url", &format!("postgres://127.0.0.1:{}/postgres", server.port)],
        ["--url", &format!("http://owner:{}@localhost:{port}", token(port))],
    ] {
        let out = top(&[&args[..], &["--once", "-d", "0.1"]].concat());
        let text = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success() && out.stderr.is_empty(), "{args:?}: {out:?}");
        for part in ["threadgres ", "sessions", "WAITS", "STATEMENT"] {
            assert!(text.contains(part), "{args:?}: no {part} in {text}");
        }
    }
    // Somebody who may read the data directory needs no password.
    let both = ["-D", data.to_str().unwrap(), "--url", &format!("http://localhost:{port}")];
    let out = top(&[&both[..], &["--once", "-d", "0.1"]].concat());
    assert!(out.status.success(), "{out:?}");
    let out = top(&["--url", &format!("http://localhost:{port}"), "--once"]);
    assert!(String::from_utf8_lossy(&out.stderr).contains("401"), "{out:?}");
    assert!(server.stop());
    for (args, word) in [
        (["-D", data.to_str().unwrap()], "no server is running"),
        (["--url", &format!("http://127.0.0.1:{port}")], "refused"),
        (["--url", "ftp://elsewhere"], "postgres://"),
    ] {
        let out = top(&args);
        let text = String::from_utf8_lossy(&out.stderr);
        assert!(!out.status.success() && text.contains(word), "{args:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}
