//! Persistence and change of the catalog.
//!
//! ```text
//! row of the internal heap (relation 1):  database u32 | id u32 | part u16 | parts u16 | JSON of this part
//! ```
//! Database 0 ([`SHARED`]): the object belongs to all. A copy of a database has objects with the ids of
//! the original, so that what rows say of types is true in both; only its files have numbers of their own.
//!
//! An object longer than a page takes several rows. A change deletes an object's rows and adds new
//! ones under the changing transaction, so the heap's own visibility makes definitions
//! transactional and recovery needs nothing of this module: it reads the heap when it opens.
//!
//! Files: a relation's files are made before the transaction that needs them commits, and removed
//! after the one that drops them is durable. A crash in between leaves files that no object names:
//! [`Catalog::open`] sets them aside, never without having read a whole catalog first.
//!
//! Invariants:
//! * A database's version grows with each publication; equal versions mean equal snapshots, and no two
//!   databases ever have the same one.
//! * An object is changed by one transaction at a time: [`CatalogTx::put`] holds a lock on its id
//!   until the transaction ends, and refuses when the object is not the one that its view showed.
//! * Publication happens inside the commit, after its place in the log is fixed and before anyone
//!   can see it.
//! * Nobody is given a version that a crash could take back ([`OpenDatabase::current`] waits): what a session
//!   learns from the catalog, that a table is there and empty, say, is noted nowhere.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use access::Heap;
use access::heap::InsertHint;
use base::{Csn, Error, Oid, RelId, Result, TupleId, WaitEvent, err};
use imbl::OrdMap;
use sched::{LwLock, Mutex};
use storage::Storage;
use txn::{Isolation, LockMode, LockTag, LockWait, Transaction, TxnManager};

use crate::database::{Closed, OpenDatabase, SHARED};
use crate::object::{Id, Index, Object, Table, ids};
use crate::prepared::Restored;
use crate::sequence::Sequences;
use crate::snapshot::{Snapshot, TypeId};
use crate::temp::{self, Temp, TempMark};

/// The internal heap's files.
pub const CATALOG_REL: RelId = RelId::CATALOG;
/// Bytes of JSON in one row.
const PART_BYTES: usize = 4000;
const PART_HEADER: usize = 12;

/// The server's catalog.
pub struct Catalog {
    pub(crate) storage: Arc<Storage>,
    pub(crate) heap: Heap,
    shared: Arc<OpenDatabase>,
    databases: LwLock<HashMap<Id, Arc<OpenDatabase>>>,
    /// The last number that was given to a version.
    versions: AtomicU64,
    /// Values of sequences.
    pub sequences: Sequences,
    /// Where the rows of each published object are: (version, root) of each part.
    pub(crate) places: Mutex<HashMap<Key, Places>>,
    /// All sessions' temporary objects.
    pub(crate) temporary: temp::Shared,
    /// Transactions that were prepared before the start.
    pub(crate) restored: Mutex<Vec<Restored>>,
}

/// An object's database, or [`SHARED`], and its id.
pub(crate) type Key = (Id, Id);
/// Rows of one object: (version's place, root of its chain).
pub(crate) type Places = Arc<[(TupleId, TupleId)]>;
/// An object's id with what it is now; None: it is gone.
pub(crate) type Change = (Id, Option<Arc<Object>>);

/// A session's view of the catalog, with its transaction's own changes. After
/// [`CatalogTx::committed`] or [`CatalogTx::aborted`] it serves the session's next transaction.
pub struct CatalogTx {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) database: Arc<OpenDatabase>,
    /// The published snapshot that the view was made from.
    base: Arc<Snapshot>,
    /// Own changes over it, when there are any.
    pub(crate) private: Option<Arc<Snapshot>>,
    /// The changes that `private` lacks, in the order in which they were made.
    pub(crate) pending: Vec<Change>,
    /// How many such versions there have been.
    generation: u64,
    pub(crate) changes: Changes,
    /// The session's own objects, once it has made one.
    pub(crate) temp: Option<Box<Temp>>,
    /// Databases that nobody may enter before the transaction ends.
    pub(crate) doors: Vec<Closed>,
    /// The view is another thread's and stays as it is.
    fixed: bool,
}

/// The view that helpers of a statement have of the catalog.
#[derive(Clone)]
pub struct HelperView {
    catalog: Arc<Catalog>,
    database: Arc<OpenDatabase>,
    /// The statement's transaction has changes: the version below, the view with them, its number.
    private: Option<(Arc<Snapshot>, Arc<Snapshot>, u64)>,
}

