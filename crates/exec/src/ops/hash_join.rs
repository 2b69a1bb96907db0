//! Hash join: builds a table of the right side, probes it with the left side.
//!
//! The right side's rows stand in one batch; when it is complete, rows whose hashes end alike are
//! chained by number, in the order of their coming. A NULL in a key matches nothing. Hashes and
//! comparisons of keys go by column.
//!
//! Where only rows of the right side are wanted (RIGHT SEMI, RIGHT ANTI: a smaller side is looked for
//! in a larger one), they are marked while the left side is read, and handed up at its end.
//!
//! A right side larger than its memory is put aside in files by the hash of its key, then the left
//! side likewise ([`super::partition`]); each pair of files is joined by itself.
//!
//! Several threads may read the left side, each with a join of its own, over one table ([`together`]).

mod together;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use base::{Oid, Result};
use sched::memory::Use;
use sql::plan::{JoinKind, Node};
use sql::{Expr, Plan, walk};
use types::batch::{BATCH_ROWS, Vector};
use types::{Batch, Column};

use super::before_error::Postponed;
use super::grouping::{hash_columns, same_at};
use super::key_filter::KeyFilter;
use super::partition::{self, Partitions, Reader};
use super::spill::Run as File;
use crate::ops::measure::{REMOVED_BY_JOIN, count, note_most};
use crate::ops::operator::{Operator, types, wrong_node};
use crate::run::Run;
use crate::{rows, vector};

pub use together::Table;

const END: u32 = u32::MAX;
/// What EXPLAIN says of a table: chains, parts, kilobytes of the largest.
pub const HASH: [&str; 3] = ["Hash Buckets", "Hash Batches", "Peak Memory Usage"];
/// Pairs after which a batch is handed up, be there more for the same left rows or not.
const PAIRS_MAX: usize = 4 * BATCH_ROWS;
/// Rows in chains after which interrupts are looked for.
const STEPS: usize = 1 << 16;

/// The right side.
pub struct Built {
    rows: Batch,
    /// Keys that are no plain columns of the rows, at their places.
    computed: Vec<Option<Column>>,
    /// Each row's place in its chain; the hash is of no account for one with a NULL in its key.
    links: Vec<Link>,
    /// Rows with a NULL in their key, if there are any.
    nulls: Vec<bool>,
    /// The first row of each chain; a power of two of them.
    heads: Vec<u32>,
    /// Which rows had a match; empty for the kinds of join that don't ask.
    matched: Vec<AtomicBool>,
    /// How many of them had none yet.
    lonely: AtomicUsize,
    /// A filter by the keys for the left side, where rows without a partner are of no use.
    filter: Option<Arc<KeyFilter>>,
    /// Bytes, about.
    held: usize,
}

/// A right side that is too large for memory.
enum Rest {
    /// Some of it is aside, and in files that others have made; the other rows are to be read.
    Some(Partitions, Vec<Vec<File>>),
    /// All of it is in files, by place.
    All(Vec<Vec<File>>),
}

/// Files of the left and the right side at one place.
type Pair = (Vec<File>, Vec<File>);

/// The right side when it has been read.
enum Right {
    Whole(Built),
    /// It is in files.
    Aside(Vec<File>),
}

/// A row in its chain: hash and next row, which are looked at together.
#[derive(Clone, Copy)]
struct Link {
    hash: u64,
    next: u32,
}

/// See the module's documentation.
pub struct HashJoin {
    left: Box<dyn Operator>,
    right: Box<dyn Operator>,
    built: Option<Arc<Built>>,
    /// Several threads read the left side: the thread's place among them, and the table.
    team: Option<together::Place>,
    /// There is nothing to do for this thread.
    closed: bool,
    /// The right side is too large and waits until the leader is alone.
    postponed_right: Option<Rest>,
    /// Files of the left side that other threads have made for it.
    postponed_left: Option<Vec<Vec<File>>>,
    /// Pairs still to be joined.
    files: Vec<Pair>,
    /// Pairs still to be joined, of which all threads take.
    queue: Option<Arc<together::Queue>>,
    /// The left file being joined; None: the left side itself is read.
    reader: Option<Reader>,
    /// The left batch of which not all pairs have been handed up.
    pending: Option<Pending>,
    /// The left side is at its end: right rows without a match follow.
    left_done: bool,
    /// The right row that is looked at next then.
    tail_at: usize,
    /// Columns of the left side that rows which find no partner above can be told by; none where right
    /// rows that lose theirs would be handed up instead.
    left_width: usize,
    /// Only right rows are handed up.
    right_only: bool,
    postponed: Postponed,
}

