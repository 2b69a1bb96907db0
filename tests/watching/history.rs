//! The history of the server: who worked how much, what was done to tables and indexes, plans that changed, and the
//! same time before.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::support::browser::Browser;
use crate::support::client::Client;
use crate::support::http::{get, token};
use crate::support::{Server, TempDir, free_port};
use base::WaitEvent;
use base::usage::Use;
use server::history::clients::{Client as ClientOf, ClientSum};
use server::history::relations::RelationSum;
use server::history::slice::{Block, Count, Event, Slice, StatementSum, WaitSum};
use server::history::{FOLDER, Limits, Writer};

/// From a minute ago until now, as arguments.
const LATELY: &str = "now() - interval '1 min', clock_timestamp() + interval '1 s'";

fn connect(server: &Server) -> Client {
    Client::connect(server.port).expect("the server takes connections")
}

/// Sessions that have ended are in the sums, whatever their length.
#[test]
fn sums_are_kept_by_role_application_and_database() {
    let dir = TempDir::new("history-clients");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut client = connect(&server);
    client.one("CREATE TABLE stock (id int PRIMARY KEY, n int)");
    client.one("CREATE ROLE clerk LOGIN");
    client.one("GRANT ALL ON stock TO clerk");
    client.one("CREATE DATABASE branch");
    for (application, rows) in [("till", 200), ("office", 300)] {
        let mut clerk = Client::connect_to(server.port, "clerk", "postgres").expect("a role");
        clerk.one(&format!("SET application_name = '{application}'"));
        clerk.one(&format!(
            "INSERT INTO stock SELECT g, 1 FROM generate_series({rows}00, {rows}00 + {rows}) g"
        ));
    }
    // The same statement of both: a row of each here, one of both there.
    client.await_one(
        &format!(
            "SELECT string_agg(application_name || ' ' || calls, ', ' ORDER BY wal_bytes) \
             FROM pg_top_statements({LATELY}) WHERE query LIKE 'INSERT INTO stock%'"
        ),
        "till 1, office 1",
    );
    let calls = "SELECT sum(calls) || ' in ' || count(*) FROM pg_stat_statements WHERE query LIKE 'INSERT INTO stock%'";
    assert_eq!(client.one(calls), "2 in 1");
    drop(Client::connect_to(server.port, "postgres", "branch").expect("a database"));
    let of = |what: &str| format!("FROM pg_top_clients({LATELY}) WHERE {what}");
    client.await_one(
        &format!(
            "SELECT string_agg(application_name, ' ' ORDER BY wal_bytes) {}",
            of("usename = 'clerk' AND wal_bytes > 5000")
        ),
        "till office",
    );
    client.await_one(
        &format!(
            "SELECT sum(sessions_begun) >= 2 AND sum(active_ms) > 0 {}",
            of("usename = 'clerk'")
        ),
        "t",
    );
    client.await_one(&format!("SELECT count(*) {}", of("datname = 'branch'")), "1");
    // Waits know for whom they were.
    let mut office = Client::connect_to(server.port, "clerk", "postgres").expect("a role");
    office.one("SET application_name = 'office'");
    office.one("SELECT pg_sleep(0.2)");
    client.await_one(
        &format!(
            "SELECT count(*) > 0 FROM pg_wait_history({LATELY}) \
             WHERE event = 'PgSleep' AND application_name = 'office' AND userid = 'clerk'::regrole"
        ),
        "t",
    );
    client.await_one(
        &format!("SELECT max(waited_ms) >= 190 {}", of("application_name = 'office'")),
        "t",
    );
    // And all of it after a crash.
    let (data, port) = (server.dir.clone(), server.port);
    server.kill();
    let server = Server::start_on(&data, port, &[]);
    let mut client = connect(&server);
    client.await_one(
        &format!("SELECT count(*) {}", of("usename = 'clerk' AND wal_bytes > 5000")),
        "2",
    );
    assert!(server.stop());
}

