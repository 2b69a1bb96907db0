//! Objects of waits by name.

use sched::observe::WaitObject;

use crate::server::Server;

/// The object of a wait, relations by name.
pub fn object(server: &Server, object: WaitObject) -> String {
    let databases = &server.engine.catalog;
    let found = match (object, object.file()) {
        (WaitObject::Relation(database, oid), _) => databases.database(database.0).and_then(|d| {
            let catalog = d.current();
            let index = || catalog.index(oid.0).map(|i| i.name.clone());
            catalog.table(oid.0).map(|t| t.name.clone()).or_else(index)
        }),
        (_, Some(file)) => databases.databases().iter().find_map(|d| {
            let catalog = d.current();
            let index = || catalog.indexes().find(|i| i.rel == file.0).map(|i| i.name.clone());
            let table = catalog.tables().find(|t| t.rel == file.0).map(|t| t.name.clone());
            table.or_else(index)
        }),
        _ => None,
    };
    let Some(name) = found else { return object.to_string() };
    match object {
        WaitObject::Extension(_) => format!("extension of {name}"),
        WaitObject::Page(page) => format!("page {} of {name}", page.block),
        WaitObject::Tuple(_, tid) => format!("tuple {tid} of {name}"),
        _ => name,
    }
}
