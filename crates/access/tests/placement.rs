//! Placement of rows.

mod common;

use common::{Db, Table, commit, key_of};

/// A session's statements are run by whichever worker is free; what it inserts stays in order.
#[test]
fn rows_of_one_client_lie_in_order_whichever_thread_inserts_them() {
    let db = Db::new();
    let table = Table::create(&db, 100);
    let insert = |key| {
        let tx = db.session().begin();
        table.insert(&tx, key, key).expect("insert");
        commit(tx);
    };
    for key in 0..20 {
        std::thread::scope(|scope| scope.spawn(|| insert(key)).join().expect("it inserts"));
    }
    let tx = db.session().begin();
    let mut keys = Vec::new();
    let snapshot = tx.snapshot();
    let mut scan = table.heap.scan(&snapshot, None);
    while scan.next_page(&tx, |_, _, row| keys.push(key_of(row))).expect("scan") {}
    assert_eq!(keys, (0..20).collect::<Vec<_>>());
    assert_eq!(table.heap.pages().expect("pages"), 1);
    commit(tx);
    drop(table);
    db.destroy();
}
