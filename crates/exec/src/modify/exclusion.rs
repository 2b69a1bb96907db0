//! Exclusion constraints: no two rows for which the operators of all keys hold.
//!
//! A row goes into the heap and into the index first, and is looked for others then. Of two sessions that insert rows
//! which exclude each other at least one sees the other, since each looks after its own entry is in. Whom the other's
//! transaction will decide about waits for it; two who wait for each other are a deadlock, as in PostgreSQL. With ON
//! CONFLICT a row that meets another one goes away again instead of waiting.

use std::sync::Arc;

use access::{AnyIndex, Heap, KeyRange, Rival, Search};
use base::{AccessMethod, Error, Oid, RelId, Result, TupleId, Xid};
use catalog::{Index, Table};
use sql::expr::Expr;
use txn::LockWait;
use types::{Datum, opclass};

use super::errors;
use crate::covering::{self, Asked};
use crate::rows::Row;
use crate::run::Run;
use crate::table::{KeyCodec, TableHandle};
use crate::{eval, index_search};

/// A row that excludes another one.
pub enum Met {
    /// There is none.
    None,
    /// It is there: its values in table order, computed ones behind them.
    Live(TupleId, Vec<Datum>),
    /// The transaction will decide.
    Undecided(Xid),
}

/// A table's rows as far as a constraint is concerned.
pub struct Excluding<'a> {
    /// The table.
    pub handle: &'a TableHandle,
    /// The constraint's index.
    pub index: &'a Index,
    /// Its keys.
    pub codec: &'a KeyCodec,
    /// Its files.
    pub files: &'a AnyIndex,
    /// The expressions of the table's indexes, over a row in table order.
    pub computed: &'a [Expr],
}

/// The function behind an operator.
fn function(operator: u32, run: &mut Run<'_, '_>) -> Option<Oid> {
    let view = run.cx.catalog_tx.view();
    match view.operator(operator) {
        Some(own) => Some(Oid(own.function)),
        None => types::func::operator(Oid(operator)).map(|row| row.function),
    }
}

