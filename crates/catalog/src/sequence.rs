//! Values of sequences: outside of transactions, and safe over crashes.
//!
//! ```text
//! page 0 of a sequence's file:  header | last value i64 | is_called u8
//! ```
//! While the server runs the true value is in memory, and the page is *ahead* of it: a record in the
//! log covers the next [`AHEAD`] values at once, so most calls of `nextval` touch neither page nor
//! log. A crash skips what was covered but not used, as in PostgreSQL; a clean shutdown writes the
//! true values ([`Sequences::flush`]).
//!
//! A value may leave the server only when the record that covers it is durable: every [`Taken`] says
//! its place in the log.
//!
//! Two locks: a spin lock around the value, never held over a wait, and a latch (`advance`) that
//! whoever writes the page holds. The value changes under the spin lock only; the page and what it
//! covers change under the latch.

use std::collections::HashMap;
use std::sync::Arc;

use base::{Fork, Lsn, PageId, RelId, Result, WaitEvent, err};
use sched::{LwLock, SpinLock};
use storage::{PAGE_HEADER, Storage};

use crate::object::Sequence;

/// Values that one log record covers beyond those asked for.
const AHEAD: i64 = 32;
const SHARDS: usize = 16;

/// Where a sequence stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// The last value handed out, or with `is_called` false the next one.
    pub last: i64,
    /// See `last`.
    pub is_called: bool,
}

/// Values handed out: from `first` to `last`, `increment` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// First.
    pub first: i64,
    /// Last.
    pub last: i64,
    /// The log position that must be durable before they leave the server.
    pub lsn: Lsn,
}

#[derive(Clone, Copy)]
struct SequenceState {
    value: Value,
    /// Values that may still be handed out without another record…
    covered: i64,
    /// …by this step; with another one (ALTER SEQUENCE) they don't count.
    increment: i64,
    lsn: Lsn,
}

struct Counter {
    state: SpinLock<SequenceState>,
    advance: LwLock<()>,
}

/// All sequences that were used since the start, by file.
pub struct Sequences {
    storage: Arc<Storage>,
    shards: [SpinLock<HashMap<u32, Arc<Counter>>>; SHARDS],
}

impl Sequences {
    pub(crate) fn new(storage: &Arc<Storage>) -> Sequences {
        Sequences { storage: storage.clone(), shards: std::array::from_fn(|_| SpinLock::default()) }
    }

    /// Fills the new, empty file of a sequence.
    ///
    /// # Errors
    /// I/O.
    pub fn create(&self, rel: u32, value: Value) -> Result<()> {
        let block = self.storage.extend(RelId(rel), Fork::Main, 1)?;
        let mut mtr = self.storage.mtr();
        let page = mtr.add(self.storage.pool.pin_new(PageId::main(RelId(rel), block))?.write());
        mtr.init(page);
        put(&mut mtr, page, value);
        mtr.commit();
        Ok(())
    }

    fn counter(&self, rel: u32) -> Result<Arc<Counter>> {
        let shard = &self.shards[rel as usize % SHARDS];
        if let Some(counter) = shard.lock().get(&rel) {
            return Ok(counter.clone());
        }
        let pinned = self.storage.pool.pin(PageId::main(RelId(rel), 0))?;
        let value = read(pinned.read().page());
        let state = SequenceState { value, covered: 0, increment: 0, lsn: Lsn::ZERO };
        let new = Arc::new(Counter {
            state: SpinLock::new(state),
            advance: LwLock::new(WaitEvent::LWLockSequence, ()),
        });
        Ok(shard.lock().entry(rel).or_insert(new).clone())
    }

    /// Where it stands, and how many values the log covers beyond that.
    ///
    /// # Errors
    /// I/O.
    pub fn peek(&self, rel: u32) -> Result<(Value, i64)> {
        if self.storage.follows() {
            // The page changes without this table's knowledge.
            let pinned = self.storage.pool.pin(PageId::main(RelId(rel), 0))?;
            let value = read(pinned.read().page());
            return Ok((value, 0));
        }
        let counter = self.counter(rel)?;
        let state = *counter.state.lock();
        Ok((state.value, state.covered))
    }

    /// Hands out the next values, as many as `sequence.cache` says if there are so many.
    ///
    /// # Errors
    /// `2200H` at the end of a sequence that doesn't cycle; I/O.
    pub fn next(&self, sequence: &Sequence) -> Result<Taken> {
        let counter = self.counter(sequence.rel)?;
        loop {
            let seen = {
                let mut state = counter.state.lock();
                let (taken, count) = step(sequence, state.value)?;
                if count <= state.covered && state.increment == sequence.increment {
                    state.covered -= count;
                    state.value = Value { last: taken.1, is_called: true };
                    return Ok(Taken { first: taken.0, last: taken.1, lsn: state.lsn });
                }
                state.lsn
            };
            self.cover(sequence, &counter, seen)?;
        }
    }

    /// Writes a record that covers what is asked for and [`AHEAD`] more. `seen`: the record that was
    /// not enough; when there is a newer one somebody else did it.
    fn cover(&self, sequence: &Sequence, counter: &Counter, seen: Lsn) -> Result<()> {
        let _latch = counter.advance.write();
        let (before, covered) = {
            let state = counter.state.lock();
            if state.lsn != seen {
                return Ok(());
            }
            let same = state.increment == sequence.increment;
            (state.value, if same { state.covered } else { 0 })
        };
        // From the value now: what is still covered, then as much as one call takes, then the rest.
        let wanted = covered + sequence.cache.max(1) + AHEAD;
        let (reached, steps) = walk(sequence, before, wanted);
        let mut mtr = self.storage.mtr();
        let page = mtr.latch(PageId::main(RelId(sequence.rel), 0))?;
        put(&mut mtr, page, Value { last: reached, is_called: true });
        let lsn = mtr.commit();
        let mut state = counter.state.lock();
        // Others may have taken values meanwhile, of those that were covered before.
        if state.increment == sequence.increment {
            state.covered += steps - covered;
        } else {
            (state.covered, state.increment) = (steps, sequence.increment);
        }
        state.lsn = lsn;
        Ok(())
    }

