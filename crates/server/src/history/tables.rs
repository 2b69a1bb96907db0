//! Sums by table and index, collected from the counters and from waits.

use std::collections::HashMap;
use std::sync::Arc;

use sched::WaitObject;

use super::relations::RelationSum;
use super::slice::Slice;
use crate::counters::{RelationStats, Relid};
use crate::server::Server;
use crate::views::owners_of_files;

/// The object of a wait, as far as it is a relation.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Waited {
    /// By its file.
    File(u32),
    /// By database and oid.
    Named(u32, u32),
}

/// Waits for relations since the last look.
#[derive(Default)]
pub(super) struct Relations {
    waited: HashMap<Waited, u64>,
}

impl Relations {
    /// A statement waited for this.
    pub fn wait(&mut self, object: WaitObject, ns: u64) {
        let waited = match (object, object.file()) {
            (WaitObject::Relation(database, oid), _) => Waited::Named(database.0, oid.0),
            (_, Some(file)) => Waited::File(file.0),
            _ => return,
        };
        *self.waited.entry(waited).or_default() += ns;
    }

    /// Gives the slice what was done between two readings of the counters.
    pub fn look(
        &mut self,
        server: &Server,
        then: &HashMap<Relid, RelationStats>,
        now: &HashMap<Relid, RelationStats>,
        slice: &mut Slice,
    ) {
        let mut sums: HashMap<Relid, RelationSum> = HashMap::new();
        for (id, stats) in now {
            let (now, before) = (&stats.counts, then.get(id).map(|s| s.counts).unwrap_or_default());
            let mut sum = RelationSum {
                scans: now.scans.saturating_sub(before.scans),
                returned: now.returned.saturating_sub(before.returned),
                fetched: now.fetched.saturating_sub(before.fetched),
                inserted: now.inserted.saturating_sub(before.inserted),
                updated: now.updated.saturating_sub(before.updated),
                hot_updated: now.hot_updated.saturating_sub(before.hot_updated),
                deleted: now.deleted.saturating_sub(before.deleted),
                blocks_hit: now.blocks_hit.saturating_sub(before.blocks_hit),
                blocks_read: now.blocks_read.saturating_sub(before.blocks_read),
                ..RelationSum::new(id.0, id.1)
            };
            if !sum.is_empty() {
                sums.insert(*id, sum);
            }
        }
        let waited = std::mem::take(&mut self.waited);
        let by_file = waited.keys().any(|waited| matches!(waited, Waited::File(_)));
        let owners = if by_file { owners_of_files(server) } else { HashMap::new() };
        for (waited, ns) in waited {
            let id = match waited {
                Waited::Named(database, oid) => (database, oid),
                Waited::File(file) => match owners.get(&file) {
                    Some(id) => *id,
                    None => continue,
                },
            };
            let sum = sums.entry(id).or_insert_with(|| RelationSum::new(id.0, id.1));
            sum.waited_ns += ns;
        }
        if sums.is_empty() {
            return;
        }
        let catalogs: HashMap<u32, Arc<catalog::Snapshot>> =
            server.engine.catalog.databases().iter().map(|d| (d.oid(), d.current())).collect();
        for ((database, oid), mut sum) in sums {
            // Functions are counted among relations; they have neither name here.
            let Some(catalog) = catalogs.get(&database) else { continue };
            if let Some(table) = catalog.table(oid) {
                sum.name = (*table.name).into();
            } else if let Some(index) = catalog.index(oid) {
                sum.name = (*index.name).into();
                let table = catalog.table(index.table);
                sum.table = table.map_or_else(|| "?".into(), |table| (*table.name).into());
            } else {
                continue;
            }
            slice.relations.push(sum);
        }
    }
}
