-- pgrowlocks 1.2: the objects of PostgreSQL's extension.

CREATE FUNCTION pgrowlocks(relname text, OUT locked_row tid, OUT locker xid, OUT multi boolean, OUT xids xid[], OUT modes text[], OUT pids integer[]) RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'pgrowlocks' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
