-- vector 0.8.0: the objects of pgvector; its access methods are the server's.

CREATE TYPE vector;
CREATE TYPE halfvec;
CREATE TYPE sparsevec;

CREATE FUNCTION vector_in(cstring, oid, integer) RETURNS vector
    AS 'MODULE_PATHNAME', 'vector_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION vector_out(vector) RETURNS cstring
    AS 'MODULE_PATHNAME', 'vector_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION vector_typmod_in(cstring[]) RETURNS integer
    AS 'MODULE_PATHNAME', 'vector_typmod_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION vector_recv(internal, oid, integer) RETURNS vector
    AS 'MODULE_PATHNAME', 'vector_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION vector_send(vector) RETURNS bytea
    AS 'MODULE_PATHNAME', 'vector_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE TYPE vector (INPUT = vector_in, OUTPUT = vector_out, TYPMOD_IN = vector_typmod_in, RECEIVE = vector_recv, SEND = vector_send, INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = external);

CREATE FUNCTION halfvec_in(cstring, oid, integer) RETURNS halfvec
    AS 'MODULE_PATHNAME', 'halfvec_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION halfvec_out(halfvec) RETURNS cstring
    AS 'MODULE_PATHNAME', 'halfvec_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION halfvec_typmod_in(cstring[]) RETURNS integer
    AS 'MODULE_PATHNAME', 'halfvec_typmod_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION halfvec_recv(internal, oid, integer) RETURNS halfvec
    AS 'MODULE_PATHNAME', 'halfvec_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION halfvec_send(halfvec) RETURNS bytea
    AS 'MODULE_PATHNAME', 'halfvec_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE TYPE halfvec (INPUT = halfvec_in, OUTPUT = halfvec_out, TYPMOD_IN = halfvec_typmod_in, RECEIVE = halfvec_recv, SEND = halfvec_send, INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = external);

CREATE FUNCTION sparsevec_in(cstring, oid, integer) RETURNS sparsevec
    AS 'MODULE_PATHNAME', 'sparsevec_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sparsevec_out(sparsevec) RETURNS cstring
    AS 'MODULE_PATHNAME', 'sparsevec_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sparsevec_typmod_in(cstring[]) RETURNS integer
    AS 'MODULE_PATHNAME', 'sparsevec_typmod_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sparsevec_recv(internal, oid, integer) RETURNS sparsevec
    AS 'MODULE_PATHNAME', 'sparsevec_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sparsevec_send(sparsevec) RETURNS bytea
    AS 'MODULE_PATHNAME', 'sparsevec_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE TYPE sparsevec (INPUT = sparsevec_in, OUTPUT = sparsevec_out, TYPMOD_IN = sparsevec_typmod_in, RECEIVE = sparsevec_recv, SEND = sparsevec_send, INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = external);

