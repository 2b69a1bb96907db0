//! Crashes and what is there afterwards.

mod common;

use base::{Fork, PageId, RelId};
use common::*;
use storage::{Options, Storage};

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
        // A log that is synced is written past the system's cache.
        let options = Options { fsync: Some(seed % 2 == 0), ..tiny() };
        let (mut storage, _) = open(&dir, &options);
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
            storage = open(&dir, &options).0;
            model.check(&storage);
        }
    }
}

/// Opens, crashes at once and lets the caller damage what is on disk.
fn crash(storage: std::sync::Arc<Storage>) {
    storage.abandon();
    drop(storage);
}

fn file_of(dir: &TempDir) -> std::path::PathBuf {
    dir.0.join("base").join(REL.0.to_string())
}

/// The last log segment that holds bytes of a record, and where its last byte is.
fn log_end(dir: &TempDir) -> (std::path::PathBuf, usize) {
    let mut segments: Vec<_> =
        std::fs::read_dir(dir.0.join("wal")).unwrap().map(|e| e.unwrap().path()).collect();
    segments.sort();
    let with_bytes = segments.into_iter().rev().find_map(|path| {
        let bytes = std::fs::read(&path).unwrap();
        bytes.iter().rposition(|b| *b != 0).map(|last| (path, last))
    });
    with_bytes.unwrap()
}

#[test]
fn a_torn_page_is_repaired_from_its_image() {
    let dir = TempDir::new("torn");
    let (storage, _) = open(&dir, &tiny());
    make_relation(&storage, REL, 2);
    for block in 0..2 {
        put(&storage, PageId::main(REL, block), 5000, b"before");
    }
    storage.checkpoint().unwrap();
    let images = storage.stats().wal_images;
    put(&storage, PageId::main(REL, 0), 100, b"first");
    let end = put(&storage, PageId::main(REL, 0), 200, b"second");
    assert_eq!(storage.stats().wal_images, images + 1, "only the first change needs an image");
    storage.wal.flush(end).unwrap();
    crash(storage);

    let mut bytes = std::fs::read(file_of(&dir)).unwrap();
    bytes[4096..8192].fill(0xA5);
    std::fs::write(file_of(&dir), &bytes).unwrap();
    let (storage, _) = open(&dir, &tiny());
    let page = body(&storage, PageId::main(REL, 0));
    assert_eq!(
        (&page[84..89], &page[184..190], &page[4984..4990]),
        (b"first".as_slice(), b"second".as_slice(), b"before".as_slice())
    );
}

#[test]
fn a_wrong_checksum_is_an_error_that_names_the_page() {
    let dir = TempDir::new("checksum");
    let (storage, _) = open(&dir, &tiny());
    make_relation(&storage, REL, 2);
    put(&storage, PageId::main(REL, 1), 5000, b"x");
    storage.shutdown().unwrap();
    drop(storage);
    let mut bytes = std::fs::read(file_of(&dir)).unwrap();
    bytes[8192 + 6000] ^= 1;
    std::fs::write(file_of(&dir), &bytes).unwrap();
    let (storage, _) = open(&dir, &tiny());
    for _ in 0..2 {
        let Err(error) = storage.pool.pin(PageId::main(REL, 1)) else { panic!("it was accepted") };
        assert_eq!(error.code().as_str(), "XX001");
        assert_eq!(error.message(), "invalid page in block 1 of file \"base/20000\"");
    }
    assert!(storage.pool.pin(PageId::main(REL, 0)).is_ok());
    let beyond = storage.pool.pin(PageId::main(REL, 9)).err().unwrap();
    assert_eq!(beyond.code().as_str(), "XX001");
}

