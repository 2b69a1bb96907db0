//! The extension vector, whose answers are those that pgvector's documentation and its own tests give: PostgreSQL's
//! packages have no pgvector to run beside.

use std::process::Command;

use crate::support::{Server, TempDir};

const BIN: &str = env!("CARGO_BIN_EXE_threadgres");

#[test]
fn vectors_are_kept_compared_and_summed() {
    let dir = TempDir::new("vector");
    let server = Server::start(&dir.path().join("data"), &[]);
    server.query("CREATE EXTENSION vector");
    let is = |sql: &str, wanted: &str| assert_eq!(server.query(sql), wanted, "{sql}");
    is(
        "SELECT '[1, 2,3]'::vector(3), '[0.1]'::halfvec, '{3:2,1:1.5}/5'::sparsevec",
        "[1,2,3]|[0.099975586]|{1:1.5,3:2}/5",
    );
    is(
        "SELECT '[0,0]'::vector <-> '[3,4]', '[1,2]'::vector <#> '[3,4]',
               '[1,1]'::vector <=> '[1,1]', '[0,0]'::vector <+> '[1,-2]'",
        "5|-11|0|3",
    );
    is("SELECT '{1:3}/9'::sparsevec <-> '{2:4}/9', '[1,2]'::halfvec <#> '[3,4]'", "5|-11");
    is(
        "SELECT '[1,2]'::vector + '[3,4]', '[1,2]'::vector - '[3,4]', '[1,2]'::vector * '[3,4]',
               '[1]'::vector || '[2]'",
        "[4,6]|[-2,-2]|[3,8]|[1,2]",
    );
    is(
        "SELECT vector_dims('[1,2]'::vector), vector_norm('[3,4]'), l2_normalize('[3,4]'::vector),
               subvector('[1,2,3,4]'::vector, 2, 2), binary_quantize('[1,-1,0]'::vector)",
        "2|5|[0.6,0.8]|[2,3]|100",
    );
    is("SELECT '110'::bit(3) <~> '101'::bit(3), '111'::bit(3) <%> '000'::bit(3)", "2|1");
    is(
        "SELECT '{1,2}'::int[]::vector, '[1,2]'::vector::real[], '[1,0,2]'::vector::sparsevec,
               '{2:5}/3'::sparsevec::vector",
        "[1,2]|{1,2}|{1:1,3:2}/3|[0,5,0]",
    );
    is(
        "SELECT '[1,2]'::vector < '[1,3]', '[1,2]'::vector = '[1,2]', '[1,2]'::vector > '[1]'",
        "t|t|t",
    );

    server.query("CREATE TABLE items (id int, e vector(3), h halfvec(3))");
    server.query(
        "INSERT INTO items VALUES (1, '[1,2,3]', '[1,2,3]'), (2, '[4,5,6]', '[4,5,6]'),
                  (3, '[1,1,1]', NULL)",
    );
    is("SELECT string_agg(id::text, ',' ORDER BY e <-> '[3,1,2]') FROM items", "3,1,2");
    is("SELECT id FROM items ORDER BY e <-> '[4,5,7]' LIMIT 1", "2");
    is("SELECT sum(e), avg(h) FROM items", "[6,8,10]|[2.5,3.5,4.5]");
    is("SELECT avg(e) IS NULL FROM items WHERE false", "t");
    is(
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute
        WHERE attrelid = 'items'::regclass AND attname = 'e'",
        "vector(3)",
    );
    server.query("CREATE INDEX ON items (e)");
    is("SET enable_seqscan = off; SELECT id FROM items WHERE e = '[4,5,6]'", "2");
}

