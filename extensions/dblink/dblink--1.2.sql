-- dblink 1.2: the objects of PostgreSQL's extension.

CREATE FUNCTION dblink_connect(text) RETURNS text
    AS 'MODULE_PATHNAME', 'dblink_connect' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_connect(text, text) RETURNS text
    AS 'MODULE_PATHNAME', 'dblink_connect' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_connect_u(text) RETURNS text
    AS 'MODULE_PATHNAME', 'dblink_connect_u' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_connect_u(text, text) RETURNS text
    AS 'MODULE_PATHNAME', 'dblink_connect_u' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
REVOKE ALL ON FUNCTION dblink_connect_u(text) FROM public;
REVOKE ALL ON FUNCTION dblink_connect_u(text, text) FROM public;
CREATE FUNCTION dblink_disconnect() RETURNS text
    AS 'MODULE_PATHNAME', 'dblink_disconnect' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_disconnect(text) RETURNS text
    AS 'MODULE_PATHNAME', 'dblink_disconnect' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_open(text, text) RETURNS text
    AS 'MODULE_PATHNAME', 'dblink_open' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_open(text, text, boolean) RETURNS text
    AS 'MODULE_PATHNAME', 'dblink_open' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_open(text, text, text) RETURNS text
    AS 'MODULE_PATHNAME', 'dblink_open' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_open(text, text, text, boolean) RETURNS text
    AS 'MODULE_PATHNAME', 'dblink_open' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_fetch(text, integer) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'dblink_fetch' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_fetch(text, integer, boolean) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'dblink_fetch' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_fetch(text, text, integer) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'dblink_fetch' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_fetch(text, text, integer, boolean) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'dblink_fetch' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_close(text) RETURNS text
    AS 'MODULE_PATHNAME', 'dblink_close' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_close(text, boolean) RETURNS text
    AS 'MODULE_PATHNAME', 'dblink_close' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_close(text, text) RETURNS text
    AS 'MODULE_PATHNAME', 'dblink_close' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_close(text, text, boolean) RETURNS text
    AS 'MODULE_PATHNAME', 'dblink_close' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink(text, text) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'dblink_record' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink(text, text, boolean) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'dblink_record' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink(text) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'dblink_record' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink(text, boolean) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'dblink_record' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_exec(text, text) RETURNS text
    AS 'MODULE_PATHNAME', 'dblink_exec' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_exec(text, text, boolean) RETURNS text
    AS 'MODULE_PATHNAME', 'dblink_exec' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_exec(text) RETURNS text
    AS 'MODULE_PATHNAME', 'dblink_exec' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_exec(text, boolean) RETURNS text
    AS 'MODULE_PATHNAME', 'dblink_exec' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_get_connections() RETURNS text[]
    AS 'MODULE_PATHNAME', 'dblink_get_connections' LANGUAGE C VOLATILE PARALLEL RESTRICTED;
CREATE FUNCTION dblink_send_query(text, text) RETURNS integer
    AS 'MODULE_PATHNAME', 'dblink_send_query' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_is_busy(text) RETURNS integer
    AS 'MODULE_PATHNAME', 'dblink_is_busy' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_get_result(text) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'dblink_get_result' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_get_result(text, boolean) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'dblink_get_result' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_cancel_query(text) RETURNS text
    AS 'MODULE_PATHNAME', 'dblink_cancel_query' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_error_message(text) RETURNS text
    AS 'MODULE_PATHNAME', 'dblink_error_message' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE TYPE dblink_pkey_results AS (position integer, colname text);
CREATE FUNCTION dblink_get_pkey(text) RETURNS SETOF dblink_pkey_results
    AS 'MODULE_PATHNAME', 'dblink_get_pkey' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_build_sql_insert(text, int2vector, integer, text[], text[]) RETURNS text
    AS 'MODULE_PATHNAME', 'dblink_build_sql_insert' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_build_sql_delete(text, int2vector, integer, text[]) RETURNS text
    AS 'MODULE_PATHNAME', 'dblink_build_sql_delete' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_build_sql_update(text, int2vector, integer, text[], text[]) RETURNS text
    AS 'MODULE_PATHNAME', 'dblink_build_sql_update' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_current_query() RETURNS text
    AS 'MODULE_PATHNAME', 'dblink_current_query' LANGUAGE C VOLATILE PARALLEL RESTRICTED;
CREATE FUNCTION dblink_get_notify(OUT notify_name text, OUT be_pid integer, OUT extra text) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'dblink_get_notify' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_get_notify(conname text, OUT notify_name text, OUT be_pid integer, OUT extra text) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'dblink_get_notify' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
CREATE FUNCTION dblink_fdw_validator(options text[], catalog oid) RETURNS void
    AS 'MODULE_PATHNAME', 'dblink_fdw_validator' LANGUAGE C STRICT PARALLEL SAFE;
CREATE FOREIGN DATA WRAPPER dblink_fdw VALIDATOR dblink_fdw_validator;
