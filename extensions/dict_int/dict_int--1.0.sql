-- dict_int 1.0: the objects of PostgreSQL's extension.

CREATE FUNCTION dintdict_init(internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'dintdict_init' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
CREATE FUNCTION dintdict_lexize(internal, internal, internal, internal) RETURNS internal
    AS 'MODULE_PATHNAME', 'dintdict_lexize' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

CREATE TEXT SEARCH TEMPLATE intdict_template (INIT = dintdict_init, LEXIZE = dintdict_lexize);
CREATE TEXT SEARCH DICTIONARY intdict (TEMPLATE = intdict_template);
