//! Temporary objects: one session's own tables, with their indexes, rights, comments and statistics, views
//! and sequences.
//!
//! They are not in the catalog that all sessions share. A session keeps them in a persistent map of
//! its own, which is laid over the shared snapshot when the session looks
//! ([`crate::CatalogTx::view`]). So making or dropping one writes nothing, publishes no version and
//! costs no other session a plan; a transaction's or savepoint's state to come back to is a pointer.
//!
//! ```text
//!   CatalogTx::view  =  shared snapshot  +  temporary objects  +  uncommitted changes
//! ```
//!
//! * Their ids have the bit [`base::ids::TEMPORARY`]; from it storage and transactions know that
//!   pages need no log and reads no conflicts. Ids of what is gone are given out again, the oldest
//!   first and after some time only, so that nothing which remembers an id for a while (a plan, a
//!   counter) meets another object under it.
//! * What the session has committed is shown to the others in `pg_class` and kin
//!   ([`crate::CatalogTx::view_of_all`]); by name nobody else finds it.
//! * Files and ids are given back when a transaction ends: all that no object names any more.
//!   Nothing of this survives a restart: [`storage::Storage::open`] removes what a crash left.
//! * ON COMMIT DELETE ROWS empties a table after the commit, outside of any transaction: whatever
//!   was in it before had been emptied by an earlier one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use access::AnyIndex;
use base::ids::TEMPORARY;
use base::{Fork, Oid, RelId, Result, WaitEvent, err};
use imbl::OrdMap;
use sched::Mutex;

use crate::object::{Id, Object, OnCommit, Schema, Table, UserTypeKind};
use crate::snapshot::Snapshot;
use crate::store::Catalog;

/// So many ids are gone before the first of them is used again.
const REST: usize = 1024;

/// Objects by id.
pub(crate) type Objects = OrdMap<Id, Arc<Object>>;

/// The server's knowledge of all sessions' temporary objects.
pub(crate) struct Shared(Mutex<SharedTemp>);

struct SharedTemp {
    /// The smallest id that was never used.
    next: u32,
    free: VecDeque<u32>,
    /// The objects that each session has committed, by the number in its schema's name.
    sessions: BTreeMap<u32, Published>,
}

/// One session's schema and objects.
#[derive(Clone)]
struct Published {
    /// The session's database.
    database: Id,
    schema: Schema,
    objects: Objects,
}

impl Default for Shared {
    fn default() -> Shared {
        let state =
            SharedTemp { next: TEMPORARY, free: VecDeque::new(), sessions: BTreeMap::new() };
        Shared(Mutex::new(WaitEvent::LWLockCatalogSnapshot, state))
    }
}

impl Shared {
    /// # Errors
    /// `54000` when there are a thousand million.
    fn take_id(&self) -> Result<u32> {
        let mut state = self.0.lock();
        if state.free.len() > REST
            && let Some(id) = state.free.pop_front()
        {
            return Ok(id);
        }
        if state.next >= 2 * TEMPORARY {
            return Err(err!(PROGRAM_LIMIT_EXCEEDED, "no ids are left for temporary objects"));
        }
        state.next += 1;
        Ok(state.next - 1)
    }

    /// The smallest number that no session's schema has.
    fn begin(&self, database: Id, owner: Id, schema: Id) -> (u32, Schema) {
        let mut state = self.0.lock();
        let mut number = 1;
        while state.sessions.contains_key(&number) {
            number += 1;
        }
        let schema = Schema { oid: schema, name: format!("pg_temp_{number}"), owner };
        let published = Published { database, schema: schema.clone(), objects: Objects::new() };
        state.sessions.insert(number, published);
        (number, schema)
    }

    fn publish(&self, number: u32, objects: &Objects) {
        if let Some(session) = self.0.lock().sessions.get_mut(&number) {
            session.objects = objects.clone();
        }
    }

    fn end(&self, number: u32) {
        self.0.lock().sessions.remove(&number);
    }

