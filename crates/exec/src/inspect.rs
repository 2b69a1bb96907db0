//! Answers to functions of extensions about the pages of tables and indexes: how full they are, who sees all of them,
//! whether they are sound.

use std::cell::RefCell;
use std::sync::Arc;

use access::check::KeyOf;
pub use access::heap::inspect::{Contents, Item, bounds, items};
use access::occupancy::{HashPages, IndexContents, TreePages};
use access::{AnyIndex, Heap};
use base::{RelId, Result, err};
use catalog::{Index, Table};
use sql::expr::Expr;
use txn::LockMode;

use crate::context::ExecContext;
use crate::rows::Row;
use crate::run::Run;
use crate::spi::{with_context, with_run};
use crate::table::{KeyCodec, TableHandle};
use crate::{eval, index_search, relation_lock, security};

/// A relation with pages.
pub enum Paged {
    /// A table or materialized view.
    Table(Arc<Table>),
    /// An index.
    Index(Arc<Index>),
}

/// A relation by its oid, if it has pages of its own; `Err(name, kind)` inside: it has none. It is locked as for a query, so
/// that its file does not become shorter meanwhile.
///
/// # Errors
/// `42P01`, those of locking.
pub fn relation(
    cx: &mut ExecContext<'_>,
    id: u32,
) -> Result<std::result::Result<Paged, (String, &'static str)>> {
    let view = cx.catalog_tx.view();
    if let Some(index) = view.index(id) {
        return Ok(match index.rel {
            0 => Err((index.name.clone(), "partitioned indexes")),
            _ => {
                relation_lock::lock(cx, index.table, LockMode::AccessShare)?;
                Ok(Paged::Index(index.clone()))
            }
        });
    }
    if let Some(table) = view.table(id) {
        return Ok(match table.rel {
            0 if table.is_partitioned() => Err((table.name.clone(), "partitioned tables")),
            0 => Err((table.name.clone(), "views")),
            _ => {
                relation_lock::lock(cx, id, LockMode::AccessShare)?;
                Ok(Paged::Table(table.clone()))
            }
        });
    }
    if let Some(sequence) = view.sequence(id) {
        return Ok(Err((sequence.name.clone(), "sequences")));
    }
    Err(err!(UNDEFINED_TABLE, "could not open relation with OID {id}"))
}

impl Paged {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Paged::Table(table) => &table.name,
            Paged::Index(index) => &index.name,
        }
    }

    fn rel(&self) -> RelId {
        match self {
            Paged::Table(table) => RelId(table.rel),
            Paged::Index(index) => RelId(index.rel),
        }
    }

    /// The file's pages, as those of a table.
    fn heap(&self, cx: &ExecContext<'_>) -> Heap {
        Heap::open(&cx.engine.storage, self.rel())
    }

    /// How many pages it has.
    ///
    /// # Errors
    /// I/O.
    pub fn pages(&self, cx: &ExecContext<'_>) -> Result<u32> {
        self.heap(cx).pages()
    }

    /// A page's bytes.
    ///
    /// # Errors
    /// I/O.
    pub fn raw(&self, cx: &ExecContext<'_>, block: u32) -> Result<Vec<u8>> {
        self.heap(cx).raw(block)
    }

    /// Reads pages into memory; returns how many.
    ///
    /// # Errors
    /// I/O, interrupts.
    pub fn read(&self, cx: &ExecContext<'_>, blocks: std::ops::RangeInclusive<u32>) -> Result<u64> {
        self.heap(cx).read_pages(blocks)
    }
}

/// The contents of a page of a table.
///
/// # Errors
/// I/O.
pub fn page_contents(cx: &ExecContext<'_>, table: &Table, block: u32) -> Result<Contents> {
    let heap = Heap::open(&cx.engine.storage, RelId(table.rel));
    heap.contents(cx.tx.manager(), block)
}

/// The contents of a table, and how many pages it has.
///
/// # Errors
/// I/O, interrupts.
pub fn table_contents(cx: &ExecContext<'_>, table: &Table) -> Result<(Contents, u32)> {
    let heap = Heap::open(&cx.engine.storage, RelId(table.rel));
    let pages = heap.pages()?;
    let mut all = Contents::default();
    for block in 0..pages {
        sched::check_interrupts()?;
        let one = heap.contents(cx.tx.manager(), block)?;
        all.live += one.live;
        all.live_bytes += one.live_bytes;
        all.dead += one.dead;
        all.dead_bytes += one.dead_bytes;
        all.free_bytes += one.free_bytes;
    }
    Ok((all, pages))
}

