//! Transactions like pgbench's TPC-B, without SQL: `... --example tpcb [sessions] [branches] [seconds]`.
//! Prints transactions a second and how often a hot row had to leave its page.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use access::{BTree, Heap, InsertHint, Unique, WriteResult};
use base::{RelId, Result, TupleId};
use storage::Storage;
use txn::{Isolation, RowLockMode, Transaction, TxnManager};

struct Table {
    heap: Heap,
    index: BTree,
}

static HOPS: AtomicU64 = AtomicU64::new(0);
static PASSED: AtomicU64 = AtomicU64::new(0);

fn row(key: u64, value: u64, pad: usize) -> Vec<u8> {
    let mut row = key.to_be_bytes().to_vec();
    row.extend_from_slice(&value.to_be_bytes());
    row.resize(16 + pad, b' ');
    row
}

impl Table {
    fn insert_entry(&self, tx: &Transaction, key: u64, tid: TupleId) -> Result<()> {
        let mut check = |root| self.heap.rival(tx, root);
        self.index.insert(tx, &key.to_be_bytes(), tid, Unique::Yes(&mut check))?;
        Ok(())
    }

    fn add(&self, tx: &Transaction, key: u64, delta: u64) -> Result<()> {
        let (snapshot, mut tid, mut root, mut data) = loop {
            let snapshot = tx.snapshot();
            let mut roots = Vec::new();
            self.index.lookup(tx, &key.to_be_bytes(), |root| {
                roots.push(root);
                true
            })?;
            let mut found = None;
            for root in roots {
                PASSED.fetch_add(1, Relaxed);
                let read = |tid, row: &[u8]| (tid, root, row.to_vec());
                found = self.heap.fetch(tx, &snapshot, root, read)?;
                if found.is_some() {
                    break;
                }
            }
            let (tid, root, data) = found.expect("the row is there");
            if self.heap.await_row(tx, tid, root, RowLockMode::NoKeyUpdate)? {
                break (snapshot, tid, root, data);
            }
        };
        loop {
            let value = u64::from_be_bytes(data[8..16].try_into().expect("eight bytes"));
            data[8..16].copy_from_slice(&(value + delta).to_be_bytes());
            match self.heap.update(
                tx,
                &snapshot,
                tid,
                root,
                &data,
                false,
                false,
                access::RowWait::Block,
            )? {
                WriteResult::Done { in_chain: true, .. } => break,
                WriteResult::Done { tid, .. } => {
                    HOPS.fetch_add(1, Relaxed);
                    self.insert_entry(tx, key, tid)?;
                    break;
                }
                WriteResult::Changed { newest } => {
                    (tid, root, data) = (newest.tid, newest.root, newest.data);
                }
                other => panic!("{other:?}"),
            }
        }
        tx.end_statement();
        tx.next_command();
        Ok(())
    }
}

fn main() {
    let argument = |n: usize, default: u64| {
        std::env::args().nth(n).and_then(|a| a.parse().ok()).unwrap_or(default)
    };
    let (sessions, branches, seconds) = (argument(1, 20), argument(2, 1), argument(3, 3));
    let dir = std::env::temp_dir().join(format!("threadgres-tpcb-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    Storage::create(&dir).expect("create");
    let manager = TxnManager::new(&dir);
    let storage = Storage::open(&dir, manager.participant(None)).expect("open");
    manager.attach(&storage);
    let owner = manager.new_owner(&sched::current(), 0);
    let table = |rows: u64, pad: usize| {
        let rel = || {
            let rel = RelId(manager.next_oid().expect("oid"));
            storage.create_relation(rel).expect("files");
            rel
        };
        let heap = Heap::open(&storage, rel());
        let index = BTree::create(&storage, rel()).expect("index");
        let table = Table { heap, index };
        let tx = manager.begin(&owner, Isolation::ReadCommitted, false);
        for key in 0..rows {
            let data = row(key, 0, pad);
            let tid = table.heap.insert(&tx, &data, &mut InsertHint::default()).expect("insert");
            table.insert_entry(&tx, key, tid).expect("insert");
        }
        tx.commit(&[], |_| {}).expect("commit");
        table
    };
    let (b, t, a) = (table(branches, 10), table(branches * 10, 10), table(branches * 10_000, 84));
    let history = table(0, 0);
    let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let log = storage.wal.insert_position().0;
    let start = Instant::now();
    std::thread::scope(|scope| {
        for number in 0..sessions {
            let (a, b, t, history, manager) = (&a, &b, &t, &history, &manager);
            let (storage, done, stop) = (&storage, &done, &stop);
            scope.spawn(move || {
                let owner = manager.new_owner(&sched::current(), 0);
                let mut random = 0x9E37_79B9_7F4A_7C15u64.wrapping_mul(number + 1);
                let mut pick = |limit: u64| {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    random % limit
                };
                while !stop.load(Relaxed) {
                    let tx = manager.begin(&owner, Isolation::ReadCommitted, false);
                    a.add(&tx, pick(branches * 10_000), 1).expect("account");
                    t.add(&tx, pick(branches * 10), 1).expect("teller");
                    b.add(&tx, pick(branches), 1).expect("branch");
                    let data = row(1, 1, 10);
                    history.heap.insert(&tx, &data, &mut InsertHint::default()).expect("history");
                    let lsn = tx.commit(&[], |_| {}).expect("commit");
                    storage.wal.flush(lsn).expect("flush");
                    done.fetch_add(1, Relaxed);
                }
            });
        }
        std::thread::sleep(Duration::from_secs(seconds));
        stop.store(true, Relaxed);
    });
    let count = done.load(Relaxed) as f64;
    println!(
        "{:.0} a second, {:.0} bytes of log each; rows that left their page: {:.4}, roots looked at: {:.2} a transaction; \
         pages of branches {}, tellers {}, history {}",
        count / start.elapsed().as_secs_f64(),
        (storage.wal.insert_position().0 - log) as f64 / count,
        HOPS.load(Relaxed) as f64 / count,
        PASSED.load(Relaxed) as f64 / count,
        b.heap.pages().expect("pages"),
        t.heap.pages().expect("pages"),
        history.heap.pages().expect("pages"),
    );
    drop((a, b, t, history));
    storage.abandon();
    std::fs::remove_dir_all(dir).expect("remove");
}