#[test]
fn the_log_ends_at_the_first_damaged_record_and_goes_on_from_there() {
    let dir = TempDir::new("tail");
    let (storage, _) = open(&dir, &tiny());
    make_relation(&storage, REL, 1);
    storage.checkpoint().unwrap();
    let id = PageId::main(REL, 0);
    put(&storage, id, 100, b"kept");
    let kept = storage.wal.append(50, b"kept", |_| ());
    let lost = storage.wal.append(50, b"lost", |_| ());
    // Of the same length as what will take the lost record's place, so that it would fit on.
    let after = storage.wal.append(50, b"then", |_| ());
    storage.wal.flush(after).unwrap();
    crash(storage);

    let (path, last) = log_end(&dir);
    let mut bytes = std::fs::read(&path).unwrap();
    let size = (after.0 - lost.0) as usize;
    bytes[last - size] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let (storage, memory) = open(&dir, &tiny());
    let payloads = memory.payloads.lock().unwrap().clone();
    assert_eq!(payloads.iter().map(|p| p.2).collect::<Vec<_>>(), [kept]);
    assert_eq!(body(&storage, id)[84..88], *b"kept");
    assert_eq!(storage.wal.insert_position(), kept);
    let again = storage.wal.append(50, b"new!", |_| ());
    assert_eq!(again, lost, "the new record has the lost one's place");
    storage.wal.flush(again).unwrap();
    crash(storage);

    let (_storage, memory) = open(&dir, &tiny());
    let payloads = memory.payloads.lock().unwrap().clone();
    assert_eq!(payloads.len(), 1, "what followed the lost record does not come back");
    assert_eq!(payloads[0].1, b"new!");
}

#[test]
fn a_log_cut_anywhere_gives_a_prefix() {
    let dir = TempDir::new("prefix");
    let mut options = tiny();
    options.wal_segment_size = 1 << 20;
    let (storage, _) = open(&dir, &options);
    let start = storage.wal.insert_position().0;
    let ends: Vec<_> =
        (0..40_u8).map(|i| storage.wal.append(9, &vec![i; i as usize], |_| ())).collect();
    storage.wal.flush(ends[39]).unwrap();
    crash(storage);
    let (path, _) = log_end(&dir);
    let whole = std::fs::read(&path).unwrap();
    let control = std::fs::read(dir.0.join("threadgres.control")).unwrap();
    for cut in (start..ends[39].0).step_by(37) {
        let mut bytes = whole.clone();
        bytes[(cut - start) as usize..].fill(0x5A);
        std::fs::write(&path, &bytes).unwrap();
        std::fs::write(dir.0.join("threadgres.control"), &control).unwrap();
        let (storage, memory) = open(&dir, &options);
        let complete = ends.iter().filter(|e| e.0 <= cut).count();
        assert_eq!(memory.payloads.lock().unwrap().len(), complete, "cut at {cut}");
        crash(storage);
    }
}

#[test]
fn a_payload_larger_than_a_record_comes_back_whole() {
    let dir = TempDir::new("parts");
    let (storage, _) = open(&dir, &tiny());
    let large: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
    let mut told = None;
    let end = storage.wal.append(60, &large, |lsn| told = Some(lsn));
    assert_eq!(told, Some(end));
    storage.wal.flush(end).unwrap();
    crash(storage);
    let (_storage, memory) = open(&dir, &tiny());
    let payloads = memory.payloads.lock().unwrap();
    assert_eq!(payloads.len(), 1);
    assert!(payloads[0].0 == 60 && payloads[0].1 == large && payloads[0].2 == end);
}

/// Fails at the n-th payload.
struct Failing(std::sync::atomic::AtomicI64);

impl storage::Participant for Failing {
    fn restore(&self, _: &[u8]) -> base::Result<()> {
        Ok(())
    }
    fn redo(&self, _: u8, _: &[u8], _: base::Lsn) -> base::Result<()> {
        match self.0.fetch_sub(1, std::sync::atomic::Ordering::Relaxed) {
            1 => Err(base::Error::internal("crash here")),
            _ => Ok(()),
        }
    }
    fn recovered(&self, _: base::Lsn) -> base::Result<()> {
        Ok(())
    }
    fn checkpoint(&self, _: base::Lsn) -> base::Result<Vec<u8>> {
        Ok(Vec::new())
    }
}

