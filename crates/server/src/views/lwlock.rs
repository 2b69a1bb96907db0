//! `pg_stat_lwlock`: what the latches of each tranche went through since the start.

use std::collections::HashMap;

use base::WaitEvent;
use sched::lwlock::{tranche_counters, tranches};
use sched::observe;
use types::Datum;

use super::waits::ms;
use crate::views::text::text;

/// Those who wait for a tranche's latches just now.
#[derive(Default)]
struct Waiters {
    count: i64,
    /// The holder of the latch that somebody waits for longest, and since when.
    holder: Option<(std::time::Instant, i32)>,
}

fn waiters() -> HashMap<WaitEvent, Waiters> {
    let mut all: HashMap<WaitEvent, Waiters> = HashMap::new();
    for (waiting, since) in observe::tasks().iter().filter_map(|task| task.waiting()) {
        let waiters = all.entry(waiting.event).or_default();
        waiters.count += 1;
        let blocker =
            if waiting.blocker == 0 { None } else { observe::task_by_id(waiting.blocker) };
        if let Some(task) = blocker.filter(|task| task.pid() != 0)
            && waiters.holder.is_none_or(|(oldest, _)| since < oldest)
        {
            waiters.holder = Some((since, task.pid()));
        }
    }
    all
}

/// One row for each tranche.
pub(super) fn rows() -> Vec<Vec<Datum>> {
    let waiters = waiters();
    let row = |tranche: WaitEvent| {
        let counters = tranche_counters(tranche);
        let now = waiters.get(&tranche);
        vec![
            text(tranche.info().name),
            Datum::Int8(counters.acquisitions as i64),
            Datum::Int8(counters.waits as i64),
            ms(counters.waited_ns),
            ms(counters.longest_ns),
            Datum::Int8(counters.passes as i64),
            Datum::Int8(now.map_or(0, |w| w.count)),
            now.and_then(|w| w.holder).map_or(Datum::Null, |(_, pid)| Datum::Int4(pid)),
            Datum::Int4(counters.shared_limit as i32),
        ]
    };
    tranches().map(row).collect()
}
