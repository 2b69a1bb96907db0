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
SELECT $1 \gdesc
SELECT \gdesc
\gdesc
WITH x AS (INSERT INTO item VALUES (99, 'no') RETURNING *) SELECT * FROM x \gdesc
VALUES (1, 'a', 2.5), (2, NULL, NULL) \gdesc
SELECT id AS "Odd ""name", name::varchar(3), price::numeric(4,1), made::timestamptz(2), '1 day'::interval day, B'1'::bit(3) FROM item \gdesc
EXPLAIN SELECT 1 \gdesc
SHOW work_mem \gdesc
BEGIN \gdesc
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
SELECT a, b, count(*) FROM generate_series(1, 2) AS a, generate_series(1, 2) AS b GROUP BY 1, 2 ORDER BY 1, 2 \crosstabview b a
SELECT 'x' AS r, c AS c, c AS v, -c AS o FROM generate_series(1, 3) AS c \crosstabview r c v o
SELECT 1 AS a, 1 AS b, 2 AS c UNION ALL SELECT 1, 1, 3 \crosstabview
SELECT 1 AS a, NULL AS b, 2 AS c UNION ALL SELECT NULL, 5, NULL \crosstabview
SELECT 1, 2, 3 \crosstabview 1 nosuch 3
SELECT 1, 2, 3, 4 \crosstabview 1 2
\echo == g and gx
SELECT id, name FROM item ORDER BY id \g (format=csv)
SELECT id, name FROM item WHERE id = 1 \gx
SELECT id, name FROM item WHERE id < 3 ORDER BY id \gx (format=html border=0)
SELECT id, name FROM item WHERE id < 3 ORDER BY id \g (format=latex tuples_only=on)
SELECT id, name FROM item WHERE id < 3 ORDER BY id \g (format=asciidoc title='The items')
SELECT id, name FROM item WHERE id < 3 ORDER BY id \g (format=wrapped columns=10)
SELECT name FROM item ORDER BY id \g | wc -l
SELECT 1 / 0 \gx
SELECT 5 AS x \g \\ SELECT 6 AS y;
\g
\gx
SELECT 1 \; SELECT 2 \; SELECT 3;
\echo == watch: until it fails
CREATE SEQUENCE turns;
CREATE TABLE waning (n numeric);
INSERT INTO waning VALUES (100);
SELECT 1 / (3 - nextval('turns')) AS quotient \watch 0.01
SELECT setval('turns', 1);
UPDATE waning SET n = n / (4 - nextval('turns')) \watch 0.01
\t on
SELECT nosuch \watch 0.01
\t off
TABLE waning;
DROP TABLE waning;
DROP SEQUENCE turns;
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
\copy item TO PROGRAM 'od -An -tx1 -v' (FORMAT binary)
\copy item TO PROGRAM 'cat' WITH CSV HEADER QUOTE '''' FORCE QUOTE name
\copy item (name, id) TO pstdout (FORMAT csv, FORCE_QUOTE *, NULL 'x', DELIMITER ';')
\copy item (id) TO stdout (HEADER)
\copy item FROM PROGRAM 'printf "20;x;1;\n21;y;2;\n"' (DELIMITER ';', NULL '')
\copy item FROM PROGRAM 'printf "id,name\n22,a\n"' (FORMAT csv, HEADER match)
\copy item (id, name) FROM PROGRAM 'printf "id,name\n22,a\n"' (FORMAT csv, HEADER match)
\copy item (id, name) FROM PROGRAM 'printf "id,nome\n23,a\n"' (FORMAT csv, HEADER match)
\copy item (id, name, price) FROM PROGRAM 'printf "24,\"b\nc\",\n25,,\"\"\n"' (FORMAT csv, FORCE_NOT_NULL (name), FORCE_NULL (price))
\copy item (id, name) FROM stdin WHERE id > 26
26	left out
27	taken
\.
\copy item (id, name) FROM PROGRAM 'false'
\copy item FROM '/nonexistent/file'
\copy item TO '/nonexistent/file'
\copy (SELECT 1 TO stdout
\copy
\copy item
\copy item TO '/tmp/threadgres-oracle-item' (FORMAT binary)
CREATE TABLE again (LIKE item);
\copy again FROM '/tmp/threadgres-oracle-item' (FORMAT binary)
\! rm -f /tmp/threadgres-oracle-item
SELECT * FROM again EXCEPT ALL SELECT * FROM item;
SELECT count(*) FROM again;
COPY again TO stdout \g (format=csv)
COPY (SELECT * FROM again ORDER BY id LIMIT 2) TO stdout \g | cat -n
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
