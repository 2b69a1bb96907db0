//! Kills of a primary, its standby or both under mixed load, with a journal that clients keep of what they were told.
//!
//! * Whatever is restarted has everything that was acknowledged, and so has a standby that was asked by each commit and becomes
//!   the primary.
//! * A standby that was not asked lacks only what had not reached it: nothing that was in the primary's log before the
//!   position at which the standby took over, which is in its history and its log.
//!
//! `REPLICAS_KILLS`: how many rounds (6 when not set). The long form: `make soak`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::cluster::{Cluster, StopAtEnd, View, alter, position, run, wait_until};
use crate::support::TempDir;
use crate::support::client::Client;
use crate::support::random::Random;

/// Clients with a journal.
const CLIENTS: usize = 3;

/// Acknowledged counts of a client, each with a position of the log behind its commit.
type Journal = Mutex<Vec<(u64, u64)>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Primary,
    Standby,
    Both,
}

/// A round: whether commits ask the standby, who is killed, and whether the standby takes over.
#[derive(Clone, Copy, Debug)]
struct Round {
    asked: bool,
    victim: Victim,
    promote: bool,
}

const ROUNDS: [Round; 6] = [
    Round { asked: true, victim: Victim::Primary, promote: true },
    Round { asked: false, victim: Victim::Primary, promote: true },
    Round { asked: true, victim: Victim::Standby, promote: false },
    Round { asked: true, victim: Victim::Both, promote: true },
    Round { asked: false, victim: Victim::Both, promote: false },
    Round { asked: true, victim: Victim::Primary, promote: false },
];

fn random_round(random: &mut Random) -> Round {
    let victim = [Victim::Primary, Victim::Standby, Victim::Both][random.index(3)];
    let promote = victim != Victim::Standby && random.below(2) == 0;
    Round { asked: random.below(2) == 0, victim, promote }
}

/// State that the clients of a round share.
struct Load {
    view: std::sync::Arc<Mutex<View>>,
    stop: AtomicBool,
    journals: Vec<Journal>,
    /// The standby has said that it has the log up to here.
    durable_there: AtomicU64,
}

impl Load {
    fn told(&self) -> u64 {
        let last = |journal: &Journal| journal.lock().expect("nobody panics").len() as u64;
        self.journals.iter().map(last).sum()
    }

    /// Calls `work` with a session of the primary, again and again, until the end; it returns when its connection breaks.
    fn each_session(&self, mut work: impl FnMut(&mut Client) -> Option<()>) {
        while !self.stop.load(Ordering::Relaxed) {
            let place = self.view.lock().expect("nobody panics").primary;
            let client = place.and_then(|place| Client::connect(place.port).ok());
            match client {
                Some(mut client) => {
                    while !self.stop.load(Ordering::Relaxed) && work(&mut client).is_some() {}
                }
                None => std::thread::sleep(std::time::Duration::from_millis(10)),
            }
        }
    }
}

/// Runs a string; None: it has failed.
fn done(client: &mut Client, sql: &str) -> Option<()> {
    client.query(sql).ok()?.error.is_none().then_some(())
}

/// Counts up its own row, and goes on from what is there after a kill.
fn count_up(load: &Load, id: usize) {
    let mut next = None;
    load.each_session(|client| {
        let n = match next {
            Some(n) => n,
            None => {
                let answer = client.query(&format!("SELECT n + 1 FROM c WHERE id = {id}")).ok()?;
                answer.rows.first()?.first()?.as_ref()?.parse().ok()?
            }
        };
        next = None;
        done(
            client,
            &format!("UPDATE c SET n = {n} WHERE id = {id}; INSERT INTO h VALUES ({id}, {n})"),
        )?;
        let at = client.query("SELECT pg_current_wal_lsn()").ok();
        let at = at.and_then(|answer| answer.rows.first()?.first()?.clone());
        let at = at.map_or(u64::MAX, |text| position(&text));
        load.journals[id].lock().expect("nobody panics").push((n, at));
        next = Some(n + 1);
        Some(())
    });
}

