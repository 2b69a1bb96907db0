//! Prefetching of the memory that a connection's next run will use, while the runs before it go on: with
//! thousands of connections it has left the nearer caches since the last one. (Asking for memory ahead
//! of its use is what "software prefetching" of group-wise database operators does: Chen, Ailamaki,
//! Gibbons and Mowry, "Improving hash join performance through prefetching", 2004.)

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::task::Task;

const LINE: usize = 64;
/// Objects of one connection.
const MOST: usize = 7;
/// Objects that only its next run will use.
const MOST_ONCE: usize = 4;

/// An object's cache lines: where they begin, and in the low bits how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines(usize);

impl Lines {
    /// Those of an object, of a very large one the first. Only an address: nothing depends on its being
    /// true, and it may outlive the object.
    pub fn of<T>(object: &T) -> Lines {
        let at = std::ptr::from_ref(object) as usize;
        Lines::between(at, at + size_of::<T>())
    }

    /// Those of an object that is shared, with its counts of references, which lie before it.
    pub fn of_shared<T>(object: &Arc<T>) -> Lines {
        let at = Arc::as_ptr(object) as usize;
        Lines::between(at - 2 * size_of::<usize>(), at + size_of::<T>())
    }

    fn between(at: usize, end: usize) -> Lines {
        let begin = at & !(LINE - 1);
        let count = (end - begin).div_ceil(LINE);
        Lines(begin | count.min(LINE - 1))
    }

    fn fetch(self) {
        let begin = self.0 & !(LINE - 1);
        for line in 0..self.0 % LINE {
            crate::sys::prefetch_line(begin + line * LINE);
        }
    }
}

/// Lines of a suspended run's stack: what it returns through first.
const STACK_LINES: usize = 40;

/// A connection's.
#[derive(Default)]
pub(super) struct Ahead {
    objects: [AtomicUsize; MOST],
    once: [AtomicUsize; MOST_ONCE],
    /// Where its run is suspended.
    stack: AtomicUsize,
}

impl Ahead {
    fn set(known: &[AtomicUsize], objects: &[Lines]) {
        for (known, lines) in known.iter().zip(objects) {
            known.store(lines.0, Ordering::Relaxed);
        }
    }

    /// Its run is suspended here.
    #[inline]
    pub(super) fn suspended(&self) {
        let here = 0_u8;
        let at = std::ptr::from_ref(&here) as usize & !(LINE - 1);
        self.stack.store(at | STACK_LINES, Ordering::Relaxed);
    }

    /// It is about to run.
    pub(super) fn fetch(&self) {
        self.objects
            .iter()
            .chain(&self.once)
            .for_each(|lines| Lines(lines.load(Ordering::Relaxed)).fetch());
    }

    /// It is about to run on.
    pub(super) fn fetch_suspended(&self) {
        Lines(self.stack.load(Ordering::Relaxed)).fetch();
        self.fetch();
    }
}

/// Says which objects each run of the task's connection uses.
pub fn uses(task: &Task, objects: [Lines; MOST]) {
    if let Some(conn) = task.link() {
        Ahead::set(&conn.ahead.objects, &objects);
    }
}

/// Says which objects the next run of the task's connection will probably use besides.
pub fn will_use(task: &Task, objects: [Lines; MOST_ONCE]) {
    if let Some(conn) = task.link() {
        Ahead::set(&conn.ahead.once, &objects);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_has_all_lines_that_it_touches() {
        #[repr(align(64))]
        struct Aligned([u8; 130]);
        let object = Aligned([0; 130]);
        let at = object.0.as_ptr() as usize;
        assert_eq!(Lines::of(&object), Lines(at | 3));
        let parts: &[u8; 64] = object.0[63..127].first_chunk().unwrap();
        assert_eq!(Lines::of(parts), Lines(at | 2));
        let shared = Arc::new(object);
        let at = shared.0.as_ptr() as usize;
        assert_eq!(
            Lines::of_shared(&shared),
            Lines((at - LINE) | 4),
            "its counts are in the line before"
        );
        assert_eq!(Lines::of(&[0_u8; 64 * 100]).0 % LINE, 63, "not more than there is room for");
    }
}
