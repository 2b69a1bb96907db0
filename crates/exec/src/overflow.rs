//! Large values of a table: pieces in a heap of their own, beside the table's.
//!
//! ```text
//! row ── pointer ──► piece ──► piece ──► piece
//!                    6 bytes place of the next one (INVALID: the last), then the bytes
//! ```
//!
//! The heap's relation is the table's with the top bit set ([`rel`]); its file comes to be with
//! the first large value and goes with the table's. Pieces are rows: the transaction that writes a
//! value inserts them, the one that replaces or deletes it deletes them (an update that leaves it as it is
//! copies the pointer), so that a snapshot which sees a row finds its pieces, rollback and recovery need nothing more, and vacuum clears them by
//! the rules of all rows. Pieces are never changed. They are written from the last to the first,
//! since each holds the place of the next.

use std::fmt;
use std::sync::{Arc, LazyLock};

use access::heap::InsertHint;
use access::{Heap, RowWait};
use base::{Error, Fork, RelId, Result, TupleId, WaitEvent, err};
use sched::Mutex;
use storage::Storage;
use txn::{Snapshot, Transaction};
use types::row::{Outside, RowLayout};

/// Bytes of a value in one piece.
const PIECE_BYTES: usize = 8000;
/// The place of no piece.
const NONE: TupleId = TupleId::INVALID;

/// Two statements must not make the same file.
static MAKING: LazyLock<Mutex<()>> =
    LazyLock::new(|| Mutex::new(WaitEvent::LWLockFreeSpaceMap, ()));

/// The relation that holds a table's large values.
pub fn rel(table: RelId) -> RelId {
    catalog::overflow_rel(table)
}

/// A table's large values.
pub struct Overflow {
    storage: Arc<Storage>,
    table: RelId,
}

impl fmt::Debug for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Overflow({})", self.table.0)
    }
}

#[cold]
fn damaged(file: RelId) -> Error {
    err!(DATA_CORRUPTED, "a large value in file \"base/{}\" lacks a piece", file.0)
}

/// A piece's next one, and its bytes.
fn parse(data: &[u8]) -> Option<(TupleId, &[u8])> {
    let (next, bytes) = data.split_first_chunk::<6>()?;
    Some((TupleId::from_bytes(*next), bytes))
}

impl Outside for Overflow {
    fn read(&self, first: TupleId, len: usize) -> Result<Vec<u8>> {
        let heap = Heap::open(&self.storage, rel(self.table));
        let mut out = Vec::with_capacity(len);
        let mut at = first;
        while at != NONE {
            sched::check_interrupts()?;
            let damaged = || damaged(rel(self.table));
            let piece = heap.fetch_version(at)?.ok_or_else(damaged)?;
            let (next, bytes) = parse(&piece.data).ok_or_else(damaged)?;
            out.extend_from_slice(bytes);
            at = next;
        }
        if out.len() == len { Ok(out) } else { Err(damaged(rel(self.table))) }
    }

    fn any(&self) -> Result<bool> {
        self.exists()
    }
}

impl Overflow {
    /// Of a table; no I/O.
    pub fn new(storage: &Arc<Storage>, table: RelId) -> Overflow {
        Overflow { storage: storage.clone(), table }
    }

    /// Whether the table ever had a large value.
    ///
    /// # Errors
    /// I/O.
    pub fn exists(&self) -> Result<bool> {
        Ok(self.storage.block_count(rel(self.table), Fork::Main)? > 0)
    }

    /// The heap of pieces.
    pub fn heap(&self) -> Heap {
        Heap::open(&self.storage, rel(self.table))
    }

    /// Keeps a value; answers its first piece's place.
    ///
    /// # Errors
    /// I/O, interrupts.
    pub fn store(&self, tx: &Transaction, value: &[u8]) -> Result<TupleId> {
        if !self.exists()? {
            tx.xid()?;
            let _making = MAKING.lock();
            if !self.storage.relations()?.contains(&rel(self.table)) {
                self.storage.create_relation(rel(self.table))?;
            }
        }
        let heap = self.heap();
        let mut hint = InsertHint::default();
        let mut next = NONE;
        let mut piece = Vec::with_capacity(PIECE_BYTES + 6);
        for bytes in value.chunks(PIECE_BYTES).rev() {
            sched::check_interrupts()?;
            piece.clear();
            piece.extend_from_slice(&next.to_bytes());
            piece.extend_from_slice(bytes);
            next = heap.insert(tx, &piece, &mut hint)?;
        }
        Ok(next)
    }

    /// Deletes the large values of a row that is gone, but for those that begin at one of `kept`.
    ///
    /// # Errors
    /// I/O, interrupts.
    pub fn delete(
        &self,
        tx: &Transaction,
        snapshot: &Snapshot,
        layout: &RowLayout,
        row: &[u8],
        kept: &[TupleId],
    ) -> Result<()> {
        let heap = self.heap();
        let all = types::row::pointers(layout, row)?;
        for first in all.into_iter().filter(|first| !kept.contains(first)) {
            let mut at = first;
            while at != NONE {
                sched::check_interrupts()?;
                let damaged = || damaged(rel(self.table));
                let piece = heap.fetch_version(at)?.ok_or_else(damaged)?;
                heap.delete(tx, snapshot, at, at, RowWait::Block)?;
                at = parse(&piece.data).ok_or_else(damaged)?.0;
            }
        }
        Ok(())
    }
}