impl HelperView {
    /// A helper's own access to the catalog, which it does not change.
    pub fn open(&self) -> CatalogTx {
        let mut made = CatalogTx::new(&self.catalog, &self.database);
        if let Some((base, view, generation)) = &self.private {
            (made.base, made.private) = (base.clone(), Some(view.clone()));
            (made.generation, made.fixed) = (*generation, true);
        }
        made
    }
}

/// The changes of a transaction; cheap to copy for savepoints.
#[derive(Clone, Default)]
pub(crate) struct Changes {
    pub(crate) objects: OrdMap<Key, Option<Arc<Object>>>,
    /// Rows of own versions; empty when the object is gone.
    pub(crate) places: OrdMap<Key, Places>,
    pub(crate) drop_at_commit: imbl::Vector<RelId>,
    pub(crate) drop_at_abort: imbl::Vector<RelId>,
}

impl Changes {
    /// Those of one database, or of what all share: ids with the new objects, if any.
    fn of(&self, database: Id) -> impl Iterator<Item = (Id, &Option<Arc<Object>>)> {
        let range = (database, 0)..=(database, Id::MAX);
        self.objects.range(range).map(|((_, id), object)| (*id, object))
    }

    /// Those that a database's sessions see.
    fn seen_in(&self, database: Id) -> impl Iterator<Item = (Id, &Option<Arc<Object>>)> {
        let own = (database != SHARED).then_some(database);
        [SHARED].into_iter().chain(own).flat_map(|part| self.of(part))
    }
}

/// The content of the internal heap.
#[derive(Default)]
pub(crate) struct Contents {
    /// By database, or [`SHARED`].
    pub(crate) objects: HashMap<Id, Vec<Object>>,
    pub(crate) places: HashMap<Key, Places>,
}

/// See [`CatalogTx::savepoint`].
#[derive(Clone)]
pub struct CatalogMark(Changes, Option<TempMark>);

impl Catalog {
    /// Reads the internal heap and lets storage begin its service; in a new directory writes the initial
    /// objects first. Sets aside files that no object names.
    ///
    /// # Errors
    /// I/O errors; `XX001` when a row can't be read; `58P01` when an object's file is missing.
    pub fn open(storage: &Arc<Storage>, txn: &Arc<TxnManager>) -> Result<Arc<Catalog>> {
        let (catalog, tx, is_new) = Catalog::load(storage, txn)?;
        catalog.check_files()?;
        if txn.follows() {
            if is_new {
                return Err(err!(
                    OBJECT_NOT_IN_PREREQUISITE_STATE,
                    "a standby begins with a copy of its primary: the data directory is empty"
                ));
            }
            storage.begin_following()?;
            return Ok(catalog);
        }
        storage.begin_service()?;
        if is_new {
            if !storage.has_files(CATALOG_REL)? {
                storage.create_relation(CATALOG_REL)?;
            }
            catalog.bootstrap(&tx)?;
        }
        drop(tx);
        catalog.set_orphans_aside()?;
        storage.set_filled()?;
        Ok(catalog)
    }

