-- lo 1.1: the objects of PostgreSQL's extension.

CREATE DOMAIN lo AS oid;
CREATE FUNCTION lo_manage() RETURNS trigger
    AS 'MODULE_PATHNAME', 'lo_manage' LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION lo_oid(lo) RETURNS oid
    AS $$SELECT $1::pg_catalog.oid$$ LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE;
