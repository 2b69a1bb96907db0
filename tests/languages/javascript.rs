//! JavaScript inside the server: values, SQL from inside, triggers, and what a body can't do to others.

use crate::support::client::Client;
use crate::support::language::{error, fail_often, rows};
use crate::support::raw::{self, Raw};
use crate::support::{Server, TempDir};

fn start(name: &str) -> (TempDir, Server) {
    let dir = TempDir::new(name);
    let server = Server::start(&dir.path().join("data"), &["workers=2"]);
    (dir, server)
}

/// Makes a function `f` and calls it.
fn call(client: &mut Raw, heading: &str, body: &str, call: &str) -> Vec<String> {
    let made = client.query(&format!(
        "CREATE OR REPLACE FUNCTION {heading} LANGUAGE javascript AS $js${body}$js$"
    ));
    assert!(!made.iter().any(|l| l.starts_with("E ")), "{made:?}");
    client.query(call)
}

#[test]
fn values_go_in_and_come_back() {
    let (_dir, server) = start("js-values");
    let mut client = Raw::connect(server.port);
    client.query(
        "CREATE TYPE pair AS (a int, b text); CREATE TYPE mood AS ENUM ('sad', 'happy');
         CREATE DOMAIN small AS int CHECK (VALUE < 10)",
    );
    for (ty, value) in [
        ("bool", "true"),
        ("int2", "-7"),
        ("int4", "2147483647"),
        ("int8", "9007199254740991"),
        ("int8", "9223372036854775807"),
        ("int8", "-9223372036854775808"),
        ("float8", "1.5"),
        ("numeric", "12.25"),
        ("text", "'naïve \"text\"'"),
        ("text", "''"),
        ("text", "NULL"),
        ("json", "'{\"a\":[1,2,{\"b\":null}]}'"),
        ("jsonb", "'[1, \"x\", false]'"),
        ("bytea", "'\\x00ff10'"),
        ("date", "'2024-02-29'"),
        ("timestamp", "'2024-02-29 12:34:56.789'"),
        ("timestamptz", "'2024-02-29 12:34:56+00'"),
        ("timestamp", "'infinity'"),
        ("int4[]", "'{1,NULL,3}'"),
        ("int4[]", "'{{1,2},{3,4}}'"),
        ("int4[]", "'{}'"),
        ("text[]", "'{a,\"b c\"}'"),
        ("jsonb[]", "array['[1,2]', '{}']::jsonb[]"),
        ("uuid", "'6b8c0b4e-6c1e-4b0c-8f0e-1d8f1a3c5b7a'"),
        ("pair", "row(1, 'x')::pair"),
        ("pair[]", "array[row(1, 'x'), row(NULL, 'y')]::pair[]"),
        ("mood", "'happy'"),
        ("small", "3"),
        ("int4range", "'[1,5)'"),
    ] {
        let heading = format!("f(v {ty}) RETURNS {ty}");
        let text =
            format!("SELECT f(({value})::{ty})::text IS NOT DISTINCT FROM ({value})::{ty}::text");
        let same = call(&mut client, &heading, "return v", &text);
        assert_eq!(rows(&same), ["t"], "{value}::{ty}");
        client.query(&format!("DROP FUNCTION f({ty})"));
    }
    let typed =
        call(&mut client, "f() RETURNS int4[]", "return new Int32Array([5, 6])", "SELECT f()");
    assert_eq!(rows(&typed), ["{5,6}"]);
    let outside = call(&mut client, "g() RETURNS int4", "return 3e9", "SELECT g()");
    assert!(error(&outside).starts_with("22003"), "{outside:?}");
    let checked = call(&mut client, "h() RETURNS small", "return 11", "SELECT h()");
    assert!(error(&checked).starts_with("23514"), "{checked:?}");
    let kinds = call(
        &mut client,
        "k(a int8, b int8, c jsonb, d date, int4) RETURNS text",
        "return [typeof a, typeof b, Array.isArray(c.x), d instanceof Date, $5 + 1].join()",
        "SELECT k(1, 9223372036854775807, '{\"x\": []}', '2000-01-01', 41)",
    );
    assert_eq!(rows(&kinds), ["number,bigint,true,true,42"]);
    assert!(server.stop());
}