#[test]
fn what_is_no_vector_is_refused() {
    let dir = TempDir::new("vector-refused");
    let server = Server::start(&dir.path().join("data"), &[]);
    server.query("CREATE EXTENSION vector");
    server.query(
        "CREATE FUNCTION code(statement text) RETURNS text LANGUAGE plpgsql AS
         $$BEGIN EXECUTE statement; RETURN 'none'; EXCEPTION WHEN others THEN RETURN sqlstate; END$$",
    );
    for (expression, wanted) in [
        ("'[1,2]'::vector(3)", "22000"),
        ("''::vector", "22P02"),
        ("'[]'::vector", "22000"),
        ("'[1,a]'::vector", "22P02"),
        ("'[nan]'::vector", "22000"),
        ("'[1e50]'::vector", "22003"),
        ("'[70000]'::halfvec", "22003"),
        ("'[1]'::vector(0)", "22023"),
        ("'[1]'::vector(16001)", "22023"),
        ("'[1,2]'::vector <-> '[1]'", "22000"),
        ("'{3:1}/2'::sparsevec", "22000"),
        ("'{1:1,1:2}/2'::sparsevec", "22000"),
        ("'{0:1}/2'::sparsevec", "22000"),
        ("'[3e38]'::vector + '[3e38]'", "22003"),
        ("'{1,NULL}'::int[]::vector", "22004"),
    ] {
        let statement = format!("SELECT code($$SELECT {expression}$$)");
        assert_eq!(server.query(&statement), wanted, "{expression}");
    }
}

/// A table of points in clusters, the same every time.
const POINTS: &str = "CREATE TABLE points (id int PRIMARY KEY, part int, e vector(3), h halfvec(3), s sparsevec(3), b bit(8));
    INSERT INTO points SELECT n, n % 10, v::vector, v::vector::halfvec, v::vector::sparsevec, (n % 256)::bit(8)
    FROM (SELECT n, format('[%s,%s,%s]', n % 7 * 100 + n * 7919 % 31, n % 5 * 100 + n * 104729 % 37, n * 1299709 % 41 + 1) v
          FROM generate_series(1, 600) n) made";

/// The distance of the tenth nearest row, by index and by sort, for all of a method's classes.
fn same_by_index(
    server: &Server,
    method: &str,
    classes: &[(&str, &str, &str, &str)],
    settings: &str,
) {
    for (column, class, operator, from) in classes {
        let query = format!(
            "SELECT string_agg(d::text, ',') FROM (SELECT round((p.{column} {operator} '{from}')::numeric, 4) d
             FROM points p ORDER BY p.{column} {operator} '{from}' LIMIT 10) nearest"
        );
        let sorted = server.query(&query);
        server.query(&format!(
            "CREATE INDEX by_distance ON points USING {method} ({column} {class})"
        ));
        let explained = server.query(&format!(
            "SET enable_seqscan = off; EXPLAIN (COSTS OFF) SELECT id FROM points ORDER BY {column} {operator} '{from}' LIMIT 10"
        ));
        assert!(
            explained.contains("Index Scan using by_distance"),
            "{method} {class}: {explained}"
        );
        assert!(explained.contains("Order By"), "{method} {class}: {explained}");
        let found = server.query(&format!("SET enable_seqscan = off; {settings} {query}"));
        assert_eq!(found, sorted, "{method} {class}");
        server.query("DROP INDEX by_distance");
    }
}

