//! Java inside the server: values, SQL from inside, sets, triggers, jars in the database, exceptions, and what a method
//! can't do to others. Left out, with a word, where there is no JDK.

use crate::support::client::Client;
use crate::support::footprint::{await_quiet, await_resident_kib, await_same, resident_kib};
use crate::support::language::{
    context_of, error, fail_often, install_java, jar, make_bad_wasm, make_java, root, rows, run,
};
use crate::support::raw::{self, Raw};
use crate::support::{Server, TempDir};

/// A server with the extension, and the tests' jar in the class path of `public`.
fn start(name: &str, settings: &[&str]) -> Option<(TempDir, Server, Raw)> {
    let dir = TempDir::new(name);
    let mut all = vec!["workers=2"];
    all.extend(settings);
    let server = Server::start(&dir.path().join("data"), &all);
    if !install_java(&dir, &server) {
        return None;
    }
    let client = Raw::connect(server.port);
    Some((dir, server, client))
}

#[test]
fn a_missing_jvm_is_said() {
    let dir = TempDir::new("java-missing");
    let server = Server::start(&dir.path().join("data"), &["java_home=/nowhere"]);
    let mut client = Raw::connect(server.port);
    let missing = client.query("CREATE EXTENSION java");
    assert!(error(&missing).starts_with("58P01 could not find the library"), "{missing:?}");
    let none = client.query("CREATE FUNCTION f() RETURNS int LANGUAGE java AS 'a.b'");
    assert_eq!(error(&none), "42704 language \"java\" does not exist");
    assert!(server.stop());
}

#[test]
fn values_go_in_and_come_back() {
    let Some((_dir, server, mut client)) = start("java-values", &[]) else { return };
    run(
        &mut client,
        "CREATE TYPE pair AS (a int, b text); CREATE TYPE mood AS ENUM ('sad', 'happy');
         CREATE EXTENSION citext; CREATE EXTENSION hstore; CREATE EXTENSION vector;
         CREATE DOMAIN small AS int CHECK (VALUE < 10)",
    );
    for (ty, method, value) in [
        ("bool", "same", "true"),
        ("int2", "same", "-7"),
        ("int4", "same", "-2147483648"),
        ("int4", "maybe", "NULL"),
        ("int8", "same", "-9223372036854775808"),
        ("float4", "same", "1.5"),
        ("float8", "same", "-0.1"),
        ("float8", "same", "'NaN'"),
        ("numeric", "same", "123456789012345678901234567890.25"),
        ("text", "same", "'naïve \"text\" 😀'"),
        ("text", "same", "''"),
        ("text", "same", "NULL"),
        ("text", "same", "repeat('long ', 100000)"),
        ("char(4)", "same", "'a'"),
        ("jsonb", "same", "'[1, \"x\", false]'"),
        ("bytea", "same", "'\\x00ff10'"),
        ("date", "same", "'2024-02-29'"),
        ("date", "same", "'infinity'"),
        ("time", "same", "'12:34:56.789'"),
        ("timestamp", "same", "'2024-02-29 12:34:56.789012'"),
        ("timestamp", "stamp", "'2024-02-29 12:34:56.789012'"),
        ("timestamp", "same", "'-infinity'"),
        ("timestamptz", "same", "'2024-02-29 12:34:56.789012+05'"),
        ("timestamptz", "stamp", "'1900-02-28 12:34:56.789012+05'"),
        ("timestamptz", "same", "'infinity'"),
        ("uuid", "same", "'6b8c0b4e-6c1e-4b0c-8f0e-1d8f1a3c5b7a'"),
        ("int4[]", "same", "'{1,2,3}'"),
        ("int4[]", "same(java.lang.Integer[])", "'{1,NULL,3}'"),
        ("int4[]", "same", "'{}'"),
        ("int8[]", "same(long[][])", "'{{1,2},{3,4}}'"),
        ("float8[]", "same", "'{1.5,-2}'"),
        ("text[]", "same", "'{a,\"b c\",NULL,\"\"}'"),
        ("interval", "same", "'1 mon 2 days 00:00:03.5'"),
        ("pair", "same", "row(1, 'x')::pair"),
        ("mood", "same", "'happy'"),
        ("small", "same", "3"),
        ("int4range", "same", "'[1,5)'"),
        ("citext", "same", "'Some Text'"),
        ("hstore", "same", "'a=>1, b=>NULL'"),
        ("vector(3)", "same", "'[1,2.5,-3]'"),
        ("vector[]", "same", "'{\"[1,2]\",NULL}'"),
    ] {
        make_java(&mut client, &format!("f(v {ty}) RETURNS {ty}"), method);
        let same = run(
            &mut client,
            &format!("SELECT f(({value})::{ty})::text IS NOT DISTINCT FROM ({value})::{ty}::text"),
        );
        assert_eq!(rows(&same), ["t"], "{ty} {value}");
        run(&mut client, &format!("DROP FUNCTION f({ty})"));
    }
    // A number that the type has not; NULL for a plain number; a domain's check.
    make_java(&mut client, "narrow(int4) RETURNS int2", "same(int)");
    assert!(error(&client.query("SELECT narrow(40000)")).starts_with("22003"));
    assert!(error(&client.query("SELECT narrow(NULL)")).starts_with("22004"));
    make_java(&mut client, "bound(int4) RETURNS small", "same(int)");
    assert!(error(&client.query("SELECT bound(11)")).starts_with("23514"));
    // A method that isn't there.
    let none = client.query("CREATE FUNCTION f() RETURNS int LANGUAGE java AS 'tried.Try.nothing'");
    assert!(error(&none).starts_with("42883"), "{none:?}");
    let none =
        client.query("CREATE FUNCTION f() RETURNS int LANGUAGE java AS 'tried.Nobody.nothing'");
    assert!(error(&none).starts_with("46103"), "{none:?}");
    let none = client.query("CREATE FUNCTION f() RETURNS int LANGUAGE java AS 'no method'");
    assert!(error(&none).starts_with("42601"), "{none:?}");
    assert!(server.stop());
}

