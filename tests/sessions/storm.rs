//! Storms: clients that come and go by the thousand, and sessions that are killed at random moments: half
//! a message sent, in a transaction, inside COPY, behind a lock, with an answer that nobody reads. The
//! server's descriptors, memory, locks, pins and snapshots are what they were before, and sessions that
//! do their work meanwhile notice nothing.
//!
//! `STORM_CONNECTS` and `STORM_KILLS` (3,000 and 600 when not set) make it longer, `STORM_BURST` (500) is
//! the number of clients that come at once; `make storm` asks for 100,000, 10,000 and 10,000.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::support::client::Client;
use crate::support::random::Random;
use crate::support::raw::{Raw, bind, execute, message, parse, query, startup, sync};
use crate::support::{Server, TempDir, footprint};

/// Threads that attack.
const THREADS: u64 = 8;
/// How much larger a server may be after a storm, once it has given back what it does not need.
const MOST_GROWN_KIB: i64 = 20 << 10;

const SCHEMA: &str = "
    CREATE TABLE rows (id int PRIMARY KEY, n bigint NOT NULL, filler text);
    CREATE TABLE copied (n int, filler text);
    CREATE TABLE blocked (n int);
    CREATE TABLE steady (id int PRIMARY KEY, n bigint NOT NULL);
    INSERT INTO rows SELECT n, 0, repeat('x', 200) FROM generate_series(1, 5000) n;
    INSERT INTO steady SELECT n, 0 FROM generate_series(1, 4) n;
";

fn hello() -> Vec<u8> {
    startup(196_608, &[("user", "postgres"), ("database", "postgres")])
}

/// Connects, perhaps asks something, and leaves in one of the ways in which clients leave.
fn come_and_go(port: u16, random: &mut Random) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the server takes connections");
    let how = random.below(6);
    // A server that has ended the connection already is no failure.
    let _ = match how {
        0 => Ok(()),
        1 => stream.write_all(&hello()[..5]),
        2 => stream.write_all(&hello()),
        _ => {
            drop(stream);
            let mut client = Client::connect(port).expect("the server takes connections");
            if how > 3 {
                let answer = client.query("SELECT n FROM rows WHERE id = 7").expect("an answer");
                assert!(answer.error.is_none(), "{:?}", answer.error);
            }
            Ok(())
        }
    };
}

/// Begins something and dies in the middle of it, by itself or by another session's hand.
fn die(port: u16, killer: &mut Client, random: &mut Random) {
    let mut raw = Raw::connect(port);
    let id = 1 + random.below(5000);
    match random.below(9) {
        0 => raw.send(&query("SELECT 1")[..7]),
        1 => {
            raw.query(&format!("BEGIN; UPDATE rows SET n = n + 1 WHERE id = {id}"));
        }
        2 => {
            raw.send(&query("COPY copied FROM STDIN"));
            raw.until(|l| l.starts_with('G'));
            let rows = "1\tsomething\n".repeat(1 + random.below(2000) as usize);
            let data = message(b'd', rows.as_bytes());
            let cut = random.below(data.len() as u64) as usize;
            raw.send(&data[..cut]);
        }
        3 => raw.send(&query("SELECT * FROM blocked")),
        4 => {
            raw.query(&format!("BEGIN; UPDATE rows SET n = n + 1 WHERE id = {id}"));
            raw.send(&query("LOCK TABLE blocked"));
        }
        // More than the sockets' buffers hold, and nobody reads it.
        5 => raw.send(&query("SELECT a.filler, b.filler FROM rows a, rows b")),
        6 => {
            raw.query("BEGIN");
            let begun = [
                parse("p", "SELECT * FROM rows WHERE id > $1", &[23]),
                bind("c", "p", &[Some("0")], false),
                execute("c", 10),
                message(b'H', b""),
            ];
            raw.send(&begun.concat());
            raw.until(|l| l == "s");
        }
        7 => raw.send(&query("SELECT pg_sleep(1000)")),
        _ => {
            raw.query("SELECT pg_advisory_lock(1000000 + pg_backend_pid())");
            raw.send(&[query("SELECT count(*) FROM rows"), sync()].concat());
        }
    }
    if random.below(2) == 0 {
        std::thread::sleep(Duration::from_micros(random.below(3000)));
    }
    if random.below(3) == 0 {
        let sql = format!("SELECT pg_terminate_backend({})", raw.key.0);
        let answer = killer.query(&sql).expect("the killer goes on");
        assert!(answer.error.is_none(), "{:?}", answer.error);
        // What it says before its end is read or not.
        let mut buffer = [0; 1000];
        let patience = raw.stream.set_read_timeout(Some(Duration::from_millis(20)));
        patience.expect("a socket option");
        let _ = raw.stream.read(&mut buffer);
    }
}

