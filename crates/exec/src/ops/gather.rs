//! The rows of a plan that several threads may run, each for pieces of its scans. A consumer right above that keeps a
//! state of its own for each thread (groups, rows to be sorted) runs them itself: it absorbs the Gather. For any other
//! consumer helpers work in rounds:
//!
//! ```text
//!   consumer asks ─▶ round: the leader and helpers fill a buffer ─▶ helpers end, the buffer is handed up ─▶ …
//! ```
//!
//! * Between rounds no helper runs, whatever the consumer does meanwhile: waits for its client, for a lock, changes rows,
//!   is a cursor that nobody reads any more. What a helper was at (its operators with their places in the data) is kept and
//!   goes on in any thread, the leader too.
//! * Batches are handed over by pointer. A round ends when its buffer is full; the buffer grows from round to round
//!   up to `work_mem`, so that the first rows come soon.
//! * At the beginning of a round it is decided anew how many helpers there may be.

use std::collections::VecDeque;
use std::sync::Arc;

use base::Result;
use base::settings::setting;
use sched::SpinLock;
use sched::exchange::Exchange;
use sql::plan::Node;
use sql::{Expr, Plan};
use types::Batch;

use super::key_filter::KeyFilter;
use crate::ops::measure::note_most;
use crate::ops::operator::{Operator, build_for, wrong_node};
use crate::ops::team::Member;
use crate::parallel::{self, Part, Shared};
use crate::rows;
use crate::run::Run;
use crate::subquery;

/// EXPLAIN's name for the helpers that were started.
pub const LAUNCHED: &str = "Workers Launched";

/// Bytes of the first round.
const FIRST_BYTES: usize = 64 << 10;
/// Bytes of a later round, at least: starting helpers must be cheap beside it.
const LEAST_BYTES: usize = 1 << 20;

/// See the module's documentation.
pub struct Gather {
    input: Box<dyn Operator>,
    member: Member,
    /// The consumer runs the threads.
    absorbed: bool,
    prepared: bool,
    /// The leader's own operators are at their end.
    led: bool,
    ended: bool,
    /// The positions of helpers when the last round ended.
    parts: Vec<Part>,
    /// How many of them are done.
    done: usize,
    ready: VecDeque<Batch>,
    /// Bytes of the next round.
    bytes: usize,
}

/// Moves a thread's rows into the buffer of a round until there are enough; true at their end.
fn fill(
    exchange: &Exchange<Batch>,
    op: &mut dyn Operator,
    plan: &Plan,
    run: &mut Run<'_, '_>,
) -> Result<bool> {
    while !exchange.is_full() {
        sched::check_interrupts()?;
        match op.next(plan, run)? {
            Some(batch) if batch.rows > 0 => {
                let bytes = rows::batch_bytes(&batch) as u64;
                exchange.put(batch, bytes);
            }
            Some(_) => {}
            None => return Ok(true),
        }
    }
    Ok(false)
}

impl Gather {
    /// Over the node's input, for at most so many helpers.
    pub fn new(input: &Plan, workers: u16, run: &mut Run<'_, '_>) -> Result<Gather> {
        let member = Member::leader(usize::from(workers) + 1);
        Ok(Gather {
            input: build_for(&member, input, run)?,
            member,
            absorbed: false,
            prepared: false,
            led: false,
            ended: false,
            parts: Vec::new(),
            done: 0,
            ready: VecDeque::new(),
            bytes: FIRST_BYTES,
        })
    }

