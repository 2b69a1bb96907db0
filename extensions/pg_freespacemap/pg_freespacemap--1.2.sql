-- pg_freespacemap 1.2: the objects of PostgreSQL's extension.

CREATE FUNCTION pg_freespace(regclass, bigint) RETURNS smallint
    AS 'MODULE_PATHNAME', 'pg_freespace' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;

CREATE FUNCTION pg_freespace(rel regclass, OUT blkno bigint, OUT avail smallint) RETURNS SETOF record
    AS $$
  SELECT blkno, pg_freespace($1, blkno) AS avail
  FROM generate_series(0, pg_relation_size($1) / current_setting('block_size')::bigint - 1) AS blkno;
$$ LANGUAGE sql VOLATILE PARALLEL SAFE;
REVOKE ALL ON FUNCTION pg_freespace(regclass,bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pg_freespace(regclass,bigint) TO pg_stat_scan_tables;
REVOKE ALL ON FUNCTION pg_freespace(regclass) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pg_freespace(regclass) TO pg_stat_scan_tables;
