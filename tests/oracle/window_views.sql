-- Views with window functions, the WINDOW clause and WITH TIES are shown as PostgreSQL shows them.
CREATE TABLE sales (id int, shop text, amount numeric(8,2), at date);
INSERT INTO sales SELECT i, 's' || i % 3, i * 1.5, date '2024-01-01' + i FROM generate_series(1, 12) i;
CREATE VIEW w1 AS SELECT id, row_number() OVER (PARTITION BY shop ORDER BY amount DESC) AS n, sum(amount) OVER (PARTITION BY shop) AS total, count(*) OVER () AS all_rows FROM sales;
SELECT pg_get_viewdef('w1');
SELECT pg_get_viewdef('w1', true);
SELECT * FROM w1 ORDER BY id;
CREATE VIEW w2 AS SELECT shop, lag(amount, 1, 0) OVER w AS before, avg(amount) OVER (w ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS smooth, first_value(id) OVER (PARTITION BY shop ORDER BY at RANGE BETWEEN '2 days'::interval PRECEDING AND UNBOUNDED FOLLOWING) AS f, max(amount) FILTER (WHERE id > 3) OVER (ORDER BY id ROWS 2 PRECEDING EXCLUDE CURRENT ROW) AS m FROM sales WINDOW w AS (PARTITION BY shop ORDER BY id NULLS FIRST), unused AS (ORDER BY amount) ORDER BY shop, id;
SELECT pg_get_viewdef('w2');
SELECT pg_get_viewdef('w2', true);
SELECT * FROM w2;
CREATE VIEW w3 AS SELECT shop, sum(amount) AS s, rank() OVER (ORDER BY sum(amount) DESC) + 1 AS r, sum(sum(amount)) OVER (ORDER BY shop) AS running FROM sales GROUP BY shop HAVING count(*) > 1;
SELECT pg_get_viewdef('w3', true);
SELECT * FROM w3 ORDER BY shop;
CREATE VIEW w4 AS SELECT shop, id FROM sales ORDER BY shop OFFSET 1 FETCH FIRST 2 ROWS WITH TIES;
SELECT pg_get_viewdef('w4');
SELECT count(*) FROM w4;
CREATE VIEW w5 AS SELECT * FROM (SELECT id, ntile(4) OVER (ORDER BY id) AS quarter, percent_rank() OVER (ORDER BY amount) AS p FROM sales) q WHERE quarter = 2;
SELECT pg_get_viewdef('w5');
SELECT * FROM w5 ORDER BY id;
ALTER TABLE sales RENAME COLUMN amount TO paid;
SELECT pg_get_viewdef('w1', true);
\d+ w4
CREATE MATERIALIZED VIEW w6 AS SELECT id, dense_rank() OVER (ORDER BY shop) AS d FROM sales;
\d+ w6
CREATE VIEW nope AS SELECT shop, sum(paid) FROM sales GROUP BY ROLLUP (shop);
SELECT id FROM sales ORDER BY shop COLLATE "C.utf8", id LIMIT 2;
DROP TABLE sales CASCADE;
