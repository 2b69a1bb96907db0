//! Blocks that the writer hands to a segment: whole ones, from memory that begins at a block's, so that a file
//! opened with `O_DIRECT` takes them.
//!
//! A commit's few hundred bytes are written and synced at once, and nobody reads them again but after a crash.
//! The system's cache is a detour for them: a copy, a page to find, to lock and to note as changed, and the write
//! to the disk begins only with the sync.
//!
//! The log ends anywhere, so the last block is kept here and written again with what follows. What lies after
//! the log's end in it is zero. Blocks in files are overwritten by themselves with more in them: if the power goes
//! meanwhile, whatever sectors have reached the disk, those before hold the same bytes as they did.
//!
//! The saving: docs/decisions/0014. The system's demands on such files: open(2), under O_DIRECT.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use base::WaitEvent;
use sched::io_wait;

use crate::memory::Region;

/// Bytes of a block: at least what disks write at a time.
pub(super) const BLOCK: usize = 4096;
/// Bytes written in one system call.
const SPAN: usize = 256 * BLOCK;

/// The blocks at hand.
pub(super) struct Blocks {
    memory: Region,
    /// Bytes of the first one that come before what is written next.
    begun: usize,
}

impl Blocks {
    /// None yet.
    ///
    /// # Errors
    /// When the system has no memory.
    pub fn new() -> io::Result<Blocks> {
        let memory = Region::reserve(SPAN)?;
        memory.commit(0, SPAN)?;
        Ok(Blocks { memory, begun: 0 })
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: SPAN bytes are mapped and usable, and nobody else knows of them.
        unsafe { std::slice::from_raw_parts_mut(self.memory.at(0).as_ptr(), SPAN) }
    }

    /// Goes on at this offset of a file: reads the block there.
    ///
    /// # Errors
    /// Those of the read, after which nothing must be written here; a file that ends before the block does.
    pub fn begin(&mut self, file: &File, offset: u64) -> io::Result<()> {
        self.begun = (offset % BLOCK as u64) as usize;
        let begin = offset - self.begun as u64;
        io_wait(WaitEvent::IOWALRead, || file.read_exact_at(&mut self.bytes()[..BLOCK], begin))
    }

    /// Writes bytes at this offset, where the last ones ended or [`Blocks::begin`] has been.
    ///
    /// # Errors
    /// Those of the write; how much has been written isn't known then.
    pub fn write(&mut self, file: &File, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
        debug_assert_eq!(offset % BLOCK as u64, self.begun as u64, "writes follow each other");
        while !bytes.is_empty() {
            let begun = self.begun;
            let n = bytes.len().min(SPAN - begun);
            let end = begun + n;
            let (whole, padded) = (end / BLOCK * BLOCK, end.next_multiple_of(BLOCK));
            let blocks = self.bytes();
            blocks[begun..end].copy_from_slice(&bytes[..n]);
            blocks[end..padded].fill(0);
            file.write_all_at(&blocks[..padded], offset - begun as u64)?;
            blocks.copy_within(whole..end, 0);
            self.begun = end - whole;
            offset += n as u64;
            bytes = &bytes[n..];
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look like chance.
    fn next(state: &mut u64) -> usize {
        *state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        (*state >> 33) as usize
    }

    #[test]
    fn pieces_of_all_lengths_follow_each_other() {
        let path = std::env::temp_dir().join(format!("threadgres-blocks-{}", std::process::id()));
        std::fs::write(&path, vec![0xEE; 3 * SPAN]).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let (mut blocks, mut state) = (Blocks::new().unwrap(), 7);
        // It goes on where another writer has ended, inside a block.
        let mut all = vec![0xEE; 5000];
        blocks.begin(&file, all.len() as u64).unwrap();
        while all.len() < 2 * SPAN {
            let most = if next(&mut state).is_multiple_of(20) { SPAN + 9000 } else { 6000 };
            let piece = vec![next(&mut state) as u8; 1 + next(&mut state) % most];
            blocks.write(&file, all.len() as u64, &piece).unwrap();
            all.extend_from_slice(&piece);
            if next(&mut state).is_multiple_of(10) {
                blocks = Blocks::new().unwrap();
                blocks.begin(&file, all.len() as u64).unwrap();
            }
            let mut seen = vec![0; all.len().next_multiple_of(BLOCK)];
            file.read_exact_at(&mut seen, 0).unwrap();
            assert!(seen[..all.len()] == all, "after {} bytes", all.len());
            assert!(seen[all.len()..].iter().all(|b| *b == 0), "zeros follow in the block");
        }
        std::fs::remove_file(&path).unwrap();
    }
}
