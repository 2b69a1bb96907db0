CREATE TABLE dept (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE emp (id int PRIMARY KEY, name text, dept int, salary numeric(10,2), boss int);
INSERT INTO dept VALUES (1, 'sales'), (2, 'engineering'), (3, 'empty');
INSERT INTO emp VALUES (1, 'ann', 1, 1000, NULL), (2, 'bob', 1, 900.50, 1), (3, 'cid', 2, 2000, 1), (4, 'dan', 2, 1500, 3), (5, 'eve', NULL, 700, 3);
-- Joins
SELECT e.name, d.name FROM emp e JOIN dept d ON e.dept = d.id ORDER BY e.id;
SELECT e.name, d.name FROM emp e LEFT JOIN dept d ON e.dept = d.id ORDER BY e.id;
SELECT e.name, d.name FROM emp e RIGHT JOIN dept d ON e.dept = d.id ORDER BY d.id, e.id;
SELECT e.name, d.name FROM emp e FULL JOIN dept d ON e.dept = d.id ORDER BY e.id, d.id;
SELECT e.name, b.name AS boss FROM emp e LEFT JOIN emp b ON e.boss = b.id AND b.salary > 1500 ORDER BY 1;
SELECT count(*) FROM emp CROSS JOIN dept;
SELECT count(*) FROM emp, dept WHERE emp.dept = dept.id;
SELECT * FROM emp JOIN dept USING (id) ORDER BY id;
SELECT * FROM dept NATURAL JOIN (SELECT 1 AS id, 'x' AS other) s;
SELECT d.name, top.name FROM dept d, LATERAL (SELECT e.name FROM emp e WHERE e.dept = d.id ORDER BY salary DESC LIMIT 1) top ORDER BY d.id;
SELECT d.name, n.c FROM dept d LEFT JOIN LATERAL (SELECT count(*) AS c FROM emp e WHERE e.dept = d.id) n ON true ORDER BY d.id;
-- Grouping
SELECT dept, count(*), sum(salary), avg(salary), min(name), max(name) FROM emp GROUP BY dept ORDER BY dept;
SELECT dept, count(*) FROM emp GROUP BY dept HAVING count(*) > 1 ORDER BY dept NULLS FIRST;
SELECT d.name, sum(e.salary) AS total FROM dept d LEFT JOIN emp e ON e.dept = d.id GROUP BY d.id ORDER BY total DESC NULLS LAST;
SELECT dept + 1 AS next, count(*) FROM emp GROUP BY 1 ORDER BY 1;
SELECT count(DISTINCT dept), count(dept), count(*), sum(DISTINCT dept) FROM emp;
SELECT count(*) FILTER (WHERE salary > 1000), sum(salary) FILTER (WHERE dept = 1) FROM emp;
SELECT string_agg(name, ',' ORDER BY name DESC), array_agg(id ORDER BY id), bool_and(salary > 100), bool_or(dept IS NULL) FROM emp;
SELECT name, count(*) FROM emp;
SELECT dept FROM emp GROUP BY dept HAVING salary > 1;
SELECT sum(salary) FROM emp WHERE sum(salary) > 1;
SELECT sum(count(*)) FROM emp;
-- Distinct, order, limit
SELECT DISTINCT dept FROM emp ORDER BY dept;
SELECT DISTINCT ON (dept) dept, name FROM emp ORDER BY dept, salary DESC;
SELECT name FROM emp ORDER BY salary DESC LIMIT 2;
SELECT name FROM emp ORDER BY salary OFFSET 3;
SELECT name FROM emp ORDER BY id LIMIT 2 OFFSET 1;
SELECT name FROM emp ORDER BY id FETCH FIRST 2 ROWS ONLY;
SELECT name FROM emp ORDER BY id LIMIT NULL;
SELECT name FROM emp ORDER BY id LIMIT -1;
SELECT name, salary * 2 AS double FROM emp ORDER BY double DESC, name LIMIT 3;
SELECT dept, name FROM emp ORDER BY dept DESC, name;
SELECT name FROM emp ORDER BY 2;
SELECT DISTINCT dept FROM emp ORDER BY salary;
-- Set operations
SELECT 1 UNION SELECT 2 UNION SELECT 1 ORDER BY 1;
SELECT 1 UNION ALL SELECT 1;
SELECT id FROM emp INTERSECT SELECT id FROM dept ORDER BY id;
SELECT id FROM emp EXCEPT SELECT id FROM dept ORDER BY id;
SELECT dept FROM emp EXCEPT ALL SELECT 1 ORDER BY 1;
SELECT 1 UNION SELECT 'a';
SELECT 1, 2 UNION SELECT 1;
SELECT 1 AS a UNION SELECT 2.5 ORDER BY a;
-- Values and series
VALUES (1, 'a'), (2, 'b');
VALUES (1), (2.5), (NULL) ORDER BY 1;
SELECT * FROM (VALUES (1, 'x'), (2, 'y')) AS v(n, t) WHERE n > 1;
SELECT * FROM generate_series(1, 5);
SELECT * FROM generate_series(10, 1, -3) AS g(n);
SELECT x, x * x FROM generate_series(1, 3) x;
SELECT generate_series(1, 3), 'a';
SELECT count(*) FROM generate_series(1, 100000);
SELECT * FROM generate_series(1, 3, 0);
-- Names
SELECT emp.* FROM emp WHERE id = 1;
SELECT e FROM emp e WHERE id = 1;
SELECT id FROM emp, dept;
SELECT x.id FROM emp;
SELECT emp.id FROM emp e;
SELECT nope FROM emp;
SELECT * FROM emp e JOIN emp e ON true;
SELECT name FROM emp WHERE name;
SELECT name FROM emp WHERE salary LIKE 'a';
SELECT salry FROM emp;
-- WITH
WITH rich AS (SELECT * FROM emp WHERE salary >= 1000) SELECT count(*), max(name) FROM rich;
WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS y FROM a) SELECT * FROM a, b;
DROP TABLE emp, dept;
