//! Stories: statements and what they return. Columns are separated by `|`, NULL is `~`.

use crate::common::Db;

#[test]
fn tpcb_like_transactions() {
    let db = Db::new();
    let mut s = db.session();
    s.sql(
        "create table branches (bid int not null, bbalance int, filler char(88));
         create table accounts (aid int not null, bid int, abalance int, filler char(84)) with (fillfactor=100);
         create table history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));
         insert into branches(bid, bbalance) values (1, 0);
         insert into accounts (aid, bid, abalance) select n, 1, 0 from generate_series(1, 3000) n;
         alter table branches add primary key (bid);
         alter table accounts add primary key (aid);",
    );
    for aid in [1, 17, 3000, 17] {
        s.begin();
        s.sql(&format!("update accounts set abalance = abalance + 5 where aid = {aid}"));
        s.sql("update branches set bbalance = bbalance + 5 where bid = 1");
        s.sql(&format!(
            "insert into history (tid, bid, aid, delta, mtime) values (1, 1, {aid}, 5, current_timestamp)"
        ));
        s.commit();
    }
    assert_eq!(s.sql("select abalance from accounts where aid = 17"), ["10"]);
    assert_eq!(s.sql("select sum(abalance) from accounts"), ["20"]);
    assert_eq!(s.sql("select sum(bbalance) from branches"), ["20"]);
    assert_eq!(s.sql("select count(*), sum(delta) from history"), ["4|20"]);
    assert_eq!(s.sql("select count(*) from accounts where aid between 10 and 20"), ["11"]);
    s.sql("vacuum analyze accounts; truncate history");
    assert_eq!(s.sql("select count(*) from history"), ["0"]);
    assert_eq!(
        s.sql("select max(aid), min(aid), avg(abalance) from accounts"),
        ["3000|1|0.00666666666666666667"]
    );
}

#[test]
fn joins_of_all_kinds() {
    let db = Db::new();
    let mut s = db.session();
    s.sql(
        "create table a (x int, n text);
         create table b (y int, m text);
         insert into a values (1, 'one'), (2, 'two'), (null, 'none'), (3, 'three');
         insert into b values (2, 'zwei'), (3, 'drei'), (3, 'drei bis'), (4, 'vier'), (null, 'nichts')",
    );
    let joins: [(&str, &[&str]); 8] = [
        ("a join b on x = y", &["2|zwei", "3|drei", "3|drei bis"]),
        ("a left join b on x = y", &["1|~", "2|zwei", "3|drei", "3|drei bis", "~|~"]),
        ("a right join b on x = y", &["2|zwei", "3|drei", "3|drei bis", "~|nichts", "~|vier"]),
        (
            "a full join b on x = y",
            &["1|~", "2|zwei", "3|drei", "3|drei bis", "~|nichts", "~|vier", "~|~"],
        ),
        ("a join b on x < y and y = 4", &["1|vier", "2|vier", "3|vier"]),
        ("a left join b on x < y and m = 'vier'", &["1|vier", "2|vier", "3|vier", "~|~"]),
        ("a, lateral (select m from b where y = x limit 1) l", &["2|zwei", "3|drei"]),
        (
            "a left join lateral (select m from b where y = x limit 1) l on true",
            &["1|~", "2|zwei", "3|drei", "~|~"],
        ),
    ];
    for (join, expected) in joins {
        assert_eq!(s.sql(&format!("select x, m from {join} order by x, m")), expected, "{join}");
    }
    assert_eq!(s.sql("select count(*) from a cross join b"), ["20"]);
    assert_eq!(
        s.sql("select n from a where exists (select 1 from b where y = x) order by n"),
        ["three", "two"]
    );
    assert_eq!(
        s.sql("select n from a where not exists (select 1 from b where y = x) order by n"),
        ["none", "one"]
    );
    assert_eq!(s.sql("select n from a where x in (select y from b) order by n"), ["three", "two"]);
    assert!(s.sql("select n from a where x not in (select y from b)").is_empty());
    assert_eq!(
        s.sql("select n from a where x not in (select y from b where y is not null) order by n"),
        ["one"]
    );
    assert_eq!(
        s.sql("select n, (select max(m) from b where y = x) from a order by n"),
        ["none|~", "one|~", "three|drei bis", "two|zwei"]
    );
    assert_eq!(
        s.sql("select n from a where x >= all (select y from b where y < 4) order by n"),
        ["three"]
    );
    assert_eq!(
        s.error("select (select y from b)"),
        "21000 more than one row returned by a subquery used as an expression"
    );
}