#[test]
fn sums_are_kept_by_table_and_index() {
    let dir = TempDir::new("history-relations");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut client = connect(&server);
    client.one("CREATE TABLE shelf (id int PRIMARY KEY, note text)");
    client.one("INSERT INTO shelf SELECT g, repeat('x', 100) FROM generate_series(1, 3000) g");
    client.one("ANALYZE shelf");
    for id in 1..=50 {
        client.one(&format!("SELECT note FROM shelf WHERE id = {id}"));
    }
    client.one("SELECT count(note) FROM shelf");
    let of = |name: &str| format!("FROM pg_top_relations({LATELY}) WHERE relname = '{name}'");
    client.await_one(
        &format!(
            "SELECT kind || ' ' || tablename || ' ' || (scans >= 50) || ' ' || (rows_fetched >= 50) || ' ' \
             || (blks_hit > 0) || ' ' || datname {}",
            of("shelf_pkey")
        ),
        "index shelf true true true postgres",
    );
    client.await_one(
        &format!(
            "SELECT kind || ' ' || rows_inserted || ' ' || (rows_read >= 3000) || ' ' || (scans >= 1) {}",
            of("shelf")
        ),
        "table 3000 true true",
    );
    // A wait for a lock on the table is a wait for the table.
    client.one("BEGIN");
    client.one("LOCK TABLE shelf");
    let mut other = connect(&server);
    other.send("SELECT count(*) FROM shelf").expect("the connection holds");
    connect(&server).await_one(&format!("SELECT waited_ms > 0 {}", of("shelf")), "t");
    client.one("COMMIT");
    assert!(server.stop());
}

/// Both plans, and how long the statement took by each; `pg_why` names the change.
#[test]
fn a_plan_that_changes_is_kept_with_the_one_before() {
    let dir = TempDir::new("history-plans");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut client = connect(&server);
    client.one("CREATE TABLE parts AS SELECT g AS id, g % 100 AS kind, repeat('x', 50) AS filler FROM generate_series(1, 20000) g");
    client.one("CREATE INDEX parts_id ON parts (id)");
    client.one("ANALYZE parts");
    let mut ask = |times: usize| {
        (0..times).for_each(|_| {
            drop(client.one("SELECT max(kind) FROM parts WHERE id BETWEEN 70 AND 72"))
        });
    };
    ask(50);
    let mut other = connect(&server);
    let query = "query LIKE 'SELECT max(kind) FROM parts%'";
    other.await_one(
        &format!("SELECT count(*) FROM pg_plans WHERE {query} AND plan LIKE '%parts_id%'"),
        "1",
    );
    assert_eq!(other.one(&format!("SELECT count(*) FROM pg_plan_changes WHERE {query}")), "0");
    other.one("DROP INDEX parts_id");
    ask(50);
    let change = "SELECT (plan_before LIKE '%parts_id%') || ' ' || (plan LIKE '%Seq Scan on parts%') || ' ' \
                  || (calls_before >= 50) || ' ' || (calls >= 50) || ' ' || (busy_ms > busy_ms_before) || ' ' \
                  || (blks > blks_before) FROM pg_plan_changes WHERE ";
    other.await_one(&format!("{change}{query}"), "true true true true true true");
    assert_eq!(
        other.one(&format!(
            "SELECT count(*) FROM pg_events WHERE kind = 'plan' AND event LIKE '%max(kind)%'"
        )),
        "1"
    );
    // Times of both plans are told apart by beats of the history: it runs until one has the new plan alone.
    let until = Instant::now() + Duration::from_secs(60);
    let why = loop {
        let sentence =
            "SELECT string_agg(sentence, ' ') FROM pg_why() WHERE finding = 'plan_change'";
        let why = other.query(sentence).expect("the server answers").rows[0][0].clone();
        match why {
            Some(why) => break why,
            None => assert!(Instant::now() < until, "no finding"),
        }
        ask(10);
    };
    for part in
        ["max(kind)", "parts_id", "to `Seq Scan on parts`", "right after `DROP INDEX parts_id`"]
    {
        assert!(why.contains(part), "no {part} in {why}");
    }
    // The same plan made anew is no change, and roles without the right see none.
    other.one("ANALYZE parts");
    ask(5);
    other.one("CREATE ROLE nobody LOGIN");
    let mut nobody = Client::connect_to(server.port, "nobody", "postgres").expect("a role");
    assert_eq!(nobody.one("SELECT count(*) FROM pg_plans"), "0");
    assert_eq!(nobody.one("SELECT count(*) FROM pg_plan_changes"), "0");
    for call in ["pg_top_clients(now(), now())", "pg_compare_statements(now(), now(), '1 day')"] {
        let error = nobody.query(&format!("SELECT * FROM {call}")).expect("an answer").error;
        assert_eq!(error.expect(call).0, "42501");
    }
    // A change across a crash is one, too.
    let (data, port) = (server.dir.clone(), server.port);
    server.kill();
    let server = Server::start_on(&data, port, &[]);
    let mut client = connect(&server);
    client.one("CREATE INDEX parts_id ON parts (id)");
    (0..5).for_each(|_| drop(client.one("SELECT max(kind) FROM parts WHERE id BETWEEN 70 AND 72")));
    client.await_one(&format!("SELECT count(*) FROM pg_plan_changes WHERE {query}"), "2");
    assert!(server.stop());
}

