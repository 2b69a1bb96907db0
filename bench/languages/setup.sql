SET client_min_messages = warning;
DROP TABLE IF EXISTS numbers, many_numbers;
CREATE TABLE numbers AS
  SELECT n::int AS n, 'Some words of row ' || n || ', of which there are a few' AS t
  FROM generate_series(1, (1000000 * :scale)::int) AS n;
CREATE TABLE many_numbers AS SELECT n::int AS n FROM generate_series(1, (10000000 * :scale)::int) AS n;
VACUUM ANALYZE numbers;
VACUUM ANALYZE many_numbers;
CREATE OR REPLACE FUNCTION plpgsql_fib(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
  IF n < 2 THEN RETURN n; END IF;
  RETURN plpgsql_fib(n - 1) + plpgsql_fib(n - 2);
END $$;
CREATE OR REPLACE FUNCTION sql_same(n int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT n';
CREATE OR REPLACE FUNCTION plpgsql_same(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN n; END';
CREATE OR REPLACE FUNCTION sql_mix(n int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT (n # (n >> 3)) & 1023';
CREATE OR REPLACE FUNCTION plpgsql_mix(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT
  AS 'BEGIN RETURN (n # (n >> 3)) & 1023; END';
CREATE OR REPLACE FUNCTION sql_words(t text) RETURNS int LANGUAGE sql IMMUTABLE STRICT
  AS 'SELECT length(t) - length(replace(t, '' '', '''')) + 1';
CREATE OR REPLACE FUNCTION plpgsql_words(t text) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT
  AS 'BEGIN RETURN length(t) - length(replace(t, '' '', '''')) + 1; END';
CREATE OR REPLACE FUNCTION plpgsql_ask(times int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE total bigint := 0; one int;
BEGIN
  FOR i IN 1..times LOOP
    EXECUTE 'SELECT 1' INTO one;
    total := total + one;
  END LOOP;
  RETURN total;
END $$;