    /// Reads the internal heap of a directory that is only looked at.
    ///
    /// # Errors
    /// As [`Catalog::open`]; `55000` when the directory has never been served.
    pub fn look(storage: &Arc<Storage>, txn: &Arc<TxnManager>) -> Result<Arc<Catalog>> {
        let (catalog, _, is_new) = Catalog::load(storage, txn)?;
        if is_new {
            return Err(err!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "the data directory has never been served: it is empty"
            ));
        }
        Ok(catalog)
    }

    fn load(
        storage: &Arc<Storage>,
        txn: &Arc<TxnManager>,
    ) -> Result<(Arc<Catalog>, Transaction, bool)> {
        let heap = Heap::open(storage, CATALOG_REL);
        let owner = txn.new_owner(&sched::current(), std::process::id() as i32);
        let tx = txn.begin(&owner, Isolation::ReadCommitted, false);
        let contents = read(&heap, &tx)?;
        let is_new = contents.objects.is_empty();
        if is_new && !storage.is_new() {
            return Err(err!(
                DATA_CORRUPTED,
                "the catalog in file \"base/{}\" is empty",
                CATALOG_REL.0
            )
            .hint("Restore the data directory from a backup."));
        }
        let mut versions = 0;
        let mut open = |database, parts: &[Id]| {
            versions += 1;
            let mut snapshot = Snapshot::default();
            snapshot.version = versions;
            let objects = parts.iter().filter_map(|part| contents.objects.get(part)).flatten();
            objects.for_each(|object| snapshot.put(object.clone()));
            OpenDatabase::new(storage, database, snapshot)
        };
        let shared = open(SHARED, &[SHARED]);
        let names = shared.current();
        let databases = names.databases().map(|d| (d.oid, open(d.oid, &[SHARED, d.oid]))).collect();
        let catalog = Arc::new(Catalog {
            storage: storage.clone(),
            heap,
            shared,
            databases: LwLock::new(WaitEvent::LWLockCatalogSnapshot, databases),
            versions: AtomicU64::new(versions),
            sequences: Sequences::new(storage),
            places: Mutex::new(WaitEvent::LWLockCatalogSnapshot, contents.places),
            temporary: temp::Shared::default(),
            restored: Mutex::new(WaitEvent::LWLockTwoPhaseState, Vec::new()),
        });
        catalog.restore_prepared(txn)?;
        Ok((catalog, tx, is_new))
    }

    fn bootstrap(self: &Arc<Self>, tx: &Transaction) -> Result<()> {
        let mut changes = CatalogTx::new(self, &self.shared);
        for object in crate::object::initial() {
            if object.is_shared() {
                changes.put(tx, object)?;
                continue;
            }
            for database in [ids::TEMPLATE1, ids::TEMPLATE0, ids::POSTGRES_DB] {
                changes.put_in(tx, database, object.clone())?;
            }
        }
        let lsn = tx.commit(&[], |csn| changes.publish(csn))?;
        self.storage.wal.flush(lsn)?;
        changes.committed();
        Ok(())
    }

    /// Relations that objects name, in order, but for large values.
    fn known_files(&self) -> Vec<RelId> {
        let mut known = vec![CATALOG_REL];
        for database in self.databases() {
            known.extend(database.current().files());
        }
        known.extend(self.files_of_restored());
        known.sort_unstable();
        known.dedup();
        known
    }

    /// Whether every relation has its file.
    fn check_files(&self) -> Result<()> {
        let known = self.known_files();
        // A new directory has none yet.
        if known.len() == 1 {
            return Ok(());
        }
        let there: HashSet<RelId> = self.storage.relations()?.into_iter().collect();
        for rel in known {
            if !there.contains(&rel) && !self.storage.has_files(rel)? {
                return Err(err!(UNDEFINED_FILE, "file \"base/{}\" is missing", rel.0)
                    .detail("The catalog names it.")
                    .hint("Restore the data directory from a backup."));
            }
        }
        Ok(())
    }

    /// The catalog is read: what it does not know is nobody's, and yet it is not removed.
    fn set_orphans_aside(&self) -> Result<()> {
        let known = self.known_files();
        let mut orphans = self.storage.relations()?;
        orphans.retain(|rel| known.binary_search(&RelId(rel.0 & !OVERFLOW_BIT)).is_err());
        if orphans.is_empty() { Ok(()) } else { self.storage.set_aside(&orphans) }
    }

    /// The objects that all databases share, as a session sees them that is in none of the databases.
    pub fn shared(&self) -> &Arc<OpenDatabase> {
        &self.shared
    }

    /// A database by its oid.
    pub fn database(&self, oid: Id) -> Option<Arc<OpenDatabase>> {
        self.databases.read().get(&oid).cloned()
    }

    /// All databases, by oid.
    pub fn databases(&self) -> Vec<Arc<OpenDatabase>> {
        let mut all: Vec<_> = self.databases.read().values().cloned().collect();
        all.sort_unstable_by_key(|d| d.oid());
        all
    }

    /// The internal heap, for vacuum.
    pub fn heap(&self) -> &Heap {
        &self.heap
    }
}

/// An object's rows.
#[derive(Default)]
pub(crate) struct ObjectRows {
    pub(crate) json: Vec<u8>,
    pub(crate) places: Vec<(TupleId, TupleId)>,
    /// All parts are there.
    pub(crate) is_whole: bool,
}

