//! `pg_buffercache`: what is in each page of the buffer pool, with the columns of PostgreSQL's
//! extension of that name. Takes no lock at all: each frame is looked at by itself, so the rows are
//! not of one moment.

use storage::FrameInfo;
use types::Datum;

use catalog::object::ids;

use crate::server::Server;

/// `pg_default`.
const TABLESPACE: u32 = 1663;

/// One row for each frame.
pub(super) fn frames(server: &Server) -> Vec<Vec<Datum>> {
    server.engine.storage.pool.contents().map(row).collect()
}

fn row(info: FrameInfo) -> Vec<Datum> {
    let number = Datum::Int4(info.number as i32 + 1);
    let Some(page) = info.page else {
        let mut row = vec![number];
        row.extend([const { Datum::Null }; 8]);
        return row;
    };
    vec![
        number,
        Datum::Oid(page.rel.0),
        Datum::Oid(TABLESPACE),
        Datum::Oid(ids::POSTGRES_DB),
        Datum::Int2(page.fork as i16),
        Datum::Int8(i64::from(page.block)),
        Datum::Bool(info.dirty),
        Datum::Int2(info.usage as i16),
        Datum::Int4(info.pins as i32),
    ]
}