    /// Sets the value; returns what must be durable before anybody is told.
    ///
    /// # Errors
    /// I/O.
    pub fn set(&self, rel: u32, value: Value) -> Result<Lsn> {
        let counter = self.counter(rel)?;
        let _latch = counter.advance.write();
        let mut mtr = self.storage.mtr();
        let page = mtr.latch(PageId::main(RelId(rel), 0))?;
        put(&mut mtr, page, value);
        let lsn = mtr.commit();
        *counter.state.lock() = SequenceState { value, covered: 0, increment: 0, lsn };
        Ok(lsn)
    }

    /// Forgets a file that is gone.
    pub fn forget(&self, rel: u32) {
        self.shards[rel as usize % SHARDS].lock().remove(&rel);
    }

    /// Writes the true values to the pages, before a clean shutdown. Nobody uses sequences meanwhile.
    ///
    /// # Errors
    /// I/O.
    pub fn flush(&self) -> Result<()> {
        for shard in &self.shards {
            let all: Vec<(u32, Arc<Counter>)> =
                shard.lock().iter().map(|(rel, counter)| (*rel, counter.clone())).collect();
            for (rel, counter) in all {
                let state = *counter.state.lock();
                if state.covered > 0 {
                    self.set(rel, state.value)?;
                }
            }
        }
        Ok(())
    }
}

const LAST: usize = PAGE_HEADER;
const CALLED: usize = PAGE_HEADER + 8;

fn put(mtr: &mut storage::Mtr<'_>, page: storage::PageRef, value: Value) {
    mtr.put_u64(page, LAST, value.last as u64);
    mtr.put(page, CALLED, &[u8::from(value.is_called)]);
}

fn read(page: &[u8]) -> Value {
    let mut last = [0; 8];
    last.copy_from_slice(&page[LAST..LAST + 8]);
    Value { last: i64::from_le_bytes(last), is_called: page[CALLED] != 0 }
}

/// The value after this one; None at the end.
fn after(sequence: &Sequence, value: i64) -> Option<i64> {
    value
        .checked_add(sequence.increment)
        .filter(|next| (sequence.min..=sequence.max).contains(next))
}

/// The next values as one call takes them: first, last, and how many.
fn step(sequence: &Sequence, value: Value) -> Result<((i64, i64), i64)> {
    let first = if !value.is_called {
        value.last
    } else {
        match after(sequence, value.last) {
            Some(next) => next,
            None if sequence.cycle && sequence.increment > 0 => sequence.min,
            None if sequence.cycle => sequence.max,
            None => {
                let (word, bound) = if sequence.increment > 0 {
                    ("maximum", sequence.max)
                } else {
                    ("minimum", sequence.min)
                };
                return Err(err!(
                    SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
                    "nextval: reached {word} value of sequence \"{}\" ({bound})",
                    sequence.name
                ));
            }
        }
    };
    let (mut last, mut count) = (first, 1);
    while count < sequence.cache {
        let Some(next) = after(sequence, last) else { break };
        last = next;
        count += 1;
    }
    Ok(((first, last), count))
}

/// The value that so many steps lead to, and how many there are (fewer at the end, but never fewer
/// than one call needs).
fn walk(sequence: &Sequence, from: Value, wanted: i64) -> (i64, i64) {
    let (mut at, mut count) = (from, 0);
    while count < wanted {
        let Ok(((_, last), steps)) = step(sequence, at) else { break };
        at = Value { last, is_called: true };
        count += steps;
    }
    (at.last, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(increment: i64, min: i64, max: i64, cache: i64, cycle: bool) -> Sequence {
        let name = "s".to_owned();
        Sequence { name, increment, min, max, cache, cycle, ..Sequence::default() }
    }

    fn called(last: i64) -> Value {
        Value { last, is_called: true }
    }

    #[test]
    fn a_call_takes_as_many_as_the_cache_holds_but_not_past_the_end() {
        let s = sequence(2, 1, 10, 3, false);
        assert_eq!(step(&s, Value { last: 1, is_called: false }).unwrap(), ((1, 5), 3));
        assert_eq!(step(&s, called(5)).unwrap(), ((7, 9), 2));
        let end = step(&s, called(9)).unwrap_err();
        assert_eq!(end.message(), "nextval: reached maximum value of sequence \"s\" (10)");
    }

    #[test]
    fn a_cycle_begins_at_the_other_end() {
        assert_eq!(step(&sequence(1, 1, 3, 1, true), called(3)).unwrap(), ((1, 1), 1));
        assert_eq!(step(&sequence(-1, 1, 3, 1, true), called(1)).unwrap(), ((3, 3), 1));
        let edge = sequence(i64::MAX, i64::MIN, i64::MAX, 1, false);
        assert!(step(&edge, called(1)).is_err());
    }

    #[test]
    fn what_is_covered_ends_where_the_sequence_ends() {
        assert_eq!(walk(&sequence(1, 1, 10, 1, false), called(8), 33), (10, 2));
        assert_eq!(walk(&sequence(1, 1, 100, 1, false), called(8), 33), (41, 33));
    }
}
