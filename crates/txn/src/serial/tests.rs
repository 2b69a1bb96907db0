//! Histories of serializable transactions, made at random and checked for cycles; and the anomalies
//! by name.
//!
//! The store under test is a few keys with their versions, as a heap would keep them, with an index
//! whose pages hold four keys each.

use std::sync::Arc;

use base::{RelId, Result, TupleId, Xid, sqlstate};

use super::*;
use crate::tests::{manager, session};
use crate::{Isolation, LockOwner, Transaction, TxnManager, XidStatus};

const TABLE: RelId = RelId(20_001);
const INDEX: RelId = RelId(20_002);
const KEYS: usize = 12;
const KEYS_PER_PAGE: usize = 4;

struct Version {
    xid: Xid,
    /// Number of the transaction in the history.
    writer: usize,
    tid: TupleId,
}

/// The reads and writes of a transaction of the history.
#[derive(Default, Clone)]
struct Trace {
    committed: bool,
    /// Key, and who wrote the version that it saw.
    reads: Vec<(usize, Option<usize>)>,
}

struct Store {
    manager: Arc<TxnManager>,
    keys: Vec<Vec<Version>>,
    /// Versions per key that were rolled back don't stay.
    traces: Vec<Trace>,
    next_offset: u16,
}

struct Client {
    owner: Arc<LockOwner>,
    tx: Option<(Transaction, usize)>,
}

impl Store {
    fn new(retain: usize) -> Store {
        let manager = manager();
        manager.serial.graph.lock().retain = retain;
        let mut store = Store {
            manager,
            keys: (0..KEYS).map(|_| Vec::new()).collect(),
            traces: Vec::new(),
            next_offset: 1,
        };
        let mut client = store.client();
        store.begin(&mut client, Isolation::ReadCommitted, false);
        for key in (0..KEYS).step_by(2) {
            store.write(&client, key).unwrap();
        }
        store.commit(&mut client).unwrap();
        store
    }

    fn client(&self) -> Client {
        Client { owner: session(&self.manager), tx: None }
    }

    fn begin(&mut self, client: &mut Client, isolation: Isolation, read_only: bool) {
        let tx = self.manager.begin(&client.owner, isolation, read_only);
        self.traces.push(Trace::default());
        client.tx = Some((tx, self.traces.len() - 1));
    }

    fn read(&mut self, client: &Client, key: usize) -> Result<()> {
        let (tx, number) = client.tx.as_ref().unwrap();
        let snapshot = tx.snapshot();
        let mut next = None;
        let mut seen = None;
        for version in self.keys[key].iter().rev() {
            if tx.is_mine(version.xid) || tx.sees(version.xid, &snapshot) {
                seen = Some(version);
                break;
            }
            next = Some(version.xid);
        }
        if let Some(version) = seen {
            tx.reads_row(TABLE, version.tid, version.xid);
        }
        self.traces[*number].reads.push((key, seen.map(|v| v.writer)));
        next.map_or(Ok(()), |xid| tx.record_rw_conflict(xid))
    }

    /// By the index: the page, then the row if there is one.
    fn look_up(&mut self, client: &Client, key: usize) -> Result<()> {
        let (tx, _) = client.tx.as_ref().unwrap();
        tx.snapshot();
        tx.reads_page(INDEX, (key / KEYS_PER_PAGE) as u32);
        self.read(client, key)
    }

    fn scan(&mut self, client: &Client) -> Result<()> {
        let (tx, _) = client.tx.as_ref().unwrap();
        tx.snapshot();
        tx.reads_relation(TABLE);
        (0..KEYS).try_for_each(|key| self.read(client, key))
    }

    fn write(&mut self, client: &Client, key: usize) -> Result<()> {
        let (tx, number) = client.tx.as_ref().unwrap();
        let snapshot = tx.snapshot();
        let tid = TupleId { block: (key / KEYS_PER_PAGE) as u32, offset: self.next_offset };
        if let Some(newest) = self.keys[key].last() {
            let mine = tx.is_mine(newest.xid);
            if !mine && self.manager.status(newest.xid) == XidStatus::Running
                || !mine && !tx.sees(newest.xid, &snapshot)
            {
                return Err(err!(T_R_SERIALIZATION_FAILURE, "concurrent update"));
            }
            tx.writes_row(TABLE, newest.tid)?;
        } else {
            tx.adds_row(TABLE)?;
            tx.writes_page(INDEX, (key / KEYS_PER_PAGE) as u32)?;
        }
        let xid = tx.xid()?;
        self.next_offset += 1;
        self.keys[key].push(Version { xid, writer: *number, tid });
        Ok(())
    }