/// A left batch being joined.
struct Pending {
    batch: Batch,
    /// The row to go on with, and where in its chain; None: at the chain's beginning.
    from: (usize, Option<u32>),
    /// The hashes of the rows' keys, the first rows of their chains, and which keys have a NULL in them;
    /// made when the batch is begun.
    hashes: Vec<u64>,
    firsts: Vec<u32>,
    nulls: Vec<bool>,
    /// Which rows have a partner; empty for the kinds of join that don't ask.
    has_match: Vec<bool>,
}

impl Pending {
    fn new(batch: Batch) -> Pending {
        let (hashes, firsts, nulls, has_match) = (vec![], vec![], vec![], vec![]);
        Pending { batch, from: (0, None), hashes, firsts, nulls, has_match }
    }
}

/// Candidate pairs of one left batch.
#[derive(Default)]
struct Pairs {
    left: Vec<u32>,
    right: Vec<u32>,
}

impl Built {
    fn new(types: &[Oid], keys: &[(Expr, Expr)]) -> Built {
        let computed = |(_, right): &(Expr, Expr)| match right {
            Expr::Column(..) => None,
            other => Some(Column::new(other.ty())),
        };
        Built {
            rows: rows::empty(types),
            computed: keys.iter().map(computed).collect(),
            links: Vec::new(),
            nulls: Vec::new(),
            heads: Vec::new(),
            matched: Vec::new(),
            lonely: AtomicUsize::new(0),
            filter: None,
            held: 0,
        }
    }

    /// Adds rows of the right side.
    fn add(&mut self, batch: &Batch, keys: &[(Expr, Expr)], run: &mut Run<'_, '_>) -> Result<()> {
        let values = key_columns(keys, Side::Right, batch, run)?;
        let hashes = hash_columns(&values, batch.rows);
        self.links.extend(hashes.into_iter().map(|hash| Link { hash, next: END }));
        if let Some(nulls) = null_rows(&values, batch.rows) {
            self.nulls.resize(self.rows.rows, false);
            self.nulls.extend(nulls);
        } else if !self.nulls.is_empty() {
            self.nulls.resize(self.rows.rows + batch.rows, false);
        }
        for (to, value) in self.computed.iter_mut().zip(&values) {
            if let Some(to) = to {
                to.append(value)?;
                self.held += batch.rows * 16;
            }
        }
        self.held += rows::batch_bytes(batch) + batch.rows * 20;
        rows::append(&mut self.rows, batch)?;
        Ok(())
    }

    /// Makes the chains.
    fn finish(&mut self, kind: JoinKind) {
        let rows = self.rows.rows;
        if asks_right(kind) {
            self.matched = (0..rows).map(|_| AtomicBool::new(false)).collect();
            self.lonely = AtomicUsize::new(rows);
        }
        self.heads = vec![END; (rows * 2).next_power_of_two()];
        let mask = self.heads.len() - 1;
        // From the last to the first, so that chains run in the order of coming.
        for (row, link) in self.links.iter_mut().enumerate().rev() {
            if self.nulls.get(row) != Some(&true) {
                let head = &mut self.heads[link.hash as usize & mask];
                link.next = std::mem::replace(head, row as u32);
            }
        }
    }

    /// Notes what EXPLAIN says of it, and makes the filter of its keys.
    fn tell(&mut self, plan: &Plan, kind: JoinKind, run: &mut Run<'_, '_>) {
        tell(plan, [self.heads.len(), 1, self.held.div_ceil(1024)], run);
        if !matches!(kind, JoinKind::Left | JoinKind::Full | JoinKind::Anti) {
            let hashes = self.links.iter().map(|link| link.hash);
            self.filter = Some(Arc::new(KeyFilter::new(hashes)));
        }
    }

    /// The first row of each hash's chain. Apart from what follows the chains, so that the
    /// processor waits for many places in memory at once.
    fn firsts(&self, hashes: &[u64]) -> Vec<u32> {
        let mask = self.heads.len() - 1;
        hashes.iter().map(|hash| self.heads[*hash as usize & mask]).collect()
    }

