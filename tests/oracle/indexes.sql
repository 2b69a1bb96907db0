-- Partial, expression, covering and unique indexes; what follows a column's new name.
create table t (id int primary key, email text, city text, deleted_at timestamp, n int);
create unique index t_email_live on t (lower(email)) where deleted_at is null;
create index on t ((n + 1), city desc) include (email);
create index t_up on t (upper(city));
\d t
select indexdef from pg_indexes where tablename = 't' order by 1;
insert into t values (1, 'A@x', 'Rome', null, 1), (2, 'b@x', 'Oslo', null, 2), (3, 'a@X', 'Rome', '2020-01-01', 3);
insert into t values (4, 'a@x', 'Bern', null, 4);
insert into t values (4, 'a@x', 'Bern', '2021-01-01', 4);
update t set deleted_at = null where id = 3;
update t set deleted_at = now() where id = 1;
update t set deleted_at = null where id = 3 returning id, email;
insert into t values (5, 'A@X', 'Bern', null, 5);
delete from t where id = 3;
insert into t values (5, 'A@X', 'Bern', null, 5);
select id from t where lower(email) = 'a@x' and deleted_at is null;
select id from t where upper(city) = 'BERN' order by id;
select id from t where deleted_at is null order by id;
set enable_seqscan = off;
select id from t where lower(email) = 'a@x' and deleted_at is null;
select id from t where lower(email) = 'a@x' order by id;
select id from t where upper(city) = 'BERN' order by id;
reset enable_seqscan;
create unique index t_n_dup on t ((n / 2));
create unique index t_n_ok on t ((n * 2)) where n > 3;
create index bad on t ((random()));
create index bad on t (n) where random() > 0.5;
create index bad on t (nosuch);
create index bad on t ((nosuch + 1));
create index bad on t (n) where nosuch;
create index bad on t (n) include ((n + 1));
create table r (x text references t (email));
create table p (a int, b int, c int, unique (a) include (b), primary key (b) include (c));
\d p
insert into p values (1, 1, 1), (2, 2, 1);
insert into p values (1, 3, 1);
create table nn (a int, b int, unique nulls not distinct (a));
\d nn
insert into nn values (null, 1);
insert into nn values (null, 2);
create unique index nn_b on nn (b) nulls not distinct;
insert into nn values (1, null), (2, null);
alter table t rename column email to mail;
alter table t rename column deleted_at to gone;
\d t
insert into t values (6, 'B@x', 'Bern', null, 6);
alter table t drop column city;
\d t
create table ck (a int check (a > 0), b int generated always as (a * 2) stored, constraint ab check (a < b or a is null));
alter table ck rename column a to z;
\d ck
insert into ck values (5) returning *;
insert into ck values (-5);
select pg_get_indexdef('t_email_live'::regclass, 1, true), pg_get_indexdef('t_up'::regclass);
drop table t, p, nn, ck;
-- NOT VALID, and the forms that migration tools write
create table a (id bigserial primary key, v int);
insert into a (v) values (1), (-1);
alter table a add constraint pos check (v > 0) not valid;
\d a
insert into a (v) values (-2);
alter table a validate constraint pos;
update a set v = 5 where v < 0;
alter table a validate constraint pos;
alter table a validate constraint nosuch;
\d a
create table b (id int, aid bigint);
insert into b values (1, 1), (2, 77);
alter table b add constraint b_fk foreign key (aid) references a (id) not valid;
\d b
alter table b validate constraint b_fk;
delete from b where id = 2;
alter table b validate constraint b_fk;
\d b
alter table only b alter column id set not null, alter column id set default 4, add column extra uuid;
alter table b add column rnd float default random();
select count(distinct rnd) from b;
alter table if exists nosuch add column x int;
alter table b drop column if exists nope, drop constraint if exists nope;
alter table b drop constraint b_fk;
alter index a_pkey rename to a_key;
alter sequence a_id_seq owned by none;
alter sequence a_id_seq owned by a.id;
create schema s2;
alter table a set schema s2;
\d s2.a
\ds s2.*
alter table s2.a set schema nosuch;
drop schema s2 cascade;
drop table b;