/// The rows of a table that running transactions have locked: where each is, by whom, in which mode.
///
/// # Errors
/// I/O, interrupts.
pub fn locked_rows(
    cx: &ExecContext<'_>,
    table: &Table,
) -> Result<Vec<(base::TupleId, base::Xid, &'static str)>> {
    let heap = Heap::open(&cx.engine.storage, RelId(table.rel));
    let mut out = Vec::new();
    for block in 0..heap.pages()? {
        sched::check_interrupts()?;
        let own = cx.tx.top_xid().unwrap_or(base::Xid(0));
        out.extend(heap.locked(cx.tx.manager(), own, block)?);
    }
    Ok(out)
}

/// Whether a page is noted as seen whole by everybody, and whether it is.
///
/// # Errors
/// I/O.
pub fn page_visibility(cx: &ExecContext<'_>, table: &Table, block: u32) -> Result<(bool, bool)> {
    let heap = Heap::open(&cx.engine.storage, RelId(table.rel));
    heap.visibility(cx.tx.manager(), block)
}

/// The pages of an index, by its method.
pub enum IndexPages {
    /// Of a B-tree.
    Tree(TreePages),
    /// Of a hash index.
    Hash(HashPages),
    /// Of a GIN index: rows of its pending list, and their bytes.
    Pending(u64, u64),
    /// Of another.
    Other,
}

/// Counts of an index's pages, by what they hold.
///
/// # Errors
/// I/O, interrupts.
pub fn index_pages(cx: &ExecContext<'_>, index: &Index) -> Result<IndexPages> {
    Ok(match index_search::open(index, &cx.engine.storage) {
        AnyIndex::BTree(tree) => IndexPages::Tree(tree.occupancy()?),
        AnyIndex::Hash(index) => IndexPages::Hash(index.occupancy()?),
        AnyIndex::Gin(index) => {
            let (rows, bytes) = index.pending()?;
            IndexPages::Pending(rows, bytes)
        }
        _ => IndexPages::Other,
    })
}

/// The entries of an index and what is free in it, where PostgreSQL counts that; None: where it does not.
///
/// # Errors
/// I/O, interrupts.
pub fn index_contents(cx: &ExecContext<'_>, index: &Index) -> Result<Option<IndexContents>> {
    Ok(match index_search::open(index, &cx.engine.storage) {
        AnyIndex::BTree(tree) => Some(tree.contents()?),
        AnyIndex::Hash(index) => Some(index.contents()?),
        AnyIndex::Gist(index) => Some(index.contents()?),
        _ => None,
    })
}

/// Faults of a table's pages.
///
/// # Errors
/// I/O, interrupts, those of locking.
pub fn table_faults(cx: &mut ExecContext<'_>, table: &Table) -> Result<Vec<String>> {
    relation_lock::lock(cx, table.oid, LockMode::Share)?;
    let heap = Heap::open(&cx.engine.storage, RelId(table.rel));
    access::check::check(cx.tx.manager(), &heap, &[])
}

/// Faults of an index; `with_rows`: also rows of the table that it lacks.
///
/// # Errors
/// I/O, interrupts, those of locking and of the index's expressions.
pub fn index_faults(
    cx: &mut ExecContext<'_>,
    index: &Index,
    with_rows: bool,
) -> Result<Vec<String>> {
    relation_lock::lock(cx, index.table, LockMode::Share)?;
    let view = cx.catalog_tx.view();
    let table = view.table(index.table).cloned();
    let Some(table) = table.filter(|_| with_rows) else {
        return Ok(index_search::open(index, &cx.engine.storage).check()?.findings);
    };
    let handle = TableHandle::open(cx.engine, &table, cx.format)?;
    let codec = KeyCodec::new(&table, index);
    let texts: Vec<&str> = index.expressions().collect();
    let exprs = with_context(cx, |cx| sql::stored::row_expressions(cx, &table, &texts))?;
    security::restricted(cx, table.owner, |cx| {
        with_run(cx, |run| {
            let engine = run.cx.engine;
            let manager = run.cx.tx.manager();
            let files = index_search::open_for(&codec, index, &engine.storage);
            let heap = Heap::open(&engine.storage, RelId(table.rel));
            let run = RefCell::new(run);
            let of =
                |bytes: &[u8]| key(&handle, &codec, &exprs, bytes, &mut run.borrow_mut()).ok()?;
            access::check::check(manager, &heap, &[(files, &of as KeyOf<'_>)])
        })
    })
}

/// A row's key; None when it is not in the index.
fn key(
    handle: &TableHandle,
    codec: &KeyCodec,
    exprs: &[Expr],
    bytes: &[u8],
    run: &mut Run<'_, '_>,
) -> Result<Option<Vec<u8>>> {
    let mut row = handle.decode_all(bytes)?;
    let columns = row.len();
    for expr in exprs {
        let value = eval::eval(expr, Row::Values(&row[..columns]), run)?;
        row.push(value);
    }
    if !codec.holds(&row) {
        return Ok(None);
    }
    let mut key = Vec::new();
    codec.encode(&row, &mut key)?;
    Ok(Some(key))
}
