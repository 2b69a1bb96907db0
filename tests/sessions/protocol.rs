//! The protocol, byte by byte: good messages in every order and cut, and bad ones.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::support::client::Client;
use crate::support::raw::{
    Raw, bind, close, describe, execute, message, parse, query, startup, sync,
};
use crate::support::{Server, TempDir};

/// A server that the tests share while one of them runs, and the folder that goes after it.
struct Shared {
    server: Server,
    _dir: TempDir,
}

fn shared() -> Arc<Shared> {
    static SHARED: Mutex<(Weak<Shared>, u32)> = Mutex::new((Weak::new(), 0));
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(running) = shared.0.upgrade() {
        return running;
    }
    shared.1 += 1;
    let dir = TempDir::new(&format!("protocol-{}", shared.1));
    let server = Server::start(&dir.path().join("data"), &[]);
    let running = Arc::new(Shared { server, _dir: dir });
    shared.0 = Arc::downgrade(&running);
    running
}

/// A connection that keeps the shared server running.
struct Guest {
    raw: Raw,
    shared: Arc<Shared>,
}

impl std::ops::Deref for Guest {
    type Target = Raw;
    fn deref(&self) -> &Raw {
        &self.raw
    }
}

impl std::ops::DerefMut for Guest {
    fn deref_mut(&mut self) -> &mut Raw {
        &mut self.raw
    }
}

fn connect() -> Guest {
    let shared = shared();
    Guest { raw: Raw::connect(shared.server.port), shared }
}

fn open() -> Guest {
    let shared = shared();
    Guest { raw: Raw::open(shared.server.port), shared }
}

/// Fatal 08P01, and the connection ends.
fn assert_violation(lines: &[String]) {
    let last: Vec<&str> = lines.iter().rev().take(2).map(String::as_str).collect();
    assert_eq!(last[0], "EOF", "{lines:?}");
    assert!(last[1].starts_with("E FATAL 08P01"), "{lines:?}");
}

#[test]
fn a_session_begins_with_parameters_and_a_key() {
    let mut raw = open();
    let lines = raw.talk(&startup(
        196_608,
        &[
            ("user", "postgres"),
            ("database", "postgres"),
            ("application_name", "app"),
            ("options", "-c work_mem=2MB"),
        ],
    ));
    for want in [
        "R 0",
        "S application_name=app",
        "S client_encoding=UTF8",
        "S server_encoding=UTF8",
        "S DateStyle=ISO, MDY",
        "S integer_datetimes=on",
        "S is_superuser=on",
        "S session_authorization=postgres",
        "S standard_conforming_strings=on",
        "K",
        "Z I",
    ] {
        assert!(lines.iter().any(|l| l == want), "{want} is missing in {lines:?}");
    }
    assert_eq!(raw.query("SHOW work_mem"), ["T work_mem:25", "D 2MB", "C SHOW", "Z I"]);
    let lines = raw.query("SET application_name = 'b'");
    assert_eq!(lines, ["C SET", "S application_name=b", "Z I"]);
}

#[test]
fn requests_before_the_session_get_one_byte() {
    let mut raw = open();
    for code in [80_877_103u32, 80_877_104] {
        let mut packet = 8u32.to_be_bytes().to_vec();
        packet.extend(code.to_be_bytes());
        raw.send(&packet);
        let mut byte = [0];
        std::io::Read::read_exact(&mut raw.stream, &mut byte).unwrap();
        assert_eq!(byte, *b"N");
    }
    let lines = raw.talk(&startup(196_608, &[("user", "postgres"), ("database", "postgres")]));
    assert_eq!(lines.last().unwrap(), "Z I");
}

#[test]
fn newer_minor_versions_are_negotiated() {
    let mut raw = open();
    let pairs = [("user", "postgres"), ("database", "postgres"), ("_pq_.x", "1")];
    let lines = raw.talk(&startup(196_610, &pairs));
    assert_eq!(lines[0], "v 196610 1");
    assert_eq!(lines.last().unwrap(), "Z I");
    let begin = |version: u32| {
        let mut raw = open();
        let lines = raw.talk(&startup(version, &pairs[..2]));
        (lines[0].clone(), raw)
    };
    for (version, first, length) in [
        (196_608, "R 0", 4),
        (196_609, "R 0", 4),
        (196_610, "R 0", 32),
        (206_607, "v 196610 0", 32),
    ] {
        let (line, raw) = begin(version);
        assert_eq!((&*line, raw.secret.len()), (first, length), "{version}");
    }
}

#[test]
fn long_secrets_are_asked_for_whole() {
    let mut raw = open();
    raw.talk(&startup(196_610, &[("user", "postgres"), ("database", "postgres")]));
    let pid = raw.key.0;
    let cancel = |secret: &[u8]| {
        let mut packet = (12 + secret.len() as u32).to_be_bytes().to_vec();
        packet.extend(80_877_102_u32.to_be_bytes());
        packet.extend(pid.to_be_bytes());
        packet.extend(secret);
        let mut other = open();
        other.send(&packet);
        assert_eq!(other.line(), "EOF");
    };
    let (right, mut wrong) = (raw.secret.clone(), raw.secret.clone());
    wrong[31] ^= 1;
    let mut watcher = connect();
    let sleeps = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    raw.stream.write_all(&query("SELECT pg_sleep(600)")).unwrap();
    while watcher.query(sleeps)[1] != "D 1" {}
    for secret in [&right[..4], &right[..31], &wrong, &[right.clone(), vec![0]].concat()] {
        cancel(secret);
    }
    // Each connection was over before the next began: nothing is on its way.
    assert_eq!(watcher.query(sleeps)[1], "D 1");
    cancel(&right);
    let lines = raw.until(|l| l.starts_with("Z "));
    assert!(lines.iter().any(|l| l.starts_with("E ERROR 57014")), "{lines:?}");
}

