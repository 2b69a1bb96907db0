-- pageinspect 1.11: raw pages and those of tables, in the server's own layout.

CREATE FUNCTION get_raw_page(text, bigint) RETURNS bytea
    AS 'MODULE_PATHNAME', 'get_raw_page_1_9' LANGUAGE C STRICT PARALLEL SAFE;
CREATE FUNCTION get_raw_page(text, text, bigint) RETURNS bytea
    AS 'MODULE_PATHNAME', 'get_raw_page_fork_1_9' LANGUAGE C STRICT PARALLEL SAFE;
CREATE FUNCTION page_header(page bytea, OUT lsn pg_lsn, OUT checksum smallint, OUT flags smallint, OUT lower integer, OUT upper integer, OUT special integer, OUT pagesize integer, OUT version smallint, OUT prune_xid xid) RETURNS record
    AS 'MODULE_PATHNAME', 'page_header' LANGUAGE C STRICT PARALLEL SAFE;
CREATE FUNCTION heap_page_items(page bytea, OUT lp smallint, OUT lp_off smallint, OUT lp_flags smallint, OUT lp_len smallint, OUT t_xmin xid, OUT t_xmax xid, OUT t_field3 integer, OUT t_ctid tid, OUT t_infomask2 integer, OUT t_infomask integer, OUT t_hoff smallint, OUT t_bits text, OUT t_oid oid, OUT t_data bytea) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'heap_page_items' LANGUAGE C STRICT PARALLEL SAFE;