/// Transfers between accounts, a third of which are taken back.
fn transfer(load: &Load, seed: u64) {
    let mut random = Random::new(seed);
    load.each_session(|client| {
        let (from, to) = (random.below(200), random.below(200));
        let (low, high) = (from.min(to), from.max(to));
        let end = if random.below(3) == 0 { "ROLLBACK" } else { "COMMIT" };
        // In the order of keys, so that nobody waits for each other.
        let sql = format!(
            "BEGIN; UPDATE a SET n = n - 1 WHERE id = {low}; UPDATE a SET n = n + 1 WHERE id = {high}; {end}"
        );
        done(client, &sql)
    });
}

/// Tables come and go, with indexes, large rows and truncation.
fn define(load: &Load) {
    let mut number = 0;
    load.each_session(|client| {
        number += 1;
        done(
            client,
            "DROP TABLE IF EXISTS passing; CREATE TABLE passing AS SELECT i, repeat('x', 3000) AS s FROM generate_series(1, 50) i",
        )?;
        done(client, "CREATE INDEX ON passing (i); DELETE FROM passing WHERE i > 10")?;
        done(client, "TRUNCATE kept; INSERT INTO kept SELECT i FROM generate_series(1, 20) i")?;
        done(client, if number % 3 == 0 { "VACUUM passing" } else { "CHECKPOINT" })
    });
}

