//! The real `pgbench` as the driver: the same scripts, its own counts.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::resource::UsageWho;

use crate::driver::{Address, Edge, Protocol, cpu_of};
use crate::installed;
use crate::script::Value;
use crate::workload::Workload;
use crate::{Error, Result};

/// What is to be run.
pub struct Run<'a> {
    /// The server.
    pub address: &'a Address,
    /// Scripts.
    pub workload: &'a Workload,
    /// Their variables.
    pub variables: &'a [(&'static str, Value)],
    /// How statements travel.
    pub protocol: Protocol,
    /// Connections.
    pub clients: u32,
    /// Threads.
    pub threads: u32,
    /// A run of its own before the measured one.
    pub warm_up: Duration,
    /// Measured time, in whole seconds.
    pub time: Duration,
}

/// What it printed.
#[derive(Debug, Default, PartialEq)]
pub struct Printed {
    /// Transactions processed.
    pub transactions: u64,
    /// Transactions that failed.
    pub failed: u64,
    /// Mean latency, ms.
    pub latency_ms: f64,
    /// Without the time to connect.
    pub tps: f64,
    /// CPU time of pgbench itself, seconds.
    pub cpu: f64,
}

impl Printed {
    /// Failed transactions; pgbench goes on only after these two errors, and does not tell them apart.
    pub fn errors(&self) -> BTreeMap<String, u64> {
        let some = (self.failed > 0).then(|| ("40001 or 40P01".to_owned(), self.failed));
        some.into_iter().collect()
    }
}

/// Warms up and measures; none if `stop` came.
///
/// # Errors
/// pgbench isn't there, or says one.
pub fn run(
    run: &Run<'_>,
    stop: &AtomicBool,
    mut observe: impl FnMut(Edge) -> Result<()>,
) -> Result<Option<Printed>> {
    let program = installed::pgbench().ok_or("pgbench is not installed")?;
    let scripts = Scripts::write(run.workload)?;
    if run.warm_up >= Duration::from_secs(1) {
        let child = spawn(run, &program, &scripts, run.warm_up)?;
        if finish(child, stop)?.is_none() {
            return Ok(None);
        }
    }
    let cpu = cpu_of(UsageWho::RUSAGE_CHILDREN);
    let started = Instant::now();
    let child = spawn(run, &program, &scripts, run.time)?;
    let mut child = Running(child);
    observe(Edge::Begin)?;
    // A little before the end, while its clients are still connected.
    let look = started + run.time.saturating_sub(Duration::from_millis(100));
    while !stop.load(Ordering::Relaxed) && Instant::now() < look {
        if child.0.try_wait()?.is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    observe(Edge::End)?;
    let Some(text) = finish_running(&mut child, stop)? else { return Ok(None) };
    Ok(Some(Printed { cpu: cpu_of(UsageWho::RUSAGE_CHILDREN) - cpu, ..parse(&text) }))
}

/// Ends its process with itself.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The workload's scripts in files for as long as they are needed.
struct Scripts {
    dir: PathBuf,
    arguments: Vec<String>,
}

impl Scripts {
    fn write(workload: &Workload) -> Result<Scripts> {
        let dir = std::env::temp_dir().join(format!("threadgres-lab-{}", std::process::id()));
        fs::create_dir_all(&dir).map_err(|e| Error::file(&dir, e))?;
        let mut scripts = Scripts { dir, arguments: Vec::new() };
        for (i, (text, weight)) in workload.scripts.iter().enumerate() {
            let path = scripts.dir.join(format!("script{i}.sql"));
            fs::write(&path, text).map_err(|e| Error::file(&path, e))?;
            scripts.arguments.push(format!("--file={}@{weight}", path.display()));
        }
        Ok(scripts)
    }
}

impl Drop for Scripts {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn spawn(run: &Run<'_>, program: &Path, scripts: &Scripts, time: Duration) -> Result<Child> {
    let mut command = Command::new(program);
    let address = run.address;
    command
        .args(["--no-vacuum", "--host", &address.host, "--port", &address.port.to_string()])
        .args(["--username", &address.user, "--protocol", run.protocol.name()])
        .args(["--client", &run.clients.to_string(), "--jobs", &run.threads.to_string()])
        .args(["--time", &time.as_secs().max(1).to_string()])
        .args(&scripts.arguments);
    for (name, value) in run.variables {
        if let Value::Int(value) = value {
            command.arg(format!("--define={name}={value}"));
        }
    }
    if let Some(password) = &address.password {
        command.env("PGPASSWORD", password);
    }
    command.arg(&address.database).stdin(Stdio::null()).stdout(Stdio::piped());
    let spawned = command.stderr(Stdio::piped()).spawn();
    spawned.map_err(|e| Error::file(program, e))
}

fn finish(child: Child, stop: &AtomicBool) -> Result<Option<String>> {
    finish_running(&mut Running(child), stop)
}

/// Waits for its end; what it printed, or none if `stop` came.
fn finish_running(child: &mut Running, stop: &AtomicBool) -> Result<Option<String>> {
    let errors = child.0.stderr.take();
    // A thread reads its errors, so that it never waits for us to.
    let errors = std::thread::spawn(move || {
        let mut text = String::new();
        if let Some(mut errors) = errors {
            let _ = errors.read_to_string(&mut text);
        }
        text
    });
    let status = loop {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match child.0.try_wait()? {
            Some(status) => break status,
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let mut text = String::new();
    if let Some(mut out) = child.0.stdout.take() {
        out.read_to_string(&mut text)?;
    }
    let errors = errors.join().unwrap_or_default();
    if status.success() {
        return Ok(Some(text));
    }
    let last = errors.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("it says nothing");
    Err(Error::new(format!("pgbench failed: {last}")))
}

fn parse(text: &str) -> Printed {
    let number = |start: &str| -> f64 {
        let line = text.lines().find_map(|l| l.strip_prefix(start));
        let word =
            line.and_then(|l| l.trim_start_matches([':', '=', ' ']).split([' ', '/']).next());
        word.and_then(|w| w.parse().ok()).unwrap_or(0.0)
    };
    Printed {
        transactions: number("number of transactions actually processed") as u64,
        failed: number("number of failed transactions") as u64,
        latency_ms: number("latency average"),
        tps: number("tps"),
        cpu: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_summary_is_read() {
        let text = "transaction type: x\nnumber of transactions actually processed: 1200\n\
            number of failed transactions: 3 (0.249%)\nlatency average = 0.812 ms\n\
            initial connection time = 4.1 ms\ntps = 1231.5 (without initial connection time)\n";
        let expected =
            Printed { transactions: 1200, failed: 3, latency_ms: 0.812, tps: 1231.5, cpu: 0.0 };
        assert_eq!(parse(text), expected);
    }
}
