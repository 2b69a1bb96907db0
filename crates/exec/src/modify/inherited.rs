//! Changes of rows that are in a child of the statement's table. The input has the columns that the child
//! inherits; its row is read whole from its place, and changed by its own numbers.

use access::HeapTuple;
use base::Result;
use sql::Expr;
use sql::plan::{Modify, ModifyAction, ModifyChild};
use types::Datum;

use super::pipeline::{self, Changed, Proposal, Source};
use super::{Reread, Touched, target};
use crate::eval;
use crate::modify::Writer;
use crate::rows::Row;
use crate::run::Run;

/// Which child an input row is in; None: it is the table's own.
pub fn child_of(modify: &Modify, input: &[Datum]) -> Option<usize> {
    if modify.children.is_empty() {
        return None;
    }
    let Datum::Oid(table) = input[usize::from(modify.tableoid)] else { return None };
    modify.children.iter().position(|child| child.table.oid == table)
}

/// What the statement may change in a child.
pub fn touched<'a>(child: &'a ModifyChild, action: &ModifyAction) -> Touched<'a> {
    match action {
        ModifyAction::Update { .. } => Touched::Update(&child.set),
        ModifyAction::Delete { .. } => Touched::Delete,
        _ => Touched::All,
    }
}

/// One row of a child: read whole from its place, changed by the child's own numbers.
struct ChildRow<'p, 'i> {
    child: &'p ModifyChild,
    delete: bool,
    recheck: Option<&'p Expr>,
    input: &'i mut [Datum],
    reread: Option<Reread<'p>>,
}

impl Source for ChildRow<'_, '_> {
    fn propose(&mut self, writer: &Writer, run: &mut Run<'_, '_>) -> Result<Option<Proposal>> {
        let Some((tid, root)) = target(self.input) else { return Ok(None) };
        let Some(version) = writer.target.handle.heap.fetch_version(tid)? else {
            return Ok(None);
        };
        let old = writer.target.handle.decode_all(&version.data)?;
        if self.delete {
            return Ok(Some(Proposal { tid, root, old, new: None }));
        }
        let mut new = old.clone();
        for (column, expr) in &self.child.set {
            new[usize::from(*column) - 1] = eval::eval(expr, Row::Values(self.input), run)?;
        }
        Ok(Some(Proposal { tid, root, old, new: Some(new) }))
    }

    fn follow(
        &mut self,
        writer: &Writer,
        newest: &HeapTuple,
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        let (child, recheck) = (self.child, self.recheck);
        let reread =
            self.reread.get_or_insert_with(|| Reread::new(&child.table, &child.columns, recheck));
        reread.apply(writer, newest, self.input, run)
    }
}

/// Updates or deletes one row, following it to newer versions. Returns the new row, or the deleted one,
/// with the columns and in the order of the statement's table.
///
/// # Errors
/// As for the table's own rows.
pub fn change_row(
    writer: &mut Writer,
    modify: &Modify,
    child: &ModifyChild,
    input: &mut [Datum],
    run: &mut Run<'_, '_>,
) -> Result<Option<Vec<Datum>>> {
    match change_part(writer, modify, child, input, run)? {
        Changed::Row(row) | Changed::Moved(row) => Ok(Some(as_named(child, &row))),
        // It waits for rows, so that none is busy.
        Changed::Nothing | Changed::Gone | Changed::SelfChanged | Changed::Busy => Ok(None),
    }
}

/// The same; says what became of the row, which is the child's own.
///
/// # Errors
/// As for the table's own rows.
pub fn change_part(
    writer: &mut Writer,
    modify: &Modify,
    child: &ModifyChild,
    input: &mut [Datum],
    run: &mut Run<'_, '_>,
) -> Result<Changed> {
    let (recheck, delete) = match &modify.action {
        ModifyAction::Update { recheck, .. } => (recheck.as_ref(), false),
        ModifyAction::Delete { recheck, .. } => (recheck.as_ref(), true),
        _ => return Ok(Changed::Nothing),
    };
    let snapshot = run.snapshot;
    let mut source = ChildRow { child, delete, recheck, input, reread: None };
    pipeline::change(writer, &child.checks, &mut source, &snapshot, run)
}

/// A child's row as one of the statement's table.
pub fn as_named(child: &ModifyChild, row: &[Datum]) -> Vec<Datum> {
    let value = |n: &u16| match n {
        0 => Datum::Null,
        n => row[usize::from(*n) - 1].clone(),
    };
    child.numbers.iter().map(value).collect()
}

/// A row of the statement's table as one of a partition.
pub fn as_own(child: &ModifyChild, row: Vec<Datum>) -> Vec<Datum> {
    let mut own = vec![Datum::Null; child.table.columns.len()];
    for (value, n) in row.into_iter().zip(&child.numbers) {
        if *n > 0 {
            own[usize::from(*n) - 1] = value;
        }
    }
    own
}
