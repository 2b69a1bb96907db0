-- pg_prewarm 1.2: the objects of PostgreSQL's extension.

CREATE FUNCTION pg_prewarm(regclass, mode text DEFAULT 'buffer'::text, fork text DEFAULT 'main'::text, first_block bigint DEFAULT NULL::bigint, last_block bigint DEFAULT NULL::bigint) RETURNS bigint
    AS 'MODULE_PATHNAME', 'pg_prewarm' LANGUAGE C VOLATILE PARALLEL SAFE;
CREATE FUNCTION autoprewarm_start_worker() RETURNS void
    AS 'MODULE_PATHNAME', 'autoprewarm_start_worker' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
CREATE FUNCTION autoprewarm_dump_now() RETURNS bigint
    AS 'MODULE_PATHNAME', 'autoprewarm_dump_now' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
