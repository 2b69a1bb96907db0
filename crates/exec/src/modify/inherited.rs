//! Changes of rows that are in a child of the statement's table. The input has the columns that the child
//! inherits; its row is read whole from its place, and changed by its own numbers.

use base::Result;
use sql::plan::{Modify, ModifyAction, ModifyChild};
use types::Datum;

use super::writer::Change;
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
        _ => Touched::Delete,
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
    let (recheck, delete) = match &modify.action {
        ModifyAction::Update { recheck, .. } => (recheck.as_ref(), false),
        ModifyAction::Delete { recheck, .. } => (recheck.as_ref(), true),
        _ => return Ok(None),
    };
    let snapshot = run.snapshot;
    let mut reread = None;
    while let Some((tid, root)) = target(input) {
        let Some(version) = writer.target.handle.heap.fetch_version(tid)? else {
            return Ok(None);
        };
        let old = writer.target.handle.decode_all(&version.data)?;
        let mut row = old.clone();
        let change = if delete {
            writer.delete(tid, root, &old, &snapshot, run)?
        } else {
            for (column, expr) in &child.set {
                row[usize::from(*column) - 1] = eval::eval(expr, Row::Values(input), run)?;
            }
            writer.check_row(&mut row, &child.checks, run)?;
            writer.update(tid, root, &old, &row, &snapshot, run)?
        };
        match change {
            Change::Done => return Ok(Some(as_named(child, &row))),
            Change::Gone | Change::SelfChanged => return Ok(None),
            // It waits for rows; so this one may just as well be looked at again.
            Change::Busy => {}
            Change::Newer(newest) => {
                let reread = reread
                    .get_or_insert_with(|| Reread::new(&child.table, &child.columns, recheck));
                if !reread.apply(writer, &newest, input, run)? {
                    return Ok(None);
                }
            }
        }
    }
    Ok(None)
}

/// A child's row as one of the statement's table.
fn as_named(child: &ModifyChild, row: &[Datum]) -> Vec<Datum> {
    let value = |n: &u16| match n {
        0 => Datum::Null,
        n => row[usize::from(*n) - 1].clone(),
    };
    child.numbers.iter().map(value).collect()
}
