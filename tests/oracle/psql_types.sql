-- What psql says about types, functions and rights that users make.
CREATE ROLE k_owner;
CREATE ROLE k_user LOGIN;
CREATE SCHEMA kinds AUTHORIZATION k_owner;
CREATE SCHEMA beside;
SET search_path = kinds, public;

CREATE TYPE mood AS ENUM ('sad', 'ok', 'it''s "fine"', 'happy');
CREATE TYPE nothing AS ENUM ();
CREATE TYPE place AS (street text, number int, spot numeric(6,2)[], at timestamptz(3));
CREATE TYPE empty AS ();
CREATE TYPE nested AS (here place, feelings mood[]);
CREATE DOMAIN positive AS int CONSTRAINT above_zero CHECK (VALUE > 0);
CREATE DOMAIN small AS positive DEFAULT 1 NOT NULL CHECK (VALUE < 100) CONSTRAINT even CHECK (VALUE % 2 = 0);
CREATE DOMAIN code AS varchar(8) DEFAULT 'a''b';
CREATE DOMAIN tags AS text[] CHECK (array_length(VALUE, 1) < 5);
CREATE DOMAIN beside.feeling AS mood;
CREATE TABLE people (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, feels mood DEFAULT 'ok', lives place, all_places place[], age positive, n small, c code, t tags, f beside.feeling, whole int4range, spans tstzmultirange, CONSTRAINT lives_somewhere CHECK ((lives).number > 0));
CREATE INDEX people_feels ON people (feels) WHERE feels > 'sad';
CREATE INDEX people_street ON people (((lives).street));
CREATE VIEW happy_people AS SELECT id, feels, (lives).street AS street, age + 1 AS older, c::text AS c FROM people WHERE feels = 'happy'::mood AND age > 10;
COMMENT ON TYPE mood IS 'how one feels';
COMMENT ON TYPE place IS 'where one lives';
COMMENT ON DOMAIN small IS 'few';
COMMENT ON CONSTRAINT even ON DOMAIN small IS 'pairs';
COMMENT ON COLUMN place.street IS 'its name';
ALTER TYPE nested OWNER TO k_owner;
GRANT USAGE ON TYPE mood TO k_user;
REVOKE USAGE ON DOMAIN small FROM PUBLIC;

CREATE FUNCTION plain() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION several(a int, b text DEFAULT 'x', VARIADIC c numeric[] DEFAULT '{1.5}') RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 5 AS $$SELECT a || b || c[1]$$;
CREATE FUNCTION outs(IN a int, OUT b int, INOUT c text) RETURNS record LANGUAGE sql STABLE AS $$
  SELECT a + 1,
         c || '!'
$$;
CREATE FUNCTION rows_of(n int) RETURNS TABLE (id int, name text) LANGUAGE sql ROWS 10 SECURITY DEFINER SET search_path = kinds, public AS 'SELECT i, i::text FROM generate_series(1, n) AS i';
CREATE FUNCTION set_of() RETURNS SETOF people LANGUAGE sql LEAKPROOF AS 'SELECT * FROM people';
CREATE FUNCTION feel(m mood, p place) RETURNS mood LANGUAGE sql BEGIN ATOMIC SELECT m AS m; END;
CREATE FUNCTION add_one(int) RETURNS int LANGUAGE sql IMMUTABLE RETURN $1 + 1;
CREATE FUNCTION poly(a anyelement, b anyarray) RETURNS anyelement LANGUAGE sql AS 'SELECT b[1]';
CREATE FUNCTION "Odd Name"("An Arg" int) RETURNS void LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION beside.plain(positive) RETURNS small LANGUAGE sql AS 'SELECT 2';
CREATE PROCEDURE act(x int, INOUT y int DEFAULT 5) LANGUAGE sql AS 'SELECT x + y';
CREATE PROCEDURE act2() LANGUAGE sql AS 'SELECT 1';
COMMENT ON FUNCTION several(int, text, numeric[]) IS 'many arguments';
COMMENT ON PROCEDURE act(int, int) IS 'does it';
ALTER FUNCTION plain() OWNER TO k_owner;
REVOKE EXECUTE ON FUNCTION plain() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION plain() TO k_user WITH GRANT OPTION;
GRANT SELECT (id, feels), UPDATE (age) ON people TO k_user;
ALTER DEFAULT PRIVILEGES FOR ROLE k_owner IN SCHEMA kinds GRANT ALL ON TABLES TO k_user;
ALTER DEFAULT PRIVILEGES FOR ROLE k_owner GRANT USAGE ON TYPES TO k_user WITH GRANT OPTION;
ALTER DEFAULT PRIVILEGES FOR ROLE k_owner REVOKE ALL ON FUNCTIONS FROM PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE k_owner IN SCHEMA kinds GRANT USAGE ON SEQUENCES TO PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE k_owner GRANT CREATE ON SCHEMAS TO k_user;
ALTER ROLE k_user IN DATABASE postgres SET statement_timeout = '1min';
ALTER ROLE k_user SET application_name = 'a b';

