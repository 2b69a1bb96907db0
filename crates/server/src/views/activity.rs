//! `pg_stat_activity`: who is connected and what each one does or waits for; then the background
//! threads, under PostgreSQL's names where PostgreSQL has the same.

use std::collections::HashMap;
use std::net::IpAddr;

use base::{Csn, WaitEvent, Xid};
use catalog::object::ids::PG_CATALOG;
use catalog::system::row::{Row, row};
use sched::Task;
use types::Datum;

use super::time;
use crate::registry::{Entry, SessionActivity};
use crate::server::Server;
use crate::views::text::text;

fn address(peer: Option<(IpAddr, u16)>) -> (Datum, Datum) {
    match peer {
        Some((ip, port)) => (super::inet(ip), Datum::Int4(i32::from(port))),
        None => (Datum::Null, Datum::Int4(-1)),
    }
}

/// The transaction of each session, as others see it.
type Transactions = HashMap<i32, (Option<Xid>, Option<Csn>)>;

/// The event to show: of what a task waits for and the work that it said it does
/// ([`sched::at_work`]). A wait for a lock or a latch is worth knowing for itself; others are part
/// of the work.
fn shown(wait: Option<WaitEvent>, work: Option<WaitEvent>) -> Option<WaitEvent> {
    match wait {
        Some(wait) if matches!(wait.info().kind, "Lock" | "LWLock") => Some(wait),
        wait => work.or(wait),
    }
}

fn new_row(task: &Task, idle: bool) -> Row {
    let wait = task.wait().map(|(event, _)| event);
    let (kind, name) = match shown(wait, task.work()).map(WaitEvent::info) {
        Some(info) => (text(info.kind), text(info.name)),
        None if idle => (text("Client"), text("ClientRead")),
        None => (Datum::Null, Datum::Null),
    };
    row(PG_CATALOG, "pg_stat_activity")
        .set("pid", task.pid())
        .set("wait_event_type", kind)
        .set("wait_event", name)
        .set("backend_type", task.kind())
}

fn session(entry: &Entry, transactions: &Transactions) -> Vec<Datum> {
    let (a, xact_start) = entry.look(Clone::clone);
    let (client, port) = match entry.task.kind() {
        "client backend" => address(entry.peer.client),
        _ => (Datum::Null, Datum::Null),
    };
    let (xid, snapshot) = transactions.get(&entry.pid).copied().unwrap_or_default();
    let mut row = new_row(&entry.task, a.state != SessionActivity::Active);
    if a.state != SessionActivity::Starting {
        row = row
            .set("datid", Datum::Oid(a.database.1))
            .set("datname", &*a.database.0)
            .set("usesysid", Datum::Oid(a.user_oid))
            .set("usename", &*a.user);
    }
    if let Some(state) = a.state.as_str() {
        row = row.set("state", state);
    }
    if let Some(xid) = xid {
        row = row.set("backend_xid", Datum::Oid(xid.0 as u32));
    }
    if snapshot.is_some() {
        row = row.set("backend_xmin", Datum::Oid(entry.xmin() as u32));
    }
    match entry.query_id() {
        0 => {}
        id => row = row.set("query_id", id),
    }
    row.set("application_name", a.application.as_str())
        .set("client_addr", client)
        .set("client_port", port)
        .set("backend_start", time(a.session_start))
        .set("xact_start", time(xact_start))
        .set("query_start", time(a.query_start))
        .set("state_change", time(a.state_change))
        .set("query", &*a.query.text())
        .done()
}

fn background(server: &Server, task: &Task, transactions: &Transactions) -> Vec<Datum> {
    if let Some(entry) = server.sessions.session_of(task.pid()) {
        return session(&entry, transactions);
    }
    new_row(task, false).set("backend_start", time(server.started)).set("query", "").done()
}

/// All rows.
pub(super) fn activity(server: &Server) -> Vec<Vec<Datum>> {
    let transactions: Transactions =
        server.engine.txn.sessions().into_iter().map(|(pid, xid, csn)| (pid, (xid, csn))).collect();
    let sessions = server.sessions.all();
    let sessions = sessions.iter().map(|entry| session(entry, &transactions));
    let background_tasks = sched::background_tasks();
    sessions
        .chain(background_tasks.iter().map(|task| background(server, task, &transactions)))
        .collect()
}

/// Rows of `pg_stat_get_activity(pid)`: the columns of the view in another order, and those of
/// `pg_stat_ssl` and `pg_stat_gssapi`.
pub(super) fn function(server: &Server) -> Vec<Vec<Datum>> {
    let columns = |name: &str| catalog::system::find(None, name).map(|t| t.columns.clone());
    let view = columns("pg_stat_activity").unwrap_or_default();
    let wanted = columns("pg_stat_get_activity()").unwrap_or_default();
    let place = |name: &str| view.iter().position(|c| c.name == name);
    let one = |row: Vec<Datum>| {
        let value = |c: &catalog::Column| match (place(&c.name), c.name.as_str()) {
            (Some(at), _) => row[at].clone(),
            (None, "ssl" | "gss_auth" | "gss_enc") => Datum::Bool(false),
            (None, _) => Datum::Null,
        };
        wanted.iter().map(value).collect()
    };
    activity(server).into_iter().map(one).collect()
}

/// Rows of `pg_stat_ssl`.
pub(super) fn ssl(server: &Server) -> Vec<Vec<Datum>> {
    let one = |entry: &std::sync::Arc<Entry>| {
        let tls = entry.tls.get();
        let mut out =
            row(PG_CATALOG, "pg_stat_ssl").set("pid", entry.pid).set("ssl", tls.is_some());
        if let Some(tls) = tls {
            out = out
                .set("version", tls.version)
                .set("cipher", tls.cipher.as_str())
                .set("bits", tls.bits);
            if let Some(client) = &tls.client {
                let format = types::FormatContext::default();
                let serial = types::io::input(types::oids::NUMERIC, -1, &client.serial, &format);
                out = out
                    .set("client_dn", client.subject.as_str())
                    .set("client_serial", serial.unwrap_or_default())
                    .set("issuer_dn", client.issuer.as_str());
            }
        }
        out.done()
    };
    server.sessions.all().iter().map(one).collect()
}

/// Rows of `pg_stat_gssapi`: nobody comes that way.
pub(super) fn gssapi(server: &Server) -> Vec<Vec<Datum>> {
    let one = |entry: &std::sync::Arc<Entry>| {
        row(PG_CATALOG, "pg_stat_gssapi")
            .set("pid", entry.pid)
            .fill(&["gss_authenticated", "encrypted"], Datum::Bool(false))
            .done()
    };
    server.sessions.all().iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_shown_unless_a_lock_is_waited_for() {
        let work = Some(WaitEvent::IORelationExtendEvict);
        let (write, latch) = (WaitEvent::IODataFileWrite, WaitEvent::LWLockBufferMapping);
        assert_eq!(shown(None, None), None);
        assert_eq!(shown(Some(write), None), Some(write));
        assert_eq!(shown(None, work), work);
        assert_eq!(shown(Some(write), work), work);
        assert_eq!(shown(Some(latch), work), Some(latch));
    }
}
