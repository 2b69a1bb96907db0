//! Hash join: builds a table of the right side, probes it with the left side.
//!
//! The right side's rows stand in one batch; rows with equal hashes are chained by number. A NULL in
//! a key matches nothing.

use base::{Oid, Result};
use hashbrown::HashTable;
use sched::memory::Use;
use sql::plan::{JoinKind, Node};
use sql::{Expr, Plan};
use types::{Batch, Column, Datum};

use super::grouping::{hash, same};
use super::{Operator, wrong_node};
use crate::eval;
use crate::rows::{self, Row};
use crate::run::Run;
use crate::vector;

const END: u32 = u32::MAX;

/// The right side.
struct Built {
    rows: Batch,
    /// Key values, `keys` for each row.
    keys: Vec<Datum>,
    /// (hash, first row with it).
    table: HashTable<(u64, u32)>,
    /// The next row with the same hash.
    chain: Vec<u32>,
    matched: Vec<bool>,
}

/// See the module's documentation.
pub struct HashJoin {
    left: Box<dyn Operator>,
    right: Box<dyn Operator>,
    built: Option<Built>,
    /// The left side is at its end: right rows without a match follow.
    left_done: bool,
    ended: bool,
}

/// Candidate pairs of one left batch.
#[derive(Default)]
struct Pairs {
    left: Vec<u32>,
    right: Vec<u32>,
}

impl HashJoin {
    /// Over two inputs.
    pub fn new(left: Box<dyn Operator>, right: Box<dyn Operator>) -> HashJoin {
        HashJoin { left, right, built: None, left_done: false, ended: false }
    }

    fn build(&mut self, plan: &Plan, keys: &[(Expr, Expr)], run: &mut Run<'_, '_>) -> Result<()> {
        let _memory = sched::memory::for_use(Use::Hash);
        let types = super::types(plan, run.prepared);
        let mut built = Built {
            rows: rows::empty(&types),
            keys: Vec::new(),
            table: HashTable::new(),
            chain: Vec::new(),
            matched: Vec::new(),
        };
        while let Some(batch) = self.right.next(plan, run)? {
            sched::check_interrupts()?;
            for row in 0..batch.rows {
                let number = built.chain.len() as u32;
                let begin = built.keys.len();
                for (_, right) in keys {
                    built.keys.push(eval::eval(right, Row::Batch(&batch, row), run)?);
                }
                built.chain.push(END);
                let key = &built.keys[begin..];
                if key.iter().any(Datum::is_null) {
                    continue;
                }
                let hash = hash(key);
                match built.table.find_mut(hash, |(h, _)| *h == hash) {
                    Some((_, first)) => {
                        built.chain[number as usize] = std::mem::replace(first, number);
                    }
                    None => {
                        built.table.insert_unique(hash, (hash, number), |(h, _)| *h);
                    }
                }
            }
            rows::append(&mut built.rows, &batch);
        }
        built.matched = vec![false; built.rows.rows];
        self.built = Some(built);
        Ok(())
    }
}

/// All pairs with equal keys.
fn probe(
    built: &Built,
    batch: &Batch,
    keys: &[(Expr, Expr)],
    run: &mut Run<'_, '_>,
) -> Result<Pairs> {
    let mut pairs = Pairs::default();
    let mut key = Vec::with_capacity(keys.len());
    for row in 0..batch.rows {
        key.clear();
        for (left, _) in keys {
            key.push(eval::eval(left, Row::Batch(batch, row), run)?);
        }
        if key.iter().any(Datum::is_null) {
            continue;
        }
        let hash = hash(&key);
        let mut at = built.table.find(hash, |(h, _)| *h == hash).map_or(END, |(_, n)| *n);
        let before = pairs.right.len();
        while at != END {
            let place = at as usize * keys.len();
            if same(&built.keys[place..place + keys.len()], &key) {
                pairs.left.push(row as u32);
                pairs.right.push(at);
            }
            at = built.chain[at as usize];
        }
        // Chains run from the last row to the first.
        pairs.right[before..].reverse();
    }
    Ok(pairs)
}

/// Columns of NULLs.
fn nulls(types: &[Oid], rows: usize) -> Batch {
    let column = |ty: &Oid| {
        let mut column = Column::new(*ty);
        (0..rows).for_each(|_| column.push(Datum::Null));
        column
    };
    Batch { columns: types.iter().map(column).collect(), rows }
}

/// The output for one left batch, by kind of join.
fn join_batch(
    plan: &Plan,
    built: &mut Built,
    batch: &Batch,
    run: &mut Run<'_, '_>,
) -> Result<Batch> {
    let Node::HashJoin { right, kind, keys, condition, .. } = &plan.node else {
        return Err(wrong_node());
    };
    let mut pairs = probe(built, batch, keys, run)?;
    let plain = matches!(kind, JoinKind::Inner);
    let mut joined =
        rows::beside(rows::take(batch, &pairs.left), rows::take(&built.rows, &pairs.right));
    if let Some(condition) = condition
        && let Some(kept) = vector::select(condition, &joined, run)?
    {
        joined = rows::take(&joined, &kept);
        pairs.left = kept.iter().map(|n| pairs.left[*n as usize]).collect();
        pairs.right = kept.iter().map(|n| pairs.right[*n as usize]).collect();
    }
    if plain {
        return Ok(joined);
    }
    let mut has_match = vec![false; batch.rows];
    pairs.left.iter().for_each(|n| has_match[*n as usize] = true);
    pairs.right.iter().for_each(|n| built.matched[*n as usize] = true);
    let with = |wanted: bool| -> Vec<u32> {
        (0..batch.rows as u32).filter(|n| has_match[*n as usize] == wanted).collect()
    };
    match kind {
        JoinKind::Semi => return Ok(rows::take(batch, &with(true))),
        JoinKind::Anti => return Ok(rows::take(batch, &with(false))),
        JoinKind::Left | JoinKind::Full => {
            let lonely = with(false);
            if !lonely.is_empty() {
                let right_types = super::types(right, run.prepared);
                let padded =
                    rows::beside(rows::take(batch, &lonely), nulls(&right_types, lonely.len()));
                rows::append(&mut joined, &padded);
            }
        }
        JoinKind::Inner | JoinKind::Right => {}
    }
    Ok(joined)
}

impl Operator for HashJoin {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::HashJoin { left, right, kind, keys, .. } = &plan.node else {
            return Err(wrong_node());
        };
        if self.built.is_none() {
            self.build(right, keys, run)?;
        }
        let Some(built) = &mut self.built else {
            return Ok(None);
        };
        while !self.left_done {
            sched::check_interrupts()?;
            let Some(batch) = self.left.next(left, run)? else {
                self.left_done = true;
                break;
            };
            let joined = join_batch(plan, built, &batch, run)?;
            if joined.rows > 0 {
                return Ok(Some(joined));
            }
        }
        let pads = matches!(kind, JoinKind::Right | JoinKind::Full);
        if std::mem::replace(&mut self.ended, true) || !pads {
            return Ok(None);
        }
        let lonely: Vec<u32> =
            (0..built.rows.rows as u32).filter(|n| !built.matched[*n as usize]).collect();
        let left_types = super::types(left, run.prepared);
        let padded =
            rows::beside(nulls(&left_types, lonely.len()), rows::take(&built.rows, &lonely));
        Ok((padded.rows > 0).then_some(padded))
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::HashJoin { left, right, .. } = &plan.node else {
            return Err(wrong_node());
        };
        self.built = None;
        self.left_done = false;
        self.ended = false;
        self.left.rescan(left, run)?;
        self.right.rescan(right, run)
    }
}
