//! A hash join's table for several threads, each of which reads pieces of the left side with a join of its own.
//!
//! Where the right side can be read in pieces, too, the threads make the table together: each adds the rows of its
//! pieces to a part of its own, and the last one joins the parts and makes the chains. Any other right side the leader
//! reads before the helpers begin ([`crate::ops::operator::Operator::prepare`]). Once it is made the table is only read, apart from marks at
//! rows that have found a partner.
//!
//! Rows of the right side that have no partner are known only when all threads have read their left rows: the leader
//! hands them up when it is alone.
//!
//! A right side too large for memory is put aside in files by the hash of its key, then the left side likewise, by all
//! threads, each into files of its own; then they take pairs of places:
//!
//! ```text
//!   thread 1:  right ─▶ files 1.0 … 1.31 │ left ─▶ files 1.0 … 1.31 │ pair 0: right 1.0 + 2.0, left 1.0 + 2.0;  pair 2 …
//!   thread 2:  right ─▶ files 2.0 … 2.31 │ left ─▶ files 2.0 … 2.31 │ pair 1 …
//! ```
//!
//! A thread has all rows of a pair, so it knows itself what has no partner. Where the left side has rows that come only
//! when the leader is alone, or the leader can't read all of a side before, the leader joins alone, with files as ever;
//! the helpers end. That waits until no helper runs, and so do joins above in whose right side it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use base::{Result, WaitEvent};
use sched::SpinLock;
use sched::joint::{Joint, Turn};
use sched::memory::Use;
use sql::Plan;
use sql::plan::{JoinKind, Node};

use super::super::partition::{self, Partitions};
use super::super::values::Nothing;
use super::{Built, File, HashJoin, Pair, Rest, Right, Side, asks_right, put_aside, tell_files};
use crate::ops::operator::{build, not_prepared, types, wrong_node};
use crate::ops::team::Member;
use crate::rows;
use crate::run::Run;

/// See the module's documentation.
pub struct Table {
    joint: Joint<Part, Made>,
    /// Bytes of all parts, about.
    held: AtomicUsize,
    /// They are too many: both sides go into files.
    splits: AtomicBool,
    left: Joint<Vec<File>, Queue>,
}

impl Default for Table {
    fn default() -> Table {
        Table {
            joint: Joint::new(WaitEvent::IPCHashBuildHashInner),
            held: AtomicUsize::new(0),
            splits: AtomicBool::new(false),
            left: Joint::new(WaitEvent::IPCHashBuildHashOuter),
        }
    }
}

/// A thread's part of the right side.
enum Part {
    Rows(Built),
    /// By the hashes of the keys.
    Aside(Vec<File>),
}

/// The right side.
enum Made {
    Whole(Arc<Built>),
    /// By the hashes of the keys, those of all threads; taken when the left side is there.
    Aside(SpinLock<Vec<Vec<File>>>),
}

/// Pairs of places that are still to be joined.
#[derive(Default)]
pub struct Queue(SpinLock<Vec<Pair>>);

/// Files of all threads by place.
pub(super) fn by_place(parts: Vec<Vec<File>>) -> Vec<Vec<File>> {
    let mut places: Vec<Vec<File>> = Vec::new();
    for part in parts {
        places.resize_with(part.len().max(places.len()), Vec::new);
        places.iter_mut().zip(part).for_each(|(place, file)| place.push(file));
    }
    places
}

/// Whether some of a plan's rows come only when the leader is alone.
fn has_tail(plan: &Plan) -> bool {
    match &plan.node {
        Node::HashJoin { left, kind, .. } => asks_right(*kind) || has_tail(left),
        Node::Filter { input, .. } | Node::Project { input, .. } => has_tail(input),
        Node::NestedLoop { left, .. } => has_tail(left),
        Node::Append(inputs) => inputs.iter().any(has_tail),
        _ => false,
    }
}

