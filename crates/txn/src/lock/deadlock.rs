//! The deadlock detector. A waiter runs it once it has waited for `deadlock_timeout`; whoever closes
//! a cycle comes last, so its own check finds the cycle.
//!
//! The graph has an edge from a waiter to each session that it waits for:
//!
//! * **hard**: who holds a mode that conflicts with the request, or runs the transaction waited for;
//! * **soft**: who waits further ahead in the same queue for a mode that conflicts.
//!
//! A session that has another one work for it (an autonomous transaction) waits for that one: wherever
//! the search comes to it, it goes on with the innermost one. That one checks as soon as it waits.
//!
//! A cycle with a soft edge can be undone without harm: the waiter is moved before the one ahead of
//! it. If another cycle is left or closed by that, its soft edges are tried in the same way, until none
//! is left. When no such moves help, the detecting session fails with `40P01`.
//!
//! # Why no cycle is imagined
//!
//! All partitions are locked, so requests and holders stand still. Waits for transactions may come
//! and go meanwhile; therefore each edge of a found cycle is read a second time: if every wait still
//! has the serial number that it had, and each transaction still runs for the same session, then all
//! edges existed at one moment (between the two passes), and a cycle that existed once stays.
//!
//! # Long queues
//!
//! In a queue of n waiters there may be n² / 2 soft edges. Looking back from a waiter, the search stops
//! at the first waiter ahead whose conflicts include all of the waiter's own: what lies further ahead
//! is reached through that one.
//!
//! # Many waiters
//!
//! A thousand sessions that wait for one row would each go through all the others, a second after they
//! came. But a cycle closes when a session begins to wait, and stays: so a check that looks everywhere and
//! finds no cycle at all speaks for everybody who waited when it began. Those don't check again
//! ([`LockManager::is_cleared`]), and a crowd costs one check in `deadlock_timeout`.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering, fence};

use base::{Error, Oid, err};
use sched::{MutexGuard, TaskRef};

use super::manager::Partition;
use super::{LockManager, LockOwner, LockTag};
use crate::commit_log::XidState;
use crate::lock::wait_info::WaitInfo;
use crate::manager::Core;
use crate::registry::NOBODY;

/// Checks that looked everywhere, by number.
#[derive(Default)]
pub(super) struct Checks {
    /// How many have begun.
    begun: AtomicU64,
    /// The last one that found no cycle.
    clear: AtomicU64,
}

impl Checks {
    /// How many have begun by now. The caller is seen to wait; checks that begin later see it.
    pub(super) fn begun(&self) -> u64 {
        fence(Ordering::SeqCst);
        self.begun.load(Ordering::SeqCst)
    }
}

/// The result of a check.
pub(super) enum Verdict {
    /// No cycle leads back to the session.
    None,
    /// There was one; queues were reordered.
    Resolved,
    /// The cycle came apart while it was being looked at.
    Unsure,
    /// The session must give up.
    Deadlock(Error),
}

/// `waiter` waits, as `info` says, for `blocker`.
#[derive(Clone, Copy, Debug)]
struct Edge {
    waiter: u32,
    blocker: u32,
    info: WaitInfo,
    hard: bool,
}

/// A waiter that was put before others of its queue.
struct Move {
    tag: LockTag,
    waiter: u32,
}

/// How many moves of waiters one check tries before the session gives up.
const MOVES_TRIED_MAX: usize = 200;

struct Graph<'a> {
    core: &'a Core,
    partitions: Vec<MutexGuard<'a, Partition>>,
    /// For queues that have been looked at: where each waiter stands.
    places: HashMap<LockTag, HashMap<u32, usize>>,
}

impl LockManager {
    /// Whether a check that began after [`Checks::begun`] said `begun` has found that nobody waits in a
    /// cycle.
    pub(super) fn is_cleared(&self, begun: u64) -> bool {
        self.checks.clear.load(Ordering::SeqCst) > begun
    }

