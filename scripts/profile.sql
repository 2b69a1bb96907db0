-- What scripts/profile runs beside pgbench: the work of reports, so that a build by profile knows it as
-- well as it knows short statements. Shapes after TPC-H; a few seconds each time.
CREATE TABLE IF NOT EXISTS item AS
  SELECT i / 4 AS orderkey, i % 4 AS line, i % 2000 AS part, i % 100 AS supplier, (i % 50)::numeric(15,2) AS quantity,
    (i * 7919 % 100000 / 100.0)::numeric(15,2) AS price, (i % 11 / 100.0)::numeric(15,2) AS discount,
    substr('ANR', i % 3 + 1, 1)::char(1) AS flag, date '1995-01-01' + i % 2000 AS shipped,
    date '1995-01-01' + (i * 31) % 2000 AS received, 'comment number ' || i % 9973 AS comment
  FROM generate_series(0, 199999) i;
CREATE TABLE IF NOT EXISTS purchase AS
  SELECT i::bigint AS orderkey, i % 3000 AS customer, date '1995-01-01' + i % 2000 AS ordered,
    (i * 13 % 50000)::numeric(15,2) AS total, i % 5 || '-priority' AS priority, 'a remark of ' || i AS remark
  FROM generate_series(0, 49999) i;
CREATE TABLE IF NOT EXISTS part AS
  SELECT i AS part, 'part ' || i % 97 || ' of steel' AS name, i % 50 AS size, 'Brand#' || i % 25 AS brand
  FROM generate_series(0, 1999) i;
CREATE TABLE IF NOT EXISTS customer AS
  SELECT i AS customer, 'Customer ' || i AS name, i % 25 AS nation, (i * 3 % 9999)::numeric(15,2) AS balance
  FROM generate_series(0, 2999) i;
CREATE INDEX IF NOT EXISTS item_order ON item (orderkey);
CREATE INDEX IF NOT EXISTS item_part ON item (part, supplier);
CREATE UNIQUE INDEX IF NOT EXISTS purchase_key ON purchase (orderkey);
CREATE INDEX IF NOT EXISTS purchase_customer ON purchase (customer);
CREATE UNIQUE INDEX IF NOT EXISTS part_key ON part (part);
CREATE UNIQUE INDEX IF NOT EXISTS customer_key ON customer (customer);
VACUUM ANALYZE item, purchase, part, customer;
SELECT count(*) FROM item;
SELECT sum(part), avg(quantity), min(shipped), max(received), sum(price) FROM item;
SELECT flag, line, sum(quantity), sum(price * (1 - discount)), avg(discount), count(*) FROM item
  WHERE shipped <= date '2000-01-01' GROUP BY flag, line ORDER BY 1, 2;
SELECT sum(price * discount) FROM item WHERE shipped BETWEEN date '1996-01-01' AND date '1996-12-31'
  AND discount BETWEEN 0.03 AND 0.07 AND quantity < 24;
SELECT p.orderkey, sum(price * (1 - discount)) AS revenue, ordered FROM customer c JOIN purchase p USING (customer)
  JOIN item i USING (orderkey) WHERE c.nation = 3 AND ordered < date '1997-03-15' AND shipped > date '1997-03-15'
  GROUP BY p.orderkey, ordered ORDER BY revenue DESC, ordered LIMIT 10;
SELECT priority, count(*) FROM purchase p WHERE ordered >= date '1996-07-01' AND ordered < date '1996-10-01'
  AND EXISTS (SELECT 1 FROM item i WHERE i.orderkey = p.orderkey AND shipped < received) GROUP BY priority ORDER BY 1;
SELECT c.name, p.orderkey, total, sum(quantity) FROM customer c, purchase p, item i WHERE p.orderkey IN
  (SELECT orderkey FROM item GROUP BY orderkey HAVING sum(quantity) > 180) AND c.customer = p.customer
  AND p.orderkey = i.orderkey GROUP BY 1, 2, 3 ORDER BY total DESC LIMIT 100;
SELECT n, count(*) FROM (SELECT c.customer, count(p.orderkey) AS n FROM customer c LEFT JOIN purchase p
  ON c.customer = p.customer AND p.remark NOT LIKE '%of 1%7%' GROUP BY 1) q GROUP BY n ORDER BY 2 DESC, 1 DESC;
SELECT brand, size, count(DISTINCT supplier) FROM item JOIN part USING (part) WHERE name LIKE '%9%' AND size IN (1, 4, 9, 16)
  GROUP BY brand, size ORDER BY 3 DESC, 1, 2;
SELECT sum(price) / 7.0 FROM item i JOIN part USING (part) WHERE brand = 'Brand#23'
  AND quantity < (SELECT 0.2 * avg(quantity) FROM item WHERE part = i.part);
SELECT supplier, count(*) FROM item a WHERE received > shipped AND NOT EXISTS (SELECT 1 FROM item b WHERE
  b.orderkey = a.orderkey AND b.supplier <> a.supplier AND b.received > b.shipped) GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 100;
SELECT extract(year FROM shipped) AS y, sum(CASE WHEN flag = 'A' THEN price ELSE 0 END) / sum(price) FROM item GROUP BY y ORDER BY y;
SELECT customer, ordered, sum(total) OVER (PARTITION BY customer ORDER BY ordered), rank() OVER (ORDER BY total DESC)
  FROM purchase ORDER BY customer, ordered, total LIMIT 100;
SELECT count(*) FROM (SELECT comment, count(*) FROM item GROUP BY comment ORDER BY comment) q;
WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 20000) SELECT sum(n) FROM r;
UPDATE item SET price = price + 1 WHERE orderkey < 5000;
INSERT INTO purchase SELECT orderkey + 50000, customer, ordered, total, priority, remark FROM purchase WHERE orderkey < 10000;
DELETE FROM purchase WHERE orderkey >= 50000;
COPY item TO STDOUT;
