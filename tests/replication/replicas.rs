//! A primary and two standbys under kills, pauses and promotions: every snapshot of any of them lies in one history.
//!
//! `REPLICAS_TRANSACTIONS`: how many commits the checker waits for (1,200 when not set); `REPLICAS_FAULTS`: what befalls
//! the servers meanwhile (7); `REPLICAS_SEED`. The long form: `make soak`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::cluster::{Cluster, Place, StopAtEnd, View, run, wait_until};
use crate::lists::{Outcome, Step, Transaction, judge};
use crate::support::TempDir;
use crate::support::client::Client;
use crate::support::random::Random;

/// Lists that are appended to at a time.
const ACTIVE: usize = 8;
/// A list of this length is left alone.
const FULL: u64 = 48;
/// An answer that takes longer is not waited for.
const ANSWER: Duration = Duration::from_secs(60);

/// The lists in use: their keys and how many appends were asked for.
struct Keys {
    active: Vec<(u64, u64)>,
    next: u64,
}

/// State that the clients share.
struct Work {
    view: std::sync::Arc<Mutex<View>>,
    stop: AtomicBool,
    clock: Instant,
    keys: Mutex<Keys>,
    value: AtomicU64,
    committed: AtomicU64,
    seen_on_standbys: AtomicU64,
    history: Mutex<Vec<Transaction>>,
}

impl Work {
    fn new(cluster: &Cluster) -> Work {
        let active = (0..ACTIVE as u64).map(|key| (key, 0)).collect();
        Work {
            view: cluster.view.clone(),
            stop: AtomicBool::new(false),
            clock: Instant::now(),
            keys: Mutex::new(Keys { active, next: ACTIVE as u64 }),
            value: AtomicU64::new(1),
            committed: AtomicU64::new(0),
            seen_on_standbys: AtomicU64::new(0),
            history: Mutex::default(),
        }
    }

    fn now(&self) -> u64 {
        self.clock.elapsed().as_nanos() as u64
    }

    fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// A key to append to, or to read.
    fn key(&self, random: &mut Random, append: bool) -> u64 {
        let mut keys = self.keys.lock().expect("nobody panics");
        let next = keys.next;
        let place = random.index(ACTIVE);
        let slot = &mut keys.active[place];
        let key = slot.0;
        slot.1 += u64::from(append);
        if slot.1 >= FULL {
            *slot = (next, 0);
            keys.next += 1;
        }
        key
    }

    fn record(&self, transaction: Transaction) {
        if transaction.outcome == Outcome::Committed {
            let counter =
                if transaction.primary { &self.committed } else { &self.seen_on_standbys };
            counter.fetch_add(1, Ordering::Relaxed);
        }
        self.history.lock().expect("nobody panics").push(transaction);
    }

    fn place(&self, primary: bool, random: &mut Random) -> Option<Place> {
        let view = self.view.lock().expect("nobody panics");
        match primary {
            true => view.primary,
            false if view.standbys.is_empty() => None,
            false => Some(view.standbys[random.index(view.standbys.len())]),
        }
    }
}

fn read(client: &mut Client, key: u64) -> Option<Vec<u64>> {
    let sql = format!("SELECT array_to_string(v, ' ') FROM l WHERE id = {key}");
    let answer = client.query(&sql).ok().filter(|answer| answer.error.is_none())?;
    let text = answer.rows.first().and_then(|row| row.first().cloned().flatten());
    let text = text.unwrap_or_default();
    Some(text.split_whitespace().filter_map(|n| n.parse().ok()).collect())
}

