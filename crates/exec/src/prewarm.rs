//! Which pages are in memory, written down and read again: `autoprewarm`, by which a server that starts anew has its
//! pages before they are asked for.
//!
//! ```text
//!   autoprewarm.blocks      <<count>>
//!                           database,tablespace,file,fork,block      one line a page, in order
//! ```
//!
//! * The form is PostgreSQL's; database and tablespace, which files here do not need, are 0.
//! * The file is written aside and renamed, and never synced: it may be lost, not half there. Lines that make no sense
//!   and pages that are gone are passed over.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::str::FromStr;
use std::sync::Arc;

use base::{Error, Fork, PageId, RelId, Result, WaitEvent};
use storage::Storage;

const FILE: &str = "autoprewarm.blocks";
const ASIDE: &str = "autoprewarm.blocks.tmp";

/// Writes down the pages that are in memory; returns how many.
///
/// # Errors
/// I/O.
pub fn dump(storage: &Storage) -> Result<u64> {
    let mut pages: Vec<PageId> = storage
        .pool
        .contents()
        .filter_map(|frame| frame.page)
        .filter(|page| !page.rel.is_temporary())
        .collect();
    pages.sort_unstable();
    let mut text = format!("<<{}>>\n", pages.len());
    for page in &pages {
        // Writing to a string does not fail.
        let _ = writeln!(text, "0,0,{},{},{}", page.rel.0, page.fork as u8, page.block);
    }
    let (aside, file) = (storage.dir().join(ASIDE), storage.dir().join(FILE));
    let written = sched::blocking(WaitEvent::IOCopyFileWrite, || {
        fs::write(&aside, text.as_bytes()).and_then(|()| fs::rename(&aside, &file))
    });
    written.map_err(|e| Error::io(format_args!("write file \"{FILE}\""), &e))?;
    Ok(pages.len() as u64)
}

fn page(line: &str) -> Option<PageId> {
    let mut words = line.split(',').skip(2).map(u32::from_str);
    let mut next = || words.next()?.ok();
    let (rel, fork, block) = (RelId(next()?), next()?, next()?);
    let fork = [Fork::Main, Fork::Fsm, Fork::Vm].into_iter().find(|f| *f as u32 == fork)?;
    Some(PageId { rel, fork, block })
}

/// Reads the pages that the file names, as long as they are there; returns how many.
///
/// # Errors
/// I/O; interrupts.
pub fn load(storage: &Arc<Storage>) -> Result<u64> {
    let file = storage.dir().join(FILE);
    let text = match sched::blocking(WaitEvent::IOCopyFileRead, || fs::read_to_string(&file)) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(e) => return Err(Error::io(format_args!("read file \"{FILE}\""), &e)),
    };
    let (mut read, mut last) = (0, None);
    for page in text.lines().skip(1).filter_map(page) {
        sched::check_interrupts()?;
        let files = (page.rel, page.fork);
        let blocks = match last {
            Some((of, blocks)) if of == files => blocks,
            _ => storage.block_count(page.rel, page.fork).unwrap_or(0),
        };
        last = Some((files, blocks));
        if page.block < blocks && storage.pool.pin(page).is_ok() {
            read += 1;
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_pages() {
        let found = PageId { rel: RelId(77), fork: Fork::Vm, block: 5 };
        assert_eq!(page("0,0,77,2,5"), Some(found));
        for wrong in ["", "<<2>>", "0,0,77,9,5", "0,0,77,2", "0,0,x,2,5"] {
            assert_eq!(page(wrong), None, "{wrong}");
        }
    }
}
