//! Files of the server that a statement names and reads as a whole.
//!
//! Only regular files are read: a device may have no end, and a pipe may keep its reader waiting for ever. They are read
//! piece by piece, with a look for interrupts and limits before each, whatever length the system gives: files of `/proc`
//! have none, and others may grow.

use std::fs::{File, Metadata};
use std::io::{Error as IoError, ErrorKind, Read};
use std::path::Path;

use base::{Result, WaitEvent};

/// Bytes that are read at once.
pub const PIECE_BYTES: usize = 256 << 10;

/// Opens a regular file.
///
/// # Errors
/// I/O; of the kind `InvalidInput` for what is no regular file. A directory can be opened, but not read.
pub fn open(path: &Path) -> std::io::Result<File> {
    let regular = |meta: &Metadata| match meta.is_file() || meta.is_dir() {
        true => Ok(()),
        false => Err(IoError::new(ErrorKind::InvalidInput, "not a regular file")),
    };
    sched::blocking(WaitEvent::IOCopyFileRead, || {
        // Before it is opened, as opening a pipe waits for its writer.
        regular(&path.metadata()?)?;
        let file = File::open(path)?;
        regular(&file.metadata()?)?;
        Ok(file)
    })
}

/// Hands a file's bytes from where it stands to `take`, at most `count` of them.
///
/// # Errors
/// Interrupts; those of `take`; what `failed` makes of an I/O error.
pub fn read(
    file: &mut File,
    count: u64,
    failed: &dyn Fn(IoError) -> base::Error,
    take: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut piece = vec![0; PIECE_BYTES.min(usize::try_from(count).unwrap_or(PIECE_BYTES))];
    let mut left = count;
    while left > 0 {
        sched::check_interrupts_now()?;
        let wanted = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let into = &mut piece[..wanted];
        let given = sched::blocking(WaitEvent::IOCopyFileRead, || file.read(into));
        match given.map_err(failed)? {
            0 => break,
            given => {
                take(&piece[..given])?;
                left -= given as u64;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(path: &Path, count: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut file = open(path).expect("a regular file");
        let failed = |e: IoError| base::Error::io("read", &e);
        let mut take = |piece: &[u8]| {
            bytes.extend_from_slice(piece);
            Ok(())
        };
        read(&mut file, count, &failed, &mut take).expect("it can be read");
        bytes
    }

    #[test]
    fn regular_files_are_read_whole_and_others_refused() {
        let path = std::env::temp_dir().join(format!("tg-server-file-{}", std::process::id()));
        let bytes: Vec<u8> = (0..600_000_u32).map(|n| n as u8).collect();
        std::fs::write(&path, &bytes).expect("a file");
        assert_eq!(whole(&path, u64::MAX), bytes);
        assert_eq!(whole(&path, 300_000), bytes[..300_000]);
        assert!(!whole(Path::new("/proc/self/status"), u64::MAX).is_empty());
        std::fs::remove_file(&path).expect("it is ours");
        let fifo = path.with_extension("pipe");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo");
        assert!(made.success());
        for other in [fifo.as_path(), Path::new("/dev/zero"), Path::new("/dev/null")] {
            let error = open(other).expect_err("no regular file");
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{}", other.display());
        }
        std::fs::remove_file(&fifo).expect("it is ours");
    }
}
