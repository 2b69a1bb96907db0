//! Everything at once in a pool of a few frames: changes, readers, relations that come and go, cuts
//! and extensions, checkpoints, evictions. Once for each way to take a pin.

mod common;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use base::settings::{self, Settings, setting};
use base::{Fork, PageId, RelId};
use common::*;
use storage::{PAGE_HEADER, Page, PageView, Storage};

const SHARED: RelId = RelId(50000);
const SHARED_BLOCKS: usize = 40;

fn stamp(page: &Page) -> (u64, u64) {
    let word = |at: usize| page[at..at + 8].iter().fold(0, |n, b| n << 8 | u64::from(*b));
    (word(PAGE_HEADER), word(8184))
}

fn stamp_seen(page: PageView<'_>) -> (u64, u64) {
    let word = |at: usize| page.copy(at).map_or(0, u64::from_be_bytes);
    (word(PAGE_HEADER), word(8184))
}

fn change(storage: &Storage, id: PageId, value: u64) {
    let mut mtr = storage.mtr();
    let page = mtr.latch(id).unwrap();
    mtr.put(page, PAGE_HEADER, &value.to_be_bytes());
    mtr.put(page, 8184, &value.to_be_bytes());
    mtr.commit();
}

fn expect_whole(storage: &Storage, id: PageId) {
    let pinned = storage.pool.pin(id).unwrap();
    assert_eq!(pinned.id(), id);
    let second = pinned.again();
    if let Some((a, b)) = second.optimistic(stamp_seen) {
        assert_eq!(a, b, "optimistic read of {id:?}");
    }
    if let Some((a, b)) = storage.pool.read_optimistic(id, stamp_seen) {
        assert_eq!(a, b, "read of {id:?} without a pin");
    }
    let guard = pinned.read();
    guard.hint_or_u16(4096, 1);
    let (a, b) = stamp(guard.page());
    assert_eq!(a, b, "{id:?}");
}

/// Makes a relation, fills it, cuts it, extends it, drops it; its pages always hold its own number.
fn live_and_die(storage: &Storage, rel: RelId, random: &mut Random) {
    storage.create_relation(rel).unwrap();
    let own = u64::from(rel.0);
    let mut blocks = 0;
    for _ in 0..4 {
        let more = 1 + random.below(12) as u32;
        assert_eq!(storage.extend(rel, Fork::Main, more).unwrap(), blocks);
        for block in blocks..blocks + more {
            let mut mtr = storage.mtr();
            let page = mtr.add(storage.pool.pin_new(PageId::main(rel, block)).unwrap().write());
            assert_eq!(stamp(mtr.page(page)), (0, 0), "a new page is zero");
            mtr.init(page);
            mtr.put(page, PAGE_HEADER, &own.to_be_bytes());
            mtr.put(page, 8184, &own.to_be_bytes());
            mtr.commit();
        }
        blocks += more;
        for _ in 0..20 {
            let id = PageId::main(rel, random.below(blocks as usize) as u32);
            assert_eq!(stamp(storage.pool.pin(id).unwrap().read().page()), (own, own), "{id:?}");
        }
        blocks -= random.below(blocks as usize + 1) as u32;
        storage.truncate(rel, Fork::Main, blocks).unwrap();
        assert_eq!(storage.block_count(rel, Fork::Main).unwrap(), blocks);
    }
    storage.drop_relation(rel).unwrap();
    assert_eq!(storage.block_count(rel, Fork::Main).unwrap(), 0);
}

fn run(seed: u64) {
    let dir = TempDir::new("stress");
    let mut options = tiny();
    options.max_wal_size = Some(1 << 20);
    let (storage, _) = open(&dir, &options);
    make_relation(&storage, SHARED, SHARED_BLOCKS as u32);
    let next_rel = AtomicU32::new(60000);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..5_u64)
            .map(|t| {
                let (storage, next_rel) = (&storage, &next_rel);
                scope.spawn(move || {
                    let mut random = Random(seed * 100 + t + 1);
                    for i in 0..400_u64 {
                        let id = PageId::main(SHARED, random.below(SHARED_BLOCKS) as u32);
                        match random.below(10) {
                            0 if i % 3 == 0 => {
                                let rel = RelId(next_rel.fetch_add(1, Ordering::Relaxed));
                                live_and_die(storage, rel, &mut random);
                            }
                            0..5 => change(storage, id, random.next()),
                            _ => expect_whole(storage, id),
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                storage.checkpoint().unwrap();
            }
        });
        let results: Vec<_> = workers.into_iter().map(|w| w.join()).collect();
        stop.store(true, Ordering::Relaxed);
        assert!(results.iter().all(Result::is_ok));
    });
    let page = |block| body(&storage, PageId::main(SHARED, block));
    let expected: Vec<_> = (0..SHARED_BLOCKS as u32).map(page).collect();
    if seed.is_multiple_of(2) {
        storage.wal.flush(storage.wal.insert_position()).unwrap();
        storage.abandon();
    } else {
        storage.shutdown().unwrap();
    }
    drop(storage);
    let (storage, _) = open(&dir, &options);
    for (block, expected) in expected.iter().enumerate() {
        let mut got = body(&storage, PageId::main(SHARED, block as u32));
        // The hint may be lost.
        got[4096 - PAGE_HEADER] = expected[4096 - PAGE_HEADER];
        assert!(got == *expected, "page {block}");
    }
}

#[test]
fn nothing_is_mixed_up_or_lost_however_pins_are_taken() {
    for mode in ["add", "cas"] {
        let mut settings = Settings::default();
        let value = settings::parse(setting::BUFFER_PIN_MODE, mode).unwrap();
        settings.set(setting::BUFFER_PIN_MODE, value);
        settings::publish_live(&settings);
        for seed in 1..=4 {
            run(seed);
        }
    }
}
