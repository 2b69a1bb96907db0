//! WebAssembly inside the server: values, SQL from inside, batches, triggers, and what a module can't do to others.

use crate::support::client::Client;
use crate::support::footprint::{await_resident_kib, resident_kib};
use crate::support::language::{
    context_of, error, fail_often, make_bad_wasm, make_wasm, rows, run,
};
use crate::support::raw::{self, Raw};
use crate::support::{Server, TempDir};

/// A module whose functions give back what they get.
const SAME: &str = r#"(module
  (import "threadgres" "is_null" (func $is_null (param i32) (result i32)))
  (import "threadgres" "set_null" (func $set_null))
  (memory (export "memory") 2)
  (global $top (mut i32) (i32.const 1024))
  (func (export "alloc") (param $size i32) (result i32)
    (local $at i32)
    (local.set $at (global.get $top))
    (global.set $top (i32.and (i32.add (i32.add (global.get $top) (local.get $size)) (i32.const 7))
                              (i32.const -8)))
    (block $fits
      (br_if $fits (i32.le_u (global.get $top) (i32.mul (memory.size) (i32.const 65536))))
      (drop (memory.grow (i32.add (i32.shr_u (local.get $size) (i32.const 16)) (i32.const 1)))))
    (local.get $at))
  (func $null_too (if (call $is_null (i32.const 0)) (then (call $set_null))))
  (func (export "i32") (param i32) (result i32) (call $null_too) (local.get 0))
  (func (export "i64") (param i64) (result i64) (call $null_too) (local.get 0))
  (func (export "f32") (param f32) (result f32) (call $null_too) (local.get 0))
  (func (export "f64") (param f64) (result f64) (call $null_too) (local.get 0))
  (func (export "bytes") (param i32 i32) (result i64)
    (if (result i64) (i32.lt_s (local.get 1) (i32.const 0))
      (then (i64.const -1))
      (else (i64.or (i64.shl (i64.extend_i32_u (local.get 0)) (i64.const 32))
                    (i64.extend_i32_u (local.get 1)))))))"#;

fn start(name: &str) -> (TempDir, Server) {
    start_with(name, &["workers=2"])
}

fn start_with(name: &str, settings: &[&str]) -> (TempDir, Server) {
    let dir = TempDir::new(name);
    let server = Server::start(&dir.path().join("data"), settings);
    (dir, server)
}

#[test]
fn values_go_in_and_come_back() {
    let (_dir, server) = start("wasm-values");
    let mut client = Raw::connect(server.port);
    run(
        &mut client,
        "CREATE TYPE pair AS (a int, b text); CREATE TYPE mood AS ENUM ('sad', 'happy');
         CREATE EXTENSION citext; CREATE EXTENSION hstore; CREATE EXTENSION vector;
         CREATE DOMAIN small AS int CHECK (VALUE < 10)",
    );
    for (ty, export, value) in [
        ("bool", "i32", "true"),
        ("int2", "i32", "-7"),
        ("int4", "i32", "-2147483648"),
        ("int4", "i32", "NULL"),
        ("date", "i32", "'2024-02-29'"),
        ("date", "i32", "'infinity'"),
        ("oid", "i32", "4294967295"),
        ("int8", "i64", "-9223372036854775808"),
        ("time", "i64", "'12:34:56.789'"),
        ("timestamp", "i64", "'2024-02-29 12:34:56.789'"),
        ("timestamptz", "i64", "'infinity'"),
        ("float4", "f32", "1.5"),
        ("float8", "f64", "-0.1"),
        ("float8", "f64", "'NaN'"),
        ("numeric", "bytes", "123456789012345678901234567890.25"),
        ("text", "bytes", "'naïve \"text\"'"),
        ("text", "bytes", "''"),
        ("text", "bytes", "NULL"),
        ("text", "bytes", "repeat('long ', 100000)"),
        ("varchar(3)", "bytes", "'abc'"),
        ("char(4)", "bytes", "'a'"),
        ("json", "bytes", "'{\"a\":[1,2,{\"b\":null}]}'"),
        ("jsonb", "bytes", "'[1, \"x\", false]'"),
        ("bytea", "bytes", "'\\x00ff10'"),
        ("int4[]", "bytes", "'{1,NULL,3}'"),
        ("int8[]", "bytes", "'{{1,2},{3,4}}'"),
        ("int4[]", "bytes", "'[5:6]={1,2}'"),
        ("int4[]", "bytes", "'{}'"),
        ("text[]", "bytes", "'{a,\"b c\",NULL,\"\"}'"),
        ("jsonb[]", "bytes", "array['[1,2]', '{}']::jsonb[]"),
        ("uuid", "bytes", "'6b8c0b4e-6c1e-4b0c-8f0e-1d8f1a3c5b7a'"),
        ("interval", "bytes", "'1 mon 2 days 00:00:03.5'"),
        ("pair", "bytes", "row(1, 'x')::pair"),
        ("pair[]", "bytes", "array[row(1, 'x'), row(NULL, 'y')]::pair[]"),
        ("mood", "bytes", "'happy'"),
        ("small", "i32", "3"),
        ("int4range", "bytes", "'[1,5)'"),
        ("citext", "bytes", "'Some Text'"),
        ("hstore", "bytes", "'a=>1, b=>NULL'"),
        ("vector(3)", "bytes", "'[1,2.5,-3]'"),
        ("vector[]", "bytes", "'{\"[1,2]\",NULL}'"),
    ] {
        make_wasm(&mut client, &format!("f(v {ty}) RETURNS {ty}"), SAME, export);
        let same = run(
            &mut client,
            &format!("SELECT f(({value})::{ty})::text IS NOT DISTINCT FROM ({value})::{ty}::text"),
        );
        assert_eq!(rows(&same), ["t"], "{ty} {value}");
        run(&mut client, &format!("DROP FUNCTION f({ty})"));
    }
    // A number that the type has not.
    make_wasm(&mut client, "narrow(int4) RETURNS int2", SAME, "i32");
    let narrow = client.query("SELECT narrow(40000)");
    assert!(error(&narrow).starts_with("22003"), "{narrow:?}");
    make_wasm(&mut client, "checked(int4) RETURNS small", SAME, "i32");
    let checked = client.query("SELECT checked(10)");
    assert!(error(&checked).starts_with("23514"), "{checked:?}");
    make_wasm(&mut client, "broken(text) RETURNS int[]", SAME, "bytes");
    let broken = client.query("SELECT broken('abc')");
    assert!(error(&broken).starts_with("22P03"), "{broken:?}");
    make_wasm(&mut client, "broken(bytea) RETURNS text", SAME, "bytes");
    let broken = client.query("SELECT broken('\\xff'::bytea)");
    assert!(error(&broken).starts_with("22021"), "{broken:?}");
    // Polymorphic: the types are those of the call.
    make_wasm(&mut client, "same(anyelement) RETURNS anyelement", SAME, "bytes");
    let same = run(&mut client, "SELECT same('x'::text), same(ARRAY[1, 2])");
    assert_eq!(rows(&same), ["x|{1,2}"]);
    let other = client.query("SELECT same(1)");
    assert!(error(&other).starts_with("42P13"), "{other:?}");
    // The definition as it is shown makes the same function.
    let shown = run(&mut client, "SELECT pg_get_functiondef('narrow(int4)'::regprocedure)");
    assert!(shown.iter().any(|l| l.contains("LANGUAGE wasm") && l.contains("i32")), "{shown:?}");
    assert!(server.stop());
}