#[test]
fn bad_beginnings_end_the_connection() {
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0, 0, 0, 1],
        &[0, 0, 0x7f, 0xff, 0, 3, 0, 0],
        &startup(196_608, &[("user", "postgres")])[..13],
    ] {
        let mut raw = open();
        raw.send(bytes);
        if bytes.len() == 13 {
            // Cut short: the server waits for the rest, and nobody is hurt when none comes.
            raw.stream.shutdown(std::net::Shutdown::Write).unwrap();
            assert_eq!(raw.line(), "EOF");
        } else {
            assert_violation(&raw.until(|l| l == "EOF"));
        }
    }
    let mut raw = open();
    let lines = raw.talk(&startup(196_608, &[("user", "postgres"), ("database", "nowhere")]));
    assert_eq!(lines, ["E FATAL 3D000 database \"nowhere\" does not exist", "EOF"]);
    let mut raw = open();
    let lines =
        raw.talk(&startup(196_608, &[("user", "postgres"), ("database", "postgres"), ("x", "1")]));
    assert!(lines[0].starts_with("E FATAL 42704"), "{lines:?}");
    let mut raw = open();
    let lines = raw.talk(&startup(131_072, &[]));
    assert!(lines[0].starts_with("E FATAL 0A000"), "{lines:?}");
}

#[test]
fn malformed_messages_end_their_connection_and_no_other() {
    let mut other = connect();
    assert_eq!(other.query("BEGIN"), ["C BEGIN", "Z T"]);
    let cases: [&[u8]; 6] = [
        b"!\0\0\0\x04",
        b"Q\0\0\0\x03",
        b"Q\xff\xff\xff\xff",
        b"Q\x7f\xff\xff\xff",
        b"S\0\0\x28\0",
        &message(b'p', b"password\0"),
    ];
    for bytes in cases {
        let mut raw = connect();
        raw.send(bytes);
        assert_violation(&raw.until(|l| l == "EOF"));
    }
    assert_eq!(other.query("COMMIT"), ["C COMMIT", "Z I"]);
}

#[test]
fn a_message_whose_content_is_malformed_fails_alone() {
    let mut raw = connect();
    for (tag, body) in [(b'Q', &b"no zero"[..]), (b'Q', b"a\0b\0"), (b'S', b"x")] {
        let lines = raw.talk(&message(tag, body));
        assert!(lines[0].starts_with("E ERROR 08P01"), "{lines:?}");
        assert_eq!(lines[1..], ["Z I"], "{lines:?}");
    }
    let cases: [(u8, &[u8]); 7] = [
        (b'P', b"s\0SELECT 1\0\0\x02\0\0\0\x17"),
        (b'B', b"\0\0\0\x01\0\x07\0\0\0\0"),
        (b'B', b"\0\0\0\0\0\x01\0\0\0\x09x"),
        (b'D', b"Xname\0"),
        (b'E', b"\0\0\0"),
        (b'C', b"S"),
        (b'H', b"x"),
    ];
    for (tag, body) in cases {
        // No Sync: the error comes all the same, and nothing after it before the Sync.
        let lines = raw.talk_until(&message(tag, body), "E ");
        assert!(lines.iter().any(|l| l.starts_with("E ERROR 08P01")), "{}: {lines:?}", tag as char);
        let more = [parse("", "SELECT 1", &[]), message(b'B', b"bad"), sync()].concat();
        assert_eq!(raw.talk(&more), ["Z I"]);
    }
    assert_eq!(raw.query("SELECT 1 AS a"), ["T a:23", "D 1", "C SELECT 1", "Z I"]);
}

#[test]
fn an_error_is_sent_at_once() {
    let mut raw = connect();
    let flush = message(b'H', b"");
    // As asyncpg prepares: Parse, Describe, Flush, and then it waits.
    let prepare = [parse("s", "SELECT nosuch", &[]), describe('S', "s"), flush.clone()].concat();
    let lines = raw.talk_until(&prepare, "E ");
    assert!(lines[0].starts_with("E ERROR 42703"), "{lines:?}");
    assert_eq!(raw.talk(&sync()), ["Z I"]);
    // What went well before comes with it, without any Flush.
    let run = [
        parse("", "SELECT 1 / n FROM (VALUES (1), (0)) v (n)", &[]),
        bind("", "", &[], false),
        execute("", 0),
    ];
    let lines = raw.talk_until(&run.concat(), "E ");
    assert_eq!(lines[..2], ["1", "2"], "{lines:?}");
    assert!(lines[lines.len() - 1].starts_with("E ERROR 22012"), "{lines:?}");
    let ignored = [flush, query("SELECT 'ignored'"), sync()].concat();
    assert_eq!(raw.talk(&ignored), ["Z I"]);
}