#[test]
fn a_range_is_compared_with_the_same_time_before() {
    let dir = TempDir::new("history-compare");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut client = connect(&server);
    client.one("SELECT pg_sleep(0.4)");
    let slept = |range: &str| {
        format!("SELECT calls FROM pg_top_statements({range}) WHERE query LIKE 'SELECT pg_sleep%'")
    };
    client.await_one(&slept(LATELY), "1");
    let middle = client.one("SELECT clock_timestamp()");
    client.one("SELECT pg_sleep(0.1)");
    client.one("SELECT pg_sleep(0.1)");
    let late = format!("'{middle}', clock_timestamp() + interval '1 s'");
    client.await_one(&slept(&late), "2");
    // The minute from the middle on, beside the minute before it.
    let compared = format!(
        "SELECT calls || ' ' || calls_before || ' ' || (mean_ms BETWEEN 90 AND 350) || ' ' \
         || (mean_ms_before >= 390) || ' ' || (change_ms < 0) \
         FROM pg_compare_statements('{middle}', timestamptz '{middle}' + interval '1 min', '1 min') \
         WHERE query LIKE 'SELECT pg_sleep%'"
    );
    client.await_one(&compared, "2 1 true true true");
    let wrong = client.query("SELECT * FROM pg_compare_statements(now(), now(), '-1 day')");
    assert_eq!(wrong.expect("an answer").error.expect("it fails").0, "22023");
    assert!(server.stop());
}

/// Seconds of a day.
const DAY: i64 = 86_400;
/// When, before its end, a session held up ten others for a minute, seconds.
const FAULT_AGO: i64 = 15 * 3600;
/// Statements that run in each second.
const STATEMENTS: u64 = 40;

/// Microseconds since 2000.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
    since.as_micros() as i64 - 946_684_800_000_000
}

