-- Statements of PL/pgSQL: loops, conditions, blocks, assignments.
DO $$
DECLARE
  s int := 0; t text DEFAULT 'a'; c CONSTANT int = 7; n numeric(6,2); a int[]; r record; b boolean;
  nn int NOT NULL := 1; al ALIAS FOR s;
BEGIN
  FOR i IN 1..5 LOOP s := s + i; END LOOP;
  FOR i IN REVERSE 5..1 BY 2 LOOP t := t || i; END LOOP;
  FOR i IN 3..1 LOOP RAISE NOTICE 'never'; END LOOP;
  RAISE NOTICE '% % % %', s, t, c, al;
  n := 3.14159; RAISE NOTICE '%', n;
  WHILE s > 0 LOOP
    s := s - 4;
    CONTINUE WHEN s % 2 = 0;
    EXIT WHEN s < 5;
  END LOOP;
  RAISE NOTICE 's %', s;
  <<outer>>
  FOR i IN 1..3 LOOP
    FOR j IN 1..3 LOOP
      CONTINUE outer WHEN j = 2;
      EXIT outer WHEN i = 3;
      RAISE NOTICE '% %', i, j;
    END LOOP;
  END LOOP;
  a := ARRAY[1,2,3]; a[2] := 20; a[5] := 50; RAISE NOTICE '%', a;
  a[1:2] := ARRAY[7,8]; RAISE NOTICE '%', a;
  a := a || 9; a := array_append(a, 10); RAISE NOTICE '% %', a, array_length(a, 1);
  SELECT 1 AS x, 'y'::text AS y INTO r; RAISE NOTICE '% % %', r, r.x, r.y;
  r.x := 5; RAISE NOTICE '%', r;
  IF s = 1 THEN RAISE NOTICE 'one'; ELSIF s = 0 THEN RAISE NOTICE 'zero'; ELSE RAISE NOTICE 'else %', s; END IF;
  CASE WHEN s > 100 THEN NULL; ELSE RAISE NOTICE 'case else'; END CASE;
  CASE s + 1 WHEN 1, 2 THEN RAISE NOTICE 'few'; WHEN 3 THEN RAISE NOTICE 'three'; ELSE RAISE NOTICE 'many'; END CASE;
  b := s IS NULL; RAISE NOTICE '% %%', b;
  <<il>>
  DECLARE s text := 'hidden';
  BEGIN
    RAISE NOTICE '% %', s, il.s;
    EXIT il;
    RAISE NOTICE 'never';
  END;
  BEGIN EXIT; EXCEPTION WHEN OTHERS THEN NULL; END;
END $$;
DO $$ BEGIN CASE 5 WHEN 1 THEN NULL; END CASE; END $$;
DO $$ DECLARE x int NOT NULL := 1; BEGIN x := NULL; END $$;
DO $$ DECLARE x CONSTANT int := 1; BEGIN x := 2; END $$;
DO $$ DECLARE x varchar(3); BEGIN x := 'abc'; x := 'abcd'; END $$;
DO $$ DECLARE x int; BEGIN x := 'abc'; END $$;
DO $$ DECLARE x int; BEGIN x := 1/0; END $$;
DO $$ DECLARE x int; BEGIN x := y + 1; END $$;
DO $$ BEGIN FOR i IN 1..NULL LOOP NULL; END LOOP; END $$;
DO $$ BEGIN FOR i IN 1..3 BY 0 LOOP NULL; END LOOP; END $$;
DO $$ BEGIN RAISE NOTICE 'x' ; PERFORM 1; SELECT 1; END $$;
DO $$ DECLARE x int[]; y int; BEGIN
  FOREACH y IN ARRAY ARRAY[[1,2],[3,4]] LOOP RAISE NOTICE '%', y; END LOOP;
  FOREACH x SLICE 1 IN ARRAY ARRAY[[1,2],[3,4]] LOOP RAISE NOTICE '%', x; END LOOP;
  FOREACH y IN ARRAY NULL::int[] LOOP NULL; END LOOP;
