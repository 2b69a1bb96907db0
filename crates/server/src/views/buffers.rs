//! `pg_buffercache`: what is in each page of the buffer pool, with the columns of PostgreSQL's
//! extension of that name. Takes no lock at all: each frame is looked at by itself, so the rows are
//! not of one moment.

use std::collections::HashMap;

use storage::FrameInfo;
use types::Datum;

use crate::server::Server;

/// `pg_default`.
const TABLESPACE: u32 = 1663;

/// One row for each frame.
pub(super) fn frames(server: &Server) -> Vec<Vec<Datum>> {
    let owners = super::owners_of_files(server);
    server.engine.storage.pool.contents().map(|info| row(info, &owners)).collect()
}

fn row(info: FrameInfo, owners: &HashMap<u32, (u32, u32)>) -> Vec<Datum> {
    let number = Datum::Int4(info.number as i32 + 1);
    let Some(page) = info.page else {
        let mut row = vec![number];
        row.extend([const { Datum::Null }; 8]);
        return row;
    };
    let table = page.rel.0 & !catalog::overflow_rel(base::RelId(0)).0;
    let owner = owners.get(&table);
    vec![
        number,
        Datum::Oid(page.rel.0),
        Datum::Oid(TABLESPACE),
        Datum::Oid(owner.map_or(catalog::SHARED, |(database, _)| *database)),
        Datum::Int2(page.fork as i16),
        Datum::Int8(i64::from(page.block)),
        Datum::Bool(info.dirty),
        Datum::Int2(info.usage as i16),
        Datum::Int4(info.pins as i32),
    ]
}
