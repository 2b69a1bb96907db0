//! Transactions on real storage, across crashes and clean stops.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::Xid;
use storage::Storage;
use txn::{Isolation, LockOwner, Transaction, TxnManager, XidStatus};

struct TestDir(PathBuf);

impl TestDir {
    fn new(name: &str) -> TestDir {
        let name = format!("txn-crash-{}-{name}", std::process::id());
        let dir = TestDir(std::env::temp_dir().join(name));
        Storage::create(&dir.0).unwrap();
        dir
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Server {
    manager: Arc<TxnManager>,
    storage: Arc<Storage>,
}

impl Server {
    fn start(dir: &Path) -> Server {
        let manager = TxnManager::new(dir);
        let storage = Storage::open(dir, manager.participant(None)).unwrap();
        manager.attach(&storage);
        Server { manager, storage }
    }
    fn session(&self) -> Arc<LockOwner> {
        self.manager.new_owner(&sched::current(), 1)
    }
    fn begin(&self, owner: &Arc<LockOwner>) -> Transaction {
        self.manager.begin(owner, Isolation::ReadCommitted, false)
    }
    /// Commits and makes it durable.
    fn commit(&self, tx: &Transaction) {
        let end = tx.commit(&[], |_| ()).unwrap();
        self.storage.wal.flush(end).unwrap();
    }
}

#[test]
fn acknowledged_commits_survive_crashes_and_nothing_else_does() {
    let dir = TestDir::new("crashes");
    let mut history: Vec<(Xid, bool)> = Vec::new();
    for life in 0..5 {
        let server = Server::start(&dir.0);
        for &(xid, committed) in &history {
            let status = server.manager.status(xid);
            assert_eq!(matches!(status, XidStatus::Committed(_)), committed, "life {life} {xid:?}");
        }
        let (owner, other) = (server.session(), server.session());
        let open = server.begin(&other);
        let open_xid = open.xid().unwrap();
        assert!(history.iter().all(|&(xid, _)| xid < open_xid), "an id was given out twice");
        history.push((open_xid, false));
        for i in 0..200 {
            let tx = server.begin(&owner);
            let top = tx.xid().unwrap();
            if i % 4 == 0 {
                let level = tx.savepoint();
                history.push((tx.xid().unwrap(), false));
                tx.rollback_to(level);
                history.push((tx.xid().unwrap(), i % 3 != 0));
            }
            history.push((top, i % 3 != 0));
            if i % 3 != 0 {
                server.commit(&tx);
            }
            if i == 50 && life % 2 == 0 {
                server.storage.checkpoint().unwrap();
            }
        }
        server.storage.abandon();
    }
}

#[test]
fn a_clean_stop_keeps_everything_without_redo() {
    let dir = TestDir::new("clean");
    let server = Server::start(&dir.0);
    let owner = server.session();
    let tx = server.begin(&owner);
    let xid = tx.xid().unwrap();
    server.commit(&tx);
    let lost = server.begin(&owner).xid().unwrap();
    let oid = server.manager.next_oid().unwrap();
    server.storage.shutdown().unwrap();
    drop((tx, owner, server));
    assert!(Storage::status(&dir.0).unwrap().clean);
    let server = Server::start(&dir.0);
    assert!(matches!(server.manager.status(xid), XidStatus::Committed(_)));
    assert_eq!(server.manager.status(lost), XidStatus::Aborted);
    assert!(server.manager.next_xid() > lost);
    assert!(server.manager.next_oid().unwrap() > oid);
    server.storage.shutdown().unwrap();
}

/// Commits go on while checkpoints are made; the crash comes right after one.
#[test]
fn checkpoints_in_the_middle_of_commits_lose_none_of_them() {
    let dir = TestDir::new("middle");
    let mut committed = Vec::new();
    for _ in 0..3 {
        let server = Server::start(&dir.0);
        for &xid in &committed {
            assert!(matches!(server.manager.status(xid), XidStatus::Committed(_)), "{xid:?}");
        }
        let done = std::sync::atomic::AtomicBool::new(false);
        let new: Vec<Vec<Xid>> = std::thread::scope(|s| {
            let (server, done) = (&server, &done);
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    s.spawn(move || {
                        let owner = server.session();
                        let mut xids = Vec::new();
                        while !done.load(std::sync::atomic::Ordering::Relaxed) {
                            let tx = server.begin(&owner);
                            xids.push(tx.xid().unwrap());
                            server.commit(&tx);
                        }
                        xids
                    })
                })
                .collect();
            for _ in 0..10 {
                server.storage.checkpoint().unwrap();
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        committed.extend(new.into_iter().flatten());
        server.storage.abandon();
    }
}
