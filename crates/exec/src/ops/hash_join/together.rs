//! A hash join's table for several threads, each of which reads pieces of the left side with a join of its own.
//!
//! Where the right side can be read in pieces, too, the threads make the table together: each adds the rows of its
//! pieces to a part of its own, and the last one joins the parts and makes the chains. Any other right side the leader
//! reads before the helpers begin ([`crate::ops::operator::Operator::prepare`]). Once it is made the table is only read, apart from marks at
//! rows that have found a partner.
//!
//! Rows of the right side that have no partner are known only when all threads have read their left rows: the leader
//! hands them up when it is alone. When the right side is too large for memory the leader joins alone, with files as ever;
//! the helpers end. That waits until no helper runs, and so do joins above in whose right side it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::{Result, WaitEvent};
use sched::joint::{Joint, Turn};
use sched::memory::Use;
use sql::Plan;
use sql::plan::{JoinKind, Node};

use super::super::partition::{self, Partitions};
use super::super::values::Nothing;
use super::{Built, HashJoin, Rest, Right, Side, put_aside};
use crate::ops::operator::{build, not_prepared, types, wrong_node};
use crate::ops::team::Member;
use crate::rows;
use crate::run::Run;

/// See the module's documentation.
pub struct Table {
    joint: Joint<Built, Built>,
    /// Bytes of all parts, about.
    held: AtomicUsize,
}

impl Default for Table {
    fn default() -> Table {
        let joint = Joint::new(WaitEvent::IPCHashBuildHashInner);
        Table { joint, held: AtomicUsize::new(0) }
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
    /// The join is run again; no helper runs.
    pub(super) fn begin_again(&self) {
        if self.member.leads() {
            self.table.joint.reset();
            self.table.held.store(0, Ordering::Relaxed);
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
                    table.joint.set(built.clone());
                    self.adopt(plan, built)?;
                }
                Right::Aside(files) => {
                    table.joint.close();
                    self.postponed_right = Some(Rest::All(files));
                }
            }
        }
        if self.left_done { Ok(()) } else { self.left.prepare(left, run) }
    }

    /// Makes the table, or waits for it.
    pub(super) fn build_together(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::HashJoin { right, keys, kind, .. } = &plan.node else { return Err(wrong_node()) };
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
                if !fits {
                    inside.abandon(part, sched::check_interrupts)?
                } else if member.was_refused() && member.leads() {
                    // A join below waits until the leader is alone.
                    inside.abandon(part, sched::check_interrupts)?
                } else if member.was_refused() {
                    inside.leave(part);
                    Turn::Closed
                } else {
                    let join = |parts| {
                        let mut built = Built::of_parts(parts, *kind)?;
                        built.tell(plan, *kind, run);
                        Ok(built)
                    };
                    inside.finish(part, join, sched::check_interrupts)?
                }
            }
            turn => turn,
        };
        match turn {
            Turn::Done(built) => self.adopt(plan, built),
            Turn::Alone(parts) => {
                let right_types = types(right, run.prepared);
                let mut aside = Partitions::new(&right_types, 0, run)?;
                for part in parts {
                    put_aside(&mut aside, &part.rows, &right_types, keys, Side::Right, run)?;
                }
                self.postponed_right = Some(Rest::Some(aside));
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
            Some(Rest::Some(aside)) => match self.read_right(plan, Some(aside), run)? {
                Right::Whole(built) => return self.adopt(plan, Arc::new(built)),
                Right::Aside(files) => files,
            },
        };
        self.put_left_aside(plan, files, run)
    }

    /// This thread's part of the right side, and false when all parts together are too large.
    fn read_part(
        &mut self,
        plan: &Plan,
        (member, table, limit): (&Member, &Table, usize),
        run: &mut Run<'_, '_>,
    ) -> Result<(Built, bool)> {
        let Node::HashJoin { right, keys, .. } = &plan.node else { return Err(wrong_node()) };
        let mut part = Built::new(&types(right, run.prepared), keys);
        let (mut told, mut fits) = (0, true);
        while let Some(batch) = self.right.next(right, run)? {
            sched::check_interrupts()?;
            part.add(&batch, keys, run)?;
            let more = part.held - told;
            told = part.held;
            if table.held.fetch_add(more, Ordering::Relaxed) + more > limit {
                fits = false;
                if member.leads() {
                    break;
                }
                // A helper's rows must all be in its part: it ends what it has begun.
                member.stop(true);
            }
        }
        Ok((part, fits))
    }
}
