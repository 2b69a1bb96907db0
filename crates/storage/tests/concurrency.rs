//! Many threads at once: eviction, the log's ring, checkpoints under load.

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use base::{Fork, Lsn, PageId, RelId};
use common::*;
use storage::{PAGE_HEADER, Storage};

const REL: RelId = RelId(30000);

fn number_at(page: &[u8], offset: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&page[offset..offset + 8]);
    u64::from_le_bytes(bytes)
}

/// Adds one to a counter on a page, and the same to its copy at the page's end.
fn increment(storage: &Storage, block: u32) -> Lsn {
    let mut mtr = storage.mtr();
    let page = mtr.latch(PageId::main(REL, block)).unwrap();
    let value = number_at(mtr.page(page), PAGE_HEADER) + 1;
    mtr.put_u64(page, PAGE_HEADER, value);
    mtr.put_u64(page, 8184, value);
    mtr.commit()
}

fn total(storage: &Storage, blocks: u32) -> u64 {
    let one = |block| {
        let page = body(storage, PageId::main(REL, block));
        let value = number_at(&page, 0);
        assert_eq!(value, number_at(&page, 8184 - PAGE_HEADER), "page {block} is torn");
        value
    };
    (0..blocks).map(one).sum()
}

#[test]
fn pins_latches_and_evictions_in_a_tiny_pool_keep_every_change() {
    let dir = TempDir::new("evict");
    let (storage, _) = open(&dir, &tiny());
    make_relation(&storage, REL, 100);
    thread::scope(|scope| {
        for t in 0..6_u64 {
            let storage = &storage;
            scope.spawn(move || {
                let mut random = Random(t + 1);
                for _ in 0..2000 {
                    let block = random.below(100) as u32;
                    if random.below(3) == 0 {
                        let pinned = storage.pool.pin(PageId::main(REL, block)).unwrap();
                        let read =
                            |p: &storage::Page| (number_at(p, PAGE_HEADER), number_at(p, 8184));
                        let seen =
                            |p: storage::PageView<'_>| (p.copy(PAGE_HEADER), p.copy::<8>(8184));
                        if let Some((a, b)) = pinned.optimistic(seen) {
                            assert_eq!(a, b, "an optimistic read saw half a change");
                        }
                        let guard = pinned.read();
                        let (a, b) = read(guard.page());
                        assert_eq!(a, b);
                    } else {
                        increment(storage, block);
                    }
                }
            });
        }
    });
    let sum = total(&storage, 100);
    assert!(storage.stats().evictions > 100);
    storage.shutdown().unwrap();
    drop(storage);
    let (storage, _) = open(&dir, &tiny());
    assert_eq!(total(&storage, 100), sum);
}

#[test]
fn when_every_frame_is_pinned_the_next_pin_is_an_error() {
    let dir = TempDir::new("pinned");
    let (storage, _) = open(&dir, &tiny());
    make_relation(&storage, REL, 30);
    let pins: Vec<_> = (0..24).map(|b| storage.pool.pin(PageId::main(REL, b)).unwrap()).collect();
    let error = storage.pool.pin(PageId::main(REL, 25)).err().unwrap();
    assert_eq!(error.code().as_str(), "53200");
    let again = pins[3].again();
    drop(pins);
    assert!(storage.pool.pin(PageId::main(REL, 25)).is_ok());
    // A pin may outlive the storage.
    storage.shutdown().unwrap();
    drop(storage);
    assert_eq!(again.id(), PageId::main(REL, 3));
    assert_eq!(again.read().page()[100], 0);
}