#[test]
fn rows_before_an_error_come_before_it() {
    let mut raw = connect();
    let mut answer = |sql: &str| {
        let lines = raw.query(sql);
        let rows = lines.iter().filter(|l| l.starts_with("D ")).count();
        let code = lines.iter().find(|l| l.starts_with("E ")).and_then(|l| l.split(' ').nth(2));
        (rows, code.unwrap_or_default().to_owned())
    };
    let failed = |rows: usize| (rows, "22012".to_owned());
    assert_eq!(answer("SELECT 10 / (10 - n) FROM generate_series(1, 20) n"), failed(9));
    assert_eq!(answer("SELECT 10 / (2000 - n) FROM generate_series(1, 5000) n"), failed(1999));
    assert_eq!(
        answer(
            "SELECT 1 FROM (SELECT generate_series(1, 20) AS n OFFSET 0) s WHERE 1 / (10 - n) < 2"
        ),
        failed(9)
    );
    assert_eq!(
        answer("SELECT generate_series(1, 2), 10 / (3 - n) FROM generate_series(1, 9) n"),
        failed(4)
    );
    // Conditions of scans, over a table and its index.
    assert_eq!(
        answer("SELECT n FROM generate_series(1, 20) n WHERE 10 / (10 - n) > -100"),
        failed(9)
    );
    answer("CREATE TABLE numbers AS SELECT n, n AS m FROM generate_series(1, 200) n");
    assert_eq!(answer("SELECT * FROM numbers WHERE 10 / (150 - n) >= 0 AND m > 0"), failed(149));
    answer("CREATE INDEX ON numbers (n); ANALYZE numbers; SET enable_seqscan = off");
    let by_index = "SELECT * FROM numbers WHERE n BETWEEN 5 AND 180 AND 10 / (150 - m) >= 0";
    assert_eq!(answer(by_index), failed(145));
    assert_eq!(answer(&by_index.replace("- m", "- n").replace('*', "n")), failed(145));
    assert_eq!(answer(&format!("SET enable_indexscan = off; {by_index}")), failed(145));
    answer("RESET ALL");
    // A sample, joins of each kind, and tables that are computed.
    let sample = "SELECT n FROM numbers TABLESAMPLE system (100) WHERE 10 / (150 - n) >= 0";
    assert_eq!(answer(sample), failed(149));
    for (on, off) in [
        ("hashjoin", ["mergejoin", "nestloop"]),
        ("mergejoin", ["hashjoin", "nestloop"]),
        ("nestloop", ["hashjoin", "mergejoin"]),
    ] {
        answer(&format!("RESET ALL; SET enable_{} = off; SET enable_{} = off", off[0], off[1]));
        let condition = "a.n = b.n AND 10 / (150 - a.n + b.m - b.n) > -100 - b.n";
        for join in ["JOIN", "LEFT JOIN"] {
            let join = format!("SELECT a.n FROM numbers a {join} numbers b ON {condition}");
            assert_eq!(answer(&join), failed(149), "{on}: {join}");
        }
        let exists = format!(
            "SELECT n FROM numbers a WHERE EXISTS (SELECT FROM numbers b WHERE {condition})"
        );
        assert_eq!(answer(&exists), failed(149), "{on}");
    }
    answer("RESET ALL");
    let computed = answer("SELECT oid FROM pg_class WHERE 1 / (oid::int - 1259) > -10");
    assert!(computed.0 > 0 && computed.1 == "22012", "{computed:?}");
    answer("DROP TABLE numbers");
    // Enough rows, no error; and what aggregates all of them shows none.
    let enough = "SELECT 10 / (10 - n) FROM generate_series(1, 20) n LIMIT 5";
    assert_eq!(answer(enough), (5, String::new()));
    assert_eq!(answer("SELECT count(10 / (10 - n)) FROM generate_series(1, 20) n"), failed(0));
    assert_eq!(answer("SELECT 10 / (1 - n) FROM generate_series(1, 20) n"), failed(0));
}

#[test]
fn a_message_may_come_byte_by_byte() {
    let mut raw = connect();
    let mut bytes = query("SELECT 1 AS a");
    bytes.extend(parse("", "SELECT $1 AS b", &[23]));
    bytes.extend(bind("", "", &[Some("2")], false));
    bytes.extend(execute("", 0));
    bytes.extend(sync());
    for byte in bytes {
        raw.stream.write_all(&[byte]).unwrap();
    }
    let lines = raw.until(|l| l == "Z I");
    assert_eq!(lines, ["T a:23", "D 1", "C SELECT 1", "Z I"]);
    let lines = raw.until(|l| l == "Z I");
    assert_eq!(lines, ["1", "2", "D 2", "C SELECT 1", "Z I"]);
}

#[test]
fn many_messages_may_come_at_once() {
    let mut raw = connect();
    raw.query("CREATE TABLE pipelined (a int)");
    let mut bytes = parse("s", "INSERT INTO pipelined VALUES ($1)", &[23]);
    for i in 0..500 {
        bytes.extend(bind("", "s", &[Some(&i.to_string())], false));
        bytes.extend(execute("", 0));
        bytes.extend(sync());
    }
    bytes.extend(query("SELECT count(*), sum(a) FROM pipelined"));
    raw.send(&bytes);
    for _ in 0..500 {
        let lines = raw.until(|l| l == "Z I");
        assert!(lines.contains(&"C INSERT 0 1".to_owned()), "{lines:?}");
    }
    let lines = raw.until(|l| l == "Z I");
    assert_eq!(lines[1], "D 500|124750");
}

#[test]
fn a_long_statement_and_a_long_result_pass() {
    let mut raw = connect();
    let text = "x".repeat(3_000_000);
    let lines = raw.query(&format!("SELECT length('{text}') AS n"));
    assert_eq!(lines, ["T n:23", "D 3000000", "C SELECT 1", "Z I"]);
    let lines = raw.query("SELECT repeat('y', 100000) FROM generate_series(1, 100)");
    assert_eq!(lines.iter().filter(|l| l.len() == 100_002).count(), 100);
}

#[test]
fn statements_of_one_string_are_one_transaction() {
    let mut raw = connect();
    raw.query("CREATE TABLE together (a int PRIMARY KEY)");
    let lines = raw.query("INSERT INTO together VALUES (1); INSERT INTO together VALUES (1)");
    assert_eq!(lines[0], "C INSERT 0 1");
    assert!(lines[1].starts_with("E ERROR 23505"), "{lines:?}");
    assert_eq!(lines[2], "Z I");
    assert_eq!(raw.query("SELECT count(*) FROM together")[1], "D 0");
    let lines =
        raw.query("INSERT INTO together VALUES (1); COMMIT; INSERT INTO together VALUES (1)");
    assert_eq!(lines[1], "N WARNING 25P01 there is no transaction in progress");
    assert_eq!(raw.query("SELECT count(*) FROM together")[1], "D 1");
    let lines =
        raw.query("INSERT INTO together VALUES (2); BEGIN; INSERT INTO together VALUES (3)");
    assert_eq!(lines.last().unwrap(), "Z T");
    raw.query("ROLLBACK");
    assert_eq!(raw.query("SELECT count(*) FROM together")[1], "D 1");
    assert_eq!(raw.query(""), ["I", "Z I"]);
    assert_eq!(raw.query(" ; "), ["I", "Z I"]);
}