CREATE FUNCTION l2_distance(vector, vector) RETURNS double precision
    AS 'MODULE_PATHNAME', 'l2_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION inner_product(vector, vector) RETURNS double precision
    AS 'MODULE_PATHNAME', 'inner_product' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION cosine_distance(vector, vector) RETURNS double precision
    AS 'MODULE_PATHNAME', 'cosine_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION l1_distance(vector, vector) RETURNS double precision
    AS 'MODULE_PATHNAME', 'l1_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION l2_normalize(vector) RETURNS vector
    AS 'MODULE_PATHNAME', 'l2_normalize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION vector_norm(vector) RETURNS double precision
    AS 'MODULE_PATHNAME', 'vector_norm' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION vector_dims(vector) RETURNS integer
    AS 'MODULE_PATHNAME', 'vector_dims' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION binary_quantize(vector) RETURNS bit
    AS 'MODULE_PATHNAME', 'binary_quantize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION subvector(vector, integer, integer) RETURNS vector
    AS 'MODULE_PATHNAME', 'subvector' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION vector_add(vector, vector) RETURNS vector
    AS 'MODULE_PATHNAME', 'vector_add' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION vector_sub(vector, vector) RETURNS vector
    AS 'MODULE_PATHNAME', 'vector_sub' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION vector_mul(vector, vector) RETURNS vector
    AS 'MODULE_PATHNAME', 'vector_mul' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION vector_concat(vector, vector) RETURNS vector
    AS 'MODULE_PATHNAME', 'vector_concat' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION vector_spherical_distance(vector, vector) RETURNS double precision
    AS 'MODULE_PATHNAME', 'vector_spherical_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION vector_accum(double precision[], vector) RETURNS double precision[]
    AS 'MODULE_PATHNAME', 'vector_accum' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION vector_avg(double precision[]) RETURNS vector
    AS 'MODULE_PATHNAME', 'vector_avg' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION vector_combine(double precision[], double precision[]) RETURNS double precision[]
    AS 'MODULE_PATHNAME', 'vector_combine' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION vector_lt(vector, vector) RETURNS boolean
    AS 'MODULE_PATHNAME', 'vector_lt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION vector_le(vector, vector) RETURNS boolean
    AS 'MODULE_PATHNAME', 'vector_le' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION vector_eq(vector, vector) RETURNS boolean
    AS 'MODULE_PATHNAME', 'vector_eq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION vector_ne(vector, vector) RETURNS boolean
    AS 'MODULE_PATHNAME', 'vector_ne' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION vector_ge(vector, vector) RETURNS boolean
    AS 'MODULE_PATHNAME', 'vector_ge' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION vector_gt(vector, vector) RETURNS boolean
    AS 'MODULE_PATHNAME', 'vector_gt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION vector_cmp(vector, vector) RETURNS integer
    AS 'MODULE_PATHNAME', 'vector_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION vector_l2_squared_distance(vector, vector) RETURNS double precision
    AS 'MODULE_PATHNAME', 'vector_l2_squared_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION vector_negative_inner_product(vector, vector) RETURNS double precision
    AS 'MODULE_PATHNAME', 'vector_negative_inner_product' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION l2_distance(halfvec, halfvec) RETURNS double precision
    AS 'MODULE_PATHNAME', 'halfvec_l2_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION inner_product(halfvec, halfvec) RETURNS double precision
    AS 'MODULE_PATHNAME', 'halfvec_inner_product' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION cosine_distance(halfvec, halfvec) RETURNS double precision
    AS 'MODULE_PATHNAME', 'halfvec_cosine_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION l1_distance(halfvec, halfvec) RETURNS double precision
    AS 'MODULE_PATHNAME', 'halfvec_l1_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION l2_normalize(halfvec) RETURNS halfvec
    AS 'MODULE_PATHNAME', 'halfvec_l2_normalize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION l2_norm(halfvec) RETURNS double precision
    AS 'MODULE_PATHNAME', 'halfvec_l2_norm' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION vector_dims(halfvec) RETURNS integer
    AS 'MODULE_PATHNAME', 'halfvec_vector_dims' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION binary_quantize(halfvec) RETURNS bit
    AS 'MODULE_PATHNAME', 'halfvec_binary_quantize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION subvector(halfvec, integer, integer) RETURNS halfvec
    AS 'MODULE_PATHNAME', 'halfvec_subvector' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION halfvec_add(halfvec, halfvec) RETURNS halfvec
    AS 'MODULE_PATHNAME', 'halfvec_add' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION halfvec_sub(halfvec, halfvec) RETURNS halfvec
    AS 'MODULE_PATHNAME', 'halfvec_sub' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION halfvec_mul(halfvec, halfvec) RETURNS halfvec
    AS 'MODULE_PATHNAME', 'halfvec_mul' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION halfvec_concat(halfvec, halfvec) RETURNS halfvec
    AS 'MODULE_PATHNAME', 'halfvec_concat' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION halfvec_spherical_distance(halfvec, halfvec) RETURNS double precision
    AS 'MODULE_PATHNAME', 'halfvec_spherical_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION halfvec_accum(double precision[], halfvec) RETURNS double precision[]
    AS 'MODULE_PATHNAME', 'halfvec_accum' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION halfvec_avg(double precision[]) RETURNS halfvec
    AS 'MODULE_PATHNAME', 'halfvec_avg' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION halfvec_combine(double precision[], double precision[]) RETURNS double precision[]
    AS 'MODULE_PATHNAME', 'halfvec_combine' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION halfvec_lt(halfvec, halfvec) RETURNS boolean
    AS 'MODULE_PATHNAME', 'halfvec_lt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION halfvec_le(halfvec, halfvec) RETURNS boolean
    AS 'MODULE_PATHNAME', 'halfvec_le' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION halfvec_eq(halfvec, halfvec) RETURNS boolean
    AS 'MODULE_PATHNAME', 'halfvec_eq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION halfvec_ne(halfvec, halfvec) RETURNS boolean
    AS 'MODULE_PATHNAME', 'halfvec_ne' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION halfvec_ge(halfvec, halfvec) RETURNS boolean
    AS 'MODULE_PATHNAME', 'halfvec_ge' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION halfvec_gt(halfvec, halfvec) RETURNS boolean
    AS 'MODULE_PATHNAME', 'halfvec_gt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION halfvec_cmp(halfvec, halfvec) RETURNS integer
    AS 'MODULE_PATHNAME', 'halfvec_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION halfvec_l2_squared_distance(halfvec, halfvec) RETURNS double precision
    AS 'MODULE_PATHNAME', 'halfvec_l2_squared_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION halfvec_negative_inner_product(halfvec, halfvec) RETURNS double precision
    AS 'MODULE_PATHNAME', 'halfvec_negative_inner_product' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION l2_distance(sparsevec, sparsevec) RETURNS double precision
    AS 'MODULE_PATHNAME', 'sparsevec_l2_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION inner_product(sparsevec, sparsevec) RETURNS double precision
    AS 'MODULE_PATHNAME', 'sparsevec_inner_product' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION cosine_distance(sparsevec, sparsevec) RETURNS double precision
    AS 'MODULE_PATHNAME', 'sparsevec_cosine_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION l1_distance(sparsevec, sparsevec) RETURNS double precision
    AS 'MODULE_PATHNAME', 'sparsevec_l1_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION l2_normalize(sparsevec) RETURNS sparsevec
    AS 'MODULE_PATHNAME', 'sparsevec_l2_normalize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION l2_norm(sparsevec) RETURNS double precision
    AS 'MODULE_PATHNAME', 'sparsevec_l2_norm' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sparsevec_lt(sparsevec, sparsevec) RETURNS boolean
    AS 'MODULE_PATHNAME', 'sparsevec_lt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sparsevec_le(sparsevec, sparsevec) RETURNS boolean
    AS 'MODULE_PATHNAME', 'sparsevec_le' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sparsevec_eq(sparsevec, sparsevec) RETURNS boolean
    AS 'MODULE_PATHNAME', 'sparsevec_eq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sparsevec_ne(sparsevec, sparsevec) RETURNS boolean
    AS 'MODULE_PATHNAME', 'sparsevec_ne' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sparsevec_ge(sparsevec, sparsevec) RETURNS boolean
    AS 'MODULE_PATHNAME', 'sparsevec_ge' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sparsevec_gt(sparsevec, sparsevec) RETURNS boolean
    AS 'MODULE_PATHNAME', 'sparsevec_gt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sparsevec_cmp(sparsevec, sparsevec) RETURNS integer
    AS 'MODULE_PATHNAME', 'sparsevec_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sparsevec_l2_squared_distance(sparsevec, sparsevec) RETURNS double precision
    AS 'MODULE_PATHNAME', 'sparsevec_l2_squared_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sparsevec_negative_inner_product(sparsevec, sparsevec) RETURNS double precision
    AS 'MODULE_PATHNAME', 'sparsevec_negative_inner_product' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION hamming_distance(bit, bit) RETURNS double precision
    AS 'MODULE_PATHNAME', 'hamming_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION jaccard_distance(bit, bit) RETURNS double precision
    AS 'MODULE_PATHNAME', 'jaccard_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION vector(vector, integer, boolean) RETURNS vector
    AS 'MODULE_PATHNAME', 'vector' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION array_to_vector(integer[], integer, boolean) RETURNS vector
    AS 'MODULE_PATHNAME', 'array_to_vector' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION array_to_vector(real[], integer, boolean) RETURNS vector
    AS 'MODULE_PATHNAME', 'array_to_vector' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION array_to_vector(double precision[], integer, boolean) RETURNS vector
    AS 'MODULE_PATHNAME', 'array_to_vector' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION array_to_vector(numeric[], integer, boolean) RETURNS vector
    AS 'MODULE_PATHNAME', 'array_to_vector' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION vector_to_float4(vector, integer, boolean) RETURNS real[]
    AS 'MODULE_PATHNAME', 'vector_to_float4' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION halfvec(halfvec, integer, boolean) RETURNS halfvec
    AS 'MODULE_PATHNAME', 'halfvec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION array_to_halfvec(integer[], integer, boolean) RETURNS halfvec
    AS 'MODULE_PATHNAME', 'array_to_halfvec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION array_to_halfvec(real[], integer, boolean) RETURNS halfvec
    AS 'MODULE_PATHNAME', 'array_to_halfvec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION array_to_halfvec(double precision[], integer, boolean) RETURNS halfvec
    AS 'MODULE_PATHNAME', 'array_to_halfvec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION array_to_halfvec(numeric[], integer, boolean) RETURNS halfvec
    AS 'MODULE_PATHNAME', 'array_to_halfvec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION halfvec_to_float4(halfvec, integer, boolean) RETURNS real[]
    AS 'MODULE_PATHNAME', 'halfvec_to_float4' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sparsevec(sparsevec, integer, boolean) RETURNS sparsevec
    AS 'MODULE_PATHNAME', 'sparsevec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION array_to_sparsevec(integer[], integer, boolean) RETURNS sparsevec
    AS 'MODULE_PATHNAME', 'array_to_sparsevec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION array_to_sparsevec(real[], integer, boolean) RETURNS sparsevec
    AS 'MODULE_PATHNAME', 'array_to_sparsevec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION array_to_sparsevec(double precision[], integer, boolean) RETURNS sparsevec
    AS 'MODULE_PATHNAME', 'array_to_sparsevec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION array_to_sparsevec(numeric[], integer, boolean) RETURNS sparsevec
    AS 'MODULE_PATHNAME', 'array_to_sparsevec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION vector_to_halfvec(vector, integer, boolean) RETURNS halfvec
    AS 'MODULE_PATHNAME', 'vector_to_halfvec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION vector_to_sparsevec(vector, integer, boolean) RETURNS sparsevec
    AS 'MODULE_PATHNAME', 'vector_to_sparsevec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION halfvec_to_vector(halfvec, integer, boolean) RETURNS vector
    AS 'MODULE_PATHNAME', 'halfvec_to_vector' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION halfvec_to_sparsevec(halfvec, integer, boolean) RETURNS sparsevec
    AS 'MODULE_PATHNAME', 'halfvec_to_sparsevec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sparsevec_to_vector(sparsevec, integer, boolean) RETURNS vector
    AS 'MODULE_PATHNAME', 'sparsevec_to_vector' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION sparsevec_to_halfvec(sparsevec, integer, boolean) RETURNS halfvec
    AS 'MODULE_PATHNAME', 'sparsevec_to_halfvec' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE AGGREGATE avg(vector) (SFUNC = vector_accum, STYPE = double precision[], FINALFUNC = vector_avg, COMBINEFUNC = vector_combine, INITCOND = '{0}', PARALLEL = safe);
