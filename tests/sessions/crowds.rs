//! A thousand sessions over two workers that use everything that brings code of its own into the server: all languages,
//! with cancels, kills, endless loops and memory hogs among them, and all extensions. Every answer is the session's own,
//! and afterwards the server is as it was. How long others waited meanwhile is printed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::support::client::Client;
use crate::support::footprint::{await_quiet, await_same, resident_kib};
use crate::support::language::{
    error, fail_often, install_java, make_bad_wasm, make_java, make_wasm, rows, run,
};
use crate::support::raw::{self, Raw};
use crate::support::{Server, TempDir};

const SESSIONS: usize = 1000;

/// Two workers and room for the sessions; the log says who held a worker for long.
const SETTINGS: [&str; 4] =
    ["workers=2", "max_connections=1200", "log_min_messages=log", "log_worker_slice=50"];

/// A session that asks for nothing much, again and again.
struct Bystander {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Duration>>,
}

impl Bystander {
    fn new(server: &Server) -> Bystander {
        let over = Arc::new(AtomicBool::new(false));
        let (told, port) = (over.clone(), server.port);
        let thread = std::thread::spawn(move || {
            let mut client = Client::connect(port).expect("a connection");
            let mut waits = Vec::new();
            while !told.load(Ordering::Relaxed) {
                let began = Instant::now();
                assert_eq!(client.one("SELECT 1"), "1");
                waits.push(began.elapsed());
                std::thread::sleep(Duration::from_millis(1));
            }
            waits
        });
        Bystander { over, thread }
    }

    /// Prints what held workers longest, the longest wait, and within which time 99 of 100 statements were answered.
    fn end(self, what: &str, server: &Server) {
        let log = std::fs::read_to_string(server.dir.with_extension("log")).unwrap_or_default();
        let held = |line: &str| {
            let (ms, text) = line.split_once("slice: ")?.1.split_once(" ms  statement: ")?;
            Some((ms.parse::<f64>().ok()?, text.to_owned()))
        };
        let mut turns: Vec<(f64, String)> = log.lines().filter_map(held).collect();
        turns.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (ms, text) in turns.iter().take(5) {
            println!("{what}: {ms:.0} ms on a worker: {text}");
        }
        self.over.store(true, Ordering::Relaxed);
        let mut waits = self.thread.join().expect("the bystander goes on");
        waits.sort_unstable();
        let ms = |d: &Duration| d.as_secs_f64() * 1e3;
        let worst = waits.last().map_or(0.0, ms);
        let late = waits.get(waits.len() * 99 / 100).map_or(0.0, ms);
        println!(
            "{what}: {} statements of a bystander, 99 of 100 within {late:.1} ms, all within {worst:.1} ms",
            waits.len()
        );
    }
}

/// Says what the server's sessions do when the test fails meanwhile.
struct Explained<'a>(&'a Server, &'a str);

impl Drop for Explained<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let busy = "SELECT count(*), wait_event_type, wait_event, query FROM pg_stat_activity
                    WHERE state <> 'idle' GROUP BY 2, 3, 4 ORDER BY 1 DESC LIMIT 20";
        println!("{}: {}", self.1, self.0.psql(&["-At"], busy));
    }
}

/// A query of a module to the server: its first column and row, a bigint.
const ASKING: &str = r#"(module
  (import "threadgres" "execute" (func $execute (param i32 i32 i32 i32) (result i32)))
  (import "threadgres" "cell_i64" (func $cell_i64 (param i32 i32 i32) (result i64)))
  (import "threadgres" "rethrow" (func $rethrow))
  (memory (export "memory") 2)
  (func (export "alloc") (param i32) (result i32) (i32.const 65536))
  (func (export "first") (param i32 i32) (result i64)
    (local $r i32)
    (local.set $r (call $execute (local.get 0) (local.get 1) (i32.const 0) (i32.const 0)))
    (if (i32.lt_s (local.get $r) (i32.const 0)) (then (call $rethrow)))
    (call $cell_i64 (local.get $r) (i32.const 0) (i32.const 0))))"#;

