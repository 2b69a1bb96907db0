-- Tables that inherit: definitions, their recursion, queries and changes over all of a family.
CREATE SCHEMA inh;
SET search_path = inh;
CREATE TABLE cities (name text, population real, elevation int CHECK (elevation > -500));
CREATE TABLE capitals (state char(2) NOT NULL) INHERITS (cities);
\d cities
\d+ cities
\d capitals
\d+ capitals
INSERT INTO cities VALUES ('San Francisco', 7.24e5, 63), ('Las Vegas', 2.583e5, 2174), ('Mariposa', 1200, 1953);
INSERT INTO capitals VALUES ('Sacramento', 3.694e5, 30, 'CA'), ('Madison', 1.913e5, 845, 'WI');
SELECT * FROM cities ORDER BY name;
SELECT * FROM ONLY cities ORDER BY name;
SELECT * FROM cities* ORDER BY name;
TABLE capitals;
SELECT tableoid::regclass, name FROM cities WHERE elevation < 1000 ORDER BY 2;
SELECT c.tableoid::regclass::text, count(*), avg(elevation)::int FROM cities c GROUP BY 1 ORDER BY 1;
SELECT max(elevation), min(population) FROM cities;
UPDATE cities SET elevation = elevation + 1 WHERE name LIKE 'M%' RETURNING tableoid::regclass, *;
UPDATE ONLY cities SET elevation = elevation + 1 WHERE name LIKE 'M%' RETURNING *;
UPDATE cities SET elevation = -600;
UPDATE cities c SET population = p.n FROM (VALUES ('Madison', 5), ('Mariposa', 6)) p(name, n) WHERE p.name = c.name RETURNING c.*, p.n;
DELETE FROM cities WHERE name IN ('Madison', 'Las Vegas') RETURNING tableoid::regclass, name;
SELECT * FROM capitals;
INSERT INTO capitals VALUES ('x', 1, -600, 'XX');
INSERT INTO capitals VALUES ('x', 1, 1, NULL);
SELECT name FROM cities ORDER BY name FOR UPDATE;
SELECT a.name, b.name FROM cities a JOIN cities b ON a.elevation < b.elevation ORDER BY 1, 2;
SELECT name, (SELECT count(*) FROM cities b WHERE b.elevation <= a.elevation) FROM capitals a;
WITH gone AS (DELETE FROM cities WHERE name = 'Mariposa' RETURNING *) SELECT * FROM gone;
CREATE VIEW high AS SELECT name, elevation FROM cities WHERE elevation > 20 WITH CHECK OPTION;
CREATE VIEW high_only AS SELECT name FROM ONLY cities;
SELECT * FROM high ORDER BY 1;
UPDATE high SET elevation = 40 WHERE name = 'Sacramento' RETURNING *;
\set VERBOSITY terse
UPDATE high SET elevation = 4 WHERE name = 'Sacramento';
\set VERBOSITY verbose
DELETE FROM high WHERE name = 'San Francisco';
SELECT * FROM cities;
SELECT pg_get_viewdef('high_only');
TRUNCATE cities;
SELECT count(*) FROM capitals;
DROP TABLE cities;
DROP TABLE cities CASCADE;
-- Merging.
CREATE TABLE p1 (a int DEFAULT 1, b text NOT NULL);
CREATE TABLE p2 (a int, c date, CONSTRAINT c_new CHECK (c > '2000-01-01'));
CREATE TABLE c12 (a int DEFAULT 5, d int) INHERITS (p1, p2);
\d c12
CREATE TABLE moved (c date, a int) INHERITS (p2);
\d moved
SET client_min_messages = warning;
CREATE TABLE bad (b int) INHERITS (p1);
CREATE TABLE p3 (a bigint);
CREATE TABLE bad () INHERITS (p1, p3);
CREATE TABLE p4 (a int DEFAULT 4);
CREATE TABLE bad () INHERITS (p1, p4);
RESET client_min_messages;
CREATE TABLE good (a int DEFAULT 9) INHERITS (p1, p4);
CREATE TABLE bad () INHERITS (p1, p1);
CREATE TABLE bad () INHERITS (nosuch);
CREATE VIEW v AS SELECT 1 AS one;
CREATE TABLE bad () INHERITS (v);
CREATE TABLE bad (CONSTRAINT c_new CHECK (a > 0)) INHERITS (p2);
CREATE TABLE same (CONSTRAINT c_new CHECK (c > '2000-01-01')) INHERITS (p2);
\d same
SELECT inhrelid::regclass, inhparent::regclass, inhseqno FROM pg_inherits WHERE inhrelid::regclass::text IN ('c12', 'good', 'moved', 'same') ORDER BY 1, 3;
SELECT attrelid::regclass, attname, attislocal, attinhcount FROM pg_attribute WHERE attrelid IN ('c12'::regclass, 'good'::regclass) AND attnum > 0 ORDER BY 1, attnum;
SELECT conrelid::regclass, conname, conislocal, coninhcount FROM pg_constraint WHERE conname = 'c_new' ORDER BY 1;
SELECT relname, relhassubclass FROM pg_class WHERE relnamespace = 'inh'::regnamespace AND relkind = 'r' ORDER BY 1;
DROP TABLE p1, p2, p3, p4 CASCADE;
-- ALTER TABLE goes on to the children.
CREATE TABLE par (a int, b int);
CREATE TABLE kid (own text) INHERITS (par);
CREATE TABLE grandkid () INHERITS (kid);
INSERT INTO par VALUES (1, 1);
INSERT INTO kid VALUES (2, 2, 'k');
INSERT INTO grandkid VALUES (3, 3, 'g');
ALTER TABLE par ADD COLUMN c int DEFAULT 7;
ALTER TABLE ONLY par ADD COLUMN d int;
ALTER TABLE par ADD COLUMN own text;
SELECT * FROM par ORDER BY a;
SELECT * FROM grandkid;
ALTER TABLE par ADD COLUMN s serial;
SELECT a, s FROM par ORDER BY a;
ALTER TABLE par ADD COLUMN i int GENERATED ALWAYS AS IDENTITY;
ALTER TABLE par DROP COLUMN own;
\d kid
ALTER TABLE kid DROP COLUMN a;
ALTER TABLE kid ALTER COLUMN a TYPE bigint;
ALTER TABLE kid RENAME COLUMN a TO z;
ALTER TABLE ONLY par RENAME COLUMN a TO z;
ALTER TABLE ONLY par ALTER COLUMN a TYPE bigint;
ALTER TABLE par RENAME COLUMN a TO z;
ALTER TABLE par ALTER COLUMN z TYPE bigint;
ALTER TABLE par ALTER COLUMN z SET DEFAULT 5;
ALTER TABLE ONLY par ALTER COLUMN z SET NOT NULL;
ALTER TABLE par ALTER COLUMN b SET NOT NULL;
\d par
\d grandkid
ALTER TABLE par ALTER COLUMN b DROP NOT NULL;
ALTER TABLE par ADD CONSTRAINT z_small CHECK (z < 100);
ALTER TABLE par ADD CONSTRAINT z_tiny CHECK (z < 2);
ALTER TABLE ONLY par ADD CONSTRAINT z_pos CHECK (z > 0);
ALTER TABLE ONLY par ADD CONSTRAINT z_pos CHECK (z > 0) NO INHERIT;
ALTER TABLE par ADD CONSTRAINT z_late CHECK (z < 50) NOT VALID;
ALTER TABLE ONLY par VALIDATE CONSTRAINT z_late;
ALTER TABLE par VALIDATE CONSTRAINT z_late;
ALTER TABLE kid DROP CONSTRAINT z_small;
ALTER TABLE kid RENAME CONSTRAINT z_small TO other;
ALTER TABLE ONLY par RENAME CONSTRAINT z_small TO other;
ALTER TABLE par RENAME CONSTRAINT z_small TO z_smaller;
\d grandkid
ALTER TABLE par DROP CONSTRAINT z_smaller;
ALTER TABLE ONLY par DROP CONSTRAINT z_late;
\d kid
ALTER TABLE ONLY par DROP COLUMN c;
ALTER TABLE par DROP COLUMN b;
\d kid
\d par
-- INHERIT and NO INHERIT.
ALTER TABLE kid NO INHERIT par;
\d kid
ALTER TABLE kid NO INHERIT par;
SELECT count(*) FROM par;
ALTER TABLE par INHERIT grandkid;
ALTER TABLE kid INHERIT par;
ALTER TABLE kid INHERIT par;
ALTER TABLE par INHERIT par;
ALTER TABLE par INHERIT grandkid;
CREATE TABLE stranger (z bigint);
ALTER TABLE stranger INHERIT par;
ALTER TABLE stranger ADD COLUMN s int;
ALTER TABLE stranger INHERIT par;
ALTER TABLE stranger ALTER COLUMN z SET NOT NULL, ALTER COLUMN s SET NOT NULL;
ALTER TABLE stranger INHERIT par;
INSERT INTO stranger VALUES (9, 9);
SELECT tableoid::regclass, z, s FROM par ORDER BY z;
\d+ par
ALTER TABLE stranger INHERIT v;
ALTER TABLE stranger ADD CONSTRAINT only_here CHECK (s > 0);
ALTER TABLE par ADD CONSTRAINT only_here CHECK (s > 0);
SELECT conrelid::regclass, coninhcount, conislocal FROM pg_constraint WHERE conname = 'only_here' ORDER BY 1;
ALTER TABLE stranger NO INHERIT par;
ALTER TABLE stranger INHERIT par;
ALTER TABLE stranger DROP CONSTRAINT only_here;
DROP TABLE grandkid;
DROP TABLE kid, stranger;
\d+ par
-- Keys are each table's own.
CREATE TABLE k1 (id int PRIMARY KEY, v text UNIQUE);
CREATE TABLE k2 () INHERITS (k1);
\d k2
INSERT INTO k1 VALUES (1, 'a');
INSERT INTO k2 VALUES (1, 'a'), (1, 'a');
SELECT count(*) FROM k1;
INSERT INTO k1 VALUES (1, 'b') ON CONFLICT (id) DO UPDATE SET v = 'c';
SELECT tableoid::regclass, * FROM k1 ORDER BY 1, 2, 3;
CREATE TABLE refers (id int REFERENCES k1);
INSERT INTO refers VALUES (1);
DELETE FROM ONLY k1;
DELETE FROM k2;
TRUNCATE ONLY k1 CASCADE;
-- Children with generated columns, other column orders, defaults of their own.
CREATE TABLE g1 (a int, twice int GENERATED ALWAYS AS (a * 2) STORED);
CREATE TABLE g2 (z int DEFAULT 3) INHERITS (g1);
CREATE TABLE g3 (q int, a int, twice int GENERATED ALWAYS AS (a * 2) STORED);
ALTER TABLE g3 INHERIT g1;
INSERT INTO g1 VALUES (1);
INSERT INTO g2 (a) VALUES (2);
INSERT INTO g3 (q, a) VALUES (30, 3);
UPDATE g1 SET a = a + 10 RETURNING tableoid::regclass, *;
SELECT * FROM g1 ORDER BY a;
SELECT * FROM g2;
SELECT * FROM g3;
CREATE INDEX g3_a ON g3 (a);
CREATE INDEX g1_a ON g1 (a);
UPDATE g1 SET a = a - 10 WHERE a = 13;
SELECT * FROM g3;
DELETE FROM g1 WHERE a > 10;
SELECT tableoid::regclass, a FROM g1;
SET client_min_messages = warning;
CREATE TABLE g4 (twice int GENERATED ALWAYS AS (a * 3) STORED) INHERITS (g1);
CREATE TABLE g4 (twice int DEFAULT 3) INHERITS (g1);
RESET client_min_messages;
ALTER TABLE g2 ALTER COLUMN twice DROP EXPRESSION;
ALTER TABLE ONLY g1 ALTER COLUMN twice DROP EXPRESSION;
ALTER TABLE g1 ALTER COLUMN twice DROP EXPRESSION;
\d g3
-- Temporary families, and other statements.
CREATE TEMP TABLE tp (a int);
CREATE TEMP TABLE tc () INHERITS (tp);
INSERT INTO tc VALUES (1);
SELECT * FROM tp;
CREATE TABLE bad () INHERITS (tp);
LOCK TABLE g1;
BEGIN;
LOCK TABLE g1 IN SHARE MODE;
LOCK TABLE ONLY g1 IN EXCLUSIVE MODE;
SELECT relation::regclass, mode FROM pg_locks WHERE locktype = 'relation' AND relation::regclass::text LIKE 'g_' ORDER BY 1, 2;
COMMIT;
COPY g1 TO STDOUT;
COPY (SELECT * FROM g1) TO STDOUT;
SELECT count(*) FROM g1 TABLESAMPLE SYSTEM (100);
CREATE ROLE reader;
GRANT USAGE ON SCHEMA inh TO reader;
GRANT SELECT, UPDATE ON g1 TO reader;
SET ROLE reader;
SELECT count(*) FROM inh.g1;
UPDATE inh.g1 SET a = a;
SELECT * FROM inh.g2;
RESET ROLE;
DROP TABLE tp CASCADE;
\set VERBOSITY terse
\set QUIET on
SET client_min_messages = warning;
DROP SCHEMA inh CASCADE;
DROP ROLE reader;
