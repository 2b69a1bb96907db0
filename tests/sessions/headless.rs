//! Sessions without a client (`server::session::headless`): a thread of the server runs SQL in a role's
//! name. The server is in this process.

use std::sync::Arc;
use std::sync::mpsc::channel;

use crate::support::raw::Raw;
use crate::support::{TempDir, free_port};
use base::settings::publish_live;
use catalog::object::ids;
use server::config::Config;
use server::server::Server;
use server::session::headless::Headless;
use server::{listener, run};
use types::Datum;

fn start(dir: &TempDir, port: u16) -> Arc<Server> {
    let data = dir.path().join("data");
    let settings = [
        ("port", port.to_string().as_str()),
        ("listen_addresses", "127.0.0.1"),
        ("unix_socket_directories", ""),
        ("autovacuum", "off"),
        ("shared_buffers", "8MB"),
        ("workers", "2"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()));
    std::fs::create_dir(&data).expect("the folder is there");
    let config = Config::load(&data, settings.into()).expect("the settings are good");
    publish_live(&config.values.settings);
    server::init::init(&data, &Default::default()).expect("a new directory");
    let listeners = listener::open(&config.values.settings).expect("the port is free");
    let (server, _) = run::start(&data, config).expect("the server starts");
    for listener in listeners {
        listener.listen().expect("the port is free");
        listener::start(&server, listener).expect("a socket can be prepared");
    }
    server
}

/// A session of a role in the database `postgres`, on the calling thread.
fn attach(server: &Arc<Server>, role: u32) -> Headless {
    let all = server.engine.catalog.databases();
    let named = |d: &&Arc<catalog::OpenDatabase>| {
        d.current().database(d.oid()).is_some_and(|known| known.name == "postgres")
    };
    let database = all.iter().find(named).expect("the database is there");
    let session = Headless::attach(server, database, role).expect("the role is there");
    session.expect("the database is open")
}

/// The only value of the answer, as text.
fn value(session: &mut Headless, sql: &str) -> String {
    let answer = session.run(sql, &[]).unwrap_or_else(|e| panic!("{sql}: {e}"));
    match &answer.rows[0][0] {
        Datum::Text(text) => text.to_string(),
        Datum::Int8(n) => n.to_string(),
        Datum::Oid(n) => n.to_string(),
        other => panic!("{sql}: {other:?}"),
    }
}

fn code(session: &mut Headless, sql: &str) -> String {
    match session.run(sql, &[]) {
        Ok(_) => String::new(),
        Err(error) => error.code().as_str().to_owned(),
    }
}

fn job(server: &Arc<Server>, client: &mut Raw) {
    let mut admin = attach(server, ids::SUPERUSER);
    for sql in [
        "CREATE TABLE public.done (id int PRIMARY KEY, what text)",
        "CREATE TABLE public.secret AS SELECT 1 AS n",
        "CREATE ROLE robot",
        "CREATE SCHEMA robots AUTHORIZATION robot",
        "GRANT SELECT, INSERT ON public.done TO robot",
    ] {
        admin.run(sql, &[]).unwrap_or_else(|e| panic!("{sql}: {e}"));
    }
    client.query("ALTER ROLE robot SET search_path = robots, public");
    client.query("ALTER ROLE robot SET statement_timeout = 1");
    let robot = value(&mut admin, "SELECT oid FROM pg_roles WHERE rolname = 'robot'");
    // What commits while it goes on runs, too.
    assert_eq!(code(&mut admin, "CREATE INDEX CONCURRENTLY ON public.done (what)"), "");
    let indexes = "SELECT count(*) FROM pg_index WHERE indrelid = 'public.done'::regclass";
    assert_eq!(value(&mut admin, indexes), "2");
    drop(admin);

    let mut session = attach(server, robot.parse().expect("an oid"));
    // In the role's name, with its rights and settings, but for a client's limits of time.
    assert_eq!(value(&mut session, "SELECT current_user::text"), "robot");
    assert_eq!(value(&mut session, "SELECT current_schema()::text"), "robots");
    assert_eq!(value(&mut session, "SELECT current_setting('statement_timeout')"), "0");
    assert_eq!(code(&mut session, "SELECT * FROM secret"), "42501");
    // Parameters; each statement is a transaction, and one that fails leaves nothing.
    let insert = "INSERT INTO done VALUES ($1, $2), ($1 + 1, $2)";
    let answer = session.run(insert, &[Datum::Int4(1), Datum::text("a")]).expect("it is new");
    assert_eq!(answer.tag(), "INSERT 0 2");
    let error = session.run(insert, &[Datum::Int4(0), Datum::text("b")]).err().expect("1 is there");
    assert_eq!(error.code().as_str(), "23505");
    assert_eq!(
        value(&mut session, "SELECT string_agg(id || what, ' ' ORDER BY id) FROM done"),
        "1a 2a"
    );
    // What controls a session has no place here.
    for sql in ["BEGIN", "SET work_mem = '1MB'", "LISTEN x", "DECLARE c CURSOR FOR SELECT 1", ""] {
        assert_eq!(code(&mut session, sql), "0A000", "{sql}");
    }
    // Others see it, and what it ran last.
    let seen = "SELECT usename || ' ' || datname || ' ' || state FROM pg_stat_activity \
                WHERE backend_type = 'test job'";
    let lines = client.query(seen);
    assert!(lines.iter().any(|l| l.contains("robot postgres idle")), "{lines:?}");
    drop(session);
    let lines = client.query(seen);
    assert!(!lines.iter().any(|l| l.contains("robot postgres")), "{lines:?}");

    // The server's own maintenance waits for nobody.
    let mut admin = attach(server, ids::SUPERUSER);
    client.query("BEGIN");
    client.query("LOCK TABLE done");
    admin.make_automatic();
    assert_eq!(code(&mut admin, "VACUUM public.done"), "55P03");
    client.query("COMMIT");
    assert_eq!(code(&mut admin, "VACUUM public.done"), "");
}

#[test]
fn a_domains_conditions_are_bound_once_for_all_sessions() {
    let dir = TempDir::new("domains");
    let port = free_port();
    let server = start(&dir, port);
    let mut client = Raw::connect(port);
    let mut ask = |sql: &str| client.query(sql).join(" ");
    ask("CREATE DOMAIN even AS int CHECK (VALUE % 2 = 0)");
    let planned = || server.engine.stored_plans.planned();
    let before = planned();
    ask("SELECT 4::even");
    assert_eq!(planned() - before, 1);
    assert!(ask("SELECT sum(n::even) FROM generate_series(2, 8, 2) n").contains("20"));
    assert!(Raw::connect(port).query("SELECT 6::even").join(" ").contains('6'));
    assert_eq!(planned() - before, 1, "other statements and sessions share it");
    // One that changes is looked at anew, also before that is committed, and after it was not.
    ask("BEGIN");
    ask("ALTER DOMAIN even ADD CONSTRAINT small CHECK (VALUE < 10)");
    assert!(ask("SELECT 12::even").contains("small"));
    ask("ROLLBACK");
    assert!(ask("SELECT 12::even").contains("12"));
}

#[test]
fn a_thread_runs_sql_in_a_roles_name() {
    let dir = TempDir::new("headless");
    let port = free_port();
    let server = start(&dir, port);
    let mut client = Raw::connect(port);
    let (done, is_done) = channel();
    let task = sched::Task::new("test job");
    let thread = sched::spawn_task(task, {
        let server = server.clone();
        move || {
            job(&server, &mut client);
            let _ = done.send(());
        }
    });
    thread.join().expect("the job does not panic");
    is_done.recv().expect("it came to its end");
}