#[test]
fn a_syntax_error_anywhere_runs_nothing() {
    let mut raw = connect();
    let lines = raw.query("CREATE TABLE nothing (a int); SELEC 1");
    assert!(lines[0].starts_with("E ERROR 42601"), "{lines:?}");
    assert!(raw.query("SELECT * FROM nothing")[0].starts_with("E ERROR 42P01"));
}

#[test]
fn a_failed_block_takes_only_its_end() {
    let mut raw = connect();
    assert_eq!(raw.query("BEGIN"), ["C BEGIN", "Z T"]);
    assert_eq!(
        raw.query("BEGIN"),
        ["N WARNING 25001 there is already a transaction in progress", "C BEGIN", "Z T"]
    );
    assert_eq!(raw.query("SELECT 1/0").last().unwrap(), "Z E");
    let lines = raw.query("SELECT 1");
    assert!(lines[0].starts_with("E ERROR 25P02"), "{lines:?}");
    assert_eq!(raw.query("COMMIT"), ["C ROLLBACK", "Z I"]);
    raw.query("BEGIN; SAVEPOINT a");
    assert_eq!(raw.query("SELECT 1/0").last().unwrap(), "Z E");
    assert_eq!(raw.query("ROLLBACK TO a"), ["C ROLLBACK", "Z T"]);
    assert_eq!(raw.query("SELECT 1 AS a"), ["T a:23", "D 1", "C SELECT 1", "Z T"]);
    assert_eq!(raw.query("RELEASE a"), ["C RELEASE", "Z T"]);
    assert!(raw.query("ROLLBACK TO a")[0].starts_with("E ERROR 3B001"));
    assert_eq!(raw.query("ROLLBACK"), ["C ROLLBACK", "Z I"]);
    assert!(raw.query("SAVEPOINT a")[0].starts_with("E ERROR 25P01"));
}

#[test]
fn an_error_skips_to_the_sync() {
    let mut raw = connect();
    let mut bytes = parse("", "SELECT 1/0", &[]);
    bytes.extend(bind("", "", &[], false));
    bytes.extend(execute("", 0));
    bytes.extend(query("SELECT 'ignored'"));
    bytes.extend(parse("", "SELECT 'ignored'", &[]));
    bytes.extend(sync());
    let lines = raw.talk(&bytes);
    let kept: Vec<&str> = lines.iter().map(|l| &l[..1]).collect();
    assert!(kept == ["1", "2", "E", "Z"] || kept == ["1", "E", "Z"], "{lines:?}");
    assert_eq!(raw.query("SELECT 1 AS a"), ["T a:23", "D 1", "C SELECT 1", "Z I"]);
}

#[test]
fn things_that_are_not_there_have_their_codes() {
    let mut raw = connect();
    let mut code = |bytes: Vec<u8>| {
        let mut bytes = bytes;
        bytes.extend(sync());
        let lines = raw.talk(&bytes);
        let error = lines.iter().find(|l| l.starts_with("E ")).cloned().unwrap_or_default();
        error.split(' ').nth(2).unwrap_or_default().to_owned()
    };
    assert_eq!(code(bind("", "missing", &[], false)), "26000");
    assert_eq!(code(describe('S', "missing")), "26000");
    assert_eq!(code(describe('P', "missing")), "34000");
    assert_eq!(code(execute("missing", 0)), "34000");
    assert_eq!(code(close('S', "missing")), "");
    let twice = [parse("twice", "SELECT 1", &[]), parse("twice", "SELECT 1", &[])].concat();
    assert_eq!(code(twice), "42P05");
    assert_eq!(code(bind("", "twice", &[Some("1")], false)), "08P01");
    assert_eq!(code(parse("", "SELECT 1; SELECT 2", &[])), "42601");
    assert_eq!(code(parse("", "SELECT '\u{0}", &[])), "08P01");
}

#[test]
fn describe_tells_parameters_and_columns() {
    let mut raw = connect();
    let mut bytes = parse("", "SELECT $1::int4 + 1 AS a, $2::text AS b", &[]);
    bytes.extend(describe('S', ""));
    bytes.extend(bind("", "", &[Some("41"), None], true));
    bytes.extend(describe('P', ""));
    bytes.extend(execute("", 0));
    bytes.extend(sync());
    let want =
        ["1", "t 23,25", "T a:23,b:25", "2", "T a:23,b:25", "D \\0\\0\\0*|NULL", "C SELECT 1"];
    assert_eq!(raw.talk(&bytes)[..7], want);
    let bytes = [parse("", "BEGIN", &[]), describe('S', ""), sync()].concat();
    assert_eq!(raw.talk(&bytes), ["1", "t ", "n", "Z I"]);
}

#[test]
fn portals_stop_at_their_limit_and_go_on() {
    let mut raw = connect();
    let bytes = [
        query("BEGIN"),
        parse("", "SELECT g FROM generate_series(1, 5) g", &[]),
        bind("p", "", &[], false),
        execute("p", 2),
        execute("p", 2),
        execute("p", 2),
        sync(),
    ]
    .concat();
    raw.send(&bytes);
    assert_eq!(raw.until(|l| l == "Z T"), ["C BEGIN", "Z T"]);
    let want = ["1", "2", "D 1", "D 2", "s", "D 3", "D 4", "s", "D 5", "C SELECT 1", "Z T"];
    assert_eq!(raw.until(|l| l == "Z T"), want);
    assert_eq!(raw.talk(&[close('P', "p"), sync()].concat()), ["3", "Z T"]);
    let lines = raw.talk(&[execute("p", 0), sync()].concat());
    assert!(lines[0].starts_with("E ERROR 34000"), "{lines:?}");
    raw.query("ROLLBACK");
}