#[test]
fn modules_are_looked_at_when_they_are_given() {
    let (dir, server) = start("wasm-modules");
    let mut client = Raw::connect(server.port);
    let create = |module: &str, export: &str| {
        format!("CREATE FUNCTION f(int) RETURNS int LANGUAGE wasm AS '{module}', '{export}'")
    };
    for (module, export, code) in [
        ("(module", "f", "42P13"),
        ("(module)", "f", "42883"),
        ("(module (func (export \"f\") (param i64) (result i64) local.get 0))", "f", "42P13"),
        ("(module (import \"env\" \"open\" (func)))", "f", "42P13"),
        ("(module (memory i64 1))", "f", "42P13"),
        ("\\x0061736d01", "f", "42P13"),
        ("AGFzbQE=", "f", "42P13"),
        ("nowhere.wasm", "f", "58P01"),
        ("/etc/passwd", "f", "42P13"),
    ] {
        let lines = client.query(&create(module, export));
        assert!(error(&lines).starts_with(code), "{module}: {lines:?}");
        assert!(!lines.iter().any(|l| l.contains("root:")), "{lines:?}");
    }
    // (module (func (export "f") (param i32) (result i32) local.get 0))
    let bytes =
        b"\0asm\x01\0\0\0\x01\x06\x01\x60\x01\x7f\x01\x7f\x03\x02\x01\0\x07\x05\x01\x01f\0\0\
                  \x0a\x06\x01\x04\0\x20\0\x0b";
    let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    run(&mut client, &create(&format!("\\x{hex}"), "f"));
    assert_eq!(rows(&run(&mut client, "SELECT f(7)")), ["7"]);
    let file = dir.path().join("f.wasm");
    std::fs::write(&file, bytes).expect("a file");
    let by_file = create(&file.display().to_string(), "f").replace("f(int)", "g(int)");
    run(&mut client, &by_file);
    assert_eq!(rows(&run(&mut client, "SELECT g(8)")), ["8"]);
    // The export's name is the function's unless something else is said.
    run(
        &mut client,
        &format!(
            "DROP FUNCTION f(int); CREATE FUNCTION f(int) RETURNS int LANGUAGE wasm AS '\\x{hex}'"
        ),
    );
    assert_eq!(rows(&run(&mut client, "SELECT f(9)")), ["9"]);
    // A file is a superuser's to name; a module is anybody's.
    run(
        &mut client,
        "CREATE ROLE someone; GRANT CREATE ON SCHEMA public TO someone; SET ROLE someone",
    );
    let denied = client.query(&by_file.replace("g(int)", "h(int)"));
    assert!(error(&denied).starts_with("42501"), "{denied:?}");
    run(&mut client, &create(&hex, "f").replace("f(int)", "h(int)"));
    let block = client.query("DO LANGUAGE wasm 'x'");
    assert!(error(&block).starts_with("0A000"), "{block:?}");
    assert!(server.stop());
}

