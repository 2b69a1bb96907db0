//! Stacks: how much is left, and the way to the worker's own large one.

use base::Result;

/// `54001 stack depth limit exceeded` when less than 64 KiB are left on the running stack. Every
/// recursion over user input calls it.
pub fn check_stack() -> Result<()> {
    todo!()
}

/// Runs `f` on the worker's own large stack (deeply recursive C); directly when not on a coroutine.
/// `f` must not park.
pub fn on_native_stack<R: Send>(_f: impl FnOnce() -> R + Send) -> R {
    todo!()
}
