//! A primary and its standbys, whose roles change while clients use them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::support::client::Client;
use crate::support::{BIN, Server, free_port, text_of};

/// A server of the cluster; its port stays over its lives.
pub struct Node {
    pub name: String,
    pub dir: PathBuf,
    pub port: u16,
    pub server: Option<Server>,
    /// The number of its start among all.
    life: u64,
}

/// Where a client finds a server, and which of its lives that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub port: u16,
    pub life: u64,
}

/// The roles as clients are told of them.
#[derive(Clone, Debug, Default)]
pub struct View {
    pub primary: Option<Place>,
    pub standbys: Vec<Place>,
}

/// See the module.
pub struct Cluster {
    pub nodes: Vec<Node>,
    pub primary: usize,
    settings: Vec<String>,
    lives: u64,
    pub view: std::sync::Arc<Mutex<View>>,
}

/// For what a test waits at most.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until this holds.
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A session of a server that may not let anybody in yet.
#[track_caller]
pub fn connect(port: u16) -> Client {
    let mut last = None;
    wait_until("somebody is let in", || {
        last = Client::connect(port).ok();
        last.is_some()
    });
    last.expect("it was awaited")
}

#[track_caller]
pub fn run(client: &mut Client, sql: &str) {
    let answer = client.query(sql).expect("the connection holds");
    assert!(answer.error.is_none(), "{sql}: {:?}", answer.error);
}

/// Changes a setting of the server.
pub fn alter(client: &mut Client, what: &str) {
    run(client, &format!("ALTER SYSTEM SET {what}"));
    run(client, "SELECT pg_reload_conf()");
}

/// A position of the log as a number.
pub fn position(text: &str) -> u64 {
    let (high, low) = text.split_once('/').unwrap_or(("0", "0"));
    let half = |digits| u64::from_str_radix(digits, 16).expect("a position of the log");
    half(high) << 32 | half(low)
}

pub fn check(dir: &Path) {
    let out = Command::new(BIN).args(["check", "-D"]).arg(dir).output().expect("it runs");
    assert_eq!(text_of(&out), "no damage found\n", "{}", dir.display());
}

impl Cluster {
    /// A primary with so many standbys, in folders below this one.
    pub fn start(folder: &Path, standbys: usize, settings: &[&str]) -> Cluster {
        let node = |number: usize| {
            let name = format!("n{number}");
            Node { dir: folder.join(&name), name, port: free_port(), server: None, life: 0 }
        };
        let mut cluster = Cluster {
            nodes: (0..=standbys).map(node).collect(),
            primary: 0,
            settings: settings.iter().map(|s| (*s).to_owned()).collect(),
            lives: 0,
            view: std::sync::Arc::default(),
        };
        cluster.serve(0);
        drop(connect(cluster.nodes[0].port));
        for number in 1..=standbys {
            cluster.follow(number);
            drop(connect(cluster.nodes[number].port));
        }
        cluster.announce();
        cluster
    }

    fn settings(&self) -> Vec<&str> {
        self.settings.iter().map(String::as_str).collect()
    }

    /// Starts a server on its directory as it is.
    pub fn serve(&mut self, number: usize) {
        let node = &self.nodes[number];
        let server = Server::start_on(&node.dir, node.port, &self.settings());
        self.lives += 1;
        (self.nodes[number].server, self.nodes[number].life) = (Some(server), self.lives);
    }

    /// Starts a standby of the primary, which is made if its directory is empty.
    pub fn follow(&mut self, number: usize) {
        let (node, primary) = (&self.nodes[number], &self.nodes[self.primary]);
        let (dir, name) = (&node.dir, &node.name);
        let server = Server::start_standby_on(dir, node.port, primary.port, name, &self.settings());
        self.lives += 1;
        (self.nodes[number].server, self.nodes[number].life) = (Some(server), self.lives);
    }

    /// Tells clients of the roles; servers that do not run have none.
    pub fn announce(&self) {
        let place = |number: usize| {
            let node = &self.nodes[number];
            Place { port: node.port, life: node.life }
        };
        let runs = |number: &usize| self.nodes[*number].server.is_some();
        let view = View {
            primary: Some(self.primary).filter(runs).map(place),
            standbys: self.standbys().into_iter().filter(runs).map(place).collect(),
        };
        *self.view.lock().expect("nobody panics") = view;
    }

