//! Random queries over random tables, each read, joined, grouped and sorted in several ways: the
//! settings `enable_*` and a tiny `work_mem` change the way, never the rows.
//!
//! `WAYS_SEED=n` and `WAYS=n` (queries) ask for others than `make test` does.

use crate::common::{Db, Session};
use crate::random::Random;

/// The plan nodes that can be forbidden.
const WAYS: [&str; 10] = [
    "enable_seqscan",
    "enable_indexscan",
    "enable_indexonlyscan",
    "enable_bitmapscan",
    "enable_hashjoin",
    "enable_mergejoin",
    "enable_nestloop",
    "enable_hashagg",
    "enable_sort",
    "enable_incremental_sort",
];

/// Duplicates on all sides, NULLs in every key, keys of three widths, and statistics and visibility
/// that are not quite true any more.
const TABLES: &str = "
    create table a (k int, m bigint, t text, v int);
    create table b (k bigint, m int, t varchar(20), w int);
    create table c (k smallint, u int primary key, d date);
    insert into a select nullif((n * 7919) % 90, 13), nullif((n * 31) % 41, 5),
        case when n % 11 > 0 then 'x' || n % 30 end, (n * 53) % 1000 from generate_series(1, 1200) n;
    insert into b select nullif((n * 104729) % 110, 17), (n * 17) % 37,
        case when n % 7 > 0 then 'x' || n % 45 end, (n * 71) % 100 from generate_series(1, 500) n;
    insert into c select nullif(n % 60, 3), n, date '2024-01-01' + n % 9 from generate_series(1, 150) n;
    create index a_k on a (k);
    create index a_mt on a (m desc, t);
    create index a_part on a (v) where v > 500 and t is not null;
    create index a_low on a (k, v) where k in (1, 2, 3, 4);
    create index b_k on b (k nulls first, w);
    create index b_mt on b (m, t desc nulls last);
    create index b_w on b ((w % 10), m);
    create index c_k on c (k);
    vacuum analyze a; vacuum analyze b; vacuum analyze c;
    update a set v = v + 1 where v % 97 = 0; update a set k = k + 1 where v % 101 = 0;
    delete from a where v % 103 = 0; delete from b where w = 55;
    insert into b values (null, null, null, null), (7, 7, 'x7', 7);";

struct Query {
    text: String,
    /// The rows come in a certain order.
    ordered: bool,
}

/// Makes queries.
struct Maker(Random);

