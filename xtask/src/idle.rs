//! What idle clients cost: memory for each, and CPU while nothing happens. Linux's `/proc` tells.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How long the clients do nothing.
const IDLE: Duration = Duration::from_secs(5);

/// Connects `clients` sessions that each run one query, and measures the server's process.
pub fn measure(name: &str, port: u16, pid: u32, clients: usize) -> Result<String, String> {
    let before = resident_kib(pid)?;
    let mut sessions = Vec::with_capacity(clients);
    for _ in 0..clients {
        sessions.push(session(port).map_err(|e| format!("{name}: {e}"))?);
    }
    let after = resident_kib(pid)?;
    let start = cpu_ticks(pid)?;
    std::thread::sleep(IDLE);
    let ticks = cpu_ticks(pid)? - start;
    drop(sessions);
    let mut line = String::new();
    let _ = write!(
        line,
        "| {name} | {clients} | {:.1} KiB | {before} KiB | {ticks} clock ticks in {} s |",
        (after.saturating_sub(before)) as f64 / clients as f64,
        IDLE.as_secs(),
    );
    Ok(line)
}

/// A session of the simple protocol that has run one query.
fn session(port: u16) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    stream.write_all(b"\0\0\0\x29\0\x03\0\0user\0postgres\0database\0postgres\0\0")?;
    until_ready(&mut stream)?;
    stream.write_all(b"Q\0\0\0\x0dSELECT 1\0")?;
    until_ready(&mut stream)?;
    Ok(stream)
}

fn until_ready(stream: &mut TcpStream) -> std::io::Result<()> {
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let mut body = vec![0; length.saturating_sub(4)];
        stream.read_exact(&mut body)?;
        match head[0] {
            b'Z' => return Ok(()),
            b'E' => return Err(std::io::Error::other(String::from_utf8_lossy(&body).into_owned())),
            _ => {}
        }
    }
}

fn resident_kib(pid: u32) -> Result<u64, String> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).map_err(|e| e.to_string())?;
    let line = text.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    line.and_then(|l| l.split_whitespace().next()?.parse().ok()).ok_or("no VmRSS".to_owned())
}

/// User and system time so far.
fn cpu_ticks(pid: u32) -> Result<u64, String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).map_err(|e| e.to_string())?;
    let fields = text.rsplit(')').next().unwrap_or_default();
    let number = |n: usize| fields.split_whitespace().nth(n).and_then(|f| f.parse::<u64>().ok());
    number(11).zip(number(12)).map(|(u, s)| u + s).ok_or("an odd /proc/stat line".to_owned())
}
