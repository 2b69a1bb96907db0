-- Window functions: all of PostgreSQL's, all frames.
create table emp (dep text, name text, pay int, since date, score numeric, f float8);
insert into emp values
  ('a', 'ann', 100, '2020-01-01', 1.5, 0.5), ('a', 'bob', 200, '2020-02-01', 2.5, 1.5),
  ('a', 'cid', 200, '2020-02-15', null, 2.5), ('a', 'dan', 300, '2020-06-01', 4.0, 3.5),
  ('b', 'eve', 150, '2021-01-01', 5.25, 4.5), ('b', 'fay', null, '2021-03-01', 6.0, null),
  ('b', 'gus', 50, '2021-03-15', 7.5, 6.5), ('c', 'hal', 500, '2022-01-01', 8.0, 7.5);
select name, row_number() over (order by name) from emp order by name;
select dep, name, row_number() over (partition by dep order by pay desc, name) from emp order by dep, name;
select dep, pay, rank() over w, dense_rank() over w, percent_rank() over w, cume_dist() over w
  from emp window w as (partition by dep order by pay) order by dep, pay, name;
select name, ntile(3) over (order by name) from emp order by name;
select name, ntile(20) over (order by name), ntile(null) over (order by name) from emp order by name;
select ntile(0) over (order by name) from emp;
select name, lag(name) over (order by name), lead(name) over (order by name) from emp order by name;
select name, lag(pay, 2) over (order by name), lag(pay, 2, -1) over (order by name), lead(pay, 0) over (order by name),
  lag(pay, -1) over (order by name), lag(pay, null) over (order by name) from emp order by name;
select name, lag(pay, 1, 0.5) over (order by name) from emp order by name;
select name, first_value(name) over w, last_value(name) over w, nth_value(name, 2) over w
  from emp window w as (partition by dep order by name) order by name;
select nth_value(name, 0) over (order by name) from emp;
-- aggregates
select name, sum(pay) over (order by name), count(*) over (order by name), avg(pay) over (order by name),
  min(pay) over (order by name), max(name) over (order by name) from emp order by name;
select dep, name, sum(pay) over (partition by dep), count(pay) over (partition by dep) from emp order by dep, name;
select sum(pay) over () from emp limit 1;
select name, sum(pay) over (order by dep) from emp order by dep, name;
select name, sum(score) over (order by name), avg(score) over (order by name rows 2 preceding) from emp order by name;
select name, sum(f) over (order by name rows between 1 preceding and 1 following) from emp order by name;
select name, string_agg(name, ',') over (partition by dep order by name) from emp order by name;
select name, array_agg(pay) over (order by name rows 2 preceding) from emp order by name;
select name, count(*) filter (where pay > 100) over (order by name) from emp order by name;
-- rows
select name, sum(pay) over (order by name rows unbounded preceding) from emp order by name;
select name, sum(pay) over (order by name rows between 1 preceding and current row) from emp order by name;
select name, sum(pay) over (order by name rows between 2 preceding and 1 preceding) from emp order by name;
select name, sum(pay) over (order by name rows between current row and unbounded following) from emp order by name;
select name, sum(pay) over (order by name rows between 1 following and 3 following) from emp order by name;
select name, sum(pay) over (order by name rows between 3 following and 1 following) from emp order by name;
select name, count(*) over (order by name rows between 1 preceding and 1 following exclude current row) from emp order by name;
select pay, array_agg(pay) over (order by pay rows between 2 preceding and 2 following exclude ties) from emp where pay <> 200 order by pay;
select pay, array_agg(pay) over (order by pay rows between 2 preceding and 2 following exclude group) from emp where pay <> 200 order by pay;
select pay, count(*) over (order by pay range unbounded preceding exclude ties), count(*) over (order by pay range unbounded preceding exclude group) from emp order by pay, name;
select name, first_value(name) over (order by name rows between 1 preceding and 1 following exclude current row),
  last_value(name) over (order by name rows between 1 preceding and 1 following exclude current row),
  nth_value(name, 2) over (order by name rows between 1 preceding and 1 following exclude current row) from emp order by name;
