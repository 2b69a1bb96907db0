//! Vacuum: removes dead versions and their index entries, and fills the free space map.
//!
//! 1. Every page is pruned. Chains that are dead from end to end leave a *dead* line pointer.
//! 2. The indexes lose all entries that point at those.
//! 3. Only then the line pointers become free for new rows: an entry must never come to point at
//!    a row that it wasn't made for.
//!
//! Versions that an old snapshot keeps are led past those between the snapshots
//! ([`crate::heap::bridge`]), whose line pointers are dead then.
//!
//! Several indexes are gone through at the same time where the caller has helpers ([`Together`]): one thread an index.
//!
//! Without indexes the first step frees the line pointers at once. Dead line pointers are
//! remembered up to [`DEAD_MAX`] at a time; then steps 2 and 3 run and the first goes on.
//! Cutting the file's empty tail ([`truncate`]) needs the relation exclusively and is a step of its
//! own.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use base::usage::Use;
use base::{Fork, Result, TupleId, WaitEvent};
use sched::observe::progress::{Count, Progress};
use txn::TxnManager;

use crate::heap::prune::{self, Pruned, Scope, VisibilityHorizon};
use crate::heap::{Heap, bridge, page};
use crate::index::AnyIndex;
use crate::visibility_map::is_all_visible;

/// Dead line pointers remembered at a time (48 MB).
const DEAD_MAX: usize = 6 << 20;

/// Empty pages at a file's end that are worth a lock, and which part of the file is, too: PostgreSQL's.
const WORTH_PAGES: u32 = 1000;
const WORTH_SHARE: u32 = 16;
/// Pages after which a truncation asks whether it should give way.
const LOOK_PAGES: u32 = 32;

/// The work that a vacuum did.
#[derive(Clone, Copy, Debug, Default)]
pub struct VacuumStats {
    /// Pages of the table.
    pub pages: u32,
    /// Row versions left.
    pub live: u64,
    /// Row versions removed.
    pub removed: u64,
    /// Row versions that are dead but still seen by somebody.
    pub kept: u64,
    /// Dead line pointers that the indexes had to lose first.
    pub dead_items: u64,
    /// Pages with such.
    pub dead_pages: u32,
    /// How often all indexes were gone through.
    pub index_passes: u32,
}

/// How much a vacuum may do before it rests (`vacuum_cost_*`).
#[derive(Clone, Debug, Default)]
pub struct Pace {
    /// How long it rests; none: it never does.
    pub delay: Duration,
    /// Cost after which it does.
    pub limit: u64,
    /// Cost of a page found in memory, of one read, and of one changed.
    pub costs: [u64; 3],
    /// The task's usage of these when it rested last.
    used: [u64; 3],
}

impl Pace {
    /// Without rest.
    pub fn unlimited() -> Pace {
        Pace::default()
    }

    /// See the fields.
    pub fn new(delay: Duration, limit: u64, costs: [u64; 3]) -> Pace {
        Pace { delay, limit, costs, used: Pace::used() }
    }

    fn used() -> [u64; 3] {
        let counts = [Use::BufferHit, Use::BufferRead, Use::BufferDirtied];
        sched::with_current(|task| counts.map(|count| task.used(count)))
    }

    /// Rests if it is time to.
    fn keep(&mut self) -> Result<()> {
        sched::check_interrupts()?;
        if self.delay.is_zero() {
            return Ok(());
        }
        let used = Pace::used();
        let cost: u64 = (0..3).map(|i| (used[i] - self.used[i]) * self.costs[i]).sum();
        if cost < self.limit {
            return Ok(());
        }
        self.used = used;
        // As long as its cost asks for, but at most four times the delay, as in PostgreSQL.
        let share = (cost as f64 / self.limit.max(1) as f64).min(4.0);
        let until = Instant::now() + self.delay.mul_f64(share);
        while Instant::now() < until {
            sched::park(WaitEvent::TimeoutVacuumDelay, Some(until));
            sched::check_interrupts()?;
        }
        Ok(())
    }
}

/// Runs a function here (true) and in helpers (false), as many as there are.
pub type Together<'a> = dyn Fn(&(dyn Fn(bool) -> Result<()> + Sync)) -> Result<()> + 'a;

/// Does something to each index: a thread an index, where there are helpers.
fn each_index(
    indexes: &[AnyIndex],
    together: &Together<'_>,
    work: &(dyn Fn(&AnyIndex) -> Result<()> + Sync),
) -> Result<()> {
    let next = AtomicUsize::new(0);
    together(&|leads| {
        while leads || !sched::helpers::should_yield() {
            let Some(index) = indexes.get(next.fetch_add(1, Relaxed)) else { break };
            sched::check_interrupts()?;
            // After an error nobody need go on.
            work(index).inspect_err(|_| next.store(indexes.len(), Relaxed))?;
        }
        Ok(())
    })
}