/// Runs a transaction; None: the connection is of no use any more.
fn transact(
    work: &Work,
    client: &mut Client,
    place: Place,
    primary: bool,
    random: &mut Random,
) -> Option<()> {
    let mut transaction = Transaction {
        life: place.life,
        primary,
        begun: work.now(),
        ended: 0,
        outcome: Outcome::Failed,
        steps: Vec::new(),
    };
    let begun = client.query("BEGIN ISOLATION LEVEL REPEATABLE READ").ok()?;
    begun.error.is_none().then_some(())?;
    let writes = primary && random.below(5) > 0;
    let mut whole = true;
    for _ in 0..1 + random.index(if primary { 4 } else { 6 }) {
        let append = writes && random.below(5) < 3;
        let key = work.key(random, append);
        let done = match append {
            true => {
                let value = work.value.fetch_add(1, Ordering::Relaxed);
                transaction.steps.push(Step::Append { key, value });
                let sql = format!(
                    "INSERT INTO l VALUES ({key}, '{{{value}}}') ON CONFLICT (id) DO UPDATE SET v = l.v || {value}"
                );
                client.query(&sql).is_ok_and(|answer| answer.error.is_none())
            }
            false => match read(client, key) {
                Some(list) => {
                    transaction.steps.push(Step::Read { key, list });
                    true
                }
                None => false,
            },
        };
        if !done {
            whole = false;
            break;
        }
    }
    if !whole {
        // COMMIT was not sent, so it has not happened.
        transaction.ended = work.now();
        work.record(transaction);
        return client.query("ROLLBACK").ok().filter(|a| a.error.is_none()).map(drop);
    }
    let answer = client.query("COMMIT");
    transaction.ended = work.now();
    transaction.outcome = match &answer {
        Ok(answer) => match &answer.error {
            None => Outcome::Committed,
            Some((code, _)) if code.starts_with("40") => Outcome::Failed,
            Some(_) => Outcome::Unknown,
        },
        Err(_) => Outcome::Unknown,
    };
    let goes_on = transaction.outcome != Outcome::Unknown;
    // Of a reader's snapshot nothing is known that it has not read.
    if goes_on || primary {
        work.record(transaction);
    }
    goes_on.then_some(())
}