/// A join's thread among those that share its table.
pub struct Place {
    member: Member,
    table: Arc<Table>,
    /// All threads read the right side.
    builds: bool,
}

impl Place {
    /// The next pair of places for this thread.
    pub(super) fn next_pair(&self, queue: &Queue) -> Option<Pair> {
        if self.member.may_take() { queue.0.lock().pop() } else { None }
    }

    /// The join is run again; no helper runs.
    pub(super) fn begin_again(&self) {
        if self.member.leads() {
            self.table.joint.reset();
            self.table.left.reset();
            self.table.held.store(0, Ordering::Relaxed);
            self.table.splits.store(false, Ordering::Relaxed);
        }
    }
}

impl Built {
    /// Adds the rows of another thread's part.
    fn merge(&mut self, other: Built) -> Result<()> {
        if !self.nulls.is_empty() || !other.nulls.is_empty() {
            self.nulls.resize(self.rows.rows, false);
            self.nulls.extend(other.nulls);
            self.nulls.resize(self.rows.rows + other.rows.rows, false);
        }
        for (own, other) in self.computed.iter_mut().zip(&other.computed) {
            if let (Some(own), Some(other)) = (own, other) {
                own.append(other)?;
            }
        }
        self.links.extend(other.links);
        self.held += other.held;
        rows::append(&mut self.rows, &other.rows)
    }

    /// One table of all parts.
    fn of_parts(mut parts: Vec<Built>, kind: JoinKind) -> Result<Built> {
        // The largest part stays where it is.
        parts.sort_by_key(|part| part.rows.rows);
        let Some(mut all) = parts.pop() else { return Err(wrong_node()) };
        for part in parts {
            sched::check_interrupts()?;
            all.merge(part)?;
        }
        all.finish(kind);
        Ok(all)
    }
}

impl HashJoin {
    /// The join of a node, for a thread that has others beside it perhaps.
    pub fn of(plan: &Plan, run: &mut Run<'_, '_>) -> Result<HashJoin> {
        let Node::HashJoin { left, right, kind, shared, .. } = &plan.node else {
            return Err(wrong_node());
        };
        let width = types(left, run.prepared).len();
        let member = run.state.member.clone();
        let left = build(left, run)?;
        let right = match &member {
            Some(_) if *shared => build(right, run)?,
            Some(member) if !member.leads() => Box::new(Nothing),
            _ => {
                let outer = run.state.member.take();
                let right = build(right, run);
                run.state.member = outer;
                right?
            }
        };
        let mut join = HashJoin::new(left, right, *kind, width);
        join.team = member.map(|member| {
            let table = member.shared(std::ptr::from_ref(plan) as usize);
            Place { member, table, builds: *shared }
        });
        Ok(join)
    }

    /// Whether there are others that read the left side, or may be.
    pub(super) fn is_shared(&self) -> bool {
        self.team.as_ref().is_some_and(|place| !place.member.is_alone())
    }

    /// The leader's part before there are helpers: it makes a table that only it can make.
    pub(super) fn prepare_table(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::HashJoin { left, right, .. } = &plan.node else { return Err(wrong_node()) };
        let Some(Place { table, builds, .. }) = &self.team else { return Ok(()) };
        if *builds {
            self.right.prepare(right, run)?;
        } else if self.built.is_none() && self.postponed_right.is_none() {
            let _memory = sched::memory::for_use(Use::Hash);
            let table = table.clone();
            match self.read_right(plan, None, run)? {
                Right::Whole(built) => {
                    let built = Arc::new(built);
                    table.joint.set(Arc::new(Made::Whole(built.clone())));
                    self.adopt(plan, built)?;
                }
                Right::Aside(files) if has_tail(left) => {
                    table.joint.close();
                    self.postponed_right = Some(Rest::All(by_place(vec![files])));
                }
                Right::Aside(files) => {
                    let files = SpinLock::new(by_place(vec![files]));
                    table.joint.set(Arc::new(Made::Aside(files)));
                }
            }
        }
        if self.left_done { Ok(()) } else { self.left.prepare(left, run) }
    }