#[test]
fn indexes_give_the_rows_that_a_sort_gives() {
    let dir = TempDir::new("vector-indexes");
    let server = Server::start(&dir.path().join("data"), &[]);
    server.query("CREATE EXTENSION vector");
    server.query(POINTS);
    let dense = "[311,205,17]";
    let both = [
        ("e", "vector_l2_ops", "<->", dense),
        ("e", "vector_ip_ops", "<#>", dense),
        ("e", "vector_cosine_ops", "<=>", dense),
        ("h", "halfvec_l2_ops", "<->", dense),
        ("h", "halfvec_ip_ops", "<#>", dense),
        ("b", "bit_hamming_ops", "<~>", "10110011"),
    ];
    same_by_index(&server, "hnsw", &both, "SET hnsw.ef_search = 200;");
    same_by_index(&server, "ivfflat", &both, "SET ivfflat.probes = 100;");
    let graphs = [
        ("e", "vector_l1_ops", "<+>", dense),
        ("h", "halfvec_l1_ops", "<+>", dense),
        ("s", "sparsevec_l2_ops", "<->", "{1:311,2:205,3:17}/3"),
        ("s", "sparsevec_ip_ops", "<#>", "{1:311,2:205,3:17}/3"),
        ("s", "sparsevec_cosine_ops", "<=>", "{1:311,2:205,3:17}/3"),
        ("s", "sparsevec_l1_ops", "<+>", "{1:311,2:205,3:17}/3"),
        ("b", "bit_jaccard_ops", "<%>", "10110011"),
    ];
    same_by_index(&server, "hnsw", &graphs, "SET hnsw.ef_search = 200;");
    server.query("CREATE INDEX ON points USING ivfflat (e) WITH (lists = 10)");
    let names = "SELECT string_agg(amname, ',' ORDER BY amname) FROM pg_am WHERE amname IN ('hnsw', 'ivfflat')";
    assert_eq!(server.query(names), "hnsw,ivfflat");
}

#[test]
fn a_scan_goes_on_until_the_condition_has_rows_enough() {
    let dir = TempDir::new("vector-iterative");
    let server = Server::start(&dir.path().join("data"), &[]);
    server.query("CREATE EXTENSION vector");
    server.query(POINTS);
    server.query("CREATE INDEX ON points USING hnsw (e vector_l2_ops)");
    let count = |settings: &str| {
        server.query(&format!(
            "SET enable_seqscan = off; SET enable_bitmapscan = off; SET hnsw.ef_search = 10; {settings}
             SELECT count(*) FROM (SELECT id FROM points WHERE part = 3 ORDER BY e <-> '[0,0,0]' LIMIT 20) found"
        ))
    };
    let few: u32 = count("").parse().expect("a number");
    assert!(few < 20, "{few}");
    assert_eq!(count("SET hnsw.iterative_scan = relaxed_order;"), "20");
    assert_eq!(count("SET hnsw.iterative_scan = strict_order;"), "20");
    server.query("DROP INDEX points_e_idx; CREATE INDEX ON points USING ivfflat (e vector_l2_ops) WITH (lists = 30)");
    assert_ne!(count(""), "20");
    assert_eq!(count("SET ivfflat.iterative_scan = relaxed_order;"), "20");
    assert_ne!(
        count("SET ivfflat.iterative_scan = relaxed_order; SET ivfflat.max_probes = 1;"),
        "20"
    );
}

#[test]
fn indexes_follow_changes_vacuum_and_restarts() {
    let dir = TempDir::new("vector-changes");
    let server = Server::start(&dir.path().join("data"), &[]);
    server.query("CREATE EXTENSION vector");
    server.query(POINTS);
    server.query(
        "CREATE INDEX hnsw ON points USING hnsw (e vector_cosine_ops) WITH (m = 8, ef_construction = 32);
         CREATE INDEX CONCURRENTLY ivf ON points USING ivfflat (e vector_l2_ops) WITH (lists = 10);
         CREATE INDEX CONCURRENTLY part ON points USING hnsw (e vector_l2_ops) WHERE part = 1",
    );
    server.query(
        "DELETE FROM points WHERE id % 4 = 0;
         UPDATE points SET e = '[1,2,3]' WHERE id % 4 = 1;
         INSERT INTO points (id, e) VALUES (1001, NULL), (1002, '[0,0,0]'), (1003, '[1,2,3]');
         VACUUM points;
         INSERT INTO points (id, part, e) SELECT id + 2000, part, e FROM points WHERE id < 100;
         DELETE FROM points WHERE id % 4 = 1 AND id < 1000; VACUUM points",
    );
    let nearest = "SET enable_seqscan = off; SELECT count(*) FROM
        (SELECT e FROM points ORDER BY e <=> '[1,2,3]' LIMIT 5) found WHERE e = '[1,2,3]'";
    assert_eq!(server.query(nearest), "5");
    server.stop();
    let data = dir.path().join("data");
    let out = Command::new(BIN).args(["check", "-D"]).arg(data).output().expect("the program runs");
    assert_eq!(crate::support::text_of(&out), "no damage found\n");
}

