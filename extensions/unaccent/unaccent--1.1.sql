-- unaccent 1.1: the objects of PostgreSQL's extension.

CREATE FUNCTION unaccent(regdictionary, text) RETURNS text
    AS 'MODULE_PATHNAME', 'unaccent_dict' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE FUNCTION unaccent(text) RETURNS text
    AS 'MODULE_PATHNAME', 'unaccent_dict' LANGUAGE C STABLE STRICT PARALLEL SAFE;
CREATE FUNCTION unaccent_init(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'unaccent_init' LANGUAGE C VOLATILE PARALLEL SAFE;
CREATE FUNCTION unaccent_lexize(internal, internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'unaccent_lexize' LANGUAGE C VOLATILE PARALLEL SAFE;

CREATE TEXT SEARCH TEMPLATE unaccent (INIT = unaccent_init, LEXIZE = unaccent_lexize);
CREATE TEXT SEARCH DICTIONARY unaccent (TEMPLATE = unaccent, rules = 'unaccent');