    /// Looks for a cycle through the session, which waits; if there is none, for any.
    pub(super) fn check_deadlock(&self, owner: &LockOwner) -> Verdict {
        let _one_at_a_time = self.detector.lock();
        let number = self.checks.begun.fetch_add(1, Ordering::SeqCst) + 1;
        fence(Ordering::SeqCst);
        let mut graph = Graph {
            core: &self.core,
            partitions: self.partitions().collect(),
            places: HashMap::new(),
        };
        let start = owner.number();
        let Some(cycle) = graph.cycle_through(start) else {
            if !graph.has_cycle() {
                self.checks.clear.store(number, Ordering::SeqCst);
            }
            return Verdict::None;
        };
        if !graph.still_there(&cycle) {
            return Verdict::Unsure;
        }
        if let Some(woken) = graph.resolve(start, &cycle) {
            drop(graph);
            for task in woken {
                task.unpark();
            }
            return Verdict::Resolved;
        }
        // From now on the session counts as one that does not wait, so that nobody else gives up for
        // the same cycle.
        *owner.slot().waiting.lock() = None;
        Verdict::Deadlock(self.report(&cycle))
    }

    fn report(&self, cycle: &[Edge]) -> Error {
        let registry = &self.core.registry;
        let name = |number: u32, first: &str| {
            let slot = registry.get(number);
            let pid = slot.pid.load(Ordering::Acquire);
            match slot.outer.load(Ordering::Acquire) {
                NOBODY => format!("{first}rocess {pid}"),
                _ if first == "P" => format!("Autonomous transaction of process {pid}"),
                _ => format!("autonomous transaction of process {pid}"),
            }
        };
        let lines: Vec<String> = cycle
            .iter()
            .map(|edge| {
                let delegates = registry.innermost(edge.blocker) != edge.blocker;
                let database = registry.get(edge.waiter).database.load(Ordering::Relaxed);
                format!(
                    "{} waits for {} on {}; blocked by {}{}.",
                    name(edge.waiter, "P"),
                    edge.info.mode.name(),
                    edge.info.tag.describe(Oid(database)),
                    name(edge.blocker, "p"),
                    if delegates { ", which waits for its autonomous transaction" } else { "" }
                )
            })
            .collect();
        err!(T_R_DEADLOCK_DETECTED, "deadlock detected")
            .detail(lines.join("\n"))
            .hint("See server log for query details.")
    }
}