/// The `n`th second of a busy server's day, which ends then.
fn second(n: i64, at: i64) -> Slice {
    // Twice as much at noon as at midnight.
    let busy = 10 + 10 * (n.min(DAY - n) / 3600) as u64 / 12;
    let mut slice = Slice::new(at, 1_000_000);
    slice.set(Count::Processors, 8);
    slice.set(Count::CpuUs, 200_000 * busy);
    slice.set(Count::Commits, 100 * busy);
    slice.set(Count::Sessions, 40);
    let clients = ["shop", "reports", "cron"].map(|application| ClientOf {
        user: 10,
        database: 5,
        application: application.into(),
    });
    for client in &clients {
        let sum = ClientSum {
            sessions: 12,
            active_ns: busy * 7_000_000,
            ..ClientSum::new(client.clone())
        };
        slice.clients.push(sum);
    }
    for id in 1..=STATEMENTS {
        let text = format!(
            "SELECT a{id} FROM orders JOIN items USING (id) WHERE customer = $1 AND place = $2"
        );
        let mut sum = StatementSum::new(id, 10, 5, text.into());
        // Counts that vary, as real ones do.
        (sum.calls, sum.rows) = (busy * id, busy * id * 3 + n as u64 % 7);
        (sum.ns, sum.waited_ns) = (busy * id * 100_000 + n as u64 % 1000, busy * id * 30_000);
        for (what, amount) in [(Use::BufferHit, 40), (Use::BufferRead, 3), (Use::WalBytes, 200)] {
            sum.used.0[what as usize] = amount * busy * id + n as u64 % 13;
        }
        slice.statements.push(sum);
        if id % 2 == 0 {
            slice.waits.push(WaitSum {
                event: if id % 4 == 0 { WaitEvent::IODataFileRead } else { WaitEvent::IPCWalFlush },
                statement: id,
                object: if id % 4 == 0 { "relation orders".into() } else { "".into() },
                count: busy * id,
                ns: busy * id * 30_000,
                longest_ns: 3_000_000,
                client: clients[id as usize % 3].clone(),
            });
        }
    }
    for table in 1..=20 {
        slice.relations.push(RelationSum {
            name: format!("orders_{table}").into(),
            scans: busy,
            returned: busy * 50 + n as u64 % 11,
            blocks_hit: busy * 100,
            ..RelationSum::new(5, 20_000 + table)
        });
    }
    let mut event = |kind: &str, text: &str| {
        slice.events.push(Event { at, kind: kind.into(), pid: 0, text: text.into() });
    };
    if n % 300 == 0 {
        event("checkpoint", "checkpoint complete (because of checkpoint_timeout): 1.2 s");
    }
    let ago = DAY - n;
    if ago == FAULT_AGO {
        event("setting", "ALTER SYSTEM SET work_mem = 64MB");
    }
    if (FAULT_AGO - 60..FAULT_AGO).contains(&ago) {
        slice.blocks.push(Block {
            pid: 39,
            state: "idle in transaction".into(),
            query: "SELECT * FROM orders FOR UPDATE".into(),
            statement: 77,
            state_us: (FAULT_AGO - ago) as u64 * 1_000_000 + 1_000_000,
            transaction_us: 70_000_000,
            event: WaitEvent::LockRelation,
            object: "relation orders".into(),
            waiting: 10,
            indirect: 0,
            ns: 10_000_000_000,
            next: None,
            victim: "UPDATE orders SET a = $1".into(),
        });
    }
    slice
}

/// Writes a day that ends now as the server would, second by second; the time at which it ends.
fn write_day(dir: &Path, limits: Limits, every: i64) -> i64 {
    let mut writer = Writer::new(dir.to_owned());
    let end = now();
    for n in (0..DAY).step_by(every as usize) {
        writer.append(&second(n, end - (DAY - n) * 1_000_000), limits).expect("there is room");
    }
    end
}

fn size(dir: &Path) -> u64 {
    let files = std::fs::read_dir(dir).expect("the folder is there");
    files.map(|file| file.expect("a file").metadata().expect("its length").len()).sum()
}

