//! A server's profile under a load, by its own account: stacks on its processors and at its
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
    // Connected before the load: a busy server may take its time.
    let Ok(sessions) = sessions(load.address) else { return Ok(None) };
    if sessions.is_empty() {
        return Ok(None);
    }
    let mut sessions = sessions.into_iter();
    let mut threads: Vec<JoinHandle<Option<String>>> = Vec::new();
    let outcome = driver::run(load, stop, |edge| {
        if edge == Edge::Begin {
            let seconds = load.time.as_secs_f64();
            for (mut session, (kind, root)) in sessions.by_ref().zip(ROOTS) {
                threads
                    .push(std::thread::spawn(move || ask(&mut session, kind, root, seconds).ok()));
            }
        }
        Ok(())
    })?;
    let texts: Vec<String> =
        threads.into_iter().filter_map(|thread| thread.join().ok().flatten()).collect();
    Ok(outcome.map(|_| texts.concat()).filter(|text| !text.is_empty()))
}

/// A session for each kind of stacks; none where the server has no stacks.
fn sessions(address: &Address) -> Result<Vec<Connection>, Failure> {
    let mut first = Connection::open(address)?;
    let known = "SELECT 1 FROM pg_proc WHERE proname = 'pg_stacks' LIMIT 1";
    match first.value(known)? {
        Some(_) => Ok(vec![first, Connection::open(address)?]),
        None => Ok(Vec::new()),
    }
}

fn ask(session: &mut Connection, kind: &str, root: &str, seconds: f64) -> Result<String, Failure> {
    let rows = session.query(&format!("SELECT * FROM pg_stacks({seconds}, '{kind}')"))?;
    let lines = rows.into_iter().filter_map(|row| row.into_iter().next().flatten());
    // What measures is no part of the load.
    let lines = lines.filter(|line| !line.starts_with("profiler;"));
    Ok(lines.map(|line| format!("{root};{line}\n")).collect())
}