/// Asks the primary what its standby has.
fn listen(load: &Load) {
    load.each_session(|client| {
        let answer = client.query("SELECT max(flush_lsn) FROM pg_stat_replication").ok()?;
        if let Some(Some(text)) = answer.rows.first().and_then(|row| row.first()) {
            load.durable_there.fetch_max(position(text), Ordering::SeqCst);
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
        Some(())
    });
}

/// Where a promoted server's own log begins.
fn taken_over_at(cluster: &Cluster) -> u64 {
    let dir = &cluster.nodes[cluster.primary].dir;
    let text = std::fs::read_to_string(dir.join("timeline.history")).expect("it was promoted");
    let last = text.lines().last().expect("a line");
    position(last.split('\t').nth(1).expect("a position"))
}

/// Kills, and brings a primary back; whether the standby has taken over.
fn strike(cluster: &mut Cluster, round: Round, load: &Load) -> bool {
    let (primary, standby) = (cluster.primary, cluster.standbys()[0]);
    if round.victim != Victim::Primary {
        cluster.kill(standby);
    }
    if round.victim != Victim::Standby {
        cluster.kill(primary);
    }
    cluster.announce();
    match round.victim {
        Victim::Standby => {
            let before = load.told();
            cluster.follow(standby);
            // Commits go on when it is back.
            wait_until("commits go on", || load.told() >= before + 5);
        }
        _ if round.promote => {
            if round.victim == Victim::Both {
                cluster.follow(standby);
            }
            assert_eq!(cluster.foremost(), standby);
            load.stop.store(true, Ordering::Relaxed);
            cluster.promote(standby);
        }
        _ => {
            cluster.serve(primary);
            if round.victim == Victim::Both {
                cluster.follow(standby);
            }
            cluster.announce();
            let before = load.told();
            wait_until("commits go on", || load.told() >= before + 5);
        }
    }
    cluster.primary != primary
}

/// Compares the journals with the table; returns the number of lost commits.
fn judge(cluster: &Cluster, round: Round, taken_over: bool, load: &Load) -> u64 {
    let mut client = cluster.primary();
    let end = if taken_over { taken_over_at(cluster) } else { u64::MAX };
    let durable_there = load.durable_there.load(Ordering::SeqCst);
    assert!(durable_there <= end, "{round:?}: {durable_there:X} was there, and {end:X} is the end");
    let mut lost = 0;
    for (id, journal) in load.journals.iter().enumerate() {
        let journal = journal.lock().expect("nobody panics");
        let has: u64 =
            client.one(&format!("SELECT n FROM c WHERE id = {id}")).parse().expect("a number");
        for (n, at) in journal.iter().filter(|told| told.0 > has) {
            let sent = *at <= end;
            assert!(
                !sent,
                "{round:?}: client {id} was told of {n} at {at:X}, there is {has}, up to {end:X}"
            );
            assert!(
                taken_over && !round.asked,
                "{round:?}: client {id} was told of {n}, there is {has}"
            );
            lost += 1;
        }
    }
    if taken_over {
        println!("{round:?}: {lost} of {} commits had not been sent", load.told());
        let log = cluster.nodes[cluster.primary].dir.with_extension("log");
        let log = std::fs::read_to_string(log).expect("it is there");
        let words = format!("redo done at {:X}/{:X}", end >> 32, end & 0xFFFF_FFFF);
        assert!(log.contains(&words), "{words}");
    }
    let whole = "SELECT bool_and(c.n = (SELECT count(*) FROM h WHERE h.id = c.id)) FROM c";
    assert_eq!(client.one(whole), "t", "{round:?}: each count has its rows");
    assert_eq!(client.one("SELECT sum(n) FROM a"), "20000", "{round:?}");
    assert!(matches!(client.one("SELECT count(*) FROM kept").as_str(), "0" | "20"), "{round:?}");
    lost
}

/// The old primary follows the new one, and says what is given up.
fn rewind(cluster: &mut Cluster, lost: u64) {
    let said = cluster.rewind(cluster.standbys()[0]);
    let given_up =
        said.strip_prefix("given up: ").and_then(|rest| rest.split(' ').next()?.parse().ok());
    let given_up: u64 = given_up.unwrap_or(0);
    assert!(given_up >= lost, "{lost} are lost: {said}");
    println!("{}", said.lines().take(2).collect::<Vec<_>>().join("; "));
}

#[test]
fn kills_under_load_lose_nothing_but_what_a_standby_was_not_sent() {
    let temp = TempDir::new("losses");
    let settings =
        ["workers=2", "max_wal_size=4MB", "min_wal_size=2MB", "max_standby_streaming_delay=1s"];
    let mut cluster = Cluster::start(temp.path(), 1, &settings);
    run(
        &mut cluster.primary(),
        "CREATE TABLE c (id int PRIMARY KEY, n int); CREATE TABLE h (id int, n int); CREATE INDEX ON h (id);
         CREATE TABLE a (id int PRIMARY KEY, n int); CREATE TABLE kept (i int);
         INSERT INTO a SELECT i, 100 FROM generate_series(0, 199) i; INSERT INTO kept SELECT generate_series(1, 20);
         INSERT INTO c SELECT i, 0 FROM generate_series(0, 2) i",
    );
    let mut random = Random::new(crate::support::number("REPLICAS_SEED", 1));
    for number in 0..crate::support::number("REPLICAS_KILLS", 6) {
        let round = match ROUNDS.get(number as usize) {
            Some(round) => *round,
            None => random_round(&mut random),
        };
        let names = if round.asked { "*" } else { "" };
        alter(&mut cluster.primary(), &format!("synchronous_standby_names = '{names}'"));
        run(&mut cluster.primary(), "UPDATE c SET n = 0; DELETE FROM h");
        cluster.catch_up();
        let load = Load {
            view: cluster.view.clone(),
            stop: AtomicBool::new(false),
            journals: (0..CLIENTS).map(|_| Journal::default()).collect(),
            durable_there: AtomicU64::new(0),
        };
        let taken_over = std::thread::scope(|scope| {
            let load = &load;
            let _end = StopAtEnd(&load.stop);
            for id in 0..CLIENTS {
                scope.spawn(move || count_up(load, id));
            }
            scope.spawn(move || transfer(load, number));
            scope.spawn(move || define(load));
            scope.spawn(move || listen(load));
            let wanted = 20 + random.below(60);
            wait_until("commits", || load.told() >= wanted);
            strike(&mut cluster, round, load)
        });
        let lost = judge(&cluster, round, taken_over, &load);
        if taken_over {
            rewind(&mut cluster, lost);
        }
        cluster.catch_up();
        let sums = "SELECT sum(n) || ' ' || (SELECT count(*) FROM h) || ' ' || (SELECT count(*) FROM kept) FROM c";
        let standby = cluster.standbys()[0];
        assert_eq!(cluster.primary().one(sums), cluster.client(standby).one(sums), "{round:?}");
    }
    cluster.end();
}
