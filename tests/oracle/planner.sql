-- Ways of reading and joining: each must give the same rows, and EXPLAIN says which way it is.
create table item (id int primary key, kind int, price int, name text);
insert into item select n, n % 50, (n * 7919) % 1000, 'item ' || n % 777 from generate_series(1, 10000) n;
create index item_kind on item (kind);
create index item_price on item (price desc, id);
create table sale (no int primary key, item int, qty int);
insert into sale select n, (n * 31) % 12000, n % 9 from generate_series(1, 3000) n;
create index sale_item on sale (item);
vacuum analyze item;
vacuum analyze sale;

-- Index-only scans
explain (costs off) select id from item where id between 5 and 9;
explain (analyze, costs off, timing off, summary off) select id from item where id between 5 and 9 order by id desc;
select id from item where id between 5 and 9 order by id desc;
explain (analyze, costs off, timing off, summary off, format json) select kind from item where kind = 7 and kind % 2 = 1;
explain (analyze, costs off, timing off, summary off) select id, price from item where price = 5 and id % 3 = 0;
select id, price from item where price = 5 and id % 3 = 0 order by id;
set enable_indexonlyscan = off;
explain (costs off) select id from item where id between 5 and 9;
reset enable_indexonlyscan;
select count(*), min(id), max(id) from item where id > 9990;

-- Merge joins
set enable_hashjoin = off;
set enable_nestloop = off;
select count(*), sum(qty), sum(price) from item join sale on item.id = sale.item;
select count(*), count(no), sum(qty) from item left join sale on item.id = sale.item and qty > 4;
explain (costs off) select * from item full join sale on item.id = sale.item;
select count(*), count(id), count(no) from item full join sale on item.id = sale.item;
select count(*), count(id), count(no) from item right join sale on item.id = sale.item;
select count(*) from item where exists (select from sale where sale.item = item.id and qty < 3);
explain (costs off) select id from item where not exists (select from sale where sale.item = item.id);
select count(*), sum(id) from item where not exists (select from sale where sale.item = item.id);
select i.id, s.no from item i join sale s on i.id = s.item and i.kind = s.qty order by 1, 2 limit 5;
select a.no, b.no from sale a full join sale b on a.no = b.no - 2999 order by 1, 2 limit 3;
reset enable_hashjoin;
reset enable_nestloop;
select count(*), count(id), count(no) from item full join sale on item.id = sale.item;

-- Bitmaps
explain (costs off) select * from item where kind = 5;
set enable_seqscan = off;
set enable_indexscan = off;
explain (costs off) select * from item where kind = 5 or id < 30;
explain (costs off) select * from item where (kind = 5 or id < 30) and name like 'item 1%';
explain (costs off, format json) select * from item where kind = 5 or id < 30;
select count(*), sum(id) from item where kind = 5 or id < 30;
select count(*), sum(id) from item where kind = 5 and price > 900;
select count(*), sum(id) from item where kind in (1, 3, 5) and (price < 100 or price > 950);
reset enable_seqscan;
reset enable_indexscan;
select count(*), sum(id) from item where kind = 5 or id < 30;
set enable_bitmapscan = off;
explain (costs off) select * from item where kind = 5 and id > 9990;
reset enable_bitmapscan;

-- Incremental sorts
explain (costs off) select * from item order by kind, name limit 10;
select kind, name, id from item order by kind, name, id limit 5;
select kind, name, id from item order by kind desc, name, id limit 5;
set enable_incremental_sort = off;
explain (costs off) select * from item order by kind, name limit 10;
reset enable_incremental_sort;

-- Orders from indexes
explain (costs off) select * from item order by id desc limit 3;
explain (costs off) select * from item order by price desc, id limit 3;
explain (costs off) select * from item order by price, id desc limit 3;
explain (costs off) select id from item where id in (9, 3, 7) order by id;
select id from item where id in (9, 3, 7, 3, null) order by id desc;

-- Groups of sorted rows
set enable_hashagg = off;
explain (costs off) select kind, count(*) from item group by kind;
explain (costs off) select name, count(*) from item group by name;
select kind, count(*), sum(price) from item group by kind order by kind limit 3;
select count(*) from (select distinct name from item) x;
reset enable_hashagg;
explain (costs off) select kind, count(*) from item group by kind order by kind limit 3;
select name, count(*), count(distinct kind) from item group by name order by count(*) desc, name limit 3;

-- Indexes on columns of domains, on expressions, on a part of the rows
create domain code as int check (value > 0);
create domain label as varchar(20);
create table coded (c code, l label, t text, n int, open boolean);
insert into coded select n, 'l' || n, 'T' || n, n % 100, n % 20 = 0 from generate_series(1, 5000) n;
create index coded_c on coded (c);
create index coded_l on coded (l);
create index coded_lower on coded (lower(t));
create index coded_open on coded (c) where open;
create index coded_large on coded (n) where n > 90;
vacuum analyze coded;
set enable_bitmapscan = off;
explain (costs off) select c from coded where c > 4990 order by c;
select c, l, t from coded where c between 7 and 9 order by c;
select c from coded where l = 'l77';
set enable_seqscan = off;
explain (costs off) select * from coded where lower(t) >= 't4990' and lower(t) < 't4995';
select t from coded where lower(t) >= 't4990' and lower(t) < 't4995' order by 1;
select t from coded where lower(t) = 't12';
explain (costs off) select * from coded where n > 97;
explain (costs off) select * from coded where n = 95;
select count(*), sum(c) from coded where n > 97;
select count(*), sum(c) from coded where n = 95;
select count(*), sum(c) from coded where n > 90;
select count(*), sum(c) from coded where n > 80;
select count(*), sum(c) from coded where open and c < 100;
reset enable_seqscan;
reset enable_bitmapscan;
drop table coded, item, sale;
drop domain code;
drop domain label;

-- Names of tables
create table named (id int primary key, up int, "Text" text);
insert into named select n, n / 2, 'n' || n from generate_series(1, 2000) n;
analyze named;
explain (costs off) select * from named n where n.id = 7 and n."Text" = 'n7';
explain (costs off) select a.id from named a join named b on b.id = a.up where a.id = 7;
explain (costs off) select a.id from named a, named b where a.id = 3 and b.id = 4 and a.up < b.up;
explain (analyze, costs off, timing off, summary off) select count(*) from named n having count(*) < 3;
drop table named;
