//! Class paths: the jars of a schema, as the tables of the extension have them, and the loaders of the JVM for them.
//!
//! A loader is known by its database and the digests of its jars, so that nothing that a transaction takes back can
//! stay in it, and all sessions have their classes, and their static fields, from the same one. It goes when no
//! compiled function needs it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use base::{Error, Result, err};
use exec::ExecContext;
use exec::nested::{self, RowList};
use types::Datum;

use crate::call;
use crate::value::{self, Reader};

/// Digests of jars, in the order of the class path.
pub type Digests = Vec<Vec<u8>>;

type Key = (u32, Digests);

static LOADERS: Mutex<Option<HashMap<Key, Weak<Loader>>>> = Mutex::new(None);

/// A loader of the JVM.
pub struct Loader {
    /// Its number there; 0: the loader of the classes that the server brings.
    pub number: i32,
    /// The jars.
    pub digests: Digests,
}

impl Drop for Loader {
    fn drop(&mut self) {
        call::forget(self.number);
    }
}

/// The class path of a schema; that of `public` where it has none.
const PATH: &str = "FROM sqlj.classpath_entry AS c JOIN sqlj.jar_repository AS r USING (jarid) \
    WHERE c.schemaname = CASE WHEN EXISTS (SELECT FROM sqlj.classpath_entry AS own WHERE own.schemaname = $1::text) \
    THEN $1::text ELSE 'public' END ORDER BY c.ordinal";

fn query(what: &str, schema: &str, cx: &mut ExecContext<'_>) -> Result<Vec<Vec<Datum>>> {
    let prepared = nested::prepare(&format!("SELECT {what} {PATH}"), &[], cx)?;
    let types: Vec<base::Oid> = prepared.columns.iter().map(|c| c.ty).collect();
    let mut list = RowList::of(&types);
    // As definitions are seen: what is committed by now.
    let mut snapshot = cx.tx.latest_snapshot();
    snapshot.command = cx.tx.command();
    nested::run(&prepared, &[Datum::text(schema)], snapshot, cx, &mut list)?;
    Ok(list.rows)
}

fn bytes(value: &Datum) -> &[u8] {
    match value {
        Datum::Bytea(bytes) => bytes,
        _ => &[],
    }
}

/// `42704` unless the extension is there.
fn check_extension(cx: &mut ExecContext<'_>) -> Result<()> {
    let view = cx.catalog_tx.view();
    match catalog::system::named::extension(&view, "java") {
        Some(_) => Ok(()),
        None => Err(err!(UNDEFINED_OBJECT, "language \"java\" does not exist")
            .hint("Use CREATE EXTENSION to load the language into the database.")),
    }
}

/// The digests of a schema's jars now.
///
/// # Errors
/// `42704` without the extension.
pub fn digests(schema: &str, cx: &mut ExecContext<'_>) -> Result<Digests> {
    check_extension(cx)?;
    let rows = query("r.jardigest", schema, cx)?;
    Ok(rows.iter().filter_map(|row| row.first()).map(|v| bytes(v).to_vec()).collect())
}

/// The loader of a schema's class path.
///
/// # Errors
/// Those of the JVM.
pub fn loader(schema: &str, cx: &mut ExecContext<'_>) -> Result<Arc<Loader>> {
    let digests = digests(schema, cx)?;
    if digests.is_empty() {
        return Ok(Arc::new(Loader { number: 0, digests }));
    }
    let key = (cx.database.1, digests);
    let found = |key: &Key| {
        let loaders = LOADERS.lock().unwrap_or_else(PoisonError::into_inner);
        loaders.as_ref()?.get(key)?.upgrade()
    };
    if let Some(loader) = found(&key) {
        return Ok(loader);
    }
    let rows = query("r.jarname::text, r.jarimage, r.jardigest", schema, cx)?;
    let now: Digests =
        rows.iter().filter_map(|row| row.get(2)).map(|v| bytes(v).to_vec()).collect();
    let mut job = vec![3];
    value::put_count(rows.len(), &mut job)?;
    for row in &rows {
        let [Datum::Text(name), image, _] = &row[..] else {
            return Err(Error::internal("a jar without a name"));
        };
        value::put_text(name, &mut job)?;
        value::put_count(bytes(image).len(), &mut job)?;
        sched::memory::ask(bytes(image).len())?;
        job.extend_from_slice(bytes(image));
    }
    drop(rows);
    let answer = call::plain(job, cx)?;
    let number = Reader(answer.payload()).i32()?;
    let made = Arc::new(Loader { number, digests: now.clone() });
    let mut loaders = LOADERS.lock().unwrap_or_else(PoisonError::into_inner);
    let loaders = loaders.get_or_insert_default();
    loaders.retain(|_, loader| loader.strong_count() > 0);
    let key = (key.0, now);
    // Another session may have been faster: there must be one alone.
    if let Some(first) = loaders.get(&key).and_then(Weak::upgrade) {
        return Ok(first);
    }
    loaders.insert(key, Arc::downgrade(&made));
    Ok(made)
}
