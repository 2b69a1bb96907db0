//! Change streams: what slots tell of, beside PostgreSQL 15's `test_decoding`; over restarts and crashes; subscribers.

use std::time::Duration;

use crate::support::client::Client;
use crate::support::{Oracle, Server, TempDir};

/// Statements whose changes are compared.
const WORK: &str = "
create table plain (id int primary key, n numeric(10,2), t text, b bool, f float8, d date, bits bit(3), a int[], j jsonb);
insert into plain values (1, 1.50, 'it''s', true, 1.5, '2024-02-29', B'101', '{1,2}', '{\"a\": 1}');
insert into plain select n, n, 'row ' || n, n % 2 = 0 from generate_series(2, 5) n;
update plain set t = 'new' where id = 1;
update plain set id = 10 where id = 2;
delete from plain where id = 3;
create table whole (a int, \"Odd Name\" text);
alter table whole replica identity full;
insert into whole values (1, null), (2, 'two');
update whole set a = 3 where a = 1;
delete from whole where a = 3;
delete from whole;
create table bare (a int, b text);
insert into bare values (1, 'x');
update bare set b = 'y';
delete from bare;
create table keyed (a int not null, b text not null, c int);
create unique index keyed_b on keyed (b);
alter table keyed replica identity using index keyed_b;
insert into keyed values (1, 'k', 2);
update keyed set c = 3;
update keyed set b = 'l';
delete from keyed;
begin;
insert into bare values (2, 'kept');
savepoint s;
insert into bare values (3, 'gone');
rollback to s;
insert into bare values (4, 'kept');
savepoint t;
insert into bare values (5, 'kept in t');
release t;
commit;
begin;
insert into bare values (6, 'rolled back');
rollback;
begin;
alter table bare add column c int default 7;
insert into bare values (7, 'wide', 1);
alter table bare drop column b;
insert into bare values (8, 2);
commit;
insert into plain values (20) on conflict do nothing;
insert into plain values (20) on conflict (id) do update set t = 'upserted';
insert into plain values (20) on conflict do nothing;
truncate bare;
truncate bare, whole restart identity cascade;
create table parted (a int primary key, b text) partition by range (a);
create table parted_1 partition of parted for values from (0) to (10);
create table parted_2 partition of parted for values from (10) to (20);
insert into parted values (1, 'a'), (11, 'b');
update parted set a = 12 where a = 1;
create temporary table passing (a int);
insert into passing values (1);
create type mood as enum ('sad', 'ok');
create table typed (m mood, s varchar(5), u uuid);
insert into typed values ('ok', 'abc', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11');
create table big (id int primary key, v text);
insert into big values (1, repeat('0123456789', 10000));
create table made (a int, b int generated always as (a * 2) stored);
insert into made values (1);
create table parent (id int primary key);
create table child (id int primary key, p int references parent on delete cascade);
insert into parent values (1);
insert into child values (1, 1), (2, 1);
delete from parent;
select 'message' from pg_logical_emit_message(true, 'prefix', 'content');
merge into plain p using (values (4), (99)) v(id) on p.id = v.id
  when matched then update set t = 'merged' when not matched then insert (id) values (v.id);
copy plain (id, t) from stdin;
100	copied
101	also
\\.
";

fn lines(port: u16, options: &str) -> Vec<String> {
    let sql = format!(
        "select data from pg_logical_slot_get_changes('s', null, null, 'include-xids', '0', \
         'skip-empty-xacts', '1'{options})"
    );
    crate::support::psql(port, &["-At"], &sql).lines().map(str::to_owned).collect()
}

#[test]
fn test_decoding_says_what_postgresql_says() {
    let dir = TempDir::new("logical-text");
    let server = Server::start(dir.path(), &["wal_level=logical"]);
    let oracle = Oracle::start_with("C.UTF-8", &["wal_level=logical"]);
    let mut answers = Vec::new();
    for port in [oracle.port, server.port] {
        let made = "select slot_name from pg_create_logical_replication_slot('s', 'test_decoding')";
        assert_eq!(crate::support::psql(port, &["-At"], made).trim(), "s");
        crate::support::psql(port, &["-q"], WORK);
        answers.push(lines(port, ""));
    }
    for (n, (theirs, ours)) in answers[0].iter().zip(&answers[1]).enumerate() {
        assert_eq!(theirs, ours, "line {n}");
    }
    assert_eq!(answers[0].len(), answers[1].len());
    assert!(answers[0].len() > 80);
    assert!(lines(server.port, "").is_empty());
}

#[test]
fn slots_survive_restarts_and_crashes() {
    let dir = TempDir::new("logical-crash");
    let server = Server::start(dir.path(), &["wal_level=logical"]);
    server.query("create table t (a int primary key)");
    server.query("select pg_create_logical_replication_slot('s', 'test_decoding')");
    server.query("insert into t values (1)");
    let plain = server.query("select count(*) from pg_logical_slot_peek_changes('s', null, null)");
    assert_eq!(plain, "3", "the list of options may be empty");
    assert_eq!(lines(server.port, "").len(), 3);
    server.query("insert into t values (2)");
    server.query("checkpoint");
    let port = server.port;
    server.kill();
    let server = Server::start_on(dir.path(), port, &["wal_level=logical"]);
    let after = lines(server.port, "");
    assert_eq!(after, ["BEGIN", "table public.t: INSERT: a[integer]:2", "COMMIT"]);
    server.query("insert into t values (3)");
    for _ in 0..3 {
        server.query("checkpoint");
    }
    assert!(server.stop());
    let server = Server::start_on(dir.path(), port, &["wal_level=logical"]);
    let after = lines(server.port, "");
    assert_eq!(after, ["BEGIN", "table public.t: INSERT: a[integer]:3", "COMMIT"]);
    server.query("select pg_drop_replication_slot('s')");
    assert_eq!(server.query("select count(*) from pg_replication_slots").trim(), "0");
}

#[test]
fn a_slot_does_not_fill_the_disk() {
    let dir = TempDir::new("logical-keep");
    let settings = ["wal_level=logical", "max_slot_wal_keep_size=1MB"];
    let server = Server::start(dir.path(), &settings);
    server.query("create table t (a int, b text)");
    server.query("select pg_create_logical_replication_slot('s', 'test_decoding')");
    let status = "select wal_status from pg_replication_slots";
    assert_eq!(server.query(status).trim(), "reserved");
    let mut client = Client::connect(server.port).unwrap();
    for _ in 0..100 {
        client
            .query("insert into t select n, repeat('x', 1000) from generate_series(1, 2000) n")
            .unwrap();
        client.query("checkpoint").unwrap();
        if client.one(status) == "lost" {
            return;
        }
    }
    panic!("the slot still holds the log");
}

#[test]
fn a_transaction_that_is_open_at_the_beginning_is_left_out() {
    let dir = TempDir::new("logical-open");
    let server = Server::start(dir.path(), &["wal_level=logical"]);
    server.query("create table t (a int primary key)");
    let mut writer = Client::connect(server.port).unwrap();
    writer.query("begin").unwrap();
    writer.query("insert into t values (1)").unwrap();
    let port = server.port;
    let maker = std::thread::spawn(move || {
        let sql = "select pg_create_logical_replication_slot('s', 'test_decoding')";
        crate::support::psql(port, &["-At"], sql)
    });
    let mut watcher = Client::connect(server.port).unwrap();
    watcher.await_one("select count(*) from pg_replication_slots", "1");
    writer.query("insert into t values (2)").unwrap();
    writer.query("commit").unwrap();
    maker.join().unwrap();
    server.query("insert into t values (3)");
    let told = lines(server.port, "");
    assert_eq!(told, ["BEGIN", "table public.t: INSERT: a[integer]:3", "COMMIT"]);
}

#[test]
fn postgresql_subscribes() {
    let dir = TempDir::new("logical-subscriber");
    let server = Server::start(dir.path(), &["wal_level=logical"]);
    let oracle = Oracle::start_with("C.UTF-8", &["wal_level=logical"]);
    let tables = "create table t (a int primary key, b text, c timestamptz, d numeric);
        create table f (a int primary key, b text);";
    server.psql(&["-q"], tables);
    crate::support::psql(oracle.port, &["-q"], tables);
    server.query(
        "insert into t select n, 'row ' || n, now(), n / 7.0 from generate_series(1, 1000) n",
    );
    server.query("insert into f select n, 'f' || n from generate_series(1, 100) n");
    server.query("create publication p for table t, f where (a > 50)");
    let subscribe = format!(
        "create subscription s connection 'host=127.0.0.1 port={} user=postgres dbname=postgres' \
         publication p",
        server.port
    );
    crate::support::psql(oracle.port, &["-q"], &subscribe);
    let mut client = Client::connect(oracle.port).unwrap();
    client.give_up_after(Duration::from_secs(60)).unwrap();
    client.await_one("select count(*) from pg_subscription_rel where srsubstate <> 'r'", "0");
    assert_eq!(client.one("select count(*) from t"), "1000");
    assert_eq!(client.one("select count(*) from f"), "50");
    server.query("update t set b = 'changed', a = a + 10000 where a <= 10");
    server.query("delete from t where a between 500 and 599");
    server.query("update f set a = a + 500 where a <= 10");
    server.query("insert into t values (0, null)");
    client.await_one("select count(*) from t where a = 0", "1");
    for sql in [
        "select count(*), sum(a), sum(hashtext(b)::int8), sum(d) from t",
        "select count(*), sum(a) from f where a > 50",
    ] {
        let theirs = crate::support::psql(oracle.port, &["-At"], sql);
        assert_eq!(theirs, server.psql(&["-At"], sql), "{sql}");
    }
    server.query("truncate t");
    client.await_one("select count(*) from t", "0");
    crate::support::psql(oracle.port, &["-q"], "drop subscription s");
    // A session that has copied a table takes its slot with it when it ends.
    let mut publisher = Client::connect(server.port).unwrap();
    publisher.await_one("select count(*) from pg_replication_slots", "0");
}

/// Makes `subscriber` follow `publisher`, changes rows and compares.
fn follows(publisher: u16, subscriber: u16) {
    let tables = "create table t (a int primary key, b text, c timestamptz, d numeric, e int[]);
        create table nokey (a int, b text); alter table nokey replica identity full;
        create table parted (a int primary key, b text) partition by range (a);
        create table parted_1 partition of parted for values from (0) to (1000);
        create table parted_2 partition of parted for values from (1000) to (2000);";
    for port in [publisher, subscriber] {
        crate::support::psql(port, &["-q"], tables);
    }
    let filling = "insert into t select n, case when n % 3 = 0 then null else E'row\\t' || n end, now(), n / 7.0, array[n, null]
          from generate_series(1, 2000) n;
        insert into nokey select n % 5, 'x' from generate_series(1, 50) n;
        insert into parted select n, 'p' from generate_series(1, 1999) n;
        create publication p for all tables;";
    crate::support::psql(publisher, &["-q"], filling);
    let subscribe = format!(
        "create subscription s connection 'host=127.0.0.1 port={publisher} user=postgres dbname=postgres' \
         publication p"
    );
    crate::support::psql(subscriber, &["-q"], &subscribe);
    let mut client = Client::connect(subscriber).unwrap();
    client.give_up_after(Duration::from_secs(60)).unwrap();
    client.await_one("select count(*) from pg_subscription_rel where srsubstate <> 'r'", "0");
    let changing = "update t set b = 'changed', a = a + 10000 where a <= 10;
        delete from t where a between 500 and 599;
        update nokey set b = 'y' where a = 3;
        delete from nokey where a = 4;
        update parted set a = 1500 + a - 500 where a between 500 and 505 and false;
        update parted set b = 'q' where a % 7 = 0;
        begin; insert into t values (-1); rollback;
        begin; insert into t values (-2); savepoint s; insert into t values (-3); rollback to s; commit;
        insert into t values (0, null);";
    crate::support::psql(publisher, &["-q"], changing);
    client.await_one("select count(*) from t where a = 0", "1");
    for sql in [
        "select count(*), sum(a), sum(hashtext(b)::int8), sum(d), sum(cardinality(e)), max(c) from t",
        "select a, b, count(*) from nokey group by 1, 2 order by 1, 2",
        "select count(*), sum(a), sum(hashtext(b)::int8) from parted",
    ] {
        let wanted = crate::support::psql(publisher, &["-At"], sql);
        assert_eq!(crate::support::psql(subscriber, &["-At"], sql), wanted, "{sql}");
    }
    let more = "create table later (a int primary key); insert into later values (1), (2);";
    crate::support::psql(publisher, &["-q"], more);
    crate::support::psql(subscriber, &["-q"], "create table later (a int primary key)");
    crate::support::psql(subscriber, &["-q"], "alter subscription s refresh publication");
    client.await_one("select count(*) from later", "2");
    crate::support::psql(publisher, &["-q"], "truncate t");
    client.await_one("select count(*) from t", "0");
    crate::support::psql(subscriber, &["-q"], "drop subscription s");
    let left =
        crate::support::psql(publisher, &["-At"], "select count(*) from pg_replication_slots");
    assert_eq!(left.trim(), "0");
}

#[test]
fn a_server_subscribes_to_postgresql() {
    let dir = TempDir::new("logical-from");
    let server = Server::start(dir.path(), &[]);
    let oracle = Oracle::start_with("C.UTF-8", &["wal_level=logical"]);
    follows(oracle.port, server.port);
}

#[test]
fn a_server_subscribes_to_a_server() {
    let dir = TempDir::new("logical-between");
    let publisher = Server::start(dir.path(), &["wal_level=logical"]);
    let other = TempDir::new("logical-between-2");
    let subscriber = Server::start(other.path(), &[]);
    follows(publisher.port, subscriber.port);
}

#[test]
fn a_subscriber_that_is_killed_loses_nothing_and_doubles_nothing() {
    let dir = TempDir::new("logical-kill");
    let publisher = Server::start(dir.path(), &["wal_level=logical"]);
    let other = TempDir::new("logical-kill-2");
    let mut subscriber = Server::start(other.path(), &[]);
    publisher.query("create table t (a int, b int); ");
    subscriber.query("create table t (a int, b int)");
    publisher.query("create publication p for table t with (publish = 'insert')");
    subscriber.query(&format!(
        "create subscription s connection 'host=127.0.0.1 port={} user=postgres dbname=postgres' publication p",
        publisher.port
    ));
    let port = subscriber.port;
    let mut client = Client::connect(publisher.port).unwrap();
    for round in 0..5 {
        for n in 0..200 {
            client.query(&format!("insert into t values ({round}, {n})")).unwrap();
        }
        subscriber.kill();
        subscriber = Server::start_on(other.path(), port, &[]);
    }
    let mut watcher = Client::connect(subscriber.port).unwrap();
    watcher.give_up_after(Duration::from_secs(60)).unwrap();
    watcher.await_one("select count(*) from t", "1000");
    client.query("insert into t values (9, 9)").unwrap();
    watcher.await_one("select count(*) from t where a = 9", "1");
    let sums = "select count(*), count(distinct (a, b)) from t";
    assert_eq!(subscriber.query(sums).trim(), "1001|1001");
}

/// The tags of pgoutput's messages that a slot has, in order, from its present place on; nothing is taken.
fn tags(client: &mut Client, options: &str) -> String {
    let sql = format!(
        "select convert_from(string_agg(substr(data, 1, 1), ''), 'UTF8') from pg_logical_slot_peek_binary_changes('x', null, null, \
         'publication_names', 'p', {options})"
    );
    client.one(&sql)
}

#[test]
fn a_large_transaction_comes_in_parts_before_it_ends() {
    let dir = TempDir::new("logical-parts");
    let server =
        Server::start(dir.path(), &["wal_level=logical", "logical_decoding_work_mem=64kB"]);
    server.query("create table t (id int primary key, v text); create publication p for table t");
    server.query("select pg_create_logical_replication_slot('x', 'pgoutput')");
    let mut writer = Client::connect(server.port).unwrap();
    let mut looker = Client::connect(server.port).unwrap();
    let rows = "insert into t select n, repeat('x', 100) from generate_series(1, 2000) n";
    writer.query(&format!("begin; {rows}")).unwrap();
    let streaming = "'proto_version', '2', 'streaming', 'on'";
    let open = tags(&mut looker, streaming);
    let parts = open.matches('S').count();
    assert!(parts > 2 && open.starts_with("SRI") && open.ends_with("IE"), "{open}");
    assert_eq!(open.matches('R').count(), 1);
    assert_eq!(tags(&mut looker, "'proto_version', '1'"), "");
    // Changes that may still be rolled back alone wait for the end.
    let rest = "savepoint a; insert into t select n, 'gone' from generate_series(5001, 7000) n; rollback to a;
        insert into t values (3000, 'kept'); savepoint b; insert into t values (3001, 'kept'); commit";
    writer.query(rest).unwrap();
    let all = tags(&mut looker, streaming);
    assert!(all.starts_with(&open[..open.len() - 1]) && all.ends_with("Ec"), "{all}");
    assert_eq!(all.matches('I').count(), 2002);
    // One that comes to nothing says so.
    writer.query(&format!("begin; update t set v = v || 'y' where id <= 2000; rollback")).unwrap();
    let aborted = tags(&mut looker, streaming);
    assert!(aborted[all.len()..].starts_with('S') && aborted.ends_with("EA"), "{aborted}");
    let code = |client: &mut Client, options: &str| {
        let sql = format!(
            "select count(*) from pg_logical_slot_peek_binary_changes('x', null, null, 'publication_names', 'p', {options})"
        );
        client.query(&sql).unwrap().error.map(|error| error.0)
    };
    let old = code(&mut looker, "'proto_version', '1', 'streaming', 'on'");
    assert_eq!(old.as_deref(), Some("0A000"));
    let old = code(&mut looker, "'proto_version', '2', 'two_phase', 'on'");
    assert_eq!(old.as_deref(), Some("0A000"));
}

/// Large transactions, some of them with savepoints, some of them rolled back, arrive whole.
fn parts_arrive(publisher: u16, subscriber: u16) {
    for port in [publisher, subscriber] {
        crate::support::psql(port, &["-q"], "create table t (id int primary key, v text)");
    }
    crate::support::psql(publisher, &["-q"], "create publication p for table t");
    let subscribe = format!(
        "create subscription s connection 'host=127.0.0.1 port={publisher} user=postgres dbname=postgres' publication p
         with (streaming = on)"
    );
    let said = crate::support::psql(subscriber, &["-q"], &subscribe);
    assert!(!said.contains("ERROR"), "{said}");
    let mut client = Client::connect(subscriber).unwrap();
    client.await_one("select count(*) from pg_subscription_rel where srsubstate <> 'r'", "0");
    let work = "begin; insert into t select n, repeat('a', 100) from generate_series(1, 3000) n;
        savepoint a; insert into t select n, repeat('b', 100) from generate_series(3001, 6000) n; rollback to a;
        insert into t select n, repeat('c', 100) from generate_series(6001, 7000) n;
        savepoint b; update t set v = 'd' where id % 10 = 0; release b; delete from t where id % 10 = 1; commit;
        begin; insert into t select n, repeat('e', 100) from generate_series(10001, 14000) n; rollback;
        begin; update t set v = v || 'f'; insert into t values (0, 'last'); commit;";
    crate::support::psql(publisher, &["-q"], work);
    client.await_one("select count(*) from t where id = 0", "1");
    let sums = "select count(*), sum(id), md5(string_agg(id || v, ',' order by id)) from t";
    assert_eq!(
        crate::support::psql(subscriber, &["-At"], sums),
        crate::support::psql(publisher, &["-At"], sums)
    );
    crate::support::psql(subscriber, &["-q"], "drop subscription s");
}

#[test]
fn transactions_in_parts_go_to_postgresql_and_come_from_it() {
    let dir = TempDir::new("logical-parts-both");
    let settings = ["wal_level=logical", "logical_decoding_work_mem=64kB"];
    let server = Server::start(&dir.path().join("one"), &settings);
    let oracle = Oracle::start_with("C.UTF-8", &settings);
    parts_arrive(server.port, oracle.port);
    let second = Server::start(&dir.path().join("two"), &settings);
    for port in [oracle.port, server.port] {
        crate::support::psql(port, &["-q"], "drop table t; drop publication if exists p");
    }
    parts_arrive(oracle.port, second.port);
}

#[test]
fn prepared_transactions_are_told_of_when_they_are_prepared() {
    let dir = TempDir::new("logical-prepared");
    let settings = ["wal_level=logical", "max_prepared_transactions=5"];
    let server = Server::start(&dir.path().join("data"), &settings);
    let oracle = Oracle::start_with("C.UTF-8", &settings);
    let work = "create table t (id int primary key, v text);
        select slot_name from pg_create_logical_replication_slot('s', 'test_decoding', false, true);
        begin; insert into t values (1, 'one'); savepoint a; insert into t values (2, 'gone'); rollback to a; prepare transaction 'it''s';
        insert into t values (3, 'between');";
    let mut told = Vec::new();
    for port in [oracle.port, server.port] {
        crate::support::psql(port, &["-q"], work);
        let mut all = vec![lines(port, "")];
        crate::support::psql(port, &["-q"], "commit prepared 'it''s'");
        all.push(lines(port, ""));
        crate::support::psql(port, &["-q"], "begin; delete from t; prepare transaction 'b'");
        all.push(lines(port, ""));
        crate::support::psql(port, &["-q"], "rollback prepared 'b'");
        all.push(lines(port, ""));
        told.push(all);
    }
    assert_eq!(told[0], told[1]);
    assert!(told[1].iter().all(|lines| !lines.is_empty()), "{:?}", told[1]);

    // PostgreSQL prepares what is prepared here.
    crate::support::psql(oracle.port, &["-q"], "truncate t");
    server.query("truncate t; create publication p for table t");
    let subscribe = format!(
        "create subscription s connection 'host=127.0.0.1 port={} user=postgres dbname=postgres' publication p
         with (two_phase = on, slot_name = 'two')",
        server.port
    );
    let said = crate::support::psql(oracle.port, &["-q"], &subscribe);
    assert!(!said.contains("ERROR"), "{said}");
    let mut client = Client::connect(oracle.port).unwrap();
    client.await_one("select subtwophasestate from pg_subscription", "e");
    server.query("begin; insert into t values (4, 'four'); prepare transaction 'c'");
    client.await_one("select count(*) from pg_prepared_xacts", "1");
    server.query("commit prepared 'c'");
    client.await_one("select v from t where id = 4", "four");
    client.await_one("select count(*) from pg_prepared_xacts", "0");
    server.query("begin; insert into t values (5, 'five'); prepare transaction 'd'");
    client.await_one("select count(*) from pg_prepared_xacts", "1");
    server.query("rollback prepared 'd'; insert into t values (6, 'six')");
    client.await_one("select v from t where id = 6", "six");
    client.await_one("select count(*) from pg_prepared_xacts", "0");
    assert_eq!(client.one("select count(*) from t where id = 5"), "0");
    crate::support::psql(oracle.port, &["-q"], "drop subscription s");
}

#[test]
fn two_servers_that_follow_each_other_send_nothing_back() {
    let dir = TempDir::new("logical-both-ways");
    let one = Server::start(&dir.path().join("one"), &["wal_level=logical"]);
    let two = Server::start(&dir.path().join("two"), &["wal_level=logical"]);
    for server in [&one, &two] {
        server
            .query("create table t (id int primary key, v text); create publication p for table t");
    }
    for (here, there) in [(&one, &two), (&two, &one)] {
        here.query(&format!(
            "create subscription s connection 'host=127.0.0.1 port={} user=postgres dbname=postgres' publication p
             with (origin = none, copy_data = false)",
            there.port
        ));
    }
    let mut clients: Vec<Client> =
        [&one, &two].map(|server| Client::connect(server.port).unwrap()).into();
    for (here, there) in [(0, 1), (1, 0)] {
        for n in 0..50 {
            let id = here * 1000 + n;
            clients[here].query(&format!("insert into t values ({id}, 'from {here}')")).unwrap();
        }
        let last = format!("select count(*) from t where id = {}", here * 1000 + 49);
        clients[there].await_one(&last, "1");
    }
    // Each has sent something after what it was sent.
    for (here, there) in [(0, 1), (1, 0)] {
        clients[here]
            .query(&format!("update t set v = 'changed by {here}' where id = {}", here * 1000))
            .unwrap();
        clients[there].await_one(
            &format!("select v from t where id = {}", here * 1000),
            &format!("changed by {here}"),
        );
    }
    for client in &mut clients {
        assert_eq!(client.one("select count(*) from t"), "100");
        assert_eq!(client.one("select apply_error_count from pg_stat_subscription_stats"), "0");
        assert_eq!(
            client
                .one("select count(*) from pg_replication_origin_status where remote_lsn > '0/0'"),
            "1"
        );
    }
    // Without that a change would come back, as a row that is there already.
    let bad = "alter subscription s set (origin = 'elsewhere')";
    assert_eq!(clients[0].query(bad).unwrap().error.unwrap().0, "22023");
    for server in [&one, &two] {
        server.query("alter subscription s disable");
    }
    for server in [&one, &two] {
        server.query("drop subscription s");
        assert_eq!(server.query("select count(*) from pg_replication_origin"), "0");
    }
}

#[test]
fn a_new_slot_exports_the_snapshot_with_which_it_begins() {
    use crate::support::raw::{Raw, startup};
    let dir = TempDir::new("logical-export");
    let server = Server::start(dir.path(), &["wal_level=logical"]);
    server.query("create table t (id int primary key); insert into t values (1)");
    let mut maker = Raw::open(server.port);
    let pairs = [("user", "postgres"), ("database", "postgres"), ("replication", "database")];
    maker.send(&startup(0x30000, &pairs));
    maker.until(|line| line.starts_with("Z "));
    let made = maker.query("CREATE_REPLICATION_SLOT s LOGICAL test_decoding");
    let row = made.iter().find_map(|line| line.strip_prefix("D ")).expect("a row");
    let name = row.split('|').nth(2).expect("a snapshot's name").to_owned();
    assert!(made.iter().any(|line| line == "Z I"), "{made:?}");
    server.query("insert into t values (2)");
    let mut reader = Client::connect(server.port).unwrap();
    let take = format!("begin isolation level repeatable read; set transaction snapshot '{name}'");
    assert!(reader.query(&take).unwrap().error.is_none());
    assert_eq!(reader.one("select string_agg(id::text, ' ') from t"), "1");
    reader.query("commit").unwrap();
    assert_eq!(
        lines(server.port, ""),
        ["BEGIN", "table public.t: INSERT: id[integer]:2", "COMMIT"]
    );
    // It is there until the next command.
    maker.query("IDENTIFY_SYSTEM");
    let late = reader.query(&take).unwrap().error.expect("it has gone");
    assert_eq!(late.0, "22023");
    reader.query("rollback").unwrap();
    for command in ["BEGIN", "CREATE_REPLICATION_SLOT u LOGICAL test_decoding (SNAPSHOT 'export')"]
    {
        let lines = maker.query(command);
        let refused = lines.iter().any(|line| line.starts_with("E ERROR 25001"));
        assert_eq!(refused, command != "BEGIN", "{lines:?}");
    }
}

#[test]
fn pg_recvlogical_writes_what_a_slot_tells_and_goes_on_where_it_was() {
    let dir = TempDir::new("logical-recv");
    let server = Server::start(&dir.path().join("data"), &["wal_level=logical"]);
    server.query("create table t (id int primary key)");
    let port = server.port.to_string();
    let out = dir.path().join("changes");
    let run = |args: &[&str]| {
        let mut command =
            std::process::Command::new(format!("{}/pg_recvlogical", crate::support::PG_BIN));
        command.args([
            "-h",
            "127.0.0.1",
            "-U",
            "postgres",
            "-p",
            &port,
            "-d",
            "postgres",
            "-S",
            "s",
        ]);
        let done = command.args(args).output().expect("pg_recvlogical is installed");
        assert!(done.status.success(), "{args:?}: {}", crate::support::text_of(&done));
    };
    run(&["--create-slot", "-P", "test_decoding"]);
    for (from, to) in [(1, 3), (4, 5)] {
        server.query(&format!("insert into t select generate_series({from}, {to})"));
        let end = server.query("select pg_current_wal_flush_lsn()");
        let file = out.display().to_string();
        run(&["--start", "-f", &file, "--endpos", &end, "-n", "-o", "include-xids=0"]);
    }
    let text = std::fs::read_to_string(&out).expect("it was written");
    let rows: Vec<&str> = text
        .lines()
        .filter_map(|l| l.strip_prefix("table public.t: INSERT: id[integer]:"))
        .collect();
    assert_eq!(rows, ["1", "2", "3", "4", "5"], "{text}");
    run(&["--drop-slot"]);
    assert_eq!(server.query("select count(*) from pg_replication_slots"), "0");
}
