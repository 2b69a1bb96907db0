//! The locks of one session, in its slot of the registry under a spin lock. A lock that the session
//! holds already is counted here and nowhere else.
//!
//! Each lock belongs to the savepoint level at which it was first taken; level 0 is the transaction.

use base::{RelId, TupleId, Xid};

use super::{FastMap, LockMode, LockTag};

/// Beyond this many locks a hash map finds them.
const LINEAR: usize = 24;
/// Room for this many is kept from one transaction to the next.
const KEPT: usize = 256;

/// One lock in one mode.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) tag: LockTag,
    pub(super) mode: LockMode,
    /// Level at which the transaction took it first.
    pub(super) level: u32,
    /// Holds by the transaction.
    pub(super) count: u32,
    /// Holds by the session, beyond transactions.
    pub(super) session: u32,
    /// Noted only here, not in the shared table.
    pub(super) fast: bool,
}

/// A row that the session's transaction has share-locked.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedRow {
    pub(super) xid: Xid,
    pub(super) rel: RelId,
    pub(super) tid: TupleId,
}

/// All locks of one session.
#[derive(Default)]
pub(crate) struct Local {
    held: Vec<Held>,
    index: FastMap<(LockTag, LockMode), usize>,
    /// The savepoint level that new locks belong to.
    level: u32,
    /// No lock belongs to a higher level than this.
    highest: u32,
    /// Shared row locks.
    pub(super) rows: Vec<SharedRow>,
}

impl Local {
    fn position(&self, tag: LockTag, mode: LockMode) -> Option<usize> {
        if self.index.is_empty() {
            return self.held.iter().rposition(|h| h.mode == mode && h.tag == tag);
        }
        self.index.get(&(tag, mode)).copied()
    }

    /// Counts one more hold of a lock that is held already; false if it isn't.
    pub(super) fn hold_again(&mut self, tag: LockTag, mode: LockMode, session: bool) -> bool {
        let Some(at) = self.position(tag, mode) else { return false };
        let held = &mut self.held[at];
        if session {
            held.session += 1;
            return true;
        }
        if held.count == 0 {
            held.level = self.level;
            self.highest = self.highest.max(self.level);
        }
        held.count += 1;
        true
    }

    /// Notes the first hold of a lock; false when it was held already.
    pub(super) fn hold(&mut self, tag: LockTag, mode: LockMode, session: bool, fast: bool) -> bool {
        if self.hold_again(tag, mode, session) {
            return false;
        }
        let (count, session) = if session { (0, 1) } else { (1, 0) };
        self.held.push(Held { tag, mode, level: self.level, count, session, fast });
        self.highest = self.highest.max(self.level);
        if !self.index.is_empty() {
            self.index.insert((tag, mode), self.held.len() - 1);
        } else if self.held.len() > LINEAR {
            self.index = self.held.iter().enumerate().map(|(i, h)| ((h.tag, h.mode), i)).collect();
        }
        true
    }

    /// Gives up one hold. `None`: there was none; `Some(None)`: others are left; `Some(Some(lock))`:
    /// it was the last.
    pub(super) fn unhold(
        &mut self,
        tag: LockTag,
        mode: LockMode,
        session: bool,
    ) -> Option<Option<Held>> {
        let at = self.position(tag, mode)?;
        let held = &mut self.held[at];
        let count = if session { &mut held.session } else { &mut held.count };
        *count = count.checked_sub(1)?;
        if held.count + held.session > 0 {
            return Some(None);
        }
        Some(Some(self.remove(at)))
    }

    fn remove(&mut self, at: usize) -> Held {
        let gone = self.held.swap_remove(at);
        if !self.index.is_empty() {
            self.index.remove(&(gone.tag, gone.mode));
            if let Some(moved) = self.held.get(at) {
                self.index.insert((moved.tag, moved.mode), at);
            }
        }
        gone
    }

    /// Drops the holds that `which` picks by lock and says how (`true` for the session's holds), and
    /// adds those that nobody holds any more to `gone`, unless they were only noted here.
    fn drop_where(
        &mut self,
        session: bool,
        which: impl Fn(&Held) -> bool,
        gone: &mut Vec<(LockTag, LockMode)>,
    ) {
        let mut at = self.held.len();
        while at > 0 {
            at -= 1;
            let held = &mut self.held[at];
            if !which(held) {
                continue;
            }
            *(if session { &mut held.session } else { &mut held.count }) = 0;
            if held.count + held.session == 0 {
                let held = self.remove(at);
                if !held.fast {
                    gone.push((held.tag, held.mode));
                }
            }
        }
    }

