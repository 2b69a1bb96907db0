//! Large objects that a transaction has open.

use base::{Result, err};

/// The descriptors that a transaction has open.
#[derive(Debug, Default)]
pub struct LargeObjects {
    pub(super) open: Vec<Option<Descriptor>>,
}

#[derive(Clone, Debug)]
pub(super) struct Descriptor {
    pub(super) object: u32,
    pub(super) readable: bool,
    pub(super) writable: bool,
    pub(super) at: i64,
}

impl LargeObjects {
    /// The transaction ends.
    pub fn clear(&mut self) {
        self.open.clear();
    }

    pub(super) fn add(&mut self, descriptor: Descriptor) -> i32 {
        let free = self.open.iter().position(Option::is_none);
        let at = free.unwrap_or(self.open.len());
        if free.is_none() {
            self.open.push(None);
        }
        self.open[at] = Some(descriptor);
        at as i32
    }

    pub(super) fn get(&mut self, number: i64) -> Result<&mut Option<Descriptor>> {
        let found = usize::try_from(number).ok().and_then(|n| self.open.get_mut(n));
        let missing = || err!(UNDEFINED_OBJECT, "invalid large-object descriptor: {number}");
        found.filter(|d| d.is_some()).ok_or_else(missing)
    }
}