    pub fn standbys(&self) -> Vec<usize> {
        (0..self.nodes.len()).filter(|number| *number != self.primary).collect()
    }

    pub fn client(&self, number: usize) -> Client {
        connect(self.nodes[number].port)
    }

    pub fn primary(&self) -> Client {
        self.client(self.primary)
    }

    /// SIGKILL.
    pub fn kill(&mut self, number: usize) {
        self.nodes[number].server.take().expect("it runs").kill();
    }

    /// The first standby with the longest log, when none of them receives any more.
    pub fn foremost(&self) -> usize {
        let received = |number: usize| {
            let mut client = self.client(number);
            client.await_one("SELECT count(*) FROM pg_stat_wal_receiver", "0");
            position(&client.one("SELECT pg_last_wal_receive_lsn()"))
        };
        let mut all = self.standbys();
        all.retain(|number| self.nodes[*number].server.is_some());
        // The only one may let nobody in without its primary.
        match all.as_slice() {
            [only] => *only,
            _ => all.into_iter().max_by_key(|number| received(*number)).expect("a standby runs"),
        }
    }

    /// The primary has gone: a standby takes its place, and others that run follow it.
    pub fn promote(&mut self, number: usize) {
        let dir = &self.nodes[number].dir;
        let out = Command::new(BIN).args(["promote", "-D"]).arg(dir).output().expect("it runs");
        assert_eq!(text_of(&out), "promoted\n");
        let before = std::mem::replace(&mut self.primary, number);
        let port = self.nodes[number].port;
        for other in self.standbys() {
            if other == before || self.nodes[other].server.is_none() {
                continue;
            }
            let name = &self.nodes[other].name;
            let place = format!("host=127.0.0.1 port={port} user=postgres application_name={name}");
            alter(&mut self.client(other), &format!("primary_conninfo = '{place}'"));
        }
        self.announce();
    }

    /// Makes a directory anew, as a copy of the primary's.
    pub fn copy(&mut self, number: usize) {
        std::fs::remove_dir_all(&self.nodes[number].dir).expect("it can go");
        self.follow(number);
        drop(self.client(number));
        self.announce();
    }

    /// An old primary follows the new one, with the pages fetched that differ; what the program says.
    pub fn rewind(&mut self, number: usize) -> String {
        let (node, port) = (&self.nodes[number], self.nodes[self.primary].port);
        let place =
            format!("host=127.0.0.1 port={port} user=postgres application_name={}", node.name);
        let out =
            Command::new(BIN).args(["rewind", "--from", &place, "-D"]).arg(&node.dir).output();
        let out = out.expect("it runs");
        let text = text_of(&out);
        assert!(out.status.success(), "{text}");
        self.serve(number);
        drop(self.client(number));
        self.announce();
        text
    }

    /// Waits until all standbys that run have applied what the primary has logged.
    pub fn catch_up(&self) {
        let mut primary = self.primary();
        run(&mut primary, "SELECT pg_create_restore_point('here')");
        let at = primary.one("SELECT pg_current_wal_flush_lsn()");
        for number in self.standbys() {
            if self.nodes[number].server.is_some() {
                let sql = format!("SELECT pg_last_wal_replay_lsn() >= '{at}'");
                self.client(number).await_one(&sql, "t");
            }
        }
    }

    /// Stops all servers, standbys first, and checks their directories.
    pub fn end(mut self) {
        let mut order = self.standbys();
        order.push(self.primary);
        // A primary that asks standbys before it answers is not to wait for them.
        alter(&mut self.primary(), "synchronous_standby_names = ''");
        for number in order {
            let server = self.nodes[number].server.take();
            assert!(server.is_none_or(Server::stop), "{} does not stop", self.nodes[number].name);
            check(&self.nodes[number].dir);
        }
    }
}

/// Clients stop when the test does, also when it fails.
pub struct StopAtEnd<'a>(pub &'a std::sync::atomic::AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}