#[test]
fn groups_sets_and_order() {
    let db = Db::new();
    let mut s = db.session();
    s.sql(
        "create table t (g text, v int);
         insert into t values ('a', 1), ('b', 2), ('a', 3), (null, 4), ('b', null), (null, 6)",
    );
    assert_eq!(
        s.sql("select g, count(*), count(v), sum(v), min(v), max(v) from t group by g order by g"),
        ["a|2|2|4|1|3", "b|2|1|2|2|2", "~|2|2|10|4|6"]
    );
    assert_eq!(s.sql("select g from t group by g having sum(v) > 3 order by g desc"), ["~", "a"]);
    assert_eq!(s.sql("select distinct g from t order by g nulls first"), ["~", "a", "b"]);
    assert_eq!(
        s.sql("select distinct on (g) g, v from t order by g, v desc nulls last"),
        ["a|3", "b|2", "~|6"]
    );
    assert_eq!(s.sql("select count(distinct g), count(*) filter (where v > 2) from t"), ["2|3"]);
    assert_eq!(s.sql("select sum(v), count(*) from t where false"), ["~|0"]);
    assert_eq!(s.sql("values (1), (2) union values (2), (3) order by 1"), ["1", "2", "3"]);
    assert_eq!(s.sql("values (1), (2) union all values (2) order by 1"), ["1", "2", "2"]);
    assert_eq!(s.sql("values (1), (2) intersect values (2), (3)"), ["2"]);
    assert_eq!(s.sql("values (1), (2) except values (2), (3)"), ["1"]);
    assert_eq!(s.sql("select v from t order by v desc nulls last limit 2 offset 1"), ["4", "3"]);
    assert_eq!(
        s.sql("with w as (select v from t where v > 2) select count(*), max(v) from w"),
        ["3|6"]
    );
    assert_eq!(s.sql("select generate_series(1, 3), 'x'"), ["1|x", "2|x", "3|x"]);
    assert_eq!(
        s.sql("select n, o from generate_series(5, 6) with ordinality g(n, o)"),
        ["5|1", "6|2"]
    );
    assert_eq!(
        s.sql("select string_agg(g, ',' order by v desc) from t where g is not null"),
        ["b,a,b,a"]
    );
    assert_eq!(s.error("select 1 limit -1"), "2201W LIMIT must not be negative");
    assert_eq!(s.error("select 1/(v-1) from t"), "22012 division by zero");
}

#[test]
fn expressions() {
    let db = Db::new();
    let mut s = db.session();
    let one: [(&str, &str); 14] = [
        ("case when null then 1 when 1 = 1 then 2 end", "2"),
        ("coalesce(null, null, 3)", "3"),
        ("nullif(1, 1)", "~"),
        ("greatest(1, null, 3), least(2, 1)", "3|1"),
        ("null and false, null and true, null or true, not null", "f|~|t|~"),
        ("1 is distinct from null, null is not distinct from null", "t|t"),
        ("(1, 2) < (1, 3), (1, null) = (1, 2), (1, null) = (2, 2)", "t|~|f"),
        ("3 = any (array[1, 2, 3]), 3 <> all (array[1, 2, null])", "t|~"),
        ("array[1, 2, 3], (array[[1, 2], [3, 4]])[2][1]", "{1,2,3}|3"),
        ("'abc' like 'a%', 'abc' not like '_b'", "t|t"),
        ("array(select n from generate_series(1, 3) n)", "{1,2,3}"),
        ("null is true, null is unknown, true is not false", "f|t|t"),
        ("'5'::int + 1, 1.50::numeric(5, 1), 'x'::varchar(3)", "6|1.5|x"),
        ("current_database(), current_user, current_schema()", "postgres|postgres|public"),
    ];
    for (expression, expected) in one {
        assert_eq!(s.sql(&format!("select {expression}")), [expected], "{expression}");
    }
}

#[test]
fn constraints_are_kept() {
    let db = Db::new();
    let mut s = db.session();
    s.sql(
        "create table t (a int primary key, b int not null default 7, c text unique,
         check (a > 0), constraint small check (b < 100))",
    );
    s.sql("insert into t (a, c) values (1, 'x')");
    assert_eq!(s.sql("select * from t"), ["1|7|x"]);
    let errors = [
        (
            "insert into t values (1)",
            "23505 duplicate key value violates unique constraint \"t_pkey\"",
        ),
        (
            "insert into t values (2, 1, 'x')",
            "23505 duplicate key value violates unique constraint \"t_c_key\"",
        ),
        (
            "insert into t values (2, null)",
            "23502 null value in column \"b\" of relation \"t\" violates not-null constraint",
        ),
        (
            "insert into t values (-2)",
            "23514 new row for relation \"t\" violates check constraint \"t_a_check\"",
        ),
        (
            "update t set b = 100",
            "23514 new row for relation \"t\" violates check constraint \"small\"",
        ),
        ("create table t (x int)", "42P07 relation \"t\" already exists"),
        ("create table u (x int, x int)", "42701 column \"x\" specified more than once"),
        ("drop table nothing", "42P01 table \"nothing\" does not exist"),
        (
            "alter table t drop column nothing",
            "42703 column \"nothing\" of relation \"t\" does not exist",
        ),
        (
            "drop index t_pkey",
            "2BP01 cannot drop index t_pkey because constraint t_pkey on table t requires it",
        ),
    ];
    for (statement, expected) in errors {
        assert_eq!(s.error(statement), expected, "{statement}");
    }
    s.sql("insert into t values (2, 1, null), (3, 1, null); update t set a = a + 10");
    assert_eq!(s.sql("select a from t order by a"), ["11", "12", "13"]);
    s.sql("delete from t where a = 12");
    assert_eq!(s.sql("select a from t where a = 12"), Vec::<String>::new());
    s.sql("drop table if exists nothing");
    assert_eq!(s.hooks.notices, ["NOTICE: table \"nothing\" does not exist, skipping"]);
}

