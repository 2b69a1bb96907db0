-- What else a query can say.
create table q (id int primary key, g text, v int);
insert into q select i, chr(97 + i % 3), i * i % 7 from generate_series(1, 12) i;
-- FETCH FIRST … WITH TIES
select v from q order by v fetch first 3 rows only;
select v from q order by v fetch first 3 rows with ties;
select v from q order by v offset 2 fetch first 1 row with ties;
select v from q order by v desc fetch first row with ties;
select count(*) from q group by g order by count(*) fetch first 1 rows with ties;
select v from q fetch first 1 rows with ties;
select distinct v from q order by v fetch first 2 rows with ties;
select v from q union select 100 order by v fetch first 2 rows with ties;
-- functions in FROM
select * from rows from (generate_series(1, 3), unnest(array['a', 'b'])) with ordinality;
select * from rows from (generate_series(1, 2), generate_series(5, 8)) as t(a, b);
select * from unnest(array[1, 2], array['x', 'y', 'z']) as u(n, t);
select * from generate_series(1, 3) with ordinality as s(v, n);
select q.id, s from q, generate_series(1, q.v) s where q.id < 4 order by 1, 2;
select * from rows from (unnest(array[1, 2, 3]), now()) limit 0;
select generate_series(1, 3), generate_series(10, 11);
select id, generate_series(1, v) from q where id < 4 order by 1, 2;
select generate_series(1, 2) + 10 as x order by x desc;
select count(*) from (select unnest(array[1, 2]), generate_series(1, 3)) s;
-- several columns from a subquery
update q set (g, v) = (select 'z', 99) where id = 1 returning *;
update q set (g, v) = (select 'y', 98 where false) where id = 2 returning *;
update q set (v, g) = (select id * 2, g || '!' from q q2 where q2.id = q.id) where id in (3, 4) returning *;
update q set (g, v) = (select 1) where id = 1;
update q set (g, v) = ('row', 5) where id = 5 returning *;
update q set (g, v) = row('r', default) where id = 5 returning *;
-- FROM and USING
update q set v = s.n from (values (6, 600), (7, 700)) s(id, n) where q.id = s.id returning q.id, v, s.n;
delete from q using (values (6), (7)) s(id) where q.id = s.id returning q.*, s.id as sid;
update q a set v = b.v from q b where a.id = b.id + 1 and b.id = 8 returning a.id, a.v;
-- rows
select (1, 2) < (1, 3), (1, null) = (1, 2), (1, 2) <> (1, null), row(1, 2) = row(1, 2);
select id from q where (id, v) in (select id, v from q where id < 3) order by 1;
select id from q where (id, g) in ((8, 'c'), (9, 'a'), (1, 'z')) order by 1;
select (1, 'a') = (select 1, 'a'::text);
select id from q where (id, v) = (select 9, v from q where id = 9);
select id from q where row(id, v) >= row(11, 0) order by id;
select (select (1, 2)) ;
-- DISTINCT ON
select distinct on (g) g, id from q order by g, id desc;
select distinct on (g) g, v from q order by v;
select distinct on (g, v) g, v from q order by g, v limit 3;
-- LATERAL
select q.id, l.m from q left join lateral (select max(b.id) m from q b where b.id < q.id) l on true where q.id < 5 order by 1;
select q.id, l.id from q cross join lateral (select id from q b where b.g = q.g order by id desc limit 1) l order by 1;
select * from (values (1), (2)) a(x), lateral (select x * 10) b(y), lateral (values (x + y)) c(z) order by 1;
-- set operations
select 1 union select 1.5 union select 2 order by 1;
(select v from q order by v limit 2) union all (select v from q order by v desc limit 2) order by 1;
select g from q intersect all select g from q where id < 9 order by 1;
select g from q except select 'a' order by 1;
select v from q except all select v from q where id > 8 order by 1;
select null union select 'x' order by 1;
select 1, 'a' union select 2;
select 1 union select 'a';
table q order by id limit 1;
values (1, 'a'), (2, 'b') order by 1 desc limit 1;
select * from (values (1, null), (2, 'x')) v(a, b);
-- TABLESAMPLE
select count(*) from q tablesample bernoulli (100);
select count(*) from q tablesample system (0);
select count(*) = (select count(*) from q tablesample bernoulli (50) repeatable (1)) from q tablesample bernoulli (50) repeatable (1);
select count(*) from q tablesample system (100) repeatable (5) where id > 8;
select count(*) from q tablesample nosuch (1);
select count(*) from q tablesample bernoulli (101);
select count(*) from q tablesample bernoulli (-1);
select count(*) from q tablesample bernoulli (null);
select count(*) from q tablesample system (1, 2);
-- subqueries
select id, (select g from q b where b.id = q.id + 1) from q order by 1 limit 3;
select array(select id from q order by id desc limit 3);
select exists (select 1 from q where id > 100), not exists (select 1);
select id from q where v > all (select v from q where g = 'nosuch') order by 1 limit 1;
select id from q where id = any (select 1 union select 9) order by 1;
select (select max(b.v + q.id) from q b) from q order by 1 limit 1;
select case when exists (select 1 from q where id = 1) then (select g from q where id = 1) end;
select sum((select count(*) from q b where b.id <= a.id)) from q a;
-- row locks over joins
select a.id from q a join q b on a.id = b.id where a.id = 1 for update of a;
select a.id from q a left join q b on a.id = b.id where a.id = 1 for update of b;
select a.id from q a left join q b on a.id = b.id where a.id = 1 for update;
select id from (select id from q where id = 1) s for update;
select id from q where id = 1 for no key update nowait;
select id from q where id = 1 for share skip locked;
select id from q for update of nosuch;
select count(*) from q for update;
explain (costs off) select * from q tablesample system (10) where v > 1;
drop table q;
