//! Secrets in statements stay where they belong: no view, no line of the log and no file of the history has them.
//! And names that clients choose make no lines of the log.

use std::fs;
use std::path::Path;

use crate::support::http::{get_as, token};
use crate::support::raw::{Raw, startup};
use crate::support::{Server, TempDir, free_port};

/// The secret in all statements.
const SECRET: &str = "geheim4711";

/// One statement or more for each place that `sql::secrets` lists, with mistakes in some, and in bodies.
const STATEMENTS: &[&str] = &[
    "CREATE ROLE keeper LOGIN PASSWORD 'geheim4711'",
    "ALTER ROLE keeper PASSWORD 'geheim4711' CONNECTION LIMIT nonsense",
    "CREATE SUBSCRIPTION s CONNECTION 'host=127.0.0.1 port=1 password=geheim4711' PUBLICATION p WITH (connect = false)",
    "ALTER SUBSCRIPTION s CONNECTION 'host=127.0.0.1 port=1 password=geheim4711'",
    "ALTER SUBSCRIPTION nobody CONNECTION 'postgresql://u:geheim4711@h/d'",
    "ALTER SYSTEM SET primary_conninfo = 'host=h password=geheim4711'",
    "ALTER SYSTEM SET primary_conninfo = 'host=h password=''geheim4711 and more'''",
    "ALTER SYSTEM SET pg_alert_webhook = 'http://127.0.0.1:1/geheim4711'",
    "ALTER DATABASE postgres SET app.jwt_secret = 'geheim4711'",
    "ALTER ROLE keeper SET app.token TO 'geheim4711'",
    "SET app.api_token = 'geheim4711'",
    "SELECT set_config('app.jwt_secret', 'geheim4711', false)",
    "CREATE EXTENSION postgres_fdw",
    "CREATE EXTENSION dblink",
    "CREATE EXTENSION pgcrypto",
    "CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host 'h', password 'geheim4711')",
    "CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host 'h')",
    "CREATE USER MAPPING FOR keeper SERVER far OPTIONS (user 'u', password 'geheim4711')",
    "ALTER USER MAPPING FOR keeper SERVER far OPTIONS (SET password 'geheim4711')",
    "SELECT dblink_connect('c', 'host=127.0.0.1 port=1 password=geheim4711')",
    "SELECT * FROM dblink('postgres://u:geheim4711@127.0.0.1:1/d', 'select 1') AS t(a int)",
    "SELECT crypt('geheim4711', gen_salt('bf', 4)) IS NULL, pgp_sym_encrypt('x', 'geheim4711') IS NULL",
    "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1 /* password=geheim4711 */ $$",
    "DO $$ BEGIN EXECUTE 'ALTER ROLE nobody PASSWORD ''geheim4711'''; END $$",
    "DO 'BEGIN PERFORM dblink_connect(''host=127.0.0.1 port=1 password=geheim4711''); END'",
    "SELECT pg_autonomous('ALTER ROLE nobody PASSWORD ''geheim4711''')",
    "SELECT pg_autonomous('ALTER SUBSCRIPTION nobody CONNECTION ''password=geheim4711''')",
    "PREPARE p AS SELECT dblink_connect('host=127.0.0.1 port=1 password=geheim4711')",
    "EXECUTE p",
    "EXPLAIN SELECT 1 WHERE 'password=geheim4711' = now()::text",
    "CREATE TABLE made AS SELECT 'token=geheim4711' AS a",
];

/// Everything that others than the sender may look at.
const VIEWS: &[&str] = &[
    "SELECT * FROM pg_stat_activity",
    "SELECT * FROM pg_stat_statements",
    "SELECT * FROM pg_events",
    "SELECT * FROM pg_top_statements(now() - interval '1 hour', now())",
    "SELECT * FROM pg_plans",
    "SELECT * FROM pg_prepared_statements",
];

fn files_with_secret(dir: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).expect("the folder can be read").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files_with_secret(&path, found);
        } else if fs::read(&path)
            .is_ok_and(|bytes| bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()))
        {
            found.push(path.display().to_string());
        }
    }
}