#[test]
fn portals_of_bind_are_cursors_to_sql() {
    let mut raw = connect();
    raw.query("BEGIN");
    let series = "SELECT g FROM generate_series(1, 20) g";
    let start = [parse("", series, &[]), bind("p", "", &[], true), sync()].concat();
    assert_eq!(raw.talk(&start), ["1", "2", "Z T"]);
    assert_eq!(raw.query("MOVE FORWARD 5 IN p"), ["C MOVE 5", "Z T"]);
    let next = [execute("p", 1), sync()].concat();
    assert_eq!(raw.talk(&next), ["D \\0\\0\\0\\u{6}", "s", "Z T"]);
    assert_eq!(raw.query("FETCH 1 FROM p"), ["T g:23", "D 7", "C FETCH 1", "Z T"]);
    assert_eq!(raw.talk(&next), ["D \\0\\0\\0\\u{8}", "s", "Z T"], "the format is the portal's");
    assert_eq!(raw.query("MOVE ABSOLUTE 18 IN p"), ["C MOVE 1", "Z T"]);
    raw.query("SELECT 1/0");
    let lines = raw.talk(&next);
    assert!(lines[0].starts_with("E ERROR 25P02"), "{lines:?}");
    raw.query("ROLLBACK");
}

#[test]
fn errors_tell_where_they_were_made() {
    let mut raw = connect();
    raw.query("CREATE TABLE placed (a int)");
    let lines = raw.talk(&[parse("placed", "SELECT * FROM placed", &[]), sync()].concat());
    assert_eq!(lines, ["1", "Z I"]);
    raw.query("ALTER TABLE placed ALTER a TYPE text");
    raw.talk(&[bind("", "placed", &[], false), execute("", 0), sync()].concat());
    // Drivers and Rails prepare anew when they see this name.
    assert_eq!(raw.origin, "execute.rs RevalidateCachedQuery");
}

#[test]
fn copy_goes_both_ways() {
    let mut raw = connect();
    raw.query("CREATE TABLE copied (a int, b text)");
    raw.send(&query("COPY copied FROM STDIN"));
    assert_eq!(raw.line(), "G 0 2");
    raw.send(&message(b'd', b"1\tone\n2\t"));
    raw.send(&message(b'd', b"\\N\n3\tthr"));
    raw.send(&[message(b'd', b"ee\n"), message(b'c', b""), query("SELECT 1 AS a")].concat());
    assert_eq!(raw.until(|l| l == "Z I"), ["C COPY 3", "Z I"]);
    assert_eq!(raw.until(|l| l == "Z I"), ["T a:23", "D 1", "C SELECT 1", "Z I"]);
    let lines = raw.query("COPY copied TO STDOUT");
    let data: String = lines.iter().filter_map(|l| l.strip_prefix("d ")).collect();
    assert_eq!(data, "1\\tone\\n2\\t\\\\N\\n3\\tthree\\n");
    assert_eq!(lines[0], "H 0 2");
    assert_eq!(lines[lines.len() - 3..], ["c", "C COPY 3", "Z I"]);
}

#[test]
fn a_copy_that_fails_leaves_nothing() {
    let mut raw = connect();
    raw.query("CREATE TABLE uncopied (a int)");
    raw.send(&query("COPY uncopied FROM STDIN"));
    assert_eq!(raw.line(), "G 0 1");
    raw.send(&[message(b'd', b"1\n2\n"), message(b'f', b"changed my mind\0")].concat());
    let lines = raw.until(|l| l == "Z I");
    assert_eq!(lines[0], "E ERROR 57014 COPY from stdin failed: changed my mind");
    raw.send(&query("COPY uncopied FROM STDIN"));
    assert_eq!(raw.line(), "G 0 1");
    raw.send(&[message(b'd', b"1\nx\n"), message(b'd', b"3\n"), message(b'c', b"")].concat());
    let lines = raw.until(|l| l == "Z I");
    assert!(lines[0].starts_with("E ERROR 22P02"), "{lines:?}");
    assert_eq!(raw.query("SELECT count(*) AS n FROM uncopied")[1], "D 0");
    raw.send(&query("COPY uncopied FROM STDIN"));
    assert_eq!(raw.line(), "G 0 1");
    raw.send(&query("SELECT 1"));
    assert_violation(&raw.until(|l| l == "EOF"));
}

#[test]
fn a_cancel_request_needs_the_secret() {
    let mut raw = connect();
    let shared = raw.shared.clone();
    let cancel = |pid: i32, secret: i32| {
        let mut packet = 16u32.to_be_bytes().to_vec();
        packet.extend(80_877_102u32.to_be_bytes());
        packet.extend(pid.to_be_bytes());
        packet.extend(secret.to_be_bytes());
        let mut other = Raw::open(shared.server.port);
        other.send(&packet);
        assert_eq!(other.line(), "EOF");
    };
    let (pid, secret) = raw.key;
    // Between statements it has no effect.
    cancel(pid, secret);
    raw.query("SET statement_timeout = '200ms'");
    raw.send(&query("SELECT pg_sleep(60)"));
    cancel(pid, secret.wrapping_add(1));
    let lines = raw.until(|l| l == "Z I");
    let timeout = "E ERROR 57014 canceling statement due to statement timeout";
    assert!(lines.contains(&timeout.to_owned()), "{lines:?}");
    raw.query("SET statement_timeout = 0");
    let mut watcher = connect();
    raw.send(&query("SELECT pg_sleep(60)"));
    let sleeping = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND wait_event = 'PgSleep'"
    );
    while watcher.query(&sleeping)[1] != "D 1" {}
    cancel(pid, secret);
    let lines = raw.until(|l| l == "Z I");
    let user = "E ERROR 57014 canceling statement due to user request";
    assert!(lines.contains(&user.to_owned()), "{lines:?}");
}

