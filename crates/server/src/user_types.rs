//! Tasks' directories of the types that users made: see `types::user`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::{Oid, Result};
use catalog::{Snapshot, TypeView};
use sched::SpinLock;
use types::user::{Directory, TextSearch, UserType};

/// A session's or background thread's directory of types: what its statement sees of the catalog.
#[derive(Default)]
pub struct SessionTypes(
    SpinLock<Option<Arc<TypeView>>>,
    AtomicBool,
    /// The notices for the client.
    SpinLock<Vec<base::Error>>,
    /// Whether there is anything.
    AtomicBool,
);

impl SessionTypes {
    /// The session sees this from now on.
    pub fn see(&self, catalog: &Arc<Snapshot>, path: &[u32]) {
        let mut seen = self.0.lock();
        let same =
            |view: &&Arc<TypeView>| Arc::ptr_eq(&view.catalog, catalog) && *view.path == *path;
        if seen.as_ref().filter(same).is_none() {
            let view = TypeView { catalog: catalog.clone(), path: path.into() };
            let old = seen.replace(Arc::new(view));
            drop(seen);
            drop(old);
        }
    }

    /// Whether all names are printed in quotes from now on.
    pub fn quote_all(&self, quotes: bool) {
        self.1.store(quotes, Ordering::Relaxed);
    }

    /// Takes what the client is to be told.
    pub fn take_notices(&self) -> Vec<base::Error> {
        if !self.3.load(Ordering::Relaxed) {
            return Vec::new();
        }
        self.3.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.2.lock())
    }

    /// The view that it sees now, for [`SessionTypes::restore`].
    pub fn seen(&self) -> Option<Arc<TypeView>> {
        self.0.lock().clone()
    }

    /// It sees again what it has seen before.
    pub fn restore(&self, seen: Option<Arc<TypeView>>) {
        let old = std::mem::replace(&mut *self.0.lock(), seen);
        drop(old);
    }
}

impl Directory for SessionTypes {
    fn get(&self, ty: Oid) -> Option<Arc<UserType>> {
        self.seen()?.get(ty)
    }

    fn name(&self, ty: Oid) -> Option<String> {
        self.seen()?.name(ty)
    }

    fn cast(&self, source: Oid, target: Oid) -> Option<types::func::CastRow> {
        self.seen()?.cast(source, target)
    }

    fn object_name(&self, kind: Oid, id: u32) -> Option<String> {
        self.seen()?.object_name(kind, id)
    }

    fn object_named(&self, kind: Oid, text: &str) -> Option<Result<u32>> {
        self.seen()?.object_named(kind, text)
    }

    fn text_search_parser(&self, name: &str) -> bool {
        self.seen().is_some_and(|seen| seen.text_search_parser(name))
    }

    fn text_search(&self, kind: Oid, id: u32) -> Option<Arc<TextSearch>> {
        self.seen()?.text_search(kind, id)
    }

    fn notice(&self, notice: base::Error) {
        self.2.lock().push(notice);
        self.3.store(true, Ordering::Relaxed);
    }

    fn quotes_all(&self) -> bool {
        self.1.load(Ordering::Relaxed)
    }
}
