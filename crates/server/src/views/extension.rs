//! `pg_stat_relation_extension`: how tables and indexes grew, and what the time went into.

use std::collections::HashMap;
use std::time::Duration;

use access::extension::{ExtensionCounters, extension_counters};
use base::{Fork, RelId};
use types::datum::Array;
use types::{Datum, oids};

use super::time;
use crate::server::Server;
use crate::views::text::text;

/// One row for each relation of the database that has grown since the server started.
pub(super) fn relations(server: &Server, database: u32) -> Vec<Vec<Datum>> {
    let catalog = super::catalog_of(server, database);
    let mut named = HashMap::new();
    for table in catalog.tables() {
        named.insert(table.rel, (table.oid, table.schema, table.name.clone()));
    }
    for index in catalog.indexes() {
        named.insert(index.rel, (index.oid, index.schema, index.name.clone()));
    }
    let grown = extension_counters(&server.engine.storage);
    let row = |(rel, counters): &(RelId, ExtensionCounters)| {
        let (oid, schema, name) = named.get(&rel.0)?;
        let schema = catalog.schema(*schema).map_or("", |s| &s.name);
        let blocks = server.engine.storage.block_count(*rel, Fork::Main).unwrap_or(0);
        let mut row = vec![Datum::Oid(*oid), text(schema), text(name)];
        row.push(Datum::Int8(i64::from(blocks)));
        row.extend(figures(counters));
        row.push(time(server.started));
        Some(row)
    };
    grown.iter().filter_map(row).collect()
}

fn figures(counters: &ExtensionCounters) -> [Datum; 10] {
    let count = |n: u64| Datum::Int8(n as i64);
    let ms = |d: Duration| Datum::Float8(d.as_secs_f64() * 1000.0);
    let extensions = counters.extensions();
    let mean = counters.pages as f64 / extensions.max(1) as f64;
    let sizes = counters.sizes.iter().map(|n| count(*n)).collect();
    [
        count(extensions),
        count(counters.pages),
        Datum::Float8(mean),
        count(counters.largest),
        Datum::Array(Array::of(oids::INT8, sizes).into()),
        count(counters.waits),
        ms(counters.longest),
        ms(counters.evict),
        ms(counters.lock),
        ms(counters.io),
    ]
}