    fn free(&self, ids: impl Iterator<Item = u32>) {
        self.0.lock().free.extend(ids);
    }

    /// A snapshot with the schemas and objects of all sessions in a database but one's. None when there
    /// are none.
    pub(crate) fn with_others(
        &self,
        database: Id,
        own: Option<u32>,
        view: &Snapshot,
    ) -> Option<Snapshot> {
        let others: Vec<Published> = {
            let state = self.0.lock();
            let other = |(number, session): &(&u32, &Published)| {
                Some(**number) != own && session.database == database
            };
            state.sessions.iter().filter(other).map(|(_, session)| session.clone()).collect()
        };
        if others.is_empty() {
            return None;
        }
        let mut all = Snapshot::clone(view);
        for session in &others {
            all.put(Object::Schema(session.schema.clone()));
            session.objects.values().for_each(|o| all.put(Object::clone(o)));
        }
        Some(all)
    }
}

/// A session's temporary objects. Dropping it drops them.
pub struct Temp {
    catalog: Arc<Catalog>,
    number: u32,
    schema: Schema,
    /// As the running transaction sees them.
    objects: Objects,
    committed: Objects,
    /// All ids that the session has, and which of them are files'.
    ids: BTreeMap<u32, IsFiles>,
    /// Grows with every change.
    generation: u64,
    names: Names,
    /// Functions of the session that return rows of a temporary table.
    callers: Vec<String>,
}

type IsFiles = bool;

/// The relations' names, to see quickly whether a statement may mean one of them.
#[derive(Default)]
struct Names {
    generation: u64,
    words: Vec<String>,
    /// Some name is no plain word.
    odd: bool,
}

/// A state of a session's objects to come back to.
pub(crate) type TempMark = Objects;

impl Temp {
    /// Gives the session a schema.
    ///
    /// # Errors
    /// As [`Temp::take_id`].
    pub(crate) fn begin(catalog: &Arc<Catalog>, database: Id, owner: Id) -> Result<Temp> {
        let schema = catalog.temporary.take_id()?;
        let (number, schema) = catalog.temporary.begin(database, owner, schema);
        Ok(Temp {
            catalog: catalog.clone(),
            number,
            ids: BTreeMap::from([(schema.oid, false)]),
            schema,
            objects: Objects::new(),
            committed: Objects::new(),
            generation: 1,
            names: Names::default(),
            callers: Vec::new(),
        })
    }

    /// A new id, for an object or for files.
    ///
    /// # Errors
    /// `54000` when none is left.
    pub(crate) fn take_id(&mut self, files: IsFiles) -> Result<u32> {
        let id = self.catalog.temporary.take_id()?;
        self.ids.insert(id, files);
        Ok(id)
    }

    /// The schema's oid.
    pub(crate) fn schema(&self) -> Id {
        self.schema.oid
    }

    /// The number in its name.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// See [`crate::CatalogTx::temporary_generation`].
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Lays the objects over a snapshot.
    pub(crate) fn add_to(&self, snapshot: &mut Snapshot) {
        snapshot.put(Object::Schema(self.schema.clone()));
        snapshot.alias("pg_temp", self.schema.oid);
        self.objects.values().for_each(|o| snapshot.put(Object::clone(o)));
    }

    pub(crate) fn put(&mut self, object: Arc<Object>) {
        self.objects.insert(object.oid(), object);
        self.generation += 1;
    }

    /// Notes a function by whose name a statement may mean a temporary table's rows.
    pub(crate) fn note_caller(&mut self, name: &str) {
        if !self.callers.iter().any(|known| known == name) {
            self.callers.push(name.to_owned());
            self.generation += 1;
        }
    }

    pub(crate) fn remove(&mut self, id: Id) {
        self.objects.remove(&id);
        self.generation += 1;
    }

    /// DISCARD TEMP: all objects go if the transaction commits.
    pub(crate) fn clear(&mut self) {
        if !self.objects.is_empty() {
            self.objects = Objects::new();
            self.generation += 1;
        }
    }