    fn commit(&mut self, client: &mut Client) -> Result<()> {
        let (tx, number) = client.tx.as_ref().unwrap();
        let result = tx.commit(&[], |_| ()).map(drop);
        if result.is_ok() {
            self.traces[*number].committed = true;
            client.tx = None;
        } else {
            self.abort(client);
        }
        result
    }

    fn abort(&mut self, client: &mut Client) {
        let (tx, number) = client.tx.take().unwrap();
        for versions in &mut self.keys {
            versions.retain(|version| version.writer != number);
        }
        tx.abort();
    }

    /// Ends the transaction when the step failed; whether it failed with `40001`.
    fn step(&mut self, client: &mut Client, result: Result<()>) -> bool {
        let Err(error) = result else { return false };
        assert_eq!(error.code(), sqlstate::T_R_SERIALIZATION_FAILURE);
        self.abort(client);
        true
    }

    /// Edges of the dependency graph between committed transactions.
    fn edges(&self) -> Vec<Vec<usize>> {
        let mut edges = vec![Vec::new(); self.traces.len()];
        for versions in &self.keys {
            for pair in versions.windows(2) {
                edges[pair[0].writer].push(pair[1].writer);
            }
        }
        for (reader, trace) in self.traces.iter().enumerate().filter(|t| t.1.committed) {
            for (key, seen) in &trace.reads {
                let versions = &self.keys[*key];
                let at = seen.and_then(|w| versions.iter().rposition(|v| v.writer == w));
                if let Some(at) = at {
                    edges[versions[at].writer].push(reader);
                }
                if let Some(next) = versions.get(at.map_or(0, |at| at + 1)) {
                    edges[reader].push(next.writer);
                }
            }
        }
        for (from, to) in edges.iter_mut().enumerate() {
            to.retain(|to| *to != from);
        }
        edges
    }

    fn has_cycle(&self) -> bool {
        fn visit(at: usize, edges: &[Vec<usize>], state: &mut [u8]) -> bool {
            if state[at] != 0 {
                return state[at] == 1;
            }
            state[at] = 1;
            let cycle = edges[at].iter().any(|to| visit(*to, edges, state));
            state[at] = 2;
            cycle
        }
        let edges = self.edges();
        let mut state = vec![0; edges.len()];
        (0..edges.len()).any(|at| visit(at, &edges, &mut state))
    }

    fn left(&self) -> (usize, (usize, usize)) {
        (self.manager.serial.reads.left(), self.manager.serial.graph.lock().size())
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % bound
    }
}

/// A history of short transactions by a few clients. Returns the store, how many committed, and how
/// many failed.
fn history(seed: u64, isolation: Isolation, retain: usize) -> (Store, usize, usize) {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut store = Store::new(retain);
    let mut clients: Vec<Client> = (0..4).map(|_| store.client()).collect();
    let mut failed = 0;
    for _ in 0..120 {
        let at = random.below(clients.len());
        let client = &mut clients[at];
        if client.tx.is_none() {
            let read_only = random.below(4) == 0;
            store.begin(client, isolation, read_only);
        }
        let read_only = client.tx.as_ref().is_some_and(|tx| tx.0.read_only());
        let key = random.below(KEYS);
        let result = match random.below(10) {
            0..=2 => store.look_up(client, key),
            3 => store.scan(client),
            4..=6 if !read_only => store.write(client, key),
            4..=6 => store.look_up(client, key),
            7 => {
                store.abort(client);
                continue;
            }
            _ => {
                failed += usize::from(store.commit(client).is_err());
                continue;
            }
        };
        failed += usize::from(store.step(client, result));
    }
    for client in &mut clients {
        if client.tx.is_some() {
            failed += usize::from(store.commit(client).is_err());
        }
    }
    let committed = store.traces.iter().filter(|t| t.committed).count();
    (store, committed, failed)
}

