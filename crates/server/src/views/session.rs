//! Objects of one session: its prepared statements and cursors.

use std::sync::Arc;

use sql::secrets::without_secrets;
use types::datum::Array;
use types::{Datum, oids};

use crate::session::portal::{Portals, Progress, Statements};
use crate::views::text::text;

/// The session's prepared statements.
pub fn prepared_statements(statements: &Statements) -> Vec<Vec<Datum>> {
    let mut rows: Vec<_> = statements.named().collect();
    rows.sort_by_key(|s| s.since);
    let row = |s: &crate::session::portal::PreparedStatement| {
        let types = &s.plan.prepared.params;
        let types = types.iter().map(|ty| Datum::Oid(ty.0)).collect();
        vec![
            text(&s.name),
            text(&without_secrets(&s.text)),
            Datum::Timestamptz(s.since),
            Datum::Array(Arc::new(Array::of(oids::REGTYPE, types))),
            Datum::Bool(s.from_sql),
            Datum::Int8(0),
            Datum::Int8(0),
        ]
    };
    rows.into_iter().map(row).collect()
}

/// The session's portals.
pub fn cursors(portals: &Portals) -> Vec<Vec<Datum>> {
    let open = portals.iter().filter(|(_, p)| p.cursor || !matches!(p.progress, Progress::Done));
    open.map(|(name, p)| {
        let binary = !p.formats.0.is_empty() && p.formats.0.iter().all(|b| *b);
        vec![
            text(name),
            text(&without_secrets(&p.statement.text)),
            Datum::Bool(p.hold.is_some()),
            Datum::Bool(binary),
            Datum::Bool(p.scroll),
            Datum::Timestamptz(p.since),
        ]
    })
    .collect()
}