/// Vacuums a table with its indexes, and says how far it has come. The caller holds
/// ShareUpdateExclusive on the table.
///
/// # Errors
/// I/O errors, interrupts.
pub fn vacuum(
    manager: &TxnManager,
    heap: &Heap,
    indexes: &[AnyIndex],
    together: &Together<'_>,
    pace: &mut Pace,
    progress: &Progress,
) -> Result<VacuumStats> {
    let mut stats = VacuumStats { pages: heap.pages()?, ..VacuumStats::default() };
    heap.state.space.ended.store(0, Relaxed);
    let mut dead = Vec::new();
    let mut held_back = Vec::new();
    let mut visibility = VisibilityHorizon::now(manager);
    progress.set(Count::BlocksTotal, u64::from(stats.pages));
    progress.set(Count::DeadMax, DEAD_MAX as u64);
    progress.set_phase("scanning heap");
    for block in 0..stats.pages {
        pace.keep()?;
        let pruned = prune_block(&mut visibility, heap, block, indexes.is_empty())?;
        stats.live += u64::from(pruned.live);
        stats.removed += u64::from(pruned.removed);
        stats.kept += u64::from(pruned.kept);
        pruned.held_back.iter().for_each(|held| held.add_to(&mut held_back));
        if pruned.kept > 0 {
            stats.removed += bridge_block(&mut visibility, heap, block, pace)?;
        }
        stats.dead_items += pruned.dead.len() as u64;
        stats.dead_pages += u32::from(!pruned.dead.is_empty());
        dead.extend(pruned.dead.iter().map(|&offset| TupleId { block, offset }));
        progress.set(Count::BlocksDone, u64::from(block) + 1);
        progress.set(Count::Dead, dead.len() as u64);
        if dead.len() >= DEAD_MAX {
            stats.index_passes += 1;
            free(&mut visibility, heap, (indexes, together), &mut dead, pace, progress)?;
            progress.set_phase("scanning heap");
        }
    }
    stats.index_passes += u32::from(!dead.is_empty());
    free(&mut visibility, heap, (indexes, together), &mut dead, pace, progress)?;
    progress.set_phase("cleaning up indexes");
    each_index(indexes, together, &|index| index.clean_up(manager))?;
    progress.set(Count::BlocksVacuumed, u64::from(stats.pages));
    progress.set_phase("performing final cleanup");
    heap.state.space.ended.fetch_add(stats.kept, Relaxed);
    *heap.state.space.held_back.lock() = held_back;
    heap.state.space.rows.store(stats.live + 1, Relaxed);
    heap.state.space.rows_pages.store(stats.pages, Relaxed);
    Ok(stats)
}

/// Row versions of a table, dead ones among them.
///
/// # Errors
/// I/O errors, interrupts.
pub fn versions(heap: &Heap) -> Result<u64> {
    let mut count = 0;
    for block in 0..heap.pages()? {
        sched::check_interrupts()?;
        let pinned = heap.pin_scan(block)?;
        let page = pinned.read();
        if !page::is_new(page.page()) {
            let lines = page::lines(page.page());
            count +=
                lines.filter(|(_, line)| matches!(line, page::Line::Normal(..))).count() as u64;
        }
    }
    Ok(count)
}

/// Whether so many empty pages end the file that it is worth asking for the lock that [`truncate`] needs. `least`: pages
/// that stay.
///
/// # Errors
/// I/O errors, interrupts.
pub fn is_worth_truncating(heap: &Heap, least: u32) -> Result<bool> {
    let pages = heap.pages()?;
    let wanted = WORTH_PAGES.min((pages / WORTH_SHARE).max(1));
    let mut empty = 0;
    while empty < wanted && pages - empty > least && is_empty(heap, pages - empty - 1)? {
        sched::check_interrupts()?;
        empty += 1;
    }
    Ok(empty >= wanted)
}

