-- btree_gist 1.7: the objects of PostgreSQL's extension.

CREATE TYPE gbtreekey16;
CREATE TYPE gbtreekey2;
CREATE TYPE gbtreekey32;
CREATE TYPE gbtreekey4;
CREATE TYPE gbtreekey8;
CREATE TYPE gbtreekey_var;
CREATE FUNCTION gbtreekey4_in(cstring) RETURNS gbtreekey4
    AS 'MODULE_PATHNAME', 'gbtreekey_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbtreekey4_out(gbtreekey4) RETURNS cstring
    AS 'MODULE_PATHNAME', 'gbtreekey_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbtreekey8_in(cstring) RETURNS gbtreekey8
    AS 'MODULE_PATHNAME', 'gbtreekey_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbtreekey8_out(gbtreekey8) RETURNS cstring
    AS 'MODULE_PATHNAME', 'gbtreekey_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbtreekey16_in(cstring) RETURNS gbtreekey16
    AS 'MODULE_PATHNAME', 'gbtreekey_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbtreekey16_out(gbtreekey16) RETURNS cstring
    AS 'MODULE_PATHNAME', 'gbtreekey_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbtreekey32_in(cstring) RETURNS gbtreekey32
    AS 'MODULE_PATHNAME', 'gbtreekey_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbtreekey32_out(gbtreekey32) RETURNS cstring
    AS 'MODULE_PATHNAME', 'gbtreekey_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbtreekey_var_in(cstring) RETURNS gbtreekey_var
    AS 'MODULE_PATHNAME', 'gbtreekey_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbtreekey_var_out(gbtreekey_var) RETURNS cstring
    AS 'MODULE_PATHNAME', 'gbtreekey_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbtreekey2_in(cstring) RETURNS gbtreekey2
    AS 'MODULE_PATHNAME', 'gbtreekey_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbtreekey2_out(gbtreekey2) RETURNS cstring
    AS 'MODULE_PATHNAME', 'gbtreekey_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE TYPE gbtreekey16 (INPUT = gbtreekey16_in, OUTPUT = gbtreekey16_out, INTERNALLENGTH = 16);