/// The rows of the internal heap that a transaction sees.
pub(crate) fn rows(heap: &Heap, tx: &Transaction) -> Result<BTreeMap<Key, ObjectRows>> {
    let mut parts: BTreeMap<(Key, u16), (TupleId, TupleId, Vec<u8>)> = BTreeMap::new();
    let snapshot = tx.snapshot();
    let mut scan = heap.scan(&snapshot, None);
    let mut bad = false;
    let mut counts: HashMap<Key, usize> = HashMap::new();
    while scan.next_page(tx, |tid, root, row| match row_header(row) {
        Some((key, part, count)) => {
            let twice = parts.insert((key, part), (tid, root, row[PART_HEADER..].to_vec()));
            bad |= twice.is_some();
            counts.insert(key, usize::from(count));
        }
        None => bad = true,
    })? {}
    tx.end_statement();
    if bad {
        return Err(unreadable());
    }
    let mut found: BTreeMap<Key, ObjectRows> = BTreeMap::new();
    for ((key, _), (tid, root, bytes)) in parts {
        let entry = found.entry(key).or_default();
        entry.json.extend_from_slice(&bytes);
        entry.places.push((tid, root));
    }
    for (key, object) in &mut found {
        object.is_whole = counts.get(key) == Some(&object.places.len());
    }
    Ok(found)
}

fn unreadable() -> Error {
    err!(DATA_CORRUPTED, "the catalog has a row that cannot be read")
}

/// All that a transaction sees of the internal heap.
pub(crate) fn read(heap: &Heap, tx: &Transaction) -> Result<Contents> {
    let mut contents = Contents::default();
    for (key, rows) in rows(heap, tx)? {
        let object = serde_json::from_slice::<Object>(&rows.json).ok().filter(|_| rows.is_whole);
        let of = || unreadable().detail(format!("It is of object {} in {}.", key.1, key.0));
        contents.objects.entry(key.0).or_default().push(object.ok_or_else(of)?);
        contents.places.insert(key, rows.places.into());
    }
    Ok(contents)
}

impl CatalogTx {
    /// For a new session (or transaction) in a database; no cost until it changes something.
    pub fn new(catalog: &Arc<Catalog>, database: &Arc<OpenDatabase>) -> CatalogTx {
        CatalogTx {
            catalog: catalog.clone(),
            database: database.clone(),
            base: database.current(),
            private: None,
            pending: Vec::new(),
            generation: 0,
            changes: Changes::default(),
            temp: None,
            doors: Vec::new(),
            fixed: false,
        }
    }

    /// For a helper of a statement: it reads what the statement's own thread sees, with that transaction's changes.
    pub fn for_helper(&mut self) -> HelperView {
        let private = if self.is_private() { Some(self.view()) } else { None };
        HelperView {
            catalog: self.catalog.clone(),
            database: self.database.clone(),
            private: private.map(|view| (self.base.clone(), view, self.generation)),
        }
    }

    /// The database that it is of.
    pub fn open_database(&self) -> &Arc<OpenDatabase> {
        &self.database
    }

    /// The session goes into a database; it has done nothing yet.
    pub fn enter(&mut self, database: &Arc<OpenDatabase>) {
        self.base = database.current();
        self.database = database.clone();
        self.private = None;
    }

    /// The published version.
    pub fn published(&mut self) -> &Arc<Snapshot> {
        if !self.fixed && self.base.version != self.database.version() {
            self.base = self.database.current();
            self.private = None;
        }
        &self.base
    }

    /// The transaction's view now: the published version with the session's temporary objects and
    /// the transaction's own changes.
    pub fn view(&mut self) -> Arc<Snapshot> {
        let base = self.published().clone();
        if !self.is_private() {
            return base;
        }
        if let (true, Some(view)) = (self.fixed, &self.private) {
            return view.clone();
        }
        if let Some(private) = self.private.as_mut().filter(|_| !self.pending.is_empty()) {
            let snapshot = Arc::make_mut(private);
            for (id, object) in self.pending.drain(..) {
                match object {
                    Some(object) => snapshot.put(Object::clone(&object)),
                    None => snapshot.remove(id),
                }
            }
            self.generation += 1;
        }
        self.pending.clear();
        self.generation += u64::from(self.private.is_none());
        let (changes, temp, database) = (&self.changes, &self.temp, self.database.oid());
        let private = self.private.get_or_insert_with(|| {
            let mut snapshot = apply(&base, changes, database, 0);
            if let Some(temp) = temp {
                temp.add_to(&mut snapshot);
            }
            Arc::new(snapshot)
        });
        private.clone()
    }

    /// The identity of this session's view: the published version, and the number of the
    /// private one over it (0: none).
    pub fn stamp(&mut self) -> (u64, u64) {
        if !self.is_private() {
            return (self.published().version, 0);
        }
        drop(self.view());
        (self.base.version, self.generation)
    }

    /// As [`CatalogTx::view`], with the temporary objects of all sessions in the database: what the
    /// system's tables show.
    pub fn view_of_all(&mut self) -> Arc<Snapshot> {
        let view = self.view();
        let own = self.temp.as_ref().map(|t| t.number());
        let all = self.catalog.temporary.with_others(self.database.oid(), own, &view);
        all.map_or(view, Arc::new)
    }

