-- hstore 1.8: the objects of PostgreSQL's extension.

CREATE TYPE hstore;
CREATE TYPE ghstore;

CREATE FUNCTION hstore_in(cstring) RETURNS hstore
    AS 'MODULE_PATHNAME', 'hstore_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION hstore_out(hstore) RETURNS cstring
    AS 'MODULE_PATHNAME', 'hstore_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION hstore_recv(internal) RETURNS hstore
    AS 'MODULE_PATHNAME', 'hstore_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION hstore_send(hstore) RETURNS bytea
    AS 'MODULE_PATHNAME', 'hstore_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE TYPE hstore (INPUT = hstore_in, OUTPUT = hstore_out, RECEIVE = hstore_recv, SEND = hstore_send, INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = extended);

CREATE FUNCTION ghstore_in(cstring) RETURNS ghstore
    AS 'MODULE_PATHNAME', 'ghstore_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ghstore_out(ghstore) RETURNS cstring
    AS 'MODULE_PATHNAME', 'ghstore_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE TYPE ghstore (INPUT = ghstore_in, OUTPUT = ghstore_out, INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = plain);

CREATE FUNCTION hstore_version_diag(hstore) RETURNS integer
    AS 'MODULE_PATHNAME', 'hstore_version_diag' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION fetchval(hstore, text) RETURNS text
    AS 'MODULE_PATHNAME', 'hstore_fetchval' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION slice_array(hstore, text[]) RETURNS text[]
    AS 'MODULE_PATHNAME', 'hstore_slice_to_array' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION slice(hstore, text[]) RETURNS hstore
    AS 'MODULE_PATHNAME', 'hstore_slice_to_hstore' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION isexists(hstore, text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'hstore_exists' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION exist(hstore, text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'hstore_exists' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION exists_any(hstore, text[]) RETURNS boolean
    AS 'MODULE_PATHNAME', 'hstore_exists_any' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION exists_all(hstore, text[]) RETURNS boolean
    AS 'MODULE_PATHNAME', 'hstore_exists_all' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION isdefined(hstore, text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'hstore_defined' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION defined(hstore, text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'hstore_defined' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION delete(hstore, text) RETURNS hstore
    AS 'MODULE_PATHNAME', 'hstore_delete' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION delete(hstore, text[]) RETURNS hstore
    AS 'MODULE_PATHNAME', 'hstore_delete_array' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION delete(hstore, hstore) RETURNS hstore
    AS 'MODULE_PATHNAME', 'hstore_delete_hstore' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION hs_concat(hstore, hstore) RETURNS hstore
    AS 'MODULE_PATHNAME', 'hstore_concat' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION hs_contains(hstore, hstore) RETURNS boolean
    AS 'MODULE_PATHNAME', 'hstore_contains' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION hs_contained(hstore, hstore) RETURNS boolean
    AS 'MODULE_PATHNAME', 'hstore_contained' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION tconvert(text, text) RETURNS hstore
    AS 'MODULE_PATHNAME', 'hstore_from_text' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION hstore(text, text) RETURNS hstore
    AS 'MODULE_PATHNAME', 'hstore_from_text' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION hstore(text[], text[]) RETURNS hstore
    AS 'MODULE_PATHNAME', 'hstore_from_arrays' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION hstore(text[]) RETURNS hstore
    AS 'MODULE_PATHNAME', 'hstore_from_array' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION hstore_to_json(hstore) RETURNS json
    AS 'MODULE_PATHNAME', 'hstore_to_json' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION hstore_to_json_loose(hstore) RETURNS json
    AS 'MODULE_PATHNAME', 'hstore_to_json_loose' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION hstore_to_jsonb(hstore) RETURNS jsonb
    AS 'MODULE_PATHNAME', 'hstore_to_jsonb' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION hstore_to_jsonb_loose(hstore) RETURNS jsonb
    AS 'MODULE_PATHNAME', 'hstore_to_jsonb_loose' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION hstore(record) RETURNS hstore
    AS 'MODULE_PATHNAME', 'hstore_from_record' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION hstore_to_array(hstore) RETURNS text[]
    AS 'MODULE_PATHNAME', 'hstore_to_array' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION hstore_to_matrix(hstore) RETURNS text[]
    AS 'MODULE_PATHNAME', 'hstore_to_matrix' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION akeys(hstore) RETURNS text[]
    AS 'MODULE_PATHNAME', 'hstore_akeys' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION avals(hstore) RETURNS text[]
    AS 'MODULE_PATHNAME', 'hstore_avals' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION skeys(hstore) RETURNS SETOF text
    AS 'MODULE_PATHNAME', 'hstore_skeys' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION svals(hstore) RETURNS SETOF text
    AS 'MODULE_PATHNAME', 'hstore_svals' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION each(hs hstore, OUT key text, OUT value text) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'hstore_each' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION populate_record(anyelement, hstore) RETURNS anyelement
    AS 'MODULE_PATHNAME', 'hstore_populate_record' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION hstore_eq(hstore, hstore) RETURNS boolean
    AS 'MODULE_PATHNAME', 'hstore_eq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION hstore_ne(hstore, hstore) RETURNS boolean
    AS 'MODULE_PATHNAME', 'hstore_ne' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION hstore_gt(hstore, hstore) RETURNS boolean
    AS 'MODULE_PATHNAME', 'hstore_gt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION hstore_ge(hstore, hstore) RETURNS boolean
    AS 'MODULE_PATHNAME', 'hstore_ge' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION hstore_lt(hstore, hstore) RETURNS boolean
    AS 'MODULE_PATHNAME', 'hstore_lt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION hstore_le(hstore, hstore) RETURNS boolean
    AS 'MODULE_PATHNAME', 'hstore_le' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION hstore_cmp(hstore, hstore) RETURNS integer
    AS 'MODULE_PATHNAME', 'hstore_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION hstore_hash(hstore) RETURNS integer
    AS 'MODULE_PATHNAME', 'hstore_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ghstore_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'ghstore_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ghstore_decompress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'ghstore_decompress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ghstore_penalty(internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'ghstore_penalty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ghstore_picksplit(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'ghstore_picksplit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ghstore_union(internal, internal) RETURNS ghstore
    AS 'MODULE_PATHNAME', 'ghstore_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ghstore_same(ghstore, ghstore, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'ghstore_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ghstore_consistent(internal, hstore, smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'ghstore_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gin_extract_hstore(hstore, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gin_extract_hstore' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gin_extract_hstore_query(hstore, internal, smallint, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gin_extract_hstore_query' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gin_consistent_hstore(internal, smallint, hstore, integer, internal, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gin_consistent_hstore' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION hstore_hash_extended(hstore, bigint) RETURNS bigint
    AS 'MODULE_PATHNAME', 'hstore_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ghstore_options(internal) RETURNS void
    AS 'MODULE_PATHNAME', 'ghstore_options' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION hstore_subscript_handler(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'hstore_subscript_handler' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OPERATOR -> (FUNCTION = fetchval, LEFTARG = hstore, RIGHTARG = text);
CREATE OPERATOR -> (FUNCTION = slice_array, LEFTARG = hstore, RIGHTARG = text[]);
CREATE OPERATOR ? (FUNCTION = exist, LEFTARG = hstore, RIGHTARG = text, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR ?| (FUNCTION = exists_any, LEFTARG = hstore, RIGHTARG = text[], RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR ?& (FUNCTION = exists_all, LEFTARG = hstore, RIGHTARG = text[], RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR - (FUNCTION = delete, LEFTARG = hstore, RIGHTARG = text);
CREATE OPERATOR - (FUNCTION = delete, LEFTARG = hstore, RIGHTARG = text[]);
CREATE OPERATOR - (FUNCTION = delete, LEFTARG = hstore, RIGHTARG = hstore);
CREATE OPERATOR || (FUNCTION = hs_concat, LEFTARG = hstore, RIGHTARG = hstore);
CREATE OPERATOR <@ (FUNCTION = hs_contained, LEFTARG = hstore, RIGHTARG = hstore, COMMUTATOR = @>, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR @> (FUNCTION = hs_contains, LEFTARG = hstore, RIGHTARG = hstore, COMMUTATOR = <@, RESTRICT = matchingsel, JOIN = matchingjoinsel);
CREATE OPERATOR %% (FUNCTION = hstore_to_array, RIGHTARG = hstore);
CREATE OPERATOR %# (FUNCTION = hstore_to_matrix, RIGHTARG = hstore);
CREATE OPERATOR #= (FUNCTION = populate_record, LEFTARG = anyelement, RIGHTARG = hstore);
CREATE OPERATOR <> (FUNCTION = hstore_ne, LEFTARG = hstore, RIGHTARG = hstore, COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR = (FUNCTION = hstore_eq, LEFTARG = hstore, RIGHTARG = hstore, COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES);
CREATE OPERATOR #># (FUNCTION = hstore_gt, LEFTARG = hstore, RIGHTARG = hstore, COMMUTATOR = #<#, NEGATOR = #<=#, RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR #>=# (FUNCTION = hstore_ge, LEFTARG = hstore, RIGHTARG = hstore, COMMUTATOR = #<=#, NEGATOR = #<#, RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR #<# (FUNCTION = hstore_lt, LEFTARG = hstore, RIGHTARG = hstore, COMMUTATOR = #>#, NEGATOR = #>=#, RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR #<=# (FUNCTION = hstore_le, LEFTARG = hstore, RIGHTARG = hstore, COMMUTATOR = #>=#, NEGATOR = #>#, RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE CAST (text[] AS hstore) WITH FUNCTION hstore(text[]);
CREATE CAST (hstore AS json) WITH FUNCTION hstore_to_json(hstore);
CREATE CAST (hstore AS jsonb) WITH FUNCTION hstore_to_jsonb(hstore);
CREATE OPERATOR CLASS btree_hstore_ops
    DEFAULT FOR TYPE hstore USING btree AS
    OPERATOR 1 #<#,
    OPERATOR 2 #<=#,
    OPERATOR 3 =,
    OPERATOR 4 #>=#,
    OPERATOR 5 #>#,
    FUNCTION 1 hstore_cmp(hstore,hstore);
CREATE OPERATOR CLASS hash_hstore_ops
    DEFAULT FOR TYPE hstore USING hash AS
    OPERATOR 1 =,
    FUNCTION 1 hstore_hash(hstore),
    FUNCTION 2 hstore_hash_extended(hstore,bigint);
CREATE OPERATOR CLASS gist_hstore_ops
    DEFAULT FOR TYPE hstore USING gist AS
    OPERATOR 7 @>,
    OPERATOR 9 ? (hstore, text),
    OPERATOR 10 ?| (hstore, text[]),
    OPERATOR 11 ?& (hstore, text[]),
    FUNCTION 1 ghstore_consistent(internal,hstore,smallint,oid,internal),
    FUNCTION 2 ghstore_union(internal,internal),
    FUNCTION 3 ghstore_compress(internal),
    FUNCTION 4 ghstore_decompress(internal),
    FUNCTION 5 ghstore_penalty(internal,internal,internal),
    FUNCTION 6 ghstore_picksplit(internal,internal),
    FUNCTION 7 ghstore_same(ghstore,ghstore,internal),
    FUNCTION 10 ghstore_options(internal),
    STORAGE ghstore;
CREATE OPERATOR CLASS gin_hstore_ops
    DEFAULT FOR TYPE hstore USING gin AS
    OPERATOR 7 @>,
    OPERATOR 9 ? (hstore, text),
    OPERATOR 10 ?| (hstore, text[]),
    OPERATOR 11 ?& (hstore, text[]),
    FUNCTION 1 bttextcmp(text,text),
    FUNCTION 2 gin_extract_hstore(hstore,internal),
    FUNCTION 3 gin_extract_hstore_query(hstore,internal,smallint,internal,internal),
    FUNCTION 4 gin_consistent_hstore(internal,smallint,hstore,integer,internal,internal),
    STORAGE text;
