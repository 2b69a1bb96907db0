-- adminpack 2.1: the objects of PostgreSQL's extension, in the schema that is chosen: none can be made in pg_catalog.

CREATE FUNCTION pg_file_write(text, text, boolean) RETURNS bigint
    AS 'MODULE_PATHNAME', 'pg_file_write_v1_1' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
CREATE FUNCTION pg_file_rename(text, text, text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'pg_file_rename_v1_1' LANGUAGE C VOLATILE PARALLEL UNSAFE;
CREATE FUNCTION pg_file_unlink(text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'pg_file_unlink_v1_1' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
CREATE FUNCTION pg_logdir_ls() RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'pg_logdir_ls_v1_1' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
CREATE FUNCTION pg_file_sync(text) RETURNS void
    AS 'MODULE_PATHNAME', 'pg_file_sync' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE FUNCTION pg_file_rename(text, text) RETURNS boolean
    AS $$SELECT @extschema@.pg_file_rename($1, $2, NULL::pg_catalog.text);$$ LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE;
REVOKE ALL ON FUNCTION pg_file_write(text,text,boolean) FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_file_rename(text,text,text) FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_file_unlink(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_logdir_ls() FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_file_sync(text) FROM PUBLIC;
