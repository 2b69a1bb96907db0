-- tsm_system_rows 1.0: the name of the sampling method, which is the server's.

CREATE FUNCTION system_rows(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'tsm_system_rows_handler' LANGUAGE C STRICT;
