-- tcn 1.0: the objects of PostgreSQL's extension.

CREATE FUNCTION triggered_change_notification() RETURNS trigger
    AS 'MODULE_PATHNAME', 'triggered_change_notification' LANGUAGE C VOLATILE PARALLEL UNSAFE;
