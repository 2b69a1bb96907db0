CREATE TABLE t (id int PRIMARY KEY, a int, b text DEFAULT 'x', c varchar(5));
INSERT INTO t VALUES (1, 10, 'one', 'abc'), (2, 20, 'two', NULL);
ALTER TABLE t ADD COLUMN d int DEFAULT 5, ADD e timestamp, ADD COLUMN f numeric(6, 2) NOT NULL DEFAULT 1.5;
SELECT * FROM t ORDER BY id;
ALTER TABLE t ADD COLUMN g int NOT NULL;
ALTER TABLE t ADD COLUMN a int;
ALTER TABLE t ADD COLUMN IF NOT EXISTS a int;
ALTER TABLE t DROP COLUMN nothere;
ALTER TABLE t DROP COLUMN IF EXISTS nothere;
ALTER TABLE t DROP COLUMN e;
ALTER TABLE t ALTER COLUMN a TYPE bigint, ALTER b SET DEFAULT upper('q'), ALTER d DROP DEFAULT;
ALTER TABLE t ALTER COLUMN a TYPE text USING a || '!';
SELECT * FROM t ORDER BY id;
ALTER TABLE t ALTER COLUMN a TYPE int;
ALTER TABLE t ALTER COLUMN c TYPE varchar(2);
ALTER TABLE t ALTER COLUMN b TYPE int;
ALTER TABLE t ALTER COLUMN c SET NOT NULL;
UPDATE t SET c = 'zz' WHERE c IS NULL;
ALTER TABLE t ALTER COLUMN c SET NOT NULL;
ALTER TABLE t ALTER COLUMN id DROP NOT NULL;
ALTER TABLE t ADD CONSTRAINT d_positive CHECK (d > 0), ADD UNIQUE (c);
ALTER TABLE t ADD CHECK (d > 100);
ALTER TABLE t ADD CONSTRAINT d_positive CHECK (d > 0);
ALTER TABLE t ADD PRIMARY KEY (a);
ALTER TABLE t ADD UNIQUE (nosuch);
INSERT INTO t (id, a, c, d) VALUES (3, 'x', 'new', -1);
INSERT INTO t (id, a, c, d) VALUES (3, 'x', 'abc', 1);
INSERT INTO t (id, a, c, d) VALUES (3, 'x', 'longer', 1);
INSERT INTO t (id, a, c) VALUES (3, 'x', 'new') RETURNING *;
\d t
\d+ t
ALTER TABLE t RENAME CONSTRAINT d_positive TO d_positive2;
ALTER TABLE t RENAME TO tt;
ALTER INDEX t_pkey RENAME TO tt_pkey;
ALTER TABLE tt RENAME COLUMN nosuch TO x;
ALTER TABLE tt RENAME COLUMN a TO b;
ALTER TABLE nothere RENAME TO x;
\d tt
ALTER TABLE tt DROP CONSTRAINT d_positive2;
ALTER TABLE tt DROP CONSTRAINT d_positive2;
ALTER TABLE tt DROP CONSTRAINT IF EXISTS d_positive2;
ALTER TABLE tt DROP CONSTRAINT tt_pkey;
ALTER TABLE tt ADD CONSTRAINT tt_pkey2 PRIMARY KEY (id, c);
ALTER TABLE tt DROP COLUMN c;
\d tt
ALTER TABLE tt SET (fillfactor = 50);
ALTER TABLE tt SET (fillfactor = 5);
ALTER TABLE tt SET (nosuch = 5);
COMMENT ON TABLE tt IS 'a table';
COMMENT ON COLUMN tt.a IS 'a column';
COMMENT ON COLUMN tt.nosuch IS 'a column';
\d+ tt
\dt+ nothere
SELECT obj_description('tt'::regclass), col_description('tt'::regclass, 2);
DROP TABLE tt;
CREATE TABLE d (a int DEFAULT 1 + 2, b text DEFAULT 'it''s', c varchar(10) DEFAULT 'abc', d numeric DEFAULT 0, e numeric(5, 2) DEFAULT 1.25, f timestamp DEFAULT '2020-01-01', g bool DEFAULT NOT true, h bigint DEFAULT 5, i int DEFAULT -1, j date DEFAULT current_date, k timestamptz DEFAULT current_timestamp, l float8 DEFAULT 1.5, m text DEFAULT lower('A') || 'b', n int DEFAULT NULL, o text DEFAULT current_user, p char(3) DEFAULT 'x', q bytea DEFAULT '\x00', r int[] DEFAULT '{1,2}');
\d d
INSERT INTO d DEFAULT VALUES RETURNING a, b, c, d, e, f, g, h, i, l, m, n, o, p, q, r;
DROP TABLE d;
CREATE TABLE c (a int CHECK (a > 0), b text CHECK (b <> '' AND length(b) < 10), c numeric CHECK (c >= 0 OR c IS NULL), d int CHECK (d IN (1, 2, 3)), e text CHECK (e IN ('x', 'y')), f int CHECK (f BETWEEN 1 AND 10), g text CHECK (g LIKE 'a%'), h bool CHECK (h), i int CHECK (NOT (i = 5)), j date CHECK (j > '2020-01-01'), k int CHECK (k * 2 + 1 < 10), l bigint CHECK (l > 5), CHECK (a < d AND (f > a OR h)), m int CHECK (coalesce(m, 0) > -1), n text CHECK (upper(n) = n), o int CHECK (CASE WHEN o > 1 THEN true ELSE false END));
\d c
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'c'::regclass ORDER BY 1;
INSERT INTO c (a) VALUES (0);
INSERT INTO c (b) VALUES ('');
INSERT INTO c (e) VALUES ('z');
DROP TABLE c;
