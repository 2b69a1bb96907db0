//! Reader-writer locks: the server's `LwLock` under three limits, `parking_lot`, the standard
//! library's, the C library's.

use base::WaitEvent;
use base::settings::{Settings, Value, publish_live, setting};
use crossbeam_utils::CachePadded;
use sched::LwLock;
use sched::yardstick::PthreadRwLock;

use super::bench::{Me, Operation};

/// A lock that is taken shared or exclusively, around a number.
pub trait Shareable: Send + Sync {
    /// Unlocked.
    fn new() -> Self;
    /// Runs it under the lock.
    fn shared<R>(&self, inside: impl FnOnce() -> R) -> R;
    /// Runs it under the lock.
    fn exclusive<R>(&self, inside: impl FnOnce() -> R) -> R;
}

impl Shareable for LwLock<()> {
    fn new() -> Self {
        LwLock::new(WaitEvent::LWLockOther, ())
    }
    #[inline]
    fn shared<R>(&self, inside: impl FnOnce() -> R) -> R {
        let _held = self.read();
        inside()
    }
    #[inline]
    fn exclusive<R>(&self, inside: impl FnOnce() -> R) -> R {
        let _held = self.write();
        inside()
    }
}

impl Shareable for parking_lot::RwLock<()> {
    fn new() -> Self {
        parking_lot::RwLock::new(())
    }
    #[inline]
    fn shared<R>(&self, inside: impl FnOnce() -> R) -> R {
        let _held = self.read();
        inside()
    }
    #[inline]
    fn exclusive<R>(&self, inside: impl FnOnce() -> R) -> R {
        let _held = self.write();
        inside()
    }
}

impl Shareable for std::sync::RwLock<()> {
    fn new() -> Self {
        std::sync::RwLock::new(())
    }
    #[inline]
    fn shared<R>(&self, inside: impl FnOnce() -> R) -> R {
        let _held = self.read();
        inside()
    }
    #[inline]
    fn exclusive<R>(&self, inside: impl FnOnce() -> R) -> R {
        let _held = self.write();
        inside()
    }
}

impl Shareable for PthreadRwLock {
    fn new() -> Self {
        PthreadRwLock::new()
    }
    #[inline]
    fn shared<R>(&self, inside: impl FnOnce() -> R) -> R {
        let _held = self.read();
        inside()
    }
    #[inline]
    fn exclusive<R>(&self, inside: impl FnOnce() -> R) -> R {
        let _held = self.write();
        inside()
    }
}

/// One lock, taken as [`Me::writes`] says.
pub struct Mixed<L>(CachePadded<L>);

impl<L: Shareable> Mixed<L> {
    /// Unlocked.
    pub fn new() -> Mixed<L> {
        Mixed(CachePadded::new(L::new()))
    }
}

impl<L: Shareable> Operation for Mixed<L> {
    #[inline]
    fn once(&self, me: &mut Me, entered: impl FnOnce()) {
        if me.writes() {
            self.0.exclusive(|| {
                entered();
                me.hold();
            });
        } else {
            self.0.shared(|| {
                entered();
                me.hold();
            });
        }
    }
}

/// Sets the limit that all `LwLock`s of this process follow.
pub fn set_shared_limit(limit: i64) {
    let mut settings = Settings::default();
    settings.set(setting::LWLOCK_SHARED_LIMIT, Value::Int(limit));
    publish_live(&settings);
}