#[test]
fn a_session_can_be_ended_by_another() {
    let mut raw = connect();
    let mut other = connect();
    let (pid, _) = raw.key;
    assert_eq!(other.query(&format!("SELECT pg_terminate_backend({pid}) AS t"))[1], "D t");
    let lines = raw.until(|l| l == "EOF");
    assert_eq!(lines, ["E FATAL 57P01 terminating connection due to administrator command", "EOF"]);
}

#[test]
fn idle_sessions_end_when_their_time_is_up() {
    let mut raw = connect();
    raw.query("SET idle_in_transaction_session_timeout = '50ms'");
    raw.query("BEGIN");
    let lines = raw.until(|l| l == "EOF");
    assert!(lines[0].starts_with("E FATAL 25P03"), "{lines:?}");
    let mut raw = connect();
    raw.query("SET idle_session_timeout = '50ms'");
    let lines = raw.until(|l| l == "EOF");
    assert!(lines[0].starts_with("E FATAL 57P05"), "{lines:?}");
}

#[test]
fn a_client_that_goes_away_leaves_no_lock() {
    let mut raw = connect();
    raw.query("CREATE TABLE abandoned (a int)");
    raw.query("BEGIN; LOCK TABLE abandoned");
    let mut other = connect(); // the server ends with its last guest
    drop(raw);
    other.query("SET statement_timeout = '30s'");
    assert_eq!(other.query("SELECT count(*) AS n FROM abandoned")[1], "D 0");
}

#[test]
fn prepared_statements_survive_changes_of_their_tables() {
    let mut raw = connect();
    raw.query("CREATE TABLE changing (a int)");
    raw.query("INSERT INTO changing VALUES (1)");
    let run = [bind("", "s", &[], false), execute("", 0), sync()].concat();
    raw.talk(&[parse("s", "SELECT a FROM changing", &[]), sync()].concat());
    assert_eq!(raw.talk(&run), ["2", "D 1", "C SELECT 1", "Z I"]);
    raw.query("ALTER TABLE changing ADD COLUMN b int DEFAULT 5");
    assert_eq!(raw.talk(&run), ["2", "D 1", "C SELECT 1", "Z I"]);
    raw.talk(&[parse("all", "SELECT * FROM changing", &[]), sync()].concat());
    raw.query("ALTER TABLE changing ADD COLUMN c int");
    let run = [bind("", "all", &[], false), execute("", 0), sync()].concat();
    let lines = raw.talk(&run);
    assert_eq!(lines[0], "E ERROR 0A000 cached plan must not change result type");
}

#[test]
fn others_see_what_ran_last_whatever_became_of_it() {
    let (mut raw, mut other) = (connect(), connect());
    let pid = raw.query("SELECT pg_backend_pid()")[1][2..].to_owned();
    let ask = format!("SELECT query FROM pg_stat_activity WHERE pid = {pid}");
    let mut seen = || other.query(&ask)[1].clone();
    let long = format!("SELECT 4 -- {}", "é".repeat(1000));
    for (name, text) in [("a", "SELECT 1 AS a"), ("", "SELECT 2 AS b"), ("c", &*long)] {
        // Another is parsed in between, which others see, too, until this one runs.
        let parsed = [parse(name, text, &[]), parse("other", "SELECT 0", &[]), close('S', "other")];
        let run = [bind("", name, &[], false), execute("", 0), sync()];
        raw.send(&[parsed.concat(), run.concat()].concat());
        assert_eq!(raw.until(|l| l == "Z I").last().unwrap(), "Z I");
        let expected = format!("D {}", &text[..text.floor_char_boundary(1024)]);
        assert_eq!(seen(), expected);
        raw.send(&[close('S', name), sync()].concat());
        raw.until(|l| l == "Z I");
        assert_eq!(seen(), expected, "it is forgotten, and still what ran last");
    }
    raw.query("SELECT 3");
    assert_eq!(seen(), "D SELECT 3");
}

#[test]
fn sql_prepare_and_cursors() {
    let mut raw = connect();
    assert_eq!(raw.query("PREPARE q (int) AS SELECT $1 + 1 AS a"), ["C PREPARE", "Z I"]);
    assert_eq!(raw.query("EXECUTE q (41)"), ["T a:23", "D 42", "C SELECT 1", "Z I"]);
    assert_eq!(raw.query("DEALLOCATE q"), ["C DEALLOCATE", "Z I"]);
    assert!(raw.query("EXECUTE q (41)")[0].starts_with("E ERROR 26000"));
    raw.query("BEGIN");
    raw.query("DECLARE c CURSOR FOR SELECT g FROM generate_series(1, 3) g");
    assert_eq!(raw.query("FETCH 2 FROM c"), ["T g:23", "D 1", "D 2", "C FETCH 2", "Z T"]);
    assert_eq!(raw.query("MOVE 1 FROM c"), ["C MOVE 1", "Z T"]);
    assert_eq!(raw.query("FETCH ALL FROM c"), ["T g:23", "C FETCH 0", "Z T"]);
    assert_eq!(raw.query("CLOSE c"), ["C CLOSE CURSOR", "Z T"]);
    assert!(raw.query("FETCH c")[0].starts_with("E ERROR 34000"));
    raw.query("ROLLBACK");
}

