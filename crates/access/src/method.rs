//! The trait that index methods are, and how they are asked.

use std::fmt;
use std::sync::Arc;

use base::{AccessMethod, Result, TupleId};
use txn::{Transaction, TxnManager};

use crate::btree::{Inserted, KeyRange, Unique};
pub use crate::found::Found;
use crate::gin::GinSearch;
use crate::gist::TreeSearch;

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
    /// Rows with these bits (bloom).
    Signature(BloomSearch),
}

/// Whether rows of a range with this summary may satisfy a condition.
pub type SummaryCheck = Arc<dyn Fn(&[u8]) -> Result<bool> + Send + Sync>;

/// A search of a BRIN index: the conditions that summaries are asked.
#[derive(Clone)]
pub struct BrinSearch {
    /// The condition.
    pub check: SummaryCheck,
    /// Pages of the table.
    pub pages: u32,
}

impl fmt::Debug for BrinSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "search of {} pages", self.pages)
    }
}

/// A search of a bloom index: the bits that rows must have.
#[derive(Clone)]
pub struct BloomSearch {
    /// As in a key.
    pub bits: Vec<u8>,
}

impl fmt::Debug for BloomSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits: u32 = self.bits.iter().map(|byte| byte.count_ones()).sum();
        write!(f, "search for {bits} bits")
    }
}

/// The findings of a check, and all entries.
#[derive(Debug, Default)]
pub struct Report {
    /// Faults, one a line.
    pub findings: Vec<String>,
    /// Every entry: its bytes as [`IndexMethod::entries`] gives them, and its row.
    pub entries: Vec<(Vec<u8>, TupleId)>,
}

/// The entries of an index, and the bytes that have none.
#[derive(Clone, Copy, Debug, Default)]
pub struct IndexContents {
    /// Pages of the file.
    pub pages: u64,
    /// Entries of leaves.
    pub entries: u64,
    /// Their bytes.
    pub entry_bytes: u64,
    /// Bytes of leaves without entries, and of pages that nobody uses.
    pub free_bytes: u64,
}

/// An index method.
pub trait IndexMethod: Sized {
    /// Which it is.
    const METHOD: AccessMethod;

    /// Fills a new index, whose files exist and are empty, from entries in order of (bytes, row). `rows`:
    /// about how many there are.
    ///
    /// # Errors
    /// I/O, `54000`, interrupts, those of `next`.
    fn fill(&self, rows: u64, next: &mut NextEntry<'_>) -> Result<()>;

    /// Calls `each` with the entries that the index keeps of a row with this key: by default the key.
    fn entries(key: &[u8], each: &mut dyn FnMut(&[u8])) {
        each(key);
    }

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
    /// I/O, interrupts; internal for a search of another method, and for methods that have none.
    fn collect(
        &self,
        _tx: &Transaction,
        _search: &Search,
        _found: &mut dyn FnMut(Found),
    ) -> Result<()> {
        Err(wrong_search(Self::METHOD))
    }

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
