//! The laboratory's records: JSON lines, one [`Record`] a line, in the order in which
//! things happened. A file that was cut off in its last line is read up to there.
//!
//! Times are seconds, latencies microseconds, memory bytes, CPU seconds, unless a name says otherwise.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};

use serde::{Deserialize, Serialize};

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// Where a run took place; the first line of each run.
    Environment(Environment),
    /// A server that is measured.
    Target(Target),
    /// One measured point: a target under one load for some seconds.
    Point(Point),
    /// Microbenchmark of one primitive at one number of threads.
    Lock(LockPoint),
    /// A simulated point.
    Simulated(SimulatedPoint),
    /// One second of `lab incident`.
    Second(IncidentSecond),
}

/// The machine and the tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// RFC 3339, UTC.
    pub started: String,
    /// Version of the laboratory.
    pub lab: String,
    /// Logical processors that this process may use.
    pub cores: u32,
    /// `model name` of the processor.
    pub processor: String,
    /// Kernel release.
    pub kernel: String,
    /// Memory of the machine, bytes.
    pub memory: u64,
    /// The command line's arguments.
    pub arguments: Vec<String>,
}

/// A server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// Short name by which points refer to it.
    pub name: String,
    /// Its address without password.
    pub url: String,
    /// What `version()` or the protocol says.
    pub version: String,
    /// Settings that matter, by name, as the server shows them.
    pub settings: BTreeMap<String, String>,
}

/// One load on one target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// [`Target::name`].
    pub target: String,
    /// `select-only`, `tpcb-like`, a script's file name, …
    pub workload: String,
    /// `simple`, `extended` or `prepared`.
    pub protocol: String,
    /// The load driver: `lab` or `pgbench`.
    pub driver: String,
    /// Connections at once.
    pub clients: u32,
    /// Repetition, from 0.
    pub repetition: u32,
    /// Measured time after the warm-up.
    pub seconds: f64,
    /// Transactions finished in that time.
    pub transactions: u64,
    /// Transactions that the driver finished from first to last, warm-up and end included.
    #[serde(default)]
    pub all_transactions: u64,
    /// What the server's own count of commits (`pg_stat_database.xact_commit`) grew by meanwhile, less
    /// the laboratory's own questions. PostgreSQL also counts logins and background work.
    #[serde(default)]
    pub server_commits: Option<u64>,
    /// Transactions that ended in an error, by SQLSTATE; `unfinished` are those that had no answer ten
    /// seconds after the end.
    pub errors: BTreeMap<String, u64>,
    /// Transactions a second.
    pub tps: f64,
    /// Latency of transactions.
    pub latency: Latency,
    /// CPU time that the server's processes used meanwhile, where it is local.
    pub server_cpu: Option<f64>,
    /// Their proportional set size at the end, where it is local.
    pub server_memory: Option<u64>,
    /// CPU time of the driver.
    pub driver_cpu: Option<f64>,
    /// Where the server's sessions waited, from its own views.
    pub waits: Vec<Wait>,
    /// Folded stacks (`root;frame;frame microseconds`), where the server gives them, taken under the
    /// same load before the point was measured. Roots: [`crate::sweep::stacks::ROOTS`].
    pub stacks: Option<String>,
}

/// A latency histogram in short.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Mean, µs.
    pub mean: f64,
    /// (percentile, µs): 50, 90, 99, 99.9, 100 at least.
    pub percentiles: Vec<(f64, u64)>,
    /// The whole histogram in HdrHistogram's V2 serialisation, base64; empty when not kept.
    pub histogram: String,
}

/// Waits for one event during a point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// `wait_event_type`; `CPU` for sessions seen running.
    pub kind: String,
    /// `wait_event`.
    pub event: String,
    /// Exact number of waits, or samples for servers that only show the present.
    pub count: u64,
    /// Time waited, seconds; for sampled servers samples times the interval.
    pub seconds: f64,
    /// Whether this was sampled rather than counted.
    pub sampled: bool,
}

