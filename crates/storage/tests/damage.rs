//! A missing or damaged file stops the start with its name; a torn tail does not; a process that only looks changes
//! nothing.

mod common;

use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use base::{Fork, Lsn, PageId, RelId};
use common::*;
use storage::{Options, Storage};

const REL: RelId = RelId(20000);
const OTHER: RelId = RelId(20001);
const THIRD: RelId = RelId(20002);

/// The error of a start, its code and message; the directory is as it was afterwards.
fn refused(dir: &TempDir, options: &Options) -> (String, String) {
    let before = bytes(dir);
    let opened = Storage::open_with(&dir.0, Arc::new(Memory::default()), options.clone());
    let error = opened.err().expect("it is refused");
    assert!(bytes(dir) == before, "something was changed: {}", error.message());
    (error.code().as_str().to_owned(), error.message().to_owned())
}

/// All files but the lock.
fn bytes(dir: &TempDir) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    let mut folders = vec![dir.0.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with("threadgres.lock") {
                all.push((path.clone(), std::fs::read(path).unwrap()));
            }
        }
    }
    all.sort();
    all
}

fn segment(dir: &TempDir, options: &Options, at: Lsn) -> (PathBuf, u64) {
    let size = options.wal_segment_size;
    (dir.0.join(format!("wal/{:016X}", at.0 / size)), at.0 % size)
}

fn flip(dir: &TempDir, options: &Options, at: Lsn) {
    let (path, offset) = segment(dir, options, at);
    let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ 8], offset).unwrap();
}

/// A payload, made durable; where its record begins and ends.
fn commit(storage: &Storage, payload: &[u8]) -> (Lsn, Lsn) {
    let start = storage.wal.insert_position();
    let end = storage.wal.append(50, payload, |_| ());
    storage.wal.flush(end).unwrap();
    (start, end)
}

fn payloads(memory: &Memory) -> Vec<Vec<u8>> {
    memory.payloads.lock().unwrap().iter().map(|p| p.1.clone()).collect()
}

#[test]
fn a_damaged_record_before_a_later_commit_stops_the_start() {
    let dir = TempDir::new("middle");
    let mut options = tiny();
    let (storage, _) = open(&dir, &options);
    storage.checkpoint().unwrap();
    commit(&storage, b"one");
    let (second, _) = commit(&storage, b"two");
    commit(&storage, b"three");
    storage.abandon();
    drop(storage);
    flip(&dir, &options, Lsn(second.0 + 28));
    let (code, message) = refused(&dir, &options);
    assert_eq!(code, "XX001");
    assert!(
        message.starts_with(&format!("the write-ahead log is damaged at {second}: ")),
        "{message}"
    );
    options.accept_loss_from = Some(Lsn(second.0 + 8));
    refused(&dir, &options);

    // Said explicitly, it is given up, and the log goes on behind all that there was.
    options.accept_loss_from = Some(second);
    let (storage, memory) = open(&dir, &options);
    assert_eq!(payloads(&memory), [b"one".to_vec()]);
    assert!(storage.wal.insert_position().0 >= 1 << 40);
    assert!(dir.0.join("lost").read_dir().unwrap().count() > 0);
    commit(&storage, b"four");
    storage.abandon();
    drop(storage);
    // The same words at the next start do no harm.
    let (storage, memory) = open(&dir, &options);
    assert_eq!(payloads(&memory), [b"four".to_vec()]);
    storage.shutdown().unwrap();
}

/// A page of a relation gets other bytes, and a checkpoint has them.
fn change(storage: &Storage, block: u32, value: u64) {
    let mut mtr = storage.mtr();
    let page = mtr.latch(PageId::main(REL, block)).unwrap();
    mtr.put_u64(page, 64, value);
    mtr.commit();
    storage.checkpoint().unwrap();
}