#[test]
fn methods_ask_the_server() {
    let Some((_dir, server, mut client)) = start("java-asks", &[]) else { return };
    for (heading, method) in [
        ("ask(text) RETURNS text", "ask"),
        ("total(text, int) RETURNS bigint", "total"),
        ("change(text, text[]) RETURNS int", "change"),
        ("code(text) RETURNS text", "code"),
        ("series(int) RETURNS SETOF int", "series"),
        ("pairs(text) RETURNS TABLE (n int, t text)", "pairs"),
        ("provided(int) RETURNS TABLE (n int, t text)", "provided"),
        ("queried(text) RETURNS SETOF record", "queried"),
        ("mapped(int, OUT n int, OUT t text)", "mapped"),
        ("say(text) RETURNS void", "say"),
        ("elsewhere() RETURNS text", "elsewhere"),
        ("add(int, int) RETURNS int IMMUTABLE STRICT", "add"),
    ] {
        make_java(&mut client, heading, method);
    }
    run(&mut client, "CREATE PROCEDURE twice(text) LANGUAGE java AS 'tried.Try.twice'");
    run(&mut client, "CREATE TABLE t (n int CHECK (n < 100), w text)");
    let insert = "INSERT INTO t SELECT ?::int, ? -- no ? mark\n WHERE ''?'' = $q$?$q$";
    let changed = run(&mut client, &format!("SELECT change('{insert}', '{{1,x}}')"));
    assert_eq!(rows(&changed), ["1"]);
    run(&mut client, "INSERT INTO t SELECT n FROM generate_series(2, 50) n");
    for size in [0, 1, 7, 1000] {
        let total = run(&mut client, &format!("SELECT total('SELECT n FROM t', {size})"));
        assert_eq!(rows(&total), ["1275"], "{size} rows at a time");
    }
    // A statement that fails is undone, and the method goes on.
    let code = run(&mut client, "SELECT code('INSERT INTO t VALUES (51), (100)'), count(*) FROM t");
    assert_eq!(rows(&code), ["23514|50"]);
    let passed = client.query("SELECT ask('SELECT 1 / 0')");
    assert!(error(&passed).starts_with("22012 division by zero"), "{passed:?}");
    let context = context_of(&mut client, "SELECT ask(''SELECT 1 / 0'')");
    assert!(context.contains("SQL statement \"SELECT 1 / 0\""), "{context}");
    assert!(context.contains("Java tried.Try.ask (Try.java:"), "{context}");
    assert!(context.contains("Java function ask(text)"), "{context}");
    // A method that is called by a query of another one, on the same thread.
    let nested = run(&mut client, "SELECT ask('SELECT ask(''SELECT ask(''''SELECT 7'''')'')')");
    assert_eq!(rows(&nested), ["7"]);
    assert_eq!(rows(&run(&mut client, "SELECT * FROM series(3)")), ["0", "1", "2"]);
    assert_eq!(rows(&run(&mut client, "SELECT sum(n) FROM series(200000) n")), ["19999900000"]);
    assert_eq!(rows(&run(&mut client, "SELECT * FROM pairs('a word')")), ["1|a", "4|word"]);
    assert_eq!(rows(&run(&mut client, "SELECT * FROM provided(2)")), ["0|row 0", "1|row 1"]);
    let queried =
        "SELECT * FROM queried('SELECT n, w FROM t WHERE n < 3 ORDER BY n') AS q (a int, b text)";
    assert_eq!(rows(&run(&mut client, queried)), ["1|x", "2|NULL"]);
    assert_eq!(rows(&run(&mut client, "SELECT (mapped(5)).*")), ["5|number 5"]);
    let said = run(&mut client, "SELECT say('hello')");
    assert!(said.iter().any(|l| l.starts_with("N ") && l.contains("hello")), "{said:?}");
    assert_eq!(rows(&run(&mut client, "SELECT elsewhere()")), ["08003"]);
    // Whole batches, with NULL where the function is strict.
    run(
        &mut client,
        "CREATE TABLE many AS SELECT n, NULLIF(n % 7, 3) AS m FROM generate_series(1, 20000) n",
    );
    let batch = "SELECT count(*) FROM many WHERE add(n, m) IS DISTINCT FROM n + m";
    assert_eq!(rows(&run(&mut client, batch)), ["0"]);
    // Committed rows stay.
    run(&mut client, "TRUNCATE t");
    run(&mut client, "CALL twice('INSERT INTO t VALUES (1)')");
    assert_eq!(rows(&run(&mut client, "SELECT count(*) FROM t")), ["1"]);
    let inside = client.query("BEGIN; CALL twice('INSERT INTO t VALUES (1)'); COMMIT");
    assert!(error(&inside).starts_with("2D000"), "{inside:?}");
    client.query("ROLLBACK");
    // A function that isn't volatile writes nothing.
    run(&mut client, "ALTER FUNCTION change(text, text[]) STABLE");
    let stable = client.query("SELECT change('DELETE FROM t', '{}')");
    assert!(error(&stable).starts_with("0A000"), "{stable:?}");
    assert!(server.stop());
}

