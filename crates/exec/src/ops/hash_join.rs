//! Hash join: builds a table of the right side, probes it with the left side.
//!
//! The right side's rows stand in one batch; rows with equal hashes are chained by number. A NULL in
//! a key matches nothing.
//!
//! A right side larger than its memory is put aside in files by the hash of its key, then the left
//! side likewise ([`super::partition`]); each pair of files is joined by itself.

use base::{Oid, Result};
use hashbrown::HashTable;
use sched::memory::Use;
use sql::plan::{JoinKind, Node};
use sql::{Expr, Plan};
use types::{Batch, Column, Datum};

use super::grouping::{hash, same};
use super::partition::{self, Partitions, Reader};
use super::spill::Run as File;
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
    /// Bytes, about.
    held: usize,
}

/// See the module's documentation.
pub struct HashJoin {
    left: Box<dyn Operator>,
    right: Box<dyn Operator>,
    built: Option<Built>,
    /// Pairs of files (left, right) still to be joined.
    files: Vec<(File, File)>,
    /// The left file being joined; None: the left side itself is read.
    reader: Option<Reader>,
    /// The left side is at its end: right rows without a match follow.
    left_done: bool,
    padded: bool,
}

/// Candidate pairs of one left batch.
#[derive(Default)]
struct Pairs {
    left: Vec<u32>,
    right: Vec<u32>,
}

impl Built {
    fn new(types: &[Oid]) -> Built {
        Built {
            rows: rows::empty(types),
            keys: Vec::new(),
            table: HashTable::new(),
            chain: Vec::new(),
            matched: Vec::new(),
            held: 0,
        }
    }

    /// Adds rows of the right side.
    fn add(&mut self, batch: &Batch, keys: &[(Expr, Expr)], run: &mut Run<'_, '_>) -> Result<()> {
        for row in 0..batch.rows {
            let number = self.chain.len() as u32;
            let begin = self.keys.len();
            for (_, right) in keys {
                self.keys.push(eval::eval(right, Row::Batch(batch, row), run)?);
            }
            self.chain.push(END);
            let key = &self.keys[begin..];
            self.held += key.iter().map(rows::width).sum::<usize>() + 32;
            if key.iter().any(Datum::is_null) {
                continue;
            }
            let hash = hash(key);
            match self.table.find_mut(hash, |(h, _)| *h == hash) {
                Some((_, first)) => {
                    self.chain[number as usize] = std::mem::replace(first, number);
                }
                None => {
                    self.table.insert_unique(hash, (hash, number), |(h, _)| *h);
                }
            }
        }
        self.held += rows::batch_bytes(batch);
        rows::append(&mut self.rows, batch);
        Ok(())
    }

    fn finish(&mut self) {
        self.matched = vec![false; self.rows.rows];
    }
}

/// Which side of the keys.
#[derive(Clone, Copy)]
enum Side {
    Left,
    Right,
}

/// Puts a batch aside by the hash of its keys.
fn put_aside(
    to: &mut Partitions,
    batch: &Batch,
    types: &[Oid],
    keys: &[(Expr, Expr)],
    side: Side,
    run: &mut Run<'_, '_>,
) -> Result<()> {
    let mut key = Vec::with_capacity(keys.len());
    for row in 0..batch.rows {
        key.clear();
        for (left, right) in keys {
            let expr = match side {
                Side::Left => left,
                Side::Right => right,
            };
            key.push(eval::eval(expr, Row::Batch(batch, row), run)?);
        }
        to.add(hash(&key), &rows::get(batch, row, types))?;
    }
    Ok(())
}

impl HashJoin {
    /// Over two inputs.
    pub fn new(left: Box<dyn Operator>, right: Box<dyn Operator>) -> HashJoin {
        HashJoin {
            left,
            right,
            built: None,
            files: Vec::new(),
            reader: None,
            left_done: false,
            padded: false,
        }
    }