#[test]
fn foreign_keys_in_both_directions() {
    let db = Db::new();
    let mut s = db.session();
    s.sql(
        "create table p (id int primary key, v text);
         create table c (id int primary key, p int references p);
         insert into p values (1, 'a'), (2, 'b');
         insert into c values (1, 1), (2, null)",
    );
    assert_eq!(
        s.error("insert into c values (3, 9)"),
        "23503 insert or update on table \"c\" violates foreign key constraint \"c_p_fkey\""
    );
    assert_eq!(
        s.error("delete from p where id = 1"),
        "23503 update or delete on table \"p\" violates foreign key constraint \"c_p_fkey\" on table \"c\""
    );
    assert_eq!(
        s.error("update p set id = 5 where id = 1"),
        "23503 update or delete on table \"p\" violates foreign key constraint \"c_p_fkey\" on table \"c\""
    );
    s.sql("update p set v = 'z'; delete from p where id = 2; update c set p = 1");
    assert_eq!(
        s.error("drop table p"),
        "2BP01 cannot drop table p because other objects depend on it"
    );
    assert_eq!(
        s.error("truncate p"),
        "0A000 cannot truncate a table referenced in a foreign key constraint"
    );
    s.sql(
        "alter table c drop constraint c_p_fkey;
         alter table c add foreign key (p) references p on delete cascade on update cascade",
    );
    s.sql("update p set id = 7");
    assert_eq!(s.sql("select id, p from c order by id"), ["1|7", "2|7"]);
    s.sql("delete from p");
    assert_eq!(s.sql("select count(*) from c"), ["0"]);
    s.sql("insert into p values (1, 'a'); insert into c values (1, 1)");
    s.sql("alter table c drop constraint c_p_fkey");
    s.sql("insert into c values (2, 8)");
    assert_eq!(
        s.error("alter table c add constraint k foreign key (p) references p(id)"),
        "23503 insert or update on table \"c\" violates foreign key constraint \"k\""
    );
    s.sql("delete from c where p = 8; alter table c add foreign key (p) references p on delete set null");
    s.sql("delete from p");
    assert_eq!(s.sql("select id, p from c"), ["1|~"]);
    s.sql("drop table p cascade; drop table c");
    s.sql(
        "create table p (id int primary key);
         create table c (id int default 0 references p on delete set default);
         insert into p values (0), (1); insert into c values (1); delete from p where id = 1",
    );
    assert_eq!(s.sql("select id from c"), ["0"]);
    assert_eq!(
        s.error("delete from p"),
        "23503 update or delete on table \"p\" violates foreign key constraint \"c_id_fkey\" on table \"c\""
    );
    // A table that refers to itself.
    s.sql("create table n (id int primary key, up int references n); insert into n values (1, 2), (2, 1)");
    s.sql("delete from n");
}

#[test]
fn changes_with_other_tables_and_returning() {
    let db = Db::new();
    let mut s = db.session();
    s.sql(
        "create table t (a int, b int); create table u (a int, c int);
         insert into t values (1, 1), (2, 2), (3, 3); insert into u values (1, 10), (3, 30)",
    );
    let mut rows = s.sql("update t set b = c from u where t.a = u.a returning t.a, b, c");
    rows.sort();
    assert_eq!(rows, ["1|10|10", "3|30|30"]);
    assert_eq!(
        s.sql("delete from t using u where t.a = u.a and c > 10 returning *"),
        ["3|30|3|30"]
    );
    assert_eq!(s.sql("insert into t select a + 100, c from u returning a"), ["101", "103"]);
    assert_eq!(s.sql("insert into t values (7, default) returning a, b"), ["7|~"]);
    assert_eq!(s.sql("update t set b = b + 1 where a = 1 returning b"), ["11"]);
    assert_eq!(s.sql("select a from t order by a"), ["1", "2", "7", "101", "103"]);
    assert_eq!(s.sql("select a from t where a < 3 order by a for update"), ["1", "2"]);
}

#[test]
fn tables_change_their_shape() {
    let db = Db::new();
    let mut s = db.session();
    s.sql("create table t (a int, b text); insert into t values (1, 'x'), (2, 'y')");
    s.sql("alter table t add column c int default 5 not null");
    assert_eq!(s.sql("select * from t order by a"), ["1|x|5", "2|y|5"]);
    s.sql("alter table t drop column b; insert into t values (3)");
    assert_eq!(s.sql("select * from t order by a"), ["1|5", "2|5", "3|5"]);
    s.sql("alter table t alter column a type text; create unique index on t (a)");
    assert_eq!(s.sql("select a || '!' from t order by a"), ["1!", "2!", "3!"]);
    s.sql("alter table t alter a type int using a::int * 2; alter table t rename column c to d");
    assert_eq!(s.sql("select a, d from t where a = 4"), ["4|5"]);
    s.sql("alter table t rename to t2; alter index t_a_idx rename to i");
    assert_eq!(s.error("select * from t"), "42P01 relation \"t\" does not exist");
    assert_eq!(
        s.error("insert into t2 values (4)"),
        "23505 duplicate key value violates unique constraint \"i\""
    );
    assert_eq!(
        s.error("insert into t2 values (9, 1), (9, 2)"),
        "23505 duplicate key value violates unique constraint \"i\""
    );
    s.sql("drop index i; insert into t2 values (4)");
    assert_eq!(
        s.error("create unique index on t2 (a)"),
        "23505 could not create unique index \"t2_a_idx\""
    );
    s.sql("create table s as select a, count(*) n from t2 group by a");
    assert_eq!(s.sql("select * from s where a = 4"), ["4|2"]);
    s.sql("create schema sc; create table sc.t (x int); insert into sc.t values (1)");
    assert_eq!(s.sql("select x from sc.t"), ["1"]);
    assert_eq!(
        s.error("drop schema sc"),
        "2BP01 cannot drop schema sc because other objects depend on it"
    );
    s.sql("drop schema sc cascade; vacuum full t2; comment on table t2 is 'about t2'");
    assert_eq!(s.sql("select count(*) from t2"), ["4"]);
    assert_eq!(s.sql("select obj_description('t2'::regclass, 'pg_class')"), ["about t2"]);
}