    /// Makes the table, or waits for it.
    pub(super) fn build_together(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::HashJoin { left, .. } = &plan.node else { return Err(wrong_node()) };
        if self.postponed_right.is_some() {
            return self.join_alone(plan, run);
        }
        let Some(Place { member, table, builds }) = &self.team else { return Ok(()) };
        let builds = *builds;
        let (member, table) = (member.clone(), table.clone());
        let turn = match table.joint.enter(member.leads(), sched::check_interrupts)? {
            Turn::Inside(_) if !builds => return Err(not_prepared("a hash table")),
            Turn::Inside(inside) => {
                let limit = partition::limit(run).saturating_mul(member.most());
                let (part, fits) = self.read_part(plan, (&member, &table, limit), run)?;
                if !fits && has_tail(left) {
                    inside.abandon(part, sched::check_interrupts)?
                } else if member.was_refused() && member.leads() {
                    // A join below waits until the leader is alone.
                    inside.abandon(part, sched::check_interrupts)?
                } else if member.was_refused() {
                    inside.leave(part);
                    Turn::Closed
                } else {
                    let join = |parts| made_of(parts, plan, run);
                    inside.finish(part, join, sched::check_interrupts)?
                }
            }
            turn => turn,
        };
        match turn {
            Turn::Done(made) => match &*made {
                Made::Whole(built) => self.adopt(plan, built.clone()),
                Made::Aside(right) => self.split_left(plan, right, run),
            },
            Turn::Alone(parts) => {
                self.postponed_right = Some(rest_of(parts, plan, run)?);
                self.join_alone(plan, run)
            }
            Turn::Closed | Turn::Inside(_) => {
                self.closed = true;
                member.refuse();
                Ok(())
            }
        }
    }

    /// Puts the left side aside together with the other threads, and begins with a pair.
    fn split_left(
        &mut self,
        plan: &Plan,
        right: &SpinLock<Vec<Vec<File>>>,
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let Node::HashJoin { left, .. } = &plan.node else { return Err(wrong_node()) };
        let Some(Place { member, table, .. }) = &self.team else { return Ok(()) };
        let (member, table) = (member.clone(), table.clone());
        let turn = match table.left.enter(member.leads(), sched::check_interrupts)? {
            Turn::Inside(inside) => {
                let files = self.read_left(plan, left, run)?;
                if member.was_refused() && member.leads() {
                    inside.abandon(files, sched::check_interrupts)?
                } else if member.was_refused() {
                    inside.leave(files);
                    Turn::Closed
                } else {
                    let join = |parts| {
                        let right = std::mem::take(&mut *right.lock());
                        tell_files(plan, right.len(), run);
                        let pairs = by_place(parts).into_iter().zip(right);
                        Ok(Queue(SpinLock::new(pairs.collect())))
                    };
                    inside.finish(files, join, sched::check_interrupts)?
                }
            }
            turn => turn,
        };
        match turn {
            Turn::Done(queue) => {
                self.queue = Some(queue);
                self.next_files(plan, run).map(drop)
            }
            Turn::Alone(parts) => {
                let right = std::mem::take(&mut *right.lock());
                self.postponed_left = Some(parts);
                self.postponed_right = Some(Rest::All(right));
                self.join_alone(plan, run)
            }
            Turn::Closed | Turn::Inside(_) => {
                self.closed = true;
                member.refuse();
                Ok(())
            }
        }
    }

