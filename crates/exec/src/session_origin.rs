//! The replication origin that a session has set up, and which sessions use which: [`crate::origins`].

use std::collections::HashMap;

use sched::SpinLock;

/// The sessions that use origins: database and name, and the process id.
static ACTIVE: SpinLock<Option<HashMap<(u32, String), i32>>> = SpinLock::new(None);

/// The origin that a session has set up.
#[derive(Debug, Default)]
pub struct SessionOrigin {
    /// Its database and name.
    pub(crate) active: Option<(u32, String)>,
    /// Where the transaction ended there, and where the one before did.
    pub(crate) at: Option<(u64, u64)>,
}

impl SessionOrigin {
    /// The name, and where the transaction that is open ended there (0: nobody has said so).
    pub fn of_transaction(&self) -> Option<(&str, u64)> {
        let (_, name) = self.active.as_ref()?;
        Some((name, self.at.map_or(0, |at| at.0)))
    }

    /// The transaction has ended.
    pub fn end_transaction(&mut self) {
        self.at = None;
    }

    /// Lets the origin go.
    pub(crate) fn release(&mut self) {
        if let Some(key) = self.active.take()
            && let Some(all) = &mut *ACTIVE.lock()
        {
            all.remove(&key);
        }
        self.at = None;
    }
}

impl Drop for SessionOrigin {
    fn drop(&mut self) {
        self.release();
    }
}

/// The process that uses an origin.
pub(crate) fn user_of(database: u32, name: &str) -> Option<i32> {
    let all = ACTIVE.lock();
    all.as_ref()?.get(&(database, name.to_owned())).copied()
}

/// Takes an origin for a process; false: another one uses it.
pub(crate) fn claim(key: &(u32, String), pid: i32) -> bool {
    let mut all = ACTIVE.lock();
    let all = all.get_or_insert_with(HashMap::new);
    let free = !all.contains_key(key);
    if free {
        all.insert(key.clone(), pid);
    }
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_used_by_one_session_at_a_time() {
        let key = (1, "a test's".to_owned());
        assert!(claim(&key, 7) && !claim(&key, 8));
        assert_eq!(user_of(1, "a test's"), Some(7));
        let mut session = SessionOrigin { active: Some(key.clone()), at: Some((5, 1)) };
        assert_eq!(session.of_transaction(), Some(("a test's", 5)));
        session.end_transaction();
        assert_eq!(session.of_transaction(), Some(("a test's", 0)));
        drop(session);
        assert_eq!(user_of(1, "a test's"), None);
    }
}
