-- Several databases: CREATE, ALTER and DROP DATABASE, what is copied, what is shared and what is not.
SET client_min_messages = notice;
\l
SELECT current_database(), current_catalog;

-- Options and their errors.
CREATE DATABASE da;
CREATE DATABASE da;
BEGIN; CREATE DATABASE db; ROLLBACK;
SELECT 1\; CREATE DATABASE db;
CREATE DATABASE db TEMPLATE nosuch;
CREATE DATABASE db ENCODING 'nosuch';
CREATE DATABASE db ENCODING 99;
CREATE DATABASE db LC_COLLATE 'nosuch';
CREATE DATABASE db LOCALE 'C';
CREATE DATABASE db LC_CTYPE 'C';
CREATE DATABASE db LOCALE_PROVIDER icu;
CREATE DATABASE db LOCALE_PROVIDER nosuch;
CREATE DATABASE db ICU_LOCALE 'en';
CREATE DATABASE db TABLESPACE nosuch;
CREATE DATABASE db TABLESPACE pg_global;
CREATE DATABASE db STRATEGY nosuch;
CREATE DATABASE db STRATEGY wal_log STRATEGY file_copy;
CREATE DATABASE db CONNECTION LIMIT -2;
CREATE DATABASE db CONNECTION LIMIT some;
CREATE DATABASE db IS_TEMPLATE 2;
CREATE DATABASE db nosuch 3;
CREATE DATABASE db OWNER nosuch;
CREATE DATABASE db OID 5;
CREATE DATABASE db LOCATION 'x';
DROP DATABASE db;
CREATE DATABASE db WITH TEMPLATE = template0 ENCODING = 'utf-8' LOCALE_PROVIDER = libc LOCALE = 'C.UTF-8';
DROP DATABASE db;
CREATE DATABASE db TEMPLATE template0 LOCALE 'C' ENCODING 6 TABLESPACE pg_default;
DROP DATABASE db;
CREATE DATABASE db OWNER DEFAULT TEMPLATE DEFAULT ENCODING DEFAULT STRATEGY file_copy ALLOW_CONNECTIONS on IS_TEMPLATE off CONNECTION LIMIT 10;
SELECT datname, datdba::regrole, encoding, datlocprovider, datistemplate, datallowconn, datconnlimit, datcollate, datctype, daticulocale, datacl
  FROM pg_database WHERE datname IN ('da', 'db') ORDER BY 1;
ALTER DATABASE db nosuch 3;
ALTER DATABASE db ENCODING 'UTF8';
ALTER DATABASE db CONNECTION LIMIT -2;
ALTER DATABASE db CONNECTION LIMIT 7 CONNECTION LIMIT 8;
ALTER DATABASE db TABLESPACE pg_default CONNECTION LIMIT 3;
ALTER DATABASE nosuch CONNECTION LIMIT 3;
ALTER DATABASE postgres ALLOW_CONNECTIONS false;
ALTER DATABASE postgres SET TABLESPACE pg_default;
ALTER DATABASE db SET TABLESPACE pg_global;
ALTER DATABASE db SET TABLESPACE nosuch;
ALTER DATABASE db SET TABLESPACE pg_default;
ALTER DATABASE db REFRESH COLLATION VERSION;
ALTER DATABASE db IS_TEMPLATE true;
DROP DATABASE db;
ALTER DATABASE db IS_TEMPLATE false CONNECTION LIMIT 7;
BEGIN; ALTER DATABASE db CONNECTION LIMIT 8; ROLLBACK;
ALTER DATABASE db RENAME TO postgres;
ALTER DATABASE postgres RENAME TO db2;
ALTER DATABASE nosuch RENAME TO db2;
BEGIN; ALTER DATABASE db RENAME TO db2; COMMIT;
ALTER DATABASE db2 RENAME TO db;
SELECT datname, datistemplate, datconnlimit FROM pg_database WHERE datname LIKE 'db%';
COMMENT ON DATABASE db IS 'a second one';
COMMENT ON DATABASE nosuch IS 'none';
SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = 'db';
SELECT pg_database_size('nosuch');
SELECT pg_database_size(99::oid);
SELECT pg_database_size('db') >= 0, pg_database_size(oid) >= 0 FROM pg_database WHERE datname = 'db';
DROP DATABASE postgres;
DROP DATABASE template0;
DROP DATABASE nosuch;
DROP DATABASE IF EXISTS nosuch;
BEGIN; DROP DATABASE db; ROLLBACK;
\l d*

-- Two databases with tables of the same name.
CREATE SCHEMA only_here;
CREATE TABLE only_here.t (a int);
CREATE TABLE twice (here text, n int);
INSERT INTO twice VALUES ('postgres', 1);
\c da
SELECT current_database();
SELECT * FROM twice;
SELECT * FROM only_here.t;
CREATE TABLE twice (here text, n int, more int DEFAULT 3);
INSERT INTO twice VALUES ('da', 2);
SELECT * FROM twice;
SELECT * FROM postgres.public.twice;
SELECT * FROM da.public.twice;
\dn
\dt
\c postgres
SELECT * FROM twice;
\dt
DROP TABLE twice;
DROP SCHEMA only_here CASCADE;
\c da
SELECT * FROM twice;

-- What a copy holds.
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE pair AS (a int, b mood);
CREATE DOMAIN small AS int CHECK (VALUE < 100);
CREATE SEQUENCE counter START 5 INCREMENT 5;
SELECT nextval('counter'), nextval('counter');
CREATE TABLE full_of (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, m mood, p pair, ms mood[], s small, big text, j jsonb,
  UNIQUE (m, s));