#[test]
fn random_histories_have_no_cycle() {
    let (mut committed, mut failed) = (0, 0);
    for seed in 1..1500 {
        let retain = [RETAINED, 0, 1, 3][seed as usize % 4];
        let (store, good, bad) = history(seed, Isolation::Serializable, retain);
        assert!(!store.has_cycle(), "seed {seed}");
        assert_eq!(store.left(), (0, (0, 0)), "seed {seed}: nothing is kept when nobody is left");
        (committed, failed) = (committed + good, failed + bad);
    }
    assert!(committed > failed, "{committed} committed, {failed} failed");
}

#[test]
fn the_same_histories_have_cycles_without_it() {
    let cyclic = (1..1500)
        .filter(|seed| history(*seed, Isolation::RepeatableRead, RETAINED).0.has_cycle())
        .count();
    assert!(cyclic > 50, "{cyclic} histories with a cycle");
}

fn serializable(store: &mut Store, read_only: bool) -> Client {
    let mut client = store.client();
    store.begin(&mut client, Isolation::Serializable, read_only);
    client.tx.as_ref().unwrap().0.snapshot();
    client
}

fn detail(result: Result<()>) -> String {
    result.unwrap_err().fields().detail.clone().unwrap()
}

#[test]
fn write_skew_fails_the_second_at_commit() {
    let mut store = Store::new(RETAINED);
    let (mut a, mut b) = (serializable(&mut store, false), serializable(&mut store, false));
    store.read(&a, 0).unwrap();
    store.read(&b, 2).unwrap();
    store.write(&a, 2).unwrap();
    store.write(&b, 0).unwrap();
    store.commit(&mut a).unwrap();
    let why = "Reason code: Canceled on identification as a pivot, during commit attempt.";
    assert_eq!(detail(store.commit(&mut b)), why);
}

#[test]
fn a_key_that_does_not_exist_is_protected_by_its_page() {
    let mut store = Store::new(RETAINED);
    let (mut a, mut b) = (serializable(&mut store, false), serializable(&mut store, false));
    store.look_up(&a, 1).unwrap();
    store.look_up(&b, 5).unwrap();
    store.write(&a, 5).unwrap();
    store.commit(&mut a).unwrap();
    let why = "Reason code: Canceled on identification as a pivot, during write.";
    assert_eq!(detail(store.write(&b, 1)), why);
    store.abort(&mut b);
}

#[test]
fn a_split_carries_the_locks_over() {
    let mut store = Store::new(RETAINED);
    let (mut a, mut b) = (serializable(&mut store, false), serializable(&mut store, false));
    let page = |client: &Client| client.tx.as_ref().unwrap().0.reads_page(INDEX, 7);
    page(&a);
    page(&b);
    store.manager.serial.page_split(INDEX, 7, 8);
    let write = |client: &Client| client.tx.as_ref().unwrap().0.writes_page(INDEX, 8);
    write(&a).unwrap();
    a.tx.as_ref().unwrap().0.xid().unwrap();
    store.commit(&mut a).unwrap();
    assert!(write(&b).is_err());
    store.abort(&mut b);
    assert_eq!(store.left(), (0, (0, 0)));
}

/// The anomaly of Fekete, O'Neil and O'Neil (2004): of two writers and a reader that sees the second
/// one's commit, but not the first one's, one must fail.
#[test]
fn the_read_only_anomaly_fails_somebody_and_a_later_snapshot_does_not() {
    let mut store = Store::new(RETAINED);
    let (mut pivot, mut first) = (serializable(&mut store, false), serializable(&mut store, false));
    store.read(&pivot, 0).unwrap();
    store.read(&pivot, 2).unwrap();
    store.write(&first, 0).unwrap();
    store.commit(&mut first).unwrap();
    let mut reader = serializable(&mut store, true);
    store.read(&reader, 0).unwrap();
    store.read(&reader, 2).unwrap();
    store.commit(&mut reader).unwrap();
    assert!(store.write(&pivot, 2).is_err());
    store.abort(&mut pivot);
}

