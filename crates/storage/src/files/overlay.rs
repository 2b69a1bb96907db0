//! An overlay over relation files while a directory is only looked at: recovery's pages that leave
//! the pool go to a file without a name, elsewhere, and reads find them there.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

use base::{Error, Fork, PageId, RelId, Result, WaitEvent};
use sched::Mutex;

use crate::page::{PAGE_SIZE, Page};

/// See the module.
pub(super) struct Overlay(Mutex<OverlayState>);

#[derive(Default)]
struct OverlayState {
    /// Places of pages in the file.
    pages: HashMap<PageId, u64>,
    /// From this block on nothing of the relation's own file counts.
    limits: HashMap<(RelId, Fork), u32>,
    file: Option<File>,
}

impl Default for Overlay {
    fn default() -> Overlay {
        Overlay(Mutex::new(WaitEvent::LWLockFdCache, OverlayState::default()))
    }
}

/// A file that goes away when it is closed.
fn nameless() -> io::Result<File> {
    let path = std::env::temp_dir().join(format!("threadgres-look-{}", std::process::id()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

fn failed(e: io::Error) -> Error {
    Error::io("use a temporary file", &e)
}

impl Overlay {
    /// Keeps a page.
    pub(super) fn write(&self, id: PageId, page: &Page) -> Result<()> {
        let mut state = self.0.lock();
        if state.file.is_none() {
            state.file = Some(nameless().map_err(failed)?);
        }
        let next = state.pages.len() as u64;
        let place = *state.pages.entry(id).or_insert(next);
        match &state.file {
            Some(file) => file.write_all_at(page, place * PAGE_SIZE as u64).map_err(failed),
            None => Ok(()),
        }
    }

    /// The page, if it is here or one that the relation's file doesn't have; false: it is there.
    pub(super) fn read(&self, id: PageId, into: &mut Page) -> Result<bool> {
        let state = self.0.lock();
        if let (Some(place), Some(file)) = (state.pages.get(&id), &state.file) {
            file.read_exact_at(into, place * PAGE_SIZE as u64).map_err(failed)?;
            return Ok(true);
        }
        let beyond = state.limits.get(&(id.rel, id.fork)).is_some_and(|limit| id.block >= *limit);
        if beyond {
            into.fill(0);
        }
        Ok(beyond)
    }

    /// The fork is extended from this block on.
    pub(super) fn limit(&self, rel: RelId, fork: Fork, blocks: u32) {
        self.0.lock().limits.entry((rel, fork)).or_insert(blocks);
    }

    /// The fork is cut. Its pages stay in the file, where nobody looks for them; their places too, as pages of
    /// zeros.
    pub(super) fn cut(&self, rel: RelId, fork: Fork, blocks: u32) {
        let mut state = self.0.lock();
        let limit = state.limits.entry((rel, fork)).or_insert(blocks);
        *limit = blocks.min(*limit);
        let gone: Vec<_> = state
            .pages
            .keys()
            .filter(|id| (id.rel, id.fork) == (rel, fork) && id.block >= blocks)
            .copied()
            .collect();
        for id in gone {
            if let (Some(place), Some(file)) = (state.pages.get(&id), &state.file) {
                // A page that can't be cleared is read as what it was: a finding too many.
                let _ = file.write_all_at(&[0; PAGE_SIZE], place * PAGE_SIZE as u64);
            }
        }
    }
}