#[test]
fn concurrent_readers_of_a_missing_page_share_one_read() {
    let dir = TempDir::new("share");
    let (storage, _) = open(&dir, &tiny());
    make_relation(&storage, REL, 40);
    for block in 0..40 {
        increment(&storage, block);
    }
    storage.shutdown().unwrap();
    drop(storage);
    let (storage, _) = open(&dir, &tiny());
    let barrier = std::sync::Barrier::new(8);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for block in 0..20 {
                    barrier.wait();
                    assert_eq!(number_at(&body(&storage, PageId::main(REL, block)), 0), 1);
                }
            });
        }
    });
    assert_eq!(storage.stats().reads, 20);
}

#[test]
fn records_of_many_threads_come_back_in_order_and_complete_through_a_wrapping_ring() {
    let dir = TempDir::new("ring");
    let mut options = tiny();
    options.wal_segment_size = 1 << 20;
    options.max_wal_size = Some(1 << 30);
    let (storage, _) = open(&dir, &options);
    let expected = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for t in 0..8_u64 {
            let (storage, expected) = (&storage, &expected);
            scope.spawn(move || {
                let mut random = Random(t + 100);
                let mut own = Vec::new();
                for i in 0..400 {
                    let len = random.below(if i % 20 == 0 { 100_000 } else { 3000 });
                    let payload = vec![random.next() as u8; len];
                    let mut told = Lsn::ZERO;
                    let end = storage.wal.append(70, &payload, |lsn| told = lsn);
                    assert_eq!(told, end);
                    if i % 16 == 0 {
                        storage.wal.flush(end).unwrap();
                        assert!(storage.wal.flushed() >= end);
                    }
                    own.push((70, payload, end));
                }
                expected.lock().unwrap().append(&mut own);
            });
        }
    });
    let mut expected = expected.into_inner().unwrap();
    expected.sort_by_key(|(_, _, end)| *end);
    storage.wal.flush(storage.wal.insert_position()).unwrap();
    assert!(storage.stats().wal_bytes > 8 << 20, "the ring of 1 MiB has wrapped");
    storage.abandon();
    drop(storage);
    let (_storage, memory) = open(&dir, &options);
    assert!(*memory.payloads.lock().unwrap() == expected);
}

#[test]
fn checkpoints_under_load_lose_nothing_whenever_the_crash_comes() {
    for round in 0..4_u64 {
        let dir = TempDir::new("fuzzy");
        let mut options = tiny();
        options.frames = 64;
        options.max_wal_size = Some(2 << 20);
        let (storage, _) = open(&dir, &options);
        make_relation(&storage, REL, 50);
        let acknowledged: Arc<Vec<AtomicU64>> =
            Arc::new((0..50).map(|_| AtomicU64::new(0)).collect());
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for t in 0..4 {
                let (storage, acknowledged, stop) = (&storage, &acknowledged, &stop);
                scope.spawn(move || {
                    let mut random = Random(round * 10 + t + 1);
                    // Each thread has pages of its own, so that the last value is known.
                    while !stop.load(Ordering::Relaxed) {
                        let block = random.below(12) * 4 + t as usize;
                        let end = increment(storage, block as u32);
                        let value = acknowledged[block].load(Ordering::Relaxed) + 1;
                        if random.below(4) == 0 && storage.wal.flush(end).is_ok() {
                            acknowledged[block].store(value, Ordering::Relaxed);
                        } else {
                            // Not acknowledged: may be there or not.
                            break_even(storage, block as u32, &acknowledged[block]);
                        }
                    }
                });
            }
            for _ in 0..15 + round * 7 {
                storage.checkpoint().unwrap();
            }
            stop.store(true, Ordering::Relaxed);
        });
        storage.abandon();
        drop(storage);
        let (storage, _) = open(&dir, &options);
        total(&storage, 50);
        for (block, acknowledged) in acknowledged.iter().enumerate() {
            let page = body(&storage, PageId::main(REL, block as u32));
            let (got, least) = (number_at(&page, 0), acknowledged.load(Ordering::Relaxed));
            assert!(got >= least, "page {block}: {got} of {least} acknowledged changes");
        }
    }
}