/// A call, and the SQLSTATE that it ends with ("": it gives 7).
type Work = (&'static str, &'static str);

const WORK: &[Work] = &[
    ("wasm_first('SELECT js(7)')", ""),
    ("fine()", ""),
    ("divide(0)", "38000"),
    ("forever()", "57014"),
    ("memory_hog()", "53200"),
    ("deep_wasm()", "54001"),
    ("wasm_first('SELECT 7 FROM pg_sleep(0.05)')", ""),
    ("js(7)", ""),
    ("js_ask('SELECT pl(7) AS n')", ""),
    ("js_throws()", "38000"),
    ("js_forever()", "57014"),
    ("js_hog()", "53200"),
    ("js_deep()", "54001"),
    ("pl(7)", ""),
    ("pl_ask('SELECT sq(7)')", ""),
    ("pl_raises()", "38000"),
    ("pl_forever()", "57014"),
    ("pl_hog()", "53200"),
    ("sq(7)", ""),
    ("sq_fails(0)", "22012"),
    ("sq_forever()", "57014"),
    ("sq_hog()", "53200"),
];

/// The same for Java, whose heap is one for all: its hogs have a time of their own.
const JAVA_WORK: &[Work] = &[
    ("java_same(7)", ""),
    ("java_ask('SELECT fine()')", ""),
    ("java_fail('x')", "38000"),
    ("java_sleep(100000)", "57014"),
    ("java_deep(0)", "54001"),
    ("java_ask('SELECT java_ask(''SELECT js(7)'')')", ""),
];

