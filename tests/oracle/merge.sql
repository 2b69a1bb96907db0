-- MERGE as of PostgreSQL 15.
create table stock (id int primary key, qty int check (qty >= 0), note text default 'new');
create table delta (id int, d int);
insert into stock values (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'c');
insert into delta values (1, 5), (2, -20), (4, 40), (5, 0);
merge into stock s using delta d on s.id = d.id
  when matched and s.qty + d.d = 0 then delete
  when matched then update set qty = s.qty + d.d
  when not matched and d.d > 0 then insert (id, qty) values (d.id, d.d)
  when not matched then do nothing;
select * from stock order by id;
merge into stock using (values (1, 'x'), (9, 'y')) v(id, n) on stock.id = v.id
  when matched then update set note = v.n, qty = default
  when not matched then insert values (v.id, 1, v.n);
select * from stock order by id;
merge into stock s using delta d on s.id = d.id when matched then do nothing;
merge into stock s using delta d on s.id = d.id when not matched then insert (id) values (d.id);
merge into stock s using delta d on s.id = d.id and d.id = 4 when matched then update set (qty, note) = (d.d * 2, 'pair');
merge into stock s using delta d on s.id = d.id when matched then update set (qty, note) = (select 7, 'sub' || d.id);
select * from stock order by id;
merge into stock s using (select 1 as id union all select 1) d on s.id = d.id when matched then update set qty = 1;
merge into stock s using (select 100 as id union all select 100) d on s.id = d.id when not matched then insert values (d.id, 1, 'dup');
merge into stock s using delta d on s.id = d.id when matched then update set qty = -1;
with src as (select 50 as id, 5 as q) merge into stock s using src on s.id = src.id when not matched then insert values (src.id, src.q);
merge into stock s using stock t on s.id = t.id + 1000 when not matched then insert values (t.id + 1000, t.qty, default);
select count(*), sum(qty) from stock;
merge into stock s using delta d on true when matched and s.id > 1000 and d.id = 1 then delete;
select count(*) from stock;
merge into stock s using delta d on s.id = d.id when matched then update set qty = 1 when matched then delete;
merge into stock s using delta d on s.id = d.id when not matched then insert (id, qty) values (s.id, 1);
merge into stock s using delta d on s.id = d.id when not matched then insert (id, qty) values (1);
merge into stock s using delta d on s.id = d.id when not matched then insert (id) values (1, 2);
merge into stock s using delta s on s.id = s.id when matched then delete;
merge into stock s using nosuch d on s.id = d.id when matched then delete;
merge into stock s using delta d on s.id = d.id when matched then update set nosuch = 1;
merge into stock s using delta d on s.id = d.id when matched and sum(d.d) > 1 then delete;
merge into stock s using delta d on s.id = d.id when not matched then insert default values;
prepare m(int, int) as merge into stock s using (select $1 as id, $2 as q) d on s.id = d.id
  when matched then update set qty = d.q when not matched then insert values (d.id, d.q);
execute m(60, 6);
execute m(60, 66);
select * from stock where id = 60;
drop table stock, delta;
