//! MERGE: for each source row the first WHEN that fits.
//!
//! A matching row that somebody else has changed meanwhile is looked at again in its newest version:
//! if it still matches, the WHEN MATCHED clauses are tried anew, else the WHEN NOT MATCHED ones.

use access::HeapTuple;
use base::{Oid, Result, err};
use sql::plan::{MergeAction, MergeClause, Modify, ModifyAction, ModifyChild, ScanColumn};
use types::{Batch, Datum};

use super::inherited::{self, as_own};
use super::pipeline::{self, Changed, Proposal, Source};
use super::policies;
use super::{ModifyOp, Reread, Writer, old_row, target};
use crate::eval;
use crate::rows::{self, Row};
use crate::run::Run;

impl ModifyOp {
    /// Merges a batch of source rows, each beside the table's row that matches it.
    pub(super) fn merge(
        &mut self,
        modify: &Modify,
        batch: &Batch,
        types: &[Oid],
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let ModifyAction::Merge { columns, recheck, clauses, .. } = &modify.action else {
            return Ok(());
        };
        let reread = Reread::new(&modify.table, columns, recheck.as_ref());
        for n in 0..batch.rows {
            sched::check_interrupts()?;
            let mut input = rows::get(batch, n, types);
            let merged = match self.parts.is_some() {
                true => self.merge_routed(modify, columns, (clauses, &reread), &mut input, run)?,
                false => match inherited::child_of(modify, &input) {
                    Some(at) => {
                        self.merge_child(modify, columns, (clauses, at), &mut input, run)?
                    }
                    None => self.merge_row(modify, columns, clauses, &reread, &mut input, run)?,
                },
            };
            self.changed += u64::from(merged);
        }
        Ok(())
    }

