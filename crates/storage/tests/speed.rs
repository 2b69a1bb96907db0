//! Costs of the hot paths. Not a check: `cargo test -p storage --test speed -- --ignored --nocapture`.

mod common;

use std::thread;
use std::time::{Duration, Instant};

use base::{Fork, PageId, RelId};
use common::*;
use storage::{Options, Storage};

const REL: RelId = RelId(40000);

fn per_op(name: &str, count: u64, f: impl FnOnce()) {
    let begun = Instant::now();
    f();
    let ns = begun.elapsed().as_nanos() as f64 / count as f64;
    println!("{name:44} {ns:10.1} ns");
}

fn sizes(fsync: bool) -> Options {
    Options {
        frames: 16384,
        partitions: 512,
        wal_buffers: 16 << 20,
        fsync: Some(fsync),
        ..Options::from_settings()
    }
}

#[test]
#[ignore = "a measurement"]
fn hot_paths() {
    let dir = TempDir::new("speed");
    let options = sizes(false);
    let (storage, _) = open(&dir, &options);
    make_relation(&storage, REL, 4000);
    let n = 1_000_000_u64;
    let page = |i: u64| PageId::main(REL, (i.wrapping_mul(2_654_435_761) >> 7) as u32 % 4000);
    per_op("pin, unpin", n, || (0..n).for_each(|i| drop(storage.pool.pin(page(i)).unwrap())));
    per_op("pin, latch shared, release", n, || {
        (0..n).for_each(|i| drop(storage.pool.pin(page(i)).unwrap().read()));
    });
    per_op("pin, optimistic read", n, || {
        (0..n).for_each(|i| {
            std::hint::black_box(storage.pool.pin(page(i)).unwrap().optimistic(|p| p.u16(100)));
        });
    });
    per_op("optimistic read without a pin", n, || {
        (0..n).for_each(|i| {
            std::hint::black_box(storage.pool.read_optimistic(page(i), |p| p.u16(100)));
        });
    });
    per_op("append a payload of 40 bytes", n, || {
        (0..n).for_each(|_| {
            storage.wal.append(40, &[7; 40], |_| ());
        });
    });
    per_op("mini-transaction, one page, two puts", n, || {
        (0..n).for_each(|i| {
            let mut mtr = storage.mtr();
            let p = mtr.latch(page(i)).unwrap();
            mtr.put(p, 4000, &[1; 100]);
            mtr.put_u32(p, 20, i as u32);
            mtr.commit();
        });
    });
    for threads in [1_u64, 2, 4] {
        per_op(&format!("append, {threads} threads (wall time per record)"), n, || {
            thread::scope(|s| {
                for _ in 0..threads {
                    s.spawn(|| {
                        (0..n / threads).for_each(|_| {
                            storage.wal.append(40, &[7; 100], |_| ());
                        })
                    });
                }
            });
        });
    }
    println!("{:?}", storage.stats());
}

fn committers(storage: &Storage, threads: u64, time: Duration) -> u64 {
    let total = std::sync::atomic::AtomicU64::new(0);
    thread::scope(|s| {
        for _ in 0..threads {
            s.spawn(|| {
                let begun = Instant::now();
                while begun.elapsed() < time {
                    let end = storage.wal.append(40, &[7; 200], |_| ());
                    storage.wal.flush(end).unwrap();
                    total.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                }
            });
        }
    });
    total.into_inner()
}

#[test]
#[ignore = "a measurement"]
fn commits() {
    let dir = TempDir::new("commits");
    let (storage, _) = open(&dir, &sizes(true));
    for threads in [1, 2, 10, 100] {
        let before = storage.stats();
        let time = Duration::from_secs(2);
        let commits = committers(&storage, threads, time);
        let syncs = storage.stats().wal_syncs - before.wal_syncs;
        println!(
            "{threads:4} committers: {:8.0} commits/s, {:6.0} syncs/s",
            commits as f64 / time.as_secs_f64(),
            syncs as f64 / time.as_secs_f64()
        );
    }
}

