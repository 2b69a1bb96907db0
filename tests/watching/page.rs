//! The status page in a real browser: it shows what the server does, its script does not throw, what
//! comes from the database stays text, and it fits a phone. Screenshots are left in `target/`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::browser::Browser;
use crate::support::client::Client;
use crate::support::http::{get, token};
use crate::support::{Server, TempDir, free_port, pgbench_command};

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

/// Ranges, filters, markers and exports, by clicks.
#[test]
fn the_past_is_looked_at_by_clicks() {
    let dir = TempDir::new("page-past");
    let port = free_port();
    let server = Server::start(&dir.path().join("data"), &[&format!("http_port={port}")]);
    server.query("CREATE ROLE clerk LOGIN");
    server.query("CREATE TABLE till (id int PRIMARY KEY, n int)");
    server.query("GRANT ALL ON till TO clerk");
    let mut clerk = Client::connect_to(server.port, "clerk", "postgres").unwrap();
    clerk.one("SET application_name = 'till'");
    clerk.one("INSERT INTO till SELECT g, 0 FROM generate_series(1, 2000) g");
    clerk.one("SELECT pg_sleep(0.5)");
    server.query("ALTER SYSTEM SET work_mem = '5MB'");
    server.query("SELECT pg_reload_conf()");
    server.query("CHECKPOINT");
    let mut client = Client::connect(server.port).unwrap();
    let written = "FROM pg_top_clients(now() - interval '5 min', clock_timestamp()) WHERE application_name = 'till'";
    client.await_one(&format!("SELECT count(*) {written} AND waited_ms > 400"), "1");
    client.await_one("SELECT count(*) > 0 FROM pg_events WHERE kind = 'checkpoint'", "t");
    let touched = "FROM pg_top_relations(now() - interval '5 min', clock_timestamp()) WHERE relname = 'till_pkey'";
    client.await_one(&format!("SELECT count(*) {touched}"), "1");

    let url = format!("http://owner:{}@127.0.0.1:{port}/", token(port));
    let mut page = Browser::open(dir.path(), &url, (1280, 1700));
    page.await_true("document.body.dataset.drawn >= 2");
    // Events are marked on the live chart already.
    page.await_true("document.querySelector('#chart .mark[data-kind=setting]')");
    assert_eq!(page.eval("getComputedStyle(document.querySelector('.of-past')).display"), "none");
    page.eval("document.querySelector('[data-last=\"900\"]').click()");
    page.await_true("document.body.dataset.past >= 1 && past");
    assert_eq!(page.eval("location.hash"), "#last=900");
    for kind in ["setting", "checkpoint", "definition"] {
        page.await_true(&format!("document.querySelector('#chart .mark[data-kind={kind}]')"));
    }
    page.await_true("$('past-statements').innerText.includes('INSERT INTO till')");
    page.await_true("$('past-clients').innerText.includes('clerk')");
    page.await_true("$('past-relations').innerText.includes('till_pkey on till')");
    // A filter by user leaves his alone.
    page.eval("$('user').value = 'clerk'; $('user').dispatchEvent(new Event('change'))");
    page.await_true("past && !$('past-statements').innerText.includes('ALTER SYSTEM')");
    page.await_true("[...$('past-clients').querySelectorAll('tbody tr')].every((tr) => tr.innerText.includes('clerk'))");
    page.await_true("past.series.some((s) => s.event === 'PgSleep')");
    // The processors' time is split by statement.
    page.await_true("past.cpu_by.some((s) => s.query.startsWith('INSERT INTO till')) && $('legend').innerText.includes('INSERT INTO till')");
    page.eval(
        "$('application').value = 'till'; $('application').dispatchEvent(new Event('change'))",
    );
    page.await_true("location.hash.includes('application=till') && past");
    // A click on a statement leaves only that one; a second one takes it back.
    page.eval("[...document.querySelectorAll('#past-statements tr[data-query]')].find((tr) => tr.innerText.includes('pg_sleep')).click()");
    page.await_true("$('past-statements').querySelectorAll('tr[data-query]').length === 1");
    page.await_true("!$('only').hidden");
    page.eval("$('only').click()");
    page.await_true("$('past-statements').querySelectorAll('tr[data-query]').length > 1");
    // The same view by its address, the export, and the same time before.
    let csv = page.eval("fetch($('export-csv').href).then((a) => a.text())");
    let csv = csv.as_str().expect("a text");
    assert!(csv.starts_with("at,seconds,event_type,event,queryid,"), "{csv}");
    assert!(csv.contains(",Timeout,PgSleep,") && csv.contains(",clerk,postgres,till,"), "{csv}");
    page.eval("$('back').value = '86400'; $('back').dispatchEvent(new Event('change'))");
    page.await_true("$('past-statements').innerText.includes('each before')");
    let hash = page.eval("location.hash");
    page.eval("$('ranges').querySelector('[data-last=\"0\"]').click()");
    page.await_true("location.hash === '' && !past");
    page.eval(&format!("location.hash = {hash}"));
    page.await_true("past && $('user').value === 'clerk' && $('back').value === '86400'");
    // A part of the chart by dragging over it.
    page.eval("$('ranges').querySelector('[data-last=\"0\"]').click()");
    page.await_true("!past");
    page.drag("#chart", 0.4, 0.9);
    page.await_true("past && location.hash.includes('from=') && $('from').value");
    let inside = "past.to - past.from";
    assert!(page.eval(inside).as_f64().expect("a number") < 300_000.0);
    assert_eq!(page.eval("document.body.dataset.error || ''"), "");
    assert_eq!(page.eval("document.documentElement.scrollWidth <= innerWidth"), true);
    drop(page);
    // A phone.
    let mut phone =
        Browser::open(&dir.path().join("phone"), &format!("{url}#last=900&user=clerk"), (500, 900));
    phone.await_true("past && $('past-statements').innerText.includes('INSERT INTO till')");
    phone.await_true("document.body.dataset.fits === 'true'");
    assert_eq!(phone.eval("document.body.dataset.error || ''"), "");
    drop(phone);
    let all: usize =
        ["/", "/page.css", "/page.js", "/past.js"].iter().map(|p| get(port, p).body.len()).sum();
    assert!(all < 200_000, "{all} bytes");
    assert_eq!(get(port, "/api/history.json?from=x").status, 400);
    for range in ["to=-999999999999999&last=999999999999999", "from=-1e15", "back=1e300"] {
        assert_eq!(get(port, &format!("/api/history.json?{range}")).status, 400, "{range}");
    }
    for range in [
        "to=-999999999999999&last=999999999999&back=999999999999",
        // A minute of 2026.
        "from=1795621053816.498&to=1795621113816.498",
    ] {
        assert_eq!(get(port, &format!("/api/history.json?{range}")).status, 200, "{range}");
    }
    assert!(server.stop());
}
