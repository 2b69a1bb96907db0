-- intagg 1.1: the objects of PostgreSQL's extension that are called by name. Its state is array_append's.

CREATE FUNCTION int_array_enum(integer[]) RETURNS SETOF integer
    AS $$SELECT pg_catalog.unnest($1)$$ LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE;
CREATE AGGREGATE int_array_aggregate(integer) (SFUNC = array_append, STYPE = integer[], PARALLEL = safe);