/// Work that goes on all the time: each statement must go well, and all of them count.
fn steady(port: u16, id: u64, stop: &AtomicBool) -> u64 {
    let mut client = Client::connect(port).expect("the server takes connections");
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        for sql in [
            format!("UPDATE steady SET n = n + 1 WHERE id = {id}"),
            "SELECT sum(n) FROM rows WHERE id < 50".to_owned(),
        ] {
            let answer = client.query(&sql).expect("a steady session goes on");
            assert!(answer.error.is_none(), "{sql}: {:?}", answer.error);
        }
        count += 1;
    }
    count
}

/// Runs `work` so many times on all threads, beside steady sessions; how much these got done.
fn storm(server: &Server, times: u64, work: impl Fn(&mut Client, &mut Random) + Sync) -> u64 {
    let (left, stop) = (AtomicU64::new(times), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (left, stop, work, port) = (&left, &stop, &work, server.port);
        let steady: Vec<_> =
            (1..=2).map(|id| scope.spawn(move || steady(port, id, stop))).collect();
        let attackers: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    let mut random = Random::new(thread + 1);
                    let mut killer = Client::connect(port).expect("the server takes connections");
                    let take = |n: u64| n.checked_sub(1);
                    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
                        work(&mut killer, &mut random);
                    }
                })
            })
            .collect();
        let failed = attackers.into_iter().map(|a| a.join()).filter(Result::is_err).count();
        stop.store(true, Ordering::Relaxed);
        let done = steady.into_iter().map(|s| s.join().expect("steady work went well")).sum();
        assert_eq!(failed, 0, "an attacker got an answer that it should not get");
        done
    })
}

#[test]
fn sessions_that_come_go_and_die_leave_nothing_behind() {
    let (connects, kills) = (
        crate::support::number("STORM_CONNECTS", 3000),
        crate::support::number("STORM_KILLS", 600),
    );
    let dir = TempDir::new("storm");
    let server = Server::start(&dir.path().join("data"), &["workers=2", "autovacuum=off"]);
    assert_eq!(server.psql(&["-q", "-v", "ON_ERROR_STOP=1"], SCHEMA), "");
    let mut blocker = Client::connect(server.port).expect("the server takes connections");
    let mut asking = Client::connect(server.port).expect("the server takes connections");
    let locked = blocker.query("BEGIN; LOCK TABLE blocked IN ACCESS EXCLUSIVE MODE");
    assert!(locked.is_ok_and(|a| a.error.is_none()));
    let port = server.port;
    let both = |killer: &mut Client, random: &mut Random| match random.below(2) {
        0 => come_and_go(port, random),
        _ => die(port, killer, random),
    };
    // What a server keeps for the next ones is there after a first, small storm.
    let mut updates = storm(&server, 300, both);
    let before = footprint::await_quiet(&server, &mut asking, 1);
    let resident = footprint::resident_kib(server.pid());

    updates += storm(&server, connects, |_, random| come_and_go(port, random));
    updates += storm(&server, kills, |killer, random| die(port, killer, random));

    footprint::await_same(&server, &mut asking, before);
    let at_most = resident + MOST_GROWN_KIB;
    let grown = footprint::await_resident_kib(&server, at_most) - resident;
    println!(
        "{connects} connects, {kills} kills, {updates} updates meanwhile; {before:?}, {grown} KiB more"
    );
    assert!(grown <= MOST_GROWN_KIB, "the server grew by {grown} KiB");
    let done = asking.query("SELECT sum(n)::bigint FROM steady").expect("an answer");
    assert_eq!(done.rows[0][0].as_deref(), Some(updates.to_string().as_str()));
    let others = asking.query("SELECT sum(n)::bigint, (SELECT count(*) FROM copied) FROM rows");
    let none = others.expect("an answer").rows.remove(0);
    assert_eq!(none, [Some("0".to_owned()), Some("0".to_owned())], "nothing unfinished is visible");
    drop((blocker, asking));
    assert!(server.stop());
}