/// Takes over the page's value as the one to go on from, if it gets acknowledged.
fn break_even(storage: &Storage, block: u32, acknowledged: &AtomicU64) {
    let page = storage.pool.pin(PageId::main(REL, block)).unwrap();
    let (value, lsn) = {
        let guard = page.read();
        (number_at(guard.page(), PAGE_HEADER), guard.lsn())
    };
    if storage.wal.flush(lsn).is_ok() {
        acknowledged.store(value, Ordering::Relaxed);
    }
}

#[test]
fn log_segments_are_recycled_and_their_number_stays_bounded() {
    let dir = TempDir::new("recycle");
    let mut options = tiny();
    options.max_wal_size = Some(1 << 20);
    let (storage, _) = open(&dir, &options);
    make_relation(&storage, REL, 4);
    for round in 0..6 {
        for i in 0..400_u32 {
            let end = put(&storage, PageId::main(REL, i % 4), 1000, &[round; 1000]);
            if i % 50 == 0 {
                storage.wal.flush(end).unwrap();
            }
        }
        storage.checkpoint().unwrap();
        let count = std::fs::read_dir(dir.0.join("wal")).unwrap().count();
        assert!(count <= 2 * 16 + 4, "{count} segments of 64 kB");
    }
    storage.abandon();
    drop(storage);
    let (storage, _) = open(&dir, &options);
    assert_eq!(body(&storage, PageId::main(REL, 3))[990], 5);
}

#[test]
fn nothing_is_written_when_nothing_was_logged() {
    let dir = TempDir::new("idle");
    let (storage, _) = open(&dir, &tiny());
    make_relation(&storage, REL, 4);
    storage.checkpoint().unwrap();
    let before = storage.stats();
    for block in 0..4 {
        storage.pool.pin(PageId::main(REL, block)).unwrap().read().hint_or_u16(20, 1);
    }
    storage.checkpoint().unwrap();
    let after = storage.stats();
    assert_eq!((before.writes, before.wal_bytes), (after.writes, after.wal_bytes));
    assert_eq!(storage.block_count(REL, Fork::Main).unwrap(), 4);
}

#[test]
fn a_scan_of_many_pages_leaves_those_in_use_in_memory() {
    let dir = TempDir::new("scan");
    let mut options = tiny();
    options.frames = 32;
    let (storage, _) = open(&dir, &options);
    make_relation(&storage, REL, 400);
    storage.checkpoint().unwrap();
    let reads = || storage.stats().reads;
    let use_hot = || (0..8).for_each(|b| drop(storage.pool.pin(PageId::main(REL, b)).unwrap()));
    (0..5).for_each(|_| use_hot());
    let mut again = 0;
    for block in 8..400 {
        drop(storage.pool.pin_scan(PageId::main(REL, block)).unwrap());
        if block % 8 == 0 {
            let before = reads();
            use_hot();
            again += reads() - before;
        }
    }
    assert_eq!(again, 0, "pages in use were evicted by the scan");
}

