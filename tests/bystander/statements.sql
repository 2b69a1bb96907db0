-- Statements that work on much, one a line: see tests/sessions/bystander.rs.
SELECT length(regexp_replace(repeat('a', 1000000), 'a', repeat('b', 10), 'g'))
SELECT length(regexp_replace(repeat('ab', 200000), '(a)(b)', '\2\1', 'g'))
SELECT repeat('a', 2000000) ~ '(a|aa)+b'
SELECT repeat('a', 300000) ~ '^(a*)*$'
SELECT repeat('a', 100000) ~ '(a+)\1b'
SELECT repeat('ab', 1000000) LIKE '%a%b%c%'
SELECT repeat('ab', 1000000) ILIKE '%a%b%c%'
SELECT repeat('ab', 1000000) SIMILAR TO '%(a|b)*c'
SELECT cardinality(array_fill(NULL::int, ARRAY[5000000]))
SELECT cardinality(array_fill('x'::text, ARRAY[3000000]))
SELECT length(jsonb_build_array(VARIADIC array_fill(1, ARRAY[1000000]))::text)
SELECT length(json_build_array(VARIADIC array_fill(1, ARRAY[1000000]))::text)
SELECT length(json_agg(g)::text) FROM generate_series(1, 1000000) g
SELECT length(jsonb_agg(g)::text) FROM generate_series(1, 500000) g
SELECT length(jsonb_object_agg(g, g)::text) FROM generate_series(1, 300000) g
SELECT length(repeat('abc', 100000000))
SELECT length(lpad('x', 50000000, 'ab'))
SELECT length(format('%50000000s', 'a'))
SELECT length(format(repeat('%s', 500000), VARIADIC array_fill('x'::text, ARRAY[500000])))
SELECT length(concat(VARIADIC array_fill('x'::text, ARRAY[2000000])))
SELECT length(concat_ws(',', VARIADIC array_fill('x'::text, ARRAY[2000000])))
SELECT length(string_agg(g::text, ',')) FROM generate_series(1, 1000000) g
SELECT length(string_agg(g::text, ',' ORDER BY g DESC)) FROM generate_series(1, 500000) g
SELECT length(to_json(array_fill(1, ARRAY[2000000]))::text)
SELECT length(to_jsonb(array_fill(1, ARRAY[1000000]))::text)
SELECT length(to_json(array_fill('x'::text, ARRAY[2000000]))::text)
SELECT cardinality(string_to_array(repeat('a,', 2000000), ','))
SELECT cardinality(regexp_split_to_array(repeat('a,', 1000000), ','))
SELECT count(*) FROM regexp_matches(repeat('a', 1000000), 'a', 'g')
SELECT count(*) FROM unnest(array_fill(1, ARRAY[5000000]))
SELECT length(replace(repeat('a', 1000000), 'a', repeat('b', 10)))
SELECT length(encode(repeat('x', 50000000)::bytea, 'base64'))
SELECT length(encode(repeat('x', 50000000)::bytea, 'hex'))
SELECT length(decode(repeat('61', 20000000), 'hex'))
SELECT length(decode(repeat('YWFh', 10000000), 'base64'))
SELECT length(upper(repeat('x', 50000000)))
SELECT length(upper(repeat('ä', 10000000)))
SELECT length(initcap(repeat('x y ', 5000000)))
SELECT length(array_to_string(array_fill(12345678, ARRAY[2000000]), ','))
SELECT cardinality(array_cat(array_fill(1, ARRAY[4000000]), array_fill(1, ARRAY[4000000])))
SELECT jsonb_array_length(('[' || repeat('1,', 1000000) || '1]')::jsonb)
SELECT jsonb_array_length(('[' || repeat('{"a":1},', 500000) || '1]')::jsonb)
SELECT length(('[' || repeat('1,', 3000000) || '1]')::json::text)
SELECT count(*) FROM json_array_elements(('[' || repeat('1,', 1000000) || '1]')::json)
SELECT count(*) FROM jsonb_array_elements(('[' || repeat('1,', 1000000) || '1]')::jsonb)
SELECT array_length(array_agg(g), 1) FROM generate_series(1, 2000000) g
SELECT count(*) FROM (SELECT DISTINCT g || repeat('x', 20) FROM generate_series(1, 500000) g) s
SELECT count(*) FROM generate_series(1, 1000000) a JOIN generate_series(1, 1000000) b ON a = b
SELECT count(*) FROM generate_series(1, 3000) a JOIN generate_series(1, 3000) b ON a < b
SELECT length(quote_literal(repeat('''', 30000000)))
SELECT length(overlay(repeat('x', 50000000) PLACING repeat('y', 50000000) FROM 3))
SELECT length(translate(repeat('abc', 5000000), 'ab', 'yz'))
SELECT length(jsonb_pretty(('[' || repeat('[1],', 300000) || '1]')::jsonb))
SELECT length(reverse(repeat('ab', 20000000)))
SELECT length(reverse(repeat('äb', 5000000)))
SELECT count(*) FROM (SELECT string_to_table(repeat('a,', 2000000), ',')) s
SELECT range_agg(int4range(g * 2, g * 2 + 1)) IS NULL FROM generate_series(1, 300000) g
SELECT max(g) FROM (SELECT g FROM generate_series(1, 1000000) g ORDER BY hashint4(g)) s
SELECT max(g) FROM (SELECT g FROM generate_series(1, 300000) g ORDER BY md5(g::text)) s
SELECT max(s) FROM (SELECT sum(g) OVER (ORDER BY g) s FROM generate_series(1, 1000000) g) q
SELECT max(s) FROM (SELECT count(*) OVER () s FROM generate_series(1, 1000000) g) q
SELECT max(s) FROM (SELECT avg(g) OVER (ORDER BY g ROWS 100 PRECEDING) s FROM generate_series(1, 300000) g) q
SELECT max(s) FROM (SELECT max(g) OVER (ORDER BY g ROWS BETWEEN 1000 PRECEDING AND CURRENT ROW) s FROM generate_series(1, 10000) g) q
SELECT max(s) FROM (SELECT row_number() OVER (PARTITION BY g % 1000 ORDER BY g) s FROM generate_series(1, 500000) g) q
SELECT max(s) FROM (SELECT last_value(g) OVER (ORDER BY g ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW) s FROM generate_series(1, 100000) g) q
SELECT length((2::numeric ^ 50000)::text)
SELECT length((1.0000001::numeric ^ 3000000)::text)
SELECT length(exp(5000::numeric)::text)
SELECT length(sqrt(2::numeric(1000,900))::text)
SELECT length(ln(('1' || repeat('0', 3000))::numeric)::text)
SELECT length((repeat('9', 50000)::numeric * repeat('9', 50000)::numeric)::text)
SELECT length((repeat('9', 100000)::numeric / repeat('7', 50000)::numeric)::text)
SELECT length(factorial(10000)::text)
SELECT sum(('1' || repeat('0', 100))::numeric * g) IS NULL FROM generate_series(1, 300000) g
SELECT sum(g::numeric / 7) FROM generate_series(1, 500000) g
SELECT md5(repeat('x', 100000000))
SELECT sha512(repeat('x', 50000000)::bytea)
SELECT array_fill(1, ARRAY[30000]) <@ (array_fill(2, ARRAY[30000]) || array_fill(1, ARRAY[1]))
SELECT position('b'::bytea IN repeat('a', 100000000)::bytea)
SELECT position('ab' IN repeat('a', 50000000))
SELECT strpos(repeat('ä', 20000000), 'b')
SELECT count(*) FROM jsonb_path_query(('[' || repeat('[', 300) || repeat(']', 300) || ']')::jsonb, '$.**.**.** ? (@ == 1)')
SELECT length(repeat('ä', 20000000))
SELECT length(substr(repeat('ä', 20000000), 1000000, 10000000))
SELECT length(left(repeat('ä', 20000000), -5))
SELECT length(trim(repeat(' ', 50000000)))
SELECT length(btrim(repeat('xy', 20000000), 'yx'))
SELECT array_position(array_fill(1, ARRAY[5000000]), 2)
SELECT cardinality(array_positions(array_fill(1, ARRAY[2000000]), 1))
SELECT cardinality(array_remove(array_fill(1, ARRAY[3000000]), 1))
SELECT cardinality(array_replace(array_fill(1, ARRAY[3000000]), 1, 2))
SELECT array_fill(1, ARRAY[3000000]) = array_fill(1, ARRAY[3000000])
SELECT array_fill(1, ARRAY[3000000]) < array_fill(1, ARRAY[3000000])
SELECT cardinality((array_fill(1, ARRAY[3000000]))[2:2500000])
SELECT 1 = ANY (array_fill(2, ARRAY[5000000]))
SELECT length((array_fill(1, ARRAY[2000000]))::text)
SELECT cardinality(('{' || repeat('1,', 2000000) || '1}')::int[])
SELECT cardinality(array_fill(1, ARRAY[2000000])::text[])
SELECT array_to_tsvector(array_agg('w' || g)) IS NULL FROM generate_series(1, 300000) g
SELECT length(to_tsvector('english', repeat('word running ', 50000)))
SELECT length(to_tsvector('simple', string_agg('w' || g, ' '))) FROM generate_series(1, 100000) g
SELECT length(ts_headline('english', repeat('word running ', 50000), 'run'::tsquery))
SELECT ts_rank(to_tsvector('simple', repeat('a b ', 8000)), 'a & b')
SELECT hashtext(repeat('x', 50000000))
SELECT hash_array(array_fill(1, ARRAY[3000000]))
SELECT repeat('a', 50000000) = repeat('a', 50000000)
SELECT repeat('ä', 5000000) COLLATE "en-x-icu" < repeat('ä', 5000000) || 'a'
SELECT count(*) FROM generate_series(1, 100000) g WHERE g::text ~ '(1|2)+3'
SELECT count(*) FROM generate_series(1, 300000) g WHERE md5(g::text) LIKE '%abc%'
SELECT sum(length(md5(g::text))) FROM generate_series(1, 500000) g
SELECT count(*) FROM generate_series(1, 2000000) g WHERE g % 7 = 0
SELECT count(*) FROM generate_series(timestamp '2000-01-01', timestamp '2100-01-01', '1 hour')
SELECT length(to_char(g, 'FM999,999,999.00')) FROM generate_series(1, 200000) g OFFSET 199999
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 200000) SELECT max(n) FROM t
WITH RECURSIVE t(n) AS (SELECT 1 UNION SELECT n + 1 FROM t WHERE n < 100000) SELECT max(n) FROM t
SELECT g % 1000, count(*), sum(g) FROM generate_series(1, 1000000) g GROUP BY 1 OFFSET 999
SELECT g % 100, g % 7, count(*) FROM generate_series(1, 300000) g GROUP BY CUBE (1, 2) OFFSET 700
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY g) FROM generate_series(1, 1000000) g
SELECT mode() WITHIN GROUP (ORDER BY g % 10) FROM generate_series(1, 500000) g
SELECT count(*) FROM (SELECT g FROM generate_series(1, 500000) g EXCEPT SELECT g FROM generate_series(1, 500000, 2) g) s
SELECT count(*) FROM (SELECT g FROM generate_series(1, 500000) g INTERSECT ALL SELECT g FROM generate_series(1, 500000, 2) g) s
SELECT string_agg(x, '') IS NULL FROM (SELECT unnest(string_to_array(repeat('a,', 1000000), ',')) x) s
DO $$ DECLARE n bigint := 0; BEGIN FOR i IN 1..1000000 LOOP n := n + i; END LOOP; END $$
DO $$ DECLARE t text := ''; BEGIN FOR i IN 1..20000 LOOP t := t || 'xxxxxxxxxx'; END LOOP; END $$
DO $$ DECLARE a int[] := '{}'; BEGIN FOR i IN 1..20000 LOOP a[i] := i; END LOOP; END $$
DO $$ DECLARE r record; n int := 0; BEGIN FOR r IN SELECT g FROM generate_series(1, 300000) g LOOP n := n + 1; END LOOP; END $$
DO LANGUAGE plv8 $$ let n = 0; for (let i = 0; i < 10000000; i++) n += i; $$
DO LANGUAGE plv8 $$ let a = []; for (let i = 0; i < 500000; i++) a.push({i: i}); a.sort((x, y) => y.i - x.i); JSON.stringify(a); $$
DO LANGUAGE plv8 $$ let s = 'x'.repeat(10000000); s.replace(/x/g, 'yy').split('y').length; /(x+x+)+y/.test('xxxxxxxxxxxxxxxxxxxxxx'); $$
DO LANGUAGE plv8 $$ plv8.execute('SELECT g FROM generate_series(1, 200000) g').length $$
CREATE TEMP TABLE big AS SELECT g, md5(g::text) m FROM generate_series(1, 200000) g
INSERT INTO big SELECT g, 'x' FROM generate_series(1, 200000) g
CREATE INDEX ON big (m)
CREATE INDEX ON big USING hash (m)
CREATE INDEX ON big USING gin (string_to_array(m, 'a'))
UPDATE big SET g = g + 1
ANALYZE big
VACUUM big
SELECT count(*) FROM big a JOIN big b USING (m)
SET enable_hashjoin = off; SELECT count(*) FROM big a JOIN big b USING (m)
DELETE FROM big WHERE g % 2 = 0
ALTER TABLE big ALTER g TYPE bigint
COPY big TO STDOUT
COPY (SELECT repeat('x', 50000000)) TO STDOUT
SELECT * FROM big
SELECT repeat('x', 50000000)
SELECT array_fill(1, ARRAY[1000000])
SELECT string_agg('(' || g || ')', ',') FROM generate_series(1, 100000) g
SELECT xmin, count(*) FROM big GROUP BY 1
SELECT length(pg_get_viewdef('pg_stat_activity'::regclass)) FROM generate_series(1, 300)
SELECT count(*) FROM pg_attribute a, pg_attribute b WHERE a.attname = b.attname
SELECT count(*) FROM information_schema.columns
SELECT convert_to(repeat('ä', 5000000), 'LATIN1') IS NULL
SELECT length(normalize(repeat('ä', 2000000), NFD))
SELECT length(unistr(repeat('\0061', 2000000)))
SELECT length(ascii(repeat('x', 10000000))::text || chr(65))
SELECT bit_count(repeat('x', 50000000)::bytea)
SELECT length(set_byte(repeat('x', 50000000)::bytea, 5, 1))
SELECT length((repeat('1', 5000000)::varbit)::text)
SELECT length((repeat('1', 20000000)::varbit << 3)::text)
SELECT repeat('(1,2),', 100000)::text || '(1,2)' IS NULL, area(('(' || repeat('(1,2),', 100000) || '(1,2))')::path)
SELECT ('(' || repeat('(1,2),', 3000) || '(3,2))')::polygon && ('(' || repeat('(1,2),', 3000) || '(3,4))')::polygon
SELECT jsonb_set(('[' || repeat('1,', 500000) || '1]')::jsonb, '{5}', '2') IS NULL
SELECT ('[' || repeat('1,', 500000) || '1]')::jsonb || '[1]'::jsonb IS NULL
SELECT ('[' || repeat('1,', 500000) || '1]')::jsonb @> '[2]'
SELECT ('[' || repeat('1,', 300000) || '1]')::jsonb = ('[' || repeat('1,', 300000) || '1]')::jsonb
SELECT jsonb_strip_nulls(('[' || repeat('{"a":null},', 300000) || '1]')::jsonb) IS NULL
SELECT json_strip_nulls(('[' || repeat('{"a":null},', 300000) || '1]')::json) IS NULL
SELECT count(*) FROM jsonb_each((SELECT jsonb_object_agg(g, g) FROM generate_series(1, 200000) g))
SELECT count(*) FROM jsonb_to_recordset(('[' || repeat('{"a":1},', 200000) || '{"a":1}]')::jsonb) AS t(a int)
-- Trigrams, hstore, templates, bit strings, arrays.
SELECT similarity(repeat('abcdefghij ', 5000000), repeat('abcdefghik ', 5000000))
SELECT cardinality(show_trgm(repeat('äbcdefghij ', 5000000)))
SELECT word_similarity('abc def', repeat('abcdefghij ', 5000000))
SELECT strict_word_similarity('abc def', repeat('abcdefghij ', 5000000))
SELECT length(rtrim(repeat('"a"=>"1",', 7000000), ',')::hstore::text)
SELECT length(to_char(now(), repeat('YYYY', 10000000)))
SELECT length(to_char(1, repeat('9', 100000000)))
SELECT length(to_char(1, repeat('MI', 10000000)))
SELECT to_number(repeat('1', 100000000), repeat('9', 100000000))
SELECT to_date(repeat(' ', 100000000), repeat('YYYY', 10000000))
SELECT length(repeat('1', 500000000)::varbit)
SELECT length(repeat('1', 200000000)::varbit & repeat('1', 200000000)::varbit)
SELECT position(B'11111111110' in repeat('1', 100000000)::varbit)
SELECT cardinality(array_remove(array_fill(1, ARRAY[30000000]), 2))
SELECT cardinality(array_remove(array_fill('x'::text, ARRAY[20000000]), 'y'))
SELECT cardinality(array_append(array_fill(1, ARRAY[30000000]), 1))
SELECT cardinality(trim_array(array_fill(1, ARRAY[30000000]), 1))
SELECT count(*) FROM generate_subscripts(array_fill(1, ARRAY[30000000]), 1)
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY g) FROM generate_series(1, 10000000) g
SELECT mode() WITHIN GROUP (ORDER BY g % 1000) FROM generate_series(1, 5000000) g
WITH RECURSIVE r(t, n) AS (SELECT 'a'::text, 1 UNION ALL SELECT t || t, n + 1 FROM r WHERE n < 29) SELECT max(length(t)) FROM r
WITH RECURSIVE r(a, n) AS (SELECT ARRAY[1], 1 UNION ALL SELECT a || a, n + 1 FROM r WHERE n < 26) SELECT max(cardinality(a)) FROM r
-- Long texts of statements.
DO $$ DECLARE n int; BEGIN EXECUTE 'SELECT count(*) FROM (VALUES ' || (SELECT string_agg(format('(%s, ''x'')', g), ',') FROM generate_series(1, 300000) g) || ') v' INTO n; END $$
DO $$ DECLARE b bool; BEGIN EXECUTE 'SELECT 1 IN (' || (SELECT string_agg(g::text, ',') FROM generate_series(0, 199999) g) || ')' INTO b; END $$
-- Files that have no end.
SELECT lo_import('/dev/zero')
SELECT length(pg_read_binary_file('/dev/zero'))
-- JavaScript's built-ins.
DO LANGUAGE javascript $$ [].sort.call({length: 2 ** 32 - 1}) $$
DO LANGUAGE javascript $$ [].reverse.call({length: 2 ** 32 - 1}) $$
DO LANGUAGE javascript $$ [].fill.call({length: 2 ** 32 - 1}, 1) $$
DO LANGUAGE javascript $$ [].copyWithin.call({length: 2 ** 32 - 1}, 5) $$
DO LANGUAGE javascript $$ [].join.call({length: 2 ** 32 - 1}) $$
DO LANGUAGE javascript $$ Array.from({length: 2 ** 32 - 1}) $$
DO LANGUAGE javascript $$ new Float64Array(5e7).map((x, i) => Math.sin(i)).sort() $$
DO LANGUAGE javascript $$ 'ab'.repeat(1e8).replaceAll('a', 'xyz') $$
DO LANGUAGE javascript $$ 'ab'.repeat(1e8).split('') $$
DO LANGUAGE javascript $$ 'a'.repeat(2 ** 29).indexOf('b') $$
DO LANGUAGE javascript $$ 'a'.repeat(2 ** 28).indexOf('a'.repeat(2 ** 14) + 'b') $$
DO LANGUAGE javascript $$ for (;;) try { 'x'.repeat(2 ** 29) + 'y' } catch (e) { } $$
DO LANGUAGE javascript $$ for (;;) try { const a = []; for (;;) a.push('x'.repeat(1e6) + a.length) } catch (e) { } $$
DO LANGUAGE javascript $$ const t = 'ab'.repeat(2 ** 27); for (;;) t.toUpperCase() $$
DO LANGUAGE javascript $$ eval('[' + '1,'.repeat(2e7) + ']') $$
DO LANGUAGE javascript $$ eval('1' + '+1'.repeat(1e6)) $$
DO LANGUAGE javascript $$ new Function('x'.repeat(1e8)) $$
DO LANGUAGE javascript $$ (1n << 3000000n).toString() $$
DO LANGUAGE javascript $$ BigInt('7'.repeat(1e6)) $$
DO LANGUAGE javascript $$ (1n << 30000000n) * (1n << 30000000n) % 12345678901n $$
DO LANGUAGE javascript $$ JSON.parse('[' + '1,'.repeat(2e7) + '1]') $$
DO LANGUAGE javascript $$ JSON.stringify(Array.from({length: 1e7}, (_, i) => i)) $$
DO LANGUAGE javascript $$ encodeURIComponent('ä'.repeat(5e7)) $$
DO LANGUAGE javascript $$ 'ä'.repeat(1e8).normalize('NFD') $$
DO LANGUAGE javascript $$ /(a+)+b/.test('a'.repeat(40)) $$
DO LANGUAGE javascript $$ new RegExp('(' + 'a|'.repeat(1e6) + 'b)') $$
DO LANGUAGE javascript $$ new Uint8Array(2 ** 29).fill(7).indexOf(8) $$
DO LANGUAGE javascript $$ new Map(Array.from({length: 5e6}, (_, i) => [i, i])).size $$
DO LANGUAGE javascript $$ Object.keys(Object.fromEntries(Array.from({length: 2e6}, (_, i) => ['k' + i, i]))).length $$
DO LANGUAGE javascript $$ 'x'.repeat(2 ** 29).localeCompare('x'.repeat(2 ** 29)) $$
