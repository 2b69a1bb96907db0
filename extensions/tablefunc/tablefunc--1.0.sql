-- tablefunc 1.0: the objects of PostgreSQL's extension.

CREATE TYPE tablefunc_crosstab_2 AS (row_name text, category_1 text, category_2 text);
CREATE TYPE tablefunc_crosstab_3 AS (row_name text, category_1 text, category_2 text, category_3 text);
CREATE TYPE tablefunc_crosstab_4 AS (row_name text, category_1 text, category_2 text, category_3 text, category_4 text);

CREATE FUNCTION normal_rand(integer, double precision, double precision) RETURNS SETOF double precision
    AS 'MODULE_PATHNAME', 'normal_rand' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
CREATE FUNCTION crosstab(text) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'crosstab' LANGUAGE C STABLE STRICT PARALLEL UNSAFE;
CREATE FUNCTION crosstab2(text) RETURNS SETOF tablefunc_crosstab_2
    AS 'MODULE_PATHNAME', 'crosstab' LANGUAGE C STABLE STRICT PARALLEL UNSAFE;
CREATE FUNCTION crosstab3(text) RETURNS SETOF tablefunc_crosstab_3
    AS 'MODULE_PATHNAME', 'crosstab' LANGUAGE C STABLE STRICT PARALLEL UNSAFE;
CREATE FUNCTION crosstab4(text) RETURNS SETOF tablefunc_crosstab_4
    AS 'MODULE_PATHNAME', 'crosstab' LANGUAGE C STABLE STRICT PARALLEL UNSAFE;
CREATE FUNCTION crosstab(text, integer) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'crosstab' LANGUAGE C STABLE STRICT PARALLEL UNSAFE;
CREATE FUNCTION crosstab(text, text) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'crosstab_hash' LANGUAGE C STABLE STRICT PARALLEL UNSAFE;
CREATE FUNCTION connectby(text, text, text, text, integer, text) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'connectby_text' LANGUAGE C STABLE STRICT PARALLEL UNSAFE;
CREATE FUNCTION connectby(text, text, text, text, integer) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'connectby_text' LANGUAGE C STABLE STRICT PARALLEL UNSAFE;
CREATE FUNCTION connectby(text, text, text, text, text, integer, text) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'connectby_text_serial' LANGUAGE C STABLE STRICT PARALLEL UNSAFE;
CREATE FUNCTION connectby(text, text, text, text, text, integer) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'connectby_text_serial' LANGUAGE C STABLE STRICT PARALLEL UNSAFE;
