-- insert_username 1.0: the objects of PostgreSQL's extension.

CREATE FUNCTION insert_username() RETURNS trigger
    AS 'MODULE_PATHNAME', 'insert_username' LANGUAGE C VOLATILE PARALLEL UNSAFE;