#[test]
fn too_many_clients_are_told_so() {
    let dir = TempDir::new("crowded");
    let server = Server::start(&dir.path().join("data"), &["max_connections=2"]);
    let first = Raw::connect(server.port);
    let _second = Raw::connect(server.port);
    let begin = startup(196_608, &[("user", "postgres"), ("database", "postgres")]);
    let lines = Raw::open(server.port).talk(&begin);
    assert_eq!(lines, ["E FATAL 53300 sorry, too many clients already", "EOF"]);
    drop(first);
    // Its end is noticed in the course of things.
    while Raw::open(server.port).talk(&begin)[0] != "R 0" {}
}

/// Of a record with line ends inside its quotes each line counts, as PostgreSQL has it from the second record on.
#[test]
fn errors_of_copy_name_their_lines() {
    let dir = TempDir::new("copy-lines");
    let server = Server::start(dir.path(), &[]);
    let mut client = Client::connect(server.port).expect("the server takes connections");
    client.one("CREATE TABLE lines (id int PRIMARY KEY, t text, n numeric)");
    for (options, data, error) in [
        ("(FORMAT csv)", "1,\"a\nb\",1\n2,\"c\nd\",2\n3,x,bad\n", "line 4, column n: \"bad\""),
        ("(FORMAT csv)", "1,\"a\nb\",1\n2,\"c\nd\",2\n3,x,3\n2,y,4\n", "line 5"),
        ("(FORMAT csv) WHERE id <> 2", "1,a,1\n2,b,2\n1,c,3\n", "line 3"),
        ("(FORMAT csv)", "1,a,1\n2,\"x\r\ny\",2\n3,b\rc,4\n", "line 4"),
        ("", "1\ta\t1\r\n2\tb\t2\n", "line 2"),
        ("", "1\ta\t1\n2\tb\t2\r\n", "line 2"),
        ("", "z\ta\t1\tmore\n", "line 1: \"z\ta\t1\tmore\""),
        ("", "z\ta\n", "line 1, column id: \"z\""),
        ("", "1\t\\xff\t1\n", "line 1: \"1\t\\xff\t1\""),
    ] {
        let copy = format!("COPY lines FROM STDIN {options}");
        let answer = client.query_with(&copy, |_| data.as_bytes().to_vec()).expect("an answer");
        assert_eq!(answer.context, format!("COPY lines, {error}"), "{data}");
    }
    let escaped = client.query_with("COPY lines FROM STDIN", |_| b"1\ta\\\rb\t1\n".to_vec());
    assert_eq!(escaped.expect("an answer").tags, ["COPY 1"]);

    // Rows of partitions wait, and are inserted at once where a trigger of the partition may look at them.
    for sql in [
        "CREATE TABLE parted (id int, k int) PARTITION BY LIST (k)",
        "CREATE TABLE one PARTITION OF parted (UNIQUE (id)) FOR VALUES IN (1)",
        "CREATE TABLE two PARTITION OF parted FOR VALUES IN (2)",
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
         $$BEGIN IF new.id = 9 THEN RAISE 'no' USING ERRCODE = '22000'; END IF; RETURN new; END$$",
        "CREATE TRIGGER t BEFORE INSERT ON two FOR EACH ROW EXECUTE FUNCTION refuse()",
    ] {
        client.one(sql);
    }
    for (data, error) in [
        ("1\t1\n2\t1\n1\t1\n3\t1\n", "line 3"),
        ("1\t1\n1\t1\n3\t2\n", "line 2"),
        ("1\t1\n2\t2\n9\t2\n", "line 3: \"9\t2\""),
        ("1\t1\n1\t1\n2\t3\n", "line 3: \"2\t3\""),
    ] {
        let data = |_| data.as_bytes().to_vec();
        let answer = client.query_with("COPY parted FROM STDIN", data).expect("an answer");
        let said = answer.context.lines().last().unwrap_or_default().to_owned();
        assert_eq!(said, format!("COPY parted, {error}"));
    }
    assert!(server.stop());
}

/// Conditions are printed when a plan is kept, and queries of WITH may each read the one before.
#[test]
fn plans_may_be_as_deep_as_their_texts() {
    let mut client = connect();
    let sum = " + 1".repeat(9000);
    let text = format!("SELECT n FROM generate_series(1, 1) n WHERE n{sum} > 0");
    assert!(client.query(&text).contains(&"D 1".to_owned()));
    let link = |n: usize| format!(", c{n} AS MATERIALIZED (SELECT a + 1 AS a FROM c{})", n - 1);
    let links: String = (1..500).map(link).collect();
    let text = format!("WITH c0 AS NOT MATERIALIZED (SELECT 1 AS a){links} SELECT a FROM c499");
    let answer = client.query(&text);
    assert!(answer.contains(&"D 500".to_owned()), "{:?}", answer.first());
}

#[test]
fn chains_of_ten_thousand_are_no_nesting() {
    let mut client = connect();
    for (start, link, value) in [
        ("SELECT 1", " + 1", "10001"),
        ("SELECT n", " - 1 * 1", "-9998"),
        ("SELECT length('a'", " || 'a'", "10001"),
        ("SELECT 1", "::int", "1"),
        ("SELECT 1", " UNION SELECT 1", "1"),
        ("SELECT count(*) FROM (SELECT 1", " UNION ALL SELECT 1", "10001"),
        ("SELECT 2", " EXCEPT SELECT 1", "2"),
        ("SELECT 1", " INTERSECT SELECT 1", "1"),
        ("SELECT true", " AND true", "t"),
        ("SELECT false", " OR false", "f"),
    ] {
        let end = if start.contains("count") {
            ") s"
        } else if start.contains('(') {
            ")"
        } else {
            ""
        };
        let from = if start.ends_with(" n") { " FROM generate_series(2, 2) n" } else { "" };
        // EXPLAIN shows all but UNIONs as deeply as they are nested, and their plans take a while.
        let nested = link.contains("SELECT 1") && !link.contains("UNION");
        let links = if nested { 2000 } else { 10_000 };
        let text = format!("{start}{}{end}{from}", link.repeat(links));
        let answer = client.query(&text);
        assert!(answer.contains(&format!("D {value}")), "{link}: {:?}", answer.first());
        if !nested {
            let plan = client.query(&format!("EXPLAIN {text}"));
            assert!(plan.iter().any(|l| l.starts_with("D ")), "{link}: {:?}", plan.first());
        }
    }
}

