-- psql's commands that run queries of the user's.
CREATE SCHEMA cmd;
SET search_path = cmd;
CREATE TABLE item (id int PRIMARY KEY, name text NOT NULL, price numeric(8,2), made date);
INSERT INTO item VALUES (1, 'chair', 49.90, '2024-01-02'), (2, 'table', 150, '2024-02-03'), (3, 'lamp', NULL, NULL);
CREATE VIEW cheap AS SELECT id, name, price FROM item WHERE price < 100;
\echo == gdesc
SELECT id, name, price, made, price * 2 AS twice, now() AS at FROM item \gdesc
SELECT 1 AS a, 'x' AS b, NULL AS c, ARRAY[1,2] AS d, row(1, 'a') AS e, '1'::"char" AS f, 'n'::name AS g \gdesc
SELECT count(*), sum(price), avg(id), min(made), max(name) FROM item \gdesc
UPDATE item SET name = name RETURNING id, name \gdesc
CREATE TABLE nothing (a int) \gdesc
SELECT nosuch \gdesc
\echo == gset
SELECT count(*) AS n, max(name) AS last FROM item \gset
\echo :n :'last' :"last"
SELECT 1 AS one, NULL AS two \gset pre_
\echo :pre_one :pre_two
SELECT 1 AS a UNION ALL SELECT 2 \gset
SELECT 1 AS a WHERE false \gset
SELECT * FROM item WHERE name = :'last';
SELECT :n + 1 AS more;
\echo == gexec
SELECT format('SELECT %L AS name, %s AS id', name, id) FROM item ORDER BY id \gexec
SELECT 'CREATE TABLE made_' || i || ' (a int)' FROM generate_series(1, 2) AS i \gexec
SELECT 'DROP TABLE made_1', NULL, 'DROP TABLE made_2' \gexec
\echo == crosstabview
SELECT name, extract(month FROM made)::int AS month, price FROM item ORDER BY 1 \crosstabview
SELECT a, b, a * b AS c FROM generate_series(1, 3) AS a, generate_series(1, 3) AS b ORDER BY 1, 2 \crosstabview a b c
SELECT 1 \crosstabview
\echo == g and gx
SELECT id, name FROM item ORDER BY id \g (format=csv)
SELECT id, name FROM item WHERE id = 1 \gx
SELECT 1 \; SELECT 2 \; SELECT 3;
\echo == watch
SELECT count(*) FROM item \g
\echo == copy
\copy item TO stdout
\copy item TO stdout (FORMAT csv, HEADER)
\copy (SELECT id, name FROM item ORDER BY id DESC) TO stdout WITH (DELIMITER '|', NULL 'none')
\copy item (id, name) FROM stdin
4	stool
5	bench
\.
\copy item FROM stdin (FORMAT csv)
6,"a, b",1.5,2024-03-04
7,c,,
\.
\copy item FROM stdin
8	no price	x	\N
\.
\copy nosuch TO stdout
SELECT * FROM item ORDER BY id;
\echo == sv
\sv cheap
\sv cmd.cheap
\sv+ cheap
\sf nosuch(int)
\sf substr(text, integer)
\echo == describe by pattern
\dt cmd.*
\dt nosuch.*
\dt postgres.cmd.item
\dt other.cmd.item
\dt a.b.c.d
\d cmd.item
\df cmd.*
\dn cmd
\echo == variables and conditions
\set x 5
SELECT :x AS x, :{?x} AS known, :{?y} AS unknown;
\if :{?x}
SELECT 'yes' AS branch;
\else
SELECT 'no' AS branch;
\endif
\echo :ROW_COUNT :ERROR :SQLSTATE
SELECT 1 / 0;
\echo :ROW_COUNT :ERROR :SQLSTATE :LAST_ERROR_MESSAGE :LAST_ERROR_SQLSTATE
\errverbose
\echo == formats
\pset format unaligned
SELECT id, name FROM item WHERE id < 3 ORDER BY id;
\pset format aligned
\x on
SELECT id, name FROM item WHERE id < 3 ORDER BY id;
\x off
\pset null 'NULL'
SELECT price FROM item WHERE id = 3;
\t on
SELECT name FROM item WHERE id = 1;
\t off
\pset null ''
\echo == prepared
PREPARE one (int) AS SELECT name FROM item WHERE id = $1;
EXECUTE one (1);
EXECUTE one ('2');
DEALLOCATE one;
\encoding
\encoding UTF8
DROP SCHEMA cmd CASCADE;
