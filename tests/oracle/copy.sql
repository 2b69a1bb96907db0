CREATE TABLE t (id int PRIMARY KEY, name text, n numeric);
COPY t FROM STDIN;
1	one	1.5
2	\N	\N
3	tab\there\nand line	-7
\.
SELECT * FROM t ORDER BY id;
COPY t TO STDOUT;
COPY t (id, name) TO STDOUT WITH (FORMAT csv, HEADER);
COPY (SELECT id, n FROM t ORDER BY id DESC) TO STDOUT (DELIMITER '|', NULL 'null');
COPY t FROM STDIN (FORMAT csv);
4,"quoted, ""text""",4
5,,5
\.
COPY t FROM STDIN;
6	six	6
seven	x	7
\.
COPY t FROM STDIN;
8	eight
\.
COPY t FROM STDIN;
9	nine	9	extra
\.
COPY t FROM STDIN;
1	duplicate	0
\.
COPY t (id, nope) FROM STDIN;
COPY nothere FROM STDIN;
COPY t (id) FROM STDIN;
10
11
\.
SELECT * FROM t ORDER BY id;
COPY t TO STDOUT (FORMAT nosuch);
DROP TABLE t;