    /// Fills the buffer, or finds the end.
    fn round(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::Gather { input, workers, .. } = &plan.node else { return Err(wrong_node()) };
        if !std::mem::replace(&mut self.prepared, true) {
            self.prepare(plan, run)?;
        }
        let helpers = parallel::available(*workers, run);
        note_most(plan, LAUNCHED, helpers.count() as u64, run);
        let exchange = Exchange::new(self.bytes as u64);
        if helpers.count() == 0 || self.led || self.member.is_alone() {
            self.go_on_alone(&exchange, input, run)?;
        } else {
            self.together(helpers.count(), &exchange, input, run)?;
        }
        self.ready = exchange.into_items().into();
        let most = (run.cx.settings.int(setting::WORK_MEM) as usize * 1024).max(LEAST_BYTES);
        self.bytes = (self.bytes * 8).clamp(LEAST_BYTES, most);
        Ok(())
    }

    /// The leader's share of a round without helpers; the remains of helpers' work after its own.
    fn go_on_alone(
        &mut self,
        exchange: &Exchange<Batch>,
        input: &Plan,
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        if !self.led {
            self.led = fill(exchange, self.input.as_mut(), input, run)?;
            return Ok(());
        }
        while let Some(mut part) = self.parts.pop() {
            let shared = Shared::of(run);
            let ended = shared.with_part(&mut part, |op, run| fill(exchange, op, input, run))?;
            part.tell(run);
            if !ended {
                self.parts.push(part);
                return Ok(());
            }
            part.end(self.done, run);
            self.done += 1;
        }
        if self.member.is_alone() {
            self.ended = true;
        } else {
            // The columns at the very end.
            self.member.go_on_alone();
            self.led = false;
        }
        Ok(())
    }

    fn together(
        &mut self,
        count: usize,
        exchange: &Exchange<Batch>,
        input: &Plan,
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let shared = Shared::of(run);
        let before = SpinLock::new(std::mem::take(&mut self.parts));
        let after: SpinLock<Vec<(Part, bool)>> = SpinLock::default();
        let member = &self.member;
        let help = || {
            let known = before.lock().pop();
            let mut part = match known {
                Some(part) => part,
                None => Part::new(&shared, member.helper(), input)?,
            };
            part.go_on();
            let ended = shared.with_part(&mut part, |op, run| fill(exchange, op, input, run));
            let ended = ended.inspect_err(|_| member.close())?;
            after.lock().push((part, ended));
            Ok(())
        };
        let own = &mut self.input;
        let lead = |run: &mut Run<'_, '_>| {
            let led = fill(exchange, own.as_mut(), input, run);
            led.inspect_err(|_| member.close())
        };
        let (led, _) = parallel::together(count, &help, lead, run)?;
        self.led = led;
        self.parts = before.into_inner();
        for (mut part, ended) in after.into_inner() {
            part.tell(run);
            // A member that was refused pieces may have more to do.
            match ended && !part.was_refused() {
                true => {
                    part.end(self.done, run);
                    self.done += 1;
                }
                false => self.parts.push(part),
            }
        }
        Ok(())
    }
}

impl Operator for Gather {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::Gather { input, .. } = &plan.node else { return Err(wrong_node()) };
        if self.absorbed {
            return self.input.next(input, run);
        }
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            if self.ended {
                return Ok(None);
            }
            sched::check_interrupts()?;
            self.round(plan, run)?;
        }
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::Gather { input, .. } = &plan.node else { return Err(wrong_node()) };
        self.member.begin_again();
        self.parts.clear();
        self.ready.clear();
        (self.prepared, self.led, self.ended) = (false, false, false);
        self.bytes = FIRST_BYTES;
        self.input.rescan(input, run)
    }

    fn restrict(&mut self, keys: &[sql::Expr], filter: &Arc<KeyFilter>) {
        // Helpers that are there already would not know of it.
        if self.absorbed {
            self.input.restrict(keys, filter);
        }
    }

    fn prepare(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::Gather { input, first, .. } = &plan.node else { return Err(wrong_node()) };
        for query in first {
            if let Expr::Subquery(query) = query {
                subquery::prepare(query, run)?;
            }
        }
        self.input.prepare(input, run)
    }

    fn absorb(&mut self) -> Option<Member> {
        self.absorbed = true;
        Some(self.member.clone())
    }
}
