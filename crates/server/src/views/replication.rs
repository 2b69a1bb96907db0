//! `pg_replication_slots`.

use base::settings::{live_int, setting};
use logical::slot::SlotState;
use storage::SlotRecord;
use types::Datum;

use super::text::text;
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
