-- old_snapshot 1.0: the objects of PostgreSQL's extension.

CREATE FUNCTION pg_old_snapshot_time_mapping(OUT array_offset integer, OUT end_timestamp timestamp with time zone, OUT newest_xmin xid) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'pg_old_snapshot_time_mapping' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
