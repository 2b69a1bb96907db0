-- pg_trgm 1.6: the objects of PostgreSQL's extension.

CREATE TYPE gtrgm;

CREATE FUNCTION gtrgm_in(cstring) RETURNS gtrgm
    AS 'MODULE_PATHNAME', 'gtrgm_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gtrgm_out(gtrgm) RETURNS cstring
    AS 'MODULE_PATHNAME', 'gtrgm_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE TYPE gtrgm (INPUT = gtrgm_in, OUTPUT = gtrgm_out, INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = plain);

CREATE FUNCTION set_limit(real) RETURNS real
    AS 'MODULE_PATHNAME', 'set_limit' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
CREATE FUNCTION show_limit() RETURNS real
    AS 'MODULE_PATHNAME', 'show_limit' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE FUNCTION show_trgm(text) RETURNS text[]
    AS 'MODULE_PATHNAME', 'show_trgm' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION similarity(text, text) RETURNS real
    AS 'MODULE_PATHNAME', 'similarity' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION similarity_op(text, text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'similarity_op' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE FUNCTION word_similarity(text, text) RETURNS real
    AS 'MODULE_PATHNAME', 'word_similarity' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION word_similarity_op(text, text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'word_similarity_op' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE FUNCTION word_similarity_commutator_op(text, text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'word_similarity_commutator_op' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE FUNCTION similarity_dist(text, text) RETURNS real
    AS 'MODULE_PATHNAME', 'similarity_dist' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION word_similarity_dist_op(text, text) RETURNS real
    AS 'MODULE_PATHNAME', 'word_similarity_dist_op' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION word_similarity_dist_commutator_op(text, text) RETURNS real
    AS 'MODULE_PATHNAME', 'word_similarity_dist_commutator_op' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gtrgm_consistent(internal, text, smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gtrgm_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gtrgm_distance(internal, text, smallint, oid, internal) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gtrgm_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gtrgm_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gtrgm_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gtrgm_decompress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gtrgm_decompress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gtrgm_penalty(internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gtrgm_penalty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gtrgm_picksplit(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gtrgm_picksplit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gtrgm_union(internal, internal) RETURNS gtrgm
    AS 'MODULE_PATHNAME', 'gtrgm_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gtrgm_same(gtrgm, gtrgm, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gtrgm_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gin_extract_value_trgm(text, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gin_extract_value_trgm' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gin_extract_query_trgm(text, internal, smallint, internal, internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gin_extract_query_trgm' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gin_trgm_consistent(internal, smallint, text, integer, internal, internal, internal, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gin_trgm_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gin_trgm_triconsistent(internal, smallint, text, integer, internal, internal, internal) RETURNS "char"
    AS 'MODULE_PATHNAME', 'gin_trgm_triconsistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION strict_word_similarity(text, text) RETURNS real
    AS 'MODULE_PATHNAME', 'strict_word_similarity' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION strict_word_similarity_op(text, text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'strict_word_similarity_op' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE FUNCTION strict_word_similarity_commutator_op(text, text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'strict_word_similarity_commutator_op' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE FUNCTION strict_word_similarity_dist_op(text, text) RETURNS real
    AS 'MODULE_PATHNAME', 'strict_word_similarity_dist_op' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION strict_word_similarity_dist_commutator_op(text, text) RETURNS real
    AS 'MODULE_PATHNAME', 'strict_word_similarity_dist_commutator_op' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gtrgm_options(internal) RETURNS void
    AS 'MODULE_PATHNAME', 'gtrgm_options' LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE OPERATOR % (FUNCTION = similarity_op, LEFTARG = text, RIGHTARG = text, COMMUTATOR = %, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR %> (FUNCTION = word_similarity_commutator_op, LEFTARG = text, RIGHTARG = text, COMMUTATOR = <%, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR <% (FUNCTION = word_similarity_op, LEFTARG = text, RIGHTARG = text, COMMUTATOR = %>, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR <-> (FUNCTION = similarity_dist, LEFTARG = text, RIGHTARG = text, COMMUTATOR = <->);
CREATE OPERATOR <->> (FUNCTION = word_similarity_dist_commutator_op, LEFTARG = text, RIGHTARG = text, COMMUTATOR = <<->);
CREATE OPERATOR <<-> (FUNCTION = word_similarity_dist_op, LEFTARG = text, RIGHTARG = text, COMMUTATOR = <->>);
CREATE OPERATOR %>> (FUNCTION = strict_word_similarity_commutator_op, LEFTARG = text, RIGHTARG = text, COMMUTATOR = <<%, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR <<% (FUNCTION = strict_word_similarity_op, LEFTARG = text, RIGHTARG = text, COMMUTATOR = %>>, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR <->>> (FUNCTION = strict_word_similarity_dist_commutator_op, LEFTARG = text, RIGHTARG = text, COMMUTATOR = <<<->);
CREATE OPERATOR <<<-> (FUNCTION = strict_word_similarity_dist_op, LEFTARG = text, RIGHTARG = text, COMMUTATOR = <->>>);
CREATE OPERATOR CLASS gist_trgm_ops
    FOR TYPE text USING gist AS
    OPERATOR 1 %,
    OPERATOR 2 <-> FOR ORDER BY pg_catalog.float_ops,
    OPERATOR 3 ~~,
    OPERATOR 4 ~~*,
    OPERATOR 5 ~,
    OPERATOR 6 ~*,
    OPERATOR 7 %>,
    OPERATOR 8 <->> FOR ORDER BY pg_catalog.float_ops,
    OPERATOR 9 %>>,
    OPERATOR 10 <->>> FOR ORDER BY pg_catalog.float_ops,
    OPERATOR 11 =,
    FUNCTION 1 gtrgm_consistent(internal,text,smallint,oid,internal),
    FUNCTION 2 gtrgm_union(internal,internal),
    FUNCTION 3 gtrgm_compress(internal),
    FUNCTION 4 gtrgm_decompress(internal),
    FUNCTION 5 gtrgm_penalty(internal,internal,internal),
    FUNCTION 6 gtrgm_picksplit(internal,internal),
    FUNCTION 7 gtrgm_same(gtrgm,gtrgm,internal),
    FUNCTION 8 gtrgm_distance(internal,text,smallint,oid,internal),
    FUNCTION 10 gtrgm_options(internal),
    STORAGE gtrgm;
CREATE OPERATOR CLASS gin_trgm_ops
    FOR TYPE text USING gin AS
    OPERATOR 1 %,
    OPERATOR 3 ~~,
    OPERATOR 4 ~~*,
    OPERATOR 5 ~,
    OPERATOR 6 ~*,
    OPERATOR 7 %>,
    OPERATOR 9 %>>,
    OPERATOR 11 =,
    FUNCTION 1 btint4cmp(integer,integer),
    FUNCTION 2 gin_extract_value_trgm(text,internal),
    FUNCTION 3 gin_extract_query_trgm(text,internal,smallint,internal,internal,internal,internal),
    FUNCTION 4 gin_trgm_consistent(internal,smallint,text,integer,internal,internal,internal,internal),
    FUNCTION 6 gin_trgm_triconsistent(internal,smallint,text,integer,internal,internal,internal),
    STORAGE integer;
