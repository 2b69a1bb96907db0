-- refint 1.0: the objects of PostgreSQL's extension.

CREATE FUNCTION check_primary_key() RETURNS trigger
    AS 'MODULE_PATHNAME', 'check_primary_key' LANGUAGE C VOLATILE PARALLEL UNSAFE;
CREATE FUNCTION check_foreign_key() RETURNS trigger
    AS 'MODULE_PATHNAME', 'check_foreign_key' LANGUAGE C VOLATILE PARALLEL UNSAFE;