/// A client: transactions on the primary, or on any standby, until it is told to stop.
fn client(work: &Work, primary: bool, seed: u64) {
    let mut random = Random::new(seed);
    while !work.stops() {
        let open = work.place(primary, &mut random).and_then(|place| {
            let mut client = Client::connect(place.port).ok()?;
            client.give_up_after(ANSWER).ok()?;
            Some((place, client))
        });
        let Some((place, mut client)) = open else {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        // Another server after a while.
        for _ in 0..100 {
            // A session outlives the promotion of its server.
            let view = work.view.lock().expect("nobody panics").clone();
            let there = view.primary == Some(place) || view.standbys.contains(&place);
            if work.stops() || !there {
                break;
            }
            if transact(work, &mut client, place, primary, &mut random).is_none() {
                break;
            }
        }
    }
}

/// Faults that befall the servers.
#[derive(Clone, Copy, Debug)]
enum Fault {
    KillStandby,
    PauseReplay,
    FreezeStandby,
    KillPrimary,
    FreezePrimary,
    Failover,
    Cut,
}

const FAULTS: [Fault; 7] = [
    Fault::KillStandby,
    Fault::Failover,
    Fault::PauseReplay,
    Fault::KillPrimary,
    Fault::FreezeStandby,
    Fault::Failover,
    Fault::FreezePrimary,
];

fn strike(cluster: &mut Cluster, fault: Fault, work: &Work, random: &mut Random) {
    let standbys = cluster.standbys();
    let one = standbys[random.index(standbys.len())];
    let before = work.committed.load(Ordering::Relaxed);
    let progress = |wanted: u64| {
        wait_until("commits go on", || work.committed.load(Ordering::Relaxed) >= before + wanted);
    };
    match fault {
        Fault::KillStandby => {
            cluster.kill(one);
            cluster.announce();
            progress(20);
            cluster.follow(one);
            cluster.announce();
        }
        Fault::PauseReplay => {
            run(&mut cluster.client(one), "SELECT pg_wal_replay_pause()");
            progress(60);
            run(&mut cluster.client(one), "SELECT pg_wal_replay_resume()");
        }
        Fault::FreezeStandby => {
            let server = cluster.nodes[one].server.as_ref().expect("it runs");
            server.signal("STOP");
            progress(20);
            server.signal("CONT");
        }
        Fault::FreezePrimary => {
            let server = cluster.nodes[cluster.primary].server.as_ref().expect("it runs");
            server.signal("STOP");
            let seen = work.seen_on_standbys.load(Ordering::Relaxed);
            wait_until("standbys serve", || {
                work.seen_on_standbys.load(Ordering::Relaxed) > seen + 10
            });
            server.signal("CONT");
        }
        Fault::KillPrimary => {
            let primary = cluster.primary;
            cluster.kill(primary);
            cluster.serve(primary);
            cluster.announce();
        }
        Fault::Failover => {
            let old = cluster.primary;
            cluster.kill(old);
            cluster.announce();
            let next = cluster.foremost();
            cluster.promote(next);
            match random.below(4) {
                0 => cluster.copy(old),
                _ => drop(cluster.rewind(old)),
            }
        }
        Fault::Cut => {
            // Connections of the stream end, servers don't.
            run(
                &mut cluster.primary(),
                "SELECT pg_terminate_backend(pid) FROM pg_stat_replication",
            );
        }
    }
    progress(20);
}

#[test]
fn snapshots_of_all_servers_fit_one_history_over_kills_pauses_and_promotions() {
    let temp = TempDir::new("replicas");
    let settings = [
        "workers=2",
        "max_wal_size=8MB",
        "min_wal_size=2MB",
        "max_standby_streaming_delay=1s",
        "synchronous_standby_names=ANY 1 (n0, n1, n2)",
    ];
    let mut cluster = Cluster::start(temp.path(), 2, &settings);
    run(&mut cluster.primary(), "CREATE TABLE l (id int PRIMARY KEY, v int[])");
    cluster.catch_up();
    let (wanted, faults) = (
        crate::support::number("REPLICAS_TRANSACTIONS", 1200),
        crate::support::number("REPLICAS_FAULTS", 7),
    );
    let seed = crate::support::number("REPLICAS_SEED", 1);
    let mut random = Random::new(seed);
    let work = Work::new(&cluster);
    std::thread::scope(|scope| {
        for number in 0..4 {
            let work = &work;
            scope.spawn(move || client(work, true, seed * 1000 + number));
            scope.spawn(move || client(work, false, seed * 2000 + number));
        }
        let end = StopAtEnd(&work.stop);
        for fault in 0..faults {
            let due = wanted * fault / faults;
            wait_until("commits", || work.committed.load(Ordering::Relaxed) >= due);
            let kind = match FAULTS.get(fault as usize) {
                Some(kind) => *kind,
                None if random.below(8) == 0 => Fault::Cut,
                None => FAULTS[random.index(FAULTS.len())],
            };
            println!("after {} commits: {kind:?}", work.committed.load(Ordering::Relaxed));
            strike(&mut cluster, kind, &work, &mut random);
        }
        let mut last = (0, Instant::now());
        while work.committed.load(Ordering::Relaxed) < wanted {
            let now = work.committed.load(Ordering::Relaxed);
            if now > last.0 {
                last = (now, Instant::now());
            }
            assert!(last.1.elapsed() < crate::cluster::PATIENCE, "nothing is committed any more");
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(end);
    });
    cluster.catch_up();

    // All lists at the end, in every server.
    let keys = work.keys.lock().expect("nobody panics").next;
    let mut client = cluster.primary();
    run(&mut client, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    let begun = work.now();
    let steps = (0..keys).map(|key| {
        let list = read(&mut client, key).expect("the primary answers");
        Step::Read { key, list }
    });
    let steps = steps.collect();
    run(&mut client, "COMMIT");
    let (ended, outcome) = (work.now(), Outcome::Committed);
    work.record(Transaction { life: u64::MAX, primary: true, begun, ended, outcome, steps });
    let all = "SELECT count(*) || ' ' || md5(string_agg(id || v::text, ',' ORDER BY id)) FROM l";
    let here = client.one(all);
    drop(client);
    for number in cluster.standbys() {
        assert_eq!(cluster.client(number).one(all), here, "{}", cluster.nodes[number].name);
    }
    cluster.end();
    let history = work.history.into_inner().expect("nobody panics");
    let counts = judge(&history).unwrap_or_else(|anomaly| panic!("seed {seed}: {anomaly}"));
    println!("{counts:?} over {faults} faults");
    assert!(counts.on_standbys > 100, "{counts:?}");
}