/// A day of load, each of its seconds written, in the room that is the default; and the page has it.
#[test]
fn a_day_fits_its_budget_and_the_page_shows_it() {
    let dir = TempDir::new("history-day");
    let (data, port) = (dir.path().join("data"), free_port());
    let settings = [&*format!("http_port={port}")];
    assert!(Server::start(&data, &settings).stop());
    let limits = Limits { age_us: 14 * DAY * 1_000_000, bytes: 256 << 20 };
    let began = Instant::now();
    let end = write_day(&data.join(FOLDER), limits, 1);
    let bytes = size(&data.join(FOLDER));
    println!("a day: {bytes} bytes, written in {:.0} s", began.elapsed().as_secs_f64());
    assert!(bytes <= limits.bytes, "{bytes}");
    // A tenth of the day in a hundredth of the room: what does not fit gets coarser.
    let small = Limits { bytes: 2 << 20, ..limits };
    write_day(&dir.path().join("small"), small, 10);
    assert!(size(&dir.path().join("small")) <= small.bytes);

    let server = Server::start(&data, &settings);
    let mut client = Client::connect(server.port).expect("the server takes connections");
    // Sums are exact, whatever became minutes: one statement's calls of the whole day.
    let busy: u64 = (0..DAY).map(|n| 10 + 10 * (n.min(DAY - n) / 3600) as u64 / 12).sum();
    let day = format!(
        "timestamptz '2000-01-01 00:00 UTC' + interval '1 us' * {}, timestamptz '2000-01-01 00:00 UTC' + interval '1 us' * {}",
        end - (DAY + 10) * 1_000_000,
        end - 1
    );
    let calls =
        client.one(&format!("SELECT calls FROM pg_top_statements({day}) WHERE queryid = 7"));
    assert_eq!(calls, (busy * 7).to_string());
    let seconds = format!("SELECT min(seconds) || ' ' || max(seconds) FROM pg_wait_history({day})");
    assert_eq!(client.one(&seconds), "1 60");
    let fault = |before: i64, after: i64| {
        let at = end - FAULT_AGO * 1_000_000;
        let time = |us: i64| format!("timestamptz '2000-01-01 00:00 UTC' + interval '1 us' * {us}");
        format!("{}, {}", time(at - before * 1_000_000), time(at + after * 1_000_000))
    };
    let why = client.one(&format!(
        "SELECT sentence FROM pg_why({}) WHERE finding = 'lock_queue'",
        fault(60, 120)
    ));
    assert!(why.contains("10 of 40 sessions stand behind pid 39"), "{why}");
    let earlier = fault(7200, -3600);
    let nothing = format!("SELECT count(*) FROM pg_why({earlier}) WHERE finding = 'lock_queue'");
    assert_eq!(client.one(&nothing), "0");

    let began = Instant::now();
    client.one(&format!("SELECT count(*) FROM pg_why({day})"));
    println!("pg_why of the day: {:.1} s", began.elapsed().as_secs_f64());

    // The page: the whole day, and the minutes of the fault.
    let began = Instant::now();
    let answer = get(port, "/api/history.json?last=86400");
    println!(
        "the page's answer: {} bytes in {:.1} s",
        answer.body.len(),
        began.elapsed().as_secs_f64()
    );
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.body.len() < 1_000_000, "{} bytes", answer.body.len());
    let url = format!("http://owner:{}@127.0.0.1:{port}/#last=86400", token(port));
    let mut page = Browser::open(dir.path(), &url, (1280, 1700));
    page.await_true("past && past.times.length > 300");
    page.await_true("past.cpu.slice(5, -5).every((n) => n > 1)");
    page.await_true("document.querySelectorAll('#chart .mark[data-kind=checkpoint]').length > 200");
    page.await_true("$('past-statements').innerText.includes('SELECT a40 FROM orders')");
    page.await_true("$('past-relations').innerText.includes('orders_20')");
    let drawn = page.eval(
        "(() => { const t = performance.now(); drawPast(); return performance.now() - t; })()",
    );
    println!("drawn in {drawn} ms");
    // Sixty seconds in which ten sessions stood: by the time of its event.
    page.eval("(() => { const at = past.events.find((e) => e.kind === 'setting').at; choose({ last: null, from: at - 60000, to: at + 120000 }); })()");
    page.await_true("past && past.to - past.from === 180000");
    page.await_true("$('findings').innerText.includes('stand behind pid 39')");
    assert_eq!(page.eval("document.body.dataset.error || ''"), "");
    drop(page);
    assert!(server.stop());
}