#[test]
fn savepoints_undo_what_follows_them() {
    let Some((_dir, server, mut client)) = start("java-savepoints", &[]) else { return };
    make_java(&mut client, "marks(text) RETURNS text", "marks");
    run(&mut client, "CREATE PROCEDURE marking(text) LANGUAGE java AS 'tried.Try.marks'");
    run(&mut client, "CREATE TABLE t (n int)");
    for (words, left) in [
        ("1 s 2 b 3", "1 3"),
        ("s 1 s 2 b b 3 r 4", "1 3 4"),
        ("s 1 s 2 s 3 r b 4", "1 4"),
        ("1 s 2 s 3 first 4", "1 4"),
        ("s 1 s 2", "1 2"),
        ("1 s 2 r 3", "1 2 3"),
    ] {
        assert_eq!(rows(&run(&mut client, &format!("SELECT marks('{words}')"))), [left], "{words}");
        assert_eq!(
            rows(&run(&mut client, "SELECT string_agg(n::text, ' ' ORDER BY n) FROM t")),
            [left]
        );
        run(&mut client, "TRUNCATE t");
    }
    // A savepoint that is gone; an end with one that is open; a commit inside one.
    let gone = client.query("SELECT marks('s 1 s 2 first b')");
    assert!(error(&gone).starts_with("3B001"), "{gone:?}");
    let inside = client.query("CALL marking('1 s 2 c')");
    assert!(error(&inside).starts_with("2D000"), "{inside:?}");
    assert_eq!(rows(&run(&mut client, "SELECT count(*) FROM t")), ["0"]);
    // An exception undoes all, as it does without savepoints; the block around it goes on.
    let caught = run(
        &mut client,
        "DO $$ BEGIN
           INSERT INTO t VALUES (0);
           BEGIN PERFORM marks('1 s 2 s 3 fail'); EXCEPTION WHEN SQLSTATE '38000' THEN NULL; END;
           INSERT INTO t VALUES (9);
         END $$; SELECT string_agg(n::text, ' ' ORDER BY n) FROM t",
    );
    assert_eq!(rows(&caught), ["0 9"]);
    run(&mut client, "BEGIN; TRUNCATE t; SAVEPOINT a; SELECT marks('1 s 2')");
    assert!(error(&client.query("SELECT marks('3 s 4 fail')")).starts_with("38000"));
    run(&mut client, "ROLLBACK TO a; SELECT marks('5 s 6 b'); RELEASE a; COMMIT");
    assert_eq!(rows(&run(&mut client, "SELECT n FROM t")), ["5"]);
    assert!(server.stop());
}