    /// Whether its view is not the published version.
    fn is_private(&self) -> bool {
        self.changed() || self.temp.is_some() || self.fixed
    }

    /// The session's schema for temporary objects, if it has one.
    pub fn temporary_schema(&self) -> Option<Id> {
        self.temp.as_ref().map(|t| t.schema())
    }

    /// The same, made if need be.
    ///
    /// # Errors
    /// `54000` when no ids are left.
    pub fn make_temporary_schema(&mut self, owner: Id) -> Result<Id> {
        if self.temp.is_none() {
            self.temp = Some(Box::new(Temp::begin(&self.catalog, self.database.oid(), owner)?));
            self.private = None;
        }
        Ok(self.temp.as_ref().map_or(0, |t| t.schema()))
    }

    /// An id for a temporary object, or for its files.
    ///
    /// # Errors
    /// `54000` when no ids are left.
    pub fn new_temporary_id(&mut self, files: bool) -> Result<u32> {
        match &mut self.temp {
            Some(temp) => temp.take_id(files),
            None => Err(Error::internal("a temporary object without a schema for it")),
        }
    }

    /// Changes whenever the session's temporary objects do.
    pub fn temporary_generation(&self) -> u64 {
        self.temp.as_ref().map_or(0, |t| t.generation())
    }

    /// Whether the statement may mean a temporary object of this session. If not, its plan is the one
    /// that any session would make.
    pub fn may_mean_temporary(&mut self, text: &str) -> bool {
        self.temp.as_mut().is_some_and(|t| t.may_be_named_in(text))
    }

    /// DISCARD TEMP: the session's temporary objects go if the transaction commits.
    pub fn discard_temporary(&mut self) {
        if let Some(temp) = &mut self.temp {
            temp.clear();
            self.private = None;
        }
    }

    /// The session ends: its temporary objects go at once.
    pub fn end_session(&mut self) {
        self.temp = None;
        self.private = None;
    }

    /// The transaction is about to commit: temporary tables made ON COMMIT DROP go.
    pub fn before_commit(&mut self) {
        if let Some(temp) = &mut self.temp {
            temp.before_commit();
            self.private = None;
        }
    }

    /// The transaction has ended: what it did to temporary objects stays or is undone; files that are
    /// no longer used go.
    pub fn end_temporary(&mut self, committed: bool) {
        if let Some(temp) = &mut self.temp {
            temp.end_transaction(committed);
            self.private = None;
        }
    }

    /// Whether it has changes of its own (then plans are not shared).
    pub fn changed(&self) -> bool {
        !self.changes.objects.is_empty()
    }

    /// Whether its end needs [`CatalogTx::committed`] or [`CatalogTx::aborted`] to do something.
    pub fn has_work(&self) -> bool {
        self.changed()
            || !self.changes.drop_at_commit.is_empty()
            || !self.changes.drop_at_abort.is_empty()
            || !self.doors.is_empty()
    }

    /// Keeps a database's gate closed until the transaction ends.
    pub fn keep_closed(&mut self, gate: Closed) {
        self.doors.push(gate);
    }

    /// Puts an object in (new or changed): into the heap and into the private version.
    ///
    /// # Errors
    /// `XX000` when somebody else changed it since the view was made; `0A000` when it calls a temporary function
    /// or uses a temporary type and is permanent; lock and I/O errors.
    pub fn put(&mut self, tx: &Transaction, object: Object) -> Result<()> {
        let id = object.oid();
        if let Some(temp) = self.temp.as_mut().filter(|_| temp::is_temporary(id)) {
            let object = Arc::new(object);
            temp.put(object.clone());
            self.follow(id, Some(object));
            return Ok(());
        }
        if let (Object::Function(function), Some(temp)) = (&object, &mut self.temp)
            && function.row_of.is_some_and(temp::is_temporary)
        {
            temp.note_caller(&function.name);
        }
        // It would stand there without the function once the session has ended.
        if self.temp.is_some()
            && let Some(called) = object.named().into_iter().find(|id| temp::is_temporary(*id))
            && self.view().function(called).is_some()
        {
            return Err(Error::unsupported("a permanent object that calls a temporary function"));
        }
        if self.temp.is_some()
            && let Some(ty) = object.types().into_iter().find(|id| temp::is_temporary(*id))
            && matches!(self.view().type_id(ty), Some(TypeId::User(..)))
        {
            return Err(Error::unsupported("a permanent object that uses a temporary type"));
        }
        self.lock_references(tx, &object)?;
        let key = (if object.is_shared() { SHARED } else { self.database.oid() }, id);
        self.claim(tx, key)?;
        self.write(tx, key, object)
    }

