-- CONTEXT of errors: PL/pgSQL's declarations, the lines of COPY.
create schema error_context;
set search_path = error_context;
create domain pos as int check (value > 0);
create domain nn as int not null;
create type comp as (a int, b text);
create or replace function f1() returns void language plpgsql as $$ declare a int; b int := 1/0; begin null; end $$;
select f1();
create or replace function f2() returns void language plpgsql as $$ declare a pos := -1; begin null; end $$;
select f2();
create or replace function f3() returns void language plpgsql as $$ declare a int not null := null; begin null; end $$;
select f3();
create or replace function f4() returns void language plpgsql as $$ declare a nn; begin null; end $$;
select f4();
create or replace function f5() returns void language plpgsql as $$ begin declare
 a int; 
 b int := 'x'::text::int; begin null; end; end $$;
select f5();
create or replace function f6() returns void language plpgsql as $$ declare a comp := 5; begin null; end $$;
select f6();
create or replace function f7() returns void language plpgsql as $$ declare a int := (select 1/0); begin null; end $$;
select f7();
create or replace function f8() returns void language plpgsql as $$ declare a int; b int := f9(); begin null; end $$;
create or replace function f9() returns int language plpgsql as $$ begin return 1/0; end $$;
select f8();
create or replace function f11() returns void language plpgsql as $$ begin
 declare a int := 0; begin null; exception when others then raise notice 'got'; end; 
 raise exception 'x'; end $$;
select f11();
create or replace function f12() returns int language plpgsql as $$ begin end $$;
select f12();
create or replace function f13() returns void language plpgsql as $$ declare c cursor (x int) for select x; begin open c(1/0); end $$;
select f13();
create or replace function f14(x pos) returns int language plpgsql as $$ begin return x; end $$;
select f14(-1);
create or replace function f15() returns pos language plpgsql as $$ begin return -1; end $$;
select f15();
create or replace function f17() returns void language plpgsql as $$ declare a nn; begin begin declare b nn; begin null; end; end; end $$;
select f17();
create or replace function f18() returns void language plpgsql as $$ declare a constant int := 1/0; begin null; end $$;
select f18();
create or replace function f19() returns void language plpgsql as $$ declare r record := row(1/0); begin null; end $$;
select f19();
do $$ declare x int := 1/0; begin null; end $$;
do $$ declare x pos := 0; begin null; end $$;
do $$ <<l>> declare x int[] := array[1,1/0]; begin null; end $$;
do $$ begin for i in 1..1/0 loop null; end loop; end $$;
do $$ begin for i in 1..2 by 0 loop null; end loop; end $$;
do $$ declare v varchar(2) := 'abc'; begin null; end $$;
do $$ declare v numeric(2,1) := 100; begin null; end $$;
create table ct (a int check (a>0), b pos, c int not null, d text);
copy ct from stdin with (delimiter ',');
1,2,3,x
-1,2,3,yy
\.
copy ct from stdin with (delimiter ',');
1,2,3,x
1,-2,3,yy
\.
copy ct from stdin with (delimiter ',');
1,2,\N,x
\.
copy ct from stdin with (delimiter ',');
a,2,1,x
\.
copy ct from stdin with (delimiter ',');
1,2,1
\.
copy ct(a,c,d) from stdin with (format csv);
5,6,"a
b"
-5,6,"a
b"
\.
copy ct(d,a,c) from stdin with (format csv);
aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,-1,2
\.
create unique index on ct(c);
copy ct(c) from stdin;
1
2
1
3
\.
create function trg() returns trigger language plpgsql as $$ begin raise exception 'no %', new.c; end $$;
create trigger trg before insert on ct for each row execute function trg();
copy ct(c) from stdin;
11
12
\.
drop trigger trg on ct;
create trigger trg after insert on ct for each row execute function trg();
copy ct(c) from stdin;
11
12
\.
drop trigger trg on ct;
create table cg (a int, g int generated always as (10/a) stored);
copy cg(a) from stdin;
1
0
\.
create table cp (a int, b text) partition by range(a); create table cp1 partition of cp for values from (0) to (10);
copy cp from stdin;
1	x
2	y
20	z
\.
copy ct(c) from stdin where 10/c > 1;
11
0
\.
create table cf (a int primary key); create table cr (a int references cf);
copy cr from stdin;
1
2
\.
create table cex (a int4range, exclude using gist(a with &&));
copy cex from stdin;
[1,5)
[2,7)
\.
insert into ct(a,b,c) values(-1,1,1);
create type deep as (a pos, b text);
do $$ declare x deep := row(0, 'x'); begin null; end $$;
do $$ declare x deep; y int := 1; z deep := row(y - 1, null); begin null; end $$;
do $$ declare x pos not null default 1; begin x := 0; end $$;
do $$ declare a int[] := '{1,x}'; begin null; end $$;
do $$ declare a date := 'never'; begin null; end $$;
do $$ declare a int := 'x'; begin null; end $$;
do $$ declare a int; begin a := 'x'; end $$;
do $$ declare a int := 3000000000; begin null; end $$;
do $$ declare a alias for $1; begin null; end $$;
do $$ declare a int := (select n from (values (1), (2)) v (n)); begin null; end $$;
do $$ declare a int := 1, 2; begin null; end $$;
do $$ declare a int := nothing; begin null; end $$;
do $$ declare a int; begin a := 1, 2; end $$;
do $$ declare a int; begin if 1, 2 then null; end if; end $$;
do $$ declare a int; begin a := n from (values (1), (2)) v (n); end $$;
do $$ declare a int := n from (values (1), (2)) v (n); begin null; end $$;
create table cw (a int, b text);
copy cw from stdin where a / b::int > 0;
1	1
1	0
\.
copy cw (a) from stdin where b is null and 1 / a = 1;
1
0
\.
create function checks() returns trigger language plpgsql as $$ begin if new.a > 2 then raise exception 'too much'; end if; return new; end $$;
create trigger checks before insert on cw for each row execute function checks();
create unique index on cw (a);
copy cw from stdin;
1	x
3	y
\.
copy cw from stdin;
1	x
\.
drop trigger checks on cw;
copy cw from stdin;
0	x
2	y
0	z
2	w
\.
set client_min_messages = warning;
drop schema error_context cascade;
