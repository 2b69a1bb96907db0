//! The extension vector, whose answers are those that pgvector's documentation and its own tests give: PostgreSQL's
//! packages have no pgvector to run beside.

#[path = "support/mod.rs"]
mod support;

use support::{Server, TempDir};

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