#[test]
fn triggers_see_and_change_rows() {
    let Some((_dir, server, mut client)) = start("java-triggers", &[]) else { return };
    make_java(&mut client, "doubled() RETURNS trigger", "doubled");
    run(
        &mut client,
        "CREATE TABLE t (gone int, n int, t text); ALTER TABLE t DROP COLUMN gone;
         CREATE TRIGGER d BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION doubled('x');
         INSERT INTO t VALUES (1), (13), (2); UPDATE t SET n = 5 WHERE n = 4",
    );
    let rows_of = run(&mut client, "SELECT n, t FROM t ORDER BY n");
    assert_eq!(rows(&rows_of), ["2|INSERT x", "10|UPDATE x"]);
    assert!(error(&client.query("SELECT doubled()")).starts_with("0A000"));
    assert!(server.stop());
}

#[test]
fn jars_and_rights_are_the_databases() {
    let Some((_dir, server, mut client)) = start("java-jars", &[]) else { return };
    make_java(&mut client, "calls() RETURNS bigint", "calls");
    // Sessions have the same classes, with the same static fields.
    assert_eq!(rows(&run(&mut client, "SELECT calls()")), ["1"]);
    let mut other = Raw::connect(server.port);
    assert_eq!(rows(&run(&mut other, "SELECT calls()")), ["2"]);
    assert_eq!(rows(&run(&mut client, "SELECT sqlj.get_classpath('public')")), ["tried"]);
    // A jar that goes takes its classes along, when that is committed.
    run(&mut client, "BEGIN");
    run(&mut client, "SELECT sqlj.remove_jar('tried')");
    run(&mut client, "SAVEPOINT s");
    assert!(error(&client.query("SELECT calls()")).starts_with("46103"));
    run(&mut client, "ROLLBACK TO s");
    assert_eq!(rows(&run(&mut other, "SELECT calls()")), ["3"]);
    run(&mut client, "ROLLBACK");
    assert_eq!(rows(&run(&mut client, "SELECT calls()")), ["4"]);
    run(&mut client, "SELECT sqlj.remove_jar('tried')");
    assert!(error(&client.query("SELECT calls()")).starts_with("46103"));
    assert!(error(&other.query("SELECT calls()")).starts_with("46103"));
    let missing = client.query("SELECT sqlj.set_classpath('public', 'tried')");
    assert!(error(&missing).starts_with("46102"), "{missing:?}");
    // Only superusers make functions; others may call them.
    run(
        &mut client,
        "CREATE FUNCTION root(float8) RETURNS float8 LANGUAGE java IMMUTABLE STRICT AS 'java.lang.Math.sqrt';
         CREATE ROLE plain; GRANT CREATE ON SCHEMA public TO plain; SET ROLE plain",
    );
    let denied = client
        .query("CREATE FUNCTION f(float8) RETURNS float8 LANGUAGE java AS 'java.lang.Math.cbrt'");
    assert_eq!(error(&denied), "42501 permission denied for language java");
    assert!(
        error(&client.query("SELECT sqlj.install_jar('\\x00'::bytea, 'x')")).starts_with("42501")
    );
    assert_eq!(rows(&run(&mut client, "SELECT root(16)")), ["4"]);
    run(&mut client, "RESET ROLE");
    assert!(error(&client.query("DROP EXTENSION java")).starts_with("2BP01"));
    run(&mut client, "SET client_min_messages = error; DROP EXTENSION java CASCADE");
    assert!(error(&client.query("SELECT root(16)")).starts_with("42883"));
    let gone = client
        .query("CREATE FUNCTION f(float8) RETURNS float8 LANGUAGE java AS 'java.lang.Math.cbrt'");
    assert!(error(&gone).starts_with("42704"), "{gone:?}");
    assert!(server.stop());
}

