-- Views: definitions, what depends on them, changes of rows through them.
create table t (a int primary key, b text, c numeric(8,2) default 0);
create table u (id int primary key, ta int references t, note text);
insert into t values (1, 'one', 1.5), (2, 'two', 2.5), (3, 'three', 3.5);
insert into u values (10, 1, 'x'), (20, 2, 'y'), (30, 2, null);
create view v as select a, b from t where a > 1;
select * from v;
\d v
\d+ v
select pg_get_viewdef('v'::regclass);
select pg_get_viewdef('v'::regclass, true);
create view v2 (x, y) as select t.a, u.note from t join u on u.ta = t.a where u.note is not null order by u.id desc;
\d+ v2
select * from v2;
create view v3 as select b, count(*) as n, sum(c) from t left join u on u.ta = t.a group by b having count(*) > 0 order by 2 desc, b limit 10;
\d+ v3
select * from v3;
create view v4 as select x, (select max(id) from u where u.ta = v2.x) as m, exists (select 1 from t where t.a = v2.x) from v2;
\d+ v4
select * from v4;
create view v5 as select 1 as one, 'abc' as s, a + 1, case when a > 2 then 'big' else 'small' end as size, coalesce(b, 'none'), a::text from t where b in ('one', 'two') or b like 't%' and not a between 1 and 2;
\d+ v5
select * from v5;
create view v6 as select a from t union all select id from u union select 5 order by 1;
\d+ v6
select * from v6;
create view v7 as with w as (select a, b from t) select w.a, s.n from w, (select ta, count(*) n from u group by ta) s where s.ta = w.a;
\d+ v7
select * from v7;
create view v8 as select distinct on (ta) ta, id from u order by ta, id desc;
\d+ v8
create view v9 as select * from t natural join (values (1, 'p'), (2, 'q')) k(a, z);
\d+ v9
select * from v9;
create view v10 as select g, g * 2 as d from generate_series(1, 3) g;
\d+ v10
select * from v10;
create view v as select 1;
create or replace view v as select a, b, c from t where a > 1;
create or replace view v as select a from t;
create or replace view v as select a, b, a as c from t;
create or replace view v as select a, b as bb, c from t;
create or replace view t as select 1;
create view bad as select a, a from t;
create view bad as select nosuch from t;
create view bad as select a from nosuch;
create view bad (p, q) as select a from t;
-- names follow
alter table t rename column b to bee;
alter table u rename to you;
\d+ v2
\d+ v3
select * from v3;
alter view v2 rename to vtwo;
\d+ v4
select * from v4;
alter table t rename column bee to b;
alter table you rename to u;
-- what depends
drop table t;
drop view v2;
drop view vtwo;
alter table t drop column b;
alter table u alter column note type varchar(10);
drop view v4, v3, v5;
drop view nosuch;
drop view if exists nosuch;
drop table v;
drop view t;
drop table t cascade;
\dv
-- changes through views
create table base (id int primary key, name text not null, qty int default 7, check (qty > 0));
create view low as select id, name, qty from base where qty < 100;
create view low_checked as select id, name as label, qty from base where qty < 100 with check option;
create view lower_local as select * from low where qty < 50 with local check option;
create view lower_all as select * from low where qty < 50 with cascaded check option;
\d+ low_checked
insert into low values (1, 'a', 10), (2, 'b', 200) returning *;
insert into low (id, name) values (3, 'c') returning id, qty;
select * from low order by id;
update low set qty = qty + 1 where id = 1 returning *;
update low set qty = 0 where id = 1;
update low set nosuch = 1;
delete from low where id = 2;
delete from low where id = 3 returning *;
insert into low_checked values (4, 'd', 300);
insert into low_checked values (4, 'd', 30);
update low_checked set qty = 500 where label = 'd';
update low_checked set label = 'dd' where id = 4 returning *;
insert into lower_local values (5, 'e', 150);
insert into lower_all values (6, 'f', 70);
insert into lower_all values (6, 'f', 170);
insert into lower_local values (5, 'e', 40);
select * from base order by id;
create view grouped as select name, count(*) from base group by name;
insert into grouped values ('x', 1);
update grouped set name = 'y';
delete from grouped;
create view joined as select b.id from base b join base c using (id);
delete from joined;
create view computed as select id, name, qty * 2 as twice from base;
insert into computed values (9, 'n', 4);
insert into computed (id, name) values (9, 'n');
update computed set twice = 1;
update computed set name = 'nn' where twice = 14 returning *;
create view limited as select * from base limit 1;
update limited set id = 1;
create view nocheck as select 1 as x with check option;
select table_name, is_updatable, check_option from information_schema.views where table_schema = 'public' order by 1;
select table_name, table_type, is_insertable_into from information_schema.tables where table_schema = 'public' order by 1;
select viewname, definition from pg_views where schemaname = 'public' order by 1;
truncate low;
vacuum low;
create index on low (id);
drop view low, low_checked;
drop table base cascade;
-- other schemas
create schema other;
create table other.t (x int);
create view public.ov as select x from other.t;
\d+ ov
set search_path = other;
\d+ public.ov
select pg_get_viewdef('public.ov');
create view t as select 1;
create view w as select * from t;
\d+ w
reset search_path;
alter table other.t rename to t2;
\d+ ov
drop schema other;
drop schema other cascade;
drop table u cascade;
drop view v10;