\echo == types
\dT
\dT+
\dT mood
\dT+ place
\dT+ nothing
\dT kinds.*
\dT beside.*
\dT+ *.feeling
\dT people
\dT mood[]
\dT+ int4range
\dT+ small
\dD
\dD+
\dD small
\dD+ *.*eel*
\dD kinds.t*
\dD nosuch
\d mood
\d place
\d+ place
\d nested
\d empty
\d people
\d+ people
\d happy_people
\d+ happy_people
\d people_feels
\d people_street
\sv happy_people

\echo == functions
\df
\df+
\df several
\df+ several
\df outs
\df kinds.*
\df *.plain
\df beside.*
\dfn
\dfp
\dfp+ act
\dfa
\dft
\dfw
\df several int
\df plain positive
\df rows_of int4
\df feel mood place
\df "Odd Name"
\df * mood
\df add_one integer
\sf plain
\sf several
\sf several(int, text, numeric[])
\sf+ outs
\sf rows_of
\sf set_of
\sf feel
\sf add_one
\sf poly
\sf "Odd Name"
\sf beside.plain
\sf act
\sf act2()
\sf nosuch
\sf several(int)
\sf plain(
CREATE FUNCTION plain(int) RETURNS int LANGUAGE sql AS 'SELECT 2';
\sf plain
\sf plain(int)
\sf plain()
DROP FUNCTION plain(int);

\echo == editing
\setenv PSQL_EDITOR cat
\ef several
\p
\r
\ef plain()
;
\setenv PSQL_EDITOR true
\ef rows_of 2
\p
;
\ev happy_people
\p
\g
\ef nosuch
\ev nosuch
\ef
\p
\r

\echo == rights
\dp
\dp people
\dp happy*
\z kinds.*
\ddp
\ddp kinds
\ddp k*
\drds
\drds k_user
\drds k_user postgres
\drds * nosuch
\dn+ kinds
\dn+
\du k_*
\du+ k_*
\dg+ k_user
\dd
\dd even
\dd kinds.*
\dd mood
\ddS int4abs

\echo == of the system
\da
\da max
\da pg_catalog.s*
\da *_agg
\daS bit_*
\da+ sum
\da percent*
\do
\do -|-
\do @> anyarray
\do + date
\do < int4 int8
\do * * interval
\do+ ~
\dC bool
\dC int4
\dC+ date
\dC mood
\dO
\dO pg_catalog.C
\dO "ucs*"
\dO+ "POSIX"
\dOS default
\dL+ sql
\dLS+ internal
\dA nosuch
\dAc btree bool
\dAc btree nosuch
\dAc+ btree n*
\dAf+ btree text
\dAo btree integer_ops
\dAo+ btree bool*
\dAp btree text*
\dAp+ btree datetime_ops
\dAp btree nosuch
\dconfig *isolation*
\dconfig "DateStyle"
\dconfig nosuch
\dconfig+ statement_timeout
\dconfig enable_hash*
\db
\dx nosuch
\dy
\dX
\dP
\dPi
\dPt nosuch
\dew nosuch
\des nosuch
\deu nosuch
\det nosuch
\dF nosuch
\dFp nosuch
\dFd nosuch
\dFt nosuch
\dl
\lo_list
\l postgres
\l template1
\l nosuch
\dtvmsE
\dits
\dv+ happy_people
\ds+
\d+ people_id_seq
\dS+ people_id_seq
\d "no such""name"
\d kinds.
\df kinds.plain int int
\dT+ "char"
\d pg_catalog.pg_enum
\d pg_catalog.pg_range
\d+ pg_catalog.pg_am
\dnS+ information_schema

DROP SCHEMA kinds, beside CASCADE;
DROP OWNED BY k_owner;
DROP OWNED BY k_user;
DROP ROLE k_owner;
DROP ROLE k_user;
\dT
\df
\ddp
