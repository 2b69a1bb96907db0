-- Hash joins and hashed aggregates that outgrow work_mem.
set work_mem = '64kB';
create table big as select i as id, i % 5000 as g, 'text ' || i as t from generate_series(1, 30000) i;
create table other as select i as id, i * 2 as v from generate_series(1, 20000) i;
select count(*), sum(c), min(c), max(c) from (select g, count(*) c, sum(id) s from big group by g) q;
select count(*), sum(s) from (select t, sum(id) s from big group by t) q;
select count(*), sum(v) from big join other using (id);
select count(*), sum(v) from big left join other using (id);
select count(*), sum(v), count(big.t) from big right join other on big.id = other.v;
select count(*), sum(v), count(big.t), count(other.id) from big full join other on big.id = other.v;
select count(*) from big where id not in (select v from other where v < 100);
select count(*) from big b where exists (select 1 from other o where o.v = b.id and o.id > 5);
select count(*) from big b where not exists (select 1 from other o where o.v = b.id);
select count(*) from big a join big b on a.g = b.g and a.id < b.id;
reset work_mem;
select count(*) from big a join big b on a.g = b.g and a.id < b.id;
drop table big, other;
