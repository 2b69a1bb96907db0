//! The steps inside an extension show while they happen.

mod common;

use common::{Db, Table, commit};
use sched::observe::tasks;

#[test]
fn one_who_looks_for_room_says_so() {
    let db = Db::new();
    let table = Table::create(&db, 100);
    let tx = db.session().begin();
    for key in 0..200 {
        table.insert(&tx, key, key).expect("insert");
    }
    commit(tx);
    db.storage.wal.flush(db.storage.wal.insert_position()).expect("flush");
    let rels = table.rels();
    drop(table);
    let db = db.crash();
    let table = Table::open(&db, rels, 100);
    let last = table.heap.pages().expect("pages") - 1;
    let page = base::PageId::main(rels.0, last);
    let pinned = db.storage.pool.pin(page).expect("the page is there");
    let latched = pinned.write();
    std::thread::scope(|scope| {
        let inserter = scope.spawn(|| {
            let tx = db.session().begin();
            table.insert(&tx, 1000, 1000).expect("insert");
            commit(tx);
            sched::with_current(|task| task.work())
        });
        let search = Some(base::WaitEvent::IORelationExtendSearch);
        let waits = |task: &sched::TaskRef| task.work() == search && task.wait().is_some();
        while !tasks().iter().any(waits) {
            std::thread::yield_now();
        }
        drop(latched);
        assert_eq!(inserter.join().expect("it inserts"), None, "the work is over");
    });
    db.destroy();
}
