//! Names behind the oids of `regclass` and kin, as a client is shown them.

use base::{Oid, Result, err};
use catalog::Snapshot;
use catalog::definition::quote_ident;
use catalog::system::facts;
use types::{TypeIo, io, oids};

/// The object's name, qualified where the search path does not find it; the number when there is no
/// such object.
pub fn of(ty: Oid, oid: u32, catalog: &Snapshot, path: &[u32]) -> String {
    let name = match ty {
        oids::REGCLASS => relation(oid, catalog, path),
        oids::REGTYPE => TypeIo::get(Oid(oid)).map(|_| io::format_type(Oid(oid), -1)),
        oids::REGNAMESPACE => catalog.schema(oid).map(|s| quote_ident(&s.name)),
        oids::REGROLE => catalog.roles().find(|r| r.oid == oid).map(|r| quote_ident(&r.name)),
        oids::REGPROC | oids::REGPROCEDURE if catalog.function(oid).is_some() => {
            catalog::routine::shown(catalog, path, oid, ty == oids::REGPROCEDURE)
        }
        oids::REGPROC => facts::regproc(oid),
        oids::REGPROCEDURE => facts::regprocedure(oid),
        oids::REGCOLLATION => catalog.shown_collation(path, oid),
        oids::REGOPER => facts::regoper(oid),
        oids::REGOPERATOR => facts::regoperator(oid),
        _ => None,
    };
    name.unwrap_or_else(|| if oid == 0 { "-".to_owned() } else { oid.to_string() })
}

fn relation(oid: u32, catalog: &Snapshot, path: &[u32]) -> Option<String> {
    let (schema, name) = match (catalog.table(oid), catalog.index(oid)) {
        (Some(table), _) => (table.schema, table.name.clone()),
        (None, Some(index)) => (index.schema, index.name.clone()),
        (None, None) => match facts::index(oid) {
            Some(index) => (catalog::object::ids::PG_CATALOG, index.name.to_owned()),
            None if catalog.composite_of_class(oid).is_some() => {
                let ty = catalog.composite_of_class(oid)?;
                (ty.schema, ty.name.clone())
            }
            None => {
                let table = catalog::system::table_by_oid(Oid(oid))?;
                (table.schema, table.name.clone())
            }
        },
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

/// The oid of what a parameter of such a type names; None for numbers, and for types whose names are
/// not looked up here.
pub fn lookup(ty: Oid, words: &str, catalog: &Snapshot, path: &[u32]) -> Option<Result<u32>> {
    if words == "-" || words.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let missing = |what: &str| err!(UNDEFINED_OBJECT, "{what} \"{words}\" does not exist");
    let find = |parts: Vec<String>| {
        let (schema, name) = match &parts[..] {
            [.., schema, name] => (Some(schema.as_str()), name.as_str()),
            parts => (None, parts.first().map_or("", String::as_str)),
        };
        match ty {
            oids::REGCLASS => {
                let system = catalog::system::find(schema, name).map(|t| t.oid);
                let found = system.or_else(|| Some(catalog.relation(path, schema, name)?.oid()));
                found.ok_or_else(|| catalog.missing_relation(schema, name))
            }
            oids::REGNAMESPACE => {
                Ok(catalog.schema_named(name).ok_or_else(|| missing("schema"))?.oid)
            }
            _ => Ok(catalog.role_named(name).ok_or_else(|| missing("role"))?.oid),
        }
    };
    let known = matches!(ty, oids::REGCLASS | oids::REGNAMESPACE | oids::REGROLE);
    known.then(|| exec::split_name(words).and_then(find))
}