#[test]
#[ignore = "a measurement"]
fn bulk_load() {
    let dir = TempDir::new("bulk");
    let (storage, _) = open(&dir, &sizes(true));
    storage.create_relation(REL).unwrap();
    let begun = Instant::now();
    let body = vec![7_u8; 8000];
    let pages = 64_000_u32;
    for batch in 0..pages / 64 {
        let first = storage.extend(REL, Fork::Main, 64).unwrap();
        assert_eq!(first, batch * 64);
        for block in first..first + 64 {
            let mut mtr = storage.mtr();
            let page = mtr.add(storage.pool.pin_new(PageId::main(REL, block)).unwrap().write());
            mtr.init(page);
            mtr.put(page, 16, &body);
            mtr.commit();
        }
    }
    storage.wal.flush(storage.wal.insert_position()).unwrap();
    let mb = f64::from(pages) * 8192.0 / 1e6;
    println!("{mb:.0} MB loaded in {:.2} s: {:?}", begun.elapsed().as_secs_f64(), storage.stats());
    let begun = Instant::now();
    storage.shutdown().unwrap();
    println!("shutdown: {:.2} s", begun.elapsed().as_secs_f64());
    drop(storage);
    let begun = Instant::now();
    let (storage, _) = open(&dir, &sizes(true));
    println!("open: {:.3} s", begun.elapsed().as_secs_f64());
    let begun = Instant::now();
    for block in 0..pages {
        drop(storage.pool.pin(PageId::main(REL, block)).unwrap());
    }
    println!("scan: {:.2} s", begun.elapsed().as_secs_f64());
}

#[test]
#[ignore = "a measurement"]
fn misses() {
    let dir = TempDir::new("misses");
    let (storage, _) = open(&dir, &Options { frames: 2048, ..sizes(false) });
    let pages = 32_000_u64;
    make_relation(&storage, REL, pages as u32);
    storage.checkpoint().unwrap();
    let file = std::fs::File::open(dir.0.join("base").join(REL.0.to_string())).unwrap();
    let block = |i: u64| (i.wrapping_mul(2_654_435_761) >> 5) % pages;
    let n = 200_000;
    let mut page = vec![0; 8192];
    per_op("pread alone", n, || {
        use std::os::unix::fs::FileExt;
        (0..n).for_each(|i| file.read_exact_at(&mut page, block(i) * 8192).unwrap());
    });
    per_op("CRC alone", n, || {
        (0..n).for_each(|_| {
            std::hint::black_box(crc32c::crc32c(&page));
        })
    });
    let before = storage.stats();
    for _ in 0..2 {
        per_op("pin of a page that is mostly missing", n, || {
            (0..n)
                .for_each(|i| drop(storage.pool.pin(PageId::main(REL, block(i) as u32)).unwrap()));
        });
    }
    let after = storage.stats();
    println!("{} hits, {} reads", after.hits - before.hits, after.reads - before.reads);
}

/// Context switches of all of the process's threads so far.
fn switches() -> u64 {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let of = |path: std::path::PathBuf| {
        let status = std::fs::read_to_string(path.join("status")).unwrap_or_default();
        let count = |l: &str| l.rsplit('\t').next().and_then(|n| n.parse::<u64>().ok());
        status.lines().filter(|l| l.contains("ctxt_switches")).filter_map(count).sum::<u64>()
    };
    threads.map(|t| of(t.unwrap().path())).sum()
}

#[test]
#[ignore = "a measurement"]
fn idle() {
    let dir = TempDir::new("idle");
    let (storage, _) = open(&dir, &sizes(false));
    make_relation(&storage, REL, 4000);
    storage.checkpoint().unwrap();
    thread::sleep(Duration::from_millis(300));
    let before = switches();
    thread::sleep(Duration::from_secs(3));
    println!("{} context switches in 3 s of idleness", switches() - before);
}

#[test]
#[ignore = "a measurement"]
fn recovery() {
    let dir = TempDir::new("redo");
    let options = Options { max_wal_size: Some(1 << 40), ..sizes(false) };
    let (storage, _) = open(&dir, &options);
    make_relation(&storage, REL, 30_000);
    let mut random = Random(5);
    for _ in 0..500_000 {
        let mut mtr = storage.mtr();
        let page = mtr.latch(PageId::main(REL, random.below(30_000) as u32)).unwrap();
        mtr.put(page, 16 + random.below(8000), &[7; 120]);
        mtr.payload(40, &[1; 16]);
        mtr.commit();
    }
    storage.wal.flush(storage.wal.insert_position()).unwrap();
    let bytes = storage.stats().wal_bytes;
    storage.abandon();
    drop(storage);
    let begun = Instant::now();
    let (storage, memory) = open(&dir, &options);
    println!(
        "{:.2} s for {} MB of log, {} payloads: {:?}",
        begun.elapsed().as_secs_f64(),
        bytes >> 20,
        memory.payloads.lock().unwrap().len(),
        storage.stats()
    );
}