/// One primitive measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LockPoint {
    /// `pin-add`, `pin-cas`, `lwlock-bounded`, …
    pub primitive: String,
    /// What it was set up with: share of writers, counters, hold time.
    pub parameters: BTreeMap<String, f64>,
    /// Threads at once.
    pub threads: u32,
    /// Operations finished.
    pub operations: u64,
    /// Measured time.
    pub seconds: f64,
    /// Mean time of one operation as its thread sees it, nanoseconds; the median of the rounds.
    pub mean_ns: f64,
    /// Its lower and upper quartile over the rounds.
    #[serde(default)]
    pub quartiles_ns: (f64, f64),
    /// Processor time of one operation, nanoseconds, where measured: unlike the mean it leaves out
    /// what other programs took.
    #[serde(default)]
    pub cpu_ns: Option<f64>,
    /// Its lower and upper quartile over the rounds.
    #[serde(default)]
    pub cpu_quartiles_ns: Option<(f64, f64)>,
    /// Mean wait from asking to having, nanoseconds, where measured.
    #[serde(default)]
    pub wait_mean_ns: Option<f64>,
    /// Longest wait, nanoseconds.
    pub longest_ns: u64,
    /// The slowest thread's throughput over the fastest's.
    #[serde(default)]
    pub evenness: Option<f64>,
    /// Cost of one hand-over between two threads, nanoseconds, where measured.
    pub hand_over_ns: Option<f64>,
}

/// One simulated point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SimulatedPoint {
    /// The machine's preset.
    pub machine: String,
    /// What was simulated.
    pub scenario: String,
    /// The variant of the algorithm.
    pub variant: String,
    /// Cores at work.
    pub cores: u32,
    /// Operations a second.
    pub throughput: f64,
    /// Mean and longest time of one operation, nanoseconds.
    pub mean_ns: f64,
    /// The longest of them, those that did not end included.
    pub longest_ns: f64,
    /// Mean and longest time of one exclusive operation, where the scenario has such.
    #[serde(default)]
    pub exclusive_mean_ns: Option<f64>,
    /// The longest of them.
    #[serde(default)]
    pub exclusive_longest_ns: Option<f64>,
    /// Cache line transfers for each operation.
    pub transfers: f64,
    /// Part of all processors' time that they spent in the waiting loops of PostgreSQL's spin locks.
    #[serde(default)]
    pub spinning: f64,
    /// Seed of the run.
    pub seed: u64,
}

/// One second of the incident.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IncidentSecond {
    /// The part's name.
    #[serde(default)]
    pub part: String,
    /// `lwlock_shared_limit` of this part.
    pub limit: i64,
    /// Seconds since its beginning.
    pub second: u32,
    /// By name: `locks_count`, `active_sessions`, `waits_buffer_content`, `waits_buffer_mapping`,
    /// `waits_relation_extension`, `inserts_over_1s`, `inserts_over_30s`, `longest_insert_ms`,
    /// `longest_latch_wait_ms`, `transactions`.
    pub values: BTreeMap<String, f64>,
}

/// Writes one record as a line.
///
/// # Errors
/// Those of the writer.
pub fn write(out: &mut impl Write, record: &Record) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    out.write_all(&line)?;
    out.flush()
}

/// Reads all records; blank lines are skipped, a last line that was cut off is left out.
///
/// # Errors
/// Those of the reader, and a line that is no record (its number is named), unless it is the last.
pub fn read(from: impl BufRead) -> std::io::Result<Vec<Record>> {
    let mut records = Vec::new();
    let mut broken: Option<(usize, serde_json::Error)> = None;
    for (number, line) in from.lines().enumerate() {
        let line = line?;
        if let Some((at, error)) = broken.take() {
            let what = format!("line {}: {error}", at + 1);
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, what));
        }
        if line.trim().is_empty() {
            continue;
        }
        match serde_json::from_str(&line) {
            Ok(record) => records.push(record),
            Err(error) => broken = Some((number, error)),
        }
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_and_a_cut_line_is_left_out() {
        let point = Record::Point(Point { clients: 10, tps: 1.5, ..Point::default() });
        let mut file = Vec::new();
        write(&mut file, &point).unwrap();
        write(&mut file, &Record::Environment(Environment::default())).unwrap();
        let whole = read(file.as_slice()).unwrap();
        assert_eq!(whole.len(), 2);
        assert_eq!(whole[0], point);
        assert_eq!(read(&file[..file.len() - 9]).unwrap(), [point]);
    }

    #[test]
    fn a_broken_line_in_the_middle_is_named() {
        let error = read(b"{}\n{\"record\":\"target\"}\n".as_slice()).unwrap_err();
        assert!(error.to_string().starts_with("line 1:"), "{error}");
    }
}
