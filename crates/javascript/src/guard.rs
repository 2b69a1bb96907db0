//! The end of JavaScript that must end: interrupts and memory.
//!
//! QuickJS asks for interrupts in loops and calls of byte code, once in ten thousand. Its own functions ask for none, and
//! may take long between two of these questions. So there are two more places:
//!
//! * its allocator ([`Memory`]): functions that make something large of something long allocate as they go;
//! * functions that go over something long and make nothing, which `builtins.js` replaces.
//!
//! An error that ends the statement ends the body, whatever it catches: it is kept here, each later question is answered
//! with it, and memory is refused. So is running out of memory: a body that caught it would only run out again.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use base::{Error, err};
use rquickjs::allocator::{Allocator, RustAllocator};

/// Allocations of so many bytes look for interrupts.
const LARGE_BYTES: usize = 64 << 10;
/// Smaller ones do so once in as many.
const BETWEEN_LOOKS: usize = 1024;
/// Small allocations that succeed after the error that ends the body: as it unwinds it makes exceptions.
const LAST_ALLOCATIONS: usize = 4096;

/// The state that the context, its allocator and its calls share.
#[derive(Default)]
pub struct Guard {
    /// The error that ends the statement.
    error: Mutex<Option<Error>>,
    /// Whether there is one.
    ended: AtomicBool,
    /// Whether a call runs.
    running: AtomicBool,
    /// Bytes that the run-time holds, and may hold at most (0: no limit).
    held: AtomicUsize,
    limit: AtomicUsize,
    /// Allocations since the last look, or since the end.
    allocations: AtomicUsize,
}

impl Guard {
    /// A call begins: `limit` bytes may be held (0: any number).
    pub fn begin(&self, limit: usize) {
        self.take_error();
        self.limit.store(limit, Ordering::Relaxed);
        self.running.store(true, Ordering::Relaxed);
    }

    /// The call has ended: the error that ended it, if one did.
    pub fn end(&self) -> Option<Error> {
        self.running.store(false, Ordering::Relaxed);
        self.take_error()
    }

    fn take_error(&self) -> Option<Error> {
        self.ended.store(false, Ordering::Relaxed);
        self.allocations.store(0, Ordering::Relaxed);
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The error that ends the statement, if there is one.
    pub fn error(&self) -> Option<Error> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps an error that ends the statement; the first stays.
    pub fn note(&self, error: Error) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.allocations.store(0, Ordering::Relaxed);
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Looks for interrupts; whether the body ends. It may yield the worker.
    pub fn ends(&self) -> bool {
        if self.ended.load(Ordering::Relaxed) {
            return true;
        }
        match sched::check_interrupts_now() {
            Ok(()) => false,
            Err(error) => {
                self.note(error);
                true
            }
        }
    }

    /// Whether so many bytes more may be allocated.
    fn admits(&self, bytes: usize) -> bool {
        if !self.running.load(Ordering::Relaxed) {
            return true;
        }
        let count = self.allocations.load(Ordering::Relaxed) + 1;
        self.allocations.store(count, Ordering::Relaxed);
        if self.ended.load(Ordering::Relaxed) {
            return bytes < LARGE_BYTES && count < LAST_ALLOCATIONS;
        }
        let limit = self.limit.load(Ordering::Relaxed);
        if limit > 0 && self.held.load(Ordering::Relaxed).saturating_add(bytes) > limit {
            self.note(
                err!(OUT_OF_MEMORY, "out of memory")
                    .detail("JavaScript reached the session's limit of memory."),
            );
            return false;
        }
        if bytes < LARGE_BYTES && count < BETWEEN_LOOKS {
            return true;
        }
        self.allocations.store(0, Ordering::Relaxed);
        match sched::check_interrupts_now().and_then(|()| sched::memory::ask(bytes)) {
            Ok(()) => true,
            Err(error) => {
                self.note(error);
                false
            }
        }
    }

    fn add(&self, bytes: usize) {
        self.held.fetch_add(bytes, Ordering::Relaxed);
    }

    fn subtract(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The allocator of a run-time: the server's, as far as the guard admits.
pub struct Memory(pub Arc<Guard>);

// SAFETY: each pointer is the Rust allocator's own, or null.
unsafe impl Allocator for Memory {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        match self.0.admits(size) {
            true => self.counted(RustAllocator.alloc(size)),
            false => std::ptr::null_mut(),
        }
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        match count.checked_mul(size).is_some_and(|bytes| self.0.admits(bytes)) {
            true => self.counted(RustAllocator.calloc(count, size)),
            false => std::ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&mut self, ptr: *mut u8) {
        // SAFETY: the caller hands back what this allocator gave, which is the Rust allocator's.
        unsafe {
            self.0.subtract(RustAllocator::usable_size(ptr));
            RustAllocator.dealloc(ptr);
        }
    }

    unsafe fn realloc(&mut self, ptr: *mut u8, new_size: usize) -> *mut u8 {
        // SAFETY: as in `dealloc`.
        let size = unsafe { RustAllocator::usable_size(ptr) };
        if new_size > size && !self.0.admits(new_size - size) {
            return std::ptr::null_mut();
        }
        // SAFETY: as in `dealloc`.
        let moved = unsafe { RustAllocator.realloc(ptr, new_size) };
        if !moved.is_null() {
            self.0.subtract(size);
        }
        self.counted(moved)
    }

    unsafe fn usable_size(ptr: *mut u8) -> usize {
        // SAFETY: as in `dealloc`.
        unsafe { RustAllocator::usable_size(ptr) }
    }
}

impl Memory {
    fn counted(&self, ptr: *mut u8) -> *mut u8 {
        if !ptr.is_null() {
            // SAFETY: the Rust allocator has just given it.
            self.0.add(unsafe { RustAllocator::usable_size(ptr) });
        }
        ptr
    }
}
