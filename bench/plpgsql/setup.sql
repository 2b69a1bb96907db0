-- What the benchmark of PL/pgSQL calls.
SET client_min_messages = warning;
DROP TABLE IF EXISTS bench_rows;
CREATE TABLE bench_rows (id int PRIMARY KEY, n int);
INSERT INTO bench_rows SELECT g, g % 100 FROM generate_series(1, 1000000) g;
ANALYZE bench_rows;
CREATE OR REPLACE FUNCTION bench_fib(n int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  IF n < 2 THEN RETURN n; END IF;
  RETURN bench_fib(n - 1) + bench_fib(n - 2);
END $$;
CREATE OR REPLACE FUNCTION bench_add(n int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE s bigint := 0;
BEGIN
  FOR i IN 1..n LOOP s := s + i; END LOOP;
  RETURN s;
END $$;
CREATE OR REPLACE FUNCTION bench_sieve(n int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE flags boolean[] := array_fill(true, ARRAY[n]); found int := 0; k int;
BEGIN
  FOR i IN 2..n LOOP
    IF flags[i] THEN
      found := found + 1;
      k := i + i;
      WHILE k <= n LOOP flags[k] := false; k := k + i; END LOOP;
    END IF;
  END LOOP;
  RETURN found;
END $$;
CREATE OR REPLACE FUNCTION bench_string(n int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE s text := '';
BEGIN
  FOR i IN 1..n LOOP s := s || 'x'; END LOOP;
  RETURN length(s);
END $$;
CREATE OR REPLACE FUNCTION bench_append(n int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE a int[] := '{}';
BEGIN
  FOR i IN 1..n LOOP a := a || i; END LOOP;
  RETURN array_length(a, 1);
END $$;
CREATE OR REPLACE FUNCTION bench_cursor() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE s bigint := 0; r record;
BEGIN
  FOR r IN SELECT id, n FROM bench_rows LOOP s := s + r.n; END LOOP;
  RETURN s;
END $$;
CREATE OR REPLACE FUNCTION bench_exceptions(n int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE caught int := 0;
BEGIN
  FOR i IN 1..n LOOP
    BEGIN
      IF i % 2 = 0 THEN RAISE EXCEPTION 'x'; END IF;
    EXCEPTION WHEN raise_exception THEN caught := caught + 1;
    END;
  END LOOP;
  RETURN caught;
END $$;
CREATE OR REPLACE FUNCTION bench_lookup(n int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE s bigint := 0; v int;
BEGIN
  FOR i IN 1..n LOOP SELECT b.n INTO v FROM bench_rows b WHERE b.id = i; s := s + v; END LOOP;
  RETURN s;
END $$;
CREATE OR REPLACE FUNCTION bench_update(k int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE v int;
BEGIN
  FOR i IN 1..k LOOP
    SELECT n INTO v FROM bench_rows WHERE id = i FOR UPDATE;
    UPDATE bench_rows SET n = v + 1 WHERE id = i;
  END LOOP;
  RETURN v;
END $$;
CREATE OR REPLACE FUNCTION bench_sqlf(a int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT a + 1';
