//! `make bench-watch`: what watching costs. One server, the same pgbench with everything that watches
//! switched on and off in turn, twenty times a second; five pairs of such runs take turns in what they begin
//! with, and what counts is the median of the pairs' ratios.
//!
//! On means: waits are timed and recorded, statements are counted and their plans noted, and somebody reads the views
//! and asks `pg_why()` once a second. (Counting latch acquisitions, noting a latch's holder and keeping the history
//! can't be switched off, so they are on both sides; what the history's thread uses is said beside.)

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use crate::bench::{self, Server};
use crate::root;

const PORT: u16 = 7205;
const CLIENTS: u32 = 10;
const SCALE: u32 = 10;
const PAIRS: usize = 5;
/// Seconds of each run that don't count.
const WARM_UP: u32 = 2;
/// How often a second of a run changes between unwatched and watched.
/// Longer turns let through more of what the machine does meanwhile: with four a second pairs of 20 seconds
/// differed by 5 %, of what is to be told apart from 2 %.
const TURNS_IN_A_SECOND: u32 = 20;
const TURN: Duration = Duration::from_millis(1000 / TURNS_IN_A_SECOND as u64);
/// What a monitor asks once in a second of being watched.
const MONITOR: &str = "SELECT count(*) FROM pg_stat_activity; SELECT count(*) FROM pg_stat_wait_current; SELECT sum(count) FROM pg_stat_wait_profile; SELECT sum(acquisitions) FROM pg_stat_lwlock; SELECT count(*) FROM pg_why()";

/// Settings that watch: name, off, on.
const SWITCHES: [(&str, &str, &str); 4] = [
    ("track_wait_timing", "off", "on"),
    ("pg_wait_sampling.history_size", "0", "5000"),
    ("wait_profile_size", "0", "10000"),
    ("pg_stat_statements.track", "none", "top"),
];

/// Runs the comparison.
pub fn run(args: &[String]) -> Result<(), String> {
    let seconds = match args {
        [] => 8,
        [quick] if quick == "--quick" => 3,
        [name, value] if name == "--seconds" => {
            value.parse().map_err(|_| "--seconds takes a number")?
        }
        _ => return Err("usage: cargo xtask bench watch [--quick | --seconds N]".to_owned()),
    };
    let dir = std::env::temp_dir().join(format!("threadgres-watch-{}", std::process::id()));
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let result = measure(&dir, seconds);
    let _ = fs::remove_dir_all(&dir);
    let table = result?;
    println!("{table}");
    let folder = root().join("bench/results");
    fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let path = folder.join("watch.md");
    fs::write(&path, table).map_err(|e| format!("{}: {e}", path.display()))?;
    println!("kept as bench/results/watch.md");
    Ok(())
}

fn measure(dir: &Path, seconds: u32) -> Result<String, String> {
    let program = root().join("target/release/threadgres").to_string_lossy().into_owned();
    let data = dir.join("data").to_string_lossy().into_owned();
    let port = PORT.to_string();
    let args = [
        "serve",
        "--allow-root",
        "--single-process",
        "-D",
        &data,
        "-p",
        &port,
        "-c",
        "shared_buffers=1GB",
    ];
    let child = bench::spawn(dir, "watch", &program, &args)?;
    let server = Server { name: "watched", port: PORT, child: Some(child), is_null: false };
    bench::wait_for(&server)?;
    bench::load(&server, SCALE)?;
    let cores = thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let mut out = format!(
        "# What watching costs\n\n{cores} cores, client and server on one machine; pgbench, prepared, {CLIENTS} clients, scale {SCALE}, five pairs of {seconds} seconds each way, which alternate {TURNS_IN_A_SECOND} times a second, fsync on. Cost: the pairs' 1 - on/off, and the median.\n\n| | off, tps | on, tps | cost of each pair | median |\n| --- | --- | --- | --- | --- |\n"
    );
    let pid = server.child.as_ref().map_or(0, Child::id);
    let mut recorder = Vec::new();
    for script in ["select-only", "tpcb-like"] {
        let (began, before) = (Instant::now(), recorder_time(pid));
        let line = compare(&server, Path::new(&data), script, seconds)?;
        let used = recorder_time(pid).saturating_sub(before).as_secs_f64();
        let share = used / began.elapsed().as_secs_f64() / cores.max(1) as f64 * 100.0;
        recorder.push(format!("{share:.2} % during {script}"));
        eprintln!("{line}");
        let _ = writeln!(out, "{line}");
    }
    let _ = write!(
        out,
        "\nThe thread that writes the history and looks for findings, which is on on both sides, used of all processors' time: {}.\n",
        recorder.join(", ")
    );
    Ok(out)
}

/// Processor time so far of the server's thread that keeps the history.
fn recorder_time(pid: u32) -> Duration {
    /// A tick of the system's counts.
    const TICK: Duration = Duration::from_millis(10);
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let ticks = |task: fs::DirEntry| {
        let read = |name: &str| fs::read_to_string(task.path().join(name)).unwrap_or_default();
        if read("comm").trim() != "wait sampler" {
            return 0;
        }
        // Behind the name in brackets: user and system time are the 12th and 13th word.
        let stat = read("stat");
        let words = stat.rsplit_once(") ").map_or("", |(_, words)| words).split_whitespace();
        words.skip(11).take(2).filter_map(|word| word.parse::<u32>().ok()).sum::<u32>()
    };
    TICK * tasks.map(ticks).sum::<u32>()
}