CREATE AGGREGATE sum(vector) (SFUNC = vector_add, STYPE = vector, COMBINEFUNC = vector_add, PARALLEL = safe);
CREATE AGGREGATE avg(halfvec) (SFUNC = halfvec_accum, STYPE = double precision[], FINALFUNC = halfvec_avg, COMBINEFUNC = halfvec_combine, INITCOND = '{0}', PARALLEL = safe);
CREATE AGGREGATE sum(halfvec) (SFUNC = halfvec_add, STYPE = halfvec, COMBINEFUNC = halfvec_add, PARALLEL = safe);

CREATE CAST (vector AS vector) WITH FUNCTION vector(vector, integer, boolean) AS IMPLICIT;
CREATE CAST (vector AS real[]) WITH FUNCTION vector_to_float4(vector, integer, boolean) AS IMPLICIT;
CREATE CAST (integer[] AS vector) WITH FUNCTION array_to_vector(integer[], integer, boolean) AS ASSIGNMENT;
CREATE CAST (real[] AS vector) WITH FUNCTION array_to_vector(real[], integer, boolean) AS ASSIGNMENT;
CREATE CAST (double precision[] AS vector) WITH FUNCTION array_to_vector(double precision[], integer, boolean) AS ASSIGNMENT;
CREATE CAST (numeric[] AS vector) WITH FUNCTION array_to_vector(numeric[], integer, boolean) AS ASSIGNMENT;
CREATE CAST (halfvec AS halfvec) WITH FUNCTION halfvec(halfvec, integer, boolean) AS IMPLICIT;
CREATE CAST (halfvec AS real[]) WITH FUNCTION halfvec_to_float4(halfvec, integer, boolean) AS ASSIGNMENT;
CREATE CAST (integer[] AS halfvec) WITH FUNCTION array_to_halfvec(integer[], integer, boolean) AS ASSIGNMENT;
CREATE CAST (real[] AS halfvec) WITH FUNCTION array_to_halfvec(real[], integer, boolean) AS ASSIGNMENT;
CREATE CAST (double precision[] AS halfvec) WITH FUNCTION array_to_halfvec(double precision[], integer, boolean) AS ASSIGNMENT;
CREATE CAST (numeric[] AS halfvec) WITH FUNCTION array_to_halfvec(numeric[], integer, boolean) AS ASSIGNMENT;
CREATE CAST (sparsevec AS sparsevec) WITH FUNCTION sparsevec(sparsevec, integer, boolean) AS IMPLICIT;
CREATE CAST (integer[] AS sparsevec) WITH FUNCTION array_to_sparsevec(integer[], integer, boolean) AS ASSIGNMENT;
CREATE CAST (real[] AS sparsevec) WITH FUNCTION array_to_sparsevec(real[], integer, boolean) AS ASSIGNMENT;
CREATE CAST (double precision[] AS sparsevec) WITH FUNCTION array_to_sparsevec(double precision[], integer, boolean) AS ASSIGNMENT;
CREATE CAST (numeric[] AS sparsevec) WITH FUNCTION array_to_sparsevec(numeric[], integer, boolean) AS ASSIGNMENT;
CREATE CAST (vector AS halfvec) WITH FUNCTION vector_to_halfvec(vector, integer, boolean) AS ASSIGNMENT;
CREATE CAST (halfvec AS vector) WITH FUNCTION halfvec_to_vector(halfvec, integer, boolean) AS ASSIGNMENT;
CREATE CAST (vector AS sparsevec) WITH FUNCTION vector_to_sparsevec(vector, integer, boolean) AS IMPLICIT;
CREATE CAST (sparsevec AS vector) WITH FUNCTION sparsevec_to_vector(sparsevec, integer, boolean) AS ASSIGNMENT;
CREATE CAST (halfvec AS sparsevec) WITH FUNCTION halfvec_to_sparsevec(halfvec, integer, boolean) AS IMPLICIT;
CREATE CAST (sparsevec AS halfvec) WITH FUNCTION sparsevec_to_halfvec(sparsevec, integer, boolean) AS ASSIGNMENT;

