//! Values of sequences that a session has seen or holds in advance.

use std::collections::HashMap;

use catalog::Sequence;

/// A session's knowledge of sequences: values that it took ahead (CACHE), and its last ones. One word
/// for a session that uses none.
#[derive(Default)]
pub struct SessionSequences(pub(super) Option<Box<Known>>);

#[derive(Default)]
pub(super) struct Known {
    pub(super) by_oid: HashMap<u32, Last>,
    /// The sequence that lastval() is about.
    pub(super) latest: Option<u32>,
}

/// The session's values of one sequence.
pub(super) struct Last {
    /// The file that the values are of: ALTER SEQUENCE makes a new one.
    pub(super) rel: u32,
    /// The result of currval(); None after a setval that is not called yet.
    pub(super) value: Option<i64>,
    /// Values after this one that are the session's.
    pub(super) next: i64,
    /// How many.
    pub(super) left: i64,
}

impl SessionSequences {
    /// DISCARD SEQUENCES: also the values that were taken ahead, which nobody gets.
    pub fn clear(&mut self) {
        self.0 = None;
    }

    pub(super) fn known(&mut self) -> &mut Known {
        self.0.get_or_insert_with(Box::default)
    }

    /// A value that was taken ahead.
    pub(super) fn cached(&mut self, sequence: &Sequence) -> Option<i64> {
        let known = self.0.as_mut()?;
        let last = known.by_oid.get_mut(&sequence.oid)?;
        if last.left == 0 || last.rel != sequence.rel {
            return None;
        }
        let value = last.next;
        last.left -= 1;
        last.next = value.wrapping_add(sequence.increment);
        last.value = Some(value);
        known.latest = Some(sequence.oid);
        Some(value)
    }
}
