//! Stories of texts and their plans.

use crate::testing::{error, lifted, plan, prepared, show, with_context};

/// Plans must be these, one operator a line (indentation is for the reader).
#[track_caller]
fn check(text: &str, want: &str) {
    let got = plan(text);
    let lines = |s: &str| -> Vec<String> {
        s.lines().map(|l| l.trim().to_owned()).filter(|l| !l.is_empty()).collect()
    };
    assert_eq!(lines(&got), lines(want), "{text}\n{got}");
}

#[test]
fn pgbench_finds_its_rows_by_key() {
    check(
        "SELECT abalance FROM pgbench_accounts WHERE aid = 42",
        "index pgbench_accounts_pkey (abalance) = 42",
    );
    check(
        "UPDATE pgbench_accounts SET abalance = abalance + -5 WHERE aid = 42",
        "update pgbench_accounts set 3=int4pl(#4, -5) filter int4eq(#2, 42)
           index pgbench_accounts_pkey (tid, root, aid, bid, abalance, filler) = 42",
    );
    check(
        "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 2, 3, 4, CURRENT_TIMESTAMP)",
        "insert pgbench_history
           project 1, 2, 3, 4, timestamp(current_timestamp), NULL
             one row",
    );
    check(
        "SELECT abalance FROM pgbench_accounts WHERE aid = $1",
        "index pgbench_accounts_pkey (abalance) = $1",
    );
}

#[test]
fn literals_of_pgbench_become_parameters() {
    let (p, l, _) =
        lifted("UPDATE pgbench_accounts SET abalance = abalance + -4123 WHERE aid = 77;");
    assert_eq!(p.params.len(), 2);
    assert_eq!(l.len(), 2);
    assert_eq!(
        show(&p).lines().next(),
        Some("update pgbench_accounts set 3=int4pl(#4, $2) filter int4eq(#2, $1)")
    );
    let (p, l, _) =
        lifted("select b from t where c = 5 and d > 1.5 and b = 'x' and e < '2020-01-01' limit 3");
    let types: Vec<u32> = l.iter().map(|l| l.ty.0).collect();
    assert_eq!(types, [23, 1700, 25, 1184, 20], "{}", show(&p));
    let (_, l, _) = lifted("select a from t order by 1");
    assert!(l.is_empty());
    let (_, l, _) = lifted("select a + 1 from t group by a + 1");
    assert!(l.is_empty());
}

