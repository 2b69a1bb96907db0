//! Costs of this crate's paths, on real storage, in nanoseconds: `cargo bench -p txn`.
//! Threads run side by side on sessions of their own; the figure is the time of one operation in one
//! thread.

use std::sync::Arc;
use std::time::Instant;

use base::{Oid, RelId, TupleId};
use storage::Storage;
use txn::{Isolation, LockMode, LockOwner, LockTag, LockWait, RowLockMode, TxnManager};

fn measure(manager: &Arc<TxnManager>, name: &str, count: u32, f: impl Fn(&Arc<LockOwner>) + Sync) {
    let mut figures = Vec::new();
    for threads in [1, 2] {
        let start = Instant::now();
        std::thread::scope(|s| {
            for _ in 0..threads {
                s.spawn(|| {
                    let owner = manager.new_owner(&sched::current(), 1);
                    (0..count).for_each(|_| f(&owner));
                });
            }
        });
        figures.push(format!("{:8.0}", start.elapsed().as_nanos() as f64 / f64::from(count)));
    }
    println!("{name:48} {}", figures.join(" "));
}

fn main() {
    let dir = std::env::temp_dir().join(format!("txn-bench-{}", std::process::id()));
    Storage::create(&dir).expect("the directory is new");
    let m = TxnManager::new(&dir);
    let storage = Storage::open(&dir, m.participant(None)).expect("the directory is ours");
    m.attach(&storage);
    println!("{:48} {:>8} {:>8}", "threads", 1, 2);
    let table = LockTag::Relation(Oid(5), Oid(20000));
    measure(&m, "begin, snapshot, end, commit (read only)", 1_000_000, |owner| {
        let tx = m.begin(owner, Isolation::ReadCommitted, true);
        tx.snapshot();
        tx.end_statement();
        tx.commit(&[], |_| ()).expect("it runs");
    });
    measure(&m, "the same with two weak relation locks", 1_000_000, |owner| {
        let tx = m.begin(owner, Isolation::ReadCommitted, true);
        for oid in [20000, 20001] {
            let tag = LockTag::Relation(Oid(5), Oid(oid));
            m.locks.lock(owner, tag, LockMode::AccessShare, LockWait::Block).expect("weak");
        }
        tx.snapshot();
        tx.commit(&[], |_| ()).expect("it runs");
    });
    measure(&m, "begin, xid, commit (not durable)", 300_000, |owner| {
        let tx = m.begin(owner, Isolation::ReadCommitted, false);
        tx.xid().expect("ids are left");
        tx.commit(&[], |_| ()).expect("it runs");
    });
    let owner = m.new_owner(&sched::current(), 1);
    let tx = m.begin(&owner, Isolation::ReadCommitted, false);
    let snapshot = tx.snapshot();
    let xid = base::Xid(m.next_xid().0 - 1000);
    measure(&m, "sees, of a commit without hint", 3_000_000, |_| {
        std::hint::black_box(tx.sees(xid, &snapshot));
    });
    measure(&m, "a weak lock that is held already", 3_000_000, |owner| {
        m.locks.lock(owner, table, LockMode::AccessShare, LockWait::Block).expect("weak");
    });
    measure(&m, "lock and unlock a row's queue", 1_000_000, |owner| {
        let row = LockTag::Tuple(RelId(1), TupleId { block: owner.pid() as u32, offset: 1 });
        m.locks.lock(owner, row, LockMode::AccessShare, LockWait::Block).expect("compatible");
        m.locks.unlock(owner, row, LockMode::AccessShare);
    });
    measure(&m, "begin, xid, share a row, commit", 300_000, |owner| {
        let tx = m.begin(owner, Isolation::ReadCommitted, false);
        let xid = tx.xid().expect("ids are left");
        let row = TupleId { block: 1, offset: 1 };
        m.locks.share_row(owner, xid, RelId(1), row, RowLockMode::KeyShare);
        tx.commit(&[], |_| ()).expect("it runs");
    });
    measure(&m, "horizon", 1_000_000, |_| {
        std::hint::black_box(m.horizon());
    });
    drop(tx);
    storage.abandon();
    let _ = std::fs::remove_dir_all(&dir);
}