/// Functions over the imports that ask the server. Texts: 0.. see the data.
const ASKING: &str = r#"(module
  (import "threadgres" "execute" (func $execute (param i32 i32 i32 i32) (result i32)))
  (import "threadgres" "open" (func $open (param i32 i32 i32 i32) (result i32)))
  (import "threadgres" "fetch" (func $fetch (param i32 i32) (result i32)))
  (import "threadgres" "close" (func $close (param i32)))
  (import "threadgres" "rows" (func $rows (param i32) (result i32)))
  (import "threadgres" "changed" (func $changed (param i32) (result i64)))
  (import "threadgres" "cell" (func $cell (param i32 i32 i32 i32 i32) (result i32)))
  (import "threadgres" "cell_i64" (func $cell_i64 (param i32 i32 i32) (result i64)))
  (import "threadgres" "release" (func $release (param i32)))
  (import "threadgres" "emit" (func $emit (param i32 i32)))
  (import "threadgres" "emit_i64" (func $emit_i64 (param i64)))
  (import "threadgres" "emit_null" (func $emit_null))
  (import "threadgres" "notice" (func $notice (param i32 i32 i32)))
  (import "threadgres" "raise" (func $raise (param i32 i32 i32)))
  (import "threadgres" "rethrow" (func $rethrow))
  (import "threadgres" "error_code" (func $error_code (param i32)))
  (import "threadgres" "commit" (func $commit (result i32)))
  (import "threadgres" "rollback" (func $rollback (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 0) "P0001own words")
  (func (export "alloc") (param i32) (result i32) (i32.const 65536))
  (func (export "changed") (param i32 i32) (result i64)
    (local $r i32)
    (local.set $r (call $execute (local.get 0) (local.get 1) (i32.const 0) (i32.const 0)))
    (if (i32.lt_s (local.get $r) (i32.const 0)) (then (call $rethrow)))
    (call $changed (local.get $r)))
  (func (export "first") (param i32 i32) (result i64)
    (local $r i32)
    (local.set $r (call $execute (local.get 0) (local.get 1) (i32.const 0) (i32.const 0)))
    (if (i32.lt_s (local.get $r) (i32.const 0)) (then (call $rethrow)))
    (call $cell_i64 (local.get $r) (i32.const 0) (i32.const 0)))
  ;; The SQLSTATE of what a statement does, as text.
  (func (export "code") (param i32 i32) (result i64)
    (drop (call $execute (local.get 0) (local.get 1) (i32.const 0) (i32.const 0)))
    (call $error_code (i32.const 100))
    (i64.or (i64.shl (i64.const 100) (i64.const 32)) (i64.const 5)))
  ;; A query with one parameter, a text: its bytes are the second argument.
  (func (export "with") (param $q i32) (param $ql i32) (param $p i32) (param $pl i32) (result i64)
    (local $r i32)
    (i32.store (i32.const 200) (local.get $pl))
    (memory.copy (i32.const 204) (local.get $p) (local.get $pl))
    (local.set $r (call $execute (local.get $q) (local.get $ql)
                        (i32.const 200) (i32.add (local.get $pl) (i32.const 4))))
    (if (i32.lt_s (local.get $r) (i32.const 0)) (then (call $rethrow)))
    (i64.or (i64.shl (i64.const 1000) (i64.const 32))
      (i64.extend_i32_u (call $cell (local.get $r) (i32.const 0) (i32.const 0)
                              (i32.const 1000) (i32.const 1000)))))
  ;; The sum of the first column, by a cursor with three rows at a time.
  (func (export "sum") (param i32 i32) (result i64)
    (local $c i32) (local $r i32) (local $n i32) (local $sum i64)
    (local.set $c (call $open (local.get 0) (local.get 1) (i32.const 0) (i32.const 0)))
    (block $done
      (loop $more
        (local.set $r (call $fetch (local.get $c) (i32.const 3)))
        (local.set $n (call $rows (local.get $r)))
        (br_if $done (i32.eqz (local.get $n)))
        (loop $row
          (local.set $n (i32.sub (local.get $n) (i32.const 1)))
          (local.set $sum (i64.add (local.get $sum)
            (call $cell_i64 (local.get $r) (local.get $n) (i32.const 0))))
          (br_if $row (local.get $n)))
        (call $release (local.get $r))
        (br $more)))
    (call $close (local.get $c))
    (local.get $sum))
  (func (export "series") (param $n i32)
    (local $i i32)
    (loop $next
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (call $emit_i64 (i64.extend_i32_s (local.get $i)))
      (br_if $next (i32.lt_s (local.get $i) (local.get $n))))
    (call $emit_null))
  ;; Rows of (int, text): 2 fields, 4 bytes and the argument.
  (func (export "pairs") (param $p i32) (param $l i32)
    (i32.store (i32.const 300) (i32.const 2))
    (i32.store (i32.const 304) (i32.const 4))
    (i32.store (i32.const 308) (local.get $l))
    (i32.store (i32.const 312) (local.get $l))
    (memory.copy (i32.const 316) (local.get $p) (local.get $l))
    (call $emit (i32.const 300) (i32.add (local.get $l) (i32.const 16)))
    (i32.store (i32.const 312) (i32.const -1))
    (call $emit (i32.const 300) (i32.const 16)))
  (func (export "pair") (param $p i32) (param $l i32) (result i64)
    (i32.store (i32.const 300) (i32.const 2))
    (i32.store (i32.const 304) (i32.const 4))
    (i32.store (i32.const 308) (local.get $l))
    (i32.store (i32.const 312) (local.get $l))
    (memory.copy (i32.const 316) (local.get $p) (local.get $l))
    (i64.or (i64.shl (i64.const 300) (i64.const 32))
            (i64.extend_i32_u (i32.add (local.get $l) (i32.const 16)))))
  (func (export "say") (param i32 i32) (call $notice (i32.const 18) (local.get 0) (local.get 1)))
  (func (export "fail") (call $raise (i32.const 0) (i32.const 5) (i32.const 9)))
  (func (export "both") (param i32 i32)
    (drop (call $execute (local.get 0) (local.get 1) (i32.const 0) (i32.const 0)))
    (if (call $commit) (then (call $rethrow)))
    (drop (call $execute (local.get 0) (local.get 1) (i32.const 0) (i32.const 0)))
    (drop (call $rollback))))"#;