select name, min(pay) over (order by name rows between 1 preceding and 1 following) from emp order by name;
-- groups
select name, pay, count(*) over (order by pay groups between 1 preceding and current row) from emp order by pay, name;
select name, pay, sum(pay) over (order by pay groups between 1 following and 2 following) from emp order by pay, name;
select name, pay, sum(pay) over (order by pay groups between 1 preceding and 1 following exclude group) from emp order by pay, name;
select name, pay, first_value(name) over (order by pay, name groups 1 preceding) from emp order by pay, name;
-- range
select name, pay, sum(pay) over (order by pay) from emp order by pay, name;
select name, pay, sum(pay) over (order by pay range between 50 preceding and 50 following) from emp order by pay, name;
select name, pay, sum(pay) over (order by pay desc range between 50 preceding and 100 following) from emp order by pay, name;
select name, pay, sum(pay) over (order by pay desc nulls last range between 50 preceding and current row) from emp order by pay, name;
select name, pay, count(*) over (order by pay nulls first range between current row and 100 following) from emp order by pay, name;
select name, since, count(*) over (order by since range between '1 month' preceding and '1 month' following) from emp order by since;
select name, since, sum(pay) over (order by since range between interval '20 days' preceding and current row) from emp order by since;
select name, since, count(*) over (order by since::timestamp range '60 days' preceding) from emp order by since;
select name, since, count(*) over (order by since::timestamptz range between '10 days' following and '1 year' following) from emp order by since;
select name, score, sum(score) over (order by score range between 1.5 preceding and 0.5 following) from emp order by score;
select name, f, sum(f) over (order by f range between 1 preceding and 1 following) from emp order by f;
select name, pay, sum(pay) over (order by pay range between unbounded preceding and 1 preceding) from emp order by pay, name;
select name, pay, sum(pay) over (order by pay::int8 range between 9223372036854775807 preceding and 9223372036854775807 following) from emp order by pay, name;
select name, pay, count(*) over (order by pay::int2 range between 10 preceding and 10 following exclude ties) from emp order by pay, name;
select i, count(*) over (order by i range between '1 hour' preceding and '30 minutes' following)
  from (values (interval '1 hour'), ('2 hours'), ('2 hours 30 minutes'), ('1 day')) v(i);
-- named windows, inheriting
select name, sum(pay) over w, count(*) over (w rows 1 preceding) from emp window w as (partition by dep order by name) order by name;
select name, sum(pay) over (w order by name), avg(pay) over w from emp window w as (partition by dep) order by name;
select name, sum(pay) over b from emp window a as (partition by dep), b as (a order by name) order by name;
select sum(pay) over (w partition by name) from emp window w as (partition by dep);
select sum(pay) over (w order by name) from emp window w as (order by dep);
select sum(pay) over (w) from emp window w as (order by name rows 1 preceding);
select sum(pay) over (w order by dep) from emp window w as (rows 1 preceding);
select sum(pay) over nosuch from emp;
select sum(pay) over w from emp window w as (order by name), w as (order by dep);
select sum(pay) over (a) from emp window b as (a), a as (order by name);
-- with the rest of a query
select dep, sum(pay), rank() over (order by sum(pay) desc nulls last) from emp group by dep order by dep;
select dep, sum(sum(pay)) over (order by dep), count(*) over () from emp group by dep having count(*) > 1 order by dep;
select distinct dep, count(*) over (partition by dep) from emp order by dep;
select distinct on (dep) dep, name, rank() over (partition by dep order by pay desc nulls last, name) r from emp order by dep, r;
select * from (select name, dep, row_number() over (partition by dep order by name) n from emp) s where n = 1 order by name;
select name, row_number() over (order by pay desc nulls last, name) from emp order by 2 limit 3;
select name from emp order by row_number() over (order by name desc) limit 2;
select name, sum(pay) over (partition by dep order by name) + 1 as x, rank() over (order by dep) from emp order by name;
select name, case when row_number() over (order by name) % 2 = 0 then 'even' else 'odd' end from emp order by name;
select count(*) from (select row_number() over () from emp) s;
select pay, sum(pay) over (partition by pay % 100 order by pay) from emp where pay is not null order by 1, 2;
select e.name, sum(e.pay) over (partition by e.dep order by e.name), d.x
  from emp e join (values ('a', 1), ('b', 2)) d(dep, x) using (dep) order by e.name;
select name, (select count(*) over () from emp e2 where e2.dep = e.dep limit 1) from emp e order by name;
select row_number() over (), lag(1) over () from generate_series(1, 3);
select x, lag(x) over (order by x), sum(x) over (order by x rows 1 preceding) from unnest(array[3, 1, 2]) x order by x;
select name, sum(pay) over (order by name) from emp union all select 'total', sum(pay) from emp order by 1;
-- errors
select name from emp where row_number() over () = 1;
select sum(pay) over () from emp group by row_number() over ();
select rank() over (order by rank() over ()) from emp;
select sum(sum(pay) over ()) from emp;
select row_number() from emp;
select rank() from emp;
select lower(name) over () from emp;
select sum(distinct pay) over () from emp;
select string_agg(name, ',' order by name) over () from emp;
select row_number() filter (where true) over () from emp;
select sum(pay) over (order by name rows -1 preceding) from emp;
select sum(pay) over (order by name rows null preceding) from emp;
select sum(pay) over (order by pay range between -1 preceding and current row) from emp;
select sum(pay) over (order by name range 1 preceding) from emp;
select sum(pay) over (order by pay, name range 1 preceding) from emp;
select sum(pay) over (groups 1 preceding) from emp;
select sum(pay) over (order by since range 1 preceding) from emp;
select sum(pay) over (rows pay preceding) from emp;
select sum(pay) over (rows 'x' preceding) from emp;
select sum(pay) over (order by nosuch) from emp;
select name from emp for update;
select count(*) over () from emp for update;
update emp set pay = row_number() over ();
select percentile_cont(0.5) within group (order by pay) over () from emp;
drop table emp;
