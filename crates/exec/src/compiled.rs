//! Compiled functions: those of all sessions, and what a session keeps at hand of them.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use catalog::Function;

use crate::language::{CallSignature, Routine};
use crate::plan_slot::{PlanKey, PrivatePlans};

/// How many functions, and plans of its own, a session keeps at hand.
pub(crate) const KNOWN_MAX: usize = 2000;

/// All compiled functions, for all sessions.
#[derive(Default)]
pub struct Routines {
    // Held for a look: nothing waits meanwhile.
    pub(crate) known: RwLock<HashMap<(u32, u32), Vec<Compiled>>>,
    pub(crate) planned: AtomicU64,
}

pub(crate) struct Compiled {
    pub(crate) definition: Arc<Function>,
    pub(crate) signature: CallSignature,
    pub(crate) routine: Arc<dyn Routine>,
}

impl Routines {
    /// How often the body of a function in SQL has been planned.
    pub fn planned(&self) -> u64 {
        self.planned.load(Ordering::Relaxed)
    }

    pub(crate) fn find(
        &self,
        key: (u32, u32),
        definition: &Arc<Function>,
        signature: &CallSignature,
    ) -> Option<Arc<dyn Routine>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let fits =
            |c: &&Compiled| Arc::ptr_eq(&c.definition, definition) && c.signature == *signature;
        known.get(&key)?.iter().find(fits).map(|c| c.routine.clone())
    }

    pub(crate) fn add(&self, key: (u32, u32), compiled: Compiled) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() > 10 * KNOWN_MAX {
            known.clear();
        }
        let list = known.entry(key).or_default();
        list.retain(|c| {
            Arc::ptr_eq(&c.definition, &compiled.definition) && c.signature != compiled.signature
        });
        list.push(compiled);
    }
}

/// A session's store of compiled functions, call places and settings of functions.
#[derive(Default)]
pub struct SessionRoutines {
    pub(crate) known: HashMap<u32, Vec<Arc<Known>>>,
    /// Plans made under definitions of its own.
    pub private: PrivatePlans,
    /// Calls of programs that are running, outermost first, for those who show where they are.
    pub calls: Vec<CallPlace>,
    /// Functions that run and are timed (`track_functions`), outermost first.
    pub(crate) timed: Vec<TimedCall>,
    /// See [`SessionRoutines::kept_by`].
    pub(crate) languages: HashMap<&'static str, Box<dyn Any + Send + Sync>>,
    /// See [`SessionRoutines::kept_at_work`].
    at_work: HashMap<&'static str, Box<dyn Any + Send + Sync>>,
}

/// A call that is timed.
#[derive(Default)]
pub(crate) struct TimedCall {
    pub function: u32,
    /// Microseconds in calls that it made.
    pub inner_us: u64,
}

/// Where a running program is.
#[derive(Clone)]
pub struct CallPlace {
    /// As CONTEXT lines name the function.
    pub signature: Arc<str>,
    /// The line, and what stands there (`at RAISE`).
    pub at: (u32, &'static str),
    /// The SQL statement that it runs there.
    pub statement: Option<Arc<str>>,
}

impl SessionRoutines {
    /// Keeps a plan that was made under the session's own definitions.
    pub fn keep_private(&mut self, slot: u64, key: PlanKey, plan: Arc<dyn Any + Send + Sync>) {
        if self.private.len() >= KNOWN_MAX {
            self.private.clear();
        }
        self.private.insert(slot, (key, plan));
    }

    /// State that languages keep until the session ends, by the language's name.
    pub fn kept_by(
        &mut self,
        language: &'static str,
        make: impl FnOnce() -> Box<dyn Any + Send + Sync>,
    ) -> &(dyn Any + Send + Sync) {
        &**self.languages.entry(language).or_insert_with(make)
    }

    /// State that languages keep until the session has nothing more to do for now, by the language's name.
    pub fn kept_at_work(
        &mut self,
        language: &'static str,
        make: impl FnOnce() -> Box<dyn Any + Send + Sync>,
    ) -> &(dyn Any + Send + Sync) {
        &**self.at_work.entry(language).or_insert_with(make)
    }

    /// The session has nothing more to do for now.
    #[inline]
    pub fn rest(&mut self) {
        if !self.at_work.is_empty() {
            self.at_work = HashMap::new();
        }
    }
}

/// A function as a session calls it.
pub(crate) struct Known {
    /// While this is the same, nothing about it has changed.
    pub(crate) key: PlanKey,
    pub(crate) signature: CallSignature,
    pub(crate) definition: Arc<Function>,
    pub(crate) routine: Arc<dyn Routine>,
    /// Which of a call's arguments the body gets: all but a procedure's OUT parameters.
    pub(crate) inputs: Option<Vec<usize>>,
    /// In whose name it runs, and where it looks for names, when that differs from the session.
    pub(crate) acting: Option<Acting>,
}

/// See [`Known::acting`].
pub(crate) struct Acting {
    pub(crate) path: Option<Vec<u32>>,
    pub(crate) role: Option<(u32, String)>,
    /// [`sql::environment`] that plans in its body depend on, when it has no settings of its own.
    pub(crate) environment: u64,
}