#[test]
fn modules_ask_the_server() {
    let (_dir, server) = start("wasm-asks");
    let mut client = Raw::connect(server.port);
    for (heading, export) in [
        ("changed(text) RETURNS bigint", "changed"),
        ("first(text) RETURNS bigint", "first"),
        ("code(text) RETURNS text", "code"),
        ("one(text, text) RETURNS text", "with"),
        ("total(text) RETURNS bigint", "sum"),
        ("series(int) RETURNS SETOF int", "series"),
        ("pairs(text) RETURNS TABLE (n int, t text)", "pairs"),
        ("pair(text, OUT n int, OUT t text)", "pair"),
        ("say(text) RETURNS void", "say"),
        ("fail() RETURNS void", "fail"),
    ] {
        make_wasm(&mut client, heading, ASKING, export);
    }
    run(
        &mut client,
        &format!("CREATE PROCEDURE twice(text) LANGUAGE wasm AS $wasm${ASKING}$wasm$, 'both'"),
    );
    run(&mut client, "CREATE TABLE t (n int CHECK (n < 100))");
    let changed = run(&mut client, "SELECT changed('INSERT INTO t SELECT generate_series(1, 10)')");
    assert_eq!(rows(&changed), ["10"]);
    assert_eq!(rows(&run(&mut client, "SELECT first('SELECT max(n) FROM t')")), ["10"]);
    assert_eq!(rows(&run(&mut client, "SELECT total('SELECT n FROM t')")), ["55"]);
    // A statement that fails is undone, and the function goes on.
    let code = run(&mut client, "SELECT code('INSERT INTO t VALUES (11), (100)'), count(*) FROM t");
    assert_eq!(rows(&code), ["23514|10"]);
    let passed = client.query("SELECT first('SELECT 1 / 0')");
    assert!(error(&passed).starts_with("22012 division by zero"), "{passed:?}");
    let context = context_of(&mut client, "SELECT first(''SELECT 1 / 0'')");
    assert!(context.contains("WebAssembly function first(text)"), "{context}");
    let one = run(&mut client, "SELECT one('SELECT upper($1)', 'naïve')");
    assert_eq!(rows(&one), ["NAÏVE"]);
    // A function that is called by a query of another function of the same module.
    let nested = run(&mut client, "SELECT first('SELECT first(''SELECT 7'')')");
    assert_eq!(rows(&nested), ["7"]);
    assert_eq!(rows(&run(&mut client, "SELECT * FROM series(2)")), ["1", "2", "NULL"]);
    let pairs = run(&mut client, "SELECT * FROM pairs('abc')");
    assert_eq!(rows(&pairs), ["3|abc", "3|NULL"]);
    assert_eq!(rows(&run(&mut client, "SELECT (pair('xy')).*")), ["2|xy"]);
    let said = run(&mut client, "SELECT say('hello')");
    assert!(said.iter().any(|l| l.starts_with("N ") && l.contains("hello")), "{said:?}");
    let failed = client.query("SELECT fail()");
    assert!(error(&failed).starts_with("P0001 own words"), "{failed:?}");
    // Committed rows stay.
    run(&mut client, "TRUNCATE t");
    run(&mut client, "CALL twice('INSERT INTO t VALUES (1)')");
    assert_eq!(rows(&run(&mut client, "SELECT count(*) FROM t")), ["1"]);
    let inside = client.query("BEGIN; CALL twice('INSERT INTO t VALUES (1)'); COMMIT");
    assert!(error(&inside).starts_with("2D000"), "{inside:?}");
    client.query("ROLLBACK");
    // A function that isn't volatile writes nothing.
    run(&mut client, "ALTER FUNCTION changed(text) STABLE");
    let stable = client.query("SELECT changed('DELETE FROM t')");
    assert!(error(&stable).starts_with("0A000"), "{stable:?}");
    // Aggregates over functions of a module.
    let add = r#"(module
      (func (export "add") (param i64 i32) (result i64)
        (i64.add (local.get 0) (i64.extend_i32_s (local.get 1)))))"#;
    make_wasm(&mut client, "add(bigint, int) RETURNS bigint STRICT", add, "add");
    run(&mut client, "CREATE AGGREGATE own_sum(int) (SFUNC = add, STYPE = bigint, INITCOND = 0)");
    let sum = run(&mut client, "SELECT own_sum(n) FROM generate_series(1, 10000) n");
    assert_eq!(rows(&sum), ["50005000"]);
    assert!(server.stop());
}

