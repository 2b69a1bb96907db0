//! The seam between index methods and all who use indexes.
//!
//! A method's work is [`IndexMethod`]; [`AnyIndex`] is an index of whichever method its table's
//! catalog entry names. Rows come as *keys*: bytes that say what the index holds of a row, in a form
//! that its method defines. What is looked for comes as a [`Search`]. What the bytes mean is known
//! above (`exec::table::KeyCodec` makes keys, `exec::index_search` makes searches).
//!
//! ```text
//!  row ─ KeyCodec ─► key ─ entries() ─► entries ─ sort ─► build()        (CREATE INDEX)
//!                    key ───────────────────────────────► insert()      (one row)
//!  condition ─ bounds ─► Search ────────────────────────► collect()     (bitmaps, plain scans)
//!                        KeyRange ──────────────────────► BTree::scan() (in order, with values)
//! ```
//!
//! * Redo is `storage`'s and the same for all pages, so methods have none of their own.
//! * A method's state that handles share is a variant of [`IndexState`].
//! * The ordered scans of the B-tree, which rows by the million pass through, are no part of the trait:
//!   who needs order asks [`AnyIndex::as_btree`]. What a method can do otherwise is
//!   [`base::method::Properties`].

use std::sync::{Arc, OnceLock};

use base::{AccessMethod, RelId, Result, TupleId};
use storage::Storage;
use txn::{Transaction, TxnManager};

use crate::brin::{BrinIndex, BrinSearch};
use crate::btree::{BTree, Inserted, KeyRange, TreeState, Unique};
use crate::gin::{GinIndex, GinSearch, GinState};
use crate::gist::{GistIndex, GistState, TreeSearch};
use crate::hash::{HashIndex, HashState};

/// Gives sorted entries: puts the next one's bytes into the buffer and returns its row, None at the end.
pub type NextEntry<'a> = dyn FnMut(&mut Vec<u8>) -> Result<Option<TupleId>> + 'a;

/// A search of an index.
#[derive(Clone, Debug)]
pub enum Search {
    /// Keys within a range (B-tree).
    Range(KeyRange),
    /// Rows with this key (hash).
    Equal(Vec<u8>),
    /// Rows by what their values consist of (GIN).
    Entries(GinSearch),
    /// Rows whose keys satisfy a condition (GiST, SP-GiST).
    Tree(TreeSearch),
    /// Ranges of pages whose summaries allow for matching rows (BRIN).
    Summaries(BrinSearch),
}

/// A row that a search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The root of its chain; with the line 0, any row of the page.
    pub root: TupleId,
    /// The index doesn't know for sure that it matches: the condition must be asked.
    pub recheck: bool,
}

/// The findings of a check, and all entries.
#[derive(Debug, Default)]
pub struct Report {
    /// Faults, one a line.
    pub findings: Vec<String>,
    /// Every entry: its bytes as [`IndexMethod::entries`] gives them, and its row.
    pub entries: Vec<(Vec<u8>, TupleId)>,
}

/// An index method.
pub trait IndexMethod: Sized {
    /// Which it is.
    const METHOD: AccessMethod;

    /// Names an index; no I/O.
    fn open(storage: &Arc<Storage>, rel: RelId) -> Self;

    /// Fills a new index, whose files exist and are empty, from entries in order of (bytes, row). `rows`:
    /// about how many there are.
    ///
    /// # Errors
    /// I/O, `54000`, interrupts, those of `next`.
    fn build(
        storage: &Arc<Storage>,
        rel: RelId,
        rows: u64,
        next: &mut NextEntry<'_>,
    ) -> Result<Self>;

    /// Calls `each` with the entries that the index keeps of a row with this key.
    fn entries(key: &[u8], each: &mut dyn FnMut(&[u8]));

    /// Adds the entries of the row whose chain begins at `root`.
    ///
    /// # Errors
    /// I/O, `54000`, `40001`.
    fn insert(
        &self,
        tx: &Transaction,
        key: &[u8],
        root: TupleId,
        unique: Unique<'_>,
    ) -> Result<Inserted>;