    /// The view as it was last asked for, without what others have committed since.
    pub(crate) fn seen(&self) -> Arc<Snapshot> {
        self.private.as_ref().unwrap_or(&self.base).clone()
    }

    /// Whether the transaction has made or changed an object.
    pub fn has_changed(&self, id: Id) -> bool {
        self.changes.objects.contains_key(&(self.database.oid(), id))
    }

    /// Holds an object against changes of other transactions until this one ends. The view from then on has it as
    /// those left it that changed it first, so it can be read, changed and put where locks let several do that.
    ///
    /// # Errors
    /// Deadlocks, timeouts, interrupts.
    pub fn hold(&mut self, tx: &Transaction, id: Id) -> Result<()> {
        if temp::is_temporary(id) {
            return Ok(());
        }
        let shared = self.view().is_shared(id);
        self.lock(tx, (if shared { SHARED } else { self.database.oid() }, id)).map(|_| ())
    }

    /// Puts an object into a database that is being made. It may name files of this transaction's.
    ///
    /// # Errors
    /// I/O errors.
    pub fn put_in(&mut self, tx: &Transaction, database: Id, object: Object) -> Result<()> {
        self.write(tx, (database, object.oid()), object)
    }

    /// Takes everything out of a database that is being dropped, and its files when the transaction
    /// commits. The caller has closed it.
    ///
    /// # Errors
    /// I/O errors.
    pub fn clear_database(&mut self, tx: &Transaction, database: &OpenDatabase) -> Result<()> {
        let own = |key: &&Key| key.0 == database.oid();
        let keys: Vec<Key> = self.catalog.places.lock().keys().filter(own).copied().collect();
        for key in keys {
            sched::check_interrupts()?;
            self.delete_rows(tx, key)?;
            self.record(key, None, Arc::from([]));
        }
        database.current().files().for_each(|rel| self.drop_files_at_commit(rel));
        Ok(())
    }

    fn write(&mut self, tx: &Transaction, key: Key, object: Object) -> Result<()> {
        let json = serde_json::to_vec(&object)
            .map_err(|e| Error::internal(format!("could not write a catalog object: {e}")))?;
        // JSON has no NaN and no infinity: a statement fails, rather than every start from now on.
        serde_json::from_slice::<Object>(&json).map_err(|e| {
            Error::internal(format!("a catalog object could not be read again: {e}"))
        })?;
        self.delete_rows(tx, key)?;
        let places = self.insert_rows(tx, key, &json)?;
        self.record(key, Some(Arc::new(object)), places);
        Ok(())
    }

    /// Takes an object out.
    ///
    /// # Errors
    /// As [`CatalogTx::put`].
    pub fn remove(&mut self, tx: &Transaction, id: Id) -> Result<()> {
        if let Some(temp) = self.temp.as_mut().filter(|_| temp::is_temporary(id)) {
            temp.remove(id);
            self.follow(id, None);
            return Ok(());
        }
        let shared = self.view().is_shared(id);
        let key = (if shared { SHARED } else { self.database.oid() }, id);
        // Whatever the object has become meanwhile (new statistics of a table that is dropped) goes away.
        if self.lock(tx, key)? && !self.catalog.places.lock().contains_key(&key) {
            return Err(Error::internal("tuple concurrently deleted"));
        }
        self.delete_rows(tx, key)?;
        self.record(key, None, Arc::from([]));
        Ok(())
    }

    /// Locks the object for this transaction and checks that it is still the one in the view.
    fn claim(&mut self, tx: &Transaction, key: Key) -> Result<()> {
        let seen = self.base.version;
        if !self.lock(tx, key)? {
            return Ok(());
        }
        let now = self.database.current();
        if now.version != seen && !self.base.same_object(&now, key.1) {
            return Err(Error::internal("tuple concurrently updated"));
        }
        Ok(())
    }

    /// Locks the object for this transaction; false when it has changed the object before.
    fn lock(&self, tx: &Transaction, key: Key) -> Result<bool> {
        if self.changes.objects.contains_key(&key) {
            return Ok(false);
        }
        let tag = LockTag::Object(Oid(1259), u64::from(key.0) << 32 | u64::from(key.1));
        tx.manager().locks.lock(tx.locks(), tag, LockMode::Exclusive, LockWait::Block)?;
        Ok(true)
    }

