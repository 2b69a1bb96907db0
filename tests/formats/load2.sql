create table there (id serial primary key, what text);
insert into there (what) select repeat('x', i) from generate_series(1, 200) i;
insert into there (what) select string_agg(md5(i::text), '') from generate_series(1, 200) i;
create index on there using btree (length(what));
