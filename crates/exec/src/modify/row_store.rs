//! Rows that a transition table keeps. What is beyond `work_mem` lies in a temporary file, in pieces that are read
//! as often as a trigger's queries ask.
//!
//! ```text
//!   file (no name):  piece | piece | …            then, in memory:  row, row, …
//!   a piece:         | length u32 | row (types::row) | length u32 | row | …
//! ```

use std::any::Any;
use std::fmt;
use std::io::Write;
use std::sync::Arc;

use base::usage::Use;
use base::{Error, Oid, Result};
use catalog::Table;
use storage::Storage;
use types::datum::Shape;
use types::open::OpenValue;
use types::row::{self, RowLayout};
use types::{Datum, FormatContext, oids};

use crate::ops::spill::{TemporaryFile, failed};
use crate::rows;

/// Bytes of a piece, about.
const PIECE_BYTES: usize = 64 << 10;
/// Bytes of a row beside its values.
const ROW_BYTES: usize = 24;

/// See the module's documentation.
#[derive(Default)]
pub struct RowStore {
    layout: Option<RowLayout>,
    file: Option<TemporaryFile>,
    pieces: Vec<Piece>,
    /// Rows in the file.
    spilled: usize,
    latest: Vec<Vec<Datum>>,
    /// Bytes that these hold, about.
    held: usize,
}

/// Where rows lie in the file.
struct Piece {
    at: u64,
    bytes: usize,
}

impl RowStore {
    /// Adds a row of this table, dropped columns included; at most `limit` bytes stay in memory.
    ///
    /// # Errors
    /// I/O errors of the temporary file.
    pub fn push(
        &mut self,
        row: Vec<Datum>,
        table: &Table,
        limit: usize,
        storage: &Storage,
    ) -> Result<()> {
        self.held += row.iter().map(rows::width).sum::<usize>() + ROW_BYTES;
        self.latest.push(row);
        if self.held >= limit {
            self.spill(table, storage)?;
        }
        Ok(())
    }

    fn spill(&mut self, table: &Table, storage: &Storage) -> Result<()> {
        // Values of dropped columns are NULL by now.
        let ty = |c: &catalog::Column| if c.dropped { oids::INT4 } else { Oid(c.ty) };
        let layout = self.layout.get_or_insert_with(|| {
            RowLayout::of_types(&table.columns.iter().map(ty).collect::<Vec<_>>())
        });
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(TemporaryFile::new(storage)?),
        };
        self.spilled += self.latest.len();
        let mut bytes = Vec::with_capacity(PIECE_BYTES);
        let mut rows = std::mem::take(&mut self.latest).into_iter().peekable();
        while let Some(row) = rows.next() {
            let start = bytes.len();
            bytes.extend_from_slice(&[0; 4]);
            row::encode(layout, &row, &mut bytes)?;
            let length = (bytes.len() - start - 4) as u32;
            bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
            if bytes.len() >= PIECE_BYTES || rows.peek().is_none() {
                sched::check_interrupts()?;
                sched::used(Use::TempWritten, bytes.len() as u64);
                self.pieces.push(Piece { at: file.position(), bytes: bytes.len() });
                file.write_all(&bytes).map_err(|e| failed("write", &e))?;
                bytes.clear();
            }
        }
        self.held = 0;
        Ok(())
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.spilled + self.latest.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All rows, when none had to go into the file.
    pub fn in_memory(&self) -> Option<&[Vec<Datum>]> {
        (self.spilled == 0).then_some(&self.latest)
    }

    /// How many pieces there are to be read.
    pub fn pieces(&self) -> usize {
        self.pieces.len() + usize::from(!self.latest.is_empty())
    }

    /// The rows of one piece, from 0.
    ///
    /// # Errors
    /// I/O errors of the temporary file.
    pub fn piece(&self, number: usize) -> Result<Vec<Vec<Datum>>> {
        let (Some(piece), Some(file), Some(layout)) =
            (self.pieces.get(number), &self.file, &self.layout)
        else {
            return Ok(self.latest.clone());
        };
        let mut bytes = vec![0; piece.bytes];
        file.read_exact_at(&mut bytes, piece.at)?;
        sched::used(Use::TempRead, bytes.len() as u64);
        let wanted: Vec<u16> = (0..layout.columns().len() as u16).collect();
        let damaged = || Error::internal("a temporary file of a transition table is damaged");
        let (mut out, mut rest) = (Vec::new(), &bytes[..]);
        while !rest.is_empty() {
            let (length, after) = rest.split_first_chunk::<4>().ok_or_else(damaged)?;
            let length = u32::from_le_bytes(*length) as usize;
            let row = after.get(..length).ok_or_else(damaged)?;
            let mut values = Vec::with_capacity(wanted.len());
            row::decode(layout, row, &wanted, &mut values)?;
            out.push(values);
            rest = &after[length..];
        }
        Ok(out)
    }
}

/// The rows of a transition table as a value that a trigger's queries read: those of a store with a file.
pub struct StoredRows {
    store: Arc<RowStore>,
    /// The places of the columns that are shown.
    places: Vec<usize>,
    shape: Arc<Shape>,
}

impl StoredRows {
    /// Of these columns, which `shape` names.
    pub fn new(store: &Arc<RowStore>, places: &[usize], shape: &Arc<Shape>) -> StoredRows {
        StoredRows { store: store.clone(), places: places.to_vec(), shape: shape.clone() }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.store.is_empty()
    }

    /// How many pieces there are to be read.
    pub fn pieces(&self) -> usize {
        self.store.pieces()
    }

    /// The rows of one piece, from 0, as records.
    ///
    /// # Errors
    /// I/O errors of the temporary file.
    pub fn piece(&self, number: usize) -> Result<Vec<Datum>> {
        let record = |mut row: Vec<Datum>| {
            let take = |at: &usize| row.get_mut(*at).map(std::mem::take).unwrap_or_default();
            Datum::record(self.shape.clone(), self.places.iter().map(take).collect())
        };
        Ok(self.store.piece(number)?.into_iter().map(record).collect())
    }
}

impl fmt::Debug for StoredRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoredRows({} rows)", self.len())
    }
}

impl OpenValue for StoredRows {
    fn ty(&self) -> Oid {
        oids::RECORD
    }

    fn write(&self, _cx: &FormatContext, _out: &mut Vec<u8>) -> Result<()> {
        Err(Error::internal("a transition table as a value"))
    }

    // Only a query's FROM sees such a value: it is never kept nor compared.
    fn store(&self, _out: &mut Vec<u8>) {}

    fn heap_bytes(&self) -> usize {
        0
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
