//! Rows of the statistics views that the running server fills.

use std::net::IpAddr;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use base::{Fork, RelId, settings::show};
use catalog::object::ids;
use txn::LockTag;
use txn::lock::LockRow;
use types::Datum;

use crate::counters::Slot;
use crate::registry::Entry;
use crate::server::Server;
use crate::session::portal::{Portals, Progress, Statements};

/// Rows of a view; none for a view that isn't kept.
pub fn rows(server: &Server, view: &str) -> Vec<Vec<Datum>> {
    match view {
        "pg_stat_activity" => server.sessions.all().iter().map(|e| activity(e)).collect(),
        "pg_locks" => server.engine.txn.locks.snapshot().iter().map(lock).collect(),
        "pg_stat_all_tables" => tables(server, true),
        "pg_stat_user_tables" => tables(server, false),
        "pg_file_settings" => file_settings(server),
        _ => Vec::new(),
    }
}

/// Pages of a relation's main fork.
pub fn pages(server: &Server, rel: u32) -> u32 {
    server.engine.storage.block_count(RelId(rel), Fork::Main).unwrap_or(0)
}

fn text(value: &str) -> Datum {
    Datum::Text(value.into())
}

fn time(value: i64) -> Datum {
    if value == 0 { Datum::Null } else { Datum::Timestamptz(value) }
}

fn address(peer: Option<(IpAddr, u16)>) -> (Datum, Datum) {
    match peer {
        Some((ip, port)) => (text(&ip.to_string()), Datum::Int4(i32::from(port))),
        None => (Datum::Null, Datum::Int4(-1)),
    }
}

/// One session as `pg_stat_activity` shows it.
fn activity(entry: &Entry) -> Vec<Datum> {
    let a = entry.activity();
    let (client, port) = address(entry.peer.client);
    let wait = entry.task.wait().map(|(event, _)| event.info());
    let idle = a.state != crate::registry::State::Active;
    let (wait_type, wait_event) = match wait {
        Some(info) => (text(info.kind), text(info.name)),
        None if idle => (text("Client"), text("ClientRead")),
        None => (Datum::Null, Datum::Null),
    };
    vec![
        if a.database.1 == 0 { Datum::Null } else { Datum::Oid(a.database.1) },
        text(&a.database.0),
        Datum::Int4(entry.pid),
        Datum::Null,
        Datum::Oid(ids::SUPERUSER),
        text(&a.user),
        text(&a.application),
        client,
        Datum::Null,
        port,
        time(a.session_start),
        time(a.transaction_start),
        time(a.query_start),
        time(a.state_change),
        wait_type,
        wait_event,
        a.state.as_str().map_or(Datum::Null, text),
        if a.xid == 0 { Datum::Null } else { Datum::Oid(a.xid as u32) },
        Datum::Null,
        Datum::Null,
        text(&a.query),
        text(entry.task.kind()),
    ]
}

/// One lock as `pg_locks` shows it.
fn lock(row: &LockRow) -> Vec<Datum> {
    let mut what: [Datum; 10] = Default::default();
    let database = Datum::Oid(ids::POSTGRES_DB);
    let kind = match row.tag {
        LockTag::Relation(oid) => {
            (what[0], what[1]) = (database, Datum::Oid(oid.0));
            "relation"
        }
        LockTag::Extend(rel) => {
            (what[0], what[1]) = (database, Datum::Oid(rel.0));
            "extend"
        }
        LockTag::Tuple(rel, tid) => {
            (what[0], what[1]) = (database, Datum::Oid(rel.0));
            (what[2], what[3]) = (Datum::Int4(tid.block as i32), Datum::Int2(tid.offset as i16));
            "tuple"
        }
        LockTag::Xid(xid) => {
            what[5] = Datum::Oid(xid.0 as u32);
            "transactionid"
        }
        LockTag::Object(class, object) => {
            (what[0], what[6], what[7]) =
                (database, Datum::Oid(class.0), Datum::Oid(object as u32));
            what[8] = Datum::Int2(0);
            "object"
        }
        LockTag::Advisory(oid, key) => {
            (what[0], what[6]) = (Datum::Oid(oid.0), Datum::Oid((key >> 32) as u32));
            (what[7], what[8]) = (Datum::Oid(key as u32), Datum::Int2(1));
            "advisory"
        }
        LockTag::Advisory2(oid, one, two) => {
            (what[0], what[6]) = (Datum::Oid(oid.0), Datum::Oid(one as u32));
            (what[7], what[8]) = (Datum::Oid(two as u32), Datum::Int2(2));
            "advisory"
        }
    };
    let mut out = vec![text(kind)];
    out.extend(what.into_iter().take(9));
    out.extend([
        text(&format!("{}/0", row.pid)),
        Datum::Int4(row.pid),
        text(row.mode.name()),
        Datum::Bool(row.granted),
        Datum::Bool(row.fastpath),
        row.wait_start.map_or(Datum::Null, |t| Datum::Timestamptz(crate::server::micros(t))),
    ]);
    out
}

