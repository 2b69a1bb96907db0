//! Stacks: how much is left, and the way to the worker's own large one.

use base::{Result, err};

use crate::local::{Local, local};
use crate::sys;

/// What must be left for code that checks no more: drop code, the allocator, system libraries.
const RESERVE_BYTES: usize = 64 << 10;

/// `54001 stack depth limit exceeded` when less than 64 KiB are left on the running stack. Every
/// recursion over user input calls it.
///
/// # Errors
/// `54001`.
#[inline]
pub fn check_stack() -> Result<()> {
    let here = 0u8;
    let here = std::ptr::from_ref(std::hint::black_box(&here)) as usize;
    let local = local();
    let mut limit = local.stack_limit.get();
    if limit == 0 {
        limit = native_limit(local);
        local.stack_limit.set(limit);
    }
    if here.wrapping_sub(limit) < RESERVE_BYTES || here < limit { too_deep() } else { Ok(()) }
}

/// The lowest usable address of this thread's own stack; asked of the system once.
#[cold]
pub(crate) fn native_limit(local: &Local) -> usize {
    if local.native_limit.get() == 0 {
        local.native_limit.set(sys::thread_stack_limit());
    }
    local.native_limit.get()
}

#[cold]
fn too_deep() -> Result<()> {
    Err(err!(STATEMENT_TOO_COMPLEX, "stack depth limit exceeded")
        .hint("Simplify the statement: its expressions or subqueries are nested too deeply."))
}

/// Runs `f` on the worker's own large stack (deeply recursive C); directly when not on a coroutine.
/// `f` must not park.
pub fn on_native_stack<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    let local = local();
    let yielder = local.yielder.get();
    if yielder.is_null() {
        return call(f);
    }
    // While `f` runs, this thread is as if it ran no coroutine: the stack that `check_stack` looks
    // at is the worker's, and a park (which would suspend from the wrong stack) is caught.
    let _back = Restore { limit: local.stack_limit.replace(native_limit(local)), yielder };
    local.yielder.set(std::ptr::null());
    // SAFETY: the running coroutine's yielder lies on its stack, which is suspended below us
    // (or, here, running) for as long as this call lasts.
    unsafe { (*yielder).on_parent_stack(f) }
}

/// Keeps the frame of `f` out of its caller's, which may be on a coroutine.
#[inline(never)]
fn call<R>(f: impl FnOnce() -> R) -> R {
    f()
}

/// Puts the coroutine's cells back, also when `f` panics.
struct Restore {
    limit: usize,
    yielder: *const crate::coroutine::Yielder,
}

impl Drop for Restore {
    fn drop(&mut self) {
        let local = local();
        local.stack_limit.set(self.limit);
        local.yielder.set(self.yielder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recurse(depth: &mut usize) -> Result<()> {
        check_stack()?;
        *depth += 1;
        let result = recurse(depth);
        std::hint::black_box(&depth);
        result
    }

    #[test]
    fn endless_recursion_ends_in_an_error() {
        let mut depth = 0;
        let error = recurse(&mut depth).unwrap_err();
        assert_eq!(error.code(), base::sqlstate::STATEMENT_TOO_COMPLEX);
        assert!(depth > 100);
    }
}