/// A line of the table.
fn compare(server: &Server, data: &Path, script: &str, seconds: u32) -> Result<String, String> {
    let mut console = Console::open(server, data)?;
    let (mut off, mut on) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        let (o, w) = run_pair(server, &mut console, script, seconds, pair % 2 == 1)?;
        off.push(o);
        on.push(w);
    }
    let costs: Vec<f64> = off.iter().zip(&on).map(|(off, on)| (1.0 - on / off) * 100.0).collect();
    let each: Vec<String> = costs.iter().map(|c| format!("{c:.1} %")).collect();
    Ok(format!(
        "| {script} | {:.0} | {:.0} | {} | {:.1} % |",
        median(off),
        median(on),
        each.join(", "),
        median(costs)
    ))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Transactions per second unwatched and watched, in one run of pgbench that is unwatched and watched
/// by short turns, so that a machine that slows down or speeds up does it to both. `watched_first` says
/// with which the turns begin; they go on as ABBA.
fn run_pair(
    server: &Server,
    console: &mut Console,
    script: &str,
    seconds: u32,
    watched_first: bool,
) -> Result<(f64, f64), String> {
    let mut pgbench = start_pgbench(server, script, WARM_UP + 2 * seconds + 2)?;
    thread::sleep(Duration::from_secs(u64::from(WARM_UP)));
    let turns = 2 * seconds * TURNS_IN_A_SECOND;
    let (mut off, mut on) = (Part::default(), Part::default());
    let mut watched_turns = 0;
    for turn in 0..turns {
        // 0 1 1 0, or the other way round.
        let watched = (turn.div_ceil(2) % 2 == 1) != watched_first;
        console.switch(watched)?;
        let (began, before) = (Instant::now(), console.transactions()?);
        if watched {
            if watched_turns % TURNS_IN_A_SECOND == 0 {
                console.ask(MONITOR)?;
            }
            watched_turns += 1;
        }
        thread::sleep((began + TURN).saturating_duration_since(Instant::now()));
        let part = if watched { &mut on } else { &mut off };
        part.transactions += console.transactions()? - before;
        part.time += began.elapsed();
    }
    match pgbench.wait() {
        Ok(status) if status.success() => Ok((off.rate(), on.rate())),
        Ok(status) => Err(format!("pgbench: {status}")),
        Err(e) => Err(format!("pgbench: {e}")),
    }
}

/// All turns of one kind.
#[derive(Default)]
struct Part {
    transactions: u64,
    time: Duration,
}

impl Part {
    fn rate(&self) -> f64 {
        self.transactions as f64 / self.time.as_secs_f64()
    }
}

fn start_pgbench(server: &Server, script: &str, seconds: u32) -> Result<Child, String> {
    let (clients, scale, time) = (CLIENTS.to_string(), SCALE.to_string(), seconds.to_string());
    let options = [
        "-n", "-b", script, "-M", "prepared", "-s", &scale, "-c", &clients, "-j", "2", "-T", &time,
        "postgres",
    ];
    Command::new(format!("{}/pgbench", bench::PG_BIN))
        .args(bench::base_args(server))
        .args(options)
        .stdout(Stdio::null())
        .spawn()
        .map_err(|e| format!("pgbench: {e}"))
}

/// A psql that stays, so that switching and looking cost what they cost the server.
struct Console {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    /// The file that ALTER SYSTEM would write.
    settings: PathBuf,
}

impl Console {
    fn open(server: &Server, data: &Path) -> Result<Console, String> {
        let mut child = Command::new("psql")
            .args(bench::base_args(server))
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "postgres"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("psql: {e}"))?;
        let input = child.stdin.take().ok_or("psql: no stdin")?;
        let output = child.stdout.take().ok_or("psql: no stdout")?;
        let settings = data.join("postgresql.auto.conf");
        Ok(Console { child, input, output: BufReader::new(output).lines(), settings })
    }

    /// Runs statements and waits for their end; the last line of what they printed.
    fn ask(&mut self, sql: &str) -> Result<String, String> {
        writeln!(self.input, "{sql};\n\\echo ANSWERED").map_err(|e| format!("psql: {e}"))?;
        let mut last = String::new();
        for line in self.output.by_ref() {
            let line = line.map_err(|e| format!("psql: {e}"))?;
            if line == "ANSWERED" {
                return Ok(last);
            }
            last = line;
        }
        Err(format!("psql: {sql} failed"))
    }

    /// Switches all that watches on or off.
    fn switch(&mut self, on: bool) -> Result<(), String> {
        let mut text = String::new();
        for (name, off_value, on_value) in SWITCHES {
            let _ = writeln!(text, "{name} = '{}'", if on { on_value } else { off_value });
        }
        fs::write(&self.settings, text).map_err(|e| format!("{}: {e}", self.settings.display()))?;
        self.ask("SELECT pg_reload_conf()").map(drop)
    }

    /// How many transactions the server has committed.
    fn transactions(&mut self) -> Result<u64, String> {
        let answer = self.ask("SELECT sum(xact_commit) FROM pg_stat_database")?;
        answer.parse().map_err(|_| format!("psql: {answer}"))
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        let _ = self.input.write_all(b"\\q\n");
        let _ = self.child.wait();
    }
}
