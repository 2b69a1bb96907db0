-- ltree 1.2: the objects of PostgreSQL's extension.

CREATE TYPE ltree;
CREATE TYPE lquery;
CREATE TYPE ltxtquery;
CREATE TYPE ltree_gist;

CREATE FUNCTION ltree_in(cstring) RETURNS ltree
    AS 'MODULE_PATHNAME', 'ltree_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltree_out(ltree) RETURNS cstring
    AS 'MODULE_PATHNAME', 'ltree_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltree_recv(internal) RETURNS ltree
    AS 'MODULE_PATHNAME', 'ltree_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltree_send(ltree) RETURNS bytea
    AS 'MODULE_PATHNAME', 'ltree_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE TYPE ltree (INPUT = ltree_in, OUTPUT = ltree_out, RECEIVE = ltree_recv, SEND = ltree_send, INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = extended);

CREATE FUNCTION lquery_in(cstring) RETURNS lquery
    AS 'MODULE_PATHNAME', 'lquery_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION lquery_out(lquery) RETURNS cstring
    AS 'MODULE_PATHNAME', 'lquery_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION lquery_recv(internal) RETURNS lquery
    AS 'MODULE_PATHNAME', 'lquery_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION lquery_send(lquery) RETURNS bytea
    AS 'MODULE_PATHNAME', 'lquery_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE TYPE lquery (INPUT = lquery_in, OUTPUT = lquery_out, RECEIVE = lquery_recv, SEND = lquery_send, INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = extended);

CREATE FUNCTION ltxtq_in(cstring) RETURNS ltxtquery
    AS 'MODULE_PATHNAME', 'ltxtq_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltxtq_out(ltxtquery) RETURNS cstring
    AS 'MODULE_PATHNAME', 'ltxtq_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltxtq_recv(internal) RETURNS ltxtquery
    AS 'MODULE_PATHNAME', 'ltxtq_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltxtq_send(ltxtquery) RETURNS bytea
    AS 'MODULE_PATHNAME', 'ltxtq_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE TYPE ltxtquery (INPUT = ltxtq_in, OUTPUT = ltxtq_out, RECEIVE = ltxtq_recv, SEND = ltxtq_send, INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = extended);

CREATE FUNCTION ltree_gist_in(cstring) RETURNS ltree_gist
    AS 'MODULE_PATHNAME', 'ltree_gist_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltree_gist_out(ltree_gist) RETURNS cstring
    AS 'MODULE_PATHNAME', 'ltree_gist_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE TYPE ltree_gist (INPUT = ltree_gist_in, OUTPUT = ltree_gist_out, INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = plain);