    /// Notes which rows have found a partner.
    fn mark(&self, rows: &[u32]) {
        for row in rows {
            let matched = &self.matched[*row as usize];
            if !matched.load(Ordering::Relaxed) && !matched.swap(true, Ordering::Relaxed) {
                self.lonely.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Whether a row has found a partner.
    fn is_matched(&self, row: usize) -> bool {
        self.matched[row].load(Ordering::Relaxed)
    }

    /// What comes once the left side is at its end: rows with or without a partner, from row `at` on, of
    /// which there are so many at most. Goes on with `at`.
    fn tail(&self, kind: JoinKind, left: &[Oid], at: &mut usize) -> Batch {
        let wanted = kind == JoinKind::RightSemi;
        let mut chosen: Vec<u32> = Vec::new();
        while *at < self.matched.len() && chosen.len() < PAIRS_MAX {
            if self.is_matched(*at) == wanted {
                chosen.push(*at as u32);
            }
            *at += 1;
        }
        let chosen = rows::take(&self.rows, &chosen);
        match kind.gives_left() {
            true => rows::beside(rows::nulls(left, chosen.rows), chosen),
            false => chosen,
        }
    }

    /// The values of a key.
    fn key<'b>(&'b self, n: usize, keys: &[(Expr, Expr)]) -> Option<&'b Column> {
        match &keys[n].1 {
            Expr::Column(at, _) => self.rows.columns.get(usize::from(*at)),
            _ => self.computed[n].as_ref(),
        }
    }
}

/// Notes what EXPLAIN says of the table.
fn tell(plan: &Plan, shown: [usize; 3], run: &mut Run<'_, '_>) {
    for (name, amount) in HASH.into_iter().zip(shown) {
        note_most(plan, name, amount as u64, run);
    }
}

/// The same of a table that is in so many files.
fn tell_files(plan: &Plan, files: usize, run: &mut Run<'_, '_>) {
    let limit = partition::limit(run);
    let chains = (limit / 64).next_power_of_two();
    tell(plan, [chains, files, limit.div_ceil(1024)], run);
}

/// Whether it counts which right rows have a partner.
fn asks_right(kind: JoinKind) -> bool {
    matches!(kind, JoinKind::Right | JoinKind::Full) || !kind.gives_left()
}

/// The keys' values of a batch of one side.
fn key_columns<'b>(
    keys: &[(Expr, Expr)],
    side: Side,
    batch: &'b Batch,
    run: &mut Run<'_, '_>,
) -> Result<Vec<Cow<'b, Column>>> {
    let value = |(left, right): &(Expr, Expr)| {
        let expr = match side {
            Side::Left => left,
            Side::Right => right,
        };
        vector::values(expr, batch, run)?.filled(expr.ty(), batch.rows)
    };
    keys.iter().map(value).collect()
}

/// The rows with a NULL in their key; None when there is none.
fn null_rows(key: &[Cow<'_, Column>], rows: usize) -> Option<Vec<bool>> {
    if key.iter().all(|c| c.nulls.is_empty() && !matches!(c.data, Vector::Datum(_))) {
        return None;
    }
    let null = |c: &Cow<'_, Column>, row: usize| match &c.data {
        Vector::Datum(v) => c.is_null(row) || v[row].is_null(),
        _ => c.is_null(row),
    };
    Some((0..rows).map(|row| key.iter().any(|c| null(c, row))).collect())
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
    let values = key_columns(keys, side, batch, run)?;
    for (row, hash) in hash_columns(&values, batch.rows).into_iter().enumerate() {
        to.add(hash, &rows::get(batch, row, types))?;
    }
    Ok(())
}

impl HashJoin {
    /// Over two inputs, of which the left one has so many columns.
    pub fn new(
        left: Box<dyn Operator>,
        right: Box<dyn Operator>,
        kind: JoinKind,
        left_width: usize,
    ) -> HashJoin {
        HashJoin {
            postponed: Postponed::default(),
            left_width: if asks_right(kind) { 0 } else { left_width },
            right_only: !kind.gives_left(),
            left,
            right,
            built: None,
            team: None,
            closed: false,
            postponed_right: None,
            postponed_left: None,
            files: Vec::new(),
            queue: None,
            reader: None,
            pending: None,
            left_done: false,
            tail_at: 0,
        }
    }

    /// Reads the right side; puts both aside when it is too large.
    fn build(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let _memory = sched::memory::for_use(Use::Hash);
        if self.team.is_some() {
            return self.build_together(plan, run);
        }
        match self.read_right(plan, None, run)? {
            Right::Whole(built) => self.adopt(plan, Arc::new(built)),
            Right::Aside(files) => {
                let files = files.into_iter().map(|file| vec![file]).collect();
                self.put_left_aside(plan, (files, Vec::new()), run)
            }
        }
    }