#[test]
fn copy_in_and_out() {
    let db = Db::new();
    let mut s = db.session();
    s.sql("create table t (a int, b text)");
    s.hooks.copy_data.push_back(b"1,\"x,y\"\n2,\n".to_vec());
    s.sql("copy t from stdin (format csv)");
    assert_eq!(s.sql("select * from t order by a"), ["1|x,y", "2|~"]);
    let prepared = s.prepare("copy t to stdout").expect("copy to");
    let copied = s.execute(&prepared).expect("copy to").1.copied;
    assert_eq!(String::from_utf8_lossy(&copied), "1\tx,y\n2\t\\N\n");
    let prepared = s.prepare("copy (select b, a from t) to stdout csv header").expect("copy to");
    let copied = s.execute(&prepared).expect("copy to").1.copied;
    assert_eq!(String::from_utf8_lossy(&copied), "b,a\n\"x,y\",1\n,2\n");
    let prepared = s.prepare("copy t to stdout (format binary)").expect("copy to");
    let copied = s.execute(&prepared).expect("copy to").1.copied;
    s.hooks.copy_data.push_back(copied);
    s.sql("copy t from stdin (format binary)");
    assert_eq!(s.sql("select count(*), count(b) from t"), ["4|2"]);
    s.hooks.copy_data.push_back(b"1\n".to_vec());
    assert_eq!(s.error("copy t from stdin"), "22P04 missing data for column \"b\"");
}

#[test]
fn plans_are_explained() {
    let db = Db::new();
    let mut s = db.session();
    s.sql("create table t (a int primary key, b int); insert into t select n, n from generate_series(1, 5000) n; analyze t");
    let lines = s.sql("explain (costs off) select b from t where a = 5");
    assert_eq!(lines, ["Index Scan using t_pkey on t", "  Index Cond: (a = 5)"]);
    let lines = s.sql("explain (costs off) update t set b = 0 where b > 7");
    assert_eq!(lines, ["Update on t", "  ->  Seq Scan on t", "        Filter: (b > 7)"]);
    let lines =
        s.sql("explain (analyze, costs off, timing off, summary off) select count(*) from t");
    assert_eq!(
        lines,
        ["Aggregate (actual rows=1 loops=1)", "  ->  Seq Scan on t (actual rows=5000 loops=1)"]
    );
}

#[test]
fn a_sort_larger_than_work_mem_goes_through_files() {
    let db = Db::new();
    let mut s = db.session();
    s.sql("create table t (a int, b text)");
    s.sql("insert into t select (n * 7919) % 50000, 'some text that is rather long ' || n from generate_series(0, 49999) n");
    s.set("work_mem", "64kB");
    let rows = s.sql("select a, length(b) from t order by a desc");
    assert_eq!(rows.len(), 50000);
    assert!(rows.iter().enumerate().all(|(n, row)| row.starts_with(&format!("{}|", 49999 - n))));
    assert_eq!(s.sql("select a from t order by a limit 2 offset 40000"), ["40000", "40001"]);
}

#[test]
fn a_waiting_update_goes_on_with_the_newest_row() {
    let db = Db::new();
    let mut first = db.session();
    first.sql("create table t (id int primary key, v int); insert into t values (1, 10), (2, 20)");
    first.begin();
    first.sql("update t set v = v + 1 where id = 1; update t set v = 99 where id = 2");
    let waiter = |statement: &'static str| {
        let db = &db;
        move || {
            let mut s = db.session();
            s.sql(statement);
        }
    };
    std::thread::scope(|scope| {
        let by_key = scope.spawn(waiter("update t set v = v + 100 where id = 1"));
        let rechecked = scope.spawn(waiter("delete from t where v = 20"));
        // Whether they have begun to wait or not, they see the same in the end.
        first.commit();
        by_key.join().expect("the update by key");
        rechecked.join().expect("the delete");
    });
    let rows = first.sql("select id, v from t order by id");
    assert!(rows[0] == "1|111", "{rows:?}");
    assert!(rows.len() == 1 || rows[1] == "2|99", "{rows:?}");
}

#[test]
fn statistics_that_changed_meanwhile_can_be_dropped() {
    let db = Db::new();
    let mut first = db.session();
    first.sql("create table t (id int); insert into t values (1); analyze t");
    first.begin();
    first.change_statistics("t", false).expect("nobody else has them");
    std::thread::scope(|scope| {
        let dropping = scope.spawn(|| {
            let mut second = db.session();
            second.begin();
            second.change_statistics("t", true).map(|()| second.commit())
        });
        while db.engine.txn.locks.snapshot().iter().all(|lock| lock.granted) {
            std::thread::yield_now();
        }
        first.commit();
        dropping.join().expect("the thread does not panic").expect("a newer version may go, too");
    });
}

#[test]
fn serialization_failures_above_read_committed() {
    let db = Db::new();
    let (mut a, mut b) = (db.session(), db.session());
    a.sql("create table t (id int primary key, v int); insert into t values (1, 10)");
    a.begin_with(txn::Isolation::RepeatableRead);
    assert_eq!(a.sql("select v from t"), ["10"]);
    b.sql("update t set v = 11");
    assert_eq!(a.sql("select v from t"), ["10"]);
    assert_eq!(
        a.error("update t set v = 12 where id = 1"),
        "40001 could not serialize access due to concurrent update"
    );
    a.rollback();
    assert_eq!(a.sql("select v from t"), ["11"]);
}

#[test]
fn one_of_two_equal_keys_waits_and_fails_or_goes_in() {
    for commits in [true, false] {
        let db = Db::new();
        let mut first = db.session();
        first.sql("create table t (id int primary key)");
        first.begin();
        first.sql("insert into t values (1)");
        std::thread::scope(|scope| {
            let second = scope.spawn(|| db.session().try_sql("insert into t values (1)"));
            if commits {
                first.commit();
            } else {
                first.rollback();
            }
            assert_eq!(second.join().expect("no panic").is_err(), commits);
        });
        assert_eq!(first.sql("select count(*) from t"), ["1"]);
    }
}

