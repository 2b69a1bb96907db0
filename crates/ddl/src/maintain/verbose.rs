//! The lines of VERBOSE: those of PostgreSQL's VACUUM, CLUSTER and REINDEX, as far as there is something behind them
//! (nothing is frozen here, and large values have no table of their own).

use std::fmt::Write as _;
use std::time::Instant;

use access::AnyIndex;
use access::vacuum::VacuumStats;
use base::usage::{Usage, Use};
use base::{Fork, Result};
use exec::context::ExecContext;
use nix::sys::resource::{Usage as CpuUsage, UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use storage::PAGE_SIZE;

/// The resources used since it was made.
pub struct Meter {
    began: Instant,
    cpu: Option<CpuUsage>,
    used: Usage,
}

impl Meter {
    /// Begins now.
    pub fn new() -> Meter {
        Meter { began: Instant::now(), cpu: cpu(), used: used() }
    }

    /// `CPU: user: 0.00 s, system: 0.00 s, elapsed: 0.00 s`. The processor time is the thread's, so it is also that of
    /// what else ran on the worker while this session waited.
    pub fn times(&self) -> String {
        let seconds = |part: fn(&CpuUsage) -> TimeVal| {
            let micros = |usage: &Option<CpuUsage>| {
                usage.as_ref().map_or(0, |usage| part(usage).num_microseconds())
            };
            (micros(&cpu()) - micros(&self.cpu)).max(0) as f64 / 1e6
        };
        format!(
            "CPU: user: {:.2} s, system: {:.2} s, elapsed: {:.2} s",
            seconds(CpuUsage::user_time),
            seconds(CpuUsage::system_time),
            self.began.elapsed().as_secs_f64()
        )
    }

    /// The lines on buffers, log and times.
    fn resources(&self, out: &mut String) {
        let used = used().since(&self.used);
        let seconds = self.began.elapsed().as_secs_f64();
        let rate = |pages: u64| match seconds > 0.0 {
            true => pages as f64 * PAGE_SIZE as f64 / (1024.0 * 1024.0) / seconds,
            false => 0.0,
        };
        let [hits, misses, dirtied] =
            [Use::BufferHit, Use::BufferRead, Use::BufferDirtied].map(|what| used.get(what));
        // Writing to a string does not fail.
        let _ = write!(
            out,
            "\navg read rate: {:.3} MB/s, avg write rate: {:.3} MB/s\n\
             buffer usage: {hits} hits, {misses} misses, {dirtied} dirtied\n\
             WAL usage: {} records, {} full page images, {} bytes\n\
             system usage: {}",
            rate(misses),
            rate(dirtied),
            used.get(Use::WalRecords),
            used.get(Use::WalImages),
            used.get(Use::WalBytes),
            self.times()
        );
    }
}

fn cpu() -> Option<CpuUsage> {
    getrusage(UsageWho::RUSAGE_THREAD).ok()
}

fn used() -> Usage {
    sched::with_current(|task| task.usage())
}

/// The lines of VACUUM when it is done with a table.
///
/// # Errors
/// I/O.
pub fn vacuumed(
    cx: &ExecContext<'_>,
    name: &str,
    (before, after): (u32, u32),
    done: &VacuumStats,
    indexes: &[(String, AnyIndex)],
    meter: &Meter,
) -> Result<String> {
    let manager = cx.tx.manager();
    let cutoff = manager.oldest_running();
    let share = |pages: u32| match before {
        0 => 100.0,
        all => 100.0 * f64::from(pages) / f64::from(all),
    };
    let passes = done.index_passes;
    let needed = if passes > 0 { "" } else { "not " };
    let mut text = format!(
        "finished vacuuming \"{name}\": index scans: {passes}\n\
         pages: {} removed, {after} remain, {} scanned (100.00% of total)\n\
         tuples: {} removed, {} remain, {} are dead but not yet removable\n\
         removable cutoff: {}, which was {} XIDs old when operation ended\n\
         index scan {needed}needed: {} pages from table ({:.2}% of total) had {} dead item \
         identifiers removed",
        before.saturating_sub(after),
        done.pages,
        done.removed,
        done.live,
        done.kept,
        cutoff.0,
        manager.next_xid().0.saturating_sub(cutoff.0),
        done.dead_pages,
        share(done.dead_pages),
        done.dead_items,
    );
    for (index, open) in indexes {
        let pages = cx.engine.storage.block_count(open.rel(), Fork::Main)?;
        let _ = write!(
            text,
            "\nindex \"{index}\": pages: {pages} in total, 0 newly deleted, 0 currently deleted, 0 \
             reusable"
        );
    }
    meter.resources(&mut text);
    Ok(text)
}

/// The line of VACUUM when helpers have gone through indexes.
pub fn launched(launched: usize, planned: usize) -> String {
    let workers = if launched == 1 { "worker" } else { "workers" };
    format!(
        "launched {launched} parallel vacuum {workers} for index vacuuming (planned: {planned})"
    )
}

/// The lines of VACUUM FULL and CLUSTER when they have written a table anew: its name, the versions that it had and its
/// pages, and the rows that it has now.
pub fn rewritten(
    cx: &mut ExecContext<'_>,
    name: &str,
    (versions, pages): (u64, u32),
    rows: u64,
    meter: &Meter,
) {
    let removed = versions.saturating_sub(rows);
    let message = format!(
        "\"{name}\": found {removed} removable, {rows} nonremovable row versions in {pages} pages"
    );
    let detail = format!("0 dead row versions cannot be removed yet.\n{}.", meter.times());
    say(cx, base::Error::new(base::sqlstate::SUCCESSFUL_COMPLETION, message).detail(detail));
}

/// Sends a message of level INFO.
pub fn say(cx: &mut ExecContext<'_>, message: base::Error) {
    cx.hooks.notice("INFO", message);
}
