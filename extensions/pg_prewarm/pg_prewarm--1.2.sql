-- pg_prewarm 1.2: the objects of PostgreSQL's extension.

CREATE FUNCTION pg_prewarm(regclass, mode text DEFAULT 'buffer'::text, fork text DEFAULT 'main'::text, first_block bigint DEFAULT NULL::bigint, last_block bigint DEFAULT NULL::bigint) RETURNS bigint
    AS 'MODULE_PATHNAME', 'pg_prewarm' LANGUAGE C VOLATILE PARALLEL SAFE;
