//! A scan with an aggregate by many threads, one page an operation: how pages are claimed from the
//! scan's one counter, and where the groups are. A page is 60 rows of 100 ns each.

use std::cell::Cell;

use super::super::engine::{Core, Simulation};

/// Rows of a page.
const ROWS: usize = 60;
/// Time of a row by itself, in nanoseconds: deforming, a condition, an addition.
const ROW_NS: f64 = 100.0;
/// Groups of the aggregate.
const GROUPS: usize = 100;

/// Where the groups' sums are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Groups {
    /// In each thread's own table, put together at the end.
    Own,
    /// In one table, by an atomic add for each row.
    Shared,
}

/// Each core claims so many pages at a time and aggregates their rows.
pub fn start(simulation: &mut Simulation, pages_a_claim: u32, groups: Groups) {
    let next = simulation.word();
    let sums: Vec<_> = (0..GROUPS).map(|_| simulation.word()).collect();
    simulation.each_core(|_| {
        let (claimed, sums) = (Cell::new(0), sums.clone());
        async move |core: &Core| {
            if claimed.get() == 0 {
                core.add(next, i64::from(pages_a_claim)).await;
                claimed.set(pages_a_claim);
            }
            claimed.set(claimed.get() - 1);
            match groups {
                Groups::Own => core.work_about(ROWS as f64 * ROW_NS).await,
                Groups::Shared => {
                    for _ in 0..ROWS {
                        core.work_about(ROW_NS).await;
                        core.add(sums[core.random(GROUPS as u64) as usize], 1).await;
                    }
                }
            }
        }
    });
}
