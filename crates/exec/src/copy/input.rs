//! The bytes of the client or a file, gathered until a whole row is there.

use std::fs::File;

use base::Result;
use sched::observe::progress::{Count, Reporting};
use types::encodings::Recoder;

use super::file;
use crate::context::SessionHooks;

/// Bytes that have come and how many of them are used.
pub struct Input {
    /// What others are told of the COPY.
    pub progress: Reporting,
    bytes: Vec<u8>,
    used: usize,
    ended: bool,
    /// The file that they come from; else the client.
    file: Option<File>,
    /// Makes UTF-8 of it, if it is none.
    recoder: Option<Recoder>,
}

impl Input {
    /// Nothing yet.
    pub fn new(progress: Reporting, file: Option<File>, recoder: Option<Recoder>) -> Input {
        Input { progress, bytes: Vec::new(), used: 0, ended: false, file, recoder }
    }

    /// The bytes that are there and not used.
    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.used..]
    }

    /// Uses some of it.
    pub fn consume(&mut self, count: usize) {
        self.used += count;
    }

    /// The last bytes that were used, so many; None when a wait for more has dropped them.
    pub fn before(&self, count: usize) -> Option<&[u8]> {
        Some(&self.bytes[self.used.checked_sub(count)?..self.used])
    }

    /// Waits for more; false at the end.
    ///
    /// # Errors
    /// The connection's, and CopyFail; interrupts; `54000` for a row of more than 1 GB, `53200`.
    pub fn more(&mut self, hooks: &mut dyn SessionHooks) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        // A row without an end has no limit but these.
        sched::check_interrupts_now()?;
        self.bytes.drain(..self.used);
        self.used = 0;
        let piece = match &mut self.file {
            Some(file) => file::read(file)?,
            None => hooks.copy_read()?,
        };
        match piece {
            Some(mut piece) => {
                self.progress.add(Count::BytesDone, piece.len() as u64);
                if let Some(recoder) = &mut self.recoder {
                    piece = recoder.piece(&piece)?;
                }
                if self.bytes.is_empty() {
                    self.bytes = piece;
                } else {
                    types::bulk::push_bytes(&mut self.bytes, &piece)?;
                }
                Ok(true)
            }
            None => {
                if let Some(recoder) = &mut self.recoder {
                    recoder.end()?;
                }
                self.ended = true;
                Ok(false)
            }
        }
    }

    /// The rest after the end marker is of no interest.
    ///
    /// # Errors
    /// As [`Input::more`].
    pub fn drain(&mut self, hooks: &mut dyn SessionHooks) -> Result<()> {
        loop {
            self.used = self.bytes.len();
            if !self.more(hooks)? {
                return Ok(());
            }
        }
    }
}
