//! `pg_replication_slots`, `pg_stat_replication`: those who follow the log; `pg_stat_subscription`: those who follow others'.

use base::settings::{live_int, setting};
use catalog::object::ids::PG_CATALOG;
use catalog::system::row::row;
use logical::slot::SlotState;
use storage::SlotRecord;
use types::Datum;

use super::text::text;
use super::time;
use crate::server::Server;

/// All slots of the server.
pub(super) fn slots(server: &Server) -> Vec<Vec<Datum>> {
    let storage = &server.engine.storage;
    let end = storage.wal.insert_position().0;
    let limit = live_int(setting::MAX_SLOT_WAL_KEEP_SIZE);
    let shared = server.engine.catalog.shared().current();
    let one = |(name, slot): (String, SlotRecord)| {
        let state = SlotState::decode(&slot.state).unwrap_or_default();
        let logical = !state.plugin.is_empty();
        let or_null = |is: bool, value: Datum| if is { value } else { Datum::Null };
        let name_of = shared.database(state.database).map(|d| d.name.clone());
        let left = (limit >= 0)
            .then(|| Datum::Int8((slot.restart.0 + ((limit as u64) << 20)) as i64 - end as i64));
        let ready = state.confirmed != u64::MAX;
        vec![
            text(&name),
            or_null(logical, text(&state.plugin)),
            text(if logical { "logical" } else { "physical" }),
            or_null(logical, Datum::Oid(state.database)),
            name_of.map_or(Datum::Null, |name| or_null(logical, text(&name))),
            Datum::Bool(slot.temporary),
            Datum::Bool(slot.active != 0),
            or_null(slot.active != 0, Datum::Int4(slot.active)),
            Datum::Null,
            Datum::Null,
            or_null(!slot.lost, Datum::Int8(slot.restart.0 as i64)),
            or_null(logical && ready, Datum::Int8(state.confirmed as i64)),
            text(if slot.lost { "lost" } else { "reserved" }),
            match slot.lost {
                true => Datum::Null,
                false => left.unwrap_or(Datum::Null),
            },
            Datum::Bool(state.two_phase),
        ]
    };
    storage.slots().all().into_iter().map(one).collect()
}

/// All senders.
pub(super) fn senders(server: &Server) -> Vec<Vec<Datum>> {
    let mut rows = Vec::new();
    for (pid, sender, priority, word) in server.senders.all() {
        let Some(entry) = server.sessions.get(pid) else { continue };
        let activity = entry.activity();
        let mut one = row(PG_CATALOG, "pg_stat_replication")
            .set("pid", pid)
            .set("usesysid", Datum::Oid(activity.user_oid))
            .set("usename", &*activity.user)
            .set("application_name", sender.application.as_str())
            .set("backend_start", time(activity.session_start))
            .set("state", sender.state)
            .set("sent_lsn", Datum::Int8(sender.sent.0 as i64))
            .set("sync_priority", priority as i32)
            .set("sync_state", word);
        if let Some((ip, port)) = entry.peer.client {
            one = one.set("client_addr", super::inet(ip)).set("client_port", i32::from(port));
        } else {
            one = one.set("client_port", -1);
        }
        if let Some(replied) = sender.replied {
            one = one.set("reply_time", time(replied));
        }
        for (name, lsn) in [
            ("write_lsn", sender.written),
            ("flush_lsn", sender.flushed),
            ("replay_lsn", sender.applied),
        ] {
            if lsn.0 > 0 {
                one = one.set(name, Datum::Int8(lsn.0 as i64));
            }
        }
        rows.push(one.done());
    }
    rows
}

/// The receiver of a standby.
pub(super) fn receiver(server: &Server) -> Vec<Vec<Datum>> {
    let receiving = server.standby.receiving.lock().clone();
    if receiving.pid == 0 {
        return Vec::new();
    }
    let storage = &server.engine.storage;
    let lsn = |lsn: base::Lsn| Datum::Int8(lsn.0 as i64);
    let timeline = storage.timeline() as i32;
    let slot = Some(receiving.slot.as_str()).filter(|slot| !slot.is_empty());
    vec![vec![
        Datum::Int4(receiving.pid),
        text("streaming"),
        lsn(receiving.began),
        Datum::Int4(timeline),
        lsn(receiving.written.max(storage.wal.flushed())),
        lsn(storage.wal.flushed()),
        Datum::Int4(timeline),
        time(receiving.sent),
        time(receiving.received),
        lsn(receiving.end),
        time(receiving.end_time),
        slot.map_or(Datum::Null, text),
        text(&receiving.host),
        Datum::Int4(receiving.port.into()),
        text(&receiving.conninfo),
    ]]
}

/// The workers of subscriptions.
pub(super) fn subscriptions(server: &Server) -> Vec<Vec<Datum>> {
    let time = |at: i64| if at == 0 { Datum::Null } else { Datum::Timestamptz(at) };
    let lsn = |at: u64| if at == 0 { Datum::Null } else { Datum::Int8(at as i64) };
    let all = server.subscriptions.progress().into_iter();
    all.map(|((_, oid), p)| {
        let pid = if p.pid == 0 { Datum::Null } else { Datum::Int4(p.pid) };
        vec![
            Datum::Oid(oid),
            text(&p.name),
            pid,
            Datum::Null,
            lsn(p.received),
            time(p.times.0),
            time(p.times.1),
            lsn(p.reported),
            time(p.reported_at),
        ]
    })
    .collect()
}

/// The errors of subscriptions.
pub(super) fn subscription_errors(server: &Server) -> Vec<Vec<Datum>> {
    let all = server.subscriptions.progress().into_iter();
    all.map(|((_, oid), p)| {
        let (apply, copy) = p.errors;
        vec![
            Datum::Oid(oid),
            text(&p.name),
            Datum::Int8(apply as i64),
            Datum::Int8(copy as i64),
            Datum::Null,
        ]
    })
    .collect()
}
