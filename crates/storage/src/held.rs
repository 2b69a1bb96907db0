//! Redo positions that running backups need.

/// Redo positions that running backups need.
#[derive(Default)]
pub(crate) struct Held(pub(crate) Vec<u64>);

impl Held {
    /// The least of them.
    pub(crate) fn least(&self) -> Option<u64> {
        self.0.iter().copied().min()
    }

    pub(crate) fn remove(&mut self, lsn: u64) {
        if let Some(at) = self.0.iter().position(|held| *held == lsn) {
            self.0.swap_remove(at);
        }
    }
}
