//! Slots of plans: a plan is made once and used by all sessions while nothing that it depends on has changed.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use base::Result;

use crate::compiled::SessionRoutines;
use crate::context::ExecContext;

/// Plans of one statement for different environments that are kept.
const PLANS_MAX: usize = 32;

/// The catalog version and environment that a plan was made under: while they are the same, the plan is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanKey {
    /// See [`catalog::CatalogTx::stamp`].
    pub stamp: (u64, u64),
    /// See [`ExecContext::environment`].
    pub environment: u64,
}

impl PlanKey {
    /// The key of a plan that would be made now.
    pub fn now(cx: &mut ExecContext<'_>) -> PlanKey {
        PlanKey { stamp: cx.catalog_tx.stamp(), environment: cx.environment }
    }

    /// Whether other sessions can use such a plan.
    fn is_shared(self) -> bool {
        self.stamp.1 == 0
    }
}

/// The plans of one statement of a routine, by what they were made under. All sessions share them; what
/// a session plans under definitions of its own it keeps for itself.
pub struct PlanSlot<T> {
    number: u64,
    // Held for a look at a few entries: nothing waits meanwhile.
    plans: RwLock<Vec<(PlanKey, Arc<T>)>>,
}

impl<T: Any + Send + Sync> Default for PlanSlot<T> {
    fn default() -> PlanSlot<T> {
        static SLOTS: AtomicU64 = AtomicU64::new(0);
        PlanSlot { number: SLOTS.fetch_add(1, Ordering::Relaxed), plans: RwLock::default() }
    }
}

impl<T: Any + Send + Sync> PlanSlot<T> {
    /// A plan that is good now and fits.
    pub fn get(
        &self,
        key: PlanKey,
        routines: &SessionRoutines,
        fits: impl Fn(&T) -> bool,
    ) -> Option<Arc<T>> {
        if !key.is_shared() {
            let (known, plan) = routines.private.get(&self.number)?;
            let plan = plan.clone().downcast::<T>().ok()?;
            return (*known == key && fits(&plan)).then_some(plan);
        }
        let plans = self.plans.read().unwrap_or_else(PoisonError::into_inner);
        plans.iter().find(|(k, plan)| *k == key && fits(plan)).map(|(_, plan)| plan.clone())
    }

    /// The plan that is good now; one that `plan` makes, where there is none.
    ///
    /// # Errors
    /// `plan`'s.
    pub fn get_or_plan(
        &self,
        cx: &mut ExecContext<'_>,
        plan: impl FnOnce(&mut ExecContext<'_>) -> Result<Arc<T>>,
    ) -> Result<Arc<T>> {
        let key = PlanKey::now(cx);
        if let Some(known) = self.get(key, cx.routines, |_| true) {
            return Ok(known);
        }
        let made = plan(cx)?;
        // Another version may be published by now.
        if PlanKey::now(cx) == key {
            self.put(key, cx.routines, made.clone());
        }
        Ok(made)
    }

    /// Keeps a plan.
    pub fn put(&self, key: PlanKey, routines: &mut SessionRoutines, plan: Arc<T>) {
        if !key.is_shared() {
            routines.keep_private(self.number, key, plan);
            return;
        }
        let mut plans = self.plans.write().unwrap_or_else(PoisonError::into_inner);
        // Those of older versions are of no use to anybody, but for a moment.
        plans.retain(|(k, _)| k.stamp >= key.stamp);
        if plans.len() >= PLANS_MAX {
            plans.remove(0);
        }
        plans.push((key, plan));
    }
}

/// Plans that a session made under definitions of its own, by slot.
pub type PrivatePlans = HashMap<u64, (PlanKey, Arc<dyn Any + Send + Sync>)>;
