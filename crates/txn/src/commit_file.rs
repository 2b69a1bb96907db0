//! The commit log on disk: which transactions have committed, one bit each.
//!
//! ```text
//! DIR/commitlog/0000000003           2^20 transactions a file: here those from 3 * 2^20 on
//!
//!  0        8        12       16       24       32                                      131104
//!  +--------+--------+--------+--------+--------+------------------------------------------+
//!  |TGCOMMIT|version |CRC-32C |file no.|   0    | bit n of byte b: transaction 8 b + n     |
//!  +--------+--------+--------+--------+--------+------------------------------------------+
//! ```
//!
//! A checkpoint writes the files that hold transactions which may have ended since the last one: a new
//! file beside the old, synced, then renamed over it, then the directory is synced. So a crash at any
//! moment leaves each file whole, old or new. A file may know more commits than the checkpoint from
//! which recovery starts, never one whose record might be missing from the log.
//!
//! Crash cases: before the rename, the old file and redo of the commit records since the old checkpoint
//! give the same bits; after it, redo sets bits that are set already; a left-over `.new` file is ignored.
//!
//! Files are numbered without a gap from 0. How many there must be is in the checkpoint's state
//! ([`crate::recovery`]): a missing one would read as transactions that did not commit.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use base::{Error, Result, WaitEvent, err};
use sched::io_wait;

use crate::commit_log::{BIT_WORDS, Bits, CHUNK};

/// Chunks in a file.
pub(crate) const FILE_CHUNKS: u64 = (1 << 20) / CHUNK;
const MAGIC: &[u8; 8] = b"TGCOMMIT";
const VERSION: u32 = 1;
const HEADER: usize = 32;
const CHUNK_BYTES: usize = BIT_WORDS * 8;
const FILE_BYTES: usize = HEADER + FILE_CHUNKS as usize * CHUNK_BYTES;

fn folder(dir: &Path) -> PathBuf {
    dir.join("commitlog")
}

fn path(dir: &Path, number: u64) -> PathBuf {
    folder(dir).join(format!("{number:010}"))
}

/// The CRC of everything behind it.
fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(&bytes[16..])
}

fn encode(number: u64, bits: impl Iterator<Item = Bits>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(FILE_BYTES);
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(number.to_le_bytes());
    bytes.extend([0; 8]);
    bytes.extend(bits.flatten().flat_map(u64::to_le_bytes));
    bytes.resize(FILE_BYTES, 0);
    let sum = checksum(&bytes);
    bytes[12..16].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Writes files and makes them durable. `bits` gives a chunk's bits.
pub(crate) fn write(
    dir: &Path,
    files: std::ops::RangeInclusive<u64>,
    bits: impl Fn(u64) -> Bits,
) -> Result<()> {
    let folder = folder(dir);
    if !folder.exists() {
        fs::create_dir(&folder).map_err(|e| failed("create directory", &folder, &e))?;
        sync_folder(dir)?;
    }
    for number in files {
        let chunks = number * FILE_CHUNKS..(number + 1) * FILE_CHUNKS;
        let bytes = encode(number, chunks.map(&bits));
        let target = path(dir, number);
        let fresh = target.with_extension("new");
        io_wait(WaitEvent::IOCommitLogWrite, || {
            let mut file = File::create(&fresh)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&fresh, &target)
        })
        .map_err(|e| failed("write file", &target, &e))?;
    }
    sync_folder(&folder)
}

fn sync_folder(folder: &Path) -> Result<()> {
    io_wait(WaitEvent::IOCommitLogWrite, || File::open(folder)?.sync_all())
        .map_err(|e| failed("sync directory", folder, &e))
}

fn failed(doing: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::io(format_args!("{doing} \"{}\"", path.display()), error)
}

/// Reads all files, of which there must be `count` at least, and gives each chunk's bits to `take`. Changes
/// nothing.
///
/// # Errors
/// `58P01` when one is missing, `XX001` when one is damaged.
pub(crate) fn read(dir: &Path, count: u64, mut take: impl FnMut(u64, &Bits)) -> Result<()> {
    let folder = folder(dir);
    if let Some(number) = (0..count).find(|number| !path(dir, *number).exists()) {
        let path = path(dir, number);
        return Err(err!(UNDEFINED_FILE, "commit log file \"{}\" is missing", path.display())
            .hint("Restore the data directory from a backup."));
    }
    if !folder.exists() {
        return Ok(());
    }
    let entries = fs::read_dir(&folder).map_err(|e| failed("read directory", &folder, &e))?;
    for entry in entries {
        let path = entry.map_err(|e| failed("read directory", &folder, &e))?.path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        if let Ok(number) = name.parse() {
            let bytes = io_wait(WaitEvent::IOCommitLogRead, || fs::read(&path))
                .map_err(|e| failed("read file", &path, &e))?;
            decode(&path, number, &bytes, &mut take)?;
        }
    }
    Ok(())
}

fn decode(path: &Path, number: u64, bytes: &[u8], take: &mut impl FnMut(u64, &Bits)) -> Result<()> {
    let is = |at: usize, expected: &[u8]| bytes.get(at..at + expected.len()) == Some(expected);
    let whole = bytes.len() == FILE_BYTES
        && is(0, MAGIC)
        && is(8, &VERSION.to_le_bytes())
        && is(16, &number.to_le_bytes())
        && is(12, &checksum(bytes).to_le_bytes());
    if !whole {
        return Err(err!(DATA_CORRUPTED, "commit log file \"{}\" is damaged", path.display())
            .hint("Restore the data directory from a backup."));
    }
    for (chunk, body) in (number * FILE_CHUNKS..).zip(bytes[HEADER..].chunks_exact(CHUNK_BYTES)) {
        let mut bits = [0; BIT_WORDS];
        for (word, bytes) in bits.iter_mut().zip(body.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        take(chunk, &bits);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::TestDir;

    fn sample(chunk: u64) -> Bits {
        let mut bits = [0; BIT_WORDS];
        (bits[0], bits[BIT_WORDS - 1]) = (chunk + 1, u64::MAX);
        bits
    }

    #[test]
    fn bits_come_back_and_a_half_written_file_is_ignored() {
        let dir = TestDir::new();
        write(dir.path(), 0..=1, sample).unwrap();
        fs::write(folder(dir.path()).join("0000000001.new"), b"half").unwrap();
        let mut count = 0;
        read(dir.path(), 2, |chunk, bits| {
            assert_eq!(bits, &sample(chunk));
            count += 1;
        })
        .unwrap();
        assert_eq!(count, 2 * FILE_CHUNKS);
        let missing = read(dir.path(), 3, |_, _| ()).unwrap_err();
        assert_eq!(missing.code().as_str(), "58P01");
        assert!(missing.message().contains("commitlog/0000000002"));
    }

    #[test]
    fn a_flipped_bit_and_a_cut_file_are_noticed() {
        let dir = TestDir::new();
        write(dir.path(), 0..=0, sample).unwrap();
        let file = path(dir.path(), 0);
        let good = fs::read(&file).unwrap();
        for damage in [9, 13, 20, 40, FILE_BYTES - 1] {
            let mut bad = good.clone();
            bad[damage] ^= 4;
            fs::write(&file, bad).unwrap();
            assert!(read(dir.path(), 1, |_, _| ()).is_err(), "byte {damage}");
        }
        fs::write(&file, &good[..1000]).unwrap();
        assert!(read(dir.path(), 1, |_, _| ()).is_err());
        fs::write(&file, &good).unwrap();
        read(dir.path(), 1, |_, _| ()).unwrap();
    }
}
