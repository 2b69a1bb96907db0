-- client_min_messages counts from where a body or a function's SET clause sets it.
create function f1() returns void language plpgsql set client_min_messages to warning as $$ begin drop table if exists nope; raise notice 'n'; raise warning 'w'; end $$;
select f1();
create function f2() returns void language plpgsql as $$ begin set local client_min_messages to warning; raise notice 'n'; raise warning 'w'; end $$;
begin;
select f2();
do $$ begin raise notice 'still not heard'; end $$;
commit;
do $$ begin raise notice 'heard again'; end $$;
create function f3() returns void language plpgsql as $$ begin perform set_config('client_min_messages', 'error', true); raise warning 'w'; raise info 'i'; end $$;
begin;
select f3();
commit;
create function f4() returns void language sql set client_min_messages to warning as $$ drop table if exists nope $$;
select f4();
create function f5() returns void language plpgsql set client_min_messages to debug1 as $$ begin raise debug 'd'; perform f1(); raise notice 'n'; end $$;
select f5();
do $$ begin raise debug 'd'; set client_min_messages to debug1; raise debug 'e'; reset client_min_messages; raise debug 'f'; end $$;
do $$ begin begin set local client_min_messages to error; raise exception 'x'; exception when others then raise notice 'undone'; end; end $$;
alter function f2() set client_min_messages to error;
select f2();
-- A name's cast to a list of schemas.
create schema "a""b";
create function "a""b".f() returns text language sql set search_path = "a""b", pg_temp as $$ select current_schemas(true)::text $$;
select "a""b".f();
select pg_get_functiondef('"a""b".f()'::regprocedure);
do $$ begin set local search_path = "a""b"; raise notice '%', current_schema; end $$;
-- What ALTER COLUMN TYPE refuses, and why.
create table po (i int);
create policy p on po using (i > 3);
alter table po alter i type text;
create table tr (i int);
create function tf() returns trigger language plpgsql as 'begin return new; end';
create trigger t1 before update on tr for each row when (old.i > 3) execute function tf();
alter table tr alter i type text;
create table ch (i int check (i < 10), d text default 'x');
alter table ch alter i type varchar;
alter table ch alter d type int using 1;
alter table ch alter d type int;
