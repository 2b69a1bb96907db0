//! Code of guests that calls the server that calls the code again: it ends with `54001`, in each language, through each
//! callback, and through several languages in turn.

use crate::support::language::{error, install_java, make_java, make_wasm, rows, run};
use crate::support::raw::Raw;
use crate::support::{Server, TempDir};

fn start(name: &str) -> (TempDir, Server, Raw) {
    let dir = TempDir::new(name);
    let server = Server::start(&dir.path().join("data"), &["workers=2"]);
    let client = Raw::connect(server.port);
    (dir, server, client)
}

/// Every function of `plv8`, called with a value whose methods all make the same call.
#[test]
fn each_callback_of_javascript_into_itself_ends() {
    let (_dir, server, mut client) = start("nesting-js");
    run(
        &mut client,
        "CREATE FUNCTION takes(v jsonb) RETURNS jsonb LANGUAGE javascript AS 'return v'",
    );
    let names = run(
        &mut client,
        "DO LANGUAGE javascript $$ plv8.elog(NOTICE, Object.keys(plv8).join()) $$",
    );
    let names = names.iter().find(|l| l.contains("execute")).expect("the notice").clone();
    let names = names.split_whitespace().last().expect("a word").to_owned();
    let lists = [
        "bait",
        "'SELECT $1::text AS a', bait",
        "'SELECT $1::text AS a', [bait]",
        "18, bait",
        "'SELECT 1', [bait]",
    ];
    let mut deep = 0;
    for name in names.split(',').filter(|name| *name != "version") {
        for list in lists {
            let text = format!(
                "DO LANGUAGE javascript $$
                   const call = () => plv8.{name}({list});
                   const bait = function () {{ return call() }};
                   bait.toString = bait.valueOf = bait.toJSON = bait;
                   Object.defineProperty(bait, 'a', {{get: call, enumerable: true}});
                   const made = call();
                   if (made && made.execute) made.execute([bait]);
                   if (made && made.cursor) made.cursor([bait]);
                 $$"
            );
            let ended = client.query(&text);
            deep += usize::from(error(&ended).starts_with("54001"));
            assert_eq!(rows(&client.query("SELECT 7")), ["7"], "after {name}({list}): {ended:?}");
        }
    }
    assert!(deep > 10, "{deep} calls only came to the end of the stack");
    for body in [
        "plv8.subtransaction(function f() { plv8.subtransaction(f) })",
        "function f() { try { plv8.subtransaction(f) } catch (e) { plv8.subtransaction(f) } } f()",
        "const v = {toJSON() { return plv8.find_function('takes')(v) }, toString() { return plv8.execute('SELECT takes($1)', [v]) }};
         plv8.execute('SELECT takes($1)', [v])",
        "function f() { plv8.subtransaction(() => { throw {toString: f, get message() { return f() }} }) } f()",
        "Error.prepareStackTrace = () => plv8.execute('SELECT 1/0'); plv8.execute('SELECT 1/0')",
    ] {
        client.query("SET statement_timeout = '5s'");
        let ended = client.query(&format!("DO LANGUAGE javascript $$ {body} $$"));
        assert_ne!(error(&ended), "no error", "{body}");
        assert_eq!(rows(&client.query("SELECT 7")), ["7"], "{body}");
    }
    assert!(server.stop());
}

/// A function in WebAssembly that runs a text of SQL.
const RUNS: &str = r#"(module
  (import "threadgres" "execute" (func $execute (param i32 i32 i32 i32) (result i32)))
  (import "threadgres" "rethrow" (func $rethrow))
  (memory (export "memory") 2)
  (func (export "alloc") (param i32) (result i32) (i32.const 65536))
  (func (export "run") (param i32 i32) (result i64)
    (if (i32.lt_s (call $execute (local.get 0) (local.get 1) (i32.const 0) (i32.const 0)) (i32.const 0))
      (then (call $rethrow)))
    (i64.const 0)))"#;

#[test]
fn languages_that_call_each_other_end() {
    let (dir, server, mut client) = start("nesting-mixed");
    run(
        &mut client,
        "CREATE FUNCTION by_js(t text) RETURNS int8 LANGUAGE javascript AS $$ plv8.execute(t); return 0 $$;
         CREATE FUNCTION by_js_sub(t text) RETURNS int8 LANGUAGE javascript AS $$
           plv8.subtransaction(() => plv8.prepare(t).execute()); return 0 $$;
         CREATE FUNCTION by_plpgsql(t text) RETURNS int8 LANGUAGE plpgsql AS $$ BEGIN EXECUTE t; RETURN 0; END $$;
         CREATE FUNCTION by_handler(t text) RETURNS int8 LANGUAGE plpgsql AS $$
           BEGIN EXECUTE t; RETURN 0; EXCEPTION WHEN division_by_zero THEN RETURN 1; END $$;
         CREATE FUNCTION by_sql(t text) RETURNS int8 LANGUAGE sql AS $$ SELECT by_plpgsql(t) $$",
    );
    make_wasm(&mut client, "by_wasm(t text) RETURNS int8", RUNS, "run");
    let mut ways = vec!["by_js", "by_js_sub", "by_plpgsql", "by_handler", "by_sql", "by_wasm"];
    if install_java(&dir, &server) {
        client = Raw::connect(server.port);
        make_java(&mut client, "by_java(t text) RETURNS text", "ask");
        ways.push("by_java");
    }
    for first in &ways {
        for second in &ways {
            let next = |n: usize, way: &str| {
                format!(
                    "CREATE OR REPLACE FUNCTION step{n}() RETURNS int8 LANGUAGE sql AS
                       $f$ SELECT {way}('SELECT step{}()')::text::int8 $f$",
                    1 - n
                )
            };
            run(&mut client, "SET check_function_bodies = off");
            run(&mut client, &next(0, first));
            run(&mut client, &next(1, second));
            let ended = client.query("SELECT step0()");
            assert!(error(&ended).starts_with("54001"), "{first} and {second}: {ended:?}");
            assert_eq!(rows(&client.query("SELECT 7")), ["7"], "{first} and {second}");
        }
    }
    assert!(server.stop());
}
