-- The script is UTF-8; a session whose encoding is another one sends the same bytes as other characters.
SHOW client_encoding;
SELECT pg_client_encoding();
\encoding LATIN1
SHOW client_encoding;
SELECT pg_client_encoding();
SELECT length('é'), encode(convert_to('é', 'UTF8'), 'hex');
SELECT chr(228) || 'x' AS "größe";
SELECT chr(8364);
SELECT 1 AS "ok", chr(8364);
CREATE TEMP TABLE t (a text);
COPY t FROM STDIN;
é
\.
SELECT length(a), a FROM t;
COPY t TO STDOUT;
COPY t TO STDOUT WITH (FORMAT csv, HEADER, FORCE_QUOTE *, ENCODING 'UTF8');
INSERT INTO t VALUES (chr(1071));
COPY t TO STDOUT;
COPY t TO STDOUT (ENCODING 'WIN1251');
DO $$ BEGIN RAISE NOTICE 'é %', chr(233); END $$;
DO $$ BEGIN RAISE EXCEPTION 'é %', chr(233); END $$;
DO $$ BEGIN RAISE EXCEPTION 'no %', chr(8364); END $$;
SELECT * FROM "größe";
SELECT U&'\20AC' = chr(8364);
\encoding UTF8
SELECT length(a), a FROM t ORDER BY 1;
\encoding WIN1252
SELECT 'Ï', '€';
\encoding SJIS
SELECT encode(convert_to('表', 'UTF8'), 'hex');
SELECT chr(35920);
SELECT chr(233);
\encoding EUC_JP
SELECT chr(26085) || chr(26412), octet_length(chr(26085)), chr(65393);
SELECT 'é';
\encoding GB18030
SELECT chr(128512), chr(27721);
\encoding BIG5
SELECT chr(28450);
\encoding UHC
SELECT chr(54620), chr(44034);
\encoding EUC_KR
SELECT chr(54620);
SELECT chr(44034);
\encoding KOI8R
SELECT chr(1102);
SET client_encoding = 'iso-8859-5';
SHOW client_encoding;
SET client_encoding TO 'UNICODE';
SHOW client_encoding;
SET NAMES 'latin9';
SHOW client_encoding;
SET NAMES default;
SHOW client_encoding;
SET client_encoding = mule_internal;
SET client_encoding = nonsense;
BEGIN;
SET LOCAL client_encoding = LATIN1;
SELECT chr(233);
ROLLBACK;
SELECT chr(233);
BEGIN;
SET client_encoding = LATIN1;
ROLLBACK;
SHOW client_encoding;
SELECT set_config('client_encoding', 'latin2', false);
SELECT chr(345);
RESET client_encoding;
SHOW client_encoding;
COPY t FROM STDIN (ENCODING 'SJIS');
\.
COPY t FROM STDIN (ENCODING 'LATIN1');
é
\.
SELECT octet_length(a) FROM t ORDER BY 1;
COPY t FROM STDIN (ENCODING 'EUC_JP');
ok
é
\.
COPY t FROM STDIN (ENCODING 'nonsense');
COPY t TO STDOUT (ENCODING 'MULE_INTERNAL');