    /// One source row of a MERGE into a partitioned table; whether something was changed.
    fn merge_routed(
        &mut self,
        modify: &Modify,
        columns: &[(u16, ScanColumn)],
        (clauses, own): (&[MergeClause], &Reread<'_>),
        input: &mut [Datum],
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        let snapshot = run.snapshot;
        let Some(parts) = &mut self.parts else { return Ok(false) };
        let at = match (target(input), &input[usize::from(modify.tableoid)]) {
            (Some(_), Datum::Oid(id)) => Some(parts.find(modify, *id, run)?),
            _ => None,
        };
        let ModifyAction::Merge { recheck, .. } = &modify.action else { return Ok(false) };
        loop {
            let (changed, fits) = match at {
                Some(at) => {
                    let part = parts.at(at);
                    let child = &part.child;
                    let reread = Reread::new(&child.table, &child.columns, recheck.as_ref());
                    let source = MergeRow::new(modify, columns, clauses, &reread, input);
                    let mut source = MergeRow { part: Some(child), ..source };
                    let (writer, rules) = (&mut part.writer, &child.checks);
                    (pipeline::change(writer, rules, &mut source, &snapshot, run)?, source.fits)
                }
                None => {
                    let mut source = MergeRow::new(modify, columns, clauses, own, input);
                    let writer = &mut self.writer;
                    let rules = &modify.checks;
                    (pipeline::change(writer, rules, &mut source, &snapshot, run)?, source.fits)
                }
            };
            match changed {
                Changed::Row(_) => return Ok(true),
                Changed::Moved(row) => {
                    let row = match at {
                        Some(at) => parts.at(at).named(row),
                        None => row,
                    };
                    return Ok(parts.insert_moved(modify, row, run)?.is_some());
                }
                Changed::Nothing => {
                    let Some(MergeAction::Insert(row)) = fits.map(|c| &c.action) else {
                        return Ok(false);
                    };
                    let row = eval::eval_all(row, Row::Values(input), run)?;
                    return Ok(parts.insert(modify, row, run)?.is_some());
                }
                Changed::SelfChanged => return Err(twice()),
                Changed::Gone => unmatch(columns, input),
                Changed::Busy => {}
            }
        }
    }

    /// One source row whose match is in a child of the table; whether something was changed.
    fn merge_child(
        &mut self,
        modify: &Modify,
        columns: &[(u16, ScanColumn)],
        (clauses, at): (&[MergeClause], usize),
        input: &mut [Datum],
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        let ModifyAction::Merge { recheck, .. } = &modify.action else { return Ok(false) };
        let child = &modify.children[at];
        super::foreign::expect_own(&child.table)?;
        let snapshot = run.snapshot;
        let of_child = Reread::new(&child.table, &child.columns, recheck.as_ref());
        let source = MergeRow::new(modify, columns, clauses, &of_child, input);
        let mut source = MergeRow { part: Some(child), whole: true, ..source };
        loop {
            let writer = &mut self.children[at];
            match pipeline::change(writer, &child.checks, &mut source, &snapshot, run)? {
                Changed::Row(_) | Changed::Moved(_) => return Ok(true),
                Changed::Nothing => break,
                Changed::SelfChanged => return Err(twice()),
                Changed::Gone => {
                    unmatch(columns, source.input);
                    break;
                }
                Changed::Busy => {}
            }
        }
        if target(input).is_some() {
            return Ok(false);
        }
        // No row matches any more: what is inserted goes into the table itself.
        let own = Reread::new(&modify.table, columns, recheck.as_ref());
        self.merge_row(modify, columns, clauses, &own, input, run)
    }

    /// One source row; whether something was changed.
    fn merge_row(
        &mut self,
        modify: &Modify,
        columns: &[(u16, ScanColumn)],
        clauses: &[MergeClause],
        reread: &Reread<'_>,
        input: &mut [Datum],
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        let snapshot = run.snapshot;
        let mut source = MergeRow::new(modify, columns, clauses, reread, input);
        loop {
            match pipeline::change(&mut self.writer, &modify.checks, &mut source, &snapshot, run)? {
                Changed::Row(_) | Changed::Moved(_) => return Ok(true),
                Changed::Nothing => {
                    let Some(MergeAction::Insert(row)) = source.fits.map(|c| &c.action) else {
                        return Ok(false);
                    };
                    let mut row = eval::eval_all(row, Row::Values(source.input), run)?;
                    return pipeline::insert(&mut self.writer, &mut row, &modify.checks, run);
                }
                Changed::SelfChanged => {
                    return Err(twice());
                }
                Changed::Gone => unmatch(columns, source.input),
                // It waits for rows; so this one may just as well be looked at again.
                Changed::Busy => {}
            }
        }
    }
}

/// A source row beside the table's row that matches it.
struct MergeRow<'p, 'i> {
    modify: &'p Modify,
    columns: &'p [(u16, ScanColumn)],
    clauses: &'p [MergeClause],
    reread: &'i Reread<'p>,
    input: &'i mut [Datum],
    /// The partition or child that the row is in.
    part: Option<&'i ModifyChild>,
    /// The child has columns that the input lacks: its rows are read whole from their places.
    whole: bool,
    /// The clause that fits it as it is now known.
    fits: Option<&'p MergeClause>,
}

impl<'p, 'i> MergeRow<'p, 'i> {
    fn new(
        modify: &'p Modify,
        columns: &'p [(u16, ScanColumn)],
        clauses: &'p [MergeClause],
        reread: &'i Reread<'p>,
        input: &'i mut [Datum],
    ) -> Self {
        MergeRow { modify, columns, clauses, reread, input, part: None, whole: false, fits: None }
    }
}

impl Source for MergeRow<'_, '_> {
    fn propose(&mut self, writer: &Writer, run: &mut Run<'_, '_>) -> Result<Option<Proposal>> {
        let found = target(self.input);
        self.fits = first_fitting(self.clauses, found.is_some(), self.input, run)?;
        let (Some(clause), Some((tid, root))) = (self.fits, found) else { return Ok(None) };
        let old = old_row(self.modify, self.columns, self.input);
        if let Some(rules) = &self.modify.checks.policies {
            let checks = match &clause.action {
                MergeAction::Update(_) => &rules.merge_update[..],
                MergeAction::Delete => &rules.merge_delete,
                MergeAction::Nothing | MergeAction::Insert(_) => &[],
            };
            policies::check(rules, checks, policies::Row::Target, &old, run)?;
        }
        let new = match &clause.action {
            MergeAction::Nothing | MergeAction::Insert(_) => return Ok(None),
            MergeAction::Delete => None,
            MergeAction::Update(set) => {
                let mut new = old.clone();
                for (column, expr) in set {
                    new[usize::from(*column) - 1] = eval::eval(expr, Row::Values(self.input), run)?;
                }
                Some(new)
            }
        };
        if let (true, Some(child)) = (self.whole, self.part) {
            let Some(version) = writer.target.handle.heap.fetch_version(tid)? else {
                return Ok(None);
            };
            let whole = writer.target.handle.decode_all(&version.data)?;
            let new = new.map(|named| {
                let mut row = whole.clone();
                for (value, n) in named.into_iter().zip(&child.numbers).filter(|(_, n)| **n > 0) {
                    row[usize::from(*n) - 1] = value;
                }
                row
            });
            return Ok(Some(Proposal { tid, root, old: whole, new }));
        }
        let own = |row: Vec<Datum>| match self.part {
            Some(child) => as_own(child, row),
            None => row,
        };
        Ok(Some(Proposal { tid, root, old: own(old), new: new.map(own) }))
    }

    fn follow(
        &mut self,
        writer: &Writer,
        newest: &HeapTuple,
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        if !self.reread.apply(writer, newest, self.input, run)? {
            unmatch(self.columns, self.input);
        }
        Ok(true)
    }
}

fn twice() -> base::Error {
    err!(CARDINALITY_VIOLATION, "MERGE command cannot affect row a second time")
        .hint("Ensure that not more than one source row matches any one target row.")
}

/// No row of the table matches any more.
fn unmatch(columns: &[(u16, ScanColumn)], input: &mut [Datum]) {
    (input[0], input[1]) = (Datum::Null, Datum::Null);
    for (place, _) in columns {
        input[usize::from(*place)] = Datum::Null;
    }
}

fn first_fitting<'c>(
    clauses: &'c [MergeClause],
    matched: bool,
    input: &[Datum],
    run: &mut Run<'_, '_>,
) -> Result<Option<&'c MergeClause>> {
    for clause in clauses.iter().filter(|c| c.matched == matched) {
        let fits = match &clause.condition {
            Some(condition) => eval::holds(condition, Row::Values(input), run)?,
            None => true,
        };
        if fits {
            return Ok(Some(clause));
        }
    }
    Ok(None)
}