    /// Reads the right side; puts both aside when it is too large.
    fn build(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::HashJoin { left, right, keys, .. } = &plan.node else {
            return Err(wrong_node());
        };
        let _memory = sched::memory::for_use(Use::Hash);
        let types = super::types(right, run.prepared);
        let limit = partition::limit(run);
        let mut built = Built::new(&types);
        let mut aside: Option<Partitions> = None;
        while let Some(batch) = self.right.next(right, run)? {
            sched::check_interrupts()?;
            match &mut aside {
                Some(aside) => put_aside(aside, &batch, &types, keys, Side::Right, run)?,
                None => built.add(&batch, keys, run)?,
            }
            if aside.is_none() && built.held > limit {
                let mut files = Partitions::new(&types, 0, run)?;
                let held = std::mem::replace(&mut built, Built::new(&types));
                put_aside(&mut files, &held.rows, &types, keys, Side::Right, run)?;
                aside = Some(files);
            }
        }
        let Some(aside) = aside else {
            built.finish();
            self.built = Some(built);
            return Ok(());
        };
        let right_files = aside.finish()?;
        let left_types = super::types(left, run.prepared);
        let mut aside = Partitions::new(&left_types, 0, run)?;
        while let Some(batch) = self.left.next(left, run)? {
            sched::check_interrupts()?;
            put_aside(&mut aside, &batch, &left_types, keys, Side::Left, run)?;
        }
        self.files = aside.finish()?.into_iter().zip(right_files).collect();
        self.next_files(plan, run).map(drop)
    }

    /// Begins with the next pair of files; false when there is none.
    fn next_files(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<bool> {
        let Node::HashJoin { left, right, keys, .. } = &plan.node else {
            return Err(wrong_node());
        };
        let Some((left_file, right_file)) = self.files.pop() else { return Ok(false) };
        let types = super::types(right, run.prepared);
        let mut built = Built::new(&types);
        let mut reader = Reader::new(right_file, &types)?;
        while let Some(batch) = reader.next()? {
            sched::check_interrupts()?;
            built.add(&batch, keys, run)?;
        }
        built.finish();
        self.built = Some(built);
        self.reader = Some(Reader::new(left_file, &super::types(left, run.prepared))?);
        (self.left_done, self.padded) = (false, false);
        Ok(true)
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
        let Node::HashJoin { left, kind, .. } = &plan.node else {
            return Err(wrong_node());
        };
        if self.built.is_none() {
            self.build(plan, run)?;
        }
        loop {
            let Some(built) = &mut self.built else {
                return Ok(None);
            };
            while !self.left_done {
                sched::check_interrupts()?;
                let batch = match &mut self.reader {
                    Some(reader) => reader.next()?,
                    None => self.left.next(left, run)?,
                };
                let Some(batch) = batch else {
                    self.left_done = true;
                    break;
                };
                let joined = join_batch(plan, built, &batch, run)?;
                if joined.rows > 0 {
                    return Ok(Some(joined));
                }
            }
            let pads = matches!(kind, JoinKind::Right | JoinKind::Full);
            if !std::mem::replace(&mut self.padded, true) && pads {
                let lonely: Vec<u32> =
                    (0..built.rows.rows as u32).filter(|n| !built.matched[*n as usize]).collect();
                let left_types = super::types(left, run.prepared);
                let padded = rows::beside(
                    nulls(&left_types, lonely.len()),
                    rows::take(&built.rows, &lonely),
                );
                if padded.rows > 0 {
                    return Ok(Some(padded));
                }
            }
            if !self.next_files(plan, run)? {
                return Ok(None);
            }
        }
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::HashJoin { left, right, .. } = &plan.node else {
            return Err(wrong_node());
        };
        (self.built, self.reader) = (None, None);
        self.files.clear();
        (self.left_done, self.padded) = (false, false);
        self.left.rescan(left, run)?;
        self.right.rescan(right, run)
    }
}
