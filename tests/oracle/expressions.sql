-- Arithmetic and its limits
SELECT 1 + 2, 7 / 2, -7 / 2, 7 % 3, -7 % 3, 2 * 3.5, 7 / 2.0, 2 ^ 10, |/ 16.0;
SELECT 2147483647 + 1;
SELECT 9223372036854775807 + 1;
SELECT 2147483648, -2147483648, 9223372036854775808;
SELECT 1 / 0;
SELECT 1.0 / 0;
SELECT 1e308 * 10, 1e308::float8 * 10;
SELECT (-32768)::int2 * (-1)::int2;
SELECT abs(-5), abs(-5.5), sign(-3), round(2.5), round(-2.5), round(2.567, 2), trunc(2.567, 2), ceil(1.2), floor(-1.2);
SELECT 1::numeric / 3, 10::numeric / 3, 1.000 / 3, 2::numeric ^ 0.5;
SELECT 0.1 + 0.2, 0.1::float8 + 0.2::float8, 1e15::float8, 1e16::float8, 123456789.123::real;
SELECT 5 & 3, 5 | 3, 5 # 3, ~5, 1 << 4, 256 >> 2;
-- Comparison and three-valued logic
SELECT 1 < 2, 1 = 1.0, 'a' < 'b', NULL = NULL, NULL IS NULL, 1 IS DISTINCT FROM NULL, NULL IS NOT DISTINCT FROM NULL;
SELECT true AND NULL, false AND NULL, true OR NULL, false OR NULL, NOT NULL::bool;
SELECT NULL IS TRUE, true IS NOT FALSE, NULL IS UNKNOWN, (1 = 2) IS FALSE;
SELECT 2 BETWEEN 1 AND 3, 2 NOT BETWEEN 1 AND 3, 2 BETWEEN SYMMETRIC 3 AND 1;
SELECT 1 IN (1, 2), 3 IN (1, 2), 3 IN (1, NULL), 1 NOT IN (2, 3), 1 NOT IN (2, NULL);
SELECT 1 = ANY (ARRAY[1, 2]), 3 = ALL (ARRAY[3, 3]), 1 < ANY ('{0,5}'::int[]);
SELECT (1, 2) = (1, 2), (1, 2) < (1, 3), (1, NULL) = (1, 2), ROW(1, 2) <> ROW(2, 1);
-- CASE and kin
SELECT CASE WHEN 1 = 2 THEN 'a' WHEN 1 = 1 THEN 'b' ELSE 'c' END, CASE 3 WHEN 1 THEN 'one' WHEN 3 THEN 'three' END, CASE WHEN false THEN 1 END;
SELECT coalesce(NULL, 2, 3), nullif(1, 1), nullif(1, 2), greatest(1, 5, 3), least(1, NULL, 3);
SELECT CASE WHEN 1 = 1 THEN 1 ELSE 1 / 0 END;
-- Text
SELECT 'a' || 'b' || 1, 'it''s', E'tab\there', length('héllo'), upper('abc'), lower('ABC'), initcap('hello world');
SELECT substring('hello' from 2 for 3), substr('hello', 2), position('l' in 'hello'), strpos('hello', 'lo'), replace('aXbX', 'X', '-');
SELECT trim('  x '), ltrim('xxa', 'x'), rtrim('axx', 'x'), btrim('xax', 'x'), lpad('7', 3, '0'), rpad('a', 3, '.'), repeat('ab', 3), reverse('abc');
SELECT split_part('a,b,c', ',', 2), left('hello', 2), right('hello', 2), left('hello', -2), concat('a', NULL, 1, true), concat_ws('-', 'a', NULL, 'b');
SELECT 'abc' LIKE 'a%', 'abc' LIKE '_b_', 'abc' NOT LIKE 'x%', 'ABC' ILIKE 'abc', 'a%c' LIKE 'a\%c', 'abc' LIKE 'a%d';
SELECT 'abc' ~ '^a', 'abc' !~ 'd', 'ABC' ~* 'b', md5('x'), ascii('a'), chr(65), quote_ident('a b'), quote_literal('it''s');
SELECT 'abc'::varchar(2), 'abc'::char(5) || '|', 'abc'::char(2), length('ab '::char(5)), 'ab'::char(4) = 'ab';
-- Casts
SELECT '12'::int, 12::text, '1.5'::numeric, 1.5::int, 2.5::int, 3.5::int, -2.5::int, 1.5::float8::int, 2.5::float8::int, 't'::bool, 'no'::bool, 1::bool, true::int;
SELECT CAST('2024-02-29' AS date), '12:34:56'::time, '2024-01-01 10:00'::timestamp;
SELECT 'abc'::int;
SELECT '99999999999'::int;
SELECT '1.5'::int;
SELECT ''::int;
SELECT 'maybe'::bool;
SELECT 300::int2, 40000::int2;
SELECT 3000000000::int4;
SELECT 1e10::int;
SELECT '2024-02-30'::date;
SELECT 'nonsense'::date;
SELECT 12345.678::numeric(6,2), 12345.678::numeric(5,2);
SELECT 'nan'::numeric, 'infinity'::float8, '-inf'::float8, 'NaN'::float8 = 'NaN'::float8;
-- Names and types that are not there
SELECT nocolumn;
SELECT 1 + true;
SELECT 'a' * 2;
SELECT 1 + 'a';
SELECT nofunction(1);
SELECT length(1);
SELECT 1::notype;
SELECT 'a' = 1;
SELECT * FROM notable;
SELECT -'a'::text;
SELEC 1;
SELECT 1 FROM;
SELECT 'unterminated;
';
SELECT (1;
SELECT 1 AS "Mixed Case", 2 two, 3;
SELECT ;
SELECT count(*), sum(1), avg(2), min('a'), max(NULL::int);
SELECT pg_typeof(1), pg_typeof(1.0), pg_typeof('a'), pg_typeof('a'::text), pg_typeof(now()), pg_typeof(1::int2 + 1::int8), pg_typeof(1 / 2.0);