impl Excluding<'_> {
    fn keys<'r>(&self, row: &'r [Datum]) -> Vec<&'r Datum> {
        self.codec.columns.iter().map(|c| &row[usize::from(c.0)]).collect()
    }

    /// Rows that may exclude one with these keys.
    fn candidates(&self, row: &[Datum], run: &mut Run<'_, '_>) -> Result<Vec<TupleId>> {
        let mut found = Vec::new();
        let mut key = Vec::new();
        let search = match self.files.method() {
            AccessMethod::BTree => {
                self.codec.encode(row, &mut key)?;
                Search::Range(KeyRange::prefix(&key))
            }
            AccessMethod::Hash => {
                self.codec.encode(row, &mut key)?;
                Search::Equal(key)
            }
            _ => {
                let tree = self.codec.tree.as_ref();
                let tree = tree.ok_or_else(|| Error::internal("a constraint without classes"))?;
                let mut asked = Vec::new();
                for (n, value) in self.keys(row).into_iter().enumerate() {
                    let column = &self.index.columns[n];
                    let ty = self.codec.columns[n].1;
                    let family = opclass::class(column.class_of(self.index.method, ty.0));
                    let function = self.index.exclude.get(n).and_then(|o| function(*o, run));
                    let members = family.zip(function).map(|(c, f)| opclass::members(c.family, f));
                    let member = members.and_then(|all| all.iter().find(|m| !m.orders).copied());
                    if let Some(member) = member {
                        let check = tree.classes[n].check(member.strategy, value)?;
                        asked.push((n, Asked::Key(check)));
                    }
                }
                Search::Tree(covering::search(asked, Vec::new()))
            }
        };
        self.files.collect(run.cx.tx, &search, &mut |one| found.push(one.root))?;
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// Whether two rows exclude each other.
    fn excludes(&self, there: &[Datum], new: &[Datum], run: &mut Run<'_, '_>) -> Result<bool> {
        if !self.codec.holds(there) {
            return Ok(false);
        }
        let pairs = self.keys(there).into_iter().zip(self.keys(new));
        for ((there, new), operator) in pairs.zip(&self.index.exclude) {
            if there.is_null() || new.is_null() {
                return Ok(false);
            }
            let found = function(*operator, run).and_then(|oid| types::func::function(oid));
            let Some(function) = found else {
                return Err(Error::internal("an exclusion constraint's operator is gone"));
            };
            let ty = |n: usize| function.args.get(n).copied().unwrap_or(Oid::INVALID);
            let args = [Expr::Const(there.clone(), ty(0)), Expr::Const(new.clone(), ty(1))];
            let call =
                Expr::Call { function, args: Box::new(args), ty: types::oids::BOOL, position: 0 };
            if eval::eval(&call, Row::Empty, run)? != Datum::Bool(true) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A row with what the indexes compute.
    fn whole(&self, data: &[u8], run: &mut Run<'_, '_>) -> Result<Vec<Datum>> {
        let mut row = self.handle.decode_all(data)?;
        let columns = row.len();
        for expr in self.computed {
            let value = eval::eval(expr, Row::Values(&row[..columns]), run)?;
            row.push(value);
        }
        Ok(row)
    }

    /// A row that excludes this one, which is at `own` if it is in the table.
    ///
    /// # Errors
    /// I/O, those of expressions and operators.
    pub fn met(&self, row: &[Datum], own: Option<TupleId>, run: &mut Run<'_, '_>) -> Result<Met> {
        if !self.codec.holds(row) || self.keys(row).iter().any(|value| value.is_null()) {
            return Ok(Met::None);
        }
        let mut met = Met::None;
        for root in self.candidates(row, run)? {
            sched::check_interrupts()?;
            if Some(root) == own {
                continue;
            }
            let Some((rival, version)) = self.handle.heap.rival_version_of(run.cx.tx, root)? else {
                continue;
            };
            let there = self.whole(&version.data, run)?;
            if !self.excludes(&there, row, run)? {
                continue;
            }
            match rival {
                Rival::InProgress(xid) => met = Met::Undecided(xid),
                _ => return Ok(Met::Live(root, there)),
            }
        }
        Ok(met)
    }

    /// The same, after those who were to decide have decided.
    ///
    /// # Errors
    /// As [`Excluding::met`]; deadlocks and time-outs.
    pub fn met_for_sure(
        &self,
        row: &[Datum],
        own: Option<TupleId>,
        run: &mut Run<'_, '_>,
    ) -> Result<Option<(TupleId, Vec<Datum>)>> {
        loop {
            match self.met(row, own, run)? {
                Met::None => return Ok(None),
                Met::Live(root, there) => return Ok(Some((root, there))),
                Met::Undecided(xid) => {
                    let tx = run.cx.tx;
                    tx.manager().locks.wait_for_xid(tx.locks(), xid, LockWait::Block)?;
                }
            }
        }
    }
}

/// Looks at rows (roots) again; those that are gone by now don't matter.
///
/// # Errors
/// `23P01`; deadlocks and time-outs of waiting for others to decide.
pub fn recheck(
    table: &Arc<Table>,
    index: &Index,
    computed: &[Expr],
    rows: &[TupleId],
    run: &mut Run<'_, '_>,
) -> Result<()> {
    match find(table, index, computed, rows, run)? {
        Some((row, there)) => Err(errors::excluded(run.cx, table, index, &row, &there)),
        None => Ok(()),
    }
}

/// Of these rows the first that another one excludes, and that one.
///
/// # Errors
/// As [`recheck`].
pub fn find(
    table: &Arc<Table>,
    index: &Index,
    computed: &[Expr],
    rows: &[TupleId],
    run: &mut Run<'_, '_>,
) -> Result<Option<(Vec<Datum>, Vec<Datum>)>> {
    let handle = TableHandle::open(run.cx.engine, table, run.cx.format)?;
    let codec = KeyCodec::new(table, index);
    let files = index_search::open_for(&codec, index, &run.cx.engine.storage);
    let own = Excluding { handle: &handle, index, codec: &codec, files: &files, computed };
    for root in rows {
        sched::check_interrupts()?;
        loop {
            let tx = run.cx.tx;
            if let Rival::InProgress(xid) = handle.heap.rival(tx, *root)? {
                tx.manager().locks.wait_for_xid(tx.locks(), xid, LockWait::Block)?;
                continue;
            }
            let Some(version) = handle.heap.live_version(tx, *root)? else { break };
            let row = own.whole(&version.data, run)?;
            match own.met_for_sure(&row, Some(*root), run)? {
                Some((_, there)) => return Ok(Some((row, there))),
                None => break,
            }
        }
    }
    Ok(None)
}

/// The roots of a table's rows that are live now.
///
/// # Errors
/// I/O, interrupts.
pub fn live_rows(table: &Table, run: &mut Run<'_, '_>) -> Result<Vec<TupleId>> {
    let heap = Heap::open(&run.cx.engine.storage, RelId(table.rel));
    let mut snapshot = run.cx.tx.latest_snapshot();
    snapshot.command = run.cx.tx.command() + 1;
    let mut scan = heap.scan(&snapshot, None);
    let mut out = Vec::new();
    loop {
        sched::check_interrupts()?;
        if !scan.next_page(run.cx.tx, |_, root, _| out.push(root))? {
            return Ok(out);
        }
    }
}