#[test]
fn the_pool_grows_and_shrinks_under_load() {
    let dir = TempDir::new("resize");
    let (storage, _) = open(&dir, &tiny());
    make_relation(&storage, REL, 150);
    let stop = AtomicBool::new(false);
    let changes = AtomicU64::new(0);
    thread::scope(|scope| {
        for t in 0..3_u64 {
            let (storage, stop, changes) = (&storage, &stop, &changes);
            scope.spawn(move || {
                let mut random = Random(t + 9);
                while !stop.load(Ordering::Relaxed) {
                    increment(storage, random.below(150) as u32);
                    changes.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for frames in [200, 16, 100, 40, 1000, 30, 24].repeat(4) {
            storage.pool.resize(frames, Duration::from_secs(60)).unwrap();
            assert_eq!(storage.pool.frames(), frames);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(total(&storage, 150), changes.into_inner());
    let code = |e: base::Result<()>| e.unwrap_err().code().as_str().to_owned();
    assert_eq!(code(storage.pool.resize(3, Duration::ZERO)), "22023");

    storage.pool.resize(40, Duration::ZERO).unwrap();
    let pins: Vec<_> = (0..40).map(|b| storage.pool.pin(PageId::main(REL, b)).unwrap()).collect();
    assert_eq!(code(storage.pool.resize(20, Duration::ZERO)), "55006");
    assert_eq!(storage.pool.frames(), 40);
    drop(pins);
    storage.pool.resize(20, Duration::ZERO).unwrap();
    let pins: Vec<_> = (0..20).map(|b| storage.pool.pin(PageId::main(REL, b)).unwrap()).collect();
    assert!(storage.pool.pin(PageId::main(REL, 20)).is_err(), "twenty frames are all there are");
    drop(pins);
}

#[test]
fn the_log_buffers_grow_and_shrink_under_load() {
    let dir = TempDir::new("ring");
    let (storage, _) = open(&dir, &tiny());
    make_relation(&storage, REL, 50);
    let stop = AtomicBool::new(false);
    let changes = AtomicU64::new(0);
    thread::scope(|scope| {
        for t in 0..4_u64 {
            let (storage, stop, changes) = (&storage, &stop, &changes);
            scope.spawn(move || {
                let mut random = Random(t + 5);
                while !stop.load(Ordering::Relaxed) {
                    // Some records are long, so that they wrap round and wait for space.
                    if random.below(8) == 0 {
                        storage.wal.append(40, &vec![7; 1 + random.below(3 << 20)], |_| ());
                    }
                    increment(storage, random.below(50) as u32);
                    changes.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for megabytes in [16, 8, 64, 9, 32, 8].repeat(5) {
            storage.wal.set_buffers(megabytes << 20);
            let wanted = (megabytes << 20_usize).next_power_of_two() as u64;
            while storage.wal.buffers() != wanted {
                thread::yield_now();
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    storage.wal.flush(storage.wal.insert_position()).unwrap();
    storage.abandon();
    drop(storage);
    let (storage, _) = open(&dir, &tiny());
    assert_eq!(total(&storage, 50), changes.into_inner(), "the log has them all");
}

#[test]
fn the_mapping_is_divided_anew_under_load() {
    let dir = TempDir::new("partitions");
    let (storage, _) = open(&dir, &tiny());
    make_relation(&storage, REL, 150);
    let stop = AtomicBool::new(false);
    let changes = AtomicU64::new(0);
    thread::scope(|scope| {
        for t in 0..3_u64 {
            let (storage, stop, changes) = (&storage, &stop, &changes);
            scope.spawn(move || {
                let mut random = Random(t + 3);
                while !stop.load(Ordering::Relaxed) {
                    increment(storage, random.below(150) as u32);
                    changes.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for partitions in [1, 512, 3, 4096, 16].repeat(20) {
            storage.pool.set_partitions(partitions).unwrap();
            assert_eq!(storage.pool.partitions(), partitions.next_power_of_two());
            storage.pool.resize(20 + partitions % 7, Duration::from_secs(60)).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(total(&storage, 150), changes.into_inner());
}

#[test]
fn a_flush_that_was_only_asked_for_comes_soon() {
    let dir = TempDir::new("soon");
    let (storage, _) = open(&dir, &tiny());
    let mut end = Lsn::ZERO;
    for _ in 0..200 {
        end = storage.wal.append(40, &[1; 100], |_| ());
        storage.wal.request_flush(end);
    }
    // Nobody waits by `flush` here.
    while storage.wal.flushed() < end {
        thread::yield_now();
    }
    // Asking once more for what is there wakes nobody; a waiter is served at once.
    storage.wal.request_flush(end);
    let end = storage.wal.append(40, &[1; 100], |_| ());
    storage.wal.flush(end).unwrap();
    assert!(storage.wal.flushed() >= end);
}
