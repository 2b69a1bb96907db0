-- What is kept of expressions means the same under any search path, and is shown with schemas where needed.
CREATE SCHEMA things;
SET search_path = things;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'glad');
CREATE DOMAIN small AS int CHECK (VALUE < 100);
CREATE TYPE pair AS (a int, b mood);
CREATE FUNCTION twice(i int) RETURNS int IMMUTABLE LANGUAGE sql RETURN i * 2;
CREATE TABLE people (id int, m mood DEFAULT 'ok', n mood DEFAULT ('sad'::mood), list mood[] DEFAULT ARRAY['ok'::mood], s small,
    t int DEFAULT twice(3), CHECK (m <> 'sad'::mood OR n = ANY ('{ok,glad}'::mood[])), CHECK (twice(s) < 150), g text GENERATED ALWAYS AS (CASE WHEN m = 'ok'::mood THEN 'fine' ELSE 'other' END) STORED);
CREATE INDEX by_mood ON people (twice(id), (m = 'glad'::mood)) WHERE m > 'sad'::mood AND twice(id) > 0;
CREATE DOMAIN merry AS mood CHECK (VALUE > 'sad'::mood);
CREATE VIEW glad AS SELECT id, m, 'glad'::mood AS other, NULL::mood AS none, '{sad,ok}'::mood[] AS all_of, 3::small AS three FROM people WHERE m = 'glad' AND m IN ('ok', 'glad') AND twice(id) > 2;
INSERT INTO people VALUES (1, 'glad'), (2, 'ok'), (7, 'glad');
SELECT pg_get_viewdef('glad');
\d people
SET search_path = '';
SELECT pg_get_viewdef('things.glad'::regclass);
SELECT pg_get_viewdef('things.glad'::regclass, true);
\d things.people
\d+ things.glad
SELECT conname, pg_get_constraintdef(oid) FROM pg_catalog.pg_constraint WHERE conname IN ('people_check', 'people_s_check', 'merry_check', 'small_check') ORDER BY 1;
SELECT pg_get_expr(adbin, adrelid) FROM pg_catalog.pg_attrdef WHERE adrelid = 'things.people'::regclass ORDER BY adnum;
INSERT INTO things.people (id, s) VALUES (9, 10);
INSERT INTO things.people (id, s) VALUES (10, 90);
INSERT INTO things.people (id, m) VALUES (11, 'sad');
SELECT * FROM things.people ORDER BY id;
SELECT * FROM things.glad ORDER BY id;
SELECT 'sad'::things.merry;
UPDATE things.people SET m = 'ok' WHERE id = 7;
SELECT id FROM things.people WHERE things.twice(id) > 2 AND m > 'sad' ORDER BY id;
RESET search_path;
\d things.by_mood
DROP SCHEMA things CASCADE;