/// `explain analyze` without what differs from run to run.
fn measured(s: &mut crate::common::Session<'_>, query: &str) -> Vec<String> {
    s.sql(&format!("explain (analyze, costs off, timing off, summary off) {query}"))
}

#[test]
fn an_index_only_scan_visits_only_pages_that_are_not_visible_to_all() {
    let db = Db::new();
    let mut s = db.session();
    s.sql("create table t (a int primary key, b int); insert into t select n, n from generate_series(1, 3000) n");
    s.sql("vacuum t");
    let query = "select a from t where a between 10 and 19";
    let fetches = |s: &mut crate::common::Session<'_>| measured(s, query).pop().unwrap_or_default();
    assert_eq!(
        measured(&mut s, query),
        [
            "Index Only Scan using t_pkey on t (actual rows=10 loops=1)",
            "  Index Cond: ((a >= 10) AND (a <= 19))",
            "  Heap Fetches: 0"
        ]
    );
    // A change makes the scan look at the page's rows, and nothing is seen twice or missed.
    s.sql(
        "update t set b = 0 where a = 12; delete from t where a = 13; insert into t values (-1, 0)",
    );
    assert_ne!(fetches(&mut s), "  Heap Fetches: 0");
    assert_eq!(s.sql(query).len(), 9);
    s.sql("vacuum t");
    assert_eq!(fetches(&mut s), "  Heap Fetches: 0");
    assert_eq!(s.sql("select relallvisible > 0 from pg_class where relname = 't'"), ["t"]);
    s.set("enable_indexonlyscan", "off");
    assert!(!measured(&mut s, query)[0].contains("Only"));
}

#[test]
fn an_index_only_scan_sees_what_its_snapshot_sees() {
    let db = Db::new();
    let mut s = db.session();
    s.sql("create table t (a int primary key, b text); insert into t select n, 'x' from generate_series(1, 1000) n; vacuum t");
    let mut old = db.session();
    old.begin_with(txn::Isolation::RepeatableRead);
    let count = "select count(*), min(a), max(a) from t where a > 0";
    assert_eq!(old.sql(count), ["1000|1|1000"]);
    s.sql("delete from t where a <= 100; insert into t values (2000, 'y')");
    s.sql("vacuum t");
    assert_eq!(s.sql(count), ["901|101|2000"]);
    // Its rows are still there, and the new one isn't.
    assert_eq!(old.sql(count), ["1000|1|1000"]);
    old.commit();
    s.sql("vacuum t");
    assert_eq!(s.sql(count), ["901|101|2000"]);
    s.begin();
    s.sql("insert into t values (3000, 'z')");
    assert_eq!(s.sql(count), ["902|101|3000"]);
    s.rollback();
    assert_eq!(s.sql(count), ["901|101|2000"]);
}

/// Runs a query with each of the settings; all give the same rows, in any order.
#[track_caller]
fn same_rows(s: &mut crate::common::Session<'_>, query: &str, ways: &[(&[&str], &str)]) {
    let mut expected: Option<Vec<String>> = None;
    for (off, node) in ways {
        off.iter().for_each(|name| s.set(name, "off"));
        let plan = s.sql(&format!("explain (costs off) {query}"));
        assert!(plan.iter().any(|line| line.contains(node)), "{query}: {node}\n{plan:#?}");
        let mut rows = s.sql(query);
        rows.sort();
        match &expected {
            None => expected = Some(rows),
            Some(all) => assert_eq!(*all, rows, "{query}: {node}"),
        }
        off.iter().for_each(|name| s.set(name, "on"));
    }
}

#[test]
fn merge_joins_of_every_kind_give_what_hash_joins_give() {
    let db = Db::new();
    let mut s = db.session();
    s.sql("create table l (k int, v int); create table r (k int, w int)");
    // Groups of several rows, one that is longer than a batch, keys that one side lacks, NULLs.
    s.sql("insert into l select nullif((n * 7919) % 400, 13), n from generate_series(1, 2500) n");
    s.sql(
        "insert into r select nullif((n * 31) % 500 + 50, 77), n from generate_series(1, 2500) n",
    );
    s.sql("insert into r select 60, n from generate_series(1, 200) n; analyze l; analyze r");
    let ways: [(&[&str], &str); 2] = [
        (&["enable_mergejoin", "enable_nestloop"], "Hash"),
        (&["enable_hashjoin", "enable_nestloop"], "Merge"),
    ];
    for kind in ["join", "left join", "right join", "full join"] {
        for more in ["", " and v < w", " and v % 3 = w % 3"] {
            let query = format!("select l.k, v, r.k, w from l {kind} r on l.k = r.k{more}");
            same_rows(&mut s, &query, &ways);
        }
    }
    for test in ["exists", "not exists"] {
        for more in ["", " and v < w"] {
            let query =
                format!("select k, v from l where {test} (select from r where r.k = l.k{more})");
            same_rows(&mut s, &query, &ways);
        }
    }
    s.set("enable_hashjoin", "off");
    s.set("enable_nestloop", "off");
    // The left side's order is the output's: no sort above.
    let plan = s.sql("explain (costs off) select l.k from l left join r on l.k = r.k order by l.k");
    assert_eq!(plan[0], "Merge Left Join", "{plan:#?}");
}