#[test]
fn ranges_lists_and_orders_use_the_index() {
    check(
        "select a from t where a > 5 and a <= 10",
        "bitmap t (a) [(int4gt(#0, 5) and int4le(#0, 10))]
           bits t_pkey > 5 <= 10",
    );
    check(
        "select a from t where a in (1, 2, 3)",
        "bitmap t (a) [#0 int4eq any {1,2,3}]
           bits t_pkey any {1,2,3}",
    );
    check(
        "select a from t where a = any($1)",
        "bitmap t (a) [#0 int4eq any $1]
           bits t_pkey any $1",
    );
    check(
        "select a from t order by a limit 3",
        "limit 3 offset all
           index only t_pkey (a)",
    );
    check(
        "select a from t order by a desc limit 3",
        "limit 3 offset all
           index only t_pkey (a) backward",
    );
    check("select z from u where x = 1 and y = 2", "index u_pkey (z) = 1, 2");
    check(
        "select y from u where x = 1 and y > 2",
        "project #1
           bitmap u (x, y) [(int4eq(#0, 1) and int4gt(#1, 2))]
             bits u_pkey = 1 > 2",
    );
    check("select a from t where a = 5000000000", "index t_pkey (a) = 5000000000");
    check("select a from t where a = 5::int8", "index t_pkey (a) = 5");
    check(
        "select max(a) from t",
        "aggregate plain [] max(#0)
           limit 1 offset all
             index only t_pkey (a) backward",
    );
    check(
        "select a from t where false",
        "project NULL
           nothing",
    );
}

#[test]
fn conditions_become_bounds() {
    let cases = [
        ("select a from t where a between 5::int8 and 9::int8", "t_pkey >= 5 <= 9"),
        ("select z from u where (x, y) in ((1, 2), (3, 4))", "either = 1, 2 or = 3, 4"),
        ("select z from u where x in (1, 2) and y in (3, 4)", "any {1,2} any {3,4}"),
        ("select z from u where (x, y) > (1, 2) order by x, y limit 3", "> 1, 2"),
        ("select z from u where x = 5 and (y, x) <= (7, 1)", "= 5 <= 7"),
    ];
    for (text, want) in cases {
        let got = plan(text);
        assert!(got.contains(want), "{text}\n{got}");
    }
}

#[test]
fn joins_choose_their_way() {
    check(
        "select b, z from t join u on t.a = u.x where t.a = 7",
        "project #3, #1
           hash Inner [#0=#0]
             bitmap u (x, z) [int4eq(#0, 7)]
               bits u_pkey = 7
             index t_pkey (a, b) = 7",
    );
}

#[test]
fn errors_are_postgresqls() {
    let cases = [
        ("select nope from t", "42703", "column \"nope\" does not exist", 8),
        ("select * from nope", "42P01", "relation \"nope\" does not exist", 15),
        ("select a = b from t", "42883", "operator does not exist: integer = text", 10),
        ("select t.nope from t", "42703", "column t.nope does not exist", 8),
        ("select x.a from t", "42P01", "missing FROM-clause entry for table \"x\"", 8),
        (
            "select a, count(*) from t",
            "42803",
            "column \"t.a\" must appear in the GROUP BY clause or be used in an aggregate function",
            8,
        ),
        (
            "select a from t where count(*) > 1",
            "42803",
            "aggregate functions are not allowed in WHERE",
            23,
        ),
        ("select a from t t1, t t2", "42702", "column reference \"a\" is ambiguous", 8),
        ("select 1 from t, t", "42712", "table name \"t\" specified more than once", 0),
        (
            "insert into t (a) values (1, 2)",
            "42601",
            "INSERT has more expressions than target columns",
            30,
        ),
        (
            "insert into t (a, b) values (1)",
            "42601",
            "INSERT has more target columns than expressions",
            19,
        ),
        (
            "insert into t (nope) values (1)",
            "42703",
            "column \"nope\" of relation \"t\" does not exist",
            16,
        ),
        (
            "insert into t (a) values (true)",
            "42804",
            "column \"a\" is of type integer but expression is of type boolean",
            27,
        ),
        ("update t set nope = 1", "42703", "column \"nope\" of relation \"t\" does not exist", 14),
        ("select nofunc(1)", "42883", "function nofunc(integer) does not exist", 8),
        ("select 'x'::int4", "22P02", "invalid input syntax for type integer: \"x\"", 8),
        ("select 1 where 'x'", "22P02", "invalid input syntax for type boolean: \"x\"", 16),
        (
            "select 1 where 1",
            "42804",
            "argument of WHERE must be type boolean, not type integer",
            16,
        ),
        ("select a from t order by 2", "42P10", "ORDER BY position 2 is not in select list", 26),
        (
            "select distinct a from t order by b",
            "42P10",
            "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
            35,
        ),
        ("select (select a, b from t)", "42601", "subquery must return only one column", 8),
        (
            "select 1 union select 1, 2",
            "42601",
            "each UNION query must have the same number of columns",
            23,
        ),
        ("select 1 union select 'x'", "22P02", "invalid input syntax for type integer: \"x\"", 23),
        (
            "select case when true then 1 else 'x'::text end",
            "42804",
            "CASE types text and integer cannot be matched",
            28,
        ),
        ("select 1::nope", "42704", "type \"nope\" does not exist", 11),
        ("select $2::int", "42P18", "could not determine data type of parameter $1", 0),
        ("selec 1", "42601", "syntax error at or near \"selec\"", 1),
        ("select a from t limit b", "42P10", "argument of LIMIT must not contain variables", 23),
        ("select sum(count(*)) from t", "42803", "aggregate function calls cannot be nested", 12),
        ("create table x (a int, a int)", "42701", "column \"a\" specified more than once", 0),
        ("create table x (a nope)", "42704", "type \"nope\" does not exist", 19),
    ];
    let mut wrong = Vec::new();
    for (text, code, message, position) in cases {
        let got = error(text);
        if got != (code.to_owned(), message.to_owned(), position) {
            wrong.push(format!("{text}: {got:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn parameters_get_their_types_from_their_use() {
    let types = |text: &str| {
        prepared(text).map(|p| p.params.iter().map(|t| t.0).collect::<Vec<_>>()).unwrap()
    };
    assert_eq!(types("select 1 from t where a = $1 and b = $2 and d > $3"), [23, 25, 1700]);
    assert_eq!(types("insert into t (a, b, c) values ($1, $2, $3)"), [23, 25, 20]);
    assert_eq!(types("select 1 from t limit $1"), [20]);
    assert_eq!(types("select $1::int8"), [20]);
    with_context(|cx| {
        let p = crate::prepare("select $1", &[types::oids::TEXT], cx, None).unwrap().0;
        assert_eq!(p.params, [types::oids::TEXT]);
    });
}

/// Prints the plans of a file's statements (separated by lines of dashes), to look at by hand:
/// `PLAN_FILE=queries.txt cargo test -p sql -- --ignored --nocapture plan_file`.
#[test]
#[ignore = "for use by hand"]
fn plan_file() {
    let Ok(path) = std::env::var("PLAN_FILE") else { return };
    let text = std::fs::read_to_string(path).expect("the file is readable");
    for query in text.split("\n-----") {
        match prepared(query) {
            Ok(p) => println!("{query}\n=> {}\n", show(&p)),
            Err(e) => println!(
                "{query}\n=> ERROR {} {} at {}\n",
                e.code().as_str(),
                e.message(),
                e.fields().position
            ),
        }
    }
}

#[test]
fn nested_subqueries_end_in_an_error_or_a_plan() {
    for depth in [100, 300, 2000] {
        let text =
            format!("{}select 1 as c{}", "select * from (".repeat(depth), ") x".repeat(depth));
        // What is too deep for PostgreSQL's grammar is a syntax error there, too.
        if let Err(e) = prepared(&text) {
            let exhausted = e.message().starts_with("memory exhausted at or near");
            assert_eq!(e.code().as_str(), if exhausted { "42601" } else { "54001" }, "{e}");
        }
    }
}

#[test]
fn deep_checks_and_defaults_do_not_overflow_a_workers_stack() {
    let run = || {
        for depth in [100, 400, 1000, 2000, 4000] {
            let check = format!("create table n (a bool check ({}a))", "not ".repeat(depth));
            let default = format!("create table n (a bool default ({}true))", "not ".repeat(depth));
            for text in [check, default] {
                if let Err(e) = prepared(&text) {
                    assert_eq!(e.code().as_str(), "54001", "{}", e.message());
                }
            }
        }
    };
    let worker = std::thread::Builder::new().stack_size(8 << 20).spawn(run);
    assert!(worker.expect("a thread").join().is_ok());
}

#[test]
fn windows_sort_once_for_one_definition() {
    let text = plan(
        "select sum(c) over w, rank() over w, count(*) over (order by b) from t \
         window w as (partition by b order by d)",
    );
    assert_eq!(text.matches("window [").count(), 2, "{text}");
    // The order by b is the beginning of the order by b, d.
    assert_eq!(text.matches("sort ").count(), 1, "{text}");
}

#[test]
fn with_queries_used_once_stand_in_place() {
    let text = plan("with x as (select * from t) select b from x where a = 1");
    assert!(text.contains("index t_pkey"), "{text}");
    let text = plan("with x as materialized (select * from t) select b from x where a = 1");
    assert!(text.contains("cte 0"), "{text}");
    let text = plan(
        "with recursive r(n) as (select 1 union all select n + 1 from r where n < 5) select * from r",
    );
    assert!(text.contains("recursive union all") && text.contains("work table r"), "{text}");
}

#[test]
fn literals_with_casts_become_parameters() {
    let (_, l, _) =
        lifted("select 5::int, 5::bigint, '7'::int, date '2020-01-01', 'a'::text, 1::smallint");
    let types: Vec<u32> = l.iter().map(|l| l.ty.0).collect();
    assert_eq!(types, [23, 20, 23, 1082, 25, 23]);
    // The value is the type's only with a modifier or with the catalog.
    let (_, l, _) = lifted("select 'abc'::varchar(2), 't'::regclass, '[]'::json");
    assert_eq!(l.len(), 0);
}

#[test]
fn a_partial_index_is_found_by_the_values_of_lifted_literals() {
    let places = |l: &[crate::prepare::Lifted]| l.iter().map(|l| l.literal).collect::<Vec<_>>();
    let (p, l, _) = lifted("select id from w where state = 'open' and n = 5");
    assert!(show(&p).contains("w_open (id) = "), "{}", show(&p));
    assert_eq!(places(&l), [1]);
    // Another value has a plan of its own.
    let (p, l, _) = lifted("select id from w where state = 'shut' and n = 5");
    assert!(show(&p).contains("seq w "), "{}", show(&p));
    assert_eq!(places(&l), [1]);
    // What has nothing to do with it stays a parameter.
    let (_, l, _) = lifted("select state from w where id = 7 and n = 5");
    assert_eq!(places(&l), [0, 1]);
    let text = plan("select id from w where state in ('open', 'shut') and n = 5");
    assert!(text.contains("seq w "), "{text}");
}

#[test]
fn costs_choose_between_ways() {
    // Two rows by their keys: united in a bitmap.
    let text = plan("select b from t where a = 5 or a = 9000");
    assert!(text.contains("bits or") && text.matches("bits t_pkey").count() == 2, "{text}");
    // An arm without an index: no bitmap.
    assert!(plan("select b from t where a = 5 or c = 9").contains("seq t "));
    // Only key columns: the index has them.
    let text = plan("select x, y from u where x = 1 order by y limit 2");
    assert!(text.contains("index only u_pkey"), "{text}");
    let text = plan("select x, z from u where x = 1 order by y limit 2");
    assert!(text.contains("index u_pkey"), "{text}");
    // An equal column is of no account for the order.
    let text = plan("select x, y from u where x = 1 order by x, y limit 5");
    assert!(!text.contains("sort"), "{text}");
    // The order of a list's values is the index's.
    let text = plan("select z from u where x = any ($1) order by x, y limit 5");
    assert!(!text.contains("sort"), "{text}");
    let text = plan("select x, count(*) from u group by x order by x limit 3");
    assert!(text.contains("aggregate sorted") && !text.contains("sort #"), "{text}");
}

#[test]
fn what_is_not_supported_is_named_by_the_manuals_words() {
    for (text, words) in [
        ("select * from xmltable('/a' passing '<a/>' columns a int)", "XMLTABLE"),
        ("select xmlelement(name a)", "XMLELEMENT"),
    ] {
        let error = prepared(text).err().expect(text);
        assert_eq!(error.message(), format!("{words} is not supported"), "{text}");
    }
}
