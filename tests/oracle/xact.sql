-- What the running transaction has done so far, and how old transactions are.
CREATE TABLE xact_t (id int PRIMARY KEY, v int);
\set done 'SELECT n_tup_ins, n_tup_upd, n_tup_del, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relname = \'xact_t\';'
BEGIN;
INSERT INTO xact_t SELECT g, 0 FROM generate_series(1, 10) g;
UPDATE xact_t SET v = v + 1 WHERE v = 0 AND id > 6;
:done
SAVEPOINT s;
DELETE FROM xact_t WHERE v = 1 AND id <> 9;
:done
ROLLBACK TO s;
:done
SELECT pg_stat_get_xact_tuples_inserted('xact_t'::regclass), pg_stat_get_xact_tuples_updated('xact_t'::regclass), pg_stat_get_xact_tuples_deleted('xact_t'::regclass);
SELECT count(*) FROM pg_stat_xact_all_tables WHERE relname = 'xact_t';
SELECT count(*) FROM pg_stat_xact_sys_tables WHERE relname = 'xact_t';
SELECT count(*) FROM pg_stat_xact_user_functions;
COMMIT;
CREATE TABLE xact_u (a int);
INSERT INTO xact_u VALUES (11), (12) \; SELECT n_tup_ins FROM pg_stat_xact_user_tables WHERE relname = 'xact_u';
SELECT age('2'::xid), age('0'::xid), age('3'::xid) > 0;
SELECT age(timestamp '2001-04-10', timestamp '1957-06-13');
BEGIN;
SELECT age(pg_current_xact_id()::xid);
COMMIT;
SELECT pid = pg_backend_pid() AS mine, state, backend_type, query FROM pg_stat_get_activity(pg_backend_pid());
SELECT count(*) FROM pg_stat_get_activity(0);
SELECT count(*) > 1 FROM pg_stat_get_activity(NULL::int);
SELECT a.state FROM (SELECT pg_backend_pid() AS own) AS x, pg_stat_get_activity(x.own) AS a;
DROP TABLE xact_t, xact_u;
