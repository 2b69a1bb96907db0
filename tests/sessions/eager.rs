//! Groups made below joins: the same answers as those made above them, for random joins, conditions, groups and aggregates.

use crate::support::client::Client;
use crate::support::random::Random;
use crate::support::{Server, TempDir};

const TABLES: [&str; 4] = [
    "CREATE TABLE fact AS SELECT i, i % 20 AS a, CASE WHEN i % 7 > 0 THEN i % 12 END AS b, i % 3 AS c, \
        CASE WHEN i % 11 > 0 THEN i % 1000 END AS v, i::int8 * 1000003 AS w, (i % 500)::numeric / 100 AS n, \
        date '2024-01-01' + i % 300 AS d FROM generate_series(1, 20000) i",
    // Some keys twice, some not at all.
    "CREATE TABLE one AS SELECT i % 18 AS id, 'name ' || i % 5 AS name, i % 4 AS g FROM generate_series(1, 25) i",
    "CREATE TABLE two AS SELECT i AS id, i % 3 AS h FROM generate_series(0, 9) i",
    "ANALYZE",
];

const AGGREGATES: [&str; 10] = [
    "count(*)",
    "count(f.v)",
    "sum(f.v)",
    "sum(f.w)",
    "sum(f.n)",
    "sum(f.n * (1 - f.n))",
    "min(f.v)",
    "max(f.d)",
    "min(f.n)",
    "max(f.w)",
];

/// One that counts the fact's rows is among them: else it is not known whose rows are grouped.
fn query(random: &mut Random) -> String {
    let mut pick = |list: &[&'static str]| list[random.index(list.len())];
    let groups = pick(&[
        "o.name",
        "o.g",
        "o.name, f.c",
        "f.c",
        "o.id, o.g",
        "f.a",
        "o.g + f.c",
        "o.name || f.c",
        "t.h, o.name",
        "t.h",
    ]);
    let first = pick(&["JOIN", "LEFT JOIN", "JOIN"]);
    let second = pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN"]);
    let on = pick(&["f.b = t.id", "o.g = t.id", "f.b = t.id AND f.c < 2"]);
    let conditions = pick(&[
        "true",
        "f.v < 900",
        "f.d > '2024-03-01' AND o.g <> 2",
        "o.name <> 'name 3'",
        "f.a + o.g > 4",
        "f.c IN (SELECT h FROM two)",
        "EXISTS (SELECT FROM two x WHERE x.id = o.g)",
        "NOT EXISTS (SELECT FROM two x WHERE x.id = f.a)",
        "o.id IS NULL OR f.b IS NULL",
    ]);
    let aggregates = [pick(&AGGREGATES[1..]), pick(&AGGREGATES), pick(&AGGREGATES)];
    let having = pick(&["", "", " HAVING count(*) > 700"]);
    format!(
        "SELECT {groups}, {} FROM fact f {first} one o ON f.a = o.id {second} two t ON {on} WHERE {conditions} \
         GROUP BY {groups}{having} ORDER BY {groups}, {}",
        aggregates.join(", "),
        aggregates.join(", ")
    )
}

fn rows(client: &mut Client, sql: &str) -> Vec<Vec<Option<String>>> {
    let answer = client.query(sql).expect("the connection holds");
    assert!(answer.error.is_none(), "{sql}: {:?}", answer.error);
    answer.rows
}

#[test]
fn groups_made_below_joins_are_the_same() {
    let dir = TempDir::new("eager");
    let server = Server::start(dir.path(), &["autovacuum=off"]);
    let mut client = Client::connect(server.port).expect("the server takes connections");
    TABLES.iter().for_each(|sql| drop(rows(&mut client, sql)));
    let mut random = Random::new(30);
    let mut below = 0;
    for _ in 0..300 {
        let sql = query(&mut random);
        rows(&mut client, "SET min_eager_agg_group_size = 0");
        let above = rows(&mut client, &sql);
        rows(&mut client, "SET min_eager_agg_group_size = 1");
        assert_eq!(rows(&mut client, &sql), above, "{sql}");
        let plan = rows(&mut client, &format!("EXPLAIN (COSTS OFF) {sql}"));
        let lines = plan.iter().flatten().flatten();
        below += u32::from(lines.filter(|line| line.contains("Aggregate")).count() > 1);
    }
    assert!(below > 60, "only {below} plans of 300 have groups below a join");
    assert!(server.stop());
}

#[test]
fn few_rows_a_group_and_other_aggregates_stay_above() {
    let dir = TempDir::new("eager-not");
    let server = Server::start(dir.path(), &["autovacuum=off"]);
    let mut client = Client::connect(server.port).expect("the server takes connections");
    TABLES.iter().for_each(|sql| drop(rows(&mut client, sql)));
    let mut groups = |sql: &str| {
        let plan = rows(&mut client, &format!("EXPLAIN (COSTS OFF) {sql}"));
        plan.iter().flatten().flatten().filter(|line| line.contains("Aggregate")).count()
    };
    let by_name = |aggregate: &str| {
        format!("SELECT o.name, {aggregate} FROM fact f JOIN one o ON f.a = o.id GROUP BY o.name")
    };
    assert_eq!(groups(&by_name("sum(f.v)")), 2);
    for other in
        ["avg(f.v)", "count(DISTINCT f.v)", "sum(f.v::float8)", "sum(10 / f.v)", "sum(f.v + o.g)"]
    {
        assert_eq!(groups(&by_name(other)), 1, "{other}");
    }
    let by_key = "SELECT o.name, sum(f.v) FROM fact f JOIN one o ON f.i = o.id GROUP BY o.name";
    assert_eq!(groups(by_key), 1, "a row has its own partners");
    assert!(server.stop());
}

/// Columns that are not known to depend on each other make a group for each row: such groups are made for nothing.
#[test]
fn groups_by_columns_of_many_values_are_not_made_below_joins() {
    let dir = TempDir::new("eager-many");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut client = Client::connect(server.port).expect("the server takes connections");
    for sql in [
        "CREATE TABLE line AS SELECT i % 2000 AS a, i / 10 % 300 AS b, i AS v FROM generate_series(1, 20000) i",
        "CREATE TABLE one AS SELECT i AS id, i % 3 AS g FROM generate_series(0, 1999) i",
        "CREATE TABLE two AS SELECT i AS id FROM generate_series(0, 299) i",
        "ANALYZE",
    ] {
        rows(&mut client, sql);
    }
    let plan = |client: &mut Client, column: &str| -> usize {
        let sql = format!(
            "EXPLAIN SELECT g, sum(v) FROM line JOIN one ON line.{column} = one.id JOIN two ON b = two.id GROUP BY g"
        );
        let lines = rows(client, &sql);
        lines.iter().flatten().flatten().filter(|line| line.contains("Aggregate")).count()
    };
    assert_eq!(plan(&mut client, "b"), 2);
    assert_eq!(plan(&mut client, "a"), 1);
}