#[test]
fn triggers_see_and_change_rows() {
    let (_dir, server) = start("wasm-triggers");
    let mut client = Raw::connect(server.port);
    // Doubles `n`, puts the operation into `t`, and leaves out rows whose `n` is 13.
    let module = r#"(module
      (import "threadgres" "new" (func $new (param i32 i32 i32 i32) (result i32)))
      (import "threadgres" "old" (func $old (param i32 i32 i32 i32) (result i32)))
      (import "threadgres" "set" (func $set (param i32 i32 i32 i32) (result i32)))
      (import "threadgres" "trigger" (func $trigger (param i32 i32 i32) (result i32)))
      (memory (export "memory") 1)
      (data (i32.const 0) "nt?")
      (func (export "double") (result i32)
        (if (i32.ne (call $new (i32.const 0) (i32.const 1) (i32.const 16) (i32.const 4)) (i32.const 4))
          (then unreachable))
        (if (i32.eq (i32.load (i32.const 16)) (i32.const 13)) (then (return (i32.const 1))))
        (i32.store (i32.const 16) (i32.mul (i32.load (i32.const 16)) (i32.const 2)))
        (drop (call $set (i32.const 0) (i32.const 1) (i32.const 16) (i32.const 4)))
        (if (i32.ne (call $new (i32.const 2) (i32.const 1) (i32.const 32) (i32.const 4)) (i32.const -2))
          (then unreachable))
        (drop (call $set (i32.const 1) (i32.const 1) (i32.const 64)
                    (call $trigger (i32.const 3) (i32.const 64) (i32.const 100))))
        (i32.const 0)))"#;
    make_wasm(&mut client, "double() RETURNS trigger", module, "double");
    run(
        &mut client,
        "CREATE TABLE t (gone int, n int, t text); ALTER TABLE t DROP COLUMN gone;
         CREATE TRIGGER d BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION double();
         INSERT INTO t VALUES (1), (13), (2); UPDATE t SET n = 5 WHERE n = 4",
    );
    let rows_of = run(&mut client, "SELECT n, t FROM t ORDER BY n");
    assert_eq!(rows(&rows_of), ["2|INSERT", "10|UPDATE"]);
    let directly = client.query("SELECT double()");
    assert!(error(&directly).starts_with("0A000"), "{directly:?}");
    assert!(server.stop());
}