    /// Reads the right side, of which some is aside perhaps.
    fn read_right(
        &mut self,
        plan: &Plan,
        mut aside: Option<Partitions>,
        run: &mut Run<'_, '_>,
    ) -> Result<Right> {
        let Node::HashJoin { right, keys, kind, .. } = &plan.node else {
            return Err(wrong_node());
        };
        let right_types = types(right, run.prepared);
        let limit = partition::limit(run);
        let mut built = Built::new(&right_types, keys);
        while let Some(batch) = self.right.next(right, run)? {
            sched::check_interrupts_now()?;
            match &mut aside {
                Some(aside) => put_aside(aside, &batch, &right_types, keys, Side::Right, run)?,
                None => built.add(&batch, keys, run)?,
            }
            if aside.is_none() && built.held > limit {
                let mut files = Partitions::new(&right_types, 0, run);
                let held = std::mem::replace(&mut built, Built::new(&right_types, keys));
                put_aside(&mut files, &held.rows, &right_types, keys, Side::Right, run)?;
                aside = Some(files);
            }
        }
        if let Some(aside) = aside {
            return Ok(Right::Aside(aside.finish()?));
        }
        built.finish(*kind);
        built.tell(plan, *kind, run);
        Ok(Right::Whole(built))
    }

    /// Begins to probe a table.
    fn adopt(&mut self, plan: &Plan, built: Arc<Built>) -> Result<()> {
        let Node::HashJoin { keys, .. } = &plan.node else { return Err(wrong_node()) };
        if let Some(filter) = &built.filter {
            // Nothing on the left is of use without a partner.
            self.left_done = built.rows.rows == 0;
            let keys: Vec<Expr> = keys.iter().map(|(left, _)| left.clone()).collect();
            self.left.restrict(&keys, filter);
        }
        self.built = Some(built);
        Ok(())
    }

    /// Puts the left side aside beside the files of the right one, and begins with the first pair. Others have put some of
    /// it aside before, perhaps.
    fn put_left_aside(
        &mut self,
        plan: &Plan,
        (right_files, mut others): (Vec<Vec<File>>, Vec<Vec<File>>),
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let Node::HashJoin { left, .. } = &plan.node else { return Err(wrong_node()) };
        others.push(self.read_left(plan, left, run)?);
        self.files = together::by_place(others).into_iter().zip(right_files).collect();
        tell_files(plan, self.files.len(), run);
        self.next_files(plan, run).map(drop)
    }

    /// Puts what this thread reads of the left side aside.
    fn read_left(&mut self, plan: &Plan, left: &Plan, run: &mut Run<'_, '_>) -> Result<Vec<File>> {
        let Node::HashJoin { keys, .. } = &plan.node else { return Err(wrong_node()) };
        let left_types = types(left, run.prepared);
        let mut aside = Partitions::new(&left_types, 0, run);
        while let Some(batch) = self.left.next(left, run)? {
            sched::check_interrupts_now()?;
            put_aside(&mut aside, &batch, &left_types, keys, Side::Left, run)?;
        }
        aside.finish()
    }