#[test]
fn what_an_index_of_vectors_cannot_have_is_refused() {
    let dir = TempDir::new("vector-index-refused");
    let server = Server::start(&dir.path().join("data"), &[]);
    server.query("CREATE TABLE plain (n int)");
    server.query(
        "CREATE FUNCTION failure(statement text) RETURNS text LANGUAGE plpgsql AS
         $$BEGIN EXECUTE statement; RETURN 'none'; EXCEPTION WHEN others THEN RETURN sqlstate || ' ' || sqlerrm; END$$",
    );
    let is = |statement: &str, wanted: &str| {
        let quoted = statement.replace('\'', "''");
        assert_eq!(server.query(&format!("SELECT failure('{quoted}')")), wanted, "{statement}");
    };
    is("CREATE INDEX ON plain USING hnsw (n)", "42704 access method \"hnsw\" does not exist");
    server.query("CREATE EXTENSION vector");
    server.query("CREATE TABLE items (e vector(3), free vector, long vector(2001), h halfvec(4000), big halfvec(4001))");
    is(
        "CREATE INDEX ON items USING hnsw (e)",
        "42704 data type vector has no default operator class for access method \"hnsw\"",
    );
    is(
        "CREATE INDEX ON items USING hnsw (free vector_l2_ops)",
        "22023 column does not have dimensions",
    );
    is(
        "CREATE INDEX ON items USING hnsw (long vector_l2_ops)",
        "54000 column cannot have more than 2000 dimensions for hnsw index",
    );
    is(
        "CREATE INDEX ON items USING ivfflat (big halfvec_l2_ops)",
        "54000 column cannot have more than 4000 dimensions for ivfflat index",
    );
    is("CREATE INDEX ON items USING hnsw (h halfvec_l2_ops)", "none");
    is(
        "CREATE INDEX ON items USING hnsw (e vector_l2_ops) WITH (m = 1)",
        "22023 value 1 out of bounds for option \"m\"",
    );
    is(
        "CREATE INDEX ON items USING hnsw (e vector_l2_ops) WITH (m = 40, ef_construction = 79)",
        "22023 ef_construction must be greater than or equal to 2 * m",
    );
    is(
        "CREATE INDEX ON items USING ivfflat (e) WITH (lists = 0)",
        "22023 value 0 out of bounds for option \"lists\"",
    );
    is(
        "CREATE UNIQUE INDEX ON items USING hnsw (e vector_l2_ops)",
        "0A000 access method \"hnsw\" does not support unique indexes",
    );
    is(
        "CREATE INDEX ON items USING hnsw (e vector_l2_ops, free vector_l2_ops)",
        "0A000 access method \"hnsw\" does not support multicolumn indexes",
    );
    server.query("CREATE INDEX ON items USING hnsw (e vector_l2_ops)");
    server.query("INSERT INTO items (e) VALUES ('[1,2,3]')");
    is(
        "SET enable_seqscan = off; SELECT e FROM items ORDER BY e <-> '[1,2]' LIMIT 1",
        "22000 different vector dimensions 2 and 3",
    );
    is(
        "SET hnsw.ef_search = 0",
        "22023 0 is outside the valid range for parameter \"hnsw.ef_search\" (1 .. 1000)",
    );
    server.query("DROP EXTENSION vector CASCADE");
    assert_eq!(server.query("SELECT count(*) FROM pg_am WHERE amname = 'hnsw'"), "0");
}