impl Maker {
    fn one<'l>(&mut self, list: &[&'l str]) -> &'l str {
        list[self.0.index(list.len())]
    }

    fn number(&mut self, below: u64) -> u64 {
        self.0.below(below)
    }

    /// A condition on one table's rows.
    fn filter(&mut self, table: &str) -> String {
        let n = self.number(100);
        let of_a = [
            format!("a.k < {n}"),
            format!("a.k in (1, 4, {n}, null)"),
            format!("a.k = {} and a.v > {n}", n % 5),
            format!("a.v > {}", 450 + n),
            format!("a.v between {n} and {} and a.t is not null", 5 * n),
            format!("a.v > {} and a.t like 'x%'", 500 + n),
            format!("a.m is null or a.k = {n}"),
            format!("a.m = {} and a.t > 'x{n}'", n % 41),
            format!("(a.k = {n} or a.m = {}) and a.v % 2 = 0", n % 30),
        ];
        let of_b = [
            format!("b.k >= {n}"),
            format!("b.k is null or b.w < {n}"),
            format!("b.m = {} and b.t is not null", n % 37),
            format!("b.w % 10 = {} and b.m > {}", n % 10, n % 20),
            format!("b.k in ({n}, 7, 8) and b.w > 10"),
            format!("not (b.w > {n})"),
        ];
        let of_c = [
            format!("c.u > {n}"),
            format!("c.k = {}", n % 60),
            format!("c.d < date '2024-01-0{}'", 1 + n % 9),
        ];
        let list: &[String] = match table {
            "a" => &of_a,
            "b" => &of_b,
            _ => &of_c,
        };
        match self.0.index(list.len() + 2) {
            n if n < list.len() => list[n].clone(),
            _ => "true".to_owned(),
        }
    }

    /// The condition that joins two tables.
    fn on(&mut self, left: &str, right: &str) -> String {
        let mut on = match (left, right) {
            ("a", "b") | ("b", "a") => self
                .one(&[
                    "a.k = b.k",
                    "a.m = b.m",
                    "a.t = b.t",
                    "a.k = b.k and a.m = b.m",
                    "a.k = b.m",
                ])
                .to_owned(),
            ("c", other) | (other, "c") => {
                let plain = self.one(&["k = c.k", "m = c.k", "k = c.u", "m = c.u"]);
                format!("{other}.{plain}")
            }
            _ => "true".to_owned(),
        };
        let number = |table: &str| match table {
            "a" => "a.v",
            "b" => "b.w",
            _ => "c.u",
        };
        match self.number(6) {
            0 => on += &format!(" and {} < {}", number(left), number(right)),
            1 => on += &format!(" and {} % 3 <> {} % 3", number(left), number(right)),
            2 => on += &format!(" and {}", self.filter(right)),
            3 => on += &format!(" and {}", self.filter(left)),
            _ => {}
        }
        on
    }

    fn pair(&mut self) -> (&'static str, &'static str) {
        [("a", "b"), ("b", "a"), ("a", "c"), ("c", "a"), ("b", "c"), ("c", "b")][self.0.index(6)]
    }

    fn kind(&mut self) -> &'static str {
        self.one(&["join", "left join", "right join", "full join"])
    }

    /// Two or three tables.
    fn join(&mut self) -> Query {
        let (l, r) = self.pair();
        let (kind, on, filter) = (self.kind(), self.on(l, r), self.filter(l));
        let text = if self.number(2) == 0 {
            format!("select * from {l} {kind} {r} on {on} where {filter}")
        } else {
            let third = ["a", "b", "c"].into_iter().find(|t| *t != l && *t != r).unwrap_or("c");
            let (kind2, on2) = (self.one(&["join", "left join"]), self.on(l, third));
            let more = self.filter(third);
            format!(
                "select count(*), sum({l}.k), sum({r}.k), sum({third}.k), min({l}.m_) from \
                 (select *, {l}.k as m_ from {l}) {l} {kind} {r} on {on} {kind2} {third} on {on2} \
                 where {filter} and {more}"
            )
        };
        Query { text, ordered: false }
    }

    /// A test of other rows.
    fn test(&mut self, of: &str, inner: &str) -> String {
        let (on, filter) = (self.on(of, inner), self.filter(inner));
        match self.number(5) {
            0 | 1 => format!("exists (select from {inner} where {on} and {filter})"),
            2 | 3 => format!("not exists (select from {inner} where {on} and {filter})"),
            _ => {
                let not = self.one(&["", "not "]);
                format!("{of}.k {not}in (select {inner}.k from {inner} where {filter})")
            }
        }
    }

    fn tests(&mut self) -> Query {
        let (of, inner) = self.pair();
        let (first, filter) = (self.test(of, inner), self.filter(of));
        let mut text = format!("select {of}.* from {of} where {first} and {filter}");
        if self.number(2) == 0 {
            text += &format!(" and {}", self.test(of, inner));
        }
        Query { text, ordered: false }
    }

    /// Rows in order, perhaps only some of them.
    fn sorted(&mut self) -> Query {
        let turn = |n: u64| ["", " desc", " nulls first", " desc nulls last"][n as usize];
        let (t1, t2) = (turn(self.number(4)), turn(self.number(4)));
        let limit = self.one(&["", " limit 7", " limit 300 offset 11"]);
        let text = match self.number(3) {
            0 => format!(
                "select * from a where {} order by k{t1}, v{t2}, m, t{limit}",
                self.filter("a")
            ),
            1 => format!(
                "select m, t, w from b where {} order by m{t1}, t{t2}, w, k{limit}",
                self.filter("b")
            ),
            _ => format!(
                "select a.k, a.v, b.w from a join b on a.k = b.k where {} \
                 order by a.k{t1}, a.v{t2}, b.w{limit}",
                self.filter("a")
            ),
        };
        Query { text, ordered: true }
    }

    fn grouped(&mut self) -> Query {
        let (key, having) = (
            self.one(&["k", "m", "k, m", "t", "v % 7"]),
            self.one(&["", " having count(*) > 3", " having min(v) < 100"]),
        );
        let text = format!(
            "select {key}, count(*), sum(v), min(t), max(m), count(distinct v) from a \
             where {} group by {key}{having}",
            self.filter("a")
        );
        Query { text, ordered: false }
    }

    /// A right side that is run again with other values.
    fn again(&mut self) -> Query {
        let (on, filter) = (self.one(&["b.k = a.k", "b.m = a.m", "b.k < a.k"]), self.filter("b"));
        let of_a = self.filter("a");
        let text = match self.number(3) {
            0 => format!(
                "select a.v, x.w from a cross join lateral (select w from b where {on} and {filter} \
                 order by w, m limit 2) x where {of_a}"
            ),
            1 => format!(
                "select a.v, (select count(c.u) from b left join c on b.m = c.u where {on} and \
                 {filter}) from a where a.v < 300 and {of_a}"
            ),
            _ => format!(
                "select a.v, x.n from a left join lateral (select count(*) as n, b.t from b join c \
                 on b.m = c.k where {on} and exists (select from c d where d.u = b.w) group by b.t) x \
                 on true where a.v < 200 and {of_a}"
            ),
        };
        Query { text, ordered: false }
    }

    fn query(&mut self) -> Query {
        match self.number(10) {
            0..3 => self.join(),
            3..6 => self.tests(),
            6..8 => self.sorted(),
            8 => self.grouped(),
            _ => self.again(),
        }
    }
}