    /// Begins with the next pair of files; false when there is none.
    fn next_files(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<bool> {
        let Node::HashJoin { left, right, keys, kind, .. } = &plan.node else {
            return Err(wrong_node());
        };
        let next = match (&self.queue, &self.team) {
            (Some(queue), Some(place)) => place.next_pair(queue),
            _ => self.files.pop(),
        };
        let Some((left_files, right_files)) = next else { return Ok(false) };
        let right_types = types(right, run.prepared);
        let mut built = Built::new(&right_types, keys);
        let mut reader = Reader::of(right_files, &right_types)?;
        while let Some(batch) = reader.next()? {
            sched::check_interrupts_now()?;
            built.add(&batch, keys, run)?;
        }
        built.finish(*kind);
        self.built = Some(Arc::new(built));
        self.pending = None;
        self.reader = Some(Reader::of(left_files, &types(left, run.prepared))?);
        (self.left_done, self.tail_at) = (false, 0);
        Ok(true)
    }
}

/// Pairs with equal keys, up to [`PAIRS_MAX`] and from `left.from` on, which is moved on; with `first` only
/// each left row's first one, with `open` only those of right rows that have found no partner yet.
fn probe(
    built: &Built,
    left: &mut Pending,
    keys: &[(Expr, Expr)],
    (first, open): (bool, bool),
    run: &mut Run<'_, '_>,
) -> Result<Pairs> {
    let mut pairs = Pairs::default();
    let (mut row, mut resumed) = left.from;
    let mut from = (left.batch.rows, None);
    left.from = from;
    if built.rows.rows == 0 {
        return Ok(pairs);
    }
    let right: Vec<&Column> = (0..keys.len()).filter_map(|n| built.key(n, keys)).collect();
    let exact = is_exact(&right);
    let begins = left.hashes.is_empty();
    let values = if begins || !exact {
        key_columns(keys, Side::Left, &left.batch, run)?
    } else {
        Vec::new()
    };
    if begins {
        left.nulls = null_rows(&values, left.batch.rows).unwrap_or_default();
        left.hashes = hash_columns(&values, left.batch.rows);
        left.firsts = built.firsts(&left.hashes);
    }
    let Pending { hashes, firsts, nulls, .. } = left;
    // There are never many first ones.
    let most = if first { usize::MAX } else { PAIRS_MAX };
    let mut steps = 0;
    'rows: while row < hashes.len() {
        let (hash, mut at) = (hashes[row], resumed.take().unwrap_or(firsts[row]));
        if nulls.get(row) == Some(&true) {
            at = END;
        }
        while at != END {
            if pairs.left.len() >= most {
                from = (row, Some(at));
                break 'rows;
            }
            let other = at as usize;
            let link = built.links[other];
            let same = link.hash == hash
                && !(open && built.is_matched(other))
                && (exact || right.iter().zip(&values).all(|(r, l)| same_at(r, other, l, row)));
            if same {
                pairs.left.push(row as u32);
                pairs.right.push(at);
                if first {
                    break;
                }
            }
            at = link.next;
            steps += 1;
            if steps % STEPS == 0 {
                sched::check_interrupts()?;
            }
        }
        row += 1;
    }
    left.from = from;
    Ok(pairs)
}

/// Whether different keys have different hashes: those of one integer have.
fn is_exact(key: &[&Column]) -> bool {
    matches!(key, [Column { data: Vector::Int2(_) | Vector::Int4(_) | Vector::Int8(_), .. }])
}

/// The numbers below `count` that are not in an ascending list.
fn others(list: &[u32], count: usize) -> Vec<u32> {
    let mut list = list.iter().copied().peekable();
    (0..count as u32).filter(|n| list.next_if_eq(n).is_none()).collect()
}

/// The next output of a left batch, by kind of join; it has more while `left.from` is inside of it.
fn join_batch(
    plan: &Plan,
    built: &Built,
    left: &mut Pending,
    postponed: &mut Postponed,
    run: &mut Run<'_, '_>,
) -> Result<Batch> {
    let Node::HashJoin { right, kind, keys, condition, .. } = &plan.node else {
        return Err(wrong_node());
    };
    let plain = matches!(kind, JoinKind::Inner);
    if matches!(kind, JoinKind::Semi | JoinKind::Anti) && condition.is_none() {
        let found = probe(built, left, keys, (true, false), run)?.left;
        return Ok(match kind {
            JoinKind::Semi => rows::take(&left.batch, &found),
            _ => rows::take(&left.batch, &others(&found, left.batch.rows)),
        });
    }
    let right_only = !kind.gives_left();
    let mut pairs = probe(built, left, keys, (false, right_only), run)?;
    if right_only && condition.is_none() {
        built.mark(&pairs.right);
        return Ok(Batch::default());
    }
    let batch = &left.batch;
    let mut joined =
        rows::beside(rows::take(batch, &pairs.left), rows::take(&built.rows, &pairs.right));
    // The first left row of which not all is known, when the condition failed.
    let mut failed = None;
    let kept = match condition.as_ref().map(|c| (c, vector::select(c, &joined, run))) {
        None => None,
        Some((_, Ok(kept))) => kept,
        Some((condition, Err(error))) => {
            if asks_right(*kind) || right_only {
                return Err(error);
            }
            let (kept, at) = postponed.before(condition, &joined, error, run)?;
            failed = pairs.left.get(at).copied();
            Some(kept)
        }
    };
    if let Some(kept) = kept {
        count(plan, REMOVED_BY_JOIN, (joined.rows - kept.len()) as u64, run);
        joined = rows::take(&joined, &kept);
        pairs.left = kept.iter().map(|n| pairs.left[*n as usize]).collect();
        pairs.right = kept.iter().map(|n| pairs.right[*n as usize]).collect();
    }
    if plain {
        return Ok(joined);
    }
    if asks_right(*kind) {
        built.mark(&pairs.right);
    }
    if right_only {
        return Ok(Batch::default());
    }
    left.has_match.resize(batch.rows, false);
    pairs.left.iter().for_each(|n| left.has_match[*n as usize] = true);
    let tests = matches!(kind, JoinKind::Semi | JoinKind::Anti);
    let end = failed.unwrap_or(batch.rows as u32);
    if left.from.0 < batch.rows && failed.is_none() {
        if tests && left.has_match[left.from.0] {
            left.from = (left.from.0 + 1, None);
        }
        if left.from.0 < batch.rows {
            return Ok(if tests { Batch::default() } else { joined });
        }
    }
    let has_match = &left.has_match;
    let with = |wanted: bool| -> Vec<u32> {
        (0..end).filter(|n| has_match[*n as usize] == wanted).collect()
    };
    match kind {
        JoinKind::Semi => return Ok(rows::take(batch, &with(true))),
        JoinKind::Anti => return Ok(rows::take(batch, &with(false))),
        JoinKind::Left | JoinKind::Full => {
            let lonely = with(false);
            if !lonely.is_empty() {
                let right_types = types(right, run.prepared);
                let padded = rows::beside(
                    rows::take(batch, &lonely),
                    rows::nulls(&right_types, lonely.len()),
                );
                rows::append(&mut joined, &padded)?;
            }
        }
        JoinKind::Inner | JoinKind::Right | JoinKind::RightSemi | JoinKind::RightAnti => {}
    }
    Ok(joined)
}

