//! A small table for tests: rows of two numbers, a unique index on the first and a plain index on
//! the second, on real storage and transactions.
#![allow(dead_code)]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use access::vacuum::Pace;
use access::{
    AnyIndex, BTree, Heap, InsertHint, Inserted, KeyRange, RowWait, Search, Unique, WriteResult,
    check::check,
};
use base::{AccessMethod, RelId, Result, TupleId};
use sched::observe::progress::{Kind, Reporting};
use storage::{Options, Storage};
use txn::{Isolation, LockOwner, RowLockMode, Snapshot, Transaction, TxnManager};

pub struct Db {
    pub dir: PathBuf,
    pub manager: Arc<TxnManager>,
    pub storage: Arc<Storage>,
}

/// A directory of this test's own; removed when the database is dropped for good.
pub fn fresh_dir() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("threadgres-access-{}-{number}", std::process::id());
    let dir = std::env::temp_dir().join(name);
    let _ = std::fs::remove_dir_all(&dir);
    dir
}

pub fn tiny_options() -> Options {
    Options {
        frames: 160,
        wal_segment_size: 1 << 20,
        max_wal_size: Some(4 << 20),
        fsync: Some(false),
        max_files: Some(4),
        ..Options::from_settings()
    }
}

impl Db {
    pub fn new() -> Db {
        let dir = fresh_dir();
        Storage::create(&dir).expect("create");
        Db::open(dir)
    }

    pub fn open(dir: PathBuf) -> Db {
        Db::open_with(dir, Options::from_settings())
    }

    pub fn open_with(dir: PathBuf, options: Options) -> Db {
        let manager = TxnManager::new(&dir);
        let storage = Storage::open_with(&dir, manager.participant(None), options).expect("open");
        manager.attach(&storage);
        Db { dir, manager, storage }
    }

    /// With so few frames that pages come and go all the time.
    pub fn tiny() -> Db {
        let dir = fresh_dir();
        Storage::create_with(&dir, &tiny_options()).expect("create");
        Db::open_with(dir, tiny_options())
    }

    /// Stops as if killed, and recovers.
    pub fn crash(self) -> Db {
        self.storage.abandon();
        let dir = self.dir.clone();
        drop(self);
        Db::open(dir)
    }

    /// Stops by itself, and starts again.
    pub fn restart(self) -> Db {
        self.storage.shutdown().expect("shutdown");
        let dir = self.dir.clone();
        drop(self);
        Db::open(dir)
    }

    pub fn destroy(self) {
        self.storage.abandon();
        std::fs::remove_dir_all(&self.dir).expect("remove the test's directory");
    }

    pub fn session(&self) -> Session {
        Session {
            manager: self.manager.clone(),
            owner: self.manager.new_owner(&sched::current(), 0),
        }
    }

    pub fn rel(&self) -> RelId {
        let rel = RelId(self.manager.next_oid().expect("oid"));
        self.storage.create_relation(rel).expect("create files");
        rel
    }
}

pub struct Session {
    pub manager: Arc<TxnManager>,
    pub owner: Arc<LockOwner>,
}

impl Session {
    pub fn begin(&self) -> Transaction {
        self.manager.begin(&self.owner, Isolation::ReadCommitted, false)
    }

    pub fn begin_rr(&self) -> Transaction {
        self.manager.begin(&self.owner, Isolation::RepeatableRead, false)
    }
}

pub fn commit(tx: Transaction) {
    tx.commit(&[], |_| {}).expect("commit");
}

#[derive(Clone)]
pub struct Table {
    pub heap: Heap,
    pub by_key: BTree,
    pub by_value: BTree,
    /// A hash index of the second number.
    pub by_hash: AnyIndex,
    pub pad: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rels(pub RelId, pub RelId, pub RelId, pub RelId);

pub fn row(key: u64, value: u64, pad: usize) -> Vec<u8> {
    let mut bytes = key.to_be_bytes().to_vec();
    bytes.extend_from_slice(&value.to_be_bytes());
    bytes.resize(16 + pad, 7);
    bytes
}

pub fn key_of(row: &[u8]) -> u64 {
    u64::from_be_bytes(row[..8].try_into().unwrap())
}

pub fn value_of(row: &[u8]) -> u64 {
    u64::from_be_bytes(row[8..16].try_into().unwrap())
}

/// A row found by its key.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    pub tid: TupleId,
    pub root: TupleId,
    pub value: u64,
}

impl Table {
    pub fn create(db: &Db, pad: usize) -> Table {
        let heap = Heap::open(&db.storage, db.rel());
        let by_key = BTree::create(&db.storage, db.rel()).expect("create");
        let by_value = BTree::create(&db.storage, db.rel()).expect("create");
        let by_hash = AnyIndex::create(AccessMethod::Hash, &db.storage, db.rel()).expect("create");
        Table { heap, by_key, by_value, by_hash, pad }
    }

    pub fn rels(&self) -> Rels {
        Rels(self.heap.rel, self.by_key.rel, self.by_value.rel, self.by_hash.rel())
    }

