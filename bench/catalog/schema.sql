-- Tables of an application's kind: a key, an index, a foreign key, a default, a comment, every tenth with a view and a trigger.
CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.changed = now(); RETURN NEW; END $$;
CREATE TABLE t0 (id serial PRIMARY KEY, name text NOT NULL DEFAULT 'x', parent int, changed timestamptz, CHECK (name <> ''));
SELECT format('CREATE TABLE t%s (id serial PRIMARY KEY, name text NOT NULL DEFAULT ''x'', parent int REFERENCES t%s (id),
    changed timestamptz, CHECK (name <> '''')); CREATE INDEX ON t%s (parent, lower(name)); COMMENT ON TABLE t%s IS ''of t%s'';',
    n, n - 1, n, n, n - 1)
FROM generate_series(1, :tables - 1) n \gexec
SELECT format('CREATE VIEW v%s AS SELECT a.id, a.name, b.name AS parent FROM t%s a LEFT JOIN t%s b ON b.id = a.parent;
    CREATE TRIGGER touch BEFORE UPDATE ON t%s FOR EACH ROW EXECUTE FUNCTION touch();', n, n, n - 1, n)
FROM generate_series(1, :tables - 1, 10) n \gexec