impl Graph<'_> {
    fn partition(&mut self, tag: LockTag) -> &mut Partition {
        &mut self.partitions[LockManager::partition_number(tag)]
    }

    /// Where a session stands in a queue.
    fn place(&mut self, tag: LockTag, owner: u32) -> Option<usize> {
        if !self.places.contains_key(&tag) {
            let entry = self.partition(tag).get(tag)?;
            let places = entry.queue().iter().enumerate().map(|(i, r)| (r.owner, i)).collect();
            self.places.insert(tag, places);
        }
        self.places[&tag].get(&owner).copied()
    }

    fn innermost(&self, number: u32) -> u32 {
        self.core.registry.innermost(number)
    }

    /// Whom a session waits for; hard edges first.
    fn edges(&mut self, waiter: u32) -> Vec<Edge> {
        let info = *self.core.registry.get(waiter).waiting.lock();
        let Some(info) = info else { return Vec::new() };
        let edge = |blocker, hard| Edge { waiter, blocker, info, hard };
        if let LockTag::Xid(xid) = info.tag {
            return match self.core.commits.get(xid) {
                XidState::Running(blocker) => vec![edge(blocker, true)],
                _ => Vec::new(),
            };
        }
        if let Some(watched) =
            self.partition(info.tag).get(info.tag).and_then(|entry| entry.watched_by(waiter))
        {
            return watched.iter().map(|blocker| edge(*blocker, true)).collect();
        }
        let Some(place) = self.place(info.tag, waiter) else { return Vec::new() };
        let Some(entry) = self.partition(info.tag).get(info.tag) else { return Vec::new() };
        let conflicts = info.mode.conflict_set();
        let mut edges: Vec<Edge> = entry
            .holders()
            .filter(|&(owner, modes)| owner != waiter && modes & conflicts != 0)
            .map(|(owner, _)| edge(owner, true))
            .collect();
        for ahead in entry.queue().iter().take(place).rev() {
            if ahead.mode.bit() & conflicts != 0 {
                edges.push(edge(ahead.owner, false));
                if conflicts & !ahead.mode.conflict_set() == 0 {
                    break;
                }
            }
        }
        edges
    }

    /// A cycle that begins and ends with this session, by depth-first search.
    fn cycle_through(&mut self, start: u32) -> Option<Vec<Edge>> {
        let start = self.innermost(start);
        let mut visited = HashSet::from([start]);
        let mut path: Vec<Edge> = Vec::new();
        let mut open = vec![self.edges(start).into_iter()];
        while let Some(next) = open.last_mut() {
            let Some(edge) = next.next() else {
                open.pop();
                path.pop();
                continue;
            };
            let blocker = self.innermost(edge.blocker);
            if blocker == start {
                path.push(edge);
                return Some(path);
            }
            if visited.insert(blocker) {
                path.push(edge);
                open.push(self.edges(blocker).into_iter());
            }
        }
        None
    }

    /// Whether anybody waits in a cycle: depth-first search over all who wait.
    fn has_cycle(&mut self) -> bool {
        let registry = &self.core.registry;
        let waiting = registry.slots().filter(|(_, slot)| slot.waiting.lock().is_some());
        let waiting: Vec<u32> = waiting.map(|(number, _)| number).collect();
        let (mut visited, mut on_path) = (HashSet::new(), HashSet::new());
        for start in waiting {
            if !visited.insert(start) {
                continue;
            }
            on_path.insert(start);
            let mut open = vec![(start, self.edges(start).into_iter())];
            while let Some((session, next)) = open.last_mut() {
                let Some(edge) = next.next() else {
                    on_path.remove(session);
                    open.pop();
                    continue;
                };
                let blocker = self.innermost(edge.blocker);
                if on_path.contains(&blocker) {
                    return true;
                }
                if visited.insert(blocker) {
                    on_path.insert(blocker);
                    open.push((blocker, self.edges(blocker).into_iter()));
                }
            }
        }
        false
    }

    /// The second pass over a cycle's edges.
    fn still_there(&self, cycle: &[Edge]) -> bool {
        cycle.iter().all(|edge| {
            let waiting = *self.core.registry.get(edge.waiter).waiting.lock();
            let same = waiting.is_some_and(|info| info.serial == edge.info.serial);
            same && match edge.info.tag {
                LockTag::Xid(xid) => self.core.commits.get(xid) == XidState::Running(edge.blocker),
                _ => true,
            }
        })
    }

    /// Tries to undo the cycle by moving waiters forward. Returns whom to wake.
    fn resolve(&mut self, start: u32, cycle: &[Edge]) -> Option<Vec<TaskRef>> {
        let (mut moves, mut tries) = (Vec::new(), MOVES_TRIED_MAX);
        if !self.undo(start, cycle, &mut moves, &mut tries) {
            return None;
        }
        let tags: HashSet<LockTag> = moves.iter().map(|m| m.tag).collect();
        let mut woken = Vec::new();
        for tag in tags {
            if let Some(entry) = self.partition(tag).get_mut(tag) {
                woken.extend(entry.advance());
            }
        }
        Some(woken)
    }

    /// Moves the waiter of one soft edge before the one ahead of it, beginning with the edge that is
    /// farthest from the session; when that closes or leaves another
    /// cycle, goes on with that one. Leaves the queues as they were when nothing helps.
    fn undo(
        &mut self,
        start: u32,
        cycle: &[Edge],
        moves: &mut Vec<Move>,
        tries: &mut usize,
    ) -> bool {
        for edge in cycle.iter().rev().filter(|edge| !edge.hard) {
            let tag = edge.info.tag;
            let (Some(from), Some(to)) =
                (self.place(tag, edge.waiter), self.place(tag, edge.blocker))
            else {
                continue;
            };
            if from < to || *tries == 0 {
                continue;
            }
            *tries -= 1;
            self.reorder(tag, from, to);
            moves.push(Move { tag, waiter: edge.waiter });
            // New edges lead to the waiters that were moved, so new cycles do, too.
            let mut suspects = vec![start];
            suspects.extend(moves.iter().map(|m| m.waiter));
            let left = suspects.into_iter().find_map(|session| self.cycle_through(session));
            let Some(left) = left else { return true };
            if self.undo(start, &left, moves, tries) {
                return true;
            }
            moves.pop();
            self.reorder(tag, to, from);
        }
        false
    }

    fn reorder(&mut self, tag: LockTag, from: usize, to: usize) {
        if let Some(entry) = self.partition(tag).get_mut(tag) {
            entry.reorder(from, to);
        }
        self.places.remove(&tag);
    }
}
