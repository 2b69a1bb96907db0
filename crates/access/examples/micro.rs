//! The cost of single calls, in nanoseconds: `cargo run --release -p access --example micro`.

use std::time::Instant;

use access::{BTree, Heap, InsertHint, Unique};
use base::RelId;
use storage::Storage;
use txn::{Isolation, TxnManager};

const ROWS: u64 = 200_000;

fn time(what: &str, count: u64, mut f: impl FnMut(u64)) {
    let start = Instant::now();
    (0..count).for_each(&mut f);
    println!("{what:<28} {:>8.0} ns", start.elapsed().as_nanos() as f64 / count as f64);
}

fn main() {
    let dir = std::env::temp_dir().join(format!("threadgres-micro-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    Storage::create(&dir).expect("create");
    let manager = TxnManager::new(&dir);
    let storage = Storage::open(&dir, manager.participant(None)).expect("open");
    manager.attach(&storage);
    let owner = manager.new_owner(&sched::current(), 0);
    let begin = || manager.begin(&owner, Isolation::ReadCommitted, false);
    let rel = || {
        let rel = RelId(manager.next_oid().expect("oid"));
        storage.create_relation(rel).expect("files");
        rel
    };
    let heap = Heap::open(&storage, rel());
    let index = BTree::create(&storage, rel()).expect("index");
    let mut hint = InsertHint::default();
    let row = [7u8; 97];

    let tx = begin();
    let mut roots = Vec::new();
    time("heap insert", ROWS, |_| roots.push(heap.insert(&tx, &row, &mut hint).expect("insert")));
    time("index insert, ascending", ROWS, |i| {
        let mut check = |root| heap.rival(&tx, root);
        let unique = Unique::Yes(&mut check);
        index.insert(&tx, &i.to_be_bytes(), roots[i as usize], unique).expect("insert");
    });
    tx.commit(&[], |_| {}).expect("commit");
    storage.wal.flush(storage.wal.insert_position()).expect("flush");

    let tx = begin();
    let snapshot = tx.snapshot();
    let rows: Vec<&[u8]> = (0..1000).map(|_| &row[..]).collect();
    time("heap insert_many, a row", ROWS, |i| {
        if i % 1000 == 0 {
            heap.insert_many(&tx, &rows, &mut hint).expect("insert");
        }
    });
    let pick = |i: u64| i.wrapping_mul(0x9E37_79B9) % ROWS;
    time("Heap::open", ROWS, |_| drop(Heap::open(&storage, heap.rel)));
    time("index lookup", ROWS, |i| {
        index.lookup(&tx, &pick(i).to_be_bytes(), |_| true).expect("lookup");
    });
    let fetch = |i: u64| {
        let root = roots[pick(i) as usize];
        heap.fetch(&tx, &snapshot, root, |_, bytes| bytes[0]).expect("fetch").expect("row")
    };
    time("heap fetch, first", ROWS, |i| {
        fetch(i);
    });
    time("heap fetch", ROWS, |i| {
        fetch(i);
    });
    let mut scan = heap.scan(&snapshot, None);
    let mut seen = 0;
    let start = Instant::now();
    while scan.next_page(&tx, |_, _, _| seen += 1).expect("scan") {}
    println!("{:<28} {:>8.0} ns", "scan, a row", start.elapsed().as_nanos() as f64 / seen as f64);
    drop(tx);

    time("update, one transaction each", ROWS, |i| {
        let tx = begin();
        let snapshot = tx.snapshot();
        let root = roots[pick(i) as usize];
        let tid = heap.fetch(&tx, &snapshot, root, |tid, _| tid).expect("fetch").expect("row");
        heap.update(&tx, &snapshot, tid, root, &row, false, false, access::RowWait::Block)
            .expect("update");
        tx.commit(&[], |_| {}).expect("commit");
    });
    time("update of one hot row", ROWS, |_| {
        let tx = begin();
        let snapshot = tx.snapshot();
        let mut at = None;
        index
            .lookup(&tx, &5u64.to_be_bytes(), |root| {
                at = heap.fetch(&tx, &snapshot, root, |tid, _| (tid, root)).expect("fetch");
                at.is_none()
            })
            .expect("lookup");
        let (tid, root) = at.expect("row");
        let done = heap
            .update(&tx, &snapshot, tid, root, &row, false, false, access::RowWait::Block)
            .expect("update");
        if let access::WriteResult::Done { tid, in_chain: false } = done {
            let mut check = |root| heap.rival(&tx, root);
            let unique = Unique::Yes(&mut check);
            index.insert(&tx, &5u64.to_be_bytes(), tid, unique).expect("insert");
        }
        tx.commit(&[], |_| {}).expect("commit");
    });
    drop((heap, index));
    storage.abandon();
    std::fs::remove_dir_all(dir).expect("remove");
}
