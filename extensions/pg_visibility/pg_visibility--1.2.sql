-- pg_visibility 1.2: the objects of PostgreSQL's extension.

CREATE FUNCTION pg_visibility_map(regclass, blkno bigint, OUT all_visible boolean, OUT all_frozen boolean) RETURNS record
    AS 'MODULE_PATHNAME', 'pg_visibility_map' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
CREATE FUNCTION pg_visibility(regclass, blkno bigint, OUT all_visible boolean, OUT all_frozen boolean, OUT pd_all_visible boolean) RETURNS record
    AS 'MODULE_PATHNAME', 'pg_visibility' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
CREATE FUNCTION pg_visibility_map(regclass, OUT blkno bigint, OUT all_visible boolean, OUT all_frozen boolean) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'pg_visibility_map_rel' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
CREATE FUNCTION pg_visibility(regclass, OUT blkno bigint, OUT all_visible boolean, OUT all_frozen boolean, OUT pd_all_visible boolean) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'pg_visibility_rel' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
CREATE FUNCTION pg_visibility_map_summary(regclass, OUT all_visible bigint, OUT all_frozen bigint) RETURNS record
    AS 'MODULE_PATHNAME', 'pg_visibility_map_summary' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
CREATE FUNCTION pg_check_frozen(regclass, OUT t_ctid tid) RETURNS SETOF tid
    AS 'MODULE_PATHNAME', 'pg_check_frozen' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
CREATE FUNCTION pg_check_visible(regclass, OUT t_ctid tid) RETURNS SETOF tid
    AS 'MODULE_PATHNAME', 'pg_check_visible' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
CREATE FUNCTION pg_truncate_visibility_map(regclass) RETURNS void
    AS 'MODULE_PATHNAME', 'pg_truncate_visibility_map' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

REVOKE ALL ON FUNCTION pg_visibility_map(regclass,bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pg_visibility_map(regclass,bigint) TO pg_stat_scan_tables;
REVOKE ALL ON FUNCTION pg_visibility(regclass,bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pg_visibility(regclass,bigint) TO pg_stat_scan_tables;
REVOKE ALL ON FUNCTION pg_visibility_map(regclass) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pg_visibility_map(regclass) TO pg_stat_scan_tables;
REVOKE ALL ON FUNCTION pg_visibility(regclass) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pg_visibility(regclass) TO pg_stat_scan_tables;
REVOKE ALL ON FUNCTION pg_visibility_map_summary(regclass) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pg_visibility_map_summary(regclass) TO pg_stat_scan_tables;
REVOKE ALL ON FUNCTION pg_check_frozen(regclass) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pg_check_frozen(regclass) TO pg_stat_scan_tables;
REVOKE ALL ON FUNCTION pg_check_visible(regclass) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pg_check_visible(regclass) TO pg_stat_scan_tables;
REVOKE ALL ON FUNCTION pg_truncate_visibility_map(regclass) FROM PUBLIC;