#[test]
fn exceptions_are_errors_and_hurt_nobody() {
    let Some((_dir, server, mut client)) = start("java-throws", &["java_heap_size=64MB"]) else {
        return;
    };
    for (heading, method) in [
        ("fail(text) RETURNS int", "fail"),
        ("raise(text) RETURNS int", "raise"),
        ("deep(int) RETURNS int", "deep"),
        ("hog() RETURNS int", "hog"),
        ("exit() RETURNS void", "exit"),
        ("fine(int) RETURNS int", "same(int)"),
    ] {
        make_java(&mut client, heading, method);
    }
    for (call, said) in [
        ("fail('oh')", "38000 java.lang.IllegalStateException: oh"),
        ("raise('22012')", "22012 own words"),
        ("raise(NULL)", "38000 own words"),
        ("deep(0)", "54001"),
        ("hog()", "53200"),
    ] {
        let lines = client.query(&format!("SELECT {call}"));
        assert!(error(&lines).starts_with(said), "{call}: {lines:?}");
        assert_eq!(rows(&run(&mut client, "SELECT fine(7)")), ["7"], "after {call}");
    }
    let trace = context_of(&mut client, "SELECT fail(''oh'')");
    assert!(trace.starts_with("Java tried.Try.fail (Try.java:"), "{trace}");
    // Java code can't end the server.
    run(&mut client, "SET statement_timeout = '2s'");
    let ended = client.query("SELECT exit()");
    assert!(error(&ended).starts_with("38000") || error(&ended).starts_with("57014"), "{ended:?}");
    run(&mut client, "RESET statement_timeout");
    assert_eq!(rows(&run(&mut client, "SELECT fine(7)")), ["7"]);
    fail_often(server.port, "fail('x')");
    assert_eq!(rows(&run(&mut client, "SELECT fine(7)")), ["7"]);
    assert!(server.stop());
}

