-- dict_xsyn 1.0: the objects of PostgreSQL's extension.

CREATE FUNCTION dxsyn_init(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'dxsyn_init' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
CREATE FUNCTION dxsyn_lexize(internal, internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'dxsyn_lexize' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE TEXT SEARCH TEMPLATE xsyn_template (INIT = dxsyn_init, LEXIZE = dxsyn_lexize);
CREATE TEXT SEARCH DICTIONARY xsyn (TEMPLATE = xsyn_template);