/// What happened to each table, as `pg_stat_all_tables` shows it.
fn tables(server: &Server, system: bool) -> Vec<Vec<Datum>> {
    let catalog = server.engine.catalog.current();
    let mut rows = Vec::new();
    for table in catalog.tables() {
        let schema = catalog.schema(table.schema).map_or("", |s| &s.name);
        if !system && matches!(schema, "pg_catalog" | "information_schema" | "pg_toast") {
            continue;
        }
        let slot = server.counters.find(table.oid);
        let count = |f: fn(&Slot) -> &AtomicU64| {
            Datum::Int8(slot.map_or(0, |s| f(s).load(Ordering::Relaxed) as i64))
        };
        let at = |f: fn(&Slot) -> &AtomicI64| {
            slot.map_or(Datum::Null, |s| time(f(s).load(Ordering::Relaxed)))
        };
        let (_, live) = crate::session::execute::table_size(&server.engine, &catalog, table);
        let mut row = vec![Datum::Oid(table.oid), text(schema), text(&table.name)];
        row.extend([const { Datum::Null }; 4]);
        row.extend([count(|s| &s.inserted), count(|s| &s.updated), count(|s| &s.deleted)]);
        row.extend([Datum::Null, Datum::Int8(live as i64), count(|s| &s.dead)]);
        row.extend([Datum::Null, Datum::Null]);
        row.extend([at(|s| &s.last_vacuum), at(|s| &s.last_autovacuum)]);
        row.extend([Datum::Null, Datum::Null]);
        row.extend([count(|s| &s.vacuums), count(|s| &s.autovacuums)]);
        row.extend([Datum::Null, Datum::Null]);
        rows.push(row);
    }
    rows
}

/// What the files say, as `pg_file_settings` shows it.
fn file_settings(server: &Server) -> Vec<Vec<Datum>> {
    let (values, _) = server.values();
    let defaults = base::settings::Settings::default();
    let mut rows = Vec::new();
    for (i, def) in base::settings::SETTINGS.iter().enumerate() {
        let id = base::settings::SettingId(i as u16);
        let value = values.settings.get(id);
        if value != defaults.get(id) {
            rows.push(vec![
                Datum::Null,
                Datum::Null,
                Datum::Int4(rows.len() as i32 + 1),
                text(def.name),
                text(&show(id, value)),
                Datum::Bool(true),
                Datum::Null,
            ]);
        }
    }
    rows
}

/// The session's prepared statements.
pub fn prepared_statements(statements: &Statements) -> Vec<Vec<Datum>> {
    let mut rows: Vec<_> = statements.named().collect();
    rows.sort_by_key(|s| s.since);
    let row = |s: &crate::session::portal::PreparedStatement| {
        let types = &s.plan.prepared.params;
        let names: Vec<String> = types.iter().map(|t| types::io::format_type(*t, -1)).collect();
        vec![
            text(&s.name),
            text(&s.text),
            Datum::Timestamptz(s.since),
            text(&format!("{{{}}}", names.join(","))),
            Datum::Bool(s.from_sql),
            Datum::Int8(0),
            Datum::Int8(0),
        ]
    };
    rows.into_iter().map(row).collect()
}

/// The session's portals.
pub fn cursors(portals: &Portals) -> Vec<Vec<Datum>> {
    let open = portals.iter().filter(|(_, p)| !matches!(p.progress, Progress::Done));
    open.map(|(name, p)| {
        let binary = !p.formats.0.is_empty() && p.formats.0.iter().all(|b| *b);
        vec![
            text(name),
            text(&p.text),
            Datum::Bool(false),
            Datum::Bool(binary),
            Datum::Bool(false),
            Datum::Timestamptz(p.since),
        ]
    })
    .collect()
}