#[test]
fn secrets_are_kept_from_views_log_and_history() {
    let dir = TempDir::new("secrets");
    let settings =
        ["log_statement=all", "log_min_duration_statement=0", "log_error_verbosity=verbose"];
    let server = Server::start(&dir.path().join("data"), &settings);
    for statement in STATEMENTS {
        // Some fail, as they should: in the log they are all.
        server.query(statement);
        for view in VIEWS {
            let rows = server.query(view);
            assert!(!rows.contains(SECRET), "{statement}\n{view}\n{rows}");
        }
    }
    let shown =
        server.query("SET ROLE keeper; SELECT name FROM pg_settings WHERE setting LIKE '%geheim%'");
    assert_eq!(shown, "");
    let data = server.dir.clone();
    assert!(server.stop());
    let log = fs::read_to_string(data.with_extension("log")).expect("there is a log");
    let told: Vec<&str> = log.lines().filter(|line| line.contains(SECRET)).collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
    assert!(log.contains("CREATE SUBSCRIPTION s CONNECTION '********'"), "{log}");
    let mut found = Vec::new();
    files_with_secret(&data.join("history"), &mut found);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn names_make_no_lines_of_the_log() {
    let dir = TempDir::new("log-lines");
    let port = free_port();
    let http = format!("http_port={port}");
    let settings = [&*http, "authentication_failure_delay=1"];
    let server = Server::start(&dir.path().join("data"), &settings);
    let forged = "x\n2026-01-01 00:00:00.000 UTC [1] LOG:  forged\n\tDETAIL:  forged\r\nforged";
    let hosts =
        "host all postgres all trust\nhost trusted all all trust\nhost all all all scram-sha-256\n";
    fs::write(server.dir.join("pg_hba.conf"), hosts).expect("the rules can be written");
    assert_eq!(server.query("SELECT pg_reload_conf()"), "t");
    for pairs in [
        [("user", forged), ("database", "postgres")],
        [("user", forged), ("database", "trusted")],
        [("user", "postgres"), ("database", forged)],
        [("user", forged), ("replication", forged)],
        [("user", "postgres"), ("DateStyle", forged)],
        [("user", "postgres"), ("options", forged)],
        [("user", "postgres"), (forged, forged)],
    ] {
        let mut raw = Raw::open(server.port);
        raw.send(&startup(196_608, &pairs));
        raw.until(|line| {
            line.starts_with('E') || line.starts_with('R') || line.starts_with("closed")
        });
        if pairs[0].1 == forged {
            // An answer to the challenge, which is none.
            raw.send(&crate::support::raw::message(b'p', b"SCRAM-SHA-256\0\0\0\0\x04n,,x"));
        }
    }
    // `x\nforged:p` in base64.
    let answer = get_as(port, "/", "Authorization: Basic eApmb3JnZWQ6cA==\r\n");
    assert_eq!(answer.status, 401);
    let data = server.dir.clone();
    assert!(server.stop());
    let log = fs::read_to_string(data.with_extension("log")).expect("there is a log");
    let lines = log.lines().filter(|line| line.contains("forged"));
    let wrong: Vec<&str> = lines.filter(|line| !line.contains(r"x\x0a")).collect();
    assert!(wrong.is_empty(), "{}\n--\n{log}", wrong.join("\n"));
    assert!(log.contains(r"x\x0a2026-01-01"), "{log}");
    assert!(log.contains(r#"HTTP authentication failed for user "x\x0aforged""#), "{log}");
}

#[test]
fn passwords_over_http_are_compared_in_turn() {
    let dir = TempDir::new("guesses");
    let port = free_port();
    let http = format!("http_port={port}");
    let server =
        Server::start(&dir.path().join("data"), &[&*http, "authentication_failure_delay=60000"]);
    server.query("CREATE ROLE watcher LOGIN PASSWORD 'right' IN ROLE pg_monitor");
    crate::support::http::belongs(port, &server.dir);
    // `watcher:right`: nobody has failed so far; and it is known from now on.
    let right = "Authorization: Basic d2F0Y2hlcjpyaWdodA==\r\n";
    assert_eq!(get_as(port, "/metrics", right).status, 200);
    // `watcher:wrong`, whose answer comes in a minute: nobody waits for it.
    let mut guesses = Vec::new();
    for _ in 0..24 {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let request = "GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic d2F0Y2hlcjp3cm9uZw==\r\n\r\n";
        std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
        guesses.push(stream);
    }
    // A request behind them on a connection of its own, to know that they have been looked at.
    assert_eq!(
        get_as(port, "/metrics", &format!("Authorization: Bearer {}\r\n", token(port))).status,
        200
    );
    assert_eq!(get_as(port, "/metrics", right).status, 200, "what was right lately is let in");
    // `postgres:right` is a guess, too, and must wait: too long.
    let other = get_as(port, "/metrics", "Authorization: Basic cG9zdGdyZXM6cmlnaHQ=\r\n");
    assert_eq!(other.status, 429, "{}", other.body);
    let data = server.dir.clone();
    assert!(server.stop());
    let log = fs::read_to_string(data.with_extension("log")).expect("there is a log");
    let compared = log.matches("HTTP authentication failed").count();
    assert_eq!(compared, 1, "{log}");
}