    pub fn open(db: &Db, rels: Rels, pad: usize) -> Table {
        Table {
            heap: Heap::open(&db.storage, rels.0),
            by_key: BTree::open(&db.storage, rels.1),
            by_value: BTree::open(&db.storage, rels.2),
            by_hash: AnyIndex::open(AccessMethod::Hash, &db.storage, rels.3),
            pad,
        }
    }

    fn index(&self, tx: &Transaction, key: u64, value: u64, tid: TupleId) -> Result<bool> {
        let mut check = |rival| self.heap.rival(tx, rival);
        let unique = Unique::Yes(&mut check);
        if self.by_key.insert(tx, &key.to_be_bytes(), tid, unique)? != Inserted::Done {
            return Ok(false);
        }
        self.by_value.insert(tx, &value.to_be_bytes(), tid, Unique::No)?;
        self.by_hash.insert(tx, &value.to_be_bytes(), tid, Unique::No)?;
        Ok(true)
    }

    /// False when the key is there already; the transaction is then to be rolled back.
    pub fn insert(&self, tx: &Transaction, key: u64, value: u64) -> Result<bool> {
        let tid = self.heap.insert(tx, &row(key, value, self.pad), &mut InsertHint::default())?;
        self.index(tx, key, value, tid)
    }

    pub fn find(&self, tx: &Transaction, snapshot: &Snapshot, key: u64) -> Result<Option<Found>> {
        let mut roots = Vec::new();
        self.by_key.lookup(tx, &key.to_be_bytes(), |root| {
            roots.push(root);
            true
        })?;
        let mut found = None;
        for root in roots {
            let hit = self.heap.fetch(tx, snapshot, root, |tid, bytes| {
                assert_eq!(key_of(bytes), key, "the index leads to another row");
                Found { tid, root, value: value_of(bytes) }
            })?;
            if let Some(hit) = hit {
                assert!(found.is_none(), "two versions of key {key} are visible");
                found = Some(hit);
            }
        }
        Ok(found)
    }

    /// Changes a row as READ COMMITTED does; false when it isn't there.
    pub fn update(&self, tx: &Transaction, key: u64, f: impl Fn(u64) -> u64) -> Result<bool> {
        let snapshot = tx.snapshot();
        let Some(mut at) = self.find(tx, &snapshot, key)? else { return Ok(false) };
        loop {
            let value = f(at.value);
            let moved = value != at.value;
            let data = row(key, value, self.pad);
            match self.heap.update(
                tx,
                &snapshot,
                at.tid,
                at.root,
                &data,
                false,
                moved,
                access::RowWait::Block,
            )? {
                WriteResult::Done { tid, in_chain } => {
                    if !in_chain {
                        assert!(self.index(tx, key, value, tid)?, "an update met its own key");
                    }
                    return Ok(true);
                }
                WriteResult::Changed { newest } => {
                    at =
                        Found { tid: newest.tid, root: newest.root, value: value_of(&newest.data) };
                }
                WriteResult::Gone => return Ok(false),
                WriteResult::SelfChanged => return Ok(true),
                WriteResult::Busy => unreachable!("it waits"),
            }
        }
    }

    pub fn delete(&self, tx: &Transaction, key: u64) -> Result<bool> {
        let snapshot = tx.snapshot();
        let Some(mut at) = self.find(tx, &snapshot, key)? else { return Ok(false) };
        loop {
            match self.heap.delete(tx, &snapshot, at.tid, at.root, access::RowWait::Block)? {
                WriteResult::Done { .. } => return Ok(true),
                WriteResult::Changed { newest } => (at.tid, at.root) = (newest.tid, newest.root),
                WriteResult::Gone => return Ok(false),
                WriteResult::SelfChanged => return Ok(true),
                WriteResult::Busy => unreachable!("it waits"),
            }
        }
    }

    pub fn lock(
        &self,
        tx: &Transaction,
        key: u64,
        mode: RowLockMode,
        wait: RowWait,
    ) -> Result<access::LockResult> {
        let snapshot = tx.snapshot();
        let at = self.find(tx, &snapshot, key)?.expect("the row to lock is there");
        self.heap.lock(tx, &snapshot, at.tid, at.root, mode, wait)
    }

    /// All rows by a sequential scan, sorted.
    pub fn scan(&self, tx: &Transaction, snapshot: &Snapshot) -> Result<Vec<(u64, u64)>> {
        let mut rows = Vec::new();
        let mut scan = self.heap.scan(snapshot, None);
        while scan.next_page(tx, |_, _, bytes| rows.push((key_of(bytes), value_of(bytes))))? {}
        rows.sort_unstable();
        Ok(rows)
    }