    /// Adds one entry, unless it is there.
    ///
    /// # Errors
    /// As [`IndexMethod::insert`].
    fn insert_entry(&self, tx: &Transaction, entry: &[u8], root: TupleId) -> Result<()>;

    /// Calls `found` for all rows that a search finds, in any order, perhaps more than once.
    ///
    /// # Errors
    /// I/O, interrupts; internal for a search of another method.
    fn collect(
        &self,
        tx: &Transaction,
        search: &Search,
        found: &mut dyn FnMut(Found),
    ) -> Result<()>;

    /// Removes all entries whose row `dead` accepts; returns how many.
    ///
    /// # Errors
    /// I/O, interrupts.
    fn bulk_delete(&self, dead: &dyn Fn(TupleId) -> bool) -> Result<u64>;

    /// The further work of a vacuum: work that inserts have put off.
    ///
    /// # Errors
    /// I/O, interrupts.
    fn clean_up(&self, _manager: &TxnManager) -> Result<()> {
        Ok(())
    }

    /// Walks the whole index, which nobody changes meanwhile.
    ///
    /// # Errors
    /// I/O, checksums, interrupts.
    fn check(&self) -> Result<Report>;
}

/// The error for a search that the method can't do.
pub(crate) fn wrong_search(method: AccessMethod) -> base::Error {
    base::Error::internal(format!("a search that {} indexes can't do", method.name()))
}

impl IndexMethod for BTree {
    const METHOD: AccessMethod = AccessMethod::BTree;

    fn open(storage: &Arc<Storage>, rel: RelId) -> BTree {
        BTree::open(storage, rel)
    }

    fn build(
        storage: &Arc<Storage>,
        rel: RelId,
        _: u64,
        next: &mut NextEntry<'_>,
    ) -> Result<BTree> {
        BTree::build(storage, rel, next)
    }

    fn entries(key: &[u8], each: &mut dyn FnMut(&[u8])) {
        each(key);
    }

    fn insert(
        &self,
        tx: &Transaction,
        key: &[u8],
        root: TupleId,
        unique: Unique<'_>,
    ) -> Result<Inserted> {
        BTree::insert(self, tx, key, root, unique)
    }

    fn insert_entry(&self, tx: &Transaction, entry: &[u8], root: TupleId) -> Result<()> {
        BTree::insert(self, tx, entry, root, Unique::No).map(drop)
    }

    fn collect(
        &self,
        tx: &Transaction,
        search: &Search,
        found: &mut dyn FnMut(Found),
    ) -> Result<()> {
        let Search::Range(range) = search else { return Err(wrong_search(Self::METHOD)) };
        let mut cursor = self.scan(range.clone(), false);
        while let Some((_, root)) = cursor.next(tx)? {
            found(Found { root, recheck: false });
        }
        Ok(())
    }

    fn bulk_delete(&self, dead: &dyn Fn(TupleId) -> bool) -> Result<u64> {
        BTree::bulk_delete(self, dead)
    }

    fn check(&self) -> Result<Report> {
        let report = self.verify()?;
        Ok(Report { findings: report.findings, entries: report.entries })
    }
}

/// An index of any method.
#[derive(Clone)]
pub enum AnyIndex {
    /// See [`BTree`].
    BTree(BTree),
    /// See [`HashIndex`].
    Hash(HashIndex),
    /// See [`GinIndex`].
    Gin(GinIndex),
    /// See [`GistIndex`].
    Gist(GistIndex),
    /// The same, by the name of SP-GiST.
    SpGist(GistIndex),
    /// See [`BrinIndex`].
    Brin(BrinIndex),
}

/// The same for each method.
macro_rules! each {
    ($any:expr, $index:ident => $body:expr) => {
        match $any {
            AnyIndex::BTree($index) => $body,
            AnyIndex::Hash($index) => $body,
            AnyIndex::Gin($index) => $body,
            AnyIndex::Gist($index) | AnyIndex::SpGist($index) => $body,
            AnyIndex::Brin($index) => $body,
        }
    };
}