#[test]
fn interrupts_end_calls() {
    let settings = ["java_max_threads=4", "java_interrupt_timeout=50ms"];
    let Some((_dir, server, mut client)) = start("java-ends", &settings) else { return };
    for (heading, method) in [
        ("forever() RETURNS void", "forever"),
        ("sleep(int) RETURNS int", "sleep"),
        ("ask(text) RETURNS text", "ask"),
        ("fine(int) RETURNS int", "same(int)"),
    ] {
        make_java(&mut client, heading, method);
    }
    // One that waits, one that waits for the server, and one that hears nothing.
    run(&mut client, "SET statement_timeout = '200ms'");
    for call in ["sleep(100000)", "ask('SELECT pg_sleep(100)')", "forever()"] {
        let ended = client.query(&format!("SELECT {call}"));
        assert!(error(&ended).starts_with("57014"), "{call}: {ended:?}");
        assert_eq!(rows(&run(&mut client, "SELECT fine(7)")), ["7"], "after {call}");
    }
    run(&mut client, "RESET statement_timeout");
    // More calls than threads: they wait, and are seen to.
    let mut sleepers: Vec<Raw> = (0..8).map(|_| Raw::connect(server.port)).collect();
    for client in &mut sleepers {
        client.send(&raw::query("SELECT sleep(100000)"));
    }
    let mut watcher = Client::connect(server.port).expect("a connection");
    let waiting =
        |event: &str| format!("SELECT count(*) FROM pg_stat_activity WHERE wait_event = '{event}'");
    watcher.await_one(&waiting("JavaCall"), "4");
    watcher.await_one(&waiting("JavaThread"), "4");
    let cancel = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'SELECT sleep%'";
    assert_eq!(watcher.one(cancel), "8");
    for client in &mut sleepers {
        let ended = client.until(|line| line.starts_with("Z "));
        assert!(error(&ended).starts_with("57014"), "{ended:?}");
    }
    assert_eq!(rows(&run(&mut client, "SELECT fine(7)")), ["7"]);
    // A role may leave as many threads that hear nothing as the limit; they are shown.
    run(&mut client, "CREATE ROLE careless; SET ROLE careless; SET statement_timeout = '100ms'");
    for _ in 0..4 {
        assert!(error(&client.query("SELECT forever()")).starts_with("57014"));
    }
    run(&mut client, "RESET statement_timeout");
    let full = client.query("SELECT fine(7)");
    assert!(error(&full).starts_with("53400"), "{full:?}");
    let left = "SELECT count(*) FROM pg_java_threads WHERE state = 'abandoned' AND usesysid = 'careless'::regrole";
    watcher.await_one(left, "4");
    // Others have all of the threads.
    let mut late: Vec<Raw> = (0..8).map(|_| Raw::connect(server.port)).collect();
    for client in &mut late {
        client.send(&raw::query("SELECT sleep(0)"));
    }
    for client in &mut late {
        rows(&client.until(|line| line.starts_with("Z ")));
    }
    assert!(server.stop());
}

/// The blocks of a language in the guide's part about Java.
fn guide(language: &str) -> Vec<String> {
    let page = std::fs::read_to_string(root().join("docs/guide/languages.md")).expect("the guide");
    let part = page.split("\n## Java\n").nth(1).expect("a part about Java");
    let (mut blocks, mut open) = (Vec::new(), None);
    for line in part.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(word), None) => open = Some((word == language, String::new())),
            (Some(_), Some((wanted, text))) => {
                if *wanted {
                    blocks.push(std::mem::take(text));
                }
                open = None;
            }
            (None, Some((_, text))) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => {}
        }
    }
    blocks
}