    pub(crate) fn mark(&self) -> TempMark {
        self.objects.clone()
    }

    /// None: there was nothing yet.
    pub(crate) fn rollback_to(&mut self, mark: Option<&TempMark>) {
        let before = mark.cloned().unwrap_or_default();
        if !before.ptr_eq(&self.objects) {
            self.objects = before;
            self.generation += 1;
        }
    }

    fn tables(&self) -> impl Iterator<Item = &Table> {
        self.objects.values().filter_map(|o| match &**o {
            Object::Table(table) => Some(&**table),
            _ => None,
        })
    }

    /// The transaction is about to commit: tables made ON COMMIT DROP go.
    pub(crate) fn before_commit(&mut self) {
        let drop = |t: &&Table| t.on_commit == OnCommit::Drop;
        let gone: Vec<Table> = self.tables().filter(drop).cloned().collect();
        for table in &gone {
            self.drop_table(table);
        }
    }

    fn drop_table(&mut self, table: &Table) {
        let index = |o: &Object| match o {
            Object::Index(index) => index.table == table.oid,
            Object::Sequence(sequence) => sequence.owned_by.is_some_and(|o| o.0 == table.oid),
            _ => false,
        };
        let ours: BTreeSet<Id> = self
            .objects
            .values()
            .filter(|o| index(o))
            .map(|o| o.oid())
            .chain([table.oid, Object::stats_id(table.oid)])
            .collect();
        let about = |o: &Object| match o {
            Object::Comment(comment) => ours.contains(&comment.object),
            Object::Acl(acl) => ours.contains(&acl.object),
            _ => false,
        };
        let about: Vec<Id> = self.objects.values().filter(|o| about(o)).map(|o| o.oid()).collect();
        ours.iter().chain(&about).for_each(|id| self.remove(*id));
        let uses = |t: &&Table| {
            let query = t.query.as_ref();
            t.parents.contains(&table.oid)
                || query.is_some_and(|q| q.uses.iter().any(|(id, _)| *id == table.oid))
        };
        let dependent: Vec<Table> = self.tables().filter(uses).cloned().collect();
        dependent.iter().for_each(|other| self.drop_table(other));
        let others: Vec<Table> = self.tables().cloned().collect();
        for mut other in others {
            let keys = other.constraints.len();
            other.constraints.retain(|c| c.refers_to() != Some(table.oid));
            let before = (other.referenced_by.len(), other.children.len());
            other.referenced_by.retain(|id| *id != table.oid);
            other.children.retain(|id| *id != table.oid);
            let after = (other.referenced_by.len(), other.children.len());
            if keys != other.constraints.len() || before != after {
                self.put(Arc::new(Object::Table(Box::new(other))));
            }
        }
    }

    /// Whether the transaction has changed any.
    pub(crate) fn is_changed(&self) -> bool {
        !self.committed.ptr_eq(&self.objects)
    }

    /// The transaction has ended. Empties tables that are to be, shows the others what there is now,
    /// gives back what is no longer used.
    pub(crate) fn end_transaction(&mut self, committed: bool) {
        if !committed {
            let before = self.committed.clone();
            self.rollback_to(Some(&before));
        } else {
            let emptied = |t: &&Table| t.on_commit == OnCommit::DeleteRows;
            for table in self.tables().filter(emptied) {
                if let Err(error) = self.empty(table) {
                    eprintln!("WARNING:  could not empty a temporary table: {error}");
                }
            }
        }
        if committed && !self.committed.ptr_eq(&self.objects) {
            self.committed = self.objects.clone();
            self.catalog.temporary.publish(self.number, &self.committed);
        }
        self.give_back();
    }