CREATE OPERATOR <-> (FUNCTION = l2_distance, LEFTARG = vector, RIGHTARG = vector, COMMUTATOR = <->);
CREATE OPERATOR <#> (FUNCTION = vector_negative_inner_product, LEFTARG = vector, RIGHTARG = vector, COMMUTATOR = <#>);
CREATE OPERATOR <=> (FUNCTION = cosine_distance, LEFTARG = vector, RIGHTARG = vector, COMMUTATOR = <=>);
CREATE OPERATOR <+> (FUNCTION = l1_distance, LEFTARG = vector, RIGHTARG = vector, COMMUTATOR = <+>);
CREATE OPERATOR + (FUNCTION = vector_add, LEFTARG = vector, RIGHTARG = vector, COMMUTATOR = +);
CREATE OPERATOR - (FUNCTION = vector_sub, LEFTARG = vector, RIGHTARG = vector);
CREATE OPERATOR * (FUNCTION = vector_mul, LEFTARG = vector, RIGHTARG = vector, COMMUTATOR = *);
CREATE OPERATOR || (FUNCTION = vector_concat, LEFTARG = vector, RIGHTARG = vector);
CREATE OPERATOR < (FUNCTION = vector_lt, LEFTARG = vector, RIGHTARG = vector, COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (FUNCTION = vector_le, LEFTARG = vector, RIGHTARG = vector, COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (FUNCTION = vector_eq, LEFTARG = vector, RIGHTARG = vector, COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel);
CREATE OPERATOR <> (FUNCTION = vector_ne, LEFTARG = vector, RIGHTARG = vector, COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR >= (FUNCTION = vector_ge, LEFTARG = vector, RIGHTARG = vector, COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (FUNCTION = vector_gt, LEFTARG = vector, RIGHTARG = vector, COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR <-> (FUNCTION = l2_distance, LEFTARG = halfvec, RIGHTARG = halfvec, COMMUTATOR = <->);
CREATE OPERATOR <#> (FUNCTION = halfvec_negative_inner_product, LEFTARG = halfvec, RIGHTARG = halfvec, COMMUTATOR = <#>);
CREATE OPERATOR <=> (FUNCTION = cosine_distance, LEFTARG = halfvec, RIGHTARG = halfvec, COMMUTATOR = <=>);
CREATE OPERATOR <+> (FUNCTION = l1_distance, LEFTARG = halfvec, RIGHTARG = halfvec, COMMUTATOR = <+>);
CREATE OPERATOR + (FUNCTION = halfvec_add, LEFTARG = halfvec, RIGHTARG = halfvec, COMMUTATOR = +);
CREATE OPERATOR - (FUNCTION = halfvec_sub, LEFTARG = halfvec, RIGHTARG = halfvec);
CREATE OPERATOR * (FUNCTION = halfvec_mul, LEFTARG = halfvec, RIGHTARG = halfvec, COMMUTATOR = *);
CREATE OPERATOR || (FUNCTION = halfvec_concat, LEFTARG = halfvec, RIGHTARG = halfvec);
CREATE OPERATOR < (FUNCTION = halfvec_lt, LEFTARG = halfvec, RIGHTARG = halfvec, COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (FUNCTION = halfvec_le, LEFTARG = halfvec, RIGHTARG = halfvec, COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (FUNCTION = halfvec_eq, LEFTARG = halfvec, RIGHTARG = halfvec, COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel);
CREATE OPERATOR <> (FUNCTION = halfvec_ne, LEFTARG = halfvec, RIGHTARG = halfvec, COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR >= (FUNCTION = halfvec_ge, LEFTARG = halfvec, RIGHTARG = halfvec, COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (FUNCTION = halfvec_gt, LEFTARG = halfvec, RIGHTARG = halfvec, COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR <-> (FUNCTION = l2_distance, LEFTARG = sparsevec, RIGHTARG = sparsevec, COMMUTATOR = <->);
CREATE OPERATOR <#> (FUNCTION = sparsevec_negative_inner_product, LEFTARG = sparsevec, RIGHTARG = sparsevec, COMMUTATOR = <#>);
CREATE OPERATOR <=> (FUNCTION = cosine_distance, LEFTARG = sparsevec, RIGHTARG = sparsevec, COMMUTATOR = <=>);
CREATE OPERATOR <+> (FUNCTION = l1_distance, LEFTARG = sparsevec, RIGHTARG = sparsevec, COMMUTATOR = <+>);
CREATE OPERATOR < (FUNCTION = sparsevec_lt, LEFTARG = sparsevec, RIGHTARG = sparsevec, COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (FUNCTION = sparsevec_le, LEFTARG = sparsevec, RIGHTARG = sparsevec, COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (FUNCTION = sparsevec_eq, LEFTARG = sparsevec, RIGHTARG = sparsevec, COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel);
CREATE OPERATOR <> (FUNCTION = sparsevec_ne, LEFTARG = sparsevec, RIGHTARG = sparsevec, COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR >= (FUNCTION = sparsevec_ge, LEFTARG = sparsevec, RIGHTARG = sparsevec, COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (FUNCTION = sparsevec_gt, LEFTARG = sparsevec, RIGHTARG = sparsevec, COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR <~> (FUNCTION = hamming_distance, LEFTARG = bit, RIGHTARG = bit, COMMUTATOR = <~>);
CREATE OPERATOR <%> (FUNCTION = jaccard_distance, LEFTARG = bit, RIGHTARG = bit, COMMUTATOR = <%>);

CREATE OPERATOR CLASS vector_ops
    DEFAULT FOR TYPE vector USING btree AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    FUNCTION 1 vector_cmp(vector, vector);
CREATE OPERATOR CLASS halfvec_ops
    DEFAULT FOR TYPE halfvec USING btree AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    FUNCTION 1 halfvec_cmp(halfvec, halfvec);
CREATE OPERATOR CLASS sparsevec_ops
    DEFAULT FOR TYPE sparsevec USING btree AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    FUNCTION 1 sparsevec_cmp(sparsevec, sparsevec);

CREATE FUNCTION hnswhandler(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'hnswhandler' LANGUAGE C;
CREATE FUNCTION ivfflathandler(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'ivfflathandler' LANGUAGE C;
CREATE FUNCTION hnsw_bit_support(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'hnsw_bit_support' LANGUAGE C;
CREATE FUNCTION hnsw_halfvec_support(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'hnsw_halfvec_support' LANGUAGE C;
CREATE FUNCTION hnsw_sparsevec_support(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'hnsw_sparsevec_support' LANGUAGE C;
CREATE FUNCTION ivfflat_bit_support(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'ivfflat_bit_support' LANGUAGE C;
CREATE FUNCTION ivfflat_halfvec_support(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'ivfflat_halfvec_support' LANGUAGE C;
CREATE OPERATOR CLASS vector_l2_ops
    DEFAULT FOR TYPE vector USING ivfflat AS
    OPERATOR 1 <-> (vector, vector) FOR ORDER BY float_ops,
    FUNCTION 1 vector_l2_squared_distance(vector, vector),
    FUNCTION 3 l2_distance(vector, vector);
CREATE OPERATOR CLASS vector_ip_ops
    FOR TYPE vector USING ivfflat AS
    OPERATOR 1 <#> (vector, vector) FOR ORDER BY float_ops,
    FUNCTION 1 vector_negative_inner_product(vector, vector),
    FUNCTION 3 vector_spherical_distance(vector, vector),
    FUNCTION 4 vector_norm(vector);
CREATE OPERATOR CLASS vector_cosine_ops
    FOR TYPE vector USING ivfflat AS
    OPERATOR 1 <=> (vector, vector) FOR ORDER BY float_ops,
    FUNCTION 1 vector_negative_inner_product(vector, vector),
    FUNCTION 2 vector_norm(vector),
    FUNCTION 3 vector_spherical_distance(vector, vector),
    FUNCTION 4 vector_norm(vector);
CREATE OPERATOR CLASS halfvec_l2_ops
    FOR TYPE halfvec USING ivfflat AS
    OPERATOR 1 <-> (halfvec, halfvec) FOR ORDER BY float_ops,
    FUNCTION 1 halfvec_l2_squared_distance(halfvec, halfvec),
    FUNCTION 3 l2_distance(halfvec, halfvec),
    FUNCTION 5 ivfflat_halfvec_support(internal);
CREATE OPERATOR CLASS halfvec_ip_ops
    FOR TYPE halfvec USING ivfflat AS
    OPERATOR 1 <#> (halfvec, halfvec) FOR ORDER BY float_ops,
    FUNCTION 1 halfvec_negative_inner_product(halfvec, halfvec),
    FUNCTION 3 halfvec_spherical_distance(halfvec, halfvec),
    FUNCTION 4 l2_norm(halfvec),
    FUNCTION 5 ivfflat_halfvec_support(internal);
CREATE OPERATOR CLASS halfvec_cosine_ops
    FOR TYPE halfvec USING ivfflat AS
    OPERATOR 1 <=> (halfvec, halfvec) FOR ORDER BY float_ops,
    FUNCTION 1 halfvec_negative_inner_product(halfvec, halfvec),
    FUNCTION 2 l2_norm(halfvec),
    FUNCTION 3 halfvec_spherical_distance(halfvec, halfvec),
    FUNCTION 4 l2_norm(halfvec),
    FUNCTION 5 ivfflat_halfvec_support(internal);
CREATE OPERATOR CLASS bit_hamming_ops
    FOR TYPE bit USING ivfflat AS
    OPERATOR 1 <~> (bit, bit) FOR ORDER BY float_ops,
    FUNCTION 1 hamming_distance(bit, bit),
    FUNCTION 3 hamming_distance(bit, bit),
    FUNCTION 5 ivfflat_bit_support(internal);
CREATE OPERATOR CLASS vector_l2_ops
    FOR TYPE vector USING hnsw AS
    OPERATOR 1 <-> (vector, vector) FOR ORDER BY float_ops,
    FUNCTION 1 vector_l2_squared_distance(vector, vector);
CREATE OPERATOR CLASS vector_ip_ops
    FOR TYPE vector USING hnsw AS
    OPERATOR 1 <#> (vector, vector) FOR ORDER BY float_ops,
    FUNCTION 1 vector_negative_inner_product(vector, vector);
CREATE OPERATOR CLASS vector_cosine_ops
    FOR TYPE vector USING hnsw AS
    OPERATOR 1 <=> (vector, vector) FOR ORDER BY float_ops,
    FUNCTION 1 vector_negative_inner_product(vector, vector),
    FUNCTION 2 vector_norm(vector);
CREATE OPERATOR CLASS vector_l1_ops
    FOR TYPE vector USING hnsw AS
    OPERATOR 1 <+> (vector, vector) FOR ORDER BY float_ops,
    FUNCTION 1 l1_distance(vector, vector);
CREATE OPERATOR CLASS halfvec_l2_ops
    FOR TYPE halfvec USING hnsw AS
    OPERATOR 1 <-> (halfvec, halfvec) FOR ORDER BY float_ops,
    FUNCTION 1 halfvec_l2_squared_distance(halfvec, halfvec),
    FUNCTION 3 hnsw_halfvec_support(internal);
CREATE OPERATOR CLASS halfvec_ip_ops
    FOR TYPE halfvec USING hnsw AS
    OPERATOR 1 <#> (halfvec, halfvec) FOR ORDER BY float_ops,
    FUNCTION 1 halfvec_negative_inner_product(halfvec, halfvec),
    FUNCTION 3 hnsw_halfvec_support(internal);
CREATE OPERATOR CLASS halfvec_cosine_ops
    FOR TYPE halfvec USING hnsw AS
    OPERATOR 1 <=> (halfvec, halfvec) FOR ORDER BY float_ops,
    FUNCTION 1 halfvec_negative_inner_product(halfvec, halfvec),
    FUNCTION 2 l2_norm(halfvec),
    FUNCTION 3 hnsw_halfvec_support(internal);
CREATE OPERATOR CLASS halfvec_l1_ops
    FOR TYPE halfvec USING hnsw AS
    OPERATOR 1 <+> (halfvec, halfvec) FOR ORDER BY float_ops,
    FUNCTION 1 l1_distance(halfvec, halfvec),
    FUNCTION 3 hnsw_halfvec_support(internal);
CREATE OPERATOR CLASS sparsevec_l2_ops
    FOR TYPE sparsevec USING hnsw AS
    OPERATOR 1 <-> (sparsevec, sparsevec) FOR ORDER BY float_ops,
    FUNCTION 1 sparsevec_l2_squared_distance(sparsevec, sparsevec),
    FUNCTION 3 hnsw_sparsevec_support(internal);
CREATE OPERATOR CLASS sparsevec_ip_ops
    FOR TYPE sparsevec USING hnsw AS
    OPERATOR 1 <#> (sparsevec, sparsevec) FOR ORDER BY float_ops,
    FUNCTION 1 sparsevec_negative_inner_product(sparsevec, sparsevec),
    FUNCTION 3 hnsw_sparsevec_support(internal);
CREATE OPERATOR CLASS sparsevec_cosine_ops
    FOR TYPE sparsevec USING hnsw AS
    OPERATOR 1 <=> (sparsevec, sparsevec) FOR ORDER BY float_ops,
    FUNCTION 1 sparsevec_negative_inner_product(sparsevec, sparsevec),
    FUNCTION 2 l2_norm(sparsevec),
    FUNCTION 3 hnsw_sparsevec_support(internal);
CREATE OPERATOR CLASS sparsevec_l1_ops
    FOR TYPE sparsevec USING hnsw AS
    OPERATOR 1 <+> (sparsevec, sparsevec) FOR ORDER BY float_ops,
    FUNCTION 1 l1_distance(sparsevec, sparsevec),
    FUNCTION 3 hnsw_sparsevec_support(internal);
CREATE OPERATOR CLASS bit_hamming_ops
    FOR TYPE bit USING hnsw AS
    OPERATOR 1 <~> (bit, bit) FOR ORDER BY float_ops,
    FUNCTION 1 hamming_distance(bit, bit),
    FUNCTION 3 hnsw_bit_support(internal);
CREATE OPERATOR CLASS bit_jaccard_ops
    FOR TYPE bit USING hnsw AS
    OPERATOR 1 <%> (bit, bit) FOR ORDER BY float_ops,
    FUNCTION 1 jaccard_distance(bit, bit),
    FUNCTION 3 hnsw_bit_support(internal);