/// Cuts empty pages off the file's end, but for the `least` first ones; returns how many, and whether it gave way before it
/// knew of a page that is not empty. The caller holds AccessExclusive on the table, and somebody may wait for it meanwhile:
/// `gives_way` is asked now and then, and what was found empty so far is cut.
///
/// * Nobody reads the table on this server, by the lock; on a standby, replay takes the same lock before it cuts
///   ([`storage::Replay`]). Scans that begin later ask for the file's length, and hints of inserters are compared
///   with it.
/// * No index entry points at a page without line pointers: vacuum removes entries before it frees a line pointer.
/// * The cut is logged and flushed before the file is shorter, so redo does not miss pages.
///
/// # Errors
/// I/O errors, interrupts.
pub fn truncate(heap: &Heap, least: u32, gives_way: &dyn Fn() -> bool) -> Result<(u32, bool)> {
    let pages = heap.pages()?;
    let mut keep = pages;
    let mut gave_way = false;
    while keep > least && is_empty(heap, keep - 1)? {
        sched::check_interrupts()?;
        keep -= 1;
        if keep.is_multiple_of(LOOK_PAGES) && gives_way() {
            gave_way = true;
            break;
        }
    }
    if keep < pages {
        heap.state.space.cut(keep);
        (keep..pages).for_each(|block| heap.state.visible.clear(block));
        heap.storage.truncate(heap.rel, Fork::Main, keep)?;
    }
    Ok((pages - keep, gave_way))
}

/// Whether a page has no line pointer.
fn is_empty(heap: &Heap, block: u32) -> Result<bool> {
    let pinned = heap.pin_scan(block)?;
    let guard = pinned.read();
    heap.check_used(block, guard.page())?;
    Ok(page::line_count(guard.page()) == 0)
}

/// Prunes one page and registers its room.
fn prune_block(
    visibility: &mut VisibilityHorizon<'_>,
    heap: &Heap,
    block: u32,
    no_indexes: bool,
) -> Result<Pruned> {
    let all = |_: u16| true;
    visit(visibility, heap, block, if no_indexes { Scope::Free(&all) } else { Scope::Vacuum })
}

/// Leads the kept versions of a page past what nobody sees.
fn bridge_block(
    visibility: &mut VisibilityHorizon<'_>,
    heap: &Heap,
    block: u32,
    pace: &mut Pace,
) -> Result<u64> {
    let from = bridge::leading_on(heap.pin_scan(block)?.read().page());
    let mut passed = 0;
    for offset in from {
        pace.keep()?;
        passed += u64::from(heap.bridge(visibility, TupleId { block, offset })?);
    }
    Ok(passed)
}

fn visit(
    visibility: &mut VisibilityHorizon<'_>,
    heap: &Heap,
    block: u32,
    scope: Scope<'_>,
) -> Result<Pruned> {
    let mut mtr = heap.storage.mtr();
    let target = mtr.add(heap.pin_scan(block)?.write());
    let pruned = if page::is_new(mtr.page(target)) {
        Pruned::default()
    } else {
        prune::prune(&mut mtr, target, visibility, scope)
    };
    let room = page::room(mtr.page(target));
    heap.check_used(block, mtr.page(target))?;
    // A page that was never used has no bit: one that has a bit is none of zeros, or damaged.
    if !page::is_new(mtr.page(target)) && is_all_visible(mtr.page(target), visibility) {
        // Still latched, and logged: see `visibility_map`.
        let (_, guards) = mtr.commit_keep();
        heap.state.visible.set(block);
        drop(guards);
    } else {
        mtr.commit();
    }
    if !heap.state.space.is_target(block) {
        heap.state.space.give(block, room);
    }
    Ok(pruned)
}

/// Removes the index entries of dead line pointers and then the line pointers. `dead` is in order.
fn free(
    visibility: &mut VisibilityHorizon<'_>,
    heap: &Heap,
    (indexes, together): (&[AnyIndex], &Together<'_>),
    dead: &mut Vec<TupleId>,
    pace: &mut Pace,
    progress: &Progress,
) -> Result<()> {
    if dead.is_empty() {
        return Ok(());
    }
    debug_assert!(dead.is_sorted());
    progress.set_phase("vacuuming indexes");
    let is_dead = |row: TupleId| dead.binary_search(&row).is_ok();
    each_index(indexes, together, &|index| index.bulk_delete(&is_dead).map(drop))?;
    progress.add(Count::IndexPasses, 1);
    progress.set_phase("vacuuming heap");
    heap.state.visible.begin_epoch();
    for block in dead.chunk_by(|a, b| a.block == b.block) {
        pace.keep()?;
        // Line pointers that died meanwhile still have index entries: only the known ones go.
        let known = |number: u16| block.iter().any(|row| row.offset == number);
        visit(visibility, heap, block[0].block, Scope::Free(&known))?;
        progress.set(Count::BlocksVacuumed, u64::from(block[0].block));
    }
    dead.clear();
    progress.set(Count::Dead, 0);
    Ok(())
}
