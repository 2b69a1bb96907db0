-- Which of two mistakes is reported, and in which words.
create table one (a int);
create table two (a int);
create index one_a on one (a);
-- The list is bound before WHERE, columns of GROUP BY after both.
select x from one where y;
select x from one where a;
select a, count(*) from one where a > 1;
select a, y, count(*) from one where a > 1 group by a;
select a from one where y group by z;
select count(*) from one where a > 1 having a > 2;
select 1 from one where a > 1 group by a having b > 2;
select a + 1 from one where a > 1 group by a + 2;
-- Aggregates without arguments.
select bit_and();
select count();
select sum();
-- Indexes where a table is expected.
select * from one_a;
insert into one_a values (1);
update one_a set a = 1;
create view refused as select * from one_a;
copy one_a to stdout;
create index on one_a (a);
-- New owners are looked up before what they are to own.
alter function nothing owner to nobody_here;
alter procedure nothing owner to nobody_here;
alter aggregate nothing(int) owner to nobody_here;
alter schema nothing owner to nobody_here;
alter database nothing owner to nobody_here;
alter type nothing owner to nobody_here;
alter domain nothing owner to nobody_here;
alter collation nothing owner to nobody_here;
alter event trigger nothing owner to nobody_here;
alter table nothing owner to nobody_here;
-- Schemas, tablespaces, kinds.
alter table nowhere.x add a int;
select * from nowhere.x;
create table three (a int) tablespace nowhere;
create index on one (a) tablespace nowhere;
create index on one (nothing) tablespace nowhere;
create table three (a int) tablespace pg_global;
reindex (tablespace nowhere) table one;
alter table one attach partition two for values in (1);
alter table one detach partition two;
drop foreign table nothing;
drop foreign table if exists nothing;
drop policy p on one;
alter policy p on one to public;
alter policy p on one rename to q;
alter type one add attribute b int;
merge into one using two on true when matched and 1 then delete;
-- Numbers of parts of an index that it does not have.
select pg_get_indexdef('one_a'::regclass, 1, true), pg_get_indexdef('one_a'::regclass, 5, true) = '';
select has_table_privilege('one', 'SELECT, INSERT WITH GRANT OPTION');
select has_table_privilege('one', 'SELECT, INSERT  WITH GRANT OPTION');
-- Values of dates, times and intervals.
select make_date(-4, 2, 29);
select make_date(0, 2, 29);
select make_time(24, 0, 2.1);
select make_time(1, 2, -55.33);
select interval '1 day 1:';
select interval ':5';
select interval '+1:99';
select interval '1:99';
select interval '-3000000000:00';
select interval '3000000000:00';
drop table one, two;