/// `add` of two columns of int4 (NULL where either is, if it is strict), and `same` of texts.
const BATCH: &str = r#"(module
  (memory (export "memory") 1)
  (global $top (mut i32) (i32.const 65536))
  (func $alloc (export "alloc") (param $size i32) (result i32)
    (local $at i32)
    (local.set $at (global.get $top))
    (global.set $top (i32.add (global.get $top) (local.get $size)))
    (drop (memory.grow (i32.add (i32.shr_u (local.get $size) (i32.const 16)) (i32.const 1))))
    (local.get $at))
  ;; Where a column's values begin.
  (func $values (param $column i32) (param $rows i32) (result i32)
    (i32.add (i32.add (local.get $column) (i32.const 8))
      (if (result i32) (i32.load (i32.add (local.get $column) (i32.const 4)))
        (then (i32.and (i32.add (local.get $rows) (i32.const 7)) (i32.const -8)))
        (else (i32.const 0)))))
  (global $out (mut i32) (i32.const 0))
  (func (export "add") (param $rows i32) (param $at i32) (result i64)
    (local $a i32) (local $b i32) (local $to i32) (local $end i32)
    (if (i32.eqz (global.get $out)) (then (global.set $out (call $alloc (i32.const 100000)))))
    (local.set $a (call $values (i32.add (local.get $at) (i32.load (local.get $at))) (local.get $rows)))
    (local.set $b (call $values
      (i32.add (local.get $at) (i32.load (i32.add (local.get $at) (i32.const 4)))) (local.get $rows)))
    (i32.store (global.get $out) (local.get $rows))
    (i32.store (i32.add (global.get $out) (i32.const 4)) (i32.const 0))
    (local.set $to (i32.add (global.get $out) (i32.const 8)))
    (local.set $end (i32.add (local.get $to) (i32.shl (local.get $rows) (i32.const 2))))
    (loop $row
      (i32.store (local.get $to) (i32.add (i32.load (local.get $a)) (i32.load (local.get $b))))
      (local.set $a (i32.add (local.get $a) (i32.const 4)))
      (local.set $b (i32.add (local.get $b) (i32.const 4)))
      (local.set $to (i32.add (local.get $to) (i32.const 4)))
      (br_if $row (i32.lt_u (local.get $to) (local.get $end))))
    (i64.or (i64.shl (i64.extend_i32_u (global.get $out)) (i64.const 32))
            (i64.extend_i32_u (i32.sub (local.get $end) (global.get $out)))))
  ;; The column of the one argument, as far as the memory goes.
  (func (export "same") (param $rows i32) (param $at i32) (result i64)
    (local.set $at (i32.add (local.get $at) (i32.load (local.get $at))))
    (i64.or (i64.shl (i64.extend_i32_u (local.get $at)) (i64.const 32))
            (i64.extend_i32_u (i32.sub (i32.mul (memory.size) (i32.const 65536)) (local.get $at)))))
  ;; For each row how many there are.
  (func (export "many") (param $rows i32) (param $at i32) (result i64)
    (local $n i32)
    (i32.store (i32.const 0) (local.get $rows))
    (loop $row
      (i32.store offset=8 (i32.shl (local.get $n) (i32.const 2)) (local.get $rows))
      (br_if $row (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (local.get $rows))))
    (i64.extend_i32_u (i32.add (i32.shl (local.get $rows) (i32.const 2)) (i32.const 8))))
  (func (export "short") (param $rows i32) (param $at i32) (result i64) (i64.const 0)))"#;

#[test]
fn batches_come_as_columns() {
    let (_dir, server) = start("wasm-batches");
    let mut client = Raw::connect(server.port);
    make_wasm(&mut client, "add(int, int) RETURNS int IMMUTABLE STRICT", BATCH, "add BATCH");
    make_wasm(&mut client, "vadd(int, int) RETURNS int STRICT", BATCH, "add batch");
    make_wasm(&mut client, "same(text) RETURNS text IMMUTABLE", BATCH, "same BATCH");
    make_wasm(&mut client, "same(int[]) RETURNS int[] IMMUTABLE", BATCH, "same BATCH");
    make_wasm(&mut client, "many(int) RETURNS int IMMUTABLE", BATCH, "many BATCH");
    make_wasm(&mut client, "short(text) RETURNS text IMMUTABLE", BATCH, "short BATCH");
    run(
        &mut client,
        "CREATE TABLE t AS SELECT n, NULLIF(n % 7, 3) AS m, CASE WHEN n % 5 > 0 THEN repeat('x', n % 50) END AS s
         FROM generate_series(1, 20000) n",
    );
    for question in [
        "SELECT count(*) FROM t WHERE add(n, m) IS DISTINCT FROM n + m",
        "SELECT count(*) FROM t WHERE vadd(n, m) IS DISTINCT FROM n + m",
        "SELECT count(*) FROM t WHERE add(add(n, 1), n) <> 2 * n + 1",
        "SELECT count(*) FROM t WHERE same(s) IS DISTINCT FROM s",
        "SELECT count(*) FROM t WHERE same(ARRAY[n, m]) IS DISTINCT FROM ARRAY[n, m]",
    ] {
        assert_eq!(rows(&run(&mut client, question)), ["0"], "{question}");
    }
    assert_eq!(rows(&run(&mut client, "SELECT add(1, 2), add(1, NULL), same('é')")), ["3|NULL|é"]);
    // So many rows at once as the executor has.
    let many = run(&mut client, "SELECT max(many(n)) > 100 FROM (SELECT n FROM t LIMIT 4096) t");
    assert_eq!(rows(&many), ["t"]);
    let malformed = client.query("SELECT short(s) FROM t");
    assert!(error(&malformed).starts_with("22P03"), "{malformed:?}");
    let set = client.query(&format!(
        "CREATE FUNCTION f(int) RETURNS SETOF int LANGUAGE wasm AS $wasm${BATCH}$wasm$, 'add BATCH'"
    ));
    assert!(error(&set).starts_with("42P13"), "{set:?}");
    assert!(server.stop());
}

