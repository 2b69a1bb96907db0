//! The table by which the lower half of the executor calls the upper one ([`crate::calls`]).

use crate::calls::Calls;
use crate::ops::build::build;
use crate::{execute, explain, routine, session};

/// For the engine.
pub static CALLS: Calls = Calls {
    build,
    run: execute::run_nested,
    session_function: session::call,
    session_value: session::value,
    cast_through_text: session::cast_through_text,
    routine: routine::call,
    routine_of_batch: routine::call_batch,
    routine_of_values: routine::call_values,
    describe: explain::measured,
};