/// Makes the functions of all languages; those in Java where there is a JVM.
fn make_functions(client: &mut Raw, has_java: bool) {
    make_bad_wasm(client);
    make_wasm(client, "wasm_first(text) RETURNS bigint", ASKING, "first");
    run(
        client,
        "CREATE FUNCTION js(n int) RETURNS bigint LANGUAGE javascript AS 'return n';
         CREATE FUNCTION js_ask(q text) RETURNS int LANGUAGE javascript AS 'return plv8.execute(q)[0].n';
         CREATE FUNCTION js_throws() RETURNS int LANGUAGE javascript AS 'throw new Error()';
         CREATE FUNCTION js_forever() RETURNS int LANGUAGE javascript AS 'for (;;) { try { for (;;); } catch (e) { } }';
         CREATE FUNCTION js_hog() RETURNS int LANGUAGE javascript AS
           'const a = []; for (;;) a.push(\"x\".repeat(1e5) + a.length)';
         CREATE FUNCTION js_deep() RETURNS int LANGUAGE javascript AS 'const f = () => f() + 1; return f()';
         CREATE FUNCTION pl(n int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN n; END';
         CREATE FUNCTION pl_ask(q text) RETURNS int LANGUAGE plpgsql AS
           'DECLARE n int; BEGIN EXECUTE q INTO n; RETURN n; END';
         CREATE FUNCTION pl_raises() RETURNS int LANGUAGE plpgsql AS
           'BEGIN RAISE EXCEPTION ''no'' USING ERRCODE = ''38000''; END';
         CREATE FUNCTION pl_forever() RETURNS int LANGUAGE plpgsql AS 'BEGIN LOOP END LOOP; END';
         CREATE FUNCTION pl_hog() RETURNS int LANGUAGE plpgsql AS
           'DECLARE t text := ''x''; BEGIN LOOP t := t || t; END LOOP; END';
         CREATE FUNCTION sq(n int) RETURNS int LANGUAGE sql AS 'SELECT n';
         CREATE FUNCTION sq_fails(n int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT 7 / n';
         CREATE FUNCTION sq_forever() RETURNS bigint LANGUAGE sql AS
           'SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b';
         CREATE FUNCTION sq_hog() RETURNS int LANGUAGE sql AS
           'SELECT length(string_agg(repeat(''x'', 1000), '''')) FROM generate_series(1, 1000000)'",
    );
    if has_java {
        for (heading, method) in [
            ("java_same(int) RETURNS int", "same(int)"),
            ("java_ask(text) RETURNS text", "ask"),
            ("java_fail(text) RETURNS int", "fail"),
            ("java_sleep(int) RETURNS int", "sleep"),
            ("java_deep(int) RETURNS int", "deep"),
            ("java_hog() RETURNS int", "hog"),
        ] {
            make_java(client, heading, method);
        }
    }
}

fn threads(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
}

const ACTIVE: &str = "FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid()
                      AND backend_type = 'client backend' AND query LIKE 'SELECT %ever%'";

/// All sessions loop or wait at once; half of them are killed, the others canceled.
fn loop_and_be_ended(sessions: &mut [Raw], watcher: &mut Client, has_java: bool) {
    let endless = [
        "SELECT forever()",
        "SELECT js_forever()",
        "SELECT pl_forever()",
        "SELECT sq_forever()",
        "SELECT wasm_first('SELECT 7 FROM pg_sleep(1000) -- ever')",
        "SELECT java_sleep(100000) AS ever",
    ];
    let kinds = if has_java { endless.len() } else { endless.len() - 1 };
    for (n, session) in sessions.iter_mut().enumerate() {
        session.send(&raw::query(endless[n % kinds]));
    }
    watcher.await_one(&format!("SELECT count(*) {ACTIVE}"), &sessions.len().to_string());
    watcher
        .query(&format!("SELECT count(pg_terminate_backend(pid)) {ACTIVE} AND pid % 2 = 0"))
        .expect("kills");
    watcher.query(&format!("SELECT count(pg_cancel_backend(pid)) {ACTIVE}")).expect("cancels");
    for session in sessions {
        let lines = session.until(|l| l.starts_with("Z "));
        assert!(lines.iter().any(|l| l.contains("57014") || l.contains("57P01")), "{lines:?}");
    }
}

#[test]
fn a_thousand_sessions_call_all_languages() {
    let dir = TempDir::new("crowd-languages");
    let more = ["java_heap_size=64MB", "java_max_threads=8", "java_interrupt_timeout=100ms"];
    let settings = [&SETTINGS[..], &more].concat();
    let server = Server::start(&dir.path().join("data"), &settings);
    let has_java = install_java(&dir, &server);
    let work: Vec<Work> = match has_java {
        true => [WORK, JAVA_WORK].concat(),
        false => WORK.to_vec(),
    };
    let mut client = Raw::connect(server.port);
    make_functions(&mut client, has_java);
    // Threads and modules that begin once for the server are there.
    for (call, state) in work.iter().filter(|(_, state)| state.is_empty() || *state == "38000") {
        let lines = client.query(&format!("SELECT {call}"));
        assert!(state.is_empty() || error(&lines).starts_with(state), "{call}: {lines:?}");
    }
    let hogs = has_java.then_some("SELECT java_hog()");
    for call in hogs.iter().cycle().take(3 * hogs.iter().len()) {
        let greedy = client.query(call);
        assert!(error(&greedy).starts_with("53200"), "{greedy:?}");
        assert_eq!(rows(&run(&mut client, "SELECT java_same(7)")), ["7"]);
    }
    drop(client);
    let mut watcher = Client::connect(server.port).expect("a connection");
    let before = await_quiet(&server, &mut watcher, 0);
    let (threads_before, resident_before) = (threads(server.pid()), resident_kib(server.pid()));
    let mut sessions: Vec<Raw> = (0..SESSIONS).map(|_| Raw::connect(server.port)).collect();
    let bystander = Bystander::new(&server);
    for round in 0..3 {
        let of = |n: usize| work[(n + 7 * round) % work.len()];
        for (n, session) in sessions.iter_mut().enumerate() {
            let (call, state) = of(n);
            match state {
                "57014" => drop(run(session, "SET statement_timeout = '100ms'")),
                "53200" => drop(run(session, "SET session_memory_limit = '16MB'")),
                _ => {}
            }
            session.send(&raw::query(&format!("SELECT {call}")));
        }
        for (n, session) in sessions.iter_mut().enumerate() {
            let (call, state) = of(n);
            let _explained = Explained(&server, call);
            let lines = session.until(|l| l.starts_with("Z "));
            match state {
                "" => assert_eq!(rows(&lines), ["7"], "{call}"),
                _ => assert!(error(&lines).starts_with(state), "{call}: {lines:?}"),
            }
            run(session, "RESET statement_timeout; RESET session_memory_limit");
        }
    }
    loop_and_be_ended(&mut sessions, &mut watcher, has_java);
    bystander.end("languages", &server);
    drop(sessions);
    await_same(&server, &mut watcher, before);
    println!(
        "{} threads before, {} after; {} MiB before, {} after",
        threads_before,
        threads(server.pid()),
        resident_before >> 10,
        resident_kib(server.pid()) >> 10
    );
    // The threads of the JVM's own are as many as it likes; the pools' stay for a while.
    assert!(threads(server.pid()) <= threads_before + 60, "{} threads", threads(server.pid()));
    // Ten thousand that trap, throw or raise hurt nobody.
    let bystander = Bystander::new(&server);
    fail_often(server.port, "divide(0)");
    fail_often(server.port, "js_throws()");
    if has_java {
        fail_often(server.port, "java_fail('x')");
    }
    bystander.end("traps and exceptions", &server);
    assert_eq!(watcher.one("SELECT fine() + js(0) + pl(0) + sq(0)"), "7");
    assert!(server.stop());
}

/// The extensions that come with the server, but for Java, which has the tests above, and pg_pathman, whose functions
/// stand in a schema for tables of its own.
const EXTENSIONS: &str =
    "SELECT name FROM pg_available_extensions WHERE name NOT IN ('java', 'pg_pathman', 'plpgsql')
     ORDER BY name";

/// State that a session keeps for itself: a statement that sets it, one that reads it back, and the answer; `{n}` is
/// the session's number, `{f}` a fraction of its own.
const KEPT: &[(&str, &str, &str)] = &[
    ("SELECT set_limit({f}) IS NULL", "SELECT show_limit()", "{f}"),
    (
        "SET pg_trgm.strict_word_similarity_threshold = {f}",
        "SHOW pg_trgm.strict_word_similarity_threshold",
        "{f}",
    ),
    ("SELECT isn_weak({n} % 2 = 0)", "SELECT isn_weak()::int", "{even}"),
    ("SET hnsw.ef_search = {m}", "SHOW hnsw.ef_search", "{m}"),
    ("CREATE TEMP TABLE own AS SELECT hstore('k', '{n}') AS h", "SELECT h -> 'k' FROM own", "{n}"),
];

/// Expressions over a session's number, and what they give.
const VALUES: &[(&str, &str)] = &[
    ("'A{n}'::citext = 'a{n}'", "t"),
    ("(hstore('k', '{n}') || 'a=>b') -> 'k'", "{n}"),
    ("encode(digest('{n}', 'md5'), 'hex') = md5('{n}')", "t"),
    ("pgp_sym_decrypt(pgp_sym_encrypt('{n}', 'key {n}'), 'key {n}')", "{n}"),
    ("uuid_generate_v5(uuid_ns_url(), '{n}') = uuid_generate_v5(uuid_ns_url(), '{n}')", "t"),
    ("similarity('word {n}', 'word {n}')", "1"),
    ("unaccent('é{n}')", "e{n}"),
    ("ltree '{n}.x' <@ ltree '{n}'", "t"),
    ("(ARRAY[{n}, -1] & ARRAY[{n}])::text", "{{n}}"),
    ("cube_ll_coord(cube(ARRAY[{n}::float8, 1]), 1)", "{n}"),
    ("seg_upper('0 .. {n}'::seg)", "{n}"),
    ("levenshtein('a{n}', 'b{n}')", "1"),
    ("earth_distance(ll_to_earth({n} / 100.0, 0), ll_to_earth({n} / 100.0, 0))", "0"),
    ("(SELECT sum(i) FROM int_array_enum(ARRAY[{n}]) i)", "{n}"),
    ("'[{n},2]'::vector <-> '[{n},3]'::vector", "1"),
    ("ts_lexize('intdict', '{n}')::text", "{{n}}"),
    ("(SELECT count(*) FROM normal_rand({n}, 0, 1))", "{n}"),
    ("(SELECT count(*) FROM things TABLESAMPLE system_rows(5))", "5"),
    ("(SELECT count(*) > 0 FROM pgstattuple('things'))", "t"),
    ("(SELECT count(*) > 0 FROM pg_visibility_map('things'))", "t"),
    ("(SELECT count(*) > 0 FROM pg_freespace('things'))", "t"),
    ("(SELECT count(*) > 0 FROM heap_page_items(get_raw_page('things', 0)))", "t"),
    ("pg_prewarm('things') > 0", "t"),
    ("bt_index_check('things_pkey') IS NULL", "f"),
    ("(SELECT count(*) FROM pgrowlocks('things'))", "0"),
    ("ssl_is_used()", "f"),
    ("isbn_of({n})::text = isbn_of({n})::text", "t"),
    // One row of things by an index of each method.
    ("(SELECT id FROM things WHERE words LIKE '%x{n}y%')", "{n}"),
    ("(SELECT id FROM things WHERE tags @> ARRAY[{n}])", "{n}"),
    ("(SELECT id FROM things WHERE a = {n} AND b = {n})", "{n}"),
    ("(SELECT id FROM things ORDER BY v <-> '[{n},0]' LIMIT 1)", "{n}"),
    ("(SELECT id FROM things WHERE c <@ cube({n} - 0.1, {n} + 0.1))", "{n}"),
    ("(SELECT id FROM things WHERE during @> {n})", "{n}"),
    ("(SELECT id FROM things WHERE path <@ 'top.p{n}')", "{n}"),
    ("(SELECT id FROM things WHERE h @> 'k=>{n}')", "{n}"),
];

const THINGS: &str = "
  CREATE TABLE things (id int PRIMARY KEY, words text, tags int[], a int, b int, v vector(2), c cube, during int4range,
                       path ltree, h hstore);
  INSERT INTO things SELECT n, 'x' || n || 'y', ARRAY[n], n, n, format('[%s,0]', n)::vector, cube(n), int4range(n, n + 1),
                            ('top.p' || n)::ltree, hstore('k', n::text) FROM generate_series(1, 1000) n;
  CREATE INDEX ON things USING gin (words gin_trgm_ops);
  CREATE INDEX ON things USING gin (tags gin__int_ops);
  CREATE INDEX ON things USING bloom (a, b);
  CREATE INDEX ON things USING hnsw (v vector_l2_ops);
  CREATE INDEX ON things USING gist (c);
  CREATE INDEX ON things USING spgist (during);
  CREATE INDEX ON things USING gist (path);
  CREATE INDEX ON things USING gist (h);
  CREATE INDEX ON things USING gin (id);
  CREATE INDEX ON things USING gist (id, words);
  VACUUM ANALYZE things;
  CREATE FUNCTION isbn_of(n int) RETURNS isbn13 LANGUAGE sql AS
    'SELECT make_valid((''978'' || lpad(n::text, 9, ''0'') || ''0!'')::ean13::isbn13)';
  CREATE SEQUENCE numbers;
  CREATE TABLE changed (id int, name text, at timestamp, l lo);
  CREATE TRIGGER a BEFORE INSERT ON changed FOR EACH ROW EXECUTE FUNCTION autoinc(id, numbers);
  CREATE TRIGGER b BEFORE INSERT ON changed FOR EACH ROW EXECUTE FUNCTION insert_username(name);
  CREATE TRIGGER c BEFORE UPDATE ON changed FOR EACH ROW EXECUTE FUNCTION moddatetime(at);
  CREATE TRIGGER d BEFORE UPDATE OR DELETE ON changed FOR EACH ROW EXECUTE FUNCTION lo_manage(l)";

/// A text with a session's number in its places.
fn own(text: &str, n: usize) -> String {
    text.replace("{f}", &format!("0.{:04}", n + 1000).trim_end_matches('0').to_owned())
        .replace("{m}", &(n % 900 + 10).to_string())
        .replace("{even}", &u8::from(n % 2 == 0).to_string())
        .replace("{n}", &n.to_string())
}

/// The only cell of an answer.
fn cell(lines: &[String]) -> String {
    rows(lines).concat()
}

#[test]
fn a_thousand_sessions_use_all_extensions() {
    let dir = TempDir::new("crowd-extensions");
    let server = Server::start(&dir.path().join("data"), &SETTINGS);
    let mut client = Raw::connect(server.port);
    let made = rows(&run(&mut client, EXTENSIONS));
    for name in &made {
        run(&mut client, &format!("SET client_min_messages = error; CREATE EXTENSION \"{name}\""));
    }
    // One at a time: VACUUM stands alone.
    for statement in THINGS.split(";\n") {
        run(&mut client, statement);
    }
    run(&mut client, "SET pg_trgm.similarity_threshold = 0.3; SELECT show_limit()");
    for (expression, wanted) in VALUES {
        let lines = client.query(&format!("SELECT {}", own(expression, 7)));
        assert_eq!(cell(&lines), own(wanted, 7), "{expression}");
    }
    drop(client);
    let mut watcher = Client::connect(server.port).expect("a connection");
    let before = await_quiet(&server, &mut watcher, 0);
    let mut sessions: Vec<Raw> = (0..SESSIONS).map(|_| Raw::connect(server.port)).collect();
    let number = |n: usize| n % 999 + 1;
    let bystander = Bystander::new(&server);
    for (n, session) in sessions.iter_mut().enumerate() {
        let keep: Vec<String> = KEPT.iter().map(|(keep, ..)| own(keep, number(n))).collect();
        session.send(&raw::query(&format!("SET enable_seqscan = off; {}", keep.join("; "))));
    }
    for session in &mut sessions {
        let lines = session.until(|l| l.starts_with("Z "));
        assert_eq!(error(&lines), "no error");
    }
    // Connections of sessions to this server, each by the same name.
    for (n, session) in sessions.iter_mut().enumerate().filter(|(n, _)| n % 50 == 0) {
        let target = format!("host=127.0.0.1 port={} user=postgres dbname=postgres", server.port);
        run(
            session,
            &format!("SELECT dblink_connect('c', '{target} application_name=''far {n}''')"),
        );
    }
    for round in 0..4 {
        let of = |n: usize| VALUES[(n + 9 * round) % VALUES.len()];
        for (n, session) in sessions.iter_mut().enumerate() {
            session.send(&raw::query(&format!("SELECT {}", own(of(n).0, number(n)))));
        }
        for (n, session) in sessions.iter_mut().enumerate() {
            let lines = session.until(|l| l.starts_with("Z "));
            assert_eq!(cell(&lines), own(of(n).1, number(n)), "{}", own(of(n).0, number(n)));
        }
        for (n, session) in sessions.iter_mut().enumerate().filter(|(n, _)| n % 10 == round) {
            let changed =
                "BEGIN; INSERT INTO changed DEFAULT VALUES; UPDATE changed SET id = id + 1;
                           SELECT name, at IS NULL FROM changed; ROLLBACK";
            assert_eq!(rows(&session.query(changed)), ["postgres|f"], "session {n}");
        }
    }
    for (n, session) in sessions.iter_mut().enumerate() {
        for (_, find, wanted) in KEPT {
            assert_eq!(cell(&session.query(find)), own(wanted, number(n)), "{find} of session {n}");
        }
        let far = "SELECT name FROM dblink('c', 'SHOW application_name') AS t (name text)";
        let lines = session.query(far);
        match n % 50 {
            0 => assert_eq!(cell(&lines), format!("far {n}")),
            _ => assert!(error(&lines).starts_with("08"), "{lines:?}"),
        }
    }
    bystander.end("extensions", &server);
    drop(sessions);
    await_same(&server, &mut watcher, before);
    assert!(server.stop());
}
