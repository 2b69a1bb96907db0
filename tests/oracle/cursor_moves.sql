-- Every move of a cursor, from every place, in every kind: what comes, and where the cursor then is.
create table moves (m text);
insert into moves select unnest(array['next', 'prior', 'first', 'last', 'absolute 0', 'absolute 1', 'absolute 2',
    'absolute 3', 'absolute 4', 'absolute 9', 'absolute -1', 'absolute -9', 'relative 0', 'relative 1', 'relative 2',
    'relative 9', 'relative -1', 'relative -9', '0', '1', '2', '9', '-1', '-2', 'all', 'forward 0', 'forward -1',
    'forward all', 'backward 0', 'backward 1', 'backward -1', 'backward all']);
create table kinds (scroll text, hold text, held boolean);
insert into kinds select s, h.* from unnest(array['', 'no scroll', 'scroll']) s,
    (values ('', false), ('with hold', true)) h;
\a
\t
select c from kinds, unnest(array['0', '2', 'all']) start, unnest(array['fetch', 'move']) verb, moves,
    lateral (values (1, 'begin'),
        (2, format('declare c %s cursor %s for select g from generate_series(1, 3) g', scroll, hold)),
        (3, format('move %s in c', start)),
        (4, case when held then 'commit' else 'select 1' end),
        (5, format('%s %s in c', verb, m)),
        (6, 'fetch 1 in c'),
        (7, case when held then 'close c' else 'rollback' end)) s(n, c)
    order by scroll, hold, held, start, verb, m, n
\gexec
drop table moves, kinds;