    fn delete_rows(&mut self, tx: &Transaction, key: Key) -> Result<()> {
        let places = match self.changes.places.get(&key) {
            Some(places) => Some(places.clone()),
            None => self.catalog.places.lock().get(&key).cloned(),
        };
        let snapshot = tx.latest_snapshot();
        for (tid, root) in places.iter().flat_map(|p| p.iter()) {
            match self.catalog.heap.delete(tx, &snapshot, *tid, *root, access::RowWait::Block)? {
                access::WriteResult::Done { .. } => {}
                _ => return Err(Error::internal("tuple concurrently updated")),
            }
        }
        tx.next_command();
        Ok(())
    }

    fn insert_rows(&self, tx: &Transaction, key: Key, json: &[u8]) -> Result<Places> {
        let chunks: Vec<&[u8]> = json.chunks(PART_BYTES).collect();
        let mut hint = InsertHint::default();
        let mut places = Vec::with_capacity(chunks.len());
        for (part, chunk) in chunks.iter().enumerate() {
            let mut row = Vec::with_capacity(PART_HEADER + chunk.len());
            row.extend_from_slice(&key.0.to_le_bytes());
            row.extend_from_slice(&key.1.to_le_bytes());
            row.extend_from_slice(&(part as u16).to_le_bytes());
            row.extend_from_slice(&(chunks.len() as u16).to_le_bytes());
            row.extend_from_slice(chunk);
            let tid = self.catalog.heap.insert(tx, &row, &mut hint)?;
            places.push((tid, tid));
        }
        tx.next_command();
        Ok(places.into())
    }

    fn record(&mut self, key: Key, object: Option<Arc<Object>>, places: Places) {
        if key.0 == SHARED || key.0 == self.database.oid() {
            self.follow(key.1, object.clone());
        }
        self.changes.objects.insert(key, object);
        self.changes.places.insert(key, places);
    }

    /// Lets the private version, if there is one, follow a change: a transaction of many definitions would
    /// otherwise pay for all earlier ones with each.
    fn follow(&mut self, id: Id, object: Option<Arc<Object>>) {
        if self.private.is_some() {
            self.pending.push((id, object));
        }
    }

    /// Files to remove if the transaction commits (old files of TRUNCATE, of dropped tables). Those of
    /// temporary relations go when no object names them.
    pub fn drop_files_at_commit(&mut self, rel: RelId) {
        if !rel.is_temporary() {
            self.changes.drop_at_commit.push_back(rel);
        }
    }

    /// Files to remove if it (or the savepoint's level) rolls back.
    pub fn drop_files_at_abort(&mut self, rel: RelId) {
        if !rel.is_temporary() {
            self.changes.drop_at_abort.push_back(rel);
        }
    }

    /// State to come back to.
    pub fn savepoint(&self) -> CatalogMark {
        CatalogMark(self.changes.clone(), self.temp.as_ref().map(|t| t.mark()))
    }

    /// Undoes changes since the mark and removes files made since.
    pub fn rollback_to(&mut self, mark: &CatalogMark) {
        let made = self.changes.drop_at_abort.skip(mark.0.drop_at_abort.len());
        self.changes = mark.0.clone();
        if let Some(temp) = &mut self.temp {
            temp.rollback_to(mark.1.as_ref());
        }
        self.private = None;
        self.drop_files(made);
    }

    /// To be called from [`Transaction::commit`]'s `before_publish`.
    pub fn publish(&mut self, csn: Csn) {
        if self.changes.objects.is_empty() {
            return;
        }
        if self.changes.of(SHARED).next().is_none() {
            self.publish_in(&self.database, csn);
        } else {
            self.publish_to_all(csn);
        }
        self.publish_places();
    }

    /// As [`CatalogTx::publish`], of changes in these databases, whichever they are. None: one of them does not exist.
    pub(crate) fn publish_followed(&self, csn: Csn, databases: &BTreeSet<Id>) -> Option<()> {
        if databases.contains(&SHARED) {
            self.publish_to_all(csn);
        } else {
            for database in databases {
                self.publish_in(&*self.catalog.database(*database)?, csn);
            }
        }
        self.publish_places();
        Some(())
    }

    fn publish_places(&self) {
        let mut places = self.catalog.places.lock();
        for (id, rows) in &self.changes.places {
            if rows.is_empty() {
                places.remove(id);
            } else {
                places.insert(*id, rows.clone());
            }
        }
    }

