-- tsm_system_time 1.0: the name of the sampling method, which is the server's.

CREATE FUNCTION system_time(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'tsm_system_time_handler' LANGUAGE C STRICT;
