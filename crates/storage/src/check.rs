//! Looks at every page of every relation file (`threadgres check`).

use base::{PageId, RelId, Result};

use crate::Storage;

impl Storage {
    /// Reads all pages of all files that there are or must be, the files of large values and the maps among
    /// them; answers what is wrong, one line each.
    ///
    /// # Errors
    /// Interrupts; a directory that can't be read.
    pub fn check_files(&self) -> Result<Vec<String>> {
        let mut findings = Vec::new();
        for (rel, fork, blocks) in self.core.files.survey()? {
            match blocks {
                Err(e) => findings.push(e.message().to_owned()),
                Ok(blocks) => {
                    for block in 0..blocks {
                        sched::check_interrupts()?;
                        if let Err(e) = self.pool.pin_scan(PageId { rel, fork, block }) {
                            findings.push(e.message().to_owned());
                        }
                    }
                }
            }
        }
        findings.dedup();
        Ok(findings)
    }

    /// Whether the relation has a file, or would have after recovery.
    ///
    /// # Errors
    /// I/O errors.
    pub fn has_files(&self, rel: RelId) -> Result<bool> {
        self.core.files.has_file(rel)
    }
}
