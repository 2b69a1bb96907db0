//! `pg_partitioned_table`, and what `pg_class` says of partitions.

use types::Datum;

use super::facts;
use super::row::{Row, oid, row};
use crate::object::ids::PG_CATALOG;
use crate::object::{Id, Strategy, Table};
use crate::partition_text;
use crate::system::cx::SystemCx;
use crate::system::row::vector;

type Rows = base::Result<Vec<Vec<Datum>>>;

/// The default operator class of a type, for hashes or orders.
fn class_of(ty: Id, hash: bool) -> Id {
    const HASH_AM: Id = 405;
    match hash {
        true => types::opclass::default_class(HASH_AM, base::Oid(ty)).map_or(0, |c| c.oid),
        false => facts::default_class(ty),
    }
}

pub(super) fn pg_partitioned_table(cx: &SystemCx<'_>) -> Rows {
    let mut out = Vec::new();
    for t in cx.catalog.tables() {
        let Some(by) = &t.partitioning else { continue };
        let family = cx.catalog.family(t.oid);
        let bounds = family.map(|f| f.bounds(by)).transpose()?;
        let default = bounds.and_then(|b| b.default.map(|at| b.parts[at].oid));
        let hash = by.strategy == Strategy::Hash;
        let oids =
            |of: &dyn Fn(&crate::PartitionKey) -> Id| facts::oid_vector(by.keys.iter().map(of));
        let expressions: Vec<&str> =
            by.keys.iter().filter_map(|k| k.expression.as_deref()).collect();
        let list = expressions.join(", ");
        out.push(
            row(PG_CATALOG, "pg_partitioned_table")
                .set("partrelid", oid(t.oid))
                .set("partstrat", by.strategy.letter())
                .set("partnatts", by.keys.len() as i16)
                .set("partdefid", oid(default.unwrap_or(0)))
                .set("partattrs", vector(by.keys.iter().map(|k| k.column as i16)))
                .set("partclass", oids(&|k| class_of(k.ty, hash)))
                .set("partcollation", oids(&|k| k.collation))
                .set(
                    "partexprs",
                    if list.is_empty() { Datum::Null } else { Datum::Text(list.as_str().into()) },
                )
                .done(),
        );
    }
    Ok(out)
}

/// `relispartition` and `relpartbound`.
pub(super) fn class(cx: &SystemCx<'_>, t: &Table, out: Row) -> Row {
    let parent = t.partition_of().and_then(|id| cx.catalog.table(id));
    let (Some(bound), Some(by)) = (&t.bound, parent.and_then(|p| p.partitioning.as_deref())) else {
        return out;
    };
    let text = partition_text::bound(by, bound, None);
    out.set("relispartition", true).set("relpartbound", text.as_str())
}
