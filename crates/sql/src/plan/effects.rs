//! What others can see of a plan's run beside its result: sequences that move on, functions that log, rows that are
//! locked. How far and in which order a plan is run is no matter as long as nobody can see it; where somebody can,
//! the executor hands rows on one by one ([`Effects::any`] where a reader may stop, [`Effects::crossed`] always).
//! [`super::Plan::effects`] finds them.

/// Of a statement's plan, its subplans included.
#[derive(Clone, Copy, Default)]
pub struct Effects {
    /// There are some.
    pub any: bool,
    /// Two places of the plan have effects whose order can be seen, so that they must take turns row by row.
    pub crossed: bool,
}