impl Operator for HashJoin {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::HashJoin { left, kind, .. } = &plan.node else {
            return Err(wrong_node());
        };
        if self.built.is_none() && !self.closed {
            self.build(plan, run)?;
        }
        loop {
            let Some(built) = self.built.clone() else {
                return Ok(None);
            };
            while !self.left_done {
                sched::check_interrupts_now()?;
                self.postponed.raise()?;
                let mut pending = match self.pending.take() {
                    Some(pending) => pending,
                    None => {
                        let batch = match &mut self.reader {
                            Some(reader) => reader.next()?,
                            None => self.left.next(left, run)?,
                        };
                        let Some(batch) = batch else {
                            if self.is_shared() && self.queue.is_none() {
                                // Other threads may be at work, or this one goes on later.
                                return Ok(None);
                            }
                            self.left_done = true;
                            break;
                        };
                        Pending::new(batch)
                    }
                };
                let joined = join_batch(plan, &built, &mut pending, &mut self.postponed, run)?;
                self.pending = (pending.from.0 < pending.batch.rows).then_some(pending);
                if joined.rows > 0 {
                    return Ok(Some(joined));
                }
                // Nothing more can come of the left side.
                self.left_done = self.right_only && built.lonely.load(Ordering::Relaxed) == 0;
            }
            if asks_right(*kind) && (!self.is_shared() || self.queue.is_some()) {
                let types = types(left, run.prepared);
                let tail = built.tail(*kind, &types, &mut self.tail_at);
                if tail.rows > 0 {
                    return Ok(Some(tail));
                }
            }
            if !self.next_files(plan, run)? {
                return Ok(None);
            }
        }
    }

    fn restrict(&mut self, keys: &[Expr], filter: &Arc<KeyFilter>) {
        let mut used = Vec::new();
        keys.iter().for_each(|key| walk::columns_of(key, &mut used));
        if self.right_only {
            self.right.restrict(keys, filter);
        } else if used.iter().all(|column| usize::from(*column) < self.left_width) {
            self.left.restrict(keys, filter);
        }
    }

    fn hasten(&mut self) {
        self.left.hasten();
    }

    fn prepare(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        self.prepare_table(plan, run)
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::HashJoin { left, right, .. } = &plan.node else {
            return Err(wrong_node());
        };
        (self.built, self.reader) = (None, None);
        (self.closed, self.postponed_right) = (false, None);
        (self.queue, self.postponed_left) = (None, None);
        if let Some(place) = &self.team {
            place.begin_again();
        }
        self.files.clear();
        self.pending = None;
        self.postponed = Postponed::default();
        (self.left_done, self.tail_at) = (false, 0);
        self.left.rescan(left, run)?;
        self.right.rescan(right, run)
    }
}
