-- What the random statements of `make sqlsmith` run over: every kind of table, column and index, with
-- NULLs, empty values, extremes and rows enough for joins.
CREATE TABLE numbers (id int PRIMARY KEY, s smallint, i int, b bigint, n numeric(12,3), r real, d double precision, m money);
INSERT INTO numbers SELECT g, g % 7, g * 37 % 101, g * 1000000007::bigint, g / 7.0, g / 3.0, sqrt(g), g FROM generate_series(1, 200) g;
INSERT INTO numbers VALUES (0, NULL, NULL, NULL, NULL, NULL, NULL, NULL), (-1, -32768, -2147483648, -9223372036854775808, -999999999.999, '-Infinity', 'NaN', '-92233720368547758.08'), (201, 32767, 2147483647, 9223372036854775807, 'NaN', 'Infinity', 1e308, 0);
CREATE TABLE texts (id int PRIMARY KEY REFERENCES numbers, t text, v varchar(20) NOT NULL DEFAULT 'v', c char(5), y bytea, e text COLLATE "C");
INSERT INTO texts SELECT g, 'text ' || g % 20, 'v' || g % 9, chr(97 + g % 26), decode(md5(g::text), 'hex'), repeat('é', g % 5) FROM generate_series(1, 120) g;
INSERT INTO texts VALUES (0, NULL, '', NULL, '', ''), (201, E'a\\b''c"d%_\n', '日本語', 'x', '\x00ff', repeat('long ', 2000));
CREATE TABLE times (id serial PRIMARY KEY, d date, t time, tz timetz, ts timestamp, tstz timestamptz NOT NULL DEFAULT now(), iv interval, number int REFERENCES numbers ON DELETE CASCADE);
INSERT INTO times (d, t, tz, ts, tstz, iv, number) SELECT date '2024-01-01' + g, time '00:00' + g * interval '7 min', '10:00+02', timestamp '2024-01-01' + g * interval '5 hours', timestamptz '2024-01-01 00:00+00' - g * interval '1 day', g * interval '1 hour', g FROM generate_series(1, 100) g;
INSERT INTO times (d, t, tz, ts, tstz, iv) VALUES ('infinity', '24:00', '00:00-15:59', '-infinity', 'infinity', '-178000000 years'), (NULL, NULL, NULL, NULL, '4714-11-24 00:00:00+00 BC', NULL);
CREATE TABLE documents (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, j json, b jsonb, p jsonpath, u uuid DEFAULT gen_random_uuid(), a int[], ta text[], ok boolean, k int GENERATED ALWAYS AS (length(ta[1])) STORED);
INSERT INTO documents (j, b, p, a, ta, ok) SELECT json_build_object('k', g, 'l', ARRAY[g, g + 1]), jsonb_build_object('k', g, 'n', NULL, 'o', jsonb_build_object('x', g::text)), '$.k', ARRAY[g, NULL, g * 2], ARRAY['a' || g], g % 3 = 0 FROM generate_series(1, 60) g;
INSERT INTO documents (j, b, p, a, ta, ok) VALUES ('null', '[]', 'strict $[*] ? (@ > 1)', '{}', NULL, NULL), (NULL, NULL, NULL, '{{1,2},{3,4}}', '{}', false);
CREATE TABLE spans (id int PRIMARY KEY, ir int4range, nr numrange, dr daterange, tr tsrange, im int4multirange, net inet, c cidr, mac macaddr, bits bit(8), vb bit varying);
INSERT INTO spans SELECT g, int4range(g, g * 2), numrange(g, NULL), daterange('2024-01-01', date '2024-01-01' + g), tsrange(NULL, timestamp '2024-01-01' + g * interval '1 h'), int4multirange(int4range(g, g + 5)), ('10.0.0.' || g)::inet, '10.0.0.0/8', '08:00:2b:01:02:03', g::bit(8), g::bit(4)::varbit FROM generate_series(1, 50) g;
INSERT INTO spans VALUES (0, 'empty', '(,)', 'empty', NULL, '{}', '::1/64', '::/0', NULL, NULL, '');
CREATE TABLE wide (a int, b int, c text, UNIQUE (a, b), CHECK (a <> b));
INSERT INTO wide SELECT g % 50, g + 1000, NULLIF('c' || g % 10, 'c3') FROM generate_series(1, 1500) g;
CREATE INDEX wide_c ON wide (c DESC, a);
CREATE INDEX wide_partial ON wide (b) WHERE a < 10;
CREATE INDEX texts_lower ON texts (lower(t));
CREATE TABLE empty (x int, y text, z timestamp);
CREATE VIEW joined AS SELECT n.id, n.i, t.t, t.v FROM numbers n LEFT JOIN texts t USING (id);
CREATE VIEW grouped AS SELECT a, count(*) AS n, max(c) AS c FROM wide GROUP BY a;
CREATE VIEW chosen AS SELECT id, d, number FROM times WHERE number < 50 WITH CHECK OPTION;
CREATE MATERIALIZED VIEW kept AS SELECT c, sum(b) AS total FROM wide GROUP BY c;
ANALYZE;
