//! The status page in a real browser: it shows what the server does, its script does not throw, what
//! comes from the database stays text, and it fits a phone. Screenshots are left in `target/`.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::client::Client;
use support::http::{get, token};
use support::{Server, TempDir, free_port, pgbench_command};

/// A statement that would do harm if it became part of the page.
const HARMFUL: &str = "SELECT '<img src=x onerror=\"document.body.dataset.hacked=1\">' AS \"<b>\"";

/// Runs the browser on the page; returns what it prints and what it complains of.
fn browse(dir: &Path, port: u16, size: &str, args: &[&str]) -> (String, String) {
    let (out, err) = (dir.join("out"), dir.join("err"));
    let file = |path: &PathBuf| std::fs::File::create(path).expect("the folder is writable");
    let status = Command::new("timeout")
        .args([
            "90",
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
        ])
        .args(["--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking"])
        .args(["--enable-logging=stderr", "--virtual-time-budget=5000"])
        .arg(format!("--user-data-dir={}", dir.join("profile").display()))
        .arg(format!("--window-size={size}"))
        .args(args)
        .arg(format!("http://owner:{}@127.0.0.1:{port}/", token(port)))
        .stdin(Stdio::null())
        .stdout(file(&out))
        .stderr(file(&err))
        .status()
        .expect("the system has coreutils");
    let complaints = || std::fs::read_to_string(&err).unwrap_or_default();
    assert_ne!(status.code(), Some(124), "the browser did not end: {}", complaints());
    assert_ne!(status.code(), Some(127), "chromium is not installed (scripts/need browser)");
    let read = |path: &PathBuf| {
        String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
    };
    (read(&out), read(&err))
}

/// The text of the attribute that the page sets on its body.
fn data<'a>(dom: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = dom.split_once(&format!("data-{name}=\""))?;
    rest.split('"').next()
}

/// How many seconds the chart has.
fn seconds_kept(port: u16) -> usize {
    let body = get(port, "/api/waits.json").body;
    let times = body.split_once("\"times\":[").and_then(|(_, rest)| rest.split_once(']'));
    times.expect("a list of times").0.split(',').filter(|time| !time.is_empty()).count()
}

fn check(dom: &str, complaints: &str) {
    assert_eq!(data(dom, "error"), None, "the page's script threw");
    assert_eq!(data(dom, "hacked"), None, "a statement's text became markup");
    let console: Vec<&str> = complaints.lines().filter(|l| l.contains("CONSOLE")).collect();
    assert!(console.is_empty(), "{console:#?}");
    let drawn: u32 = data(dom, "drawn").expect("the page was drawn").parse().expect("a number");
    assert!(drawn >= 2, "and again with fresh data");
    assert_eq!(data(dom, "fits"), Some("true"), "nothing sticks out at the side");
}

#[test]
fn the_page_shows_what_happens() {
    let dir = TempDir::new("page");
    let port = free_port();
    let server = Server::start(&dir.path().join("data"), &[&format!("http_port={port}")]);
    server.pgbench(&["-i", "-q", "-s", "1"]);
    let mut load = pgbench_command(server.port)
        .args(["-n", "-c", "16", "-j", "1", "-T", "60", "postgres"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Three who stand behind each other, and one who only looks dangerous.
    server.query("CREATE TABLE shelf (id int PRIMARY KEY, n int); INSERT INTO shelf VALUES (1, 0)");
    let mut holder = Client::connect(server.port).unwrap();
    holder.query("BEGIN; UPDATE shelf SET n = 1 WHERE id = 1").unwrap();
    let waiters: Vec<_> = (2..=3)
        .map(|n| {
            let address = server.port;
            std::thread::spawn(move || {
                let mut client = Client::connect(address).unwrap();
                client.query(&format!("UPDATE shelf SET n = {n} WHERE id = 1")).unwrap();
            })
        })
        .collect();
    let mut harmful = Client::connect(server.port).unwrap();
    harmful.query(&format!("BEGIN; {HARMFUL}")).unwrap();
    while server.query("SELECT max(depth) FROM pg_stat_blocking WHERE object LIKE '%shelf%' OR wait_event = 'transactionid' AND waiting_query LIKE '%shelf%'") == "" {}
    // Their cause is at the head of the page.
    while server.query("SELECT count(*) > 0 FROM pg_why() WHERE finding = 'lock_queue'") != "t" {}
    // Some seconds of history for the chart.
    while seconds_kept(port) < 3 {}

    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let (dom, complaints) = browse(dir.path(), port, "1280,1700", &["--dump-dom"]);
    check(&dom, &complaints);
    for part in [
        "UPDATE shelf SET n = ",
        "transactionid",
        "&lt;img src=x",
        "Buffer pool",
        "<path",
        "stand behind pid",
    ] {
        assert!(dom.contains(part), "no {part} in {dom}");
    }
    let (dom, complaints) = browse(dir.path(), port, "500,900", &["--dump-dom"]);
    check(&dom, &complaints);
    for (size, name, extra) in [
        ("1280,1700", "page.png", "--force-device-scale-factor=1"),
        ("1280,1700", "page-dark.png", "--blink-settings=preferredColorScheme=0"),
        ("500,2600", "page-phone.png", "--force-device-scale-factor=1"),
    ] {
        let file = target.join(name);
        let _ = std::fs::remove_file(&file);
        let shot = format!("--screenshot={}", file.display());
        browse(dir.path(), port, size, &[&shot, extra]);
        assert!(std::fs::metadata(&file).is_ok_and(|m| m.len() > 20_000), "{name} shows something");
    }
    holder.query("COMMIT").unwrap();
    waiters.into_iter().for_each(|w| w.join().unwrap());
    let _ = load.kill();
    let _ = load.wait();
    assert!(server.stop());
}