#[test]
fn the_guides_example_works() {
    let dir = TempDir::new("java-guide");
    let source = dir.path().join("Rates.java");
    std::fs::write(&source, guide("java").concat()).expect("the folder is writable");
    let Some(jar) = jar(dir.path(), &[source]) else { return };
    let server = Server::start(&dir.path().join("data"), &["workers=2"]);
    // The page ends by dropping what all its parts made.
    let blocks = guide("sql").into_iter().filter(|block| !block.starts_with("DROP "));
    let script =
        blocks.collect::<String>().replace("/path/to/shop.jar", &jar.display().to_string());
    let (last, before) = script.trim_end().rsplit_once('\n').map(|(b, l)| (l, b)).expect("lines");
    let mut client = Raw::connect(server.port);
    let made = client.query(before);
    if error(&made).starts_with("58P01") {
        eprintln!("left out: {}", error(&made));
        return;
    }
    assert_eq!(error(&made), "no error");
    assert_eq!(rows(&run(&mut client, last)), ["10.00"]);
    assert!(server.stop());
}

#[test]
fn the_examples_work() {
    let dir = TempDir::new("java-examples");
    let sources = ["Words.java", "Audit.java"].map(|name| root().join("examples/java").join(name));
    let Some(jar) = jar(dir.path(), &sources) else { return };
    let server = Server::start(&dir.path().join("data"), &["workers=2"]);
    let mut client = Raw::connect(server.port);
    let page = std::fs::read_to_string(root().join("examples/java/README.md")).expect("the page");
    let block = page.split("```sql\n").nth(1).and_then(|rest| rest.split("```").next());
    let path = "/path/to/target/examples/java/words.jar";
    let script = block.expect("a block").replace(path, &jar.display().to_string());
    let made = client.query(&script);
    if error(&made).starts_with("58P01") {
        eprintln!("left out: {}", error(&made));
        return;
    }
    assert!(made.contains(&"D to|2".to_owned()), "{made:?}");
    assert_eq!(rows(&run(&mut client, "SELECT seen('x'), seen('x')")), ["1|2"]);
    run(
        &mut client,
        "CREATE TABLE log (what text, tab text, id int); CREATE TABLE t (id int);
         CREATE TRIGGER a AFTER INSERT OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION changed('log');
         INSERT INTO t VALUES (7); DELETE FROM t",
    );
    assert_eq!(rows(&run(&mut client, "TABLE log")), ["insert|t|7", "delete|t|7"]);
    assert!(server.stop());
}

/// Threads of a process.
fn threads(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
}

