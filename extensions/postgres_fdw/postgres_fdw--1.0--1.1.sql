-- postgres_fdw 1.1: functions that show and close the connections of a session.

CREATE FUNCTION postgres_fdw_get_connections(OUT server_name text, OUT valid boolean) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'postgres_fdw_get_connections' LANGUAGE C STRICT PARALLEL RESTRICTED;
CREATE FUNCTION postgres_fdw_disconnect(text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'postgres_fdw_disconnect' LANGUAGE C STRICT PARALLEL RESTRICTED;
CREATE FUNCTION postgres_fdw_disconnect_all() RETURNS boolean
    AS 'MODULE_PATHNAME', 'postgres_fdw_disconnect_all' LANGUAGE C STRICT PARALLEL RESTRICTED;
