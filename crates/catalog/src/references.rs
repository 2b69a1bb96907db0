//! Locks on what objects name: a schema, type or function can't be dropped while an object that needs it is being made.
//!
//! ```text
//!   maker                                   dropper
//!   CREATE TABLE t (c colour)               DROP TYPE colour
//!   put: share lock on colour ───────────►  waits for the maker's transaction,
//!   looks whether colour is still there     then looks again for users of colour
//! ```
//!
//! Only references to other objects that users made are locked, and none to objects of the same transaction, which nobody
//! else sees. An object that is put again locks what it newly names: what it has named before stays there because of it.

use base::{Oid, Result, err};
use txn::{LockMode, LockTag, LockWait, Transaction};

use crate::object::{Id, Object, ids};
use crate::snapshot::{Snapshot, TypeId};
use crate::store::CatalogTx;
use crate::temp;

/// The lock class of references: `pg_depend`.
const CLASS: Oid = Oid(2608);

impl Object {
    /// The schema that it stands in, if any.
    fn place(&self) -> Option<Id> {
        match self {
            Object::Table(o) => Some(o.schema),
            Object::Index(o) => Some(o.schema),
            Object::Sequence(o) => Some(o.schema),
            Object::Type(o) => Some(o.schema),
            Object::Function(o) => Some(o.schema),
            Object::Collation(o) => Some(o.schema),
            _ => None,
        }
    }

    /// The other objects that it needs; types as the objects that have them.
    fn references(&self, view: &Snapshot) -> Vec<Id> {
        let mut out: Vec<Id> = self.place().into_iter().collect();
        let query = match self {
            Object::Table(table) => table.query.as_ref(),
            _ => None,
        };
        let used = query.iter().flat_map(|q| q.uses.iter().map(|(id, _)| *id));
        for id in self.named().into_iter().chain(self.types()).chain(used) {
            out.push(match view.type_id(id) {
                Some(TypeId::User(owner, _) | TypeId::Row(owner, _)) => owner,
                None => id,
            });
        }
        let system = [ids::PG_CATALOG, ids::INFORMATION_SCHEMA];
        let lasting = |id: &Id| *id != 0 && !system.contains(id) && !temp::is_temporary(*id);
        out.retain(|id| lasting(id) && *id != self.oid());
        out.sort_unstable();
        out.dedup();
        out
    }
}

/// An object as a view has it, of the kinds that name others.
fn known(view: &Snapshot, id: Id) -> Option<Object> {
    if let Some(table) = view.table(id) {
        return Some(Object::Table(Box::new((**table).clone())));
    }
    if let Some(function) = view.function(id) {
        return Some(Object::Function(Box::new((**function).clone())));
    }
    if let Some(ty) = view.user_type(id) {
        return Some(Object::Type(Box::new((**ty).clone())));
    }
    let index = view.index(id).map(|index| Object::Index((**index).clone()));
    index.or_else(|| view.sequence(id).map(|s| Object::Sequence(Box::new((**s).clone()))))
}

/// The word for an object in errors; None: there is none.
fn noun(view: &Snapshot, id: Id) -> Option<&'static str> {
    if view.schema(id).is_some() {
        return Some("schema");
    }
    if view.user_type(id).is_some() {
        return Some("type");
    }
    if view.function(id).is_some() {
        return Some("function");
    }
    if view.collation(id).is_some() {
        return Some("collation");
    }
    let is_relation = view.table(id).is_some() || view.sequence(id).is_some();
    is_relation.then_some("relation")
}

impl CatalogTx {
    /// Locks what an object that is about to be put names.
    ///
    /// # Errors
    /// `42704` when one of the others has been dropped meanwhile; those of locking.
    pub(crate) fn lock_references(&mut self, tx: &Transaction, object: &Object) -> Result<()> {
        // The view as it is: a newer version would hide that somebody else has changed the object since it was read.
        let view = self.seen();
        let mut references = object.references(&view);
        if references.is_empty() {
            return Ok(());
        }
        if let Some(before) = known(&view, object.oid()) {
            let before = before.references(&view);
            references.retain(|id| before.binary_search(id).is_err());
        }
        for id in references {
            let Some(noun) = noun(&view, id).filter(|_| !self.has_changed(id)) else { continue };
            self.lock_reference(tx, id, LockMode::AccessShare)?;
            if crate::references::noun(&self.database.current(), id).is_none() {
                return Err(err!(UNDEFINED_OBJECT, "referenced {noun} was concurrently dropped"));
            }
        }
        Ok(())
    }

    /// Waits for all who make objects that name this one, and keeps others from doing so until the transaction ends.
    ///
    /// # Errors
    /// Those of locking.
    pub fn lock_against_references(&self, tx: &Transaction, id: Id) -> Result<()> {
        if temp::is_temporary(id) {
            return Ok(());
        }
        self.lock_reference(tx, id, LockMode::AccessExclusive)
    }

    fn lock_reference(&self, tx: &Transaction, id: Id, mode: LockMode) -> Result<()> {
        let tag = LockTag::Object(CLASS, u64::from(self.database.oid()) << 32 | u64::from(id));
        tx.manager().locks.lock(tx.locks(), tag, mode, LockWait::Block)?;
        Ok(())
    }
}