CREATE FUNCTION ltree_cmp(ltree, ltree) RETURNS integer
    AS 'MODULE_PATHNAME', 'ltree_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltree_lt(ltree, ltree) RETURNS boolean
    AS 'MODULE_PATHNAME', 'ltree_lt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltree_le(ltree, ltree) RETURNS boolean
    AS 'MODULE_PATHNAME', 'ltree_le' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltree_eq(ltree, ltree) RETURNS boolean
    AS 'MODULE_PATHNAME', 'ltree_eq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltree_ge(ltree, ltree) RETURNS boolean
    AS 'MODULE_PATHNAME', 'ltree_ge' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltree_gt(ltree, ltree) RETURNS boolean
    AS 'MODULE_PATHNAME', 'ltree_gt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltree_ne(ltree, ltree) RETURNS boolean
    AS 'MODULE_PATHNAME', 'ltree_ne' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION subltree(ltree, integer, integer) RETURNS ltree
    AS 'MODULE_PATHNAME', 'subltree' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION subpath(ltree, integer, integer) RETURNS ltree
    AS 'MODULE_PATHNAME', 'subpath' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION subpath(ltree, integer) RETURNS ltree
    AS 'MODULE_PATHNAME', 'subpath' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION index(ltree, ltree) RETURNS integer
    AS 'MODULE_PATHNAME', 'ltree_index' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION index(ltree, ltree, integer) RETURNS integer
    AS 'MODULE_PATHNAME', 'ltree_index' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION nlevel(ltree) RETURNS integer
    AS 'MODULE_PATHNAME', 'nlevel' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltree2text(ltree) RETURNS text
    AS 'MODULE_PATHNAME', 'ltree2text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION text2ltree(text) RETURNS ltree
    AS 'MODULE_PATHNAME', 'text2ltree' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION lca(ltree[]) RETURNS ltree
    AS 'MODULE_PATHNAME', '_lca' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION lca(ltree, ltree) RETURNS ltree
    AS 'MODULE_PATHNAME', 'lca' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION lca(ltree, ltree, ltree) RETURNS ltree
    AS 'MODULE_PATHNAME', 'lca' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION lca(ltree, ltree, ltree, ltree) RETURNS ltree
    AS 'MODULE_PATHNAME', 'lca' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION lca(ltree, ltree, ltree, ltree, ltree) RETURNS ltree
    AS 'MODULE_PATHNAME', 'lca' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION lca(ltree, ltree, ltree, ltree, ltree, ltree) RETURNS ltree
    AS 'MODULE_PATHNAME', 'lca' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION lca(ltree, ltree, ltree, ltree, ltree, ltree, ltree) RETURNS ltree
    AS 'MODULE_PATHNAME', 'lca' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION lca(ltree, ltree, ltree, ltree, ltree, ltree, ltree, ltree) RETURNS ltree
    AS 'MODULE_PATHNAME', 'lca' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltree_isparent(ltree, ltree) RETURNS boolean
    AS 'MODULE_PATHNAME', 'ltree_isparent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltree_risparent(ltree, ltree) RETURNS boolean
    AS 'MODULE_PATHNAME', 'ltree_risparent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltree_addltree(ltree, ltree) RETURNS ltree
    AS 'MODULE_PATHNAME', 'ltree_addltree' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltree_addtext(ltree, text) RETURNS ltree
    AS 'MODULE_PATHNAME', 'ltree_addtext' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltree_textadd(text, ltree) RETURNS ltree
    AS 'MODULE_PATHNAME', 'ltree_textadd' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltreeparentsel(internal, oid, internal, integer) RETURNS double precision
    AS 'MODULE_PATHNAME', 'ltreeparentsel' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltq_regex(ltree, lquery) RETURNS boolean
    AS 'MODULE_PATHNAME', 'ltq_regex' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltq_rregex(lquery, ltree) RETURNS boolean
    AS 'MODULE_PATHNAME', 'ltq_rregex' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION lt_q_regex(ltree, lquery[]) RETURNS boolean
    AS 'MODULE_PATHNAME', 'lt_q_regex' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION lt_q_rregex(lquery[], ltree) RETURNS boolean
    AS 'MODULE_PATHNAME', 'lt_q_rregex' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltxtq_exec(ltree, ltxtquery) RETURNS boolean
    AS 'MODULE_PATHNAME', 'ltxtq_exec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltxtq_rexec(ltxtquery, ltree) RETURNS boolean
    AS 'MODULE_PATHNAME', 'ltxtq_rexec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltree_consistent(internal, ltree, smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'ltree_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltree_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'ltree_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltree_decompress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'ltree_decompress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltree_penalty(internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'ltree_penalty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltree_picksplit(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'ltree_picksplit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltree_union(internal, internal) RETURNS ltree_gist
    AS 'MODULE_PATHNAME', 'ltree_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltree_same(ltree_gist, ltree_gist, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'ltree_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _ltree_isparent(ltree[], ltree) RETURNS boolean
    AS 'MODULE_PATHNAME', '_ltree_isparent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _ltree_r_isparent(ltree, ltree[]) RETURNS boolean
    AS 'MODULE_PATHNAME', '_ltree_r_isparent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _ltree_risparent(ltree[], ltree) RETURNS boolean
    AS 'MODULE_PATHNAME', '_ltree_risparent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _ltree_r_risparent(ltree, ltree[]) RETURNS boolean
    AS 'MODULE_PATHNAME', '_ltree_r_risparent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _ltq_regex(ltree[], lquery) RETURNS boolean
    AS 'MODULE_PATHNAME', '_ltq_regex' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _ltq_rregex(lquery, ltree[]) RETURNS boolean
    AS 'MODULE_PATHNAME', '_ltq_rregex' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _lt_q_regex(ltree[], lquery[]) RETURNS boolean
    AS 'MODULE_PATHNAME', '_lt_q_regex' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _lt_q_rregex(lquery[], ltree[]) RETURNS boolean
    AS 'MODULE_PATHNAME', '_lt_q_rregex' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _ltxtq_exec(ltree[], ltxtquery) RETURNS boolean
    AS 'MODULE_PATHNAME', '_ltxtq_exec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _ltxtq_rexec(ltxtquery, ltree[]) RETURNS boolean
    AS 'MODULE_PATHNAME', '_ltxtq_rexec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _ltree_extract_isparent(ltree[], ltree) RETURNS ltree
    AS 'MODULE_PATHNAME', '_ltree_extract_isparent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _ltree_extract_risparent(ltree[], ltree) RETURNS ltree
    AS 'MODULE_PATHNAME', '_ltree_extract_risparent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _ltq_extract_regex(ltree[], lquery) RETURNS ltree
    AS 'MODULE_PATHNAME', '_ltq_extract_regex' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _ltxtq_extract_exec(ltree[], ltxtquery) RETURNS ltree
    AS 'MODULE_PATHNAME', '_ltxtq_extract_exec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _ltree_consistent(internal, ltree[], smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', '_ltree_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _ltree_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', '_ltree_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _ltree_penalty(internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', '_ltree_penalty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _ltree_picksplit(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', '_ltree_picksplit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _ltree_union(internal, internal) RETURNS ltree_gist
    AS 'MODULE_PATHNAME', '_ltree_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _ltree_same(ltree_gist, ltree_gist, internal) RETURNS internal
    AS 'MODULE_PATHNAME', '_ltree_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ltree_gist_options(internal) RETURNS void
    AS 'MODULE_PATHNAME', 'ltree_gist_options' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION _ltree_gist_options(internal) RETURNS void
    AS 'MODULE_PATHNAME', '_ltree_gist_options' LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE OPERATOR > (FUNCTION = ltree_gt, LEFTARG = ltree, RIGHTARG = ltree, COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR >= (FUNCTION = ltree_ge, LEFTARG = ltree, RIGHTARG = ltree, COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR < (FUNCTION = ltree_lt, LEFTARG = ltree, RIGHTARG = ltree, COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (FUNCTION = ltree_le, LEFTARG = ltree, RIGHTARG = ltree, COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR <> (FUNCTION = ltree_ne, LEFTARG = ltree, RIGHTARG = ltree, COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR = (FUNCTION = ltree_eq, LEFTARG = ltree, RIGHTARG = ltree, COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel, MERGES);
CREATE OPERATOR <@ (FUNCTION = ltree_risparent, LEFTARG = ltree, RIGHTARG = ltree, COMMUTATOR = @>, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR @> (FUNCTION = ltree_isparent, LEFTARG = ltree, RIGHTARG = ltree, COMMUTATOR = <@, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR ^<@ (FUNCTION = ltree_risparent, LEFTARG = ltree, RIGHTARG = ltree, COMMUTATOR = ^@>, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR ^@> (FUNCTION = ltree_isparent, LEFTARG = ltree, RIGHTARG = ltree, COMMUTATOR = ^<@, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR || (FUNCTION = ltree_addltree, LEFTARG = ltree, RIGHTARG = ltree);
CREATE OPERATOR || (FUNCTION = ltree_addtext, LEFTARG = ltree, RIGHTARG = text);
CREATE OPERATOR || (FUNCTION = ltree_textadd, LEFTARG = text, RIGHTARG = ltree);
CREATE OPERATOR ~ (FUNCTION = ltq_rregex, LEFTARG = lquery, RIGHTARG = ltree, COMMUTATOR = ~, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR ~ (FUNCTION = ltq_regex, LEFTARG = ltree, RIGHTARG = lquery, COMMUTATOR = ~, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR ^~ (FUNCTION = ltq_rregex, LEFTARG = lquery, RIGHTARG = ltree, COMMUTATOR = ^~, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR ^~ (FUNCTION = ltq_regex, LEFTARG = ltree, RIGHTARG = lquery, COMMUTATOR = ^~, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR ? (FUNCTION = lt_q_rregex, LEFTARG = lquery[], RIGHTARG = ltree, COMMUTATOR = ?, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR ? (FUNCTION = lt_q_regex, LEFTARG = ltree, RIGHTARG = lquery[], COMMUTATOR = ?, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR ^? (FUNCTION = lt_q_rregex, LEFTARG = lquery[], RIGHTARG = ltree, COMMUTATOR = ^?, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR ^? (FUNCTION = lt_q_regex, LEFTARG = ltree, RIGHTARG = lquery[], COMMUTATOR = ^?, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR @ (FUNCTION = ltxtq_rexec, LEFTARG = ltxtquery, RIGHTARG = ltree, COMMUTATOR = @, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR @ (FUNCTION = ltxtq_exec, LEFTARG = ltree, RIGHTARG = ltxtquery, COMMUTATOR = @, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR ^@ (FUNCTION = ltxtq_rexec, LEFTARG = ltxtquery, RIGHTARG = ltree, COMMUTATOR = ^@, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR ^@ (FUNCTION = ltxtq_exec, LEFTARG = ltree, RIGHTARG = ltxtquery, COMMUTATOR = ^@, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR <@ (FUNCTION = _ltree_r_isparent, LEFTARG = ltree, RIGHTARG = ltree[], COMMUTATOR = @>, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR @> (FUNCTION = _ltree_isparent, LEFTARG = ltree[], RIGHTARG = ltree, COMMUTATOR = <@, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR @> (FUNCTION = _ltree_r_risparent, LEFTARG = ltree, RIGHTARG = ltree[], COMMUTATOR = <@, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR <@ (FUNCTION = _ltree_risparent, LEFTARG = ltree[], RIGHTARG = ltree, COMMUTATOR = @>, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR ~ (FUNCTION = _ltq_rregex, LEFTARG = lquery, RIGHTARG = ltree[], COMMUTATOR = ~, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR ~ (FUNCTION = _ltq_regex, LEFTARG = ltree[], RIGHTARG = lquery, COMMUTATOR = ~, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR ? (FUNCTION = _lt_q_rregex, LEFTARG = lquery[], RIGHTARG = ltree[], COMMUTATOR = ?, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR ? (FUNCTION = _lt_q_regex, LEFTARG = ltree[], RIGHTARG = lquery[], COMMUTATOR = ?, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR @ (FUNCTION = _ltxtq_rexec, LEFTARG = ltxtquery, RIGHTARG = ltree[], COMMUTATOR = @, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR @ (FUNCTION = _ltxtq_exec, LEFTARG = ltree[], RIGHTARG = ltxtquery, COMMUTATOR = @, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR ^<@ (FUNCTION = _ltree_r_isparent, LEFTARG = ltree, RIGHTARG = ltree[], COMMUTATOR = ^@>, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR ^@> (FUNCTION = _ltree_isparent, LEFTARG = ltree[], RIGHTARG = ltree, COMMUTATOR = ^<@, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR ^@> (FUNCTION = _ltree_r_risparent, LEFTARG = ltree, RIGHTARG = ltree[], COMMUTATOR = ^<@, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR ^<@ (FUNCTION = _ltree_risparent, LEFTARG = ltree[], RIGHTARG = ltree, COMMUTATOR = ^@>, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR ^~ (FUNCTION = _ltq_rregex, LEFTARG = lquery, RIGHTARG = ltree[], COMMUTATOR = ^~, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR ^~ (FUNCTION = _ltq_regex, LEFTARG = ltree[], RIGHTARG = lquery, COMMUTATOR = ^~, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR ^? (FUNCTION = _lt_q_rregex, LEFTARG = lquery[], RIGHTARG = ltree[], COMMUTATOR = ^?, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR ^? (FUNCTION = _lt_q_regex, LEFTARG = ltree[], RIGHTARG = lquery[], COMMUTATOR = ^?, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR ^@ (FUNCTION = _ltxtq_rexec, LEFTARG = ltxtquery, RIGHTARG = ltree[], COMMUTATOR = ^@, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR ^@ (FUNCTION = _ltxtq_exec, LEFTARG = ltree[], RIGHTARG = ltxtquery, COMMUTATOR = ^@, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR ?@> (FUNCTION = _ltree_extract_isparent, LEFTARG = ltree[], RIGHTARG = ltree);
CREATE OPERATOR ?<@ (FUNCTION = _ltree_extract_risparent, LEFTARG = ltree[], RIGHTARG = ltree);
CREATE OPERATOR ?~ (FUNCTION = _ltq_extract_regex, LEFTARG = ltree[], RIGHTARG = lquery);
CREATE OPERATOR ?@ (FUNCTION = _ltxtq_extract_exec, LEFTARG = ltree[], RIGHTARG = ltxtquery);
CREATE OPERATOR CLASS ltree_ops
    DEFAULT FOR TYPE ltree USING btree AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    FUNCTION 1 ltree_cmp(ltree,ltree);
CREATE OPERATOR CLASS gist_ltree_ops
    DEFAULT FOR TYPE ltree USING gist AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    OPERATOR 10 @>,
    OPERATOR 11 <@,
    OPERATOR 12 ~ (ltree, lquery),
    OPERATOR 14 @ (ltree, ltxtquery),
    OPERATOR 16 ? (ltree, lquery[]),
    FUNCTION 1 ltree_consistent(internal,ltree,smallint,oid,internal),
    FUNCTION 2 ltree_union(internal,internal),
    FUNCTION 3 ltree_compress(internal),
    FUNCTION 4 ltree_decompress(internal),
    FUNCTION 5 ltree_penalty(internal,internal,internal),
    FUNCTION 6 ltree_picksplit(internal,internal),
    FUNCTION 7 ltree_same(ltree_gist,ltree_gist,internal),
    FUNCTION 10 ltree_gist_options(internal),
    STORAGE ltree_gist;
CREATE OPERATOR CLASS gist__ltree_ops
    DEFAULT FOR TYPE ltree[] USING gist AS
    OPERATOR 10 <@ (ltree[], ltree),
    OPERATOR 12 ~ (ltree[], lquery),
    OPERATOR 14 @ (ltree[], ltxtquery),
    OPERATOR 16 ? (ltree[], lquery[]),
    FUNCTION 1 _ltree_consistent(internal,ltree[],smallint,oid,internal),
    FUNCTION 2 _ltree_union(internal,internal),
    FUNCTION 3 _ltree_compress(internal),
    FUNCTION 4 ltree_decompress(internal),
    FUNCTION 5 _ltree_penalty(internal,internal,internal),
    FUNCTION 6 _ltree_picksplit(internal,internal),
    FUNCTION 7 _ltree_same(ltree_gist,ltree_gist,internal),
    FUNCTION 10 _ltree_gist_options(internal),
    STORAGE ltree_gist;
