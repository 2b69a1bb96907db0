//! `pg_stat_activity`: who is connected and what each one does or waits for.

use std::net::IpAddr;

use catalog::object::ids;
use types::Datum;

use super::{text, time};
use crate::registry::Entry;

fn address(peer: Option<(IpAddr, u16)>) -> (Datum, Datum) {
    match peer {
        Some((ip, port)) => (text(&ip.to_string()), Datum::Int4(i32::from(port))),
        None => (Datum::Null, Datum::Int4(-1)),
    }
}

/// One session as `pg_stat_activity` shows it.
pub(super) fn activity(entry: &Entry) -> Vec<Datum> {
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
        match entry.query_id() {
            0 => Datum::Null,
            id => Datum::Int8(id as i64),
        },
        text(&a.query),
        text(entry.task.kind()),
    ]
}