#[test]
fn rows_of_with_go_to_files_beyond_work_mem() {
    let db = Db::new();
    let mut s = db.session();
    s.set("work_mem", "64kB");
    let written = || sched::with_current(|task| task.used(base::usage::Use::TempWritten));
    let before = written();
    // Two readers, one of them begins anew for each row of another.
    let query = "with w as materialized (select n, nullif(n % 7, 3) as k, 'text ' || n as t, null::int
                   from generate_series(1, 30000) n)
                 select count(*), sum(a.n), count(a.k), max(a.t), (select count(*) from w where k = 5)
                   from w a, (values (1), (2)) v (x) where a.n % 2 = v.x % 2";
    assert_eq!(s.sql(query), ["30000|450015000|25714|text 9999|4286"]);
    assert!(written() > before + 500_000);
    assert_eq!(s.sql("with w as materialized (select from generate_series(1, 5000)) select count(*) from w a, (select from w limit 3) b"), ["15000"]);
}

#[test]
fn a_small_side_is_looked_for_in_a_large_one() {
    let db = Db::new();
    let mut s = db.session();
    s.sql("create table small (k int, v int); create table large (k int, w int)");
    s.sql(
        "insert into small select nullif((n * 7) % 900, 5), n % 50 from generate_series(1, 6000) n",
    );
    s.sql("insert into large select nullif((n * 31) % 700, 9), n % 40 from generate_series(1, 25000) n");
    s.sql("analyze small; analyze large");
    for (test, node) in [("exists", "Hash Right Semi Join"), ("not exists", "Hash Right Anti Join")]
    {
        let ways: [(&[&str], &str); 2] = [
            (&["enable_mergejoin", "enable_nestloop"], node),
            (&["enable_hashjoin", "enable_nestloop"], "Merge"),
        ];
        // In memory, and in files.
        for memory in ["4MB", "64kB"] {
            s.set("work_mem", memory);
            for more in ["", " and v > w", " and v % 7 = 3"] {
                let found = format!("select from large l where l.k = s.k{more}");
                let query = format!("select k, v from small s where {test} ({found})");
                same_rows(&mut s, &query, &ways);
            }
        }
    }
}

#[test]
fn a_merge_join_reads_no_further_than_it_must() {
    let db = Db::new();
    let mut s = db.session();
    s.sql("create table l (k int primary key); create table r (k int primary key)");
    s.sql("insert into l select n from generate_series(1, 20000) n; insert into r select n from generate_series(1, 50) n");
    s.sql("vacuum analyze l; vacuum analyze r");
    s.set("enable_hashjoin", "off");
    s.set("enable_nestloop", "off");
    let plan = measured(&mut s, "select count(*) from l join r using (k)");
    let scan = plan.iter().find(|line| line.contains("on l ")).expect("a scan of l");
    assert!(!scan.contains("rows=20000"), "{plan:#?}");
}

#[test]
fn bitmaps_find_what_a_scan_finds() {
    let db = Db::new();
    let mut s = db.session();
    s.sql("create table t (a int, b int, c text); create index on t (a); create index on t (b)");
    s.sql("insert into t select (n * 37) % 200, (n * 53) % 300, 'text ' || n from generate_series(1, 20000) n; analyze t");
    s.sql("update t set c = 'new' where a = 7; update t set b = 301 where a = 9; delete from t where b = 8");
    let ways: [(&[&str], &str); 2] = [
        (&["enable_bitmapscan", "enable_indexscan"], "Seq Scan"),
        (&["enable_seqscan", "enable_indexscan"], "Bitmap Heap Scan"),
    ];
    for condition in [
        "a = 7",
        "a = 7 and b = 11",
        "a = 7 or b = 11",
        "a in (1, 2, 3) and b < 30",
        "(a = 3 and b > 100) or (b = 5 and c like 'text 1%')",
        "a < 150 and b < 200",
    ] {
        same_rows(&mut s, &format!("select a, b, c from t where {condition}"), &ways);
    }
    let lines = measured(&mut s, "select * from t where a = 7 or b = 11");
    assert_eq!(lines.len(), 8, "{lines:#?}");
    assert!(lines[2].starts_with("  Heap Blocks: exact="), "{lines:#?}");
    // In little memory only the pages are known, and the rows are asked again.
    s.set("work_mem", "64kB");
    s.set("enable_seqscan", "off");
    s.set("enable_indexscan", "off");
    let query = "select a, b, c from t where a < 150 and b + 0 > 5";
    let lines = measured(&mut s, query);
    assert!(lines.iter().any(|l| l.contains("lossy=")), "{lines:#?}");
    let found = s.sql(&format!("select count(*), sum(a) from ({query}) x"));
    s.set("enable_bitmapscan", "off");
    assert_eq!(found, s.sql(&format!("select count(*), sum(a) from ({query}) x")));
}

#[test]
fn sorts_go_group_by_group_where_rows_come_half_sorted() {
    let db = Db::new();
    let mut s = db.session();
    s.sql("create table t (a int, b int); create index on t (a)");
    s.sql("insert into t select n / 100, (n * 7919) % 5000 from generate_series(1, 5000) n; vacuum analyze t");
    let query = "select a, b from t order by a, b desc limit 150";
    let plan = s.sql(&format!("explain (costs off) {query}"));
    assert_eq!(
        plan,
        [
            "Limit",
            "  ->  Incremental Sort",
            "        Sort Key: a, b DESC",
            "        Presorted Key: a",
            "        ->  Index Scan using t_a_idx on t"
        ]
    );
    let rows = s.sql(query);
    s.set("enable_incremental_sort", "off");
    assert!(!s.sql(&format!("explain {query}")).concat().contains("Incremental"));
    assert_eq!(rows, s.sql(query));
    s.set("enable_incremental_sort", "on");
    s.set("enable_seqscan", "off");
    s.set("work_mem", "64kB");
    let all = "select a, b from t order by a, b desc";
    let (rows, sorted) =
        (s.sql(all), s.sql("select a, b from (select a, b from t offset 0) x order by a, b desc"));
    assert_eq!(rows, sorted);
}