    /// Joins with files, as soon as no helper runs any more: only then do both sides give all their rows.
    fn join_alone(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        if let Some(place) = self.team.as_ref().filter(|_| self.is_shared()) {
            place.member.refuse();
            return Ok(());
        }
        let files = match self.postponed_right.take() {
            None => return Ok(()),
            Some(Rest::All(files)) => files,
            Some(Rest::Some(aside, mut others)) => {
                match self.read_right(plan, Some(aside), run)? {
                    Right::Whole(built) => return self.adopt(plan, Arc::new(built)),
                    Right::Aside(files) => others.push(files),
                }
                by_place(others)
            }
        };
        let lefts = self.postponed_left.take().unwrap_or_default();
        self.put_left_aside(plan, (files, lefts), run)
    }

    /// This thread's part of the right side, and false when all parts together are too large.
    fn read_part(
        &mut self,
        plan: &Plan,
        (member, table, limit): (&Member, &Table, usize),
        run: &mut Run<'_, '_>,
    ) -> Result<(Part, bool)> {
        let Node::HashJoin { left, right, keys, .. } = &plan.node else {
            return Err(wrong_node());
        };
        let (right_types, alone) = (types(right, run.prepared), has_tail(left));
        let mut part = Built::new(&right_types, keys);
        let mut aside: Option<Partitions> = None;
        let (mut told, mut fits) = (0, true);
        while let Some(batch) = self.right.next(right, run)? {
            sched::check_interrupts()?;
            if let Some(aside) = &mut aside {
                put_aside(aside, &batch, &right_types, keys, Side::Right, run)?;
                continue;
            }
            part.add(&batch, keys, run)?;
            let more = part.held - told;
            told = part.held;
            if table.held.fetch_add(more, Ordering::Relaxed) + more > limit {
                table.splits.store(true, Ordering::Relaxed);
            }
            if !table.splits.load(Ordering::Relaxed) {
                continue;
            }
            if !alone {
                let mut files = Partitions::new(&right_types, 0, run);
                let held = std::mem::replace(&mut part, Built::new(&right_types, keys));
                put_aside(&mut files, &held.rows, &right_types, keys, Side::Right, run)?;
                aside = Some(files);
                continue;
            }
            fits = false;
            if member.leads() {
                break;
            }
            // A helper's rows must all be in its part: it ends what it has begun.
            member.stop(true);
        }
        Ok(match aside {
            Some(aside) => (Part::Aside(aside.finish()?), fits),
            None => (Part::Rows(part), fits),
        })
    }
}

/// The right side of all parts.
fn made_of(parts: Vec<Part>, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Made> {
    let Node::HashJoin { right, keys, kind, .. } = &plan.node else { return Err(wrong_node()) };
    if parts.iter().all(|part| matches!(part, Part::Rows(_))) {
        let rows = |part| match part {
            Part::Rows(built) => Some(built),
            Part::Aside(_) => None,
        };
        let mut built = Built::of_parts(parts.into_iter().filter_map(rows).collect(), *kind)?;
        built.tell(plan, *kind, run);
        return Ok(Made::Whole(Arc::new(built)));
    }
    let right_types = types(right, run.prepared);
    let mut all = Vec::with_capacity(parts.len());
    for part in parts {
        sched::check_interrupts()?;
        all.push(match part {
            Part::Aside(files) => files,
            Part::Rows(built) => {
                let mut aside = Partitions::new(&right_types, 0, run);
                put_aside(&mut aside, &built.rows, &right_types, keys, Side::Right, run)?;
                aside.finish()?
            }
        });
    }
    Ok(Made::Aside(SpinLock::new(by_place(all))))
}

/// The leader's remaining work, which it does alone.
fn rest_of(parts: Vec<Part>, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Rest> {
    let Node::HashJoin { right, keys, .. } = &plan.node else { return Err(wrong_node()) };
    let right_types = types(right, run.prepared);
    let (mut aside, mut others) = (Partitions::new(&right_types, 0, run), Vec::new());
    for part in parts {
        match part {
            Part::Aside(files) => others.push(files),
            Part::Rows(built) => {
                put_aside(&mut aside, &built.rows, &right_types, keys, Side::Right, run)?;
            }
        }
    }
    Ok(Rest::Some(aside, others))
}
