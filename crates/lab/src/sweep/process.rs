//! The server's processes where it is local: found by the listening socket, followed through `/proc`.
//!
//! CPU time is user and system time of the whole tree, of children that have ended too, which `/proc`
//! counts with the parent that has waited for them. Memory is the proportional set size: shared pages
//! are divided among those who share them, so that a server of many processes isn't counted many times.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::driver::Address;

/// Clock ticks a second in `/proc`: a constant of the kernel's interface.
const TICKS: f64 = 100.0;

/// A server's processes by their oldest ancestor.
#[derive(Clone, Debug, Default)]
pub struct Processes {
    roots: Vec<u32>,
}

impl Processes {
    /// Whoever listens at this address; nobody if it is elsewhere or another user's.
    pub fn of(address: &Address) -> Processes {
        let inodes = match address.socket() {
            Some(path) => unix_inodes(&path.to_string_lossy()),
            None if is_local(&address.host) => tcp_inodes(address.port),
            None => BTreeSet::new(),
        };
        if inodes.is_empty() {
            return Processes::default();
        }
        let holders: Vec<u32> = pids().filter(|pid| holds(*pid, &inodes)).collect();
        let is_root = |pid: &u32| parent(*pid).is_none_or(|p| !holders.contains(&p));
        Processes { roots: holders.iter().copied().filter(is_root).collect() }
    }

    /// These processes and their descendants.
    pub fn new(roots: Vec<u32>) -> Processes {
        Processes { roots }
    }

    /// Both.
    #[must_use]
    pub fn and(mut self, other: Processes) -> Processes {
        self.roots.extend(other.roots);
        self
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.roots.is_empty()
    }

    /// All of them now.
    fn tree(&self) -> BTreeSet<u32> {
        let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for pid in pids() {
            if let Some(parent) = parent(pid) {
                children.entry(parent).or_default().push(pid);
            }
        }
        let mut tree = BTreeSet::new();
        let mut next = self.roots.clone();
        while let Some(pid) = next.pop() {
            if tree.insert(pid) {
                next.extend(children.remove(&pid).unwrap_or_default());
            }
        }
        tree
    }

    /// CPU time so far, seconds; none without processes.
    pub fn cpu(&self) -> Option<f64> {
        let times = self.tree().into_iter().filter_map(cpu_of);
        (!self.is_empty()).then(|| times.sum())
    }

    /// Proportional set size now, bytes; none if it can't be read.
    pub fn memory(&self) -> Option<u64> {
        let sizes: Vec<u64> = self.tree().into_iter().filter_map(memory_of).collect();
        (!sizes.is_empty()).then(|| sizes.iter().sum())
    }
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok())
}

/// Fields of `/proc/PID/stat` after the name, which may have spaces in it; the first is the state.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

fn parent(pid: u32) -> Option<u32> {
    stat(pid)?.get(1)?.parse().ok()
}

/// utime, stime, cutime and cstime: fields 14 to 17 of the file.
fn cpu_of(pid: u32) -> Option<f64> {
    let fields = stat(pid)?;
    let ticks: u64 = fields.get(11..15)?.iter().filter_map(|f| f.parse::<u64>().ok()).sum();
    Some(ticks as f64 / TICKS)
}

fn memory_of(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find(|l| l.starts_with("Pss:"))?;
    let kb: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kb * 1024)
}

fn is_local(host: &str) -> bool {
    host == "localhost" || host == "::1" || host.starts_with("127.")
}

/// Inodes of the sockets that listen on this port.
fn tcp_inodes(port: u16) -> BTreeSet<String> {
    let tables =
        ["/proc/net/tcp", "/proc/net/tcp6"].map(|p| fs::read_to_string(p).unwrap_or_default());
    let ending = format!(":{port:04X}");
    let mut out = BTreeSet::new();
    for line in tables.iter().flat_map(|t| t.lines().skip(1)) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let listens = fields.get(3) == Some(&"0A");
        if listens && fields.get(1).is_some_and(|a| a.ends_with(&ending)) {
            out.extend(fields.get(9).map(|inode| (*inode).to_owned()));
        }
    }
    out
}

fn unix_inodes(path: &str) -> BTreeSet<String> {
    let table = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let lines = table.lines().map(|l| l.split_whitespace().collect::<Vec<_>>());
    // Flags 00010000: it accepts connections.
    let listens = |f: &Vec<&str>| f.get(3) == Some(&"00010000") && f.get(7) == Some(&path);
    lines.filter(listens).map(|f| f[6].to_owned()).collect()
}

fn holds(pid: u32, inodes: &BTreeSet<String>) -> bool {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files.filter_map(|f| fs::read_link(f.path()).ok()).any(|link| {
        let link = link.to_string_lossy();
        let inode = link.strip_prefix("socket:[").and_then(|l| l.strip_suffix(']'));
        inode.is_some_and(|i| inodes.contains(i))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_found_with_its_memory() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let address: Address = format!("postgres://u@127.0.0.1:{port}/").parse().unwrap();
        let processes = Processes::of(&address);
        assert_eq!(processes.roots, [std::process::id()]);
        assert!(processes.memory().unwrap() > 100_000);
        assert!(processes.cpu().is_some());
        drop(listener);
        assert!(Processes::of(&address).is_empty());
    }
}
