-- seg 1.4: the objects of PostgreSQL's extension.

CREATE TYPE seg;

CREATE FUNCTION seg_in(cstring) RETURNS seg
    AS 'MODULE_PATHNAME', 'seg_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION seg_out(seg) RETURNS cstring
    AS 'MODULE_PATHNAME', 'seg_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE TYPE seg (INPUT = seg_in, OUTPUT = seg_out, INTERNALLENGTH = 12, ALIGNMENT = int4, STORAGE = plain);

CREATE FUNCTION seg_over_left(seg, seg) RETURNS boolean
    AS 'MODULE_PATHNAME', 'seg_over_left' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION seg_over_right(seg, seg) RETURNS boolean
    AS 'MODULE_PATHNAME', 'seg_over_right' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION seg_left(seg, seg) RETURNS boolean
    AS 'MODULE_PATHNAME', 'seg_left' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION seg_right(seg, seg) RETURNS boolean
    AS 'MODULE_PATHNAME', 'seg_right' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION seg_lt(seg, seg) RETURNS boolean
    AS 'MODULE_PATHNAME', 'seg_lt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION seg_le(seg, seg) RETURNS boolean
    AS 'MODULE_PATHNAME', 'seg_le' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION seg_gt(seg, seg) RETURNS boolean
    AS 'MODULE_PATHNAME', 'seg_gt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION seg_ge(seg, seg) RETURNS boolean
    AS 'MODULE_PATHNAME', 'seg_ge' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION seg_contains(seg, seg) RETURNS boolean
    AS 'MODULE_PATHNAME', 'seg_contains' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION seg_contained(seg, seg) RETURNS boolean
    AS 'MODULE_PATHNAME', 'seg_contained' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION seg_overlap(seg, seg) RETURNS boolean
    AS 'MODULE_PATHNAME', 'seg_overlap' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION seg_same(seg, seg) RETURNS boolean
    AS 'MODULE_PATHNAME', 'seg_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION seg_different(seg, seg) RETURNS boolean
    AS 'MODULE_PATHNAME', 'seg_different' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION seg_cmp(seg, seg) RETURNS integer
    AS 'MODULE_PATHNAME', 'seg_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION seg_union(seg, seg) RETURNS seg
    AS 'MODULE_PATHNAME', 'seg_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION seg_inter(seg, seg) RETURNS seg
    AS 'MODULE_PATHNAME', 'seg_inter' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION seg_size(seg) RETURNS real
    AS 'MODULE_PATHNAME', 'seg_size' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION seg_center(seg) RETURNS real
    AS 'MODULE_PATHNAME', 'seg_center' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION seg_upper(seg) RETURNS real
    AS 'MODULE_PATHNAME', 'seg_upper' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION seg_lower(seg) RETURNS real
    AS 'MODULE_PATHNAME', 'seg_lower' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gseg_consistent(internal, seg, smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gseg_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gseg_penalty(internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gseg_penalty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gseg_picksplit(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gseg_picksplit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gseg_union(internal, internal) RETURNS seg
    AS 'MODULE_PATHNAME', 'gseg_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gseg_same(seg, seg, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gseg_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OPERATOR > (FUNCTION = seg_gt, LEFTARG = seg, RIGHTARG = seg, COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR >= (FUNCTION = seg_ge, LEFTARG = seg, RIGHTARG = seg, COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR < (FUNCTION = seg_lt, LEFTARG = seg, RIGHTARG = seg, COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (FUNCTION = seg_le, LEFTARG = seg, RIGHTARG = seg, COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR >> (FUNCTION = seg_right, LEFTARG = seg, RIGHTARG = seg, COMMUTATOR = <<, RESTRICT = positionsel, JOIN = positionjoinsel);
CREATE OPERATOR << (FUNCTION = seg_left, LEFTARG = seg, RIGHTARG = seg, COMMUTATOR = >>, RESTRICT = positionsel, JOIN = positionjoinsel);
CREATE OPERATOR &< (FUNCTION = seg_over_left, LEFTARG = seg, RIGHTARG = seg, RESTRICT = positionsel, JOIN = positionjoinsel);
CREATE OPERATOR && (FUNCTION = seg_overlap, LEFTARG = seg, RIGHTARG = seg, COMMUTATOR = &&, RESTRICT = areasel, JOIN = areajoinsel);
CREATE OPERATOR &> (FUNCTION = seg_over_right, LEFTARG = seg, RIGHTARG = seg, RESTRICT = positionsel, JOIN = positionjoinsel);
CREATE OPERATOR <> (FUNCTION = seg_different, LEFTARG = seg, RIGHTARG = seg, COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR = (FUNCTION = seg_same, LEFTARG = seg, RIGHTARG = seg, COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel, MERGES);
CREATE OPERATOR <@ (FUNCTION = seg_contained, LEFTARG = seg, RIGHTARG = seg, COMMUTATOR = @>, RESTRICT = contsel, JOIN = contjoinsel);
CREATE OPERATOR @> (FUNCTION = seg_contains, LEFTARG = seg, RIGHTARG = seg, COMMUTATOR = <@, RESTRICT = contsel, JOIN = contjoinsel);
CREATE OPERATOR CLASS seg_ops
    DEFAULT FOR TYPE seg USING btree AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    FUNCTION 1 seg_cmp(seg,seg);
CREATE OPERATOR CLASS gist_seg_ops
    DEFAULT FOR TYPE seg USING gist AS
    OPERATOR 1 <<,
    OPERATOR 2 &<,
    OPERATOR 3 &&,
    OPERATOR 4 &>,
    OPERATOR 5 >>,
    OPERATOR 6 =,
    OPERATOR 7 @>,
    OPERATOR 8 <@,
    FUNCTION 1 gseg_consistent(internal,seg,smallint,oid,internal),
    FUNCTION 2 gseg_union(internal,internal),
    FUNCTION 5 gseg_penalty(internal,internal,internal),
    FUNCTION 6 gseg_picksplit(internal,internal),
    FUNCTION 7 gseg_same(seg,seg,internal);