    /// Empties a table in place.
    fn empty(&self, table: &Table) -> Result<()> {
        let storage = &self.catalog.storage;
        if storage.block_count(RelId(table.rel), Fork::Main)? == 0 {
            return Ok(());
        }
        let indexes =
            table.indexes.iter().filter_map(|id| match self.objects.get(id).map(|o| &**o) {
                Some(Object::Index(index)) => Some((RelId(index.rel), index.method)),
                _ => None,
            });
        for (rel, method) in indexes {
            storage.truncate(rel, Fork::Main, 0)?;
            access::reset(storage, rel);
            AnyIndex::create(method, storage, rel)?;
        }
        storage.truncate(RelId(table.rel), Fork::Main, 0)?;
        access::reset(storage, RelId(table.rel));
        Ok(())
    }

    /// Gives back the ids that no object has, with their files. `committed` and `objects` are the
    /// same.
    fn give_back(&mut self) {
        let mut used = BTreeSet::from([self.schema.oid]);
        for object in self.objects.values() {
            used.insert(object.oid() & !Object::STATS);
            match &**object {
                Object::Table(table) => {
                    used.insert(table.rel);
                    used.extend(table.row_type);
                    used.extend(table.constraints.iter().map(|c| c.oid));
                }
                Object::Index(index) => {
                    used.insert(index.rel);
                }
                Object::Sequence(sequence) => {
                    used.insert(sequence.rel);
                }
                Object::Type(ty) => {
                    used.extend([ty.array, ty.class]);
                    if let UserTypeKind::Enum(labels) = &ty.kind {
                        used.extend(labels.iter().map(|label| label.oid));
                    }
                }
                _ => {}
            }
        }
        let is_unused = |id: &&u32| !used.contains(*id);
        let unused: Vec<u32> = self.ids.keys().filter(is_unused).copied().collect();
        if unused.is_empty() {
            return;
        }
        let storage = &self.catalog.storage;
        for id in &unused {
            if self.ids.remove(id) != Some(true) {
                continue;
            }
            self.catalog.sequences.forget(*id);
            if let Err(error) = crate::store::drop_files(storage, RelId(*id)) {
                eprintln!("WARNING:  could not remove a temporary relation's files: {error}");
            }
            access::reset(storage, RelId(*id));
            access::reset(storage, crate::overflow_rel(RelId(*id)));
        }
        self.catalog.temporary.free(unused.into_iter());
    }

    /// Whether a statement may mean one of the objects: a word of it is a relation's name, whatever
    /// its case, or begins with `pg_temp`, or the text can hide names.
    pub(crate) fn may_be_named_in(&mut self, text: &str) -> bool {
        self.note_names();
        if self.names.odd || text.contains('\\') || text.contains("U&") || text.contains("u&") {
            return true;
        }
        let mut words = text.split(|c: char| !is_word(c)).filter(|w| !w.is_empty());
        words.any(|word| {
            let is = |name: &String| name.eq_ignore_ascii_case(word);
            let schema = word.get(..7).is_some_and(|w| w.eq_ignore_ascii_case("pg_temp"));
            schema || self.names.words.iter().any(is)
        })
    }

    fn note_names(&mut self) {
        if self.names.generation == self.generation {
            return;
        }
        let name = |o: &Arc<Object>| match &**o {
            Object::Table(table) => Some(table.name.clone()),
            Object::Index(index) => Some(index.name.clone()),
            Object::Sequence(sequence) => Some(sequence.name.clone()),
            Object::Type(ty) => Some(ty.name.clone()),
            _ => None,
        };
        let own = self.objects.values().filter_map(name);
        let words: Vec<String> = own.chain(self.callers.iter().cloned()).collect();
        let odd = words.iter().any(|w| !w.chars().all(is_word));
        self.names = Names { generation: self.generation, words, odd };
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii()
}

impl Drop for Temp {
    fn drop(&mut self) {
        self.objects = Objects::new();
        self.committed = Objects::new();
        self.give_back();
        self.catalog.temporary.end(self.number);
        self.catalog.temporary.free([self.schema.oid].into_iter());
    }
}

/// Whether an object of this id, or its statistics, is temporary.
pub(crate) fn is_temporary(id: Id) -> bool {
    Oid(id).is_temporary()
}