#[test]
fn plain_numbers_are_called_for_many_rows() {
    let (_dir, server) = start("wasm-loops");
    let mut client = Raw::connect(server.port);
    let module = r#"(module
      (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
      (func (export "wide") (param i64) (result i64) (i64.mul (local.get 0) (i64.const -3)))
      (func (export "half") (param f64 f32) (result f64)
        (f64.add (f64.div (local.get 0) (f64.const 2)) (f64.promote_f32 (local.get 1))))
      (func (export "odd") (param i64) (result i32) (i32.wrap_i64 (i64.and (local.get 0) (i64.const 1))))
      (func (export "one") (result i32) (i32.const 1))
      (func (export "inverse") (param i32) (result i32) (i32.div_s (i32.const 100) (local.get 0)))
      (func (export "spin") (param i32) (result i32) (loop $again (br $again)) (i32.const 0)))"#;
    for (heading, export) in [
        ("add(int, int) RETURNS int IMMUTABLE STRICT", "add"),
        ("sum_of(int, int) RETURNS int IMMUTABLE", "add"),
        ("wide(bigint) RETURNS bigint STABLE STRICT", "wide"),
        ("half(float8, float4) RETURNS float8 IMMUTABLE STRICT", "half"),
        ("odd(bigint) RETURNS bool IMMUTABLE STRICT", "odd"),
        ("small(int, int) RETURNS int2 IMMUTABLE STRICT", "add"),
        ("one() RETURNS int STABLE", "one"),
        ("inverse(int) RETURNS int IMMUTABLE STRICT", "inverse"),
        ("spin(int) RETURNS int IMMUTABLE STRICT", "spin"),
    ] {
        make_wasm(&mut client, heading, module, export);
    }
    run(
        &mut client,
        "CREATE DOMAIN few AS int CHECK (VALUE < 4000); CREATE TABLE t AS
         SELECT n, NULLIF(n % 7, 3) AS m, n::float8 AS f FROM generate_series(1, 5000) n",
    );
    make_wasm(&mut client, "few_of(int, int) RETURNS few IMMUTABLE STRICT", module, "add");
    for question in [
        "SELECT count(*) FROM t WHERE add(n, m) IS DISTINCT FROM n + m",
        "SELECT count(*) FROM t WHERE sum_of(n, m) IS DISTINCT FROM n + coalesce(m, 0)",
        "SELECT count(*) FROM t WHERE wide(n) <> -3 * n",
        "SELECT count(*) FROM t WHERE half(f, 0.5) <> f / 2 + 0.5",
        "SELECT count(*) FROM t WHERE odd(n) <> (n % 2 = 1)",
        "SELECT 5000 - sum(one()) FROM t",
        "SELECT count(*) FROM t WHERE small(n, -1) <> n - 1",
    ] {
        assert_eq!(rows(&run(&mut client, question)), ["0"], "{question}");
    }
    for (question, code) in [
        ("SELECT sum(small(n, 32000)) FROM t", "22003"),
        ("SELECT sum(few_of(n, 0)) FROM t", "23514"),
        ("SELECT sum(inverse(n - 4000)) FROM t", "38000"),
        ("SET statement_timeout = '200ms'; SELECT sum(spin(n)) FROM t", "57014"),
    ] {
        let failed = client.query(question);
        assert!(error(&failed).starts_with(code), "{question}: {failed:?}");
    }
    assert!(server.stop());
}

#[test]
fn traps_are_errors_and_hurt_nobody() {
    let (_dir, server) = start("wasm-traps");
    let mut client = Raw::connect(server.port);
    make_bad_wasm(&mut client);
    for (call, code) in [
        ("trap()", "38000"),
        ("divide(0)", "38000"),
        ("outside()", "38000"),
        ("wild()", "38000"),
        ("deep_wasm()", "54001"),
    ] {
        let lines = client.query(&format!("SELECT {call}"));
        assert!(error(&lines).starts_with(code), "{call}: {lines:?}");
        assert_eq!(rows(&run(&mut client, "SELECT fine()")), ["7"], "after {call}");
    }
    // The back trace names the function that trapped and the one that called it.
    let trace = context_of(&mut client, "SELECT trap()");
    let inner = trace.find("WebAssembly inner at 0x").expect("the inner function");
    assert!(trace[inner..].contains("WebAssembly function trap()"), "{trace}");
    fail_often(server.port, "divide(0)");
    assert_eq!(rows(&run(&mut client, "SELECT fine()")), ["7"]);
    assert!(server.stop());
}

#[test]
fn endless_and_greedy_modules_end_alone() {
    let (_dir, server) = start("wasm-hogs");
    let mut client = Raw::connect(server.port);
    make_bad_wasm(&mut client);
    run(&mut client, "SET statement_timeout = '200ms'");
    let endless = client.query("SELECT forever()");
    assert!(error(&endless).starts_with("57014"), "{endless:?}");
    run(&mut client, "RESET statement_timeout; SET session_memory_limit = '64MB'");
    let greedy = client.query("SELECT memory_hog()");
    assert!(error(&greedy).starts_with("53200"), "{greedy:?}");
    assert_eq!(rows(&run(&mut client, "SELECT fine()")), ["7"]);
    // Two workers, more loops than these: others go on.
    let mut loops: Vec<Raw> = (0..4).map(|_| Raw::connect(server.port)).collect();
    for client in &mut loops {
        client.send(&raw::query("SELECT forever()"));
    }
    let mut watcher = Client::connect(server.port).expect("a connection");
    let running = "FROM pg_stat_activity WHERE state = 'active' AND query = 'SELECT forever()'";
    watcher.await_one(&format!("SELECT count(*) {running}"), "4");
    assert_eq!(watcher.one(&format!("SELECT count(pg_cancel_backend(pid)) {running}")), "4");
    for client in &mut loops {
        let ended = client.until(|line| line.starts_with("Z "));
        assert!(error(&ended).starts_with("57014"), "{ended:?}");
    }
    assert!(server.stop());
}