#[test]
fn a_recovery_that_crashes_half_way_starts_again() {
    let dir = TempDir::new("halfway");
    let mut random = Random(77);
    let (storage, _) = open(&dir, &tiny());
    make_relation(&storage, REL, 60);
    storage.checkpoint().unwrap();
    let mut model = Model::new(REL, 60);
    let mut end = storage.wal.insert_position();
    for _ in 0..300 {
        model.step(&storage, &mut random);
        end = storage.wal.append(7, b"step", |_| ());
    }
    storage.wal.flush(end).unwrap();
    crash(storage);
    for stop_at in [1, 50, 299, 130, 300] {
        let failing = std::sync::Arc::new(Failing(stop_at.into()));
        let opened = Storage::open_with(&dir.0, failing, tiny());
        let error = opened.err().unwrap();
        assert_eq!(error.message(), "crash here");
        assert!(error.fields().context.as_ref().unwrap().starts_with("redo of the log record at"));
    }
    let (storage, memory) = open(&dir, &tiny());
    assert_eq!(memory.payloads.lock().unwrap().len(), 300);
    model.check(&storage);
}

#[test]
fn files_are_made_cut_and_filled_again_by_redo() {
    let dir = TempDir::new("files");
    let (storage, _) = open(&dir, &tiny());
    storage.checkpoint().unwrap();
    make_relation(&storage, REL, 10);
    storage.create_relation(RelId(20001)).unwrap();
    put(&storage, PageId::main(REL, 7), 100, b"gone");
    put(&storage, PageId::main(REL, 2), 100, b"stays");
    storage.truncate(REL, Fork::Main, 5).unwrap();
    assert_eq!(storage.block_count(REL, Fork::Main).unwrap(), 5);
    assert_eq!(storage.extend(REL, Fork::Main, 3).unwrap(), 5);
    assert!(body(&storage, PageId::main(REL, 7)).iter().all(|b| *b == 0));
    assert_eq!(storage.extend(REL, Fork::Fsm, 2).unwrap(), 0);
    let end = put(&storage, PageId { rel: REL, fork: Fork::Fsm, block: 1 }, 40, b"fsm");
    storage.wal.flush(end).unwrap();
    crash(storage);
    for entry in std::fs::read_dir(dir.0.join("base")).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }

    let (storage, _) = open(&dir, &tiny());
    assert_eq!(storage.relations().unwrap(), [REL, RelId(20001)]);
    assert_eq!(storage.block_count(RelId(20001), Fork::Main).unwrap(), 0);
    assert_eq!(storage.block_count(REL, Fork::Main).unwrap(), 5);
    assert_eq!(storage.block_count(REL, Fork::Fsm).unwrap(), 2);
    assert_eq!(body(&storage, PageId::main(REL, 2))[84..89], *b"stays");
    let fsm = PageId { rel: REL, fork: Fork::Fsm, block: 1 };
    assert_eq!(body(&storage, fsm)[24..27], *b"fsm");

    storage.drop_relation(REL).unwrap();
    assert_eq!(storage.relations().unwrap(), [RelId(20001)]);
    assert_eq!(storage.block_count(REL, Fork::Main).unwrap(), 0);
    assert!(storage.pool.pin(PageId::main(REL, 2)).is_err(), "its pages have left the pool");
    storage.checkpoint().unwrap();
}

#[test]
fn directories_that_are_not_ours_or_in_use_are_refused() {
    let dir = TempDir::new("refused");
    let code = |e: base::Error| e.code().as_str().to_owned();
    let participant = || std::sync::Arc::new(Memory::default());
    assert_eq!(code(Storage::open(&dir.0, participant()).err().unwrap()), "55000");
    std::fs::create_dir_all(&dir.0).unwrap();
    std::fs::write(dir.0.join("mine.txt"), b"x").unwrap();
    let error = Storage::create(&dir.0).unwrap_err();
    assert!(error.fields().hint.is_some());
    assert_eq!(code(error), "55000");
    assert_eq!(std::fs::read_dir(&dir.0).unwrap().count(), 1, "nothing was touched");
    std::fs::remove_file(dir.0.join("mine.txt")).unwrap();
    let (storage, _) = open_in_existing(&dir);
    let error = Storage::open(&dir.0, participant()).err().unwrap();
    assert!(error.message().contains(&std::process::id().to_string()));
    assert_eq!(code(error), "55006");
    assert_eq!(code(Storage::create(&dir.0).unwrap_err()), "55000");
    storage.shutdown().unwrap();
    drop(storage);
    std::fs::write(dir.0.join("threadgres.control"), b"THRDGRES rubbish and more of it").unwrap();
    assert!(Storage::open(&dir.0, participant()).is_err());
}

