-- autoinc 1.0: the objects of PostgreSQL's extension.

CREATE FUNCTION autoinc() RETURNS trigger
    AS 'MODULE_PATHNAME', 'autoinc' LANGUAGE C VOLATILE PARALLEL UNSAFE;