#[test]
fn what_constants_fail_with_comes_before_the_columns() {
    let mut raw = connect();
    let kinds = |lines: &[String]| lines.iter().map(|l| l[..1].to_owned()).collect::<String>();
    for failing in ["SELECT 1 / 0", "SELECT 2 / (1 - 1) FROM generate_series(1, 3)"] {
        assert_eq!(kinds(&raw.query(failing)), "EZ", "{failing}");
    }
    for failing in
        ["SELECT 1 / (1 - n), 1 + 1 FROM generate_series(1, 3) n", "SELECT now()::text::int"]
    {
        assert_eq!(kinds(&raw.query(failing)), "TEZ", "{failing}");
    }
    let unknown = |lines: Vec<String>| lines.iter().any(|l| l.starts_with("E ERROR 42P18 "));
    assert!(unknown(raw.query("PREPARE far AS SELECT $65536::int")));
    // Those that are all known may be more.
    let (types, values) = (vec!["int"; 70_000].join(","), vec!["7"; 69_999].join(","));
    raw.query(&format!("PREPARE many({types}) AS SELECT $70000 + $1"));
    let sum = raw.query(&format!("EXECUTE many({values},8)"));
    assert!(sum.contains(&"D 15".to_owned()), "{sum:?}");
    assert!(unknown(raw.talk(&[parse("", "SELECT $70000::int", &[]), sync()].concat())));
    raw.query("BEGIN ISOLATION LEVEL READ UNCOMMITTED");
    let level = raw.query("SHOW transaction_isolation");
    assert!(level.contains(&"D read uncommitted".to_owned()), "{level:?}");
    raw.query("ROLLBACK");
}

#[test]
fn texts_come_and_go_in_the_clients_encoding() {
    let mut raw = open();
    let pairs = [("user", "postgres"), ("database", "postgres"), ("client_encoding", "latin1")];
    let lines = raw.talk(&startup(196_608, &pairs));
    assert!(lines.contains(&"S client_encoding=LATIN1".to_owned()), "{lines:?}");
    let ask = |raw: &mut Guest, text: &[u8]| raw.talk(&message(b'Q', &[text, b"\0"].concat()));
    let lines = ask(
        &mut raw,
        b"SELECT encode(convert_to('\xe9', 'UTF8'), 'hex'), chr(233), array[chr(233)], 1 AS \"\xe9\"",
    );
    let row = "D c3a9|\u{fffd}|{\u{fffd}}|1";
    assert_eq!(lines[..2], ["T encode:25,chr:25,array:1009,\u{fffd}:23", row]);
    // Parameters and results in both forms.
    for binary in [0, 1] {
        let statement = "SELECT encode(convert_to($1, 'UTF8'), 'hex'), $1, array[$1]";
        let mut bind = b"\0\0".to_vec();
        bind.extend([0, 1, 0, binary, 0, 1, 0, 0, 0, 2]);
        bind.extend(b"\xe9x");
        bind.extend([0, 1, 0, binary]);
        let all = [parse("", statement, &[25]), message(b'B', &bind), execute("", 0), sync()];
        let lines = raw.talk(&all.concat());
        let row = lines.iter().find(|l| l.starts_with("D ")).cloned().unwrap_or_default();
        assert!(row.starts_with("D c3a978|\u{fffd}x|"), "{lines:?}");
        assert_eq!(row.matches('\u{fffd}').count(), 2, "{lines:?}");
    }
    let lacking = |lines: &[String]| {
        let error = "E ERROR 22P05 character with byte sequence 0xe2 0x82 0xac in encoding \"UTF8\" has no equivalent in encoding \"LATIN1\"";
        lines.iter().any(|l| l == error)
    };
    for text in ["SELECT chr(8364)", "COPY (SELECT chr(8364)) TO STDOUT"] {
        assert!(lacking(&raw.query(text)), "{text}");
    }
    assert!(lacking(&raw.query("DO $$ BEGIN RAISE EXCEPTION '%', chr(8364); END $$")));
    let lines = raw.query("DO $$ BEGIN RAISE NOTICE '% %', chr(233), chr(8364); END $$");
    assert_eq!(lines[0], "N NOTICE 00000 \u{fffd} ?");
    let lines = raw.query("LISTEN a; SELECT pg_notify('a', chr(233))");
    assert!(lines.iter().any(|l| l.ends_with("a \u{fffd}")), "{lines:?}");
    // COPY in both directions, with a character of two bytes in two messages.
    raw.query("CREATE TEMP TABLE copied (a text)");
    raw.query("SET client_encoding = 'SJIS'");
    raw.talk_until(&query("COPY copied FROM STDIN"), "G ");
    let pieces = [&b"a\x95"[..], b"\\b\n"].map(|piece| message(b'd', piece)).concat();
    raw.talk(&[pieces, message(b'c', b"")].concat());
    let lines = raw.query("SELECT length(a), encode(convert_to(a, 'UTF8'), 'hex') FROM copied");
    assert!(lines.contains(&"D 3|61e8a1a862".to_owned()), "{lines:?}");
    raw.send(&query("COPY copied TO STDOUT"));
    let lines = raw.until(|line| line.starts_with("Z "));
    assert!(lines.contains(&"d a\u{fffd}\\\\b\\n".to_owned()), "{lines:?}");
    let lines = raw.query("SET client_encoding = johab");
    assert!(lines[0].starts_with("E ERROR 0A000 invalid value for parameter"), "{lines:?}");
}