fn rows(s: &mut Session<'_>, query: &Query) -> Vec<String> {
    let mut rows = s.sql(&query.text);
    if !query.ordered {
        rows.sort();
    }
    rows
}

fn set(name: &str, or: u64) -> u64 {
    std::env::var(name).ok().and_then(|s| s.parse().ok()).unwrap_or(or)
}

#[test]
fn every_way_gives_the_same_rows() {
    let db = Db::new();
    let mut s = db.session();
    s.sql(TABLES);
    let seed = set("WAYS_SEED", 7);
    let mut make = Maker(Random::new(seed));
    for number in 0..set("WAYS", 60) {
        let query = make.query();
        // The plainest way: loops over whole tables.
        let plain = ["enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan"];
        let plain = plain.iter().chain(&["enable_hashjoin", "enable_mergejoin"]);
        let plain: Vec<&str> = plain.chain(&["enable_incremental_sort"]).copied().collect();
        plain.iter().for_each(|name| s.set(name, "off"));
        let expected = rows(&mut s, &query);
        plain.iter().for_each(|name| s.set(name, "on"));
        for way in 0..4 {
            let forbids = |_: &&str| way > 0 && make.number(3) == 0;
            let off: Vec<&str> = WAYS.into_iter().filter(forbids).collect();
            let memory = if way == 3 { "64kB" } else { "4MB" };
            off.iter().for_each(|name| s.set(name, "off"));
            s.set("work_mem", memory);
            let found = rows(&mut s, &query);
            if found != expected {
                let plan = s.sql(&format!("explain (costs off) {}", query.text));
                panic!(
                    "seed {seed}, query {number}: {}\nwithout {off:?}, in {memory}: {} rows, not {}\n{}",
                    query.text,
                    found.len(),
                    expected.len(),
                    plan.join("\n")
                );
            }
            off.iter().for_each(|name| s.set(name, "on"));
        }
    }
}

/// Both ways of reading a table's keys in one snapshot: from the index with the visibility map, and
/// from the table.
fn sees_the_same(s: &mut Session<'_>, story: &[String]) {
    for query in ["select k from t where k >= 0 order by k", "select count(*) from t"] {
        s.set("enable_seqscan", "off");
        let from_index = s.sql(query);
        s.set("enable_seqscan", "on");
        ["enable_indexonlyscan", "enable_indexscan"].iter().for_each(|name| s.set(name, "off"));
        // With a column that keeps the count from the visibility map.
        let from_table = s.sql(
            &query
                .replace("from t", "from t where v is not null")
                .replace("where v is not null where", "where v is not null and"),
        );
        ["enable_indexonlyscan", "enable_indexscan"].iter().for_each(|name| s.set(name, "on"));
        assert_eq!(from_index, from_table, "{query} after\n{}", story.join("\n"));
    }
}

#[test]
fn index_only_scans_see_what_table_scans_see_amid_changes() {
    let seed = set("WAYS_SEED", 7);
    for round in 0..set("WAYS", 60) / 10 {
        let db = Db::new();
        let mut other = db.session();
        other.sql("create table t (id int primary key, k int, v int); create index t_k on t (k)");
        other.sql("insert into t select n, n % 50, 0 from generate_series(1, 900) n; vacuum t");
        let mut random = Random::new(seed + round);
        let (mut writers, mut readers) =
            ([db.session(), db.session()], [db.session(), db.session()]);
        let (mut writing, mut reading) = ([false; 2], [false; 2]);
        let mut story = Vec::new();
        for _ in 0..80 {
            let who = random.index(2);
            // Each writer has rows of its own, so that nobody waits.
            let id = 2 * random.below(450) + 1 + who as u64;
            let writer = &mut writers[who];
            let step = match random.below(9) {
                0 if !writing[who] => {
                    writer.begin();
                    writing[who] = true;
                    "begin".to_owned()
                }
                0 => {
                    writing[who] = false;
                    match random.below(2) {
                        0 => writer.commit(),
                        _ => writer.rollback(),
                    }
                    "end".to_owned()
                }
                1 => format!("update t set k = k + 1 where id = {id}"),
                2 => format!(
                    "update t set v = v + 1 where id between {id} and {id} + 9 and id % 2 = {id} % 2"
                ),
                3 => format!("delete from t where id = {id}"),
                4 => format!("insert into t values ({id}, {}, 1) on conflict do nothing", id % 60),
                5 => {
                    other.sql("vacuum t");
                    "vacuum".to_owned()
                }
                6 if !reading[who] => {
                    readers[who].begin_with(txn::Isolation::RepeatableRead);
                    reading[who] = true;
                    "reader begins".to_owned()
                }
                6 => {
                    readers[who].commit();
                    reading[who] = false;
                    "reader ends".to_owned()
                }
                _ => "look".to_owned(),
            };
            if step.contains(" t ") {
                writer.sql(&step);
            }
            story.push(format!("{who}: {step}"));
            readers.iter_mut().for_each(|reader| sees_the_same(reader, &story));
            writers.iter_mut().for_each(|writer| sees_the_same(writer, &story));
        }
    }
}
