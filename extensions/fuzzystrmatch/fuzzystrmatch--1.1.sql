-- fuzzystrmatch 1.1: the objects of PostgreSQL's extension.

CREATE FUNCTION levenshtein(text, text) RETURNS integer
    AS 'MODULE_PATHNAME', 'levenshtein' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION levenshtein(text, text, integer, integer, integer) RETURNS integer
    AS 'MODULE_PATHNAME', 'levenshtein_with_costs' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION levenshtein_less_equal(text, text, integer) RETURNS integer
    AS 'MODULE_PATHNAME', 'levenshtein_less_equal' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION levenshtein_less_equal(text, text, integer, integer, integer, integer) RETURNS integer
    AS 'MODULE_PATHNAME', 'levenshtein_less_equal_with_costs' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION metaphone(text, integer) RETURNS text
    AS 'MODULE_PATHNAME', 'metaphone' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION soundex(text) RETURNS text
    AS 'MODULE_PATHNAME', 'soundex' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION text_soundex(text) RETURNS text
    AS 'MODULE_PATHNAME', 'soundex' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION difference(text, text) RETURNS integer
    AS 'MODULE_PATHNAME', 'difference' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION dmetaphone(text) RETURNS text
    AS 'MODULE_PATHNAME', 'dmetaphone' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION dmetaphone_alt(text) RETURNS text
    AS 'MODULE_PATHNAME', 'dmetaphone_alt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
