//! `pg_stat_snapshots`: which snapshots are in use, and what vacuum had to keep for them.

use access::Heap;
use access::heap::prune::HeldBack;
use base::{Csn, RelId};
use types::Datum;

use super::time;
use crate::server::Server;
use crate::views::text::text;

/// A snapshot in use.
struct Used {
    pid: i32,
    csn: Csn,
    kind: &'static str,
}

/// A table of which versions are kept.
struct HeldVersions {
    oid: u32,
    schema: String,
    name: String,
    for_whom: Vec<HeldBack>,
}

/// All snapshots of all sessions, the oldest first.
fn used(server: &Server) -> Vec<Used> {
    let mut all = Vec::new();
    for session in server.engine.txn.snapshots() {
        let pid = session.pid;
        let mut add = |csn, kind| all.push(Used { pid, csn, kind });
        let exported = server.exports.of(pid);
        for &csn in &session.held {
            add(csn, if exported.contains(&csn) { "exported" } else { "cursor" });
        }
        if session.lasting == Some(session.oldest) {
            let watched = session.onwards == session.lasting;
            add(session.oldest, if watched { "serializable" } else { "transaction" });
        } else if !session.held.contains(&session.oldest) {
            add(session.oldest, "statement");
        }
        if let Some(csn) = session.onwards.filter(|csn| *csn != session.oldest) {
            add(csn, "nested");
        }
    }
    all.sort_by_key(|used| (used.csn, used.pid));
    all
}

/// The tables of a database of which vacuum had to keep versions.
fn kept(server: &Server, database: u32) -> Vec<HeldVersions> {
    let catalog = super::catalog_of(server, database);
    let one = |table: &std::sync::Arc<catalog::Table>| {
        let heap = Heap::open(&server.engine.storage, RelId(table.rel));
        let schema = catalog.schema(table.schema).map_or(String::new(), |s| s.name.to_string());
        let (oid, name) = (table.oid, table.name.to_string());
        HeldVersions { oid, schema, name, for_whom: heap.held_back() }
    };
    let tables = catalog.tables().filter(|table| !RelId(table.rel).is_temporary());
    tables.map(one).filter(|kept| !kept.for_whom.is_empty()).collect()
}

/// A row for each snapshot and table of which it keeps versions; one without a table if it keeps none.
pub(super) fn rows(server: &Server, database: u32) -> Vec<Vec<Datum>> {
    let kept = kept(server, database);
    let last = server.engine.txn.last_csn().0;
    let mut rows = Vec::new();
    let mut before = Csn(0);
    for used in used(server) {
        let head = head(server, &used, last);
        let mut row = |table: Option<(&HeldVersions, u64, u64)>| {
            let mut row = head.clone();
            row.extend(match table {
                Some((table, versions, bytes)) => [
                    Datum::Oid(table.oid),
                    text(&table.schema),
                    text(&table.name),
                    Datum::Int8(versions as i64),
                    Datum::Int8(bytes as i64),
                ],
                None => [Datum::Null, Datum::Null, Datum::Null, Datum::Int8(0), Datum::Int8(0)],
            });
            rows.push(row);
        };
        // Of several with one CSN the first is shown as the holder.
        let own = |held: &&HeldBack| held.csn == used.csn && used.csn != before;
        let mut any = false;
        for table in &kept {
            let of = |f: fn(&HeldBack) -> u64| table.for_whom.iter().filter(own).map(f).sum();
            let (versions, bytes): (u64, u64) = (of(|held| held.versions), of(|held| held.bytes));
            if versions > 0 {
                row(Some((table, versions, bytes)));
                any = true;
            }
        }
        if !any {
            row(None);
        }
        before = used.csn;
    }
    rows
}

/// The columns that are the same for all tables.
fn head(server: &Server, used: &Used, last: u64) -> Vec<Datum> {
    let entry = server.sessions.get(used.pid);
    let (mut database, mut user, mut since) = (Datum::Null, Datum::Null, Datum::Null);
    if let Some(entry) = entry {
        let (activity, transaction_start) = entry.look(Clone::clone);
        database = text(&activity.database.0);
        user = text(&activity.user);
        since = time(match used.kind {
            "statement" | "nested" => activity.query_start,
            _ => transaction_start,
        });
    }
    let written = last.saturating_sub(used.csn.0);
    vec![
        Datum::Int4(used.pid),
        database,
        user,
        text(used.kind),
        Datum::Int8(used.csn.0 as i64),
        since,
        Datum::Int8(written as i64),
    ]
}