#[test]
fn a_session_that_rests_has_no_instance() {
    const SESSIONS: usize = 1000;
    let (_dir, server) = start_with("wasm-memory", &["workers=2", "max_connections=1100"]);
    let mut watcher = Client::connect(server.port).expect("a connection");
    let mut first = Raw::connect(server.port);
    make_bad_wasm(&mut first);
    let mut sessions: Vec<Raw> = (0..SESSIONS).map(|_| Raw::connect(server.port)).collect();
    for session in &mut sessions {
        assert_eq!(rows(&session.query("SELECT 7")), ["7"]);
    }
    let before = resident_kib(server.pid());
    for session in &mut sessions {
        assert_eq!(rows(&session.query("SELECT fine()")), ["7"]);
    }
    let most = before + 32 * SESSIONS as i64;
    let after = await_resident_kib(&server, most);
    eprintln!("{} KiB a session for having called a function", (after - before) / SESSIONS as i64);
    assert!(after <= most, "{before} KiB before, {after} after");
    assert_eq!(watcher.one("SELECT fine()"), "7");
    assert!(server.stop());
}

#[test]
fn the_examples_of_the_guide_run() {
    let (_dir, server) = start("guide-languages");
    let mut client = Raw::connect(server.port);
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/languages.md");
    let page = std::fs::read_to_string(page).expect("the guide");
    // Java needs a JDK, and has a test of its own.
    let page = page.split("\n## Java\n").next().unwrap_or_default();
    let mut answers = Vec::new();
    for block in page.split("```sql\n").skip(1) {
        let (statements, _) = block.split_once("```").expect("an end of the block");
        answers.extend(rows(&run(&mut client, statements)));
    }
    assert_eq!(answers, ["creme-brulee-twice", "[\"bolt\", \"cog\"]", "21", "333833500"]);
    assert!(server.stop());
}

/// The modules that `examples/wasm/build` has made.
#[test]
#[ignore = "needs compilers to WebAssembly: make examples"]
fn examples_do_what_they_say() {
    let (_dir, server) = start("wasm-examples");
    let mut client = Raw::connect(server.port);
    let built = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/examples");
    let mut create = |heading: &str, module: &str, export: &str| {
        let text = format!(
            "CREATE FUNCTION {heading} LANGUAGE wasm STRICT AS '{built}/{module}.wasm', '{export}'"
        );
        run(&mut client, &text);
    };
    create("slug(text) RETURNS text IMMUTABLE", "slug", "slug");
    create("seen(text) RETURNS bigint", "slug", "seen");
    create(
        "distance(float8, float8, float8, float8) RETURNS float8 IMMUTABLE",
        "distance",
        "distance BATCH",
    );
    create("roman(int) RETURNS text IMMUTABLE", "roman", "roman");
    create("audit() RETURNS trigger", "roman", "audit");
    let slug = run(&mut client, "SELECT slug('Crème brûlée,  TWICE!')");
    assert_eq!(rows(&slug), ["crème-brûlée-twice"]);
    run(
        &mut client,
        "CREATE TABLE articles (title text, slug text GENERATED ALWAYS AS (slug(title)) STORED);
         INSERT INTO articles SELECT 'The Title ' || n % 3 FROM generate_series(1, 10) n",
    );
    assert_eq!(rows(&run(&mut client, "SELECT seen('the-title-1')")), ["4"]);
    // Berlin and Lisbon; a great circle's quarter; nothing.
    let distances = run(
        &mut client,
        "SELECT string_agg(round(distance(a, b, c, d))::text, ' ' ORDER BY n)
         FROM (VALUES (1, 52.52, 13.405, 38.7223, -9.1393), (2, 0, 0, 0, 90), (3, 1, 2, 1, 2),
                      (4, NULL, 1, 1, 1)) v(n, a, b, c, d)",
    );
    assert_eq!(rows(&distances), ["2312 10008 0"]);
    let far = run(
        &mut client,
        "SELECT count(*) FROM generate_series(-90, 90) a, generate_series(-180, 180) b
         WHERE distance(a, b, -a, b) > 20016",
    );
    assert_eq!(rows(&far), ["0"]);
    assert_eq!(rows(&run(&mut client, "SELECT roman(1987)")), ["MCMLXXXVII"]);
    let thrown = client.query("SELECT roman(4000)");
    assert!(error(&thrown).starts_with("38000 out of the numbers"), "{thrown:?}");
    run(
        &mut client,
        "CREATE TABLE t (n int, changed_by text);
         CREATE TRIGGER a BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION audit();
         INSERT INTO t VALUES (1)",
    );
    assert_eq!(rows(&run(&mut client, "SELECT n, changed_by FROM t")), ["1|INSERT"]);
    assert!(server.stop());
}