#[test]
fn a_file_from_another_time_is_refused_at_its_first_use() {
    let dir = TempDir::new("old-copy");
    let options = tiny();
    let (storage, _) = open(&dir, &options);
    storage.create_relation(REL).unwrap();
    storage.extend(REL, Fork::Main, 4).unwrap();
    (0..4).for_each(|block| change(&storage, block, 1));
    storage.shutdown().unwrap();
    drop(storage);
    let path = dir.0.join(format!("base/{}", REL.0));
    let old = std::fs::read(&path).unwrap();
    for block in [2, 0, 3] {
        let (storage, _) = open(&dir, &options);
        assert_eq!(storage.block_count(REL, Fork::Main).unwrap(), 4);
        change(&storage, block, 2);
        // Whatever is changed afterwards does not make an old file pass.
        commit(&storage, b"later");
        storage.shutdown().unwrap();
        drop(storage);
        let sound = std::fs::read(&path).unwrap();
        for wrong in [&old, &vec![0; old.len()]] {
            std::fs::write(&path, wrong).unwrap();
            let (storage, _) = open(&dir, &options);
            let error = storage.block_count(REL, Fork::Main).unwrap_err();
            assert_eq!(error.code().as_str(), "XX001");
            assert!(error.message().ends_with("is from another time"), "{}", error.message());
            let findings = storage.check_files().unwrap();
            assert!(findings.iter().any(|f| f.contains("another time")), "{findings:?}");
            storage.abandon();
        }
        std::fs::write(&path, sound).unwrap();
    }
    // A page that was cut off, and came again as one of zeros, is no reason.
    let (storage, _) = open(&dir, &options);
    storage.truncate(REL, Fork::Main, 1).unwrap();
    storage.extend(REL, Fork::Main, 5).unwrap();
    storage.checkpoint().unwrap();
    storage.shutdown().unwrap();
    drop(storage);
    let (storage, _) = open(&dir, &options);
    assert_eq!(storage.block_count(REL, Fork::Main).unwrap(), 6);
    storage.shutdown().unwrap();
}

#[test]
fn a_torn_tail_is_cut_off() {
    let dir = TempDir::new("torn-tail");
    let options = tiny();
    let (storage, _) = open(&dir, &options);
    storage.checkpoint().unwrap();
    commit(&storage, b"kept");
    // In one piece, written and synced together: nobody knows of the one that the other was durable.
    let start = storage.wal.insert_position();
    storage.wal.append(50, b"torn", |_| ());
    let end = storage.wal.append(50, b"left out", |_| ());
    storage.wal.flush(end).unwrap();
    storage.abandon();
    drop(storage);
    flip(&dir, &options, Lsn(start.0 + 28));
    let (storage, memory) = open(&dir, &options);
    assert_eq!(payloads(&memory), [b"kept".to_vec()]);
    assert_eq!(storage.wal.insert_position(), start);
}

/// A server that has logged through some segments, and where each payload's record begins.
fn long_log(dir: &TempDir, options: &Options) -> Vec<Lsn> {
    let (storage, _) = open(dir, options);
    storage.checkpoint().unwrap();
    // One flush: no record knows of another.
    let mut starts = Vec::new();
    for n in 0..40_u8 {
        starts.push(storage.wal.insert_position());
        storage.wal.append(50, &vec![n; 6000], |_| ());
    }
    storage.wal.flush(storage.wal.insert_position()).unwrap();
    storage.abandon();
    starts
}

#[test]
fn segments_that_are_missing_short_or_damaged_before_others_stop_the_start() {
    let options = tiny();
    let size = options.wal_segment_size;
    let number = |at: Lsn| at.0 / size;
    for case in 0..4 {
        let dir = TempDir::new("segments");
        let starts = long_log(&dir, &options);
        let place = starts[20];
        assert!(number(place) + 1 < number(starts[39]), "segments follow");
        let (path, _) = segment(&dir, &options, place);
        let name = format!("wal/{:016X}", number(place));
        let code = match case {
            0 => {
                flip(&dir, &options, Lsn(place.0 + 100));
                "XX001"
            }
            1 => {
                std::fs::remove_file(&path).unwrap();
                "58P01"
            }
            2 => {
                std::fs::write(&path, b"").unwrap();
                "XX001"
            }
            _ => {
                let all = std::fs::read(&path).unwrap();
                std::fs::write(&path, &all[..all.len() / 2]).unwrap();
                "XX001"
            }
        };
        let (found, message) = refused(&dir, &options);
        assert_eq!(found, code, "case {case}: {message}");
        assert!(message.contains(&name), "case {case}: {message}");
    }
}

#[test]
fn a_clean_directory_needs_the_segment_in_which_the_log_goes_on() {
    let dir = TempDir::new("clean-segment");
    let options = tiny();
    let (storage, _) = open(&dir, &options);
    let (_, end) = commit(&storage, b"one");
    storage.shutdown().unwrap();
    drop(storage);
    std::fs::remove_file(segment(&dir, &options, end).0).unwrap();
    assert_eq!(refused(&dir, &options).0, "58P01");
}

