//! Shared parts of storage's tests: directories, tiny sizes, a participant that remembers, a model.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use base::{Fork, Lsn, PageId, RelId, Result};
use storage::{Options, PAGE_HEADER, PAGE_SIZE, Participant, Storage};

/// A directory that goes away with its owner.
pub struct TempDir(pub PathBuf);

impl TempDir {
    pub fn new(name: &str) -> TempDir {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("storage-{name}-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        TempDir(path)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Remembers the payloads that redo hands it, and counts those before the checkpoint in its state.
#[derive(Default)]
pub struct Memory {
    pub restored: Mutex<Vec<u8>>,
    pub payloads: Mutex<Vec<(u8, Vec<u8>, Lsn)>>,
    pub state: Mutex<Vec<u8>>,
}

impl Participant for Memory {
    fn restore(&self, state: &[u8]) -> Result<()> {
        *self.restored.lock().unwrap() = state.to_vec();
        *self.state.lock().unwrap() = state.to_vec();
        Ok(())
    }
    fn redo(&self, code: u8, payload: &[u8], lsn: Lsn) -> Result<()> {
        self.payloads.lock().unwrap().push((code, payload.to_vec(), lsn));
        Ok(())
    }
    fn recovered(&self, _lsn: Lsn) -> Result<()> {
        Ok(())
    }
    fn checkpoint(&self, _redo: Lsn) -> Result<Vec<u8>> {
        Ok(self.state.lock().unwrap().clone())
    }
}

/// Sizes that make a test cross every limit.
pub fn tiny() -> Options {
    Options {
        frames: 24,
        partitions: 4,
        wal_buffers: 1 << 20,
        wal_segment_size: 64 << 10,
        max_wal_size: Some(16 << 20),
        fsync: Some(false),
        max_files: Some(16),
        accept_loss_from: None,
        follows: false,
    }
}

pub fn open(dir: &TempDir, options: &Options) -> (Arc<Storage>, Arc<Memory>) {
    if !dir.0.exists() {
        Storage::create_with(&dir.0, options).unwrap();
    }
    let memory = Arc::new(Memory::default());
    let storage = Storage::open_with(&dir.0, memory.clone(), options.clone()).unwrap();
    (storage, memory)
}

/// Makes a relation of initialised pages.
pub fn make_relation(storage: &Storage, rel: RelId, blocks: u32) {
    storage.create_relation(rel).unwrap();
    assert_eq!(storage.extend(rel, Fork::Main, blocks).unwrap(), 0);
    for block in 0..blocks {
        let guard = storage.pool.pin_new(PageId::main(rel, block)).unwrap().write();
        let mut mtr = storage.mtr();
        let page = mtr.add(guard);
        mtr.init(page);
        mtr.commit();
    }
}

/// Writes bytes by a mini-transaction of its own.
pub fn put(storage: &Storage, id: PageId, offset: usize, bytes: &[u8]) -> Lsn {
    let mut mtr = storage.mtr();
    let page = mtr.latch(id).unwrap();
    mtr.put(page, offset, bytes);
    mtr.commit()
}

/// The page's bytes after the header.
pub fn body(storage: &Storage, id: PageId) -> Vec<u8> {
    storage.pool.pin(id).unwrap().read().page()[PAGE_HEADER..].to_vec()
}

/// A small generator of random numbers (xorshift), so that a failing seed can be run again.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// The expected content of pages.
pub struct Model {
    pub rel: RelId,
    pub pages: Vec<Vec<u8>>,
}

impl Model {
    pub fn new(rel: RelId, blocks: u32) -> Model {
        Model { rel, pages: vec![vec![0; PAGE_SIZE]; blocks as usize] }
    }

    /// One random mini-transaction of one to three pages; returns its end.
    pub fn step(&mut self, storage: &Storage, random: &mut Random) -> Lsn {
        let mut blocks: Vec<usize> =
            (0..1 + random.below(3)).map(|_| random.below(self.pages.len())).collect();
        blocks.sort_unstable();
        blocks.dedup();
        let mut mtr = storage.mtr();
        let refs: Vec<_> =
            blocks.iter().map(|b| mtr.latch(PageId::main(self.rel, *b as u32)).unwrap()).collect();
        for _ in 0..1 + random.below(6) {
            let i = random.below(blocks.len());
            let page = &mut self.pages[blocks[i]];
            match random.below(20) {
                0 => {
                    mtr.init(refs[i]);
                    page[PAGE_HEADER..].fill(0);
                }
                1 => {
                    let bytes: Vec<u8> =
                        (0..random.below(8000)).map(|_| random.next() as u8).collect();
                    mtr.replace(refs[i], &bytes);
                    page[PAGE_HEADER..].fill(0);
                    page[PAGE_HEADER..PAGE_HEADER + bytes.len()].copy_from_slice(&bytes);
                }
                2..6 => {
                    let len = random.below(3000);
                    let from = PAGE_HEADER + random.below(PAGE_SIZE - PAGE_HEADER - len);
                    let to = PAGE_HEADER + random.below(PAGE_SIZE - PAGE_HEADER - len);
                    mtr.shift(refs[i], from, to, len);
                    page.copy_within(from..from + len, to);
                }
                _ => {
                    let len = random.below(100);
                    let at = PAGE_HEADER + random.below(PAGE_SIZE - PAGE_HEADER - len);
                    let bytes: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
                    mtr.put(refs[i], at, &bytes);
                    page[at..at + len].copy_from_slice(&bytes);
                }
            }
        }
        mtr.commit()
    }

    pub fn check(&self, storage: &Storage) {
        for (block, page) in self.pages.iter().enumerate() {
            let got = body(storage, PageId::main(self.rel, block as u32));
            assert!(got == page[PAGE_HEADER..], "page {block} differs");
        }
    }
}
