//! Stacks: how much is left, and the way to the worker's own large one.
//!
//! A run that is suspended on a large stack may go on on another thread: what is put back is put back into that one's cells.

use std::cell::RefCell;
use std::num::NonZeroUsize;

use base::{Result, err};
use corosensei::stack::{Stack, StackPointer};

use crate::local::{Local, local};
use crate::sys;

/// The stack left for code that checks no more: drop code, the allocator, system libraries.
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
    let _back = Restore {
        limit: local.stack_limit.replace(native_limit(local)),
        bytes: local.stack_bytes.replace(0),
        yielder,
    };
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

/// Runs `f` on a stack with so many bytes, at least: on the running one if it is as large, else on one of its own.
/// `f` may park.
///
/// For what recurses as deeply as a statement is long. Half of the stack is left for recursions that check
/// nothing (copying, comparing and freeing a tree), whose frames are smaller than those that do.
///
/// # Errors
/// `53200`, when the system has no room for a stack; `f` is dropped then.
pub fn with_stack<R>(bytes: usize, f: impl FnOnce() -> R) -> Result<R> {
    let local = local();
    if bytes <= local.stack_bytes.get() {
        return Ok(call(f));
    }
    let Some(stack) = LargeStack::take(bytes) else {
        return Err(err!(OUT_OF_MEMORY, "no memory for a stack of {bytes} bytes"));
    };
    let _back = RestoreLarge {
        limit: local.stack_limit.replace(stack.limit()),
        bytes: local.stack_bytes.replace(stack.bytes),
    };
    Ok(corosensei::on_stack(stack, f))
}

/// Bytes of the stack that [`with_stack`] gave to the running code; 0: it runs on an ordinary one.
pub fn stack_bytes() -> usize {
    local().stack_bytes.get()
}

/// See [`with_stack`].
struct RestoreLarge {
    limit: usize,
    bytes: usize,
}

impl Drop for RestoreLarge {
    fn drop(&mut self) {
        let local = local();
        local.stack_limit.set(self.limit);
        local.stack_bytes.set(self.bytes);
    }
}

const PAGE: usize = 4096;
/// The smallest stack that [`with_stack`] makes; some of this size are kept.
const LARGE_BYTES_MIN: usize = 8 << 20;
/// Stacks that a thread keeps.
const KEPT: usize = 4;
/// The part of a kept stack that may have been touched; the rest goes back to the system.
const KEPT_BYTES: usize = 256 << 10;

thread_local! {
    static SPARE: RefCell<Vec<LargeStack>> = const { RefCell::new(Vec::new()) };
}

// Neither is inlined: what runs on such a stack may go on on another thread, and there gives the stack back.

#[inline(never)]
fn take_spare() -> Option<LargeStack> {
    SPARE.try_with(|spare| spare.borrow_mut().pop()).ok().flatten()
}

/// Keeps the mapping of one that is about to go, if it is worth that.
#[inline(never)]
fn keep_spare(stack: &LargeStack) -> bool {
    let keep = |spare: &RefCell<Vec<LargeStack>>| {
        let mut spare = spare.borrow_mut();
        if stack.bytes != LARGE_BYTES_MIN || spare.len() == KEPT {
            return false;
        }
        // SAFETY: the mapping is the stack's own, and nothing runs on it any more.
        unsafe {
            let unused = stack.low.byte_add(PAGE);
            libc::madvise(unused, stack.bytes - PAGE - KEPT_BYTES, libc::MADV_DONTNEED);
        }
        spare.push(LargeStack { low: stack.low, bytes: stack.bytes });
        true
    };
    SPARE.try_with(keep).unwrap_or(false)
}

/// A mapping with a guard page at its low end.
struct LargeStack {
    low: *mut libc::c_void,
    bytes: usize,
}

impl LargeStack {
    fn take(bytes: usize) -> Option<LargeStack> {
        let bytes = bytes.max(LARGE_BYTES_MIN).next_power_of_two();
        let spare = if bytes == LARGE_BYTES_MIN { take_spare() } else { None };
        spare.or_else(|| LargeStack::new(bytes))
    }

    #[cold]
    fn new(bytes: usize) -> Option<LargeStack> {
        // SAFETY: a fresh anonymous mapping; its lowest page is then made inaccessible.
        unsafe {
            let low = libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK,
                -1,
                0,
            );
            if low == libc::MAP_FAILED {
                return None;
            }
            let stack = LargeStack { low, bytes };
            (libc::mprotect(low, PAGE, libc::PROT_NONE) == 0).then_some(stack)
        }
    }

    /// Where [`check_stack`] finds the stack's end.
    fn limit(&self) -> usize {
        self.low as usize + self.bytes / 2
    }
}

impl Drop for LargeStack {
    fn drop(&mut self) {
        if !keep_spare(self) {
            // SAFETY: as above.
            unsafe { libc::munmap(self.low, self.bytes) };
        }
    }
}

// SAFETY: the mapping has a guard page, is larger than the minimum, and its ends are pages'.
unsafe impl Stack for LargeStack {
    fn base(&self) -> StackPointer {
        NonZeroUsize::new(self.low as usize + self.bytes).unwrap_or(NonZeroUsize::MAX)
    }
    fn limit(&self) -> StackPointer {
        NonZeroUsize::new(self.low as usize).unwrap_or(NonZeroUsize::MIN)
    }
}

/// Puts the coroutine's cells back, also when `f` panics.
struct Restore {
    limit: usize,
    bytes: usize,
    yielder: *const crate::coroutine::Yielder,
}

impl Drop for Restore {
    fn drop(&mut self) {
        let local = local();
        local.stack_limit.set(self.limit);
        local.stack_bytes.set(self.bytes);
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
    fn a_large_stack_takes_deep_recursion_and_what_is_kept_is_used_again() {
        fn sum(n: u64) -> u64 {
            let here = std::hint::black_box([n; 16]);
            if n == 0 { 0 } else { here[3] + sum(n - 1) }
        }
        for _ in 0..10 {
            let deep = with_stack(64 << 20, || {
                assert_eq!(stack_bytes(), 64 << 20);
                with_stack(1 << 20, || assert_eq!(stack_bytes(), 64 << 20)).unwrap();
                check_stack().expect("an empty stack");
                sum(100_000)
            });
            assert_eq!(deep.unwrap(), 5_000_050_000);
            assert_eq!(with_stack(1, || sum(10_000)).unwrap(), 50_005_000);
            assert_eq!(stack_bytes(), 0);
        }
        let mut depth = 0;
        let error = with_stack(64 << 20, || recurse(&mut depth).unwrap_err()).unwrap();
        assert_eq!(error.code(), base::sqlstate::STATEMENT_TOO_COMPLEX);
        let panicked = std::panic::catch_unwind(|| with_stack(1, || panic!("on another stack")));
        assert!(panicked.is_err() && stack_bytes() == 0);
    }

    #[test]
    fn endless_recursion_ends_in_an_error() {
        let mut depth = 0;
        let error = recurse(&mut depth).unwrap_err();
        assert_eq!(error.code(), base::sqlstate::STATEMENT_TOO_COMPLEX);
        assert!(depth > 100);
    }
}
