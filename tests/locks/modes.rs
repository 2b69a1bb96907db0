//! The lock that each form of a statement takes is PostgreSQL's (the manual's section 13.3.1 and ALTER TABLE).

use std::path::Path;

use crate::support::client::Client;
use crate::support::{Oracle, Server, TempDir};

/// The strongest lock of each relation, apart from those that readers take.
const HELD: &str = "SELECT string_agg(line, ', ' ORDER BY line) FROM (SELECT DISTINCT ON (c.oid) \
                    c.relname || ' ' || l.mode AS line FROM pg_locks l JOIN pg_class c ON c.oid = l.relation \
                    WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND c.oid IN (SELECT oid FROM known) \
                    ORDER BY c.oid, array_position('{AccessExclusiveLock,ExclusiveLock,ShareRowExclusiveLock,\
                    ShareLock,ShareUpdateExclusiveLock,RowExclusiveLock,RowShareLock,AccessShareLock}'::text[], \
                    l.mode)) x WHERE line NOT LIKE '% AccessShareLock'";

const MODES: [&str; 8] = [
    "ACCESS SHARE",
    "ROW SHARE",
    "ROW EXCLUSIVE",
    "SHARE UPDATE EXCLUSIVE",
    "SHARE",
    "SHARE ROW EXCLUSIVE",
    "EXCLUSIVE",
    "ACCESS EXCLUSIVE",
];

fn read(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/locks");
    std::fs::read_to_string(folder.join(name)).expect("it is part of the repository")
}

/// What the forms take, in their order.
fn taken(port: u16, forms: &[&str]) -> Vec<String> {
    let mut client = Client::connect(port).unwrap();
    let mut run = |sql: &str| {
        let answer = client.query(sql).unwrap();
        let value = answer.rows.first().and_then(|row| row[0].clone()).unwrap_or_default();
        (answer.error, value)
    };
    assert_eq!(run(&read("modes.sql")).0, None);
    run(
        "CREATE TABLE known AS SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace \
         AND relkind <> 'i' AND relkind <> 'I'",
    );
    let mut all = Vec::new();
    for form in forms {
        if let Some(form) = form.strip_prefix('!') {
            all.push(conflicts(port, form));
            continue;
        }
        run("BEGIN");
        let (error, _) = run(form);
        all.push(error.map_or_else(|| run(HELD).1, |(code, text)| format!("{code} {text}")));
        run("ROLLBACK");
    }
    all
}

/// The modes of a table `t` with which a form conflicts.
fn conflicts(port: u16, form: &str) -> String {
    let (mut holder, mut other) = (Client::connect(port).unwrap(), Client::connect(port).unwrap());
    let mut all = Vec::new();
    for mode in MODES {
        holder.query(&format!("BEGIN; LOCK TABLE t IN {mode} MODE")).unwrap();
        other.query("SET lock_timeout = '100ms'").unwrap();
        let parts = form.split("; ");
        let errors: Vec<String> = parts
            .filter_map(|part| other.query(part).unwrap().error)
            .map(|(code, _)| code)
            .collect();
        if !errors.is_empty() {
            all.push(format!("{mode} {}", errors.join(" ")));
        }
        holder.query("ROLLBACK").unwrap();
        // What a concurrent command left half done.
        other.query("SET lock_timeout = 0; DROP INDEX IF EXISTS t_c").unwrap();
    }
    all.join(", ")
}

#[test]
fn each_form_takes_postgresqls_lock() {
    let text = read("modes.txt");
    let forms: Vec<&str> = text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).collect();
    let dir = TempDir::new("modes");
    let server = Server::start(&dir.path().join("data"), &["fsync=off"]);
    let oracle = Oracle::start();
    let (ours, theirs) = std::thread::scope(|scope| {
        let theirs = scope.spawn(|| taken(oracle.port, &forms));
        (taken(server.port, &forms), theirs.join().expect("the forms are run"))
    });
    let differing = forms.iter().zip(ours.iter().zip(&theirs)).filter(|(_, (a, b))| a != b);
    let lines: Vec<String> = differing
        .map(|(form, (ours, theirs))| format!("{form}\n  ours:   {ours}\n  theirs: {theirs}"))
        .collect();
    assert!(lines.is_empty(), "{} of {}:\n{}", lines.len(), forms.len(), lines.join("\n"));
    assert!(server.stop());
}
