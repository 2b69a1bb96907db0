//! Plans of definitions rather than of a client's statements: the conditions of domains,
//! the rules of a table's rows, defaults and other statements of the server's own. All sessions share it;
//! it is made anew when the catalog, or what planning depends on, has changed ([`PlanSlot`]).

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use base::{Error, Result};

use crate::context::ExecContext;
use crate::plan_slot::PlanSlot;

/// Definitions of which plans are kept.
const SLOTS_MAX: usize = 4096;
/// Longest statement whose plan is kept.
const TEXT_BYTES_MAX: usize = 16 * 1024;

/// What a plan is of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PlanOf {
    /// A domain's constraints, by database and type.
    Domain(u32, u32),
    /// The rules of a table's rows, by database and table.
    Rows(u32, u32),
    /// A statement of the server's own, by database and text.
    Statement(u32, Box<str>),
}

type Plan = Arc<dyn Any + Send + Sync>;

/// See the module's documentation.
#[derive(Default)]
pub struct StoredPlans {
    // Held for a look: nothing waits meanwhile.
    slots: RwLock<HashMap<PlanOf, Arc<PlanSlot<Plan>>>>,
    planned: AtomicU64,
}

impl StoredPlans {
    /// How often something was bound or planned.
    pub fn planned(&self) -> u64 {
        self.planned.load(Ordering::Relaxed)
    }

    fn slot(&self, of: PlanOf) -> Arc<PlanSlot<Plan>> {
        {
            let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(slot) = slots.get(&of) {
                return slot.clone();
            }
        }
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= SLOTS_MAX {
            slots.clear();
        }
        slots.entry(of).or_default().clone()
    }
}

/// The plan that is good now; one that `plan` makes, where there is none.
///
/// # Errors
/// `plan`'s.
pub fn get<T: Any + Send + Sync>(
    of: PlanOf,
    cx: &mut ExecContext<'_>,
    plan: impl FnOnce(&mut ExecContext<'_>) -> Result<T>,
) -> Result<Arc<T>> {
    let stored = &cx.engine.stored_plans;
    if matches!(&of, PlanOf::Statement(_, text) if text.len() > TEXT_BYTES_MAX) {
        stored.planned.fetch_add(1, Ordering::Relaxed);
        return plan(cx).map(Arc::new);
    }
    let found = stored.slot(of).get_or_plan(cx, |cx| {
        stored.planned.fetch_add(1, Ordering::Relaxed);
        let made: Plan = Arc::new(plan(cx)?);
        Ok(Arc::new(made))
    })?;
    let other = |_| Error::internal("a stored plan is of another kind than its key");
    Plan::clone(&found).downcast::<T>().map_err(other)
}
