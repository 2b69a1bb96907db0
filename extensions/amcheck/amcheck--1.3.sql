-- amcheck 1.3: the objects of PostgreSQL's extension.

CREATE FUNCTION bt_index_check(index regclass) RETURNS void
    AS 'MODULE_PATHNAME', 'bt_index_check' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION bt_index_parent_check(index regclass) RETURNS void
    AS 'MODULE_PATHNAME', 'bt_index_parent_check' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION bt_index_check(index regclass, heapallindexed boolean) RETURNS void
    AS 'MODULE_PATHNAME', 'bt_index_check' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION bt_index_parent_check(index regclass, heapallindexed boolean) RETURNS void
    AS 'MODULE_PATHNAME', 'bt_index_parent_check' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION bt_index_parent_check(index regclass, heapallindexed boolean, rootdescend boolean) RETURNS void
    AS 'MODULE_PATHNAME', 'bt_index_parent_check' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION verify_heapam(relation regclass, on_error_stop boolean DEFAULT false, check_toast boolean DEFAULT false, skip text DEFAULT 'none'::text, startblock bigint DEFAULT NULL::bigint, endblock bigint DEFAULT NULL::bigint, OUT blkno bigint, OUT offnum integer, OUT attnum integer, OUT msg text) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'verify_heapam' LANGUAGE C VOLATILE PARALLEL UNSAFE;

REVOKE ALL ON FUNCTION bt_index_check(regclass) FROM PUBLIC;
REVOKE ALL ON FUNCTION bt_index_parent_check(regclass) FROM PUBLIC;
REVOKE ALL ON FUNCTION bt_index_check(regclass,boolean) FROM PUBLIC;
REVOKE ALL ON FUNCTION bt_index_parent_check(regclass,boolean) FROM PUBLIC;
REVOKE ALL ON FUNCTION bt_index_parent_check(regclass,boolean,boolean) FROM PUBLIC;
REVOKE ALL ON FUNCTION verify_heapam(regclass,boolean,boolean,text,bigint,bigint) FROM PUBLIC;