#[test]
fn a_burst_of_clients_is_served_while_statements_run() {
    let burst = crate::support::number("STORM_BURST", 500);
    lab::driver::allow_descriptors(burst as u32 + 200).expect("so many clients are possible here");
    let dir = TempDir::new("storm-burst");
    let most = format!("max_connections={}", burst + 10);
    let server = Server::start(&dir.path().join("data"), &["workers=2", &most]);
    assert_eq!(server.psql(&["-q", "-v", "ON_ERROR_STOP=1"], SCHEMA), "");
    let stop = AtomicBool::new(false);
    let opened = std::thread::scope(|scope| {
        let (stop, port) = (&stop, server.port);
        let working = scope.spawn(move || steady(port, 1, stop));
        let began = Instant::now();
        // All knock before any is let in.
        let mut streams: Vec<TcpStream> = (0..burst)
            .map(|_| TcpStream::connect(("127.0.0.1", port)).expect("the backlog has room"))
            .collect();
        streams.iter_mut().for_each(|s| s.write_all(&hello()).expect("the server listens"));
        let sessions: Vec<Raw> = streams.into_iter().map(Raw::of).collect();
        let mut opened = Vec::new();
        for mut session in sessions {
            let lines = session.until(|l| l.starts_with("Z "));
            assert_eq!(lines.first().map(String::as_str), Some("R 0"), "{lines:?}");
            opened.push(session);
        }
        let took = began.elapsed();
        for session in &mut opened {
            let answer = session.query("SELECT n FROM rows WHERE id = 1");
            assert!(answer.contains(&"D 0".to_owned()), "{answer:?}");
        }
        stop.store(true, Ordering::Relaxed);
        let done = working.join().expect("the steady session went well");
        println!("{burst} clients were let in within {took:?}; {done} statements ran meanwhile");
        assert!(done > 0);
        opened
    });
    // One more than there are places for.
    let mut more: Vec<Raw> = (0..20).map(|_| Raw::open(server.port)).collect();
    let told = more.iter_mut().any(|raw| {
        let lines = raw.talk(&hello());
        lines.iter().any(|l| l == "E FATAL 53300 sorry, too many clients already")
    });
    assert!(told, "nobody was told that there are too many");
    drop((opened, more));
}

/// Ends a connection the hard way: the other side is told that it was reset.
fn reset(stream: TcpStream) {
    socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).expect("a socket option");
}

/// Clients begin something that takes for ever, behind a lock or by itself, and are gone before the
/// server has looked, or just when it looks: it ends with them, however busy the server is.
#[test]
fn clients_that_hang_up_at_once_are_noticed() {
    let clients = crate::support::number("STORM_HANGUPS", 400);
    lab::driver::allow_descriptors(clients as u32 + 200)
        .expect("so many clients are possible here");
    let dir = TempDir::new("storm-hangups");
    let server = Server::start(&dir.path().join("data"), &["workers=2", "autovacuum=off"]);
    assert_eq!(server.psql(&["-q", "-v", "ON_ERROR_STOP=1"], SCHEMA), "");
    let mut asking = Client::connect(server.port).expect("the server takes connections");
    let before = footprint::await_quiet(&server, &mut asking, 0);
    let mut blocker = Client::connect(server.port).expect("the server takes connections");
    let locked = blocker.query("BEGIN; LOCK TABLE blocked IN ACCESS EXCLUSIVE MODE");
    assert!(locked.is_ok_and(|a| a.error.is_none()));
    let port = server.port;
    let forever =
        ["SELECT pg_sleep(600)", "SELECT * FROM blocked", "SELECT pg_sleep(600) FROM rows"];
    storm(&server, clients, |_, random| {
        let statement = query(forever[random.below(3) as usize]);
        let stream = match random.below(3) {
            // All at once: the server may find the end before it has begun.
            0 => {
                let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
                stream.write_all(&[hello(), statement].concat()).expect("the server takes it");
                stream
            }
            how => {
                let mut raw = Raw::connect(port);
                raw.send(&statement);
                if how == 2 {
                    std::thread::sleep(Duration::from_micros(random.below(2000)));
                }
                raw.stream
            }
        };
        match random.below(2) {
            0 => drop(stream),
            _ => reset(stream),
        }
    });
    // The blocker holds its lock until nobody waits for it any more.
    footprint::await_quiet(&server, &mut asking, 1);
    drop(blocker);
    footprint::await_same(&server, &mut asking, before);
    assert!(server.stop());
}
