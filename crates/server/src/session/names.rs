//! Names behind the oids of `regclass` and kin, as a client is shown them.

use base::Oid;
use catalog::Snapshot;
use catalog::definition::quote_ident;
use types::{TypeIo, io, oids};

/// The object's name, qualified where the search path does not find it; the number when there is no
/// such object.
pub fn of(ty: Oid, oid: u32, catalog: &Snapshot, path: &[u32]) -> String {
    let name = match ty {
        oids::REGCLASS => relation(oid, catalog, path),
        oids::REGTYPE => TypeIo::get(Oid(oid)).map(|_| io::format_type(Oid(oid), -1)),
        oids::REGNAMESPACE => catalog.schema(oid).map(|s| quote_ident(&s.name)),
        oids::REGROLE => catalog.roles().find(|r| r.oid == oid).map(|r| quote_ident(&r.name)),
        oids::REGPROC => types::func::function(Oid(oid)).map(|f| f.name.to_owned()),
        _ => None,
    };
    name.unwrap_or_else(|| if oid == 0 { "-".to_owned() } else { oid.to_string() })
}

fn relation(oid: u32, catalog: &Snapshot, path: &[u32]) -> Option<String> {
    let (schema, name) = match (catalog.table(oid), catalog.index(oid)) {
        (Some(table), _) => (table.schema, table.name.clone()),
        (None, Some(index)) => (index.schema, index.name.clone()),
        (None, None) => {
            let table = catalog::system::table_by_oid(Oid(oid))?;
            (table.schema, table.name.clone())
        }
    };
    // Found first along the path: nothing before its schema has the name.
    let mut searched = catalog.implicit_temporary(path).into_iter().chain(path.iter().copied());
    let first = searched.find(|s| *s == schema || catalog.relation_in(*s, &name).is_some());
    if first == Some(schema) {
        return Some(quote_ident(&name));
    }
    let schema = catalog.schema(schema).map_or("information_schema", |s| &s.name);
    Some(format!("{}.{}", quote_ident(schema), quote_ident(&name)))
}