CREATE TYPE gbtreekey2 (INPUT = gbtreekey2_in, OUTPUT = gbtreekey2_out, INTERNALLENGTH = 2);
CREATE TYPE gbtreekey32 (INPUT = gbtreekey32_in, OUTPUT = gbtreekey32_out, INTERNALLENGTH = 32);
CREATE TYPE gbtreekey4 (INPUT = gbtreekey4_in, OUTPUT = gbtreekey4_out, INTERNALLENGTH = 4);
CREATE TYPE gbtreekey8 (INPUT = gbtreekey8_in, OUTPUT = gbtreekey8_out, INTERNALLENGTH = 8);
CREATE TYPE gbtreekey_var (INPUT = gbtreekey_var_in, OUTPUT = gbtreekey_var_out, INTERNALLENGTH = VARIABLE, STORAGE = EXTENDED);
CREATE FUNCTION cash_dist(money, money) RETURNS money
    AS 'MODULE_PATHNAME', 'cash_dist' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION date_dist(date, date) RETURNS integer
    AS 'MODULE_PATHNAME', 'date_dist' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION float4_dist(real, real) RETURNS real
    AS 'MODULE_PATHNAME', 'float4_dist' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION float8_dist(double precision, double precision) RETURNS double precision
    AS 'MODULE_PATHNAME', 'float8_dist' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION int2_dist(smallint, smallint) RETURNS smallint
    AS 'MODULE_PATHNAME', 'int2_dist' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION int4_dist(integer, integer) RETURNS integer
    AS 'MODULE_PATHNAME', 'int4_dist' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION int8_dist(bigint, bigint) RETURNS bigint
    AS 'MODULE_PATHNAME', 'int8_dist' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION interval_dist(interval, interval) RETURNS interval
    AS 'MODULE_PATHNAME', 'interval_dist' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION oid_dist(oid, oid) RETURNS oid
    AS 'MODULE_PATHNAME', 'oid_dist' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION time_dist(time without time zone, time without time zone) RETURNS interval
    AS 'MODULE_PATHNAME', 'time_dist' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION ts_dist(timestamp without time zone, timestamp without time zone) RETURNS interval
    AS 'MODULE_PATHNAME', 'ts_dist' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION tstz_dist(timestamp with time zone, timestamp with time zone) RETURNS interval
    AS 'MODULE_PATHNAME', 'tstz_dist' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_oid_consistent(internal, oid, smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gbt_oid_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_oid_distance(internal, oid, smallint, oid, internal) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gbt_oid_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_oid_fetch(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_oid_fetch' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_oid_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_oid_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_decompress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_decompress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_var_decompress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_var_decompress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_var_fetch(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_var_fetch' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_oid_penalty(internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_oid_penalty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_oid_picksplit(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_oid_picksplit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_oid_union(internal, internal) RETURNS gbtreekey8
    AS 'MODULE_PATHNAME', 'gbt_oid_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_oid_same(gbtreekey8, gbtreekey8, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_oid_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_int2_consistent(internal, smallint, smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gbt_int2_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_int2_distance(internal, smallint, smallint, oid, internal) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gbt_int2_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_int2_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_int2_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_int2_fetch(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_int2_fetch' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_int2_penalty(internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_int2_penalty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_int2_picksplit(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_int2_picksplit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_int2_union(internal, internal) RETURNS gbtreekey4
    AS 'MODULE_PATHNAME', 'gbt_int2_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_int2_same(gbtreekey4, gbtreekey4, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_int2_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_int4_consistent(internal, integer, smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gbt_int4_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_int4_distance(internal, integer, smallint, oid, internal) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gbt_int4_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_int4_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_int4_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_int4_fetch(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_int4_fetch' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_int4_penalty(internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_int4_penalty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_int4_picksplit(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_int4_picksplit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_int4_union(internal, internal) RETURNS gbtreekey8
    AS 'MODULE_PATHNAME', 'gbt_int4_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_int4_same(gbtreekey8, gbtreekey8, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_int4_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_int8_consistent(internal, bigint, smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gbt_int8_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_int8_distance(internal, bigint, smallint, oid, internal) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gbt_int8_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_int8_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_int8_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_int8_fetch(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_int8_fetch' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_int8_penalty(internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_int8_penalty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_int8_picksplit(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_int8_picksplit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_int8_union(internal, internal) RETURNS gbtreekey16
    AS 'MODULE_PATHNAME', 'gbt_int8_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_int8_same(gbtreekey16, gbtreekey16, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_int8_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_float4_consistent(internal, real, smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gbt_float4_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_float4_distance(internal, real, smallint, oid, internal) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gbt_float4_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_float4_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_float4_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_float4_fetch(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_float4_fetch' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_float4_penalty(internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_float4_penalty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_float4_picksplit(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_float4_picksplit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_float4_union(internal, internal) RETURNS gbtreekey8
    AS 'MODULE_PATHNAME', 'gbt_float4_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_float4_same(gbtreekey8, gbtreekey8, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_float4_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_float8_consistent(internal, double precision, smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gbt_float8_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_float8_distance(internal, double precision, smallint, oid, internal) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gbt_float8_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_float8_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_float8_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_float8_fetch(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_float8_fetch' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_float8_penalty(internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_float8_penalty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_float8_picksplit(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_float8_picksplit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_float8_union(internal, internal) RETURNS gbtreekey16
    AS 'MODULE_PATHNAME', 'gbt_float8_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_float8_same(gbtreekey16, gbtreekey16, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_float8_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_ts_consistent(internal, timestamp without time zone, smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gbt_ts_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_ts_distance(internal, timestamp without time zone, smallint, oid, internal) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gbt_ts_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_tstz_consistent(internal, timestamp with time zone, smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gbt_tstz_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_tstz_distance(internal, timestamp with time zone, smallint, oid, internal) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gbt_tstz_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_ts_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_ts_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_tstz_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_tstz_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_ts_fetch(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_ts_fetch' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_ts_penalty(internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_ts_penalty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_ts_picksplit(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_ts_picksplit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_ts_union(internal, internal) RETURNS gbtreekey16
    AS 'MODULE_PATHNAME', 'gbt_ts_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_ts_same(gbtreekey16, gbtreekey16, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_ts_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_time_consistent(internal, time without time zone, smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gbt_time_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_time_distance(internal, time without time zone, smallint, oid, internal) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gbt_time_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_timetz_consistent(internal, time with time zone, smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gbt_timetz_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_time_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_time_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_timetz_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_timetz_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_time_fetch(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_time_fetch' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_time_penalty(internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_time_penalty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_time_picksplit(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_time_picksplit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_time_union(internal, internal) RETURNS gbtreekey16
    AS 'MODULE_PATHNAME', 'gbt_time_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_time_same(gbtreekey16, gbtreekey16, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_time_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_date_consistent(internal, date, smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gbt_date_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_date_distance(internal, date, smallint, oid, internal) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gbt_date_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_date_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_date_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_date_fetch(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_date_fetch' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_date_penalty(internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_date_penalty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_date_picksplit(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_date_picksplit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_date_union(internal, internal) RETURNS gbtreekey8
    AS 'MODULE_PATHNAME', 'gbt_date_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_date_same(gbtreekey8, gbtreekey8, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_date_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_intv_consistent(internal, interval, smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gbt_intv_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_intv_distance(internal, interval, smallint, oid, internal) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gbt_intv_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_intv_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_intv_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_intv_decompress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_intv_decompress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_intv_fetch(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_intv_fetch' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_intv_penalty(internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_intv_penalty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_intv_picksplit(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_intv_picksplit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_intv_union(internal, internal) RETURNS gbtreekey32
    AS 'MODULE_PATHNAME', 'gbt_intv_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_intv_same(gbtreekey32, gbtreekey32, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_intv_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_cash_consistent(internal, money, smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gbt_cash_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_cash_distance(internal, money, smallint, oid, internal) RETURNS double precision
    AS 'MODULE_PATHNAME', 'gbt_cash_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_cash_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_cash_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_cash_fetch(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_cash_fetch' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_cash_penalty(internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_cash_penalty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_cash_picksplit(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_cash_picksplit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_cash_union(internal, internal) RETURNS gbtreekey16
    AS 'MODULE_PATHNAME', 'gbt_cash_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_cash_same(gbtreekey16, gbtreekey16, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_cash_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_macad_consistent(internal, macaddr, smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gbt_macad_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_macad_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_macad_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_macad_fetch(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_macad_fetch' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_macad_penalty(internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_macad_penalty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_macad_picksplit(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_macad_picksplit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_macad_union(internal, internal) RETURNS gbtreekey16
    AS 'MODULE_PATHNAME', 'gbt_macad_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_macad_same(gbtreekey16, gbtreekey16, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_macad_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_text_consistent(internal, text, smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gbt_text_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_bpchar_consistent(internal, character, smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gbt_bpchar_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_text_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_text_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_bpchar_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_bpchar_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_text_penalty(internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_text_penalty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_text_picksplit(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_text_picksplit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_text_union(internal, internal) RETURNS gbtreekey_var
    AS 'MODULE_PATHNAME', 'gbt_text_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_text_same(gbtreekey_var, gbtreekey_var, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_text_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_bytea_consistent(internal, bytea, smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gbt_bytea_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_bytea_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_bytea_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_bytea_penalty(internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_bytea_penalty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_bytea_picksplit(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_bytea_picksplit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_bytea_union(internal, internal) RETURNS gbtreekey_var
    AS 'MODULE_PATHNAME', 'gbt_bytea_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_bytea_same(gbtreekey_var, gbtreekey_var, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_bytea_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_numeric_consistent(internal, numeric, smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gbt_numeric_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_numeric_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_numeric_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_numeric_penalty(internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_numeric_penalty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_numeric_picksplit(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_numeric_picksplit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_numeric_union(internal, internal) RETURNS gbtreekey_var
    AS 'MODULE_PATHNAME', 'gbt_numeric_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_numeric_same(gbtreekey_var, gbtreekey_var, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_numeric_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_bit_consistent(internal, bit, smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gbt_bit_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_bit_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_bit_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_bit_penalty(internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_bit_penalty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_bit_picksplit(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_bit_picksplit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_bit_union(internal, internal) RETURNS gbtreekey_var
    AS 'MODULE_PATHNAME', 'gbt_bit_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_bit_same(gbtreekey_var, gbtreekey_var, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_bit_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_inet_consistent(internal, inet, smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gbt_inet_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_inet_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_inet_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_inet_penalty(internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_inet_penalty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_inet_picksplit(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_inet_picksplit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_inet_union(internal, internal) RETURNS gbtreekey16
    AS 'MODULE_PATHNAME', 'gbt_inet_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_inet_same(gbtreekey16, gbtreekey16, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_inet_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_uuid_consistent(internal, uuid, smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gbt_uuid_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_uuid_fetch(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_uuid_fetch' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_uuid_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_uuid_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_uuid_penalty(internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_uuid_penalty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_uuid_picksplit(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_uuid_picksplit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_uuid_union(internal, internal) RETURNS gbtreekey32
    AS 'MODULE_PATHNAME', 'gbt_uuid_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_uuid_same(gbtreekey32, gbtreekey32, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_uuid_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_macad8_consistent(internal, macaddr8, smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gbt_macad8_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_macad8_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_macad8_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_macad8_fetch(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_macad8_fetch' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_macad8_penalty(internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_macad8_penalty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_macad8_picksplit(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_macad8_picksplit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_macad8_union(internal, internal) RETURNS gbtreekey16
    AS 'MODULE_PATHNAME', 'gbt_macad8_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_macad8_same(gbtreekey16, gbtreekey16, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_macad8_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_enum_consistent(internal, anyenum, smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gbt_enum_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_enum_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_enum_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_enum_fetch(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_enum_fetch' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_enum_penalty(internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_enum_penalty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_enum_picksplit(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_enum_picksplit' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_enum_union(internal, internal) RETURNS gbtreekey8
    AS 'MODULE_PATHNAME', 'gbt_enum_union' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_enum_same(gbtreekey8, gbtreekey8, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_enum_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gbt_bool_consistent(internal, boolean, smallint, oid, internal) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gbt_bool_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL UNSAFE;
CREATE FUNCTION gbt_bool_compress(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_bool_compress' LANGUAGE C IMMUTABLE STRICT PARALLEL UNSAFE;
CREATE FUNCTION gbt_bool_fetch(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_bool_fetch' LANGUAGE C IMMUTABLE STRICT PARALLEL UNSAFE;
CREATE FUNCTION gbt_bool_penalty(internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_bool_penalty' LANGUAGE C IMMUTABLE STRICT PARALLEL UNSAFE;
CREATE FUNCTION gbt_bool_picksplit(internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_bool_picksplit' LANGUAGE C IMMUTABLE STRICT PARALLEL UNSAFE;
CREATE FUNCTION gbt_bool_union(internal, internal) RETURNS gbtreekey2
    AS 'MODULE_PATHNAME', 'gbt_bool_union' LANGUAGE C IMMUTABLE STRICT PARALLEL UNSAFE;
CREATE FUNCTION gbt_bool_same(gbtreekey2, gbtreekey2, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'gbt_bool_same' LANGUAGE C IMMUTABLE STRICT PARALLEL UNSAFE;
CREATE OPERATOR <-> (LEFTARG = money, RIGHTARG = money, PROCEDURE = cash_dist, COMMUTATOR = <->);
CREATE OPERATOR <-> (LEFTARG = date, RIGHTARG = date, PROCEDURE = date_dist, COMMUTATOR = <->);
CREATE OPERATOR <-> (LEFTARG = real, RIGHTARG = real, PROCEDURE = float4_dist, COMMUTATOR = <->);
CREATE OPERATOR <-> (LEFTARG = double precision, RIGHTARG = double precision, PROCEDURE = float8_dist, COMMUTATOR = <->);
CREATE OPERATOR <-> (LEFTARG = smallint, RIGHTARG = smallint, PROCEDURE = int2_dist, COMMUTATOR = <->);
CREATE OPERATOR <-> (LEFTARG = integer, RIGHTARG = integer, PROCEDURE = int4_dist, COMMUTATOR = <->);
CREATE OPERATOR <-> (LEFTARG = bigint, RIGHTARG = bigint, PROCEDURE = int8_dist, COMMUTATOR = <->);
CREATE OPERATOR <-> (LEFTARG = interval, RIGHTARG = interval, PROCEDURE = interval_dist, COMMUTATOR = <->);
CREATE OPERATOR <-> (LEFTARG = oid, RIGHTARG = oid, PROCEDURE = oid_dist, COMMUTATOR = <->);
CREATE OPERATOR <-> (LEFTARG = time without time zone, RIGHTARG = time without time zone, PROCEDURE = time_dist, COMMUTATOR = <->);
CREATE OPERATOR <-> (LEFTARG = timestamp without time zone, RIGHTARG = timestamp without time zone, PROCEDURE = ts_dist, COMMUTATOR = <->);
CREATE OPERATOR <-> (LEFTARG = timestamp with time zone, RIGHTARG = timestamp with time zone, PROCEDURE = tstz_dist, COMMUTATOR = <->);
CREATE OPERATOR CLASS gist_oid_ops
    DEFAULT FOR TYPE oid USING gist AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    OPERATOR 6 <>,
    OPERATOR 15 <-> FOR ORDER BY oid_ops,
    FUNCTION 1 gbt_oid_consistent(internal, oid, smallint, oid, internal),
    FUNCTION 2 gbt_oid_union(internal, internal),
    FUNCTION 3 gbt_oid_compress(internal),
    FUNCTION 4 gbt_decompress(internal),
    FUNCTION 5 gbt_oid_penalty(internal, internal, internal),
    FUNCTION 6 gbt_oid_picksplit(internal, internal),
    FUNCTION 7 gbt_oid_same(gbtreekey8, gbtreekey8, internal),
    FUNCTION 8 gbt_oid_distance(internal, oid, smallint, oid, internal),
    FUNCTION 9 gbt_oid_fetch(internal),
    STORAGE gbtreekey8;
CREATE OPERATOR CLASS gist_int2_ops
    DEFAULT FOR TYPE smallint USING gist AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    OPERATOR 6 <>,
    OPERATOR 15 <-> FOR ORDER BY integer_ops,
    FUNCTION 1 gbt_int2_consistent(internal, smallint, smallint, oid, internal),
    FUNCTION 2 gbt_int2_union(internal, internal),
    FUNCTION 3 gbt_int2_compress(internal),
    FUNCTION 4 gbt_decompress(internal),
    FUNCTION 5 gbt_int2_penalty(internal, internal, internal),
    FUNCTION 6 gbt_int2_picksplit(internal, internal),
    FUNCTION 7 gbt_int2_same(gbtreekey4, gbtreekey4, internal),
    FUNCTION 8 gbt_int2_distance(internal, smallint, smallint, oid, internal),
    FUNCTION 9 gbt_int2_fetch(internal),
    STORAGE gbtreekey4;
CREATE OPERATOR CLASS gist_int4_ops
    DEFAULT FOR TYPE integer USING gist AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    OPERATOR 6 <>,
    OPERATOR 15 <-> FOR ORDER BY integer_ops,
    FUNCTION 1 gbt_int4_consistent(internal, integer, smallint, oid, internal),
    FUNCTION 2 gbt_int4_union(internal, internal),
    FUNCTION 3 gbt_int4_compress(internal),
    FUNCTION 4 gbt_decompress(internal),
    FUNCTION 5 gbt_int4_penalty(internal, internal, internal),
    FUNCTION 6 gbt_int4_picksplit(internal, internal),
    FUNCTION 7 gbt_int4_same(gbtreekey8, gbtreekey8, internal),
    FUNCTION 8 gbt_int4_distance(internal, integer, smallint, oid, internal),
    FUNCTION 9 gbt_int4_fetch(internal),
    STORAGE gbtreekey8;
CREATE OPERATOR CLASS gist_int8_ops
    DEFAULT FOR TYPE bigint USING gist AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    OPERATOR 6 <>,
    OPERATOR 15 <-> FOR ORDER BY integer_ops,
    FUNCTION 1 gbt_int8_consistent(internal, bigint, smallint, oid, internal),
    FUNCTION 2 gbt_int8_union(internal, internal),
    FUNCTION 3 gbt_int8_compress(internal),
    FUNCTION 4 gbt_decompress(internal),
    FUNCTION 5 gbt_int8_penalty(internal, internal, internal),
    FUNCTION 6 gbt_int8_picksplit(internal, internal),
    FUNCTION 7 gbt_int8_same(gbtreekey16, gbtreekey16, internal),
    FUNCTION 8 gbt_int8_distance(internal, bigint, smallint, oid, internal),
    FUNCTION 9 gbt_int8_fetch(internal),
    STORAGE gbtreekey16;
CREATE OPERATOR CLASS gist_float4_ops
    DEFAULT FOR TYPE real USING gist AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    OPERATOR 6 <>,
    OPERATOR 15 <-> FOR ORDER BY float_ops,
    FUNCTION 1 gbt_float4_consistent(internal, real, smallint, oid, internal),
    FUNCTION 2 gbt_float4_union(internal, internal),
    FUNCTION 3 gbt_float4_compress(internal),
    FUNCTION 4 gbt_decompress(internal),
    FUNCTION 5 gbt_float4_penalty(internal, internal, internal),
    FUNCTION 6 gbt_float4_picksplit(internal, internal),
    FUNCTION 7 gbt_float4_same(gbtreekey8, gbtreekey8, internal),
    FUNCTION 8 gbt_float4_distance(internal, real, smallint, oid, internal),
    FUNCTION 9 gbt_float4_fetch(internal),
    STORAGE gbtreekey8;
CREATE OPERATOR CLASS gist_float8_ops
    DEFAULT FOR TYPE double precision USING gist AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    OPERATOR 6 <>,
    OPERATOR 15 <-> FOR ORDER BY float_ops,
    FUNCTION 1 gbt_float8_consistent(internal, double precision, smallint, oid, internal),
    FUNCTION 2 gbt_float8_union(internal, internal),
    FUNCTION 3 gbt_float8_compress(internal),
    FUNCTION 4 gbt_decompress(internal),
    FUNCTION 5 gbt_float8_penalty(internal, internal, internal),
    FUNCTION 6 gbt_float8_picksplit(internal, internal),
    FUNCTION 7 gbt_float8_same(gbtreekey16, gbtreekey16, internal),
    FUNCTION 8 gbt_float8_distance(internal, double precision, smallint, oid, internal),
    FUNCTION 9 gbt_float8_fetch(internal),
    STORAGE gbtreekey16;
CREATE OPERATOR CLASS gist_timestamp_ops
    DEFAULT FOR TYPE timestamp without time zone USING gist AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    OPERATOR 6 <>,
    OPERATOR 15 <-> FOR ORDER BY interval_ops,
    FUNCTION 1 gbt_ts_consistent(internal, timestamp without time zone, smallint, oid, internal),
    FUNCTION 2 gbt_ts_union(internal, internal),
    FUNCTION 3 gbt_ts_compress(internal),
    FUNCTION 4 gbt_decompress(internal),
    FUNCTION 5 gbt_ts_penalty(internal, internal, internal),
    FUNCTION 6 gbt_ts_picksplit(internal, internal),
    FUNCTION 7 gbt_ts_same(gbtreekey16, gbtreekey16, internal),
    FUNCTION 8 gbt_ts_distance(internal, timestamp without time zone, smallint, oid, internal),
    FUNCTION 9 gbt_ts_fetch(internal),
    STORAGE gbtreekey16;
CREATE OPERATOR CLASS gist_timestamptz_ops
    DEFAULT FOR TYPE timestamp with time zone USING gist AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    OPERATOR 6 <>,
    OPERATOR 15 <-> FOR ORDER BY interval_ops,
    FUNCTION 1 gbt_tstz_consistent(internal, timestamp with time zone, smallint, oid, internal),
    FUNCTION 2 gbt_ts_union(internal, internal),
    FUNCTION 3 gbt_tstz_compress(internal),
    FUNCTION 4 gbt_decompress(internal),
    FUNCTION 5 gbt_ts_penalty(internal, internal, internal),
    FUNCTION 6 gbt_ts_picksplit(internal, internal),
    FUNCTION 7 gbt_ts_same(gbtreekey16, gbtreekey16, internal),
    FUNCTION 8 gbt_tstz_distance(internal, timestamp with time zone, smallint, oid, internal),
    FUNCTION 9 gbt_ts_fetch(internal),
    STORAGE gbtreekey16;
CREATE OPERATOR CLASS gist_time_ops
    DEFAULT FOR TYPE time without time zone USING gist AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    OPERATOR 6 <>,
    OPERATOR 15 <-> FOR ORDER BY interval_ops,
    FUNCTION 1 gbt_time_consistent(internal, time without time zone, smallint, oid, internal),
    FUNCTION 2 gbt_time_union(internal, internal),
    FUNCTION 3 gbt_time_compress(internal),
    FUNCTION 4 gbt_decompress(internal),
    FUNCTION 5 gbt_time_penalty(internal, internal, internal),
    FUNCTION 6 gbt_time_picksplit(internal, internal),
    FUNCTION 7 gbt_time_same(gbtreekey16, gbtreekey16, internal),
    FUNCTION 8 gbt_time_distance(internal, time without time zone, smallint, oid, internal),
    FUNCTION 9 gbt_time_fetch(internal),
    STORAGE gbtreekey16;
CREATE OPERATOR CLASS gist_timetz_ops
    DEFAULT FOR TYPE time with time zone USING gist AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    OPERATOR 6 <>,
    FUNCTION 1 gbt_timetz_consistent(internal, time with time zone, smallint, oid, internal),
    FUNCTION 2 gbt_time_union(internal, internal),
    FUNCTION 3 gbt_timetz_compress(internal),
    FUNCTION 4 gbt_decompress(internal),
    FUNCTION 5 gbt_time_penalty(internal, internal, internal),
    FUNCTION 6 gbt_time_picksplit(internal, internal),
    FUNCTION 7 gbt_time_same(gbtreekey16, gbtreekey16, internal),
    STORAGE gbtreekey16;
CREATE OPERATOR CLASS gist_date_ops
    DEFAULT FOR TYPE date USING gist AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    OPERATOR 6 <>,
    OPERATOR 15 <-> FOR ORDER BY integer_ops,
    FUNCTION 1 gbt_date_consistent(internal, date, smallint, oid, internal),
    FUNCTION 2 gbt_date_union(internal, internal),
    FUNCTION 3 gbt_date_compress(internal),
    FUNCTION 4 gbt_decompress(internal),
    FUNCTION 5 gbt_date_penalty(internal, internal, internal),
    FUNCTION 6 gbt_date_picksplit(internal, internal),
    FUNCTION 7 gbt_date_same(gbtreekey8, gbtreekey8, internal),
    FUNCTION 8 gbt_date_distance(internal, date, smallint, oid, internal),
    FUNCTION 9 gbt_date_fetch(internal),
    STORAGE gbtreekey8;
CREATE OPERATOR CLASS gist_interval_ops
    DEFAULT FOR TYPE interval USING gist AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    OPERATOR 6 <>,
    OPERATOR 15 <-> FOR ORDER BY interval_ops,
    FUNCTION 1 gbt_intv_consistent(internal, interval, smallint, oid, internal),
    FUNCTION 2 gbt_intv_union(internal, internal),
    FUNCTION 3 gbt_intv_compress(internal),
    FUNCTION 4 gbt_intv_decompress(internal),
    FUNCTION 5 gbt_intv_penalty(internal, internal, internal),
    FUNCTION 6 gbt_intv_picksplit(internal, internal),
    FUNCTION 7 gbt_intv_same(gbtreekey32, gbtreekey32, internal),
    FUNCTION 8 gbt_intv_distance(internal, interval, smallint, oid, internal),
    FUNCTION 9 gbt_intv_fetch(internal),
    STORAGE gbtreekey32;
CREATE OPERATOR CLASS gist_cash_ops
    DEFAULT FOR TYPE money USING gist AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    OPERATOR 6 <>,
    OPERATOR 15 <-> FOR ORDER BY money_ops,
    FUNCTION 1 gbt_cash_consistent(internal, money, smallint, oid, internal),
    FUNCTION 2 gbt_cash_union(internal, internal),
    FUNCTION 3 gbt_cash_compress(internal),
    FUNCTION 4 gbt_decompress(internal),
    FUNCTION 5 gbt_cash_penalty(internal, internal, internal),
    FUNCTION 6 gbt_cash_picksplit(internal, internal),
    FUNCTION 7 gbt_cash_same(gbtreekey16, gbtreekey16, internal),
    FUNCTION 8 gbt_cash_distance(internal, money, smallint, oid, internal),
    FUNCTION 9 gbt_cash_fetch(internal),
    STORAGE gbtreekey16;
CREATE OPERATOR CLASS gist_macaddr_ops
    DEFAULT FOR TYPE macaddr USING gist AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    OPERATOR 6 <>,
    FUNCTION 1 gbt_macad_consistent(internal, macaddr, smallint, oid, internal),
    FUNCTION 2 gbt_macad_union(internal, internal),
    FUNCTION 3 gbt_macad_compress(internal),
    FUNCTION 4 gbt_decompress(internal),
    FUNCTION 5 gbt_macad_penalty(internal, internal, internal),
    FUNCTION 6 gbt_macad_picksplit(internal, internal),
    FUNCTION 7 gbt_macad_same(gbtreekey16, gbtreekey16, internal),
    FUNCTION 9 gbt_macad_fetch(internal),
    STORAGE gbtreekey16;
CREATE OPERATOR CLASS gist_text_ops
    DEFAULT FOR TYPE text USING gist AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    OPERATOR 6 <>,
    FUNCTION 1 gbt_text_consistent(internal, text, smallint, oid, internal),
    FUNCTION 2 gbt_text_union(internal, internal),
    FUNCTION 3 gbt_text_compress(internal),
    FUNCTION 4 gbt_var_decompress(internal),
    FUNCTION 5 gbt_text_penalty(internal, internal, internal),
    FUNCTION 6 gbt_text_picksplit(internal, internal),
    FUNCTION 7 gbt_text_same(gbtreekey_var, gbtreekey_var, internal),
    FUNCTION 9 gbt_var_fetch(internal),
    STORAGE gbtreekey_var;
CREATE OPERATOR CLASS gist_bpchar_ops
    DEFAULT FOR TYPE character USING gist AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    OPERATOR 6 <>,
    FUNCTION 1 gbt_bpchar_consistent(internal, character, smallint, oid, internal),
    FUNCTION 2 gbt_text_union(internal, internal),
    FUNCTION 3 gbt_bpchar_compress(internal),
    FUNCTION 4 gbt_var_decompress(internal),
    FUNCTION 5 gbt_text_penalty(internal, internal, internal),
    FUNCTION 6 gbt_text_picksplit(internal, internal),
    FUNCTION 7 gbt_text_same(gbtreekey_var, gbtreekey_var, internal),
    FUNCTION 9 gbt_var_fetch(internal),
    STORAGE gbtreekey_var;
CREATE OPERATOR CLASS gist_bytea_ops
    DEFAULT FOR TYPE bytea USING gist AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    OPERATOR 6 <>,
    FUNCTION 1 gbt_bytea_consistent(internal, bytea, smallint, oid, internal),
    FUNCTION 2 gbt_bytea_union(internal, internal),
    FUNCTION 3 gbt_bytea_compress(internal),
    FUNCTION 4 gbt_var_decompress(internal),
    FUNCTION 5 gbt_bytea_penalty(internal, internal, internal),
    FUNCTION 6 gbt_bytea_picksplit(internal, internal),
    FUNCTION 7 gbt_bytea_same(gbtreekey_var, gbtreekey_var, internal),
    FUNCTION 9 gbt_var_fetch(internal),
    STORAGE gbtreekey_var;
CREATE OPERATOR CLASS gist_numeric_ops
    DEFAULT FOR TYPE numeric USING gist AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    OPERATOR 6 <>,
    FUNCTION 1 gbt_numeric_consistent(internal, numeric, smallint, oid, internal),
    FUNCTION 2 gbt_numeric_union(internal, internal),
    FUNCTION 3 gbt_numeric_compress(internal),
    FUNCTION 4 gbt_var_decompress(internal),
    FUNCTION 5 gbt_numeric_penalty(internal, internal, internal),
    FUNCTION 6 gbt_numeric_picksplit(internal, internal),
    FUNCTION 7 gbt_numeric_same(gbtreekey_var, gbtreekey_var, internal),
    FUNCTION 9 gbt_var_fetch(internal),
    STORAGE gbtreekey_var;
CREATE OPERATOR CLASS gist_bit_ops
    DEFAULT FOR TYPE bit USING gist AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    OPERATOR 6 <>,
    FUNCTION 1 gbt_bit_consistent(internal, bit, smallint, oid, internal),
    FUNCTION 2 gbt_bit_union(internal, internal),
    FUNCTION 3 gbt_bit_compress(internal),
    FUNCTION 4 gbt_var_decompress(internal),
    FUNCTION 5 gbt_bit_penalty(internal, internal, internal),
    FUNCTION 6 gbt_bit_picksplit(internal, internal),
    FUNCTION 7 gbt_bit_same(gbtreekey_var, gbtreekey_var, internal),
    FUNCTION 9 gbt_var_fetch(internal),
    STORAGE gbtreekey_var;
CREATE OPERATOR CLASS gist_vbit_ops
    DEFAULT FOR TYPE bit varying USING gist AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    OPERATOR 6 <>,
    FUNCTION 1 gbt_bit_consistent(internal, bit, smallint, oid, internal),
    FUNCTION 2 gbt_bit_union(internal, internal),
    FUNCTION 3 gbt_bit_compress(internal),
    FUNCTION 4 gbt_var_decompress(internal),
    FUNCTION 5 gbt_bit_penalty(internal, internal, internal),
    FUNCTION 6 gbt_bit_picksplit(internal, internal),
    FUNCTION 7 gbt_bit_same(gbtreekey_var, gbtreekey_var, internal),
    FUNCTION 9 gbt_var_fetch(internal),
    STORAGE gbtreekey_var;
CREATE OPERATOR CLASS gist_inet_ops
    DEFAULT FOR TYPE inet USING gist AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    OPERATOR 6 <>,
    FUNCTION 1 gbt_inet_consistent(internal, inet, smallint, oid, internal),
    FUNCTION 2 gbt_inet_union(internal, internal),
    FUNCTION 3 gbt_inet_compress(internal),
    FUNCTION 4 gbt_decompress(internal),
    FUNCTION 5 gbt_inet_penalty(internal, internal, internal),
    FUNCTION 6 gbt_inet_picksplit(internal, internal),
    FUNCTION 7 gbt_inet_same(gbtreekey16, gbtreekey16, internal),
    STORAGE gbtreekey16;
CREATE OPERATOR CLASS gist_cidr_ops
    DEFAULT FOR TYPE cidr USING gist AS
    OPERATOR 1 < (inet, inet),
    OPERATOR 2 <= (inet, inet),
    OPERATOR 3 = (inet, inet),
    OPERATOR 4 >= (inet, inet),
    OPERATOR 5 > (inet, inet),
    OPERATOR 6 <> (inet, inet),
    FUNCTION 1 gbt_inet_consistent(internal, inet, smallint, oid, internal),
    FUNCTION 2 gbt_inet_union(internal, internal),
    FUNCTION 3 gbt_inet_compress(internal),
    FUNCTION 4 gbt_decompress(internal),
    FUNCTION 5 gbt_inet_penalty(internal, internal, internal),
    FUNCTION 6 gbt_inet_picksplit(internal, internal),
    FUNCTION 7 gbt_inet_same(gbtreekey16, gbtreekey16, internal),
    STORAGE gbtreekey16;
CREATE OPERATOR CLASS gist_uuid_ops
    DEFAULT FOR TYPE uuid USING gist AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    OPERATOR 6 <>,
    FUNCTION 1 gbt_uuid_consistent(internal, uuid, smallint, oid, internal),
    FUNCTION 2 gbt_uuid_union(internal, internal),
    FUNCTION 3 gbt_uuid_compress(internal),
    FUNCTION 4 gbt_decompress(internal),
    FUNCTION 5 gbt_uuid_penalty(internal, internal, internal),
    FUNCTION 6 gbt_uuid_picksplit(internal, internal),
    FUNCTION 7 gbt_uuid_same(gbtreekey32, gbtreekey32, internal),
    FUNCTION 9 gbt_uuid_fetch(internal),
    STORAGE gbtreekey32;
CREATE OPERATOR CLASS gist_macaddr8_ops
    DEFAULT FOR TYPE macaddr8 USING gist AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    OPERATOR 6 <>,
    FUNCTION 1 gbt_macad8_consistent(internal, macaddr8, smallint, oid, internal),
    FUNCTION 2 gbt_macad8_union(internal, internal),
    FUNCTION 3 gbt_macad8_compress(internal),
    FUNCTION 4 gbt_decompress(internal),
    FUNCTION 5 gbt_macad8_penalty(internal, internal, internal),
    FUNCTION 6 gbt_macad8_picksplit(internal, internal),
    FUNCTION 7 gbt_macad8_same(gbtreekey16, gbtreekey16, internal),
    FUNCTION 9 gbt_macad8_fetch(internal),
    STORAGE gbtreekey16;
CREATE OPERATOR CLASS gist_enum_ops
    DEFAULT FOR TYPE anyenum USING gist AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    OPERATOR 6 <>,
    FUNCTION 1 gbt_enum_consistent(internal, anyenum, smallint, oid, internal),
    FUNCTION 2 gbt_enum_union(internal, internal),
    FUNCTION 3 gbt_enum_compress(internal),
    FUNCTION 4 gbt_decompress(internal),
    FUNCTION 5 gbt_enum_penalty(internal, internal, internal),
    FUNCTION 6 gbt_enum_picksplit(internal, internal),
    FUNCTION 7 gbt_enum_same(gbtreekey8, gbtreekey8, internal),
    FUNCTION 9 gbt_enum_fetch(internal),
    STORAGE gbtreekey8;
CREATE OPERATOR CLASS gist_bool_ops
    DEFAULT FOR TYPE boolean USING gist AS
    OPERATOR 1 <,
    OPERATOR 2 <=,
    OPERATOR 3 =,
    OPERATOR 4 >=,
    OPERATOR 5 >,
    OPERATOR 6 <>,
    FUNCTION 1 gbt_bool_consistent(internal, boolean, smallint, oid, internal),
    FUNCTION 2 gbt_bool_union(internal, internal),
    FUNCTION 3 gbt_bool_compress(internal),
    FUNCTION 4 gbt_decompress(internal),
    FUNCTION 5 gbt_bool_penalty(internal, internal, internal),
    FUNCTION 6 gbt_bool_picksplit(internal, internal),
    FUNCTION 7 gbt_bool_same(gbtreekey2, gbtreekey2, internal),
    FUNCTION 9 gbt_bool_fetch(internal),
    STORAGE gbtreekey2;
