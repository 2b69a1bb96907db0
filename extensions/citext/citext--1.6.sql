-- citext 1.6: the objects of PostgreSQL's extension.

CREATE TYPE citext;

CREATE FUNCTION citextin(cstring) RETURNS citext
    AS 'MODULE_PATHNAME', 'citextin' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION citextout(citext) RETURNS cstring
    AS 'MODULE_PATHNAME', 'citextout' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION citextrecv(internal) RETURNS citext
    AS 'MODULE_PATHNAME', 'citextrecv' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE FUNCTION citextsend(citext) RETURNS bytea
    AS 'MODULE_PATHNAME', 'citextsend' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE TYPE citext (INPUT = citextin, OUTPUT = citextout, RECEIVE = citextrecv, SEND = citextsend, INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = extended, CATEGORY = 'S', COLLATABLE = true);

CREATE FUNCTION citext(character) RETURNS citext
    AS 'MODULE_PATHNAME', 'rtrim1' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION citext(boolean) RETURNS citext
    AS 'MODULE_PATHNAME', 'booltext' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION citext(inet) RETURNS citext
    AS 'MODULE_PATHNAME', 'network_show' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION citext_eq(citext, citext) RETURNS boolean
    AS 'MODULE_PATHNAME', 'citext_eq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION citext_ne(citext, citext) RETURNS boolean
    AS 'MODULE_PATHNAME', 'citext_ne' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION citext_lt(citext, citext) RETURNS boolean
    AS 'MODULE_PATHNAME', 'citext_lt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION citext_le(citext, citext) RETURNS boolean
    AS 'MODULE_PATHNAME', 'citext_le' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION citext_gt(citext, citext) RETURNS boolean
    AS 'MODULE_PATHNAME', 'citext_gt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION citext_ge(citext, citext) RETURNS boolean
    AS 'MODULE_PATHNAME', 'citext_ge' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION citext_cmp(citext, citext) RETURNS integer
    AS 'MODULE_PATHNAME', 'citext_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION citext_hash(citext) RETURNS integer
    AS 'MODULE_PATHNAME', 'citext_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION citext_smaller(citext, citext) RETURNS citext
    AS 'MODULE_PATHNAME', 'citext_smaller' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION citext_larger(citext, citext) RETURNS citext
    AS 'MODULE_PATHNAME', 'citext_larger' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION texticlike(citext, citext) RETURNS boolean
    AS 'MODULE_PATHNAME', 'texticlike' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION texticnlike(citext, citext) RETURNS boolean
    AS 'MODULE_PATHNAME', 'texticnlike' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION texticregexeq(citext, citext) RETURNS boolean
    AS 'MODULE_PATHNAME', 'texticregexeq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION texticregexne(citext, citext) RETURNS boolean
    AS 'MODULE_PATHNAME', 'texticregexne' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION texticlike(citext, text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'texticlike' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION texticnlike(citext, text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'texticnlike' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION texticregexeq(citext, text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'texticregexeq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION texticregexne(citext, text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'texticregexne' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION regexp_match(citext, citext) RETURNS text[]
    AS $$SELECT pg_catalog.regexp_match($1::text, $2::text, 'i')$$ LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION regexp_match(citext, citext, text) RETURNS text[]
    AS $$SELECT pg_catalog.regexp_match($1::text, $2::text, CASE WHEN $3 LIKE '%c%' THEN $3 ELSE $3 || 'i' END)$$ LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION regexp_matches(citext, citext) RETURNS SETOF text[]
    AS $$SELECT pg_catalog.regexp_matches($1::text, $2::text, 'i')$$ LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 1;
CREATE FUNCTION regexp_matches(citext, citext, text) RETURNS SETOF text[]
    AS $$SELECT pg_catalog.regexp_matches($1::text, $2::text, CASE WHEN $3 LIKE '%c%' THEN $3 ELSE $3 || 'i' END)$$ LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 10;
CREATE FUNCTION regexp_replace(citext, citext, text) RETURNS text
    AS $$SELECT pg_catalog.regexp_replace($1::text, $2::text, $3, 'i')$$ LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION regexp_replace(citext, citext, text, text) RETURNS text
    AS $$SELECT pg_catalog.regexp_replace($1::text, $2::text, $3, CASE WHEN $4 LIKE '%c%' THEN $4 ELSE $4 || 'i' END)$$ LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION regexp_split_to_array(citext, citext) RETURNS text[]
    AS $$SELECT pg_catalog.regexp_split_to_array($1::text, $2::text, 'i')$$ LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION regexp_split_to_array(citext, citext, text) RETURNS text[]
    AS $$SELECT pg_catalog.regexp_split_to_array($1::text, $2::text, CASE WHEN $3 LIKE '%c%' THEN $3 ELSE $3 || 'i' END)$$ LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION regexp_split_to_table(citext, citext) RETURNS SETOF text
    AS $$SELECT pg_catalog.regexp_split_to_table($1::text, $2::text, 'i')$$ LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION regexp_split_to_table(citext, citext, text) RETURNS SETOF text
    AS $$SELECT pg_catalog.regexp_split_to_table($1::text, $2::text, CASE WHEN $3 LIKE '%c%' THEN $3 ELSE $3 || 'i' END)$$ LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION strpos(citext, citext) RETURNS integer
    AS $$SELECT pg_catalog.strpos(pg_catalog.lower($1::text), pg_catalog.lower($2::text))$$ LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION replace(citext, citext, citext) RETURNS text
    AS $$SELECT pg_catalog.regexp_replace($1::text, pg_catalog.regexp_replace($2::text, '([^[:alnum:]_])', '\\\1', 'g'), $3::text, 'gi')$$ LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION split_part(citext, citext, integer) RETURNS text
    AS $$SELECT CASE WHEN $3 > 0 THEN (pg_catalog.regexp_split_to_array($1::text, pg_catalog.regexp_replace($2::text, '([^[:alnum:]_])', '\\\1', 'g'), 'i'))[$3] ELSE pg_catalog.split_part($1::text, $2::text, $3) END$$ LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION translate(citext, citext, text) RETURNS text
    AS $$SELECT pg_catalog.translate(pg_catalog.translate($1::text, pg_catalog.lower($2::text), $3), pg_catalog.upper($2::text), $3)$$ LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION citext_pattern_lt(citext, citext) RETURNS boolean
    AS 'MODULE_PATHNAME', 'citext_pattern_lt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION citext_pattern_le(citext, citext) RETURNS boolean
    AS 'MODULE_PATHNAME', 'citext_pattern_le' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION citext_pattern_gt(citext, citext) RETURNS boolean
    AS 'MODULE_PATHNAME', 'citext_pattern_gt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION citext_pattern_ge(citext, citext) RETURNS boolean
    AS 'MODULE_PATHNAME', 'citext_pattern_ge' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION citext_pattern_cmp(citext, citext) RETURNS integer
    AS 'MODULE_PATHNAME', 'citext_pattern_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION citext_hash_extended(citext, bigint) RETURNS bigint
    AS 'MODULE_PATHNAME', 'citext_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OPERATOR <> (FUNCTION = citext_ne, LEFTARG = citext, RIGHTARG = citext, COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR = (FUNCTION = citext_eq, LEFTARG = citext, RIGHTARG = citext, COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES);
CREATE OPERATOR > (FUNCTION = citext_gt, LEFTARG = citext, RIGHTARG = citext, COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR >= (FUNCTION = citext_ge, LEFTARG = citext, RIGHTARG = citext, COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR < (FUNCTION = citext_lt, LEFTARG = citext, RIGHTARG = citext, COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (FUNCTION = citext_le, LEFTARG = citext, RIGHTARG = citext, COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR !~ (FUNCTION = texticregexne, LEFTARG = citext, RIGHTARG = citext, NEGATOR = ~, RESTRICT = icregexnesel, JOIN = icregexnejoinsel);
CREATE OPERATOR ~ (FUNCTION = texticregexeq, LEFTARG = citext, RIGHTARG = citext, NEGATOR = !~, RESTRICT = icregexeqsel, JOIN = icregexeqjoinsel);
CREATE OPERATOR !~* (FUNCTION = texticregexne, LEFTARG = citext, RIGHTARG = citext, NEGATOR = ~*, RESTRICT = icregexnesel, JOIN = icregexnejoinsel);
CREATE OPERATOR ~* (FUNCTION = texticregexeq, LEFTARG = citext, RIGHTARG = citext, NEGATOR = !~*, RESTRICT = icregexeqsel, JOIN = icregexeqjoinsel);
CREATE OPERATOR !~~ (FUNCTION = texticnlike, LEFTARG = citext, RIGHTARG = citext, NEGATOR = ~~, RESTRICT = icnlikesel, JOIN = icnlikejoinsel);
CREATE OPERATOR ~~ (FUNCTION = texticlike, LEFTARG = citext, RIGHTARG = citext, NEGATOR = !~~, RESTRICT = iclikesel, JOIN = iclikejoinsel);
CREATE OPERATOR !~~* (FUNCTION = texticnlike, LEFTARG = citext, RIGHTARG = citext, NEGATOR = ~~*, RESTRICT = icnlikesel, JOIN = icnlikejoinsel);
CREATE OPERATOR ~~* (FUNCTION = texticlike, LEFTARG = citext, RIGHTARG = citext, NEGATOR = !~~*, RESTRICT = iclikesel, JOIN = iclikejoinsel);
CREATE OPERATOR !~ (FUNCTION = texticregexne, LEFTARG = citext, RIGHTARG = text, NEGATOR = ~, RESTRICT = icregexnesel, JOIN = icregexnejoinsel);
CREATE OPERATOR ~ (FUNCTION = texticregexeq, LEFTARG = citext, RIGHTARG = text, NEGATOR = !~, RESTRICT = icregexeqsel, JOIN = icregexeqjoinsel);
CREATE OPERATOR !~* (FUNCTION = texticregexne, LEFTARG = citext, RIGHTARG = text, NEGATOR = ~*, RESTRICT = icregexnesel, JOIN = icregexnejoinsel);
CREATE OPERATOR ~* (FUNCTION = texticregexeq, LEFTARG = citext, RIGHTARG = text, NEGATOR = !~*, RESTRICT = icregexeqsel, JOIN = icregexeqjoinsel);
CREATE OPERATOR !~~ (FUNCTION = texticnlike, LEFTARG = citext, RIGHTARG = text, NEGATOR = ~~, RESTRICT = icnlikesel, JOIN = icnlikejoinsel);
CREATE OPERATOR ~~ (FUNCTION = texticlike, LEFTARG = citext, RIGHTARG = text, NEGATOR = !~~, RESTRICT = iclikesel, JOIN = iclikejoinsel);
CREATE OPERATOR !~~* (FUNCTION = texticnlike, LEFTARG = citext, RIGHTARG = text, NEGATOR = ~~*, RESTRICT = icnlikesel, JOIN = icnlikejoinsel);
CREATE OPERATOR ~~* (FUNCTION = texticlike, LEFTARG = citext, RIGHTARG = text, NEGATOR = !~~*, RESTRICT = iclikesel, JOIN = iclikejoinsel);
CREATE OPERATOR ~>~ (FUNCTION = citext_pattern_gt, LEFTARG = citext, RIGHTARG = citext, COMMUTATOR = ~<~, NEGATOR = ~<=~, RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR ~>=~ (FUNCTION = citext_pattern_ge, LEFTARG = citext, RIGHTARG = citext, COMMUTATOR = ~<=~, NEGATOR = ~<~, RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR ~<~ (FUNCTION = citext_pattern_lt, LEFTARG = citext, RIGHTARG = citext, COMMUTATOR = ~>~, NEGATOR = ~>=~, RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR ~<=~ (FUNCTION = citext_pattern_le, LEFTARG = citext, RIGHTARG = citext, COMMUTATOR = ~>=~, NEGATOR = ~>~, RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE AGGREGATE min(citext) (SFUNC = citext_smaller, STYPE = citext, COMBINEFUNC = citext_smaller, SORTOP = <, PARALLEL = safe);
CREATE AGGREGATE max(citext) (SFUNC = citext_larger, STYPE = citext, COMBINEFUNC = citext_larger, SORTOP = >, PARALLEL = safe);
CREATE CAST (citext AS text) WITHOUT FUNCTION AS IMPLICIT;
CREATE CAST (citext AS character varying) WITHOUT FUNCTION AS IMPLICIT;
CREATE CAST (citext AS character) WITHOUT FUNCTION AS ASSIGNMENT;
CREATE CAST (text AS citext) WITHOUT FUNCTION AS ASSIGNMENT;
CREATE CAST (character varying AS citext) WITHOUT FUNCTION AS ASSIGNMENT;
CREATE CAST (character AS citext) WITH FUNCTION citext(character) AS ASSIGNMENT;
CREATE CAST (boolean AS citext) WITH FUNCTION citext(boolean) AS ASSIGNMENT;
CREATE CAST (inet AS citext) WITH FUNCTION citext(inet) AS ASSIGNMENT;
CREATE OPERATOR CLASS citext_ops
    DEFAULT FOR TYPE citext USING btree AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    FUNCTION 1 citext_cmp(citext,citext);
CREATE OPERATOR CLASS citext_ops
    DEFAULT FOR TYPE citext USING hash AS
    OPERATOR 1 =,
    FUNCTION 1 citext_hash(citext),
    FUNCTION 2 citext_hash_extended(citext,bigint);
CREATE OPERATOR CLASS citext_pattern_ops
    FOR TYPE citext USING btree AS
    OPERATOR 1 ~<~,
    OPERATOR 2 ~<=~,
    OPERATOR 3 =,
    OPERATOR 4 ~>=~,
    OPERATOR 5 ~>~,
    FUNCTION 1 citext_pattern_cmp(citext,citext);