#[test]
fn a_missing_or_shortened_file_is_an_error_unless_the_log_explains_it() {
    let dir = TempDir::new("listed");
    let options = tiny();
    let (storage, _) = open(&dir, &options);
    for rel in [REL, OTHER] {
        make_relation(&storage, rel, 6);
    }
    storage.checkpoint().unwrap();
    // The log says why these may be gone, or shorter.
    storage.truncate(REL, Fork::Main, 4).unwrap();
    storage.drop_relation(OTHER).unwrap();
    storage.abandon();
    drop(storage);
    let file = |rel: RelId| dir.0.join(format!("base/{}", rel.0));
    assert!(!file(OTHER).exists());
    let (storage, _) = open(&dir, &options);
    assert_eq!(storage.block_count(REL, Fork::Main).unwrap(), 4);
    assert!(!file(OTHER).exists(), "it is not made again");
    make_relation(&storage, THIRD, 3);
    storage.shutdown().unwrap();
    drop(storage);

    let (rel, other) = (std::fs::read(file(REL)).unwrap(), std::fs::read(file(THIRD)).unwrap());
    std::fs::remove_file(file(REL)).unwrap();
    let (code, message) = refused(&dir, &options);
    assert!(code == "58P01" && message.contains("base/20000"), "{message}");
    // A shortened one is found when it is used: a start does not look at every file.
    std::fs::write(file(REL), &rel[..8192 * 3 + 100]).unwrap();
    std::fs::write(file(THIRD), &other).unwrap();
    let (storage, _) = open(&dir, &options);
    for _ in 0..2 {
        let error = storage.block_count(REL, Fork::Main).unwrap_err();
        assert_eq!(error.code().as_str(), "XX001");
        assert!(
            error.message().contains("\"base/20000\" is too short: block 3"),
            "{}",
            error.message()
        );
    }
    assert_eq!(storage.block_count(THIRD, Fork::Main).unwrap(), 3);
    // It can be dropped, and then nobody misses it.
    storage.drop_relation(REL).unwrap();
    storage.abandon();
    drop(storage);
    let (storage, _) = open(&dir, &options);
    assert_eq!(storage.relations().unwrap(), [THIRD]);
    storage.shutdown().unwrap();
}

#[test]
fn relations_dropped_and_made_while_checkpoints_run_are_never_missed() {
    let dir = TempDir::new("churn");
    let options = tiny();
    for round in 0..6_u32 {
        let (storage, _) = open(&dir, &options);
        let checkpoints = {
            let storage = storage.clone();
            std::thread::spawn(move || {
                for _ in 0..30 {
                    storage.checkpoint().unwrap();
                }
            })
        };
        let mut kept = Vec::new();
        for n in 0..60 {
            let rel = RelId(30000 + round * 100 + n);
            make_relation(&storage, rel, 1 + n % 3);
            if n % 3 == 0 {
                kept.push(rel);
            } else {
                storage.drop_relation(rel).unwrap();
            }
        }
        checkpoints.join().unwrap();
        // Durable, so that they are there again.
        storage.wal.flush(storage.wal.insert_position()).unwrap();
        storage.abandon();
        drop(storage);
        let (storage, _) = open(&dir, &options);
        let there = storage.relations().unwrap();
        let ours = |rel: &RelId| (rel.0 - 30000) / 100 == round;
        assert_eq!(there.into_iter().filter(ours).collect::<Vec<_>>(), kept, "round {round}");
        storage.abandon();
    }
}

#[test]
fn who_looks_sees_what_recovery_would_leave_and_changes_nothing() {
    let dir = TempDir::new("look");
    let options = tiny();
    let (storage, _) = open(&dir, &options);
    make_relation(&storage, REL, 50);
    storage.checkpoint().unwrap();
    // More pages than the pool has frames, a relation that is made, one that is cut and extended.
    let mut end = Lsn::ZERO;
    for block in 0..50 {
        end = put(&storage, PageId::main(REL, block), 100, &block.to_le_bytes());
    }
    make_relation(&storage, OTHER, 40);
    storage.truncate(REL, Fork::Main, 45).unwrap();
    assert_eq!(storage.extend(REL, Fork::Main, 2).unwrap(), 45);
    end = put(&storage, PageId::main(REL, 45), 100, b"new!").max(end);
    storage.wal.flush(end).unwrap();
    storage.abandon();
    drop(storage);

    let before = bytes(&dir);
    let memory = Arc::new(Memory::default());
    let storage = Storage::look_with(&dir.0, memory, options.clone()).unwrap();
    for turn in 0..2 {
        for block in 0..45_u32 {
            let got = body(&storage, PageId::main(REL, block));
            assert_eq!(got[84..88], block.to_le_bytes(), "block {block}, turn {turn}");
        }
        assert_eq!(body(&storage, PageId::main(REL, 45))[84..88], *b"new!");
        for block in 0..40 {
            assert!(body(&storage, PageId::main(OTHER, block)).iter().all(|b| *b == 0));
        }
    }
    assert_eq!(storage.check_files().unwrap(), Vec::<String>::new());
    drop(storage);
    assert!(bytes(&dir) == before, "something was changed");
    let (storage, _) = open(&dir, &options);
    assert_eq!(body(&storage, PageId::main(REL, 45))[84..88], *b"new!");
}