#[test]
fn bodies_run_sql() {
    let (_dir, server) = start("js-sql");
    let mut client = Raw::connect(server.port);
    client.query(
        "CREATE TABLE t (id int PRIMARY KEY, s text); INSERT INTO t VALUES (1, 'one'), (2, 'two')",
    );
    let read = call(
        &mut client,
        "f(n int) RETURNS jsonb",
        "return plv8.execute('SELECT id, s FROM t WHERE id <= $1 ORDER BY id', [n])",
        "SELECT f(2)",
    );
    assert_eq!(rows(&read), [r#"[{"s": "one", "id": 1}, {"s": "two", "id": 2}]"#]);
    let count = call(
        &mut client,
        "f(n int) RETURNS jsonb",
        "return plv8.execute('UPDATE t SET s = upper(s) WHERE id <= $1', n)",
        "SELECT f(1)",
    );
    assert_eq!(rows(&count), ["1"]);
    // A caught error has undone what its statement did, and the transaction goes on.
    let caught = call(
        &mut client,
        "f(n int) RETURNS jsonb",
        "try { plv8.execute('INSERT INTO t SELECT i, $1 FROM generate_series(3, 1, -1) i', ['x']) }
         catch (e) { return [e.sqlerrcode, e.detail, plv8.execute('SELECT count(*) FROM t')[0].count] }",
        "SELECT f(1)",
    );
    assert_eq!(rows(&caught), [r#"["23505", "Key (id)=(2) already exists.", 2]"#]);
    let whole = call(
        &mut client,
        "f(n int) RETURNS jsonb",
        "let said = null;
         try { plv8.subtransaction(() => { plv8.execute('DELETE FROM t'); throw new Error('no') }) }
         catch (e) { said = e.message }
         return [said, plv8.execute('SELECT count(*) FROM t')[0].count]",
        "SELECT f(1)",
    );
    assert_eq!(rows(&whole), [r#"["no", 2]"#]);
    let cursor = call(
        &mut client,
        "f(n int) RETURNS jsonb",
        "const plan = plv8.prepare('SELECT i FROM generate_series(1, $1) i', ['int']);
         const cursor = plan.cursor([n]);
         const out = [cursor.fetch().i, cursor.fetch(2).map((r) => r.i)];
         cursor.move(2);
         for (let row; (row = cursor.fetch()); ) out.push(row.i);
         cursor.close();
         plan.free();
         return out",
        "SELECT f(7)",
    );
    assert_eq!(rows(&cursor), ["[1, [2, 3], 6, 7]"]);
    // A query of the body calls a function of the language.
    let nested = call(
        &mut client,
        "g(n int) RETURNS int",
        "return n < 1 ? 0 : n + plv8.execute('SELECT g($1) AS g', [n - 1])[0].g",
        "SELECT g(5)",
    );
    assert_eq!(rows(&nested), ["15"]);
    let found = call(
        &mut client,
        "h() RETURNS int",
        "return plv8.find_function('g')(0) + plv8.find_function('g(int)')(0)",
        "SELECT h()",
    );
    assert_eq!(rows(&found), ["0"]);
    let quoted = call(
        &mut client,
        "q() RETURNS text",
        "return plv8.quote_ident('a B') + plv8.quote_literal(\"it's\") + plv8.quote_nullable(null)",
        "SELECT q()",
    );
    assert_eq!(rows(&quoted), ["\"a B\"'it''s'NULL"]);
    let stable = call(
        &mut client,
        "s() RETURNS int STABLE",
        "return plv8.execute('DELETE FROM t')",
        "SELECT s()",
    );
    assert!(error(&stable).starts_with("0A000"), "{stable:?}");
    assert!(server.stop());
}

#[test]
fn sets_rows_procedures_and_blocks() {
    let (_dir, server) = start("js-sets");
    let mut client = Raw::connect(server.port);
    client.query("CREATE TABLE t (id int)");
    let set = call(
        &mut client,
        "f(n int) RETURNS SETOF int",
        "for (let i = 0; i < n; i++) plv8.return_next(i * i)",
        "SELECT string_agg(f::text, ',') FROM f(4)",
    );
    assert_eq!(rows(&set), ["0,1,4,9"]);
    let table = call(
        &mut client,
        "g() RETURNS TABLE (a int, b text)",
        "plv8.return_next({a: 1, b: 'x'}); return [{a: 2}, {b: 'z', a: 3}]",
        "SELECT a, b FROM g()",
    );
    assert_eq!(rows(&table), ["1|x", "2|NULL", "3|z"]);
    let outs = call(
        &mut client,
        "h(INOUT n int, OUT twice int)",
        "return {n: n + 1, twice: 2 * n}",
        "SELECT * FROM h(4)",
    );
    assert_eq!(rows(&outs), ["5|8"]);
    let record = call(
        &mut client,
        "r() RETURNS record",
        "return {x: 1, y: 'why'}",
        "SELECT * FROM r() AS r (y text, x int)",
    );
    assert_eq!(rows(&record), ["why|1"]);
    let done = client.query(
        "CREATE PROCEDURE p(n int) LANGUAGE javascript AS $$
           for (let i = 0; i < n; i++) {
             plv8.execute('INSERT INTO t VALUES ($1)', [i]);
             if (i % 2) plv8.rollback(); else plv8.commit();
           }
         $$",
    );
    assert!(!done.iter().any(|l| l.starts_with("E ")), "{done:?}");
    client.query("CALL p(5)");
    assert_eq!(
        rows(&client.query("SELECT string_agg(id::text, ',' ORDER BY id) FROM t")),
        ["0,2,4"]
    );
    let noted = client.query("DO LANGUAGE javascript $$ plv8.elog(NOTICE, 'hello', 1 + 1) $$");
    assert!(noted.iter().any(|l| l.contains("hello 2")), "{noted:?}");
    // What a session keeps is its own, and its role's.
    client.query("DO LANGUAGE javascript $$ globalThis.seen = 41 $$");
    let again = call(&mut client, "seen() RETURNS int", "return globalThis.seen", "SELECT seen()");
    assert_eq!(rows(&again), ["41"]);
    let mut other = Raw::connect(server.port);
    assert_eq!(rows(&other.query("SELECT seen()")), ["NULL"]);
    client.query("CREATE ROLE someone; SET ROLE someone");
    assert_eq!(rows(&client.query("SELECT seen()")), ["NULL"]);
    assert!(server.stop());
}

#[test]
fn triggers_see_and_change_rows() {
    let (_dir, server) = start("js-triggers");
    let mut client = Raw::connect(server.port);
    let made = client.query(
        "CREATE TABLE t (id int, gone int, s text, at jsonb);
         ALTER TABLE t DROP COLUMN gone;
         CREATE TABLE log (line text);
         CREATE FUNCTION change() RETURNS trigger LANGUAGE javascript AS $$
           if (TG_OP === 'INSERT' && NEW.id < 0) return null;
           if (TG_OP === 'DELETE') return OLD;
           NEW.s = (NEW.s || '') + TG_ARGV[0];
           NEW.at = {op: TG_OP, when: TG_WHEN, old: OLD && OLD.s};
           return NEW;
         $$;
         CREATE FUNCTION note() RETURNS trigger LANGUAGE javascript AS $$
           plv8.execute('INSERT INTO log VALUES ($1)', [`${TG_LEVEL} ${TG_OP} ${TG_TABLE_NAME}`]);
         $$;
         CREATE TRIGGER a BEFORE INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION change('!');
         CREATE TRIGGER b AFTER INSERT ON t EXECUTE FUNCTION note()",
    );
    assert!(!made.iter().any(|l| l.starts_with("E ")), "{made:?}");
    client.query("INSERT INTO t VALUES (1, 'a'), (-1, 'b'); UPDATE t SET id = 2");
    assert_eq!(
        rows(&client.query("SELECT * FROM t")),
        [r#"2|a!!|{"op": "UPDATE", "old": "a!", "when": "BEFORE"}"#]
    );
    assert_eq!(rows(&client.query("SELECT line FROM log")), ["STATEMENT INSERT t"]);
    client.query("DELETE FROM t");
    assert_eq!(rows(&client.query("SELECT count(*) FROM t")), ["0"]);
    assert!(server.stop());
}

#[test]
fn errors_say_where_and_why() {
    let (_dir, server) = start("js-errors");
    let mut client = Raw::connect(server.port);
    let syntax = client.query("CREATE FUNCTION f() RETURNS int LANGUAGE javascript AS 'return ('");
    assert!(error(&syntax).starts_with("42601"), "{syntax:?}");
    let thrown = call(
        &mut client,
        "f() RETURNS int",
        "\nlet x = 1;\nthrow new TypeError('bad thing')",
        "SELECT f()",
    );
    assert!(error(&thrown).starts_with("38000 TypeError: bad thing"), "{thrown:?}");
    let of_sql = call(
        &mut client,
        "f() RETURNS int",
        "return plv8.execute('SELECT 1/0 AS x')[0].x",
        "SELECT f()",
    );
    assert!(error(&of_sql).starts_with("22012 division by zero"), "{of_sql:?}");
    let own = call(
        &mut client,
        "f() RETURNS int",
        "const e = new Error('mine'); e.sqlerrcode = 'P0001'; throw e",
        "SELECT f()",
    );
    assert!(error(&own).starts_with("P0001 mine"), "{own:?}");
    let deep =
        call(&mut client, "f() RETURNS int", "const g = () => g() + 1; return g()", "SELECT f()");
    assert!(error(&deep).starts_with("54001"), "{deep:?}");
    let closed = call(
        &mut client,
        "closed() RETURNS text",
        "return [typeof require, typeof std, typeof os, typeof fetch, typeof process].join()",
        "SELECT closed()",
    );
    assert_eq!(rows(&closed), ["undefined,undefined,undefined,undefined,undefined"]);
    // A role that may not call a function doesn't find it.
    let denied = client.query(
        "CREATE FUNCTION secret() RETURNS int LANGUAGE javascript AS 'return 7';
         REVOKE EXECUTE ON FUNCTION secret() FROM PUBLIC;
         CREATE ROLE someone; SET ROLE someone;
         DO LANGUAGE javascript $$ plv8.find_function('secret') $$",
    );
    assert!(error(&denied).starts_with("42501"), "{denied:?}");
    let mut client = Raw::connect(server.port);
    let fail = "fail() RETURNS int";
    let failed = call(&mut client, fail, "throw new Error('x')", "SELECT fail()");
    assert!(error(&failed).starts_with("38000"), "{failed:?}");
    fail_often(server.port, "fail()");
    assert_eq!(rows(&client.query("SELECT 7")), ["7"]);
    assert!(server.stop());
}

#[test]
fn endless_and_greedy_bodies_end_alone() {
    let (_dir, server) = start("js-hogs");
    let mut client = Raw::connect(server.port);
    client.query("SET statement_timeout = '200ms'");
    let endless =
        client.query("DO LANGUAGE javascript $$ for (;;) { try { for (;;); } catch (e) { } } $$");
    assert!(error(&endless).starts_with("57014"), "{endless:?}");
    // A body can't catch the end of its statement in a query either.
    let caught = client.query(
        "DO LANGUAGE javascript $$
           for (;;) { try { plv8.execute('SELECT pg_sleep(10)') } catch (e) { } }
         $$",
    );
    assert!(error(&caught).starts_with("57014"), "{caught:?}");
    client.query("RESET statement_timeout; SET session_memory_limit = '64MB'");
    let greedy = client.query(
        "DO LANGUAGE javascript $$ const a = []; for (;;) a.push('x'.repeat(1e6) + a.length) $$",
    );
    assert!(error(&greedy).starts_with("53200"), "{greedy:?}");
    let next = client.query("DO LANGUAGE javascript $$ plv8.elog(NOTICE, 'alive') $$");
    assert!(next.iter().any(|l| l.contains("alive")), "{next:?}");
    // Two workers, more loops than these: others go on.
    let mut loops: Vec<Raw> = (0..4).map(|_| Raw::connect(server.port)).collect();
    for client in &mut loops {
        client.send(&raw::query("DO LANGUAGE javascript $$ for (;;); $$"));
    }
    let mut watcher = Client::connect(server.port).expect("a connection");
    let running = "FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'DO LANGUAGE%'";
    watcher.await_one(&format!("SELECT count(*) {running}"), "4");
    assert_eq!(watcher.one(&format!("SELECT count(pg_cancel_backend(pid)) {running}")), "4");
    for client in &mut loops {
        let ended = client.until(|line| line.starts_with("Z "));
        assert!(error(&ended).starts_with("57014"), "{ended:?}");
    }
    assert!(server.stop());
}

/// Built-ins that go over something long: the library's own hear nothing. Each of these runs for minutes, or for ever.
#[test]
fn long_built_ins_end_with_their_statement() {
    let (_dir, server) = start("js-long");
    let mut client = Raw::connect(server.port);
    client.query("SET session_memory_limit = '500MB'");
    let like = "const a = {length: 2 ** 32 - 1}";
    let sparse = "const a = []; a.length = 2 ** 32 - 1";
    let mut bodies = vec![
        "Array.from({length: 2 ** 32 - 1})".to_owned(),
        "[[], Object.assign([], {length: 2 ** 32 - 1})].flat()".to_owned(),
        "[].concat(Object.assign([], {length: 2 ** 32 - 1}))".to_owned(),
        "for (;;) { try { [].sort.call({length: 2 ** 32 - 1}) } catch (e) { } }".to_owned(),
        "for (;;) { try { 'x'.repeat(2 ** 28) + 'y' } catch (e) { } }".to_owned(),
        "const t = 'ab'.repeat(2 ** 26); for (;;) t.indexOf('z')".to_owned(),
        "'a'.repeat(2 ** 27).indexOf('a'.repeat(2 ** 14) + 'b')".to_owned(),
        "'a'.repeat(2 ** 27).split('a'.repeat(2 ** 14) + 'b')".to_owned(),
        "new Float64Array(5e7).sort().sort().sort().sort().sort()".to_owned(),
    ];
    for method in [
        "sort()",
        "reverse()",
        "fill(1)",
        "copyWithin(5)",
        "join()",
        "shift()",
        "unshift(1)",
        "splice(0, 1)",
        "slice(1)",
        "toReversed()",
        "toSorted()",
        "with(0, 1)",
        "toSpliced(0, 1)",
        "indexOf(1)",
        "forEach(() => 1)",
        "toLocaleString()",
    ] {
        for object in [like, sparse] {
            bodies.push(format!("{object}; [].{}", method.replacen('(', ".call(a, ", 1)));
        }
    }
    for body in bodies {
        client.query("SET statement_timeout = '50ms'");
        let ended = client.query(&format!("DO LANGUAGE javascript $$ {body} $$"));
        let code = error(&ended);
        assert!(code.starts_with("57014") || code.starts_with("53200"), "{body}: {ended:?}");
    }
    client.query("RESET statement_timeout");
    // Memory that has run out can't be caught.
    let greedy = client.query(
        "DO LANGUAGE javascript $$ for (;;) try { const a = []; for (;;) a.push('x' + a.length) } catch (e) { } $$",
    );
    assert!(error(&greedy).starts_with("53200"), "{greedy:?}");
    assert!(server.stop());
}

/// What replaces built-ins for what is long gives what they give for what is short.
#[test]
fn long_built_ins_give_what_short_ones_give() {
    let (_dir, server) = start("js-same");
    let mut client = Raw::connect(server.port);
    let same = call(
        &mut client,
        "same() RETURNS text",
        r#"
        const wrong = [];
        const n = 70000;
        const like = () => { const o = {length: n}; for (let i = 0; i < n; i++) if (i % 7) o[i] = (i * 7919) % n; return o };
        const list = () => Array.prototype.slice.call(like());
        const check = (name, a, b) => { if (JSON.stringify(a) !== JSON.stringify(b)) wrong.push(name) };
        const l = list();
        check('holes', [l.length, 0 in l, 1 in l], [n, false, true]);
        check('sort', Array.prototype.sort.call(like()), {...l.filter(() => true).map(String).sort().map(Number), length: n});
        check('numbers', list().sort((a, b) => a - b)[20], l.filter(() => true).sort((a, b) => a - b)[20]);
        check('fill', Array.prototype.fill.call({length: n}, 3, 2, -1)[n - 2], 3);
        const r = Array.prototype.reverse.call(like());
        check('reverse', [0, 1, 2, 500, n - 1].map((i) => r[i]), [0, 1, 2, 500, n - 1].map((i) => l[n - 1 - i]));
        check('join', Array.prototype.join.call(like(), '-'), l.join('-'));
        check('splice', Array.prototype.splice.call(like(), 5, 3, 'x'), l.slice(5, 8));
        check('with', Array.prototype.with.call(like(), -1, 'z')[n - 1], 'z');
        check('from', Array.from({length: n}, (_, i) => i).length, n);
        check('flat', [[1, [2]], , [3]].flat(2), [1, 2, 3]);
        check('flatMap', [1, 2].flatMap((x) => [x, [x]]), [1, [1], 2, [2]]);
        const typed = new Float64Array(600000).map((_, i) => (i * 7919) % 600000);
        typed[5] = NaN; typed[6] = -0; typed[7] = 0;
        const sorted = typed.toSorted();
        check('typed', sorted.slice(0, -1).every((x, i) => i === 0 || sorted[i - 1] <= x), true);
        check('NaN', [Number.isNaN(sorted.at(-1)), Object.is(sorted[0], -0)], [true, true]);
        const text = 'abcab'.repeat(300000);
        check('repeat', [text.length, text.slice(-7), text[123456]], [1500000, 'ababcab', 'b']);
        check('split', [text.split('ca').length, text.split('ca')[0], text.split('').length, text.split('b', 2)], [300001, 'ab', 1500000, ['a', 'ca']]);
        check('replaceAll', text.replaceAll('ca', '$&$$').length, 1800000);
        check('replace', text.replace('ca', (m, at) => m + at).slice(0, 8), 'abca2bab');
        check('search', [text.indexOf('ca', 10), text.lastIndexOf('ca'), text.includes('bb')], [12, 1499997, false]);
        check('pad', ['x'.padEnd(2000000, 'ab').slice(-2), 'x'.padStart(2000000).length], ['ba', 2000000]);
        return wrong.join() || 'same';
        "#,
        "SELECT same()",
    );
    assert_eq!(rows(&same), ["same"]);
    assert!(server.stop());
}