    /// As [`Table::scan`], but pages that the visibility map has are copied as they are.
    pub fn scan_by_map(&self, tx: &Transaction, snapshot: &Snapshot) -> Result<Vec<(u64, u64)>> {
        let keep = access::Keep { bytes: true, ids: false };
        let mut batch = access::RowBatch::default();
        let mut scan = self.heap.scan(snapshot, None);
        while scan.next_rows(tx, keep, &mut batch)? {}
        let row = |(from, to): &(u32, u32)| &batch.bytes[*from as usize..*to as usize];
        let mut rows: Vec<_> =
            batch.places.iter().map(|place| (key_of(row(place)), value_of(row(place)))).collect();
        rows.sort_unstable();
        Ok(rows)
    }

    /// The rows with a value, by the hash index, sorted.
    pub fn with_value(
        &self,
        tx: &Transaction,
        snapshot: &Snapshot,
        value: u64,
    ) -> Result<Vec<(u64, u64)>> {
        let mut roots = Vec::new();
        let search = Search::Equal(value.to_be_bytes().to_vec());
        self.by_hash.collect(tx, &search, &mut |found| roots.push(found.root))?;
        roots.sort_unstable();
        roots.dedup();
        let mut rows = Vec::new();
        for root in roots {
            let read = |_, bytes: &[u8]| (key_of(bytes), value_of(bytes));
            rows.extend(self.heap.fetch(tx, snapshot, root, read)?.filter(|r| r.1 == value));
        }
        rows.sort_unstable();
        Ok(rows)
    }

    /// All rows by an index, in its order.
    pub fn index_scan(
        &self,
        tx: &Transaction,
        snapshot: &Snapshot,
        index: &BTree,
        range: KeyRange,
        backward: bool,
    ) -> Result<Vec<(u64, u64)>> {
        let mut rows = Vec::new();
        let mut cursor = index.scan(range, backward);
        let mut last: Option<Vec<u8>> = None;
        while let Some((key, root)) = cursor.next(tx)? {
            if let Some(last) = &last {
                let in_order = if backward { &last[..] >= key } else { &last[..] <= key };
                assert!(in_order, "the scan is out of order");
            }
            last = Some(key.to_vec());
            let read = |_, bytes: &[u8]| (key_of(bytes), value_of(bytes));
            rows.extend(self.heap.fetch(tx, snapshot, root, read)?);
        }
        Ok(rows)
    }

    pub fn vacuum(&self, db: &Db) -> access::VacuumStats {
        let indexes =
            [self.by_key.clone().into(), self.by_value.clone().into(), self.by_hash.clone()];
        let progress = Reporting::begin(Kind::Vacuum, "VACUUM", (5, 0));
        let mut pace = Pace::unlimited();
        let alone = |work: &(dyn Fn(bool) -> base::Result<()> + Sync)| work(true);
        let done = access::vacuum(&db.manager, &self.heap, &indexes, &alone, &mut pace, &progress);
        done.expect("vacuum")
    }

    /// Panics with what the checker finds.
    pub fn check(&self, db: &Db) {
        let findings = check(
            &db.manager,
            &self.heap,
            &[
                (self.by_key.clone().into(), &|row| Some(row[..8].to_vec())),
                (self.by_value.clone().into(), &|row| Some(row[8..16].to_vec())),
                (self.by_hash.clone(), &|row| Some(row[8..16].to_vec())),
            ],
        )
        .expect("check");
        assert!(findings.is_empty(), "{findings:#?}");
    }
}

/// For each page of an index: starts a server on files in which that page is one of zeros, and calls `use_it`, which uses
/// the index in every way and says whether something was wrong or missing that nobody complained of.
pub fn with_each_page_zeroed(db: Db, rel: RelId, use_it: &dyn Fn(&Db) -> Option<String>) {
    use std::os::unix::fs::FileExt;
    db.storage.shutdown().expect("shutdown");
    let dir = db.dir.clone();
    drop(db);
    let sound = fresh_dir();
    copy(&dir, &sound);
    let path = format!("base/{}", rel.0);
    let length = std::fs::metadata(sound.join(&path)).expect("the file").len();
    for block in 0..length / storage::PAGE_SIZE as u64 {
        std::fs::remove_dir_all(&dir).expect("remove");
        copy(&sound, &dir);
        let file = std::fs::OpenOptions::new().write(true).open(dir.join(&path)).expect("open");
        let at = block * storage::PAGE_SIZE as u64;
        file.write_all_at(&[0; storage::PAGE_SIZE], at).expect("write");
        let db = Db::open(dir.clone());
        if let Some(wrong) = use_it(&db) {
            panic!("block {block} of {path} is zeroed: {wrong}");
        }
        db.storage.abandon();
    }
    std::fs::remove_dir_all(&dir).expect("remove");
    std::fs::remove_dir_all(&sound).expect("remove");
}

/// Copies a directory.
pub fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).expect("create");
    for entry in std::fs::read_dir(from).expect("read") {
        let entry = entry.expect("read");
        let target = to.join(entry.file_name());
        match entry.file_type().expect("type").is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).expect("copy")),
        }
    }
}

/// Numbers that look random and are the same in every run with the same seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % limit
    }
}