#[test]
fn a_thousand_sessions_share_one_jvm() {
    const SESSIONS: usize = 1000;
    let settings = [
        "max_connections=1100",
        "java_heap_size=64MB",
        "java_max_threads=8",
        "java_interrupt_timeout=100ms",
    ];
    let Some((_dir, server, mut client)) = start("java-many", &settings) else { return };
    for (heading, method) in [
        ("fine(int) RETURNS int", "same(int)"),
        ("fail(text) RETURNS int", "fail"),
        ("sleep(int) RETURNS int", "sleep"),
        ("forever() RETURNS void", "forever"),
        ("ask(text) RETURNS text", "ask"),
    ] {
        make_java(&mut client, heading, method);
    }
    run(&mut client, "SELECT fine(7), ask('SELECT 7')");
    let mut watcher = Client::connect(server.port).expect("a connection");
    drop(client);
    let before = await_quiet(&server, &mut watcher, 0);
    let mut sessions: Vec<Raw> = (0..SESSIONS).map(|_| Raw::connect(server.port)).collect();
    for session in &mut sessions {
        run(session, "SELECT 1");
    }
    let resting = resident_kib(server.pid());
    for (n, session) in sessions.iter_mut().enumerate() {
        let text = ["SELECT fine(7)", "SELECT ask('SELECT 7')", "SELECT fail('x')"][n % 3];
        session.send(&raw::query(text));
    }
    for (n, session) in sessions.iter_mut().enumerate() {
        let lines = session.until(|l| l.starts_with("Z "));
        match n % 3 {
            2 => assert!(error(&lines).starts_with("38000"), "{lines:?}"),
            _ => assert_eq!(rows(&lines), ["7"]),
        }
    }
    // Memory of a session for having called, the stacks that it waited on included until they are given back.
    let most = resting + 32 * SESSIONS as i64;
    let called = await_resident_kib(&server, most);
    println!("{} KiB a session", (called - resting) as f64 / SESSIONS as f64);
    assert!(called <= most, "{resting} KiB became {called}");
    // Some sleep, some wait for a thread, some hear nothing; others go on as soon as there is a thread.
    for (n, session) in sessions.iter_mut().enumerate() {
        session.send(&raw::query(if n < 3 { "SELECT forever()" } else { "SELECT sleep(100000)" }));
    }
    let active = "FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid()
                  AND backend_type = 'client backend'";
    watcher.await_one(&format!("SELECT count(*) {active}"), &SESSIONS.to_string());
    watcher
        .query(&format!("SELECT count(pg_terminate_backend(pid)) {active} AND pid % 2 = 0"))
        .expect("kills");
    watcher.query(&format!("SELECT count(pg_cancel_backend(pid)) {active}")).expect("cancels");
    for session in &mut sessions {
        let lines = session.until(|l| l.starts_with("Z "));
        assert!(lines.iter().any(|l| l.contains("57014") || l.contains("57P01")), "{lines:?}");
    }
    let mut client = Raw::connect(server.port);
    assert_eq!(rows(&run(&mut client, "SELECT fine(7)")), ["7"]);
    drop(client);
    drop(sessions);
    await_same(&server, &mut watcher, before);
    // The pool's threads and those that hear nothing; the JVM's own are as many as it likes.
    assert!(threads(server.pid()) < 100, "{} threads", threads(server.pid()));
    assert!(server.stop());
}

#[test]
fn java_and_wasm_share_signals() {
    let Some((dir, server, mut client)) = start("java-signals", &[]) else { return };
    make_java(&mut client, "size(text) RETURNS int", "size");
    make_java(&mut client, "deep(int) RETURNS int", "deep");
    make_java(&mut client, "ask(text) RETURNS text", "ask");
    let java = |client: &mut Raw| {
        // The JVM makes an exception of the fault once its compiler has left out the check.
        let lines = client.query(
            "DO $$ BEGIN FOR n IN 1..3 LOOP BEGIN PERFORM size(NULL); EXCEPTION WHEN OTHERS THEN
               IF SQLSTATE <> '38000' THEN RAISE; END IF; END; END LOOP; END $$",
        );
        assert!(!lines.iter().any(|l| l.starts_with("E ")), "{lines:?}");
        assert!(error(&client.query("SELECT deep(0)")).starts_with("54001"));
    };
    let wasm = |client: &mut Raw| {
        for (call, code) in [
            ("trap()", "38000"),
            ("divide(0)", "38000"),
            ("outside()", "38000"),
            ("deep_wasm()", "54001"),
        ] {
            let lines = client.query(&format!("SELECT {call}"));
            assert!(error(&lines).starts_with(code), "{call}: {lines:?}");
        }
    };
    java(&mut client);
    make_bad_wasm(&mut client);
    for _ in 0..3 {
        wasm(&mut client);
        java(&mut client);
    }
    // One inside the other.
    let inside = client.query("SELECT ask('SELECT divide(0)')");
    assert!(error(&inside).starts_with("38000"), "{inside:?}");
    assert!(server.stop());
    // The other way round: wasmtime first, in a server that finds its functions.
    let server = Server::start(&dir.path().join("data"), &["workers=2"]);
    let mut client = Raw::connect(server.port);
    for _ in 0..3 {
        wasm(&mut client);
        java(&mut client);
    }
    assert!(server.stop());
}