#[test]
fn groups_of_sorted_rows_are_those_of_a_hash_table() {
    let db = Db::new();
    let mut s = db.session();
    s.sql("create table t (a int, b int, c text); create index on t (a, b)");
    s.sql("insert into t select nullif(n / 700, 3), n % 3, 'x' || n % 11 from generate_series(1, 5000) n; vacuum analyze t");
    let ways: [(&[&str], &str); 2] =
        [(&["enable_sort"], "HashAggregate"), (&["enable_hashagg"], "GroupAggregate")];
    for query in [
        "select a, count(*), sum(b), min(c) from t group by a",
        "select a, b, count(distinct c), string_agg(c, ',' order by c) from t group by a, b",
        "select c, count(*) filter (where b = 1), avg(a) from t group by c",
    ] {
        same_rows(&mut s, query, &ways);
    }
    same_rows(
        &mut s,
        "select distinct a, b from t",
        &[(&["enable_sort", "enable_indexscan"], "HashAggregate"), (&["enable_hashagg"], "Unique")],
    );
    let plan = s.sql("explain (costs off) select a, count(*) from t group by a order by a limit 1");
    assert_eq!(plan[1], "  ->  GroupAggregate", "{plan:#?}");
}

#[test]
fn indexes_on_expressions_find_ranges() {
    let db = Db::new();
    let mut s = db.session();
    s.sql("create table t (a int, b text); create index e on t ((a * 2)); create index f on t (lower(b), a)");
    s.sql("insert into t select n, 'N' || n from generate_series(1, 4000) n; insert into t values (null, null); analyze t");
    s.set("enable_seqscan", "off");
    s.set("enable_bitmapscan", "off");
    let plan = s.sql("explain (costs off) select a from t where a * 2 > 7990 and a * 2 <= 7996");
    assert_eq!(
        plan,
        ["Index Scan using e on t", "  Index Cond: (((a * 2) > 7990) AND ((a * 2) <= 7996))"]
    );
    assert_eq!(
        s.sql("select a from t where a * 2 > 7990 and a * 2 <= 7996"),
        ["3996", "3997", "3998"]
    );
    assert_eq!(s.sql("select a from t where lower(b) = 'n7' and a > 5"), ["7"]);
    assert_eq!(s.sql("select count(*) from t where lower(b) >= 'n3'"), ["1778"]);
}

/// An index that knows only a part of each row of a list reads all that agrees in that part.
#[test]
fn rows_of_a_list_are_sought_in_the_index_that_knows_all_of_them() {
    let db = Db::new();
    let mut s = db.session();
    s.sql("create table t (id int, d int, w int, c int, primary key (w, d, id)); create index i on t (w, d, c, id)");
    s.sql("insert into t select n / 40, n % 10, n / 10 % 4, n * 7 % 500 from generate_series(0, 39999) n");
    s.sql("vacuum analyze t");
    let query = "select d, c from t where (w, d, id) in ((1, 1, 500), (1, 2, 600), (2, 3, 700))";
    let plan = s.sql(&format!("explain (costs off) {query}"));
    assert_eq!(plan[0], "Index Scan using t_pkey on t", "{plan:#?}");
}

#[test]
fn lists_are_sought_among_the_columns_of_an_index() {
    let db = Db::new();
    let mut s = db.session();
    s.sql("create table t (a int, b int, c int); create index i on t (a, b, c)");
    s.sql("insert into t select n % 10, n % 7, n from generate_series(1, 4000) n; analyze t");
    s.set("enable_seqscan", "off");
    s.set("enable_bitmapscan", "off");
    s.set("enable_indexonlyscan", "off");
    let query = "select a, b, c from t where a = any (array[9, 3, 3, null]) and b = 2 and c > 3900";
    assert_eq!(
        s.sql(&format!("explain (costs off) {query}")),
        [
            "Index Scan using i on t",
            "  Index Cond: ((a = ANY ('{9,3,3,NULL}'::integer[])) AND (b = 2) AND (c > 3900))"
        ]
    );
    let found = s.sql(&format!("{query} order by a desc, c desc"));
    s.set("enable_indexscan", "off");
    s.set("enable_seqscan", "on");
    assert_eq!(found, s.sql(&format!("{query} order by a desc, c desc")));
    assert!(!found.is_empty());
}

