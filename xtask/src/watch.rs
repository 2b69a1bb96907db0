//! `make bench-watch`: what watching costs. One server, the same pgbench with everything that watches
//! switched on and off in turn, in alternating pairs; what counts is the median of the pairs' ratios.
//!
//! On means: waits are timed and recorded, statements are counted, and somebody reads the views once
//! a second. (Counting latch acquisitions and noting a latch's holder can't be switched off, so they
//! are on both sides.)

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, thread};

use crate::bench::{self, Server};
use crate::root;

const PORT: u16 = 7205;
const CLIENTS: u32 = 10;
const SCALE: u32 = 10;
const PAIRS: usize = 5;
/// What a monitor asks once a second.
const MONITOR: &str = "SELECT count(*) FROM pg_stat_activity; SELECT count(*) FROM pg_stat_wait_current; SELECT sum(count) FROM pg_stat_wait_profile; SELECT sum(acquisitions) FROM pg_stat_lwlock";

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
        [] => 10,
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
    let stamp = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let folder = root().join("bench/results");
    fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let path = folder.join(format!("watch-{stamp}.md"));
    fs::write(&path, table).map_err(|e| format!("{}: {e}", path.display()))?;
    println!("kept as bench/results/watch-{stamp}.md");
    Ok(())
}

fn measure(dir: &Path, seconds: u32) -> Result<String, String> {
    let program = root().join("target/release/threadgres").to_string_lossy().into_owned();
    let data = dir.join("data").to_string_lossy().into_owned();
    let port = PORT.to_string();
    let args = ["serve", "--single-process", "-D", &data, "-p", &port, "-c", "shared_buffers=1GB"];
    let child = bench::spawn(dir, "watch", &program, &args)?;
    let server = Server { name: "watched", port: PORT, child: Some(child), is_null: false };
    bench::wait_for(&server)?;
    bench::load(&server, SCALE)?;
    let cores = thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let mut out = format!(
        "# What watching costs\n\n{cores} cores, client and server on one machine; pgbench, prepared, {CLIENTS} clients, scale {SCALE}, {seconds} seconds a point, fsync on. Pairs take turns in who comes first; cost: the median of the pairs' 1 - on/off.\n\n| | off, tps | on, tps | cost of each pair | median |\n| --- | --- | --- | --- | --- |\n"
    );
    for script in ["select-only", "tpcb-like"] {
        let line = compare(&server, script, seconds)?;
        eprintln!("{line}");
        let _ = writeln!(out, "{line}");
    }
    Ok(out)
}

/// A line of the table.
fn compare(server: &Server, script: &str, seconds: u32) -> Result<String, String> {
    switch(server, true)?;
    point(server, script, seconds, true)?; // warm up
    let (mut off, mut on) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        for half in 0..2 {
            let watched = (pair + half) % 2 == 1;
            switch(server, watched)?;
            let tps = point(server, script, seconds, watched)?;
            if watched { on.push(tps) } else { off.push(tps) }
        }
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

/// Switches all that watches on or off; settings that the server does not have are left out.
fn switch(server: &Server, on: bool) -> Result<(), String> {
    for (name, off_value, on_value) in SWITCHES {
        let value = if on { on_value } else { off_value };
        let known = format!("SELECT 1 FROM pg_settings WHERE name = '{name}'");
        if psql(server, &known)?.trim() == "1" {
            psql(server, &format!("ALTER SYSTEM SET {name} = '{value}'"))?;
        }
    }
    psql(server, "SELECT pg_reload_conf()").map(drop)
}

/// Transactions per second, with somebody who looks at the views when `watched`.
fn point(server: &Server, script: &str, seconds: u32, watched: bool) -> Result<f64, String> {
    let over = AtomicBool::new(!watched);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let _ = psql(server, MONITOR);
                thread::sleep(Duration::from_secs(1));
            }
        });
        let tps = bench::pgbench(server, script, "prepared", SCALE, CLIENTS, seconds);
        over.store(true, Ordering::Relaxed);
        tps
    })
}

fn psql(server: &Server, sql: &str) -> Result<String, String> {
    let mut args = bench::base_args(server);
    args.extend(
        ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql, "postgres"].map(str::to_owned),
    );
    let out = Command::new("psql").args(args).output().map_err(|e| format!("psql: {e}"))?;
    if !out.status.success() {
        return Err(format!("psql: {sql}: {}", String::from_utf8_lossy(&out.stderr)));
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}
