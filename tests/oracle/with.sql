-- WITH: plain, recursive, changing data.
create table t (id int primary key, parent int, name text);
insert into t values (1, null, 'root'), (2, 1, 'a'), (3, 1, 'b'), (4, 2, 'aa'), (5, 4, 'aaa'), (6, 3, 'ba');
with x as (select 1 as n) select * from x;
with x(a, b) as (select 1, 'q') select b, a from x;
with x as (select * from t), y as (select * from x where id > 3) select * from y order by id;
with x as (select * from t) select a.id, b.id from x a join x b on a.id = b.parent order by 1, 2;
with x as materialized (select * from t) select count(*) from x;
with x as not materialized (select * from t) select count(*) from x a, x b;
with x as (select 1), x as (select 2) select 1;
with x(a, b) as (select 1) select 1;
select * from (with x as (select 5 as n) select * from x) s;
select (with x as (select t.id * 2 as n) select n from x) from t order by id;
select id, (with x as (select id as i union all select 10) select sum(i) from x) from t order by id;
select t.id, s.n from t, lateral (with x as (select t.id + 1 as n) select * from x) s order by 1;
with x as (select * from t) select x.id from x where exists (with y as (select 1 where x.id = 2) select * from y);
-- recursive
with recursive n(i) as (select 1 union all select i + 1 from n where i < 10) select * from n;
with recursive n(i) as (values (1) union all select i + 1 from n where i < 100) select sum(i), count(*) from n;
with recursive n(i) as (select 1 union all select i + 1 from n) select * from n limit 5;
with recursive n(i) as (select 1 union select (i % 5) + 1 from n) select * from n order by i;
with recursive tree as (
  select id, name, 1 as depth, name as path from t where parent is null
  union all select t.id, t.name, tree.depth + 1, tree.path || '/' || t.name from t join tree on t.parent = tree.id)
select * from tree order by path;
with recursive up as (select * from t where id = 5 union all select t.* from t, up where t.id = up.parent)
select id, name from up order by id;
with recursive f(a, b) as (select 0, 1 union all select b, a + b from f where b < 100) select a from f;
with recursive x(n, s) as (select 1, array[1] union all select n + 1, s || (n + 1) from x where n < 4) select * from x;
with recursive a as (select 1 as n union all select n + 1 from a where n < 3), b as (select n * 10 as m from a) select * from a, b order by 1, 2;
with recursive x as (select 1) select * from x;
with recursive x as (select 1 union select 2) select * from x order by 1;
with recursive outerq as (
  with recursive innerq as (select 1 as n union all select n + 1 from innerq where n < 3) select n from innerq)
select * from outerq;
select t.id, (with recursive d(i, n) as (select t.id, 0 union all select c.id, d.n + 1 from t c, d where c.parent = d.i)
  select max(n) from d) as depth from t order by id;
with recursive r(n) as (select 1 union all select n + 1 from r where n < 5)
  select a.n, b.n from r a join r b on a.n = b.n + 1 order by 1;
with recursive r(n) as (select 1 union all (select n + 1 from r where n < 5 order by 1 limit 1)) select * from r;
with recursive g(f, t) as (values (1, 2), (2, 3), (3, 1)), walk(n, seen) as (
  select 1, array[1] union all select g.t, seen || g.t from walk join g on g.f = walk.n where g.t <> all (seen)) select * from walk;
-- what recursion may not do
with recursive n(i) as (select i from n union all select 1) select * from n;
with recursive n as (select * from n) select * from n;
with recursive n(i) as (select 1 intersect select i from n) select * from n;
with recursive n(i) as (select 1 union all select a.i from n a, n b) select * from n;
with recursive n(i) as (select 1 union all select 2 where exists (select * from n)) select * from n;
with recursive n(i) as (select 1 union all select i + 1 from n order by 1) select * from n;
with recursive n(i) as (select 1 union all select i + 1 from n limit 3) select * from n;
with recursive n(i) as (select 1 union all select i + 1.5 from n where i < 3) select * from n;
with recursive n(i) as (select '1' union all select i || 'x' from n where length(i) < 4) select * from n;
with recursive n(i, j) as (select 1, 2 union all select 1 from n) select * from n;
select * from n;
-- changing data
create table log (id int, what text);
with ins as (insert into log values (1, 'a'), (2, 'b') returning *) select * from ins order by id;
select * from log order by id;
with ins as (insert into log values (3, 'c') returning id) select count(*) from ins;
with ins as (insert into log values (4, 'd')) select 'unread';
with ins as (insert into log values (5, 'e')) select * from ins;
select count(*) from log;
with d as (delete from log where id < 3 returning *) insert into log select id + 100, what from d;
select * from log order by id;
with u as (update log set what = what || '!' where id > 100 returning id, what) select * from u order by id;
with moved as (delete from log where id > 100 returning *), kept as (insert into log select id - 50, what from moved returning id)
  select (select count(*) from moved), (select array_agg(id order by id) from kept);
with a as (insert into log values (7, 'x') returning *), b as (insert into log values (8, 'y') returning *)
  select * from a union all select * from b order by 1;
with x as (select 1 as n) insert into log select n, 'from with' from x returning *;
with x as (select 51 as n) update log set what = 'upd' from x where id = n returning id, what;
with x as (select 51 as n) delete from log using x where id = n returning id, what;
with u as (update log set what = 'new' where id = 3 returning *) select l.what, u.what from log l join u using (id);
with recursive n(i) as (select 20 union all select i + 1 from n where i < 23) insert into log select i, 'r' from n;
select count(*) from log where what = 'r';
with d as (delete from log where what = 'r' returning id) delete from log where id in (select id from d);
select count(*) from log where what = 'r';
select * from (with i as (insert into log values (9, 'z') returning *) select * from i) s;
with i as (insert into log values (null, 'z') returning *) select id is null, what from i;
explain (costs off) with x as materialized (select 1 as a) select * from x;
drop table t, log;