/// Each left row has thousands of partners, so what comes of a left batch is handed up in parts.
#[test]
fn joins_of_few_keys_come_in_parts_and_are_whole() {
    let db = Db::new();
    let mut s = db.session();
    s.sql(
        "create table a (k int, v int); create table b (k int, v int, t text);
         insert into a select case when n % 50 = 0 then null when n % 7 = 0 then 9 else n % 2 end, n
             from generate_series(1, 200) n;
         insert into b select case when n % 50 = 1 then null when n % 7 = 1 then 8 else n % 2 end, n, 'row ' || n
             from generate_series(1, 12000) n;
         analyze a; analyze b",
    );
    let from =
        |join: &str| format!("select count(*), sum(x.v), sum(y.v), count(y.t) from a x {join}");
    let test = |not: &str, more: &str| {
        format!(
            "select count(*), sum(v) from a x where {not} exists (select from b y where x.k = y.k {more})"
        )
    };
    let of_b = |not: &str, more: &str| {
        format!(
            "select count(*), sum(v) from b x where {not} exists (select from a y where x.k = y.k {more})"
        )
    };
    let mut queries = Vec::new();
    for kind in ["", "left", "right", "full"] {
        queries.push(from(&format!("{kind} join b y on x.k = y.k")));
        if kind != "full" {
            queries.push(from(&format!("{kind} join b y on x.k = y.k and x.v + y.v > 12100")));
        }
    }
    for not in ["", "not"] {
        for more in ["", "and x.v * 60 > y.v + 2990", "and x.v + y.v < 0"] {
            queries.extend([test(not, more), of_b(not, more)]);
        }
    }
    for query in queries {
        let mut answers = Vec::new();
        for off in [["enable_mergejoin", "enable_nestloop"], ["enable_hashjoin", "enable_nestloop"]]
        {
            off.iter().for_each(|name| s.set(name, "off"));
            let how = s.sql(&format!("explain (costs off) {query}")).join("\n");
            answers.push((how, s.sql(&query)));
            off.iter().for_each(|name| s.set(name, "on"));
        }
        assert!(answers[0].0.contains("Hash "), "{}", answers[0].0);
        assert!(!answers[1].0.contains("Hash "), "{}", answers[1].0);
        assert_eq!(answers[0].1, answers[1].1, "{query}");
    }
    // Without a key: by nested loops, whose inner side is itself one.
    let nested = "select count(*), sum(x.v), sum(z.v), count(y.v) from b x
        left join (a y full join (select v from b where v < 100) z on true) on z.v < x.v - 11950 and y.v < 3";
    // 50 rows of x have partners: 1 to 49 of z, each with 2 of y.
    let expected = s.sql(
        "select sum(greatest(n, 1)), sum(greatest(n, 1) * v), sum(case when n > 0 then n * (n / 2 + 1) / 2 end), sum(n)
         from (select v, greatest(v - 11951, 0) * 2 as n from b) x",
    );
    assert_eq!(s.sql(nested), expected);
    // By loops whose right side is run for each left row.
    s.sql("create index on b (k)");
    let lateral = "(select k, v, t from b where b.k = x.k and b.v + 0 > x.v offset 0) y on true";
    for query in [
        from(&format!("join lateral {lateral}")),
        from(&format!("left join lateral {lateral} and y.v % 3 = 1")),
        from("left join b y on x.k = y.k and y.v > x.v and y.v + x.v > 12100"),
        test("", "and x.v + y.v > 12050"),
        test("not", "and x.v + y.v > 12050"),
    ] {
        let mut answers = Vec::new();
        for off in [
            &["enable_hashjoin", "enable_mergejoin", "enable_seqscan", "enable_bitmapscan"][..],
            &["enable_indexscan", "enable_bitmapscan"],
        ] {
            off.iter().for_each(|name| s.set(name, "off"));
            answers.push(s.sql(&query));
            off.iter().for_each(|name| s.set(name, "on"));
        }
        assert_eq!(answers[0], answers[1], "{query}");
        let by_hand = query.replace("join lateral (select k, v, t from b where b.k = x.k and b.v + 0 > x.v offset 0) y on true",
            "join b y on y.k = x.k and y.v > x.v");
        assert_eq!(answers[0], s.sql(&by_hand), "{query}");
    }
    // A reader of one row has a few thousand made, not all partners of a batch.
    s.sql("create sequence made");
    for from in [
        "a x join lateral (select from b where b.v >= x.v offset 0) y on nextval('made') > 0",
        "a x join b y on x.k = y.k and nextval('made') > 0",
        "b y full join b x on true where nextval('made') > 0",
    ] {
        s.sql("select setval('made', 1)");
        assert_eq!(s.sql(&format!("select 1 from {from} limit 1")), ["1"]);
        let made: u64 = s.sql("select nextval('made')")[0].parse().expect("a number");
        assert!(made < 5000, "{from}: {made}");
    }
}

#[test]
fn a_body_in_sql_is_planned_once() {
    let db = Db::new();
    let mut s = db.session();
    s.sql(
        "create table t (k int primary key, v int);
         insert into t values (1, 21);
         create function twice(int) returns int language sql stable
             as 'select v * 2 from t where k = $1'",
    );
    let planned = || db.engine.routines.planned();
    let before = planned();
    assert_eq!(s.sql("select sum(twice(1)) from generate_series(1, 100000)"), ["4200000"]);
    assert_eq!(planned() - before, 1);
    // Another statement, and another session, use the same plan.
    assert_eq!(s.sql("select twice(1)"), ["42"]);
    assert_eq!(db.session().sql("select twice(1)"), ["42"]);
    assert_eq!(planned() - before, 1);
    // The definitions that it was planned for have changed.
    s.sql("create index on t (v)");
    assert_eq!(s.sql("select twice(1)"), ["42"]);
    assert_eq!(planned() - before, 2);
}

#[test]
fn rules_and_defaults_are_planned_once_for_all_sessions() {
    let db = Db::new();
    let mut s = db.session();
    s.sql(
        "create table parent (k int primary key);
         create table child (n int, k int default 3 + 4 references parent on delete set default,
                             check (n < 100));
         insert into parent select generate_series(1, 9);
         insert into child select n, n from generate_series(1, 3) n",
    );
    let planned = || db.engine.stored_plans.planned();
    let before = planned();
    // The rows' rules, and the default.
    s.sql("delete from parent where k = 1");
    assert_eq!(planned() - before, 2);
    s.sql("delete from parent where k = 2");
    db.session().sql("delete from parent where k = 3");
    assert_eq!(planned() - before, 2, "the same for each key that goes away");
    assert_eq!(s.sql("select k from child"), ["7", "7", "7"]);
    // A definition that changes is looked at anew.
    s.sql("alter table child alter k set default 8");
    s.sql("delete from parent where k = 7");
    assert_eq!(s.sql("select k from child"), ["8", "8", "8"]);
}
