//! Rows and pages of relations as a superuser sets them, in place of ANALYZE.

use base::Result;
use catalog::{Object, TableStats};
use exec::context::ExecContext;
use types::Datum;

/// Notes rows, pages and pages that all see of the relations that a query gives; how many there are.
///
/// # Errors
/// The query's.
pub fn set(query: &str, cx: &mut ExecContext<'_>) -> Result<u64> {
    let mut found = Vec::new();
    exec::spi::query(query, cx, &mut |row| {
        if let [Datum::Oid(id), rows, pages, visible] = row {
            let number = |value: &Datum| match value {
                Datum::Int4(n) => u32::try_from(*n).unwrap_or(0),
                _ => 0,
            };
            let rows = match rows {
                Datum::Float8(rows) => *rows,
                _ => -1.0,
            };
            found.push((*id, rows, number(pages), number(visible)));
        }
        Ok(())
    })?;
    let count = found.len() as u64;
    for (table, rows, pages, visible) in found {
        let view = cx.catalog_tx.view();
        if view.table(table).is_none() {
            continue;
        }
        let known = view.stats(table).map(|stats| TableStats::clone(stats)).unwrap_or_default();
        let stats = TableStats { table, rows, pages, visible, ..known };
        cx.catalog_tx.put(cx.tx, Object::Stats(Box::new(stats)))?;
    }
    Ok(count)
}
