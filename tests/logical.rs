//! Change streams: what slots tell of, beside PostgreSQL 15's `test_decoding`; over restarts and crashes; subscribers.

mod support;

use std::time::Duration;

use support::client::Client;
use support::{Oracle, Server, TempDir};

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
    support::psql(port, &["-At"], &sql).lines().map(str::to_owned).collect()
}

#[test]
fn test_decoding_says_what_postgresql_says() {
    let dir = TempDir::new("logical-text");
    let server = Server::start(dir.path(), &["wal_level=logical"]);
    let oracle = Oracle::start_with("C.UTF-8", &["wal_level=logical"]);
    let mut answers = Vec::new();
    for port in [oracle.port, server.port] {
        let made = "select slot_name from pg_create_logical_replication_slot('s', 'test_decoding')";
        assert_eq!(support::psql(port, &["-At"], made).trim(), "s");
        support::psql(port, &["-q"], WORK);
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
        support::psql(port, &["-At"], sql)
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
    support::psql(oracle.port, &["-q"], tables);
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
    support::psql(oracle.port, &["-q"], &subscribe);
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
        let theirs = support::psql(oracle.port, &["-At"], sql);
        assert_eq!(theirs, server.psql(&["-At"], sql), "{sql}");
    }
    server.query("truncate t");
    client.await_one("select count(*) from t", "0");
    support::psql(oracle.port, &["-q"], "drop subscription s");
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
        support::psql(port, &["-q"], tables);
    }
    let filling = "insert into t select n, case when n % 3 = 0 then null else E'row\\t' || n end, now(), n / 7.0, array[n, null]
          from generate_series(1, 2000) n;
        insert into nokey select n % 5, 'x' from generate_series(1, 50) n;
        insert into parted select n, 'p' from generate_series(1, 1999) n;
        create publication p for all tables;";
    support::psql(publisher, &["-q"], filling);
    let subscribe = format!(
        "create subscription s connection 'host=127.0.0.1 port={publisher} user=postgres dbname=postgres' \
         publication p"
    );
    support::psql(subscriber, &["-q"], &subscribe);
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
    support::psql(publisher, &["-q"], changing);
    client.await_one("select count(*) from t where a = 0", "1");
    for sql in [
        "select count(*), sum(a), sum(hashtext(b)::int8), sum(d), sum(cardinality(e)), max(c) from t",
        "select a, b, count(*) from nokey group by 1, 2 order by 1, 2",
        "select count(*), sum(a), sum(hashtext(b)::int8) from parted",
    ] {
        let wanted = support::psql(publisher, &["-At"], sql);
        assert_eq!(support::psql(subscriber, &["-At"], sql), wanted, "{sql}");
    }
    let more = "create table later (a int primary key); insert into later values (1), (2);";
    support::psql(publisher, &["-q"], more);
    support::psql(subscriber, &["-q"], "create table later (a int primary key)");
    support::psql(subscriber, &["-q"], "alter subscription s refresh publication");
    client.await_one("select count(*) from later", "2");
    support::psql(publisher, &["-q"], "truncate t");
    client.await_one("select count(*) from t", "0");
    support::psql(subscriber, &["-q"], "drop subscription s");
    let left = support::psql(publisher, &["-At"], "select count(*) from pg_replication_slots");
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
