-- intarray 1.5: the objects of PostgreSQL's extension.

CREATE TYPE query_int;
CREATE TYPE intbig_gkey;

CREATE FUNCTION bqarr_in(cstring) RETURNS query_int
    AS 'MODULE_PATHNAME', 'bqarr_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bqarr_out(query_int) RETURNS cstring
    AS 'MODULE_PATHNAME', 'bqarr_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE TYPE query_int (INPUT = bqarr_in, OUTPUT = bqarr_out, INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = plain);

CREATE FUNCTION _intbig_in(cstring) RETURNS intbig_gkey
    AS 'MODULE_PATHNAME', '_intbig_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _intbig_out(intbig_gkey) RETURNS cstring
    AS 'MODULE_PATHNAME', '_intbig_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE TYPE intbig_gkey (INPUT = _intbig_in, OUTPUT = _intbig_out, INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = plain);

CREATE FUNCTION querytree(query_int) RETURNS text
    AS 'MODULE_PATHNAME', 'querytree' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION boolop(integer[], query_int) RETURNS boolean
    AS 'MODULE_PATHNAME', 'boolop' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION rboolop(query_int, integer[]) RETURNS boolean
    AS 'MODULE_PATHNAME', 'rboolop' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _int_matchsel(internal, oid, internal, integer) RETURNS double precision
    AS 'MODULE_PATHNAME', '_int_matchsel' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _int_contains(integer[], integer[]) RETURNS boolean
    AS 'MODULE_PATHNAME', '_int_contains' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _int_contained(integer[], integer[]) RETURNS boolean
    AS 'MODULE_PATHNAME', '_int_contained' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _int_overlap(integer[], integer[]) RETURNS boolean
    AS 'MODULE_PATHNAME', '_int_overlap' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _int_same(integer[], integer[]) RETURNS boolean
    AS 'MODULE_PATHNAME', '_int_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _int_different(integer[], integer[]) RETURNS boolean
    AS 'MODULE_PATHNAME', '_int_different' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _int_union(integer[], integer[]) RETURNS integer[]
    AS 'MODULE_PATHNAME', '_int_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _int_inter(integer[], integer[]) RETURNS integer[]
    AS 'MODULE_PATHNAME', '_int_inter' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _int_overlap_sel(internal, oid, internal, integer) RETURNS double precision
    AS 'MODULE_PATHNAME', '_int_overlap_sel' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _int_contains_sel(internal, oid, internal, integer) RETURNS double precision
    AS 'MODULE_PATHNAME', '_int_contains_sel' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _int_contained_sel(internal, oid, internal, integer) RETURNS double precision
    AS 'MODULE_PATHNAME', '_int_contained_sel' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _int_overlap_joinsel(internal, oid, internal, smallint, internal) RETURNS double precision
    AS 'MODULE_PATHNAME', '_int_overlap_joinsel' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _int_contains_joinsel(internal, oid, internal, smallint, internal) RETURNS double precision
    AS 'MODULE_PATHNAME', '_int_contains_joinsel' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE FUNCTION _int_contained_joinsel(internal, oid, internal, smallint, internal) RETURNS double precision
    AS 'MODULE_PATHNAME', '_int_contained_joinsel' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE FUNCTION intset(integer) RETURNS integer[]
    AS 'MODULE_PATHNAME', 'intset' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION icount(integer[]) RETURNS integer
    AS 'MODULE_PATHNAME', 'icount' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sort(integer[], text) RETURNS integer[]
    AS 'MODULE_PATHNAME', 'sort' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sort(integer[]) RETURNS integer[]
    AS 'MODULE_PATHNAME', 'sort' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sort_asc(integer[]) RETURNS integer[]
    AS 'MODULE_PATHNAME', 'sort_asc' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sort_desc(integer[]) RETURNS integer[]
    AS 'MODULE_PATHNAME', 'sort_desc' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION uniq(integer[]) RETURNS integer[]
    AS 'MODULE_PATHNAME', 'uniq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION idx(integer[], integer) RETURNS integer
    AS 'MODULE_PATHNAME', 'idx' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION subarray(integer[], integer, integer) RETURNS integer[]
    AS 'MODULE_PATHNAME', 'subarray' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION subarray(integer[], integer) RETURNS integer[]
    AS 'MODULE_PATHNAME', 'subarray' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION intarray_push_elem(integer[], integer) RETURNS integer[]
    AS 'MODULE_PATHNAME', 'intarray_push_elem' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION intarray_push_array(integer[], integer[]) RETURNS integer[]
    AS 'MODULE_PATHNAME', 'intarray_push_array' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION intarray_del_elem(integer[], integer) RETURNS integer[]
    AS 'MODULE_PATHNAME', 'intarray_del_elem' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION intset_union_elem(integer[], integer) RETURNS integer[]
    AS 'MODULE_PATHNAME', 'intset_union_elem' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION intset_subtract(integer[], integer[]) RETURNS integer[]
    AS 'MODULE_PATHNAME', 'intset_subtract' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION g_int_consistent(internal, integer[], smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'g_int_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION g_int_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'g_int_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION g_int_decompress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'g_int_decompress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION g_int_penalty(internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'g_int_penalty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION g_int_picksplit(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'g_int_picksplit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION g_int_union(internal, internal) RETURNS integer[]
    AS 'MODULE_PATHNAME', 'g_int_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION g_int_same(integer[], integer[], internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'g_int_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION g_intbig_consistent(internal, integer[], smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'g_intbig_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION g_intbig_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'g_intbig_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION g_intbig_decompress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'g_intbig_decompress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION g_intbig_penalty(internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'g_intbig_penalty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION g_intbig_picksplit(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'g_intbig_picksplit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION g_intbig_union(internal, internal) RETURNS intbig_gkey
    AS 'MODULE_PATHNAME', 'g_intbig_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION g_intbig_same(intbig_gkey, intbig_gkey, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'g_intbig_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ginint4_queryextract(integer[], internal, smallint, internal, internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'ginint4_queryextract' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ginint4_consistent(internal, smallint, integer[], integer, internal, internal, internal, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'ginint4_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION g_int_options(internal) RETURNS void
    AS 'MODULE_PATHNAME', 'g_int_options' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION g_intbig_options(internal) RETURNS void
    AS 'MODULE_PATHNAME', 'g_intbig_options' LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE OPERATOR ~~ (FUNCTION = rboolop, LEFTARG = query_int, RIGHTARG = integer[], COMMUTATOR = @@, RESTRICT = _int_matchsel, JOIN = contjoinsel);
CREATE OPERATOR @@ (FUNCTION = boolop, LEFTARG = integer[], RIGHTARG = query_int, COMMUTATOR = ~~, RESTRICT = _int_matchsel, JOIN = contjoinsel);
CREATE OPERATOR && (FUNCTION = _int_overlap, LEFTARG = integer[], RIGHTARG = integer[], COMMUTATOR = &&, RESTRICT = _int_overlap_sel, JOIN = _int_overlap_joinsel);
CREATE OPERATOR <@ (FUNCTION = _int_contained, LEFTARG = integer[], RIGHTARG = integer[], COMMUTATOR = @>, RESTRICT = _int_contained_sel, JOIN = _int_contained_joinsel);
CREATE OPERATOR @> (FUNCTION = _int_contains, LEFTARG = integer[], RIGHTARG = integer[], COMMUTATOR = <@, RESTRICT = _int_contains_sel, JOIN = _int_contains_joinsel);
CREATE OPERATOR # (FUNCTION = icount, RIGHTARG = integer[]);
CREATE OPERATOR # (FUNCTION = idx, LEFTARG = integer[], RIGHTARG = integer);
CREATE OPERATOR + (FUNCTION = intarray_push_elem, LEFTARG = integer[], RIGHTARG = integer);
CREATE OPERATOR + (FUNCTION = intarray_push_array, LEFTARG = integer[], RIGHTARG = integer[], COMMUTATOR = +);
CREATE OPERATOR - (FUNCTION = intarray_del_elem, LEFTARG = integer[], RIGHTARG = integer);
CREATE OPERATOR | (FUNCTION = intset_union_elem, LEFTARG = integer[], RIGHTARG = integer);
CREATE OPERATOR | (FUNCTION = _int_union, LEFTARG = integer[], RIGHTARG = integer[], COMMUTATOR = |);
CREATE OPERATOR - (FUNCTION = intset_subtract, LEFTARG = integer[], RIGHTARG = integer[]);
CREATE OPERATOR & (FUNCTION = _int_inter, LEFTARG = integer[], RIGHTARG = integer[], COMMUTATOR = &);
CREATE OPERATOR CLASS gist__int_ops
    DEFAULT FOR TYPE integer[] USING gist AS
    OPERATOR 3 &&,
    OPERATOR 7 @>,
    OPERATOR 20 @@ (integer[], query_int),
    FUNCTION 1 g_int_consistent(internal,integer[],smallint,oid,internal),
    FUNCTION 2 g_int_union(internal,internal),
    FUNCTION 3 g_int_compress(internal),
    FUNCTION 4 g_int_decompress(internal),
    FUNCTION 5 g_int_penalty(internal,internal,internal),
    FUNCTION 6 g_int_picksplit(internal,internal),
    FUNCTION 7 g_int_same(integer[],integer[],internal),
    FUNCTION 10 g_int_options(internal);
CREATE OPERATOR CLASS gist__intbig_ops
    FOR TYPE integer[] USING gist AS
    OPERATOR 3 &&,
    OPERATOR 7 @>,
    OPERATOR 20 @@ (integer[], query_int),
    FUNCTION 1 g_intbig_consistent(internal,integer[],smallint,oid,internal),
    FUNCTION 2 g_intbig_union(internal,internal),
    FUNCTION 3 g_intbig_compress(internal),
    FUNCTION 4 g_intbig_decompress(internal),
    FUNCTION 5 g_intbig_penalty(internal,internal,internal),
    FUNCTION 6 g_intbig_picksplit(internal,internal),
    FUNCTION 7 g_intbig_same(intbig_gkey,intbig_gkey,internal),
    FUNCTION 10 g_intbig_options(internal),
    STORAGE intbig_gkey;
CREATE OPERATOR CLASS gin__int_ops
    FOR TYPE integer[] USING gin AS
    OPERATOR 3 &&,
    OPERATOR 7 @>,
    OPERATOR 8 <@,
    OPERATOR 20 @@ (integer[], query_int),
    FUNCTION 1 btint4cmp(integer,integer),
    FUNCTION 2 ginarrayextract(anyarray,internal,internal),
    FUNCTION 3 ginint4_queryextract(integer[],internal,smallint,internal,internal,internal,internal),
    FUNCTION 4 ginint4_consistent(internal,smallint,integer[],integer,internal,internal,internal,internal),
    STORAGE integer;
