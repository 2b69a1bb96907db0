//! Where a server's time goes under a load, as it tells itself: stacks on its processors and at its
//! waits, from its function `pg_stacks`.
//!
//! Taking stacks costs throughput, and looking up their names costs time afterwards. So this is done
//! before a point is measured, under the same load, and nothing of it is counted. What has no such
//! function gives nothing.

use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;

use crate::Result;
use crate::driver::{self, Address, Connection, Edge, Failure, Load};

/// First frame of stacks on a processor, and of those at a wait.
pub const ROOTS: [(&str, &str); 2] = [("cpu", "on CPU"), ("waits", "waiting")];

/// Folded stacks of a server under this load, in microseconds: `root;frame;frame weight`.
///
/// # Errors
/// Those of the load.
pub fn take(load: &Load<'_>, stop: &AtomicBool) -> Result<Option<String>> {
    if !has_stacks(load.address) {
        return Ok(None);
    }
    let mut threads: Vec<JoinHandle<Option<String>>> = Vec::new();
    let outcome = driver::run(load, stop, |edge| {
        if edge == Edge::Begin {
            let seconds = load.time.as_secs_f64();
            for (kind, root) in ROOTS {
                let address = load.address.clone();
                threads.push(std::thread::spawn(move || ask(&address, kind, root, seconds).ok()));
            }
        }
        Ok(())
    })?;
    let texts: Vec<String> =
        threads.into_iter().filter_map(|thread| thread.join().ok().flatten()).collect();
    Ok(outcome.map(|_| texts.concat()).filter(|text| !text.is_empty()))
}

fn has_stacks(address: &Address) -> bool {
    let asked = Connection::open(address)
        .and_then(|mut c| c.value("SELECT 1 FROM pg_proc WHERE proname = 'pg_stacks' LIMIT 1"));
    matches!(asked, Ok(Some(_)))
}

fn ask(address: &Address, kind: &str, root: &str, seconds: f64) -> Result<String, Failure> {
    let sql = format!("SELECT * FROM pg_stacks({seconds}, '{kind}')");
    let rows = Connection::open(address)?.query(&sql)?;
    let lines = rows.into_iter().filter_map(|row| row.into_iter().next().flatten());
    // What measures is no part of the load.
    let lines = lines.filter(|line| !line.starts_with("profiler;"));
    Ok(lines.map(|line| format!("{root};{line}\n")).collect())
}
