//! Crashes and what is there afterwards.

mod common;

use base::{Fork, PageId, RelId};
use common::*;
use storage::Storage;

const REL: RelId = RelId(20000);

#[test]
fn a_clean_shutdown_keeps_everything_and_redoes_nothing() {
    let dir = TempDir::new("clean");
    let (storage, memory) = open(&dir, &tiny());
    make_relation(&storage, REL, 3);
    put(&storage, PageId::main(REL, 1), 100, b"hello");
    *memory.state.lock().unwrap() = b"state".to_vec();
    assert!(!Storage::status(&dir.0).unwrap().clean);
    assert_eq!(Storage::status(&dir.0).unwrap().running, Some(std::process::id()));
    storage.shutdown().unwrap();
    drop(storage);
    let status = Storage::status(&dir.0).unwrap();
    assert!(status.clean && status.running.is_none());

    let (storage, memory) = open(&dir, &tiny());
    assert_eq!(*memory.restored.lock().unwrap(), b"state");
    assert!(memory.payloads.lock().unwrap().is_empty());
    assert_eq!(body(&storage, PageId::main(REL, 1))[84..89], *b"hello");
    assert_eq!(storage.block_count(REL, Fork::Main).unwrap(), 3);
    assert_eq!(storage.relations().unwrap(), [REL]);
}

#[test]
fn what_was_flushed_survives_a_crash() {
    let dir = TempDir::new("crash");
    let (storage, _) = open(&dir, &tiny());
    make_relation(&storage, REL, 2);
    let mut mtr = storage.mtr();
    let page = mtr.latch(PageId::main(REL, 0)).unwrap();
    mtr.put(page, 16, b"ab");
    mtr.put(page, 18, b"cd");
    mtr.payload(40, b"with pages");
    mtr.commit();
    let end = storage.wal.append(41, b"alone", |_| ());
    storage.wal.flush(end).unwrap();
    storage.abandon();
    drop(storage);

    let (storage, memory) = open(&dir, &tiny());
    let payloads = memory.payloads.lock().unwrap().clone();
    assert_eq!(payloads.len(), 2);
    assert_eq!((payloads[0].0, payloads[0].1.as_slice()), (40, b"with pages".as_slice()));
    assert_eq!((payloads[1].0, payloads[1].2), (41, end));
    assert_eq!(body(&storage, PageId::main(REL, 0))[..5], *b"abcd\0");
    assert_eq!(storage.block_count(REL, Fork::Main).unwrap(), 2);
}

#[test]
fn crashes_at_random_points_lose_nothing_that_was_flushed() {
    for seed in 1..=12_u64 {
        let mut random = Random(seed * 0x9E37_79B9);
        let dir = TempDir::new("random");
        let (mut storage, _) = open(&dir, &tiny());
        make_relation(&storage, REL, 60);
        let mut model = Model::new(REL, 60);
        for _ in 0..4 {
            let mut end = storage.wal.insert_position();
            for _ in 0..random.below(400) {
                end = model.step(&storage, &mut random).max(end);
                if random.below(150) == 0 {
                    storage.checkpoint().unwrap();
                }
            }
            storage.wal.flush(end).unwrap();
            storage.abandon();
            drop(storage);
            storage = open(&dir, &tiny()).0;
            model.check(&storage);
        }
    }
}
