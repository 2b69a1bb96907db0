//! The seam between index methods and all who use indexes.
//!
//! A method's work is [`IndexMethod`]; [`AnyIndex`] is an index of whichever method its table's
//! catalog entry names. Rows come as *keys*: bytes that say what the index holds of a row, in a form
//! that its method defines. What is looked for comes as a [`Search`]. What the bytes mean is known
//! above (`exec::table::KeyCodec` makes keys, `exec::index_search` makes searches).
//!
//! ```text
//!  row ─ KeyCodec ─► key ─ entries() ─► entries ─ sort ─► fill()         (CREATE INDEX)
//!                    key ───────────────────────────────► insert()      (one row)
//!  condition ─ bounds ─► Search ────────────────────────► collect()     (bitmaps, plain scans)
//!                        KeyRange ──────────────────────► BTree::scan() (in order, with values)
//! ```
//!
//! * Redo is `storage`'s and the same for all pages, so methods have none of their own.
//! * A method's state that handles share is a variant of `state::IndexState`.
//! * The ordered scans of the B-tree, which rows by the million pass through, are no part of the trait:
//!   who needs order asks [`AnyIndex::as_btree`]. What a method can do otherwise is
//!   [`base::method::Properties`].

use std::sync::Arc;

use base::{AccessMethod, RelId, Result, TupleId};
use storage::Storage;
use txn::{Transaction, TxnManager};

use crate::bloom::BloomIndex;
use crate::brin::BrinIndex;
use crate::btree::{BTree, Inserted, Unique};
use crate::gin::GinIndex;
use crate::gist::GistIndex;
use crate::hash::HashIndex;
use crate::hnsw::HnswIndex;
use crate::ivf::IvfIndex;
use crate::method::wrong_search;
use crate::vector::{ByDistance, VectorSearch};

pub use crate::method::{BloomSearch, Found, IndexMethod, NextEntry, Report, Search};

impl IndexMethod for BTree {
    const METHOD: AccessMethod = AccessMethod::BTree;

    fn fill(&self, _rows: u64, next: &mut NextEntry<'_>) -> Result<()> {
        BTree::fill(self.clone(), next).map(drop)
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

    fn clean_up(&self, manager: &TxnManager) -> Result<()> {
        self.reclaim(manager)
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
    /// See [`HnswIndex`].
    Hnsw(HnswIndex),
    /// See [`IvfIndex`].
    IvfFlat(IvfIndex),
    /// See [`BloomIndex`].
    Bloom(BloomIndex),
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
            AnyIndex::Hnsw($index) => $body,
            AnyIndex::IvfFlat($index) => $body,
            AnyIndex::Bloom($index) => $body,
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
            AccessMethod::Hnsw => AnyIndex::Hnsw(HnswIndex::open(storage, rel)),
            AccessMethod::IvfFlat => AnyIndex::IvfFlat(IvfIndex::open(storage, rel)),
            AccessMethod::Bloom => AnyIndex::Bloom(BloomIndex::open(storage, rel)),
        }
    }

    /// Makes an empty index in files that exist and are empty.
    ///
    /// # Errors
    /// I/O.
    pub fn create(method: AccessMethod, storage: &Arc<Storage>, rel: RelId) -> Result<AnyIndex> {
        AnyIndex::build(method, storage, rel, 0, &mut |_| Ok(None))
    }

    /// An index in files that exist and are empty, filled as [`IndexMethod::fill`] says.
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
        let index = AnyIndex::open(method, storage, rel);
        index.fill(rows, next)?;
        Ok(index)
    }

    /// Fills the files of this index, which exist and are empty, by what the handle knows of its classes.
    ///
    /// # Errors
    /// As [`IndexMethod::fill`].
    pub fn fill(&self, rows: u64, next: &mut NextEntry<'_>) -> Result<()> {
        each!(self, index => IndexMethod::fill(index, rows, next))
    }

    /// The tree of keys that cover each other, if it is one.
    pub fn as_covering(&self) -> Option<&GistIndex> {
        match self {
            AnyIndex::Gist(tree) | AnyIndex::SpGist(tree) => Some(tree),
            _ => None,
        }
    }

    /// The rows nearest to a vector, if it is an index of vectors.
    pub fn nearest_vectors(&self, search: VectorSearch) -> Option<Box<dyn ByDistance>> {
        match self {
            AnyIndex::Hnsw(index) => Some(Box::new(index.nearest(search))),
            AnyIndex::IvfFlat(index) => Some(Box::new(index.nearest(search))),
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
            AnyIndex::Hnsw(_) => AccessMethod::Hnsw,
            AnyIndex::IvfFlat(_) => AccessMethod::IvfFlat,
            AnyIndex::Bloom(_) => AccessMethod::Bloom,
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
        AccessMethod::Hnsw => HnswIndex::entries(key, each),
        AccessMethod::IvfFlat => IvfIndex::entries(key, each),
        AccessMethod::Bloom => BloomIndex::entries(key, each),
    }
}

impl From<BTree> for AnyIndex {
    fn from(tree: BTree) -> AnyIndex {
        AnyIndex::BTree(tree)
    }
}
