//! The table of relations: a radix tree over the id, read without locks.
//!
//! Three levels of 12, 10 and 10 bits. Nodes and entries are made under a lock of the caller's and
//! freed only with the table, so a reader needs nothing but three loads.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use base::RelId;

use crate::files::relation::Relation;

type Leaf = [AtomicPtr<Relation>; 1 << 10];
type Middle = [AtomicPtr<Leaf>; 1 << 10];

/// See the module.
pub(super) struct Table {
    root: Box<[AtomicPtr<Middle>]>,
}

fn split(rel: RelId) -> (usize, usize, usize) {
    let id = rel.0 as usize;
    (id >> 20, (id >> 10) & 1023, id & 1023)
}

fn new_node<T, const N: usize>() -> Box<[AtomicPtr<T>; N]> {
    Box::new([const { AtomicPtr::new(ptr::null_mut()) }; N])
}

/// The node behind a pointer, made if it isn't there.
fn get_or_make<T, const N: usize>(slot: &AtomicPtr<[AtomicPtr<T>; N]>) -> &[AtomicPtr<T>; N] {
    let mut node = slot.load(Ordering::Acquire);
    if node.is_null() {
        node = Box::into_raw(new_node());
        slot.store(node, Ordering::Release);
    }
    // SAFETY: nodes live as long as the table, which the slot's borrow keeps alive.
    unsafe { &*node }
}

impl Table {
    pub(super) fn new() -> Table {
        Table { root: (0..1 << 12).map(|_| AtomicPtr::new(ptr::null_mut())).collect() }
    }

    pub(super) fn get(&self, rel: RelId) -> Option<&Relation> {
        let (a, b, c) = split(rel);
        // SAFETY: a pointer in the tree is null or to something that lives as long as the table.
        unsafe {
            let middle = self.root[a].load(Ordering::Acquire).as_ref()?;
            let leaf = middle[b].load(Ordering::Acquire).as_ref()?;
            leaf[c].load(Ordering::Acquire).as_ref()
        }
    }

    /// Puts an entry in that isn't there. One caller at a time.
    pub(super) fn insert(&self, rel: RelId, relation: Relation) -> &Relation {
        let (a, b, c) = split(rel);
        let leaf = get_or_make(&get_or_make(&self.root[a])[b]);
        let entry = Box::into_raw(Box::new(relation));
        debug_assert!(leaf[c].load(Ordering::Acquire).is_null());
        leaf[c].store(entry, Ordering::Release);
        // SAFETY: entries live as long as the table.
        unsafe { &*entry }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: every pointer came from `Box::into_raw`, is in one place, and `&mut self` says
        // that nobody reads.
        unsafe {
            for middle in self.root.iter().map(|p| p.load(Ordering::Relaxed)) {
                if middle.is_null() {
                    continue;
                }
                for leaf in Box::from_raw(middle).iter().map(|p| p.load(Ordering::Relaxed)) {
                    if leaf.is_null() {
                        continue;
                    }
                    for entry in Box::from_raw(leaf).iter().map(|p| p.load(Ordering::Relaxed)) {
                        if !entry.is_null() {
                            drop(Box::from_raw(entry));
                        }
                    }
                }
            }
        }
    }
}