impl AnyIndex {
    /// Names an index; no I/O.
    pub fn open(method: AccessMethod, storage: &Arc<Storage>, rel: RelId) -> AnyIndex {
        match method {
            AccessMethod::BTree => AnyIndex::BTree(BTree::open(storage, rel)),
            AccessMethod::Hash => AnyIndex::Hash(HashIndex::open(storage, rel)),
            AccessMethod::Gin => AnyIndex::Gin(GinIndex::open(storage, rel)),
            AccessMethod::Gist => AnyIndex::Gist(GistIndex::open(storage, rel, method)),
            AccessMethod::SpGist => AnyIndex::SpGist(GistIndex::open(storage, rel, method)),
            AccessMethod::Brin => AnyIndex::Brin(BrinIndex::open(storage, rel)),
        }
    }

    /// Makes an empty index in files that exist and are empty.
    ///
    /// # Errors
    /// I/O.
    pub fn create(method: AccessMethod, storage: &Arc<Storage>, rel: RelId) -> Result<AnyIndex> {
        AnyIndex::build(method, storage, rel, 0, &mut |_| Ok(None))
    }

    /// See [`IndexMethod::build`].
    ///
    /// # Errors
    /// As there.
    pub fn build(
        method: AccessMethod,
        storage: &Arc<Storage>,
        rel: RelId,
        rows: u64,
        next: &mut NextEntry<'_>,
    ) -> Result<AnyIndex> {
        Ok(match method {
            AccessMethod::BTree => AnyIndex::BTree(IndexMethod::build(storage, rel, rows, next)?),
            AccessMethod::Hash => AnyIndex::Hash(IndexMethod::build(storage, rel, rows, next)?),
            AccessMethod::Gin => AnyIndex::Gin(IndexMethod::build(storage, rel, rows, next)?),
            _ => return AnyIndex::open(method, storage, rel).fill(storage, rows, next),
        })
    }

    /// Fills the files of this index, which exist and are empty, by what the handle knows of its classes.
    ///
    /// # Errors
    /// As [`IndexMethod::build`].
    pub fn fill(
        self,
        storage: &Arc<Storage>,
        rows: u64,
        next: &mut NextEntry<'_>,
    ) -> Result<AnyIndex> {
        match &self {
            AnyIndex::Gist(index) | AnyIndex::SpGist(index) => index.fill(next)?,
            AnyIndex::Brin(index) => index.fill(next)?,
            _ => return AnyIndex::build(self.method(), storage, self.rel(), rows, next),
        }
        Ok(self)
    }

    /// The tree of keys that cover each other, if it is one.
    pub fn as_covering(&self) -> Option<&GistIndex> {
        match self {
            AnyIndex::Gist(tree) | AnyIndex::SpGist(tree) => Some(tree),
            _ => None,
        }
    }

    /// Its files.
    pub fn rel(&self) -> RelId {
        each!(self, index => index.rel)
    }

    /// Its method.
    pub fn method(&self) -> AccessMethod {
        match self {
            AnyIndex::BTree(_) => AccessMethod::BTree,
            AnyIndex::Hash(_) => AccessMethod::Hash,
            AnyIndex::Gin(_) => AccessMethod::Gin,
            AnyIndex::Gist(_) => AccessMethod::Gist,
            AnyIndex::SpGist(_) => AccessMethod::SpGist,
            AnyIndex::Brin(_) => AccessMethod::Brin,
        }
    }

    /// The B-tree, if it is one.
    #[inline]
    pub fn as_btree(&self) -> Option<&BTree> {
        match self {
            AnyIndex::BTree(tree) => Some(tree),
            _ => None,
        }
    }

    /// See [`IndexMethod::entries`].
    pub fn entries(&self, key: &[u8], each: &mut dyn FnMut(&[u8])) {
        entries(self.method(), key, each);
    }

    /// See [`IndexMethod::insert`].
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn insert(
        &self,
        tx: &Transaction,
        key: &[u8],
        root: TupleId,
        unique: Unique<'_>,
    ) -> Result<Inserted> {
        each!(self, index => index.insert(tx, key, root, unique))
    }

