\sf nosuch
CREATE FUNCTION f(a int, b text DEFAULT 'x') RETURNS text LANGUAGE sql AS 'select a || b';
\df f
\sf f
CREATE FUNCTION g() RETURNS int LANGUAGE sql AS 'select nosuch';
CREATE FUNCTION g() RETURNS int LANGUAGE sql AS 'select ''x''::text';
CREATE FUNCTION g() RETURNS int LANGUAGE sql AS $$
  select 1
  from nowhere $$;
CREATE FUNCTION g() RETURNS int LANGUAGE nolang AS 'x';
CREATE FUNCTION f(a int, b text) RETURNS text LANGUAGE sql AS 'select 1';
CREATE OR REPLACE FUNCTION f(a int, b text) RETURNS text LANGUAGE sql AS 'select a || b';
CREATE OR REPLACE FUNCTION f(a int, b text DEFAULT 'y') RETURNS int LANGUAGE sql AS 'select a';
CREATE OR REPLACE FUNCTION f(z int, b text DEFAULT 'y') RETURNS text LANGUAGE sql AS 'select b';
CREATE OR REPLACE PROCEDURE f(a int, b text DEFAULT 'y') LANGUAGE sql AS 'select 1';
SELECT f('x', 1);
SELECT f();
SELECT f(1, c => 'x');
SELECT f(1), f(b => 'q', a => 2);
CALL f(1);
CREATE PROCEDURE p(INOUT a int, b int) LANGUAGE sql AS 'select a + b';
CALL p(1, 2);
SELECT p(1, 2);
\df p
\sf p
DROP FUNCTION p(int, int);
DROP FUNCTION IF EXISTS nosuch;
DROP FUNCTION nosuch;
DROP FUNCTION nosuch(int);
CREATE VIEW v AS SELECT f(1) AS x;
DROP FUNCTION f(int, text);
DROP FUNCTION f(int, text) CASCADE;
DROP PROCEDURE p;
CREATE EXTENSION plpgsql;
CREATE EXTENSION IF NOT EXISTS plpgsql;
CREATE SCHEMA made CREATE TABLE t (a int PRIMARY KEY) CREATE VIEW v AS SELECT a FROM t CREATE INDEX i ON t (a);
\dt made.*
\dv made.*
SELECT pg_get_viewdef('made.v'::regclass);
CREATE SCHEMA made2 CREATE TABLE other.t (a int);
DROP SCHEMA made CASCADE;