INSERT INTO full_of (m, p, ms, s, big, j)
  SELECT (ARRAY['sad', 'ok', 'happy'])[1 + n % 3]::mood, ROW(n, 'ok')::pair, ARRAY['sad', 'happy']::mood[], n,
    CASE WHEN n % 10 = 0 THEN repeat(n::text, 20000) END, jsonb_build_object('n', n) FROM generate_series(1, 60) n;
DELETE FROM full_of WHERE id = 7;
UPDATE full_of SET j = '{"changed": true}' WHERE id = 8;
CREATE INDEX full_of_expr ON full_of (lower(left(big, 5))) WHERE s > 50;
CREATE TABLE child (id int REFERENCES full_of, note text DEFAULT 'none');
INSERT INTO child SELECT id FROM full_of WHERE id < 5;
CREATE VIEW happy AS SELECT id, s FROM full_of WHERE m = 'happy';
CREATE MATERIALIZED VIEW sums AS SELECT m, sum(s) FROM full_of GROUP BY m;
CREATE FUNCTION double(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 2';
COMMENT ON TABLE full_of IS 'full of everything';
COMMENT ON COLUMN full_of.m IS 'a mood';
ANALYZE full_of;
CREATE ROLE databases_reader;
GRANT SELECT ON full_of TO databases_reader;
ALTER DATABASE da SET work_mem TO '3MB';
\c postgres
CREATE DATABASE dc TEMPLATE da;
\c dc
SHOW work_mem;
\d full_of
\d child
\dT
\df
\dp full_of
\d+ happy
SELECT pg_database_size('dc') > 0;
SELECT count(*), sum(s), sum(length(big)), min(m), max(s), count(p), count(j) FROM full_of;
SELECT * FROM full_of WHERE id IN (8, 9) ORDER BY id;
SELECT id, length(big) FROM full_of WHERE s > 50 AND lower(left(big, 5)) = '60606';
SELECT * FROM full_of WHERE m = 'happy' AND s = 11;
SELECT count(*) FROM happy;
SELECT * FROM sums ORDER BY m;
SELECT double(21), nextval('counter');
SELECT obj_description('full_of'::regclass), col_description('full_of'::regclass, 2);
INSERT INTO full_of (m, s) VALUES ('sad', 3);
INSERT INTO full_of (m, s) VALUES ('sad', 99) RETURNING id, m, s;
DELETE FROM full_of WHERE id = 1;
DROP TABLE child;
ALTER TYPE mood ADD VALUE 'glad';
ALTER TABLE full_of ADD COLUMN later int DEFAULT 7;
SELECT enum_range(NULL::mood), (SELECT count(*) FROM full_of WHERE later = 7);
\c da
SELECT enum_range(NULL::mood), nextval('counter');
SELECT count(*) FROM full_of;
SELECT count(*) FROM child;
\d child

-- Rights, settings and roles.
CREATE ROLE databases_maker LOGIN CREATEDB;
CREATE ROLE databases_user LOGIN;
GRANT CREATE ON DATABASE nosuch TO databases_user;
GRANT CREATE, TEMPORARY ON DATABASE da TO databases_user WITH GRANT OPTION;
SELECT has_database_privilege('databases_user', 'da', 'create'), has_database_privilege('databases_user', 'dc', 'create'),
  has_database_privilege('databases_user', 'dc', 'connect');
REVOKE CONNECT ON DATABASE dc FROM PUBLIC;
SELECT has_database_privilege('databases_user', 'dc', 'connect');
SET ROLE databases_user;
CREATE DATABASE db2;
DROP DATABASE db;
ALTER DATABASE db CONNECTION LIMIT 3;
ALTER DATABASE db RENAME TO db2;
ALTER DATABASE db OWNER TO databases_user;
ALTER DATABASE db SET work_mem = '1MB';
COMMENT ON DATABASE db IS 'mine';
SELECT pg_database_size('dc');
SET ROLE databases_maker;
CREATE DATABASE db2 TEMPLATE da;
CREATE DATABASE db2 OWNER databases_user;
CREATE DATABASE db2;
ALTER DATABASE db2 CONNECTION LIMIT 3;
RESET ROLE;
\c db2 databases_maker
CREATE TABLE own (a int);
CREATE SEQUENCE own_too;
SELECT current_user, current_database();
\c db2 postgres
GRANT SELECT ON own TO databases_user;
\c postgres
DROP ROLE databases_maker;
DROP ROLE databases_user;
DROP ROLE databases_reader;
\c db2
DROP ROLE databases_user;
DROP OWNED BY databases_maker;
DROP OWNED BY databases_user;
\c da
DROP OWNED BY databases_reader, databases_user;
\c dc
DROP OWNED BY databases_reader;
\c postgres
ALTER DATABASE db2 OWNER TO postgres;
DROP ROLE databases_maker, databases_user, databases_reader;
SELECT datname, setconfig FROM pg_db_role_setting JOIN pg_database d ON d.oid = setdatabase ORDER BY 1;

-- Gone.
DROP DATABASE da;
DROP DATABASE db;
DROP DATABASE db2 WITH (FORCE);
DROP DATABASE dc (FORCE);
SELECT count(*) FROM pg_db_role_setting;
SELECT datname FROM pg_database ORDER BY 1;
SELECT datname FROM pg_stat_database WHERE datname IS NOT NULL ORDER BY 1;
\l