    /// Adds one entry, in the form of [`IndexMethod::entries`], unless it is there.
    ///
    /// # Errors
    /// As [`IndexMethod::insert`].
    pub fn insert_entry(&self, tx: &Transaction, entry: &[u8], root: TupleId) -> Result<()> {
        each!(self, index => index.insert_entry(tx, entry, root))
    }

    /// See [`IndexMethod::collect`].
    ///
    /// # Errors
    /// As there.
    pub fn collect(
        &self,
        tx: &Transaction,
        search: &Search,
        found: &mut dyn FnMut(Found),
    ) -> Result<()> {
        each!(self, index => index.collect(tx, search, found))
    }

    /// See [`IndexMethod::bulk_delete`].
    ///
    /// # Errors
    /// As there.
    pub fn bulk_delete(&self, dead: &dyn Fn(TupleId) -> bool) -> Result<u64> {
        each!(self, index => index.bulk_delete(dead))
    }

    /// See [`IndexMethod::clean_up`].
    ///
    /// # Errors
    /// As there.
    pub fn clean_up(&self, manager: &TxnManager) -> Result<()> {
        each!(self, index => index.clean_up(manager))
    }

    /// See [`IndexMethod::check`].
    ///
    /// # Errors
    /// As there.
    pub fn check(&self) -> Result<Report> {
        each!(self, index => index.check())
    }
}

/// The entries that an index of a method keeps of a row with this key ([`IndexMethod::entries`]).
pub fn entries(method: AccessMethod, key: &[u8], each: &mut dyn FnMut(&[u8])) {
    match method {
        AccessMethod::BTree => BTree::entries(key, each),
        AccessMethod::Hash => HashIndex::entries(key, each),
        AccessMethod::Gin => GinIndex::entries(key, each),
        AccessMethod::Gist | AccessMethod::SpGist => GistIndex::entries(key, each),
        AccessMethod::Brin => BrinIndex::entries(key, each),
    }
}

impl From<BTree> for AnyIndex {
    fn from(tree: BTree) -> AnyIndex {
        AnyIndex::BTree(tree)
    }
}

/// State that all handles of one index share; made by the first that needs it. A relation's method never changes.
#[derive(Default)]
pub struct IndexState(OnceLock<MethodState>);

enum MethodState {
    Tree(TreeState),
    Hash(HashState),
    Gin(GinState),
    Gist(GistState),
}

impl IndexState {
    /// Of a B-tree.
    #[inline]
    pub(crate) fn tree(&self) -> &TreeState {
        match self.0.get_or_init(|| MethodState::Tree(TreeState::default())) {
            MethodState::Tree(state) => state,
            // Its entries are in one.
            MethodState::Gin(state) => &state.tree,
            _ => unreachable!("another index was opened as a B-tree"),
        }
    }

    /// Of a hash index.
    pub(crate) fn hash(&self) -> &HashState {
        match self.0.get_or_init(|| MethodState::Hash(HashState::default())) {
            MethodState::Hash(state) => state,
            _ => unreachable!("another index was opened as a hash index"),
        }
    }

    /// Of a GIN index.
    pub(crate) fn gin(&self) -> &GinState {
        match self.0.get_or_init(|| MethodState::Gin(GinState::default())) {
            MethodState::Gin(state) => state,
            _ => unreachable!("another index was opened as a GIN index"),
        }
    }

    /// Of a GiST or SP-GiST index.
    pub(crate) fn gist(&self) -> &GistState {
        match self.0.get_or_init(|| MethodState::Gist(GistState::default())) {
            MethodState::Gist(state) => state,
            _ => unreachable!("another index was opened as a GiST index"),
        }
    }

    /// As new: the file is empty.
    pub(crate) fn reset(&self) {
        match self.0.get() {
            Some(MethodState::Tree(state)) => state.reset(),
            Some(MethodState::Hash(state)) => state.reset(),
            Some(MethodState::Gin(state)) => state.reset(),
            Some(MethodState::Gist(state)) => state.reset(),
            None => {}
        }
    }
}