    /// In every database, those that the transaction made included, and not in those that it dropped.
    fn publish_to_all(&self, csn: Csn) {
        let catalog = &self.catalog;
        let mut databases = catalog.databases.write();
        for (id, object) in self.changes.of(SHARED) {
            match object.as_deref() {
                Some(Object::Database(_)) => {
                    databases.entry(id).or_insert_with(|| {
                        let shared = Snapshot::clone(&catalog.shared.latest());
                        OpenDatabase::new(&catalog.storage, id, shared)
                    });
                }
                Some(_) => {}
                None => {
                    if let Some(gone) = databases.remove(&id) {
                        gone.bury();
                    }
                }
            }
        }
        databases.values().for_each(|database| self.publish_in(database, csn));
        self.publish_in(&catalog.shared, csn);
    }

    fn publish_in(&self, database: &OpenDatabase, csn: Csn) {
        database.publish(csn, |current| {
            let version = self.catalog.versions.fetch_add(1, Ordering::AcqRel) + 1;
            let mut next = apply(current, &self.changes, database.oid(), version);
            let mut has_new_index = false;
            for (_, object) in self.changes.of(database.oid()) {
                match object.as_deref() {
                    Some(Object::Index(index)) => {
                        has_new_index |= note_files(current, &mut next, index, csn);
                    }
                    Some(Object::Table(table)) if table.detaching == Some(0) => {
                        let since = Table { detaching: Some(csn.0), ..Table::clone(table) };
                        next.put(Object::Table(Box::new(since)));
                        has_new_index = true;
                    }
                    _ => {}
                }
            }
            (next, has_new_index)
        });
    }

    /// After the commit is durable: removes the files that are no longer used.
    pub fn committed(&mut self) {
        let changes = std::mem::take(&mut self.changes);
        (self.private, self.doors) = (None, Vec::new());
        self.drop_files(changes.drop_at_commit);
    }

    /// After a rollback: forgets the changes, removes new files.
    pub fn aborted(&mut self) {
        let changes = std::mem::take(&mut self.changes);
        (self.private, self.doors) = (None, Vec::new());
        self.drop_files(changes.drop_at_abort);
    }

    /// A file that can't be removed now is set aside when the server starts the next time.
    fn drop_files(&self, rels: imbl::Vector<RelId>) {
        let mut all = Vec::with_capacity(2 * rels.len());
        for rel in rels {
            self.catalog.sequences.forget(rel.0);
            all.extend([overflow_rel(rel), rel]);
        }
        if let Err(error) = self.catalog.storage.drop_relations(&all) {
            eprintln!("WARNING:  could not remove the files of a relation: {error}");
        }
    }
}

/// Tells a table's relation from that of its large values.
const OVERFLOW_BIT: u32 = 1 << 31;

/// The relation with a table's large values; it is there when the table ever had any.
pub fn overflow_rel(table: RelId) -> RelId {
    RelId(table.0 | OVERFLOW_BIT)
}

/// Removes a relation's files, with those of its large values.
pub(crate) fn drop_files(storage: &Storage, rel: RelId) -> Result<()> {
    storage.drop_relations(&[overflow_rel(rel), rel])
}

/// Notes since when the index can be read: since it has its files, or since it became valid; whether
/// that is new and the table isn't.
fn note_files(before: &Snapshot, published: &mut Snapshot, index: &Index, csn: Csn) -> bool {
    let old = before.index(index.oid).filter(|old| old.rel == index.rel);
    let old = old.filter(|old| index.invalid || !old.invalid);
    let since = old.map_or(csn.0, |old| old.since);
    published.put(Object::Index(Index { since, hidden: false, ..index.clone() }));
    old.is_none() && before.table(index.table).is_some()
}

/// A new snapshot of a database with the changes in it.
fn apply(base: &Snapshot, changes: &Changes, database: Id, version: u64) -> Snapshot {
    let mut snapshot = base.clone();
    for (id, _) in changes.seen_in(database) {
        snapshot.remove(id);
    }
    for object in changes.seen_in(database).filter_map(|(_, object)| object.as_ref()) {
        snapshot.put((**object).clone());
    }
    snapshot.version = version;
    snapshot
}

/// Key, part and number of parts of a row.
fn row_header(row: &[u8]) -> Option<(Key, u16, u16)> {
    let database = row.get(0..4)?.try_into().ok()?;
    let id = row.get(4..8)?.try_into().ok()?;
    let part = row.get(8..10)?.try_into().ok()?;
    let parts = row.get(10..12)?.try_into().ok()?;
    let key = (u32::from_le_bytes(database), u32::from_le_bytes(id));
    Some((key, u16::from_le_bytes(part), u16::from_le_bytes(parts)))
}