fn open_in_existing(dir: &TempDir) -> (std::sync::Arc<Storage>, std::sync::Arc<Memory>) {
    Storage::create_with(&dir.0, &tiny()).unwrap();
    open(dir, &tiny())
}

/// The files of `base/`, as they were durable at the last checkpoint.
type Files = Vec<(std::path::PathBuf, Vec<u8>)>;

fn snapshot(dir: &TempDir) -> Files {
    let read = |e: std::io::Result<std::fs::DirEntry>| {
        let path = e.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        (path, bytes)
    };
    std::fs::read_dir(dir.0.join("base")).unwrap().map(read).collect()
}

/// The rest of writes that were not synced after a power failure: of each page the old bytes, the new
/// ones, or a mixture of both by sectors; of files that grew, any length.
fn power_failure(dir: &TempDir, durable: &Files, random: &mut Random) {
    for (path, new) in snapshot(dir) {
        let old = durable.iter().find(|(p, _)| *p == path).map_or(&[][..], |(_, bytes)| bytes);
        let mut mixed = new.clone();
        for (at, sector) in mixed.chunks_mut(512).enumerate() {
            let mut before = vec![0; sector.len()];
            if let Some(bytes) = old.get(at * 512..at * 512 + sector.len()) {
                before.copy_from_slice(bytes);
            }
            if random.below(2) == 0 {
                sector.copy_from_slice(&before);
            }
        }
        let grown = new.len() - old.len().min(new.len());
        mixed.truncate(new.len() - random.below(grown / 512 + 1) * 512);
        std::fs::write(&path, &mixed).unwrap();
    }
}

#[test]
fn a_power_failure_that_mixes_old_and_new_sectors_loses_nothing() {
    for seed in 1..=10_u64 {
        let mut random = Random(seed * 0x1234_5677);
        let dir = TempDir::new("power");
        let mut options = Options { fsync: Some(seed % 2 == 0), ..tiny() };
        options.max_wal_size = Some(1 << 40);
        let (mut storage, _) = open(&dir, &options);
        make_relation(&storage, REL, 40);
        let mut model = Model::new(REL, 40);
        for _ in 0..4 {
            storage.checkpoint().unwrap();
            let mut durable = snapshot(&dir);
            let mut end = storage.wal.insert_position();
            for _ in 0..random.below(300) {
                end = model.step(&storage, &mut random).max(end);
                match random.below(100) {
                    0 => {
                        storage.checkpoint().unwrap();
                        durable = snapshot(&dir);
                    }
                    1 => {
                        let first = storage.extend(REL, Fork::Main, 3).unwrap();
                        assert_eq!(first as usize, model.pages.len());
                        model.pages.resize(first as usize + 3, vec![0; storage::PAGE_SIZE]);
                    }
                    2 if model.pages.len() > 20 => {
                        let blocks = model.pages.len() - random.below(5);
                        storage.truncate(REL, Fork::Main, blocks as u32).unwrap();
                        model.pages.truncate(blocks);
                    }
                    _ => {}
                }
            }
            storage.wal.flush(end).unwrap();
            crash(storage);
            power_failure(&dir, &durable, &mut random);
            storage = open(&dir, &options).0;
            let blocks = storage.block_count(REL, Fork::Main).unwrap() as usize;
            assert!(blocks <= model.pages.len());
            assert!(
                model.pages[blocks..].iter().all(|p| p.iter().all(|b| *b == 0)),
                "only pages that nobody touched may be missing"
            );
            model.pages.truncate(blocks);
            model.check(&storage);
        }
    }
}
