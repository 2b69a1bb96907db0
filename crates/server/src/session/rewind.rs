//! A base backup for a directory that has most of it already: `threadgres rewind` of an old primary.
//!
//! | command | answer |
//! |---|---|
//! | `REWIND_BEGIN` | a backup begins: the relation files, and how long they are |
//! | `REWIND_PAGES file first count sums` | the pages of this range that have other sums than these, as CopyData: block (4), page |
//! | `REWIND_END` | everything else, and the log, as `BASE_BACKUP` has it: a tar archive with the control file last |
//!
//! Sums are those of [`storage::page_sum`], in hexadecimal, one behind the other; pages behind them are sent all the same.
//! The backup ends with the connection.

use std::fs::File;

use base::{Error, Result, WaitEvent, err};
use storage::{PAGE_SIZE, PageSum, page_sum, relation_path};
use types::oids;

use super::SessionState;
use super::base_backup;

/// Pages that are asked for at once, at most.
const PAGES_MOST: u64 = 8192;
/// Hexadecimal digits of a sum.
const DIGITS: usize = 2 * size_of::<PageSum>();

fn syntax(near: &str) -> Error {
    err!(SYNTAX_ERROR, "syntax error at or near \"{near}\"")
}

/// The sums of a command.
fn sums_of(text: &str) -> Result<Vec<PageSum>> {
    let sum = |digits: &[u8]| -> Option<PageSum> {
        let mut out = PageSum::default();
        for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        (digits.len() == DIGITS).then_some(out)
    };
    let sums: Option<Vec<PageSum>> = text.as_bytes().chunks(DIGITS).map(sum).collect();
    sums.ok_or_else(|| syntax("sums"))
}

impl SessionState {
    /// `REWIND_BEGIN`.
    pub(super) fn rewind_begin(&mut self) -> Result<()> {
        let storage = self.server.engine.storage.clone();
        let backup = sched::blocking(WaitEvent::IPCCheckpointDone, || storage.begin_backup())?;
        let mut rows = Vec::new();
        for file in backup.relation_files()? {
            // One that is gone is dropped by the log.
            if let Ok(about) = std::fs::metadata(&file.path) {
                rows.push(vec![Some(file.name), Some(about.len().to_string())]);
            }
        }
        self.rewinding = Some(backup);
        self.answer_table(&[("name", oids::TEXT), ("length", oids::INT8)], &rows);
        self.complete_command("REWIND_BEGIN");
        Ok(())
    }

    /// `REWIND_PAGES`.
    pub(super) fn rewind_pages(&mut self, text: &str) -> Result<()> {
        if self.rewinding.is_none() {
            return Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "no rewind has begun"));
        }
        let mut words = text.split_whitespace();
        let mut word = || words.next().ok_or_else(|| syntax("REWIND_PAGES"));
        let (name, first, count) = (word()?, word()?, word()?);
        let number = |word: &str| word.parse::<u64>().map_err(|_| syntax(word));
        let (first, count) = (number(first)?, number(count)?.min(PAGES_MOST));
        let sums = sums_of(words.next().unwrap_or_default())?;
        let path = relation_path(self.server.engine.storage.dir(), name)?;
        wire::copy::out_response(&mut self.out.get_mut().buffer, true, 0);
        match File::open(&path) {
            Ok(file) => self.send_other_pages(&file, first..first + count, &sums)?,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(Error::io(format!("open \"{}\"", path.display()), &e)),
        }
        wire::copy::done(&mut self.out.get_mut().buffer);
        self.complete_command("REWIND_PAGES");
        Ok(())
    }

    fn send_other_pages(
        &mut self,
        file: &File,
        blocks: std::ops::Range<u64>,
        sums: &[PageSum],
    ) -> Result<()> {
        let mut message = vec![0; 4 + PAGE_SIZE];
        for (index, block) in blocks.enumerate() {
            sched::check_interrupts()?;
            let page = &mut message[4..];
            let mut filled = 0;
            while filled < PAGE_SIZE {
                let at = block * PAGE_SIZE as u64 + filled as u64;
                let count =
                    sched::read_at(WaitEvent::IOBaseBackupRead, file, &mut page[filled..], at)
                        .map_err(|e| Error::io("read a relation file", &e))?;
                if count == 0 {
                    // The file was cut meanwhile: the log says so.
                    return Ok(());
                }
                filled += count;
            }
            if sums.get(index).is_some_and(|sum| *sum == page_sum(page)) {
                continue;
            }
            message[..4].copy_from_slice(&(block as u32).to_be_bytes());
            let out = self.out.get_mut();
            wire::copy::data(&mut out.buffer, &message);
            out.pace()?;
        }
        Ok(())
    }

    /// `REWIND_END`.
    pub(super) fn rewind_end(&mut self) -> Result<()> {
        let Some(backup) = self.rewinding.take() else {
            return Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "no rewind has begun"));
        };
        base_backup::send_rest(self, &backup)?;
        self.complete_command("REWIND_END");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_read_back() {
        let sum = page_sum(&[7; PAGE_SIZE]);
        let text: String = sum.iter().chain(&sum).map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(sums_of(&text).unwrap(), [sum, sum]);
        assert!(sums_of("").unwrap().is_empty());
        assert!(sums_of(&text[1..]).is_err() && sums_of("xx").is_err());
    }
}