END $$;
DO $$ DECLARE r record; BEGIN RAISE NOTICE '%', r.x; END $$;
DO $$ DECLARE r record; BEGIN SELECT 1 AS a INTO r; RAISE NOTICE '%', r.b; END $$;
DO $$ DECLARE x int; BEGIN SELECT 1, 2 INTO x; RAISE NOTICE '%', x; SELECT 7 INTO STRICT x; SELECT 1 INTO STRICT x WHERE false; END $$;
DO $$ DECLARE x int; BEGIN SELECT g INTO STRICT x FROM generate_series(1, 2) g; END $$;
DO $$ DECLARE x int; BEGIN SELECT g INTO x FROM generate_series(1, 2) g; RAISE NOTICE '% %', x, FOUND; SELECT 1 INTO x WHERE false; RAISE NOTICE '% %', x, FOUND; END $$;
CREATE TABLE ct (a int, b text);
DO $$ DECLARE n int; x int; y text; r ct; q ct%ROWTYPE; z ct.b%TYPE; BEGIN
  INSERT INTO ct VALUES (1, 'one'), (2, 'two'); GET DIAGNOSTICS n = ROW_COUNT; RAISE NOTICE '% %', n, FOUND;
  UPDATE ct SET b = b || '!' WHERE a = 2 RETURNING a, b INTO x, y; RAISE NOTICE '% %', x, y;
  DELETE FROM ct WHERE a = 9; RAISE NOTICE '%', FOUND;
  SELECT * INTO r FROM ct WHERE a = 1; q := r; q.b := 'changed'; RAISE NOTICE '% %', r, q;
  INSERT INTO ct SELECT q.*; INSERT INTO ct VALUES (q.a + 10, q.b);
  z := (SELECT max(b) FROM ct); RAISE NOTICE '%', z;
  FOR r IN SELECT * FROM ct ORDER BY a, b LOOP RAISE NOTICE '%: %', r.a, r; END LOOP;
  FOR x, y IN SELECT a, b FROM ct ORDER BY a, b LOOP RAISE NOTICE '% %', x, y; EXIT; END LOOP;
  FOR r IN EXECUTE 'SELECT * FROM ct WHERE a > $1 ORDER BY a' USING 1 LOOP RAISE NOTICE '%', r; END LOOP;
  EXECUTE 'SELECT count(*) FROM ct' INTO n; RAISE NOTICE '%', n;
  EXECUTE format('UPDATE %I SET b = %L', 'ct', 'all'); GET DIAGNOSTICS n = ROW_COUNT; RAISE NOTICE '%', n;
  EXECUTE NULL;
END $$;
SELECT * FROM ct ORDER BY a, b;
CREATE FUNCTION conflict1(a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM ct WHERE ct.a = a); END $$;
SELECT conflict1(1);
CREATE FUNCTION conflict2(a int) RETURNS int LANGUAGE plpgsql AS $$ #variable_conflict use_variable
BEGIN RETURN (SELECT count(*) FROM ct WHERE ct.a = a); END $$;
SELECT conflict2(1);
CREATE FUNCTION conflict3(a int) RETURNS int LANGUAGE plpgsql AS $$ #variable_conflict use_column
BEGIN RETURN (SELECT count(*) FROM ct WHERE ct.a = a); END $$;
SELECT conflict3(1);
CREATE FUNCTION syntax1() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  IF true THEN RETURN 1;
END $$;
CREATE FUNCTION syntax2() RETURNS int LANGUAGE plpgsql AS $$ BEGIN x := 1; END $$;
CREATE FUNCTION syntax3() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1 END $$;
CREATE FUNCTION syntax4() RETURNS int LANGUAGE plpgsql AS $$ BEGIN SELEC 1; RETURN 1; END $$;
CREATE FUNCTION syntax5() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN; END $$;
CREATE FUNCTION syntax6() RETURNS void LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
CREATE FUNCTION syntax7() RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXIT; END $$;
CREATE FUNCTION syntax8() RETURNS void LANGUAGE plpgsql AS $$ DECLARE a int; a int; BEGIN END $$;
CREATE FUNCTION syntax9() RETURNS void LANGUAGE plpgsql AS $$ DECLARE a nosuchtype; BEGIN END $$;
CREATE FUNCTION syntax10() RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% %', 1; END $$;
CREATE FUNCTION syntax11() RETURNS void LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1..2 LOOP END LOOP; a b c; END $$;
CREATE FUNCTION syntax12() RETURNS void LANGUAGE plpgsql AS $$ BEGIN BEGIN END x; END $$;
CREATE FUNCTION syntax13() RETURNS void LANGUAGE plpgsql AS $$ <<l>> BEGIN NULL; END m; $$;
CREATE FUNCTION syntax14() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM 1 +; END $$;
CREATE FUNCTION syntax15() RETURNS void LANGUAGE plpgsql AS $$ BEGIN NULL; EXCEPTION WHEN nosuch THEN NULL; END $$;