#[test]
fn without_the_reader_the_two_writers_commit() {
    let mut store = Store::new(RETAINED);
    let (mut pivot, mut first) = (serializable(&mut store, false), serializable(&mut store, false));
    store.read(&pivot, 0).unwrap();
    store.write(&first, 0).unwrap();
    store.commit(&mut first).unwrap();
    store.write(&pivot, 2).unwrap();
    store.commit(&mut pivot).unwrap();
    assert_eq!(store.left(), (0, (0, 0)));
}

#[test]
fn a_read_only_transaction_is_watched_until_its_snapshot_is_known_to_be_safe() {
    let mut store = Store::new(RETAINED);
    let alone = serializable(&mut store, true);
    assert!(!alone.tx.as_ref().unwrap().0.tracks_reads(), "no writer runs");
    let mut writer = serializable(&mut store, false);
    let reader = serializable(&mut store, true);
    assert!(reader.tx.as_ref().unwrap().0.tracks_reads());
    store.write(&writer, 0).unwrap();
    store.commit(&mut writer).unwrap();
    assert!(!reader.tx.as_ref().unwrap().0.tracks_reads());
    drop((alone, reader));
    assert_eq!(store.left(), (0, (0, 0)));
}

#[test]
fn many_rows_become_a_page_and_many_pages_the_relation() {
    let mut store = Store::new(RETAINED);
    let client = serializable(&mut store, false);
    let tx = &client.tx.as_ref().unwrap().0;
    let places = || -> Vec<_> {
        let mut rows: Vec<_> =
            store.manager.serial.rows().iter().map(|row| row.target.place()).collect();
        rows.sort();
        rows
    };
    let read = |block, offset| tx.reads_row(TABLE, TupleId { block, offset }, Xid::BOOTSTRAP);
    read(1, 1);
    read(1, 2);
    assert_eq!(places(), [(Some(1), Some(1)), (Some(1), Some(2))]);
    read(1, 3);
    assert_eq!(places(), [(Some(1), None)]);
    read(1, 4);
    assert_eq!(places(), [(Some(1), None)]);
    for block in 2..=31 {
        tx.reads_page(TABLE, block);
    }
    assert_eq!(places().len(), 31);
    read(40, 1);
    assert_eq!(places(), [(None, None)]);
    drop(client);
    assert_eq!(store.left(), (0, (0, 0)));
}

#[test]
fn an_own_write_replaces_the_lock_on_the_row_but_not_inside_a_savepoint() {
    let mut store = Store::new(RETAINED);
    let client = serializable(&mut store, false);
    let tx = &client.tx.as_ref().unwrap().0;
    let tid = TupleId { block: 1, offset: 1 };
    tx.reads_row(TABLE, tid, Xid::BOOTSTRAP);
    let level = tx.savepoint();
    tx.writes_row(TABLE, tid).unwrap();
    assert_eq!(store.manager.serial.rows().len(), 1);
    tx.release(level);
    tx.writes_row(TABLE, tid).unwrap();
    assert_eq!(store.manager.serial.rows().len(), 0);
}

#[test]
fn deferrable_waits_for_the_writer_and_starts_anew_when_the_snapshot_was_unsafe() {
    let mut store = Store::new(RETAINED);
    let (mut pivot, mut first) = (serializable(&mut store, false), serializable(&mut store, false));
    store.read(&pivot, 0).unwrap();
    store.write(&first, 0).unwrap();
    store.commit(&mut first).unwrap();
    let manager = store.manager.clone();
    let pid = std::sync::atomic::AtomicI32::new(0);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let owner = session(&manager);
            pid.store(owner.pid(), Ordering::SeqCst);
            let tx = manager.begin(&owner, Isolation::Serializable, true);
            tx.await_safe_snapshot().unwrap();
            assert!(!tx.tracks_reads());
            tx.snapshot().csn
        });
        let blockers = || manager.serial.safe_snapshot_blocking_pids(pid.load(Ordering::SeqCst));
        while blockers() != [pivot.owner.pid()] {
            std::thread::yield_now();
        }
        store.write(&pivot, 2).unwrap();
        store.commit(&mut pivot).unwrap();
        assert_eq!(waiter.join().unwrap(), manager.last_csn(), "its first snapshot was unsafe");
    });
}