    /// The end of the transaction.
    pub(super) fn end_transaction(&mut self, gone: &mut Vec<(LockTag, LockMode)>) {
        (self.level, self.highest) = (0, 0);
        if self.held.iter().all(|h| h.fast && h.session == 0) {
            self.held.clear();
            self.index.clear();
        } else {
            self.drop_where(false, |held| held.count > 0, gone);
        }
        if self.held.is_empty() && self.held.capacity() > KEPT {
            (self.held, self.index) = (Vec::new(), FastMap::default());
        }
    }

    /// New locks belong to this level.
    pub(super) fn enter_level(&mut self, level: u32) {
        self.level = level;
    }

    /// Drops the locks of this level and those inside it.
    pub(super) fn rollback_to(&mut self, level: u32, gone: &mut Vec<(LockTag, LockMode)>) {
        self.level = level;
        if self.highest >= level {
            self.drop_where(false, |held| held.count > 0 && held.level >= level, gone);
            self.highest = level - 1;
        }
    }

    /// Gives the locks of this level and those inside it to the one around it.
    pub(super) fn release_level(&mut self, level: u32) {
        self.level = level - 1;
        if self.highest >= level {
            for held in self.held.iter_mut().filter(|held| held.level >= level) {
                held.level = level - 1;
            }
            self.highest = level - 1;
        }
    }

    /// Drops the session's holds of advisory locks.
    pub(super) fn end_session_locks(&mut self, gone: &mut Vec<(LockTag, LockMode)>) {
        self.drop_where(true, |held| held.session > 0 && held.tag.is_advisory(), gone);
    }

    /// Drops everything.
    pub(super) fn end(&mut self, gone: &mut Vec<(LockTag, LockMode)>) {
        self.drop_where(true, |_| true, gone);
        self.drop_where(false, |_| true, gone);
    }

    /// Whether a weak lock on the relation is noted only here.
    pub(super) fn has_fast(&self, tag: LockTag) -> bool {
        self.held.iter().any(|held| held.fast && held.tag == tag)
    }

    /// Hands the weak locks on a relation over to the shared table.
    pub(super) fn transfer(&mut self, tag: LockTag, mut to: impl FnMut(LockMode)) {
        for held in self.held.iter_mut().filter(|held| held.fast && held.tag == tag) {
            held.fast = false;
            to(held.mode);
        }
    }

    /// Everything held.
    pub(super) fn held(&self) -> &[Held] {
        &self.held
    }
}

#[cfg(test)]
mod tests {
    use base::Oid;

    use super::*;

    const A: LockTag = LockTag::Relation(Oid(5), Oid(1));
    const MODE: LockMode = LockMode::Share;

    #[test]
    fn holds_are_counted_apart_for_session_and_transaction() {
        let mut local = Local::default();
        local.hold(A, MODE, false, false);
        assert!(local.hold_again(A, MODE, false));
        assert!(local.hold_again(A, MODE, true));
        assert!(matches!(local.unhold(A, MODE, false), Some(None)));
        let mut gone = Vec::new();
        local.end_transaction(&mut gone);
        assert!(gone.is_empty(), "the session still holds it");
        assert!(local.unhold(A, MODE, false).is_none());
        assert!(matches!(local.unhold(A, MODE, true), Some(Some(_))));
        assert!(local.unhold(A, MODE, true).is_none());
    }

    #[test]
    fn a_savepoint_gives_back_what_was_first_taken_inside_it() {
        let mut local = Local::default();
        let tag = |n| LockTag::Relation(Oid(5), Oid(n));
        local.hold(tag(1), MODE, false, false);
        local.enter_level(1);
        local.hold(tag(1), MODE, false, false);
        local.hold(tag(2), MODE, false, false);
        local.enter_level(2);
        local.hold(tag(3), MODE, false, false);
        local.release_level(2);
        let mut gone = Vec::new();
        local.rollback_to(1, &mut gone);
        gone.sort_by_key(|(tag, _)| format!("{tag:?}"));
        assert_eq!(gone, [(tag(2), MODE), (tag(3), MODE)]);
        assert!(local.hold_again(tag(1), MODE, false));
    }

    #[test]
    fn many_locks_are_found_by_hash_while_they_come_and_go() {
        let mut local = Local::default();
        let tag = |n| LockTag::Relation(Oid(5), Oid(n));
        for n in 0..1000 {
            local.hold(tag(n), MODE, false, false);
        }
        for n in (0..1000).step_by(2) {
            assert!(matches!(local.unhold(tag(n), MODE, false), Some(Some(_))));
        }
        for n in 0..1000 {
            assert_eq!(local.hold_again(tag(n), MODE, false), n % 2 == 1);
        }
        let mut gone = Vec::new();
        local.end_transaction(&mut gone);
        assert_eq!(gone.len(), 500);
        assert!(local.held().is_empty());
    }
}
