-- moddatetime 1.0: the objects of PostgreSQL's extension.

CREATE FUNCTION moddatetime() RETURNS trigger
    AS 'MODULE_PATHNAME', 'moddatetime' LANGUAGE C VOLATILE PARALLEL UNSAFE;
