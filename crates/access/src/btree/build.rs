//! Building an index from sorted entries, bottom up.
//!
//! Pages are written once, left to right, each by one mini-transaction; the meta page comes last.
//! Leaves are filled to nine tenths. Nobody else knows of the index yet.

use std::sync::Arc;

use base::{Fork, PageId, RelId, Result, TupleId};
use storage::Storage;

use super::BTree;
use super::insert::check_key;
use super::node::{self, Body, CAPACITY, Entry, LOWEST, MAX_KEY, Tid};
use crate::extension::{Searched, next_of_build};

/// Leaves are filled up to here.
const LEAF_FILL: usize = CAPACITY * 9 / 10;
/// Inner pages are filled up to here: any upper bound still fits.
const INNER_FILL: usize = CAPACITY - node::entry_size(MAX_KEY, true);

/// A level's page in the making.
struct Level {
    body: Body,
    block: u32,
    /// Whether an earlier page of the level was written.
    has_siblings: bool,
    last: Option<(Vec<u8>, Tid)>,
}

struct Builder {
    tree: BTree,
    levels: Vec<Level>,
    spare: std::ops::Range<u32>,
}

impl BTree {
    /// Makes the meta page and an empty root. The relation's files exist and are empty.
    pub fn create(storage: &Arc<Storage>, rel: RelId) -> Result<BTree> {
        BTree::build(storage, rel, &mut |_| Ok(None))
    }

    /// Fills a new index from entries sorted by (key, row id); writes full pages. The relation's
    /// files exist and are empty. `next` puts the next entry's key into the buffer and returns its row
    /// id, None at the end.
    pub fn build(
        storage: &Arc<Storage>,
        rel: RelId,
        next: &mut dyn FnMut(&mut Vec<u8>) -> Result<Option<TupleId>>,
    ) -> Result<BTree> {
        BTree::open(storage, rel).fill(next)
    }

    /// The same for a tree that has been named.
    pub(crate) fn fill(
        self,
        next: &mut dyn FnMut(&mut Vec<u8>) -> Result<Option<TupleId>>,
    ) -> Result<BTree> {
        let (tree, rel) = (self.clone(), self.rel);
        let first = self.storage.extend(rel, Fork::Main, 2)?;
        if first != 0 {
            return Err(base::Error::internal(format!("index {} is not empty", rel.0)));
        }
        // Pages that are left over go to the reserve, so there is nothing to search for later.
        *tree.shared().extending.lock() = Searched::ALL;
        let mut builder = Builder { tree, levels: Vec::new(), spare: 1..2 };
        builder.open_level(0)?;
        let mut key = Vec::new();
        while let Some(row) = next(&mut key)? {
            sched::check_interrupts()?;
            check_key(&key)?;
            builder.add(0, &key, row.to_bytes(), 0)?;
        }
        builder.finish()
    }
}

impl Builder {
    fn allocate(&mut self) -> Result<u32> {
        next_of_build(&self.tree.storage, self.tree.rel, &mut self.spare)
    }

    fn open_level(&mut self, level: usize) -> Result<()> {
        let block = self.allocate()?;
        let body = Body::new(level as u16);
        self.levels.push(Level { body, block, has_siblings: false, last: None });
        Ok(())
    }

    fn add(&mut self, level: usize, key: &[u8], tid: Tid, child: u32) -> Result<()> {
        if self.levels.len() == level {
            self.open_level(level)?;
        }
        let inner = level > 0;
        let size = node::entry_size(key.len(), inner);
        let body = &self.levels[level].body;
        // A leaf's upper bound is at most one byte longer than its last key.
        let full = if inner {
            body.size() + size > INNER_FILL
        } else {
            body.size() + size > LEAF_FILL || body.size() + 2 * size + 1 > CAPACITY
        };
        let start_page = full && !body.is_empty();
        if start_page {
            self.close_page(level, key, tid)?;
        }
        let state = &mut self.levels[level];
        // The first entry of an inner page stands for everything below the second.
        let entry = if inner && start_page {
            Entry { key: &[], tid: &LOWEST, child }
        } else {
            Entry { key, tid: &tid, child }
        };
        state.body.push(entry);
        match &mut state.last {
            Some((last, last_tid)) => {
                last.clear();
                last.extend_from_slice(key);
                *last_tid = tid;
            }
            None => state.last = Some((key.to_vec(), tid)),
        }
        Ok(())
    }

    /// Writes a level's page and begins the next one, which starts with (key, tid).
    fn close_page(&mut self, level: usize, key: &[u8], tid: Tid) -> Result<()> {
        let next = self.allocate()?;
        let state = &mut self.levels[level];
        let (bound, bound_tid) = match &state.last {
            Some((last, last_tid)) if level == 0 => {
                let left = Entry { key: last, tid: last_tid, child: 0 };
                (self.tree.separator)(left, Entry { key, tid: &tid, child: 0 })
            }
            _ => (key, tid),
        };
        let mut fresh = Body::new(level as u16);
        fresh.left = state.block;
        let mut body = std::mem::replace(&mut state.body, fresh);
        let block = std::mem::replace(&mut state.block, next);
        let first = !std::mem::replace(&mut state.has_siblings, true);
        body.right = next;
        body.set_high(bound, &bound_tid);
        self.write(body, block)?;
        if first {
            self.add(level + 1, &[], LOWEST, block)?;
        }
        self.add(level + 1, bound, bound_tid, next)
    }

    fn write(&self, body: Body, block: u32) -> Result<()> {
        let storage = &self.tree.storage;
        let mut mtr = storage.mtr();
        let page = mtr.add(storage.pool.pin_new(PageId::main(self.tree.rel, block))?.write());
        body.write(&mut mtr, page, true);
        mtr.commit();
        sched::check_interrupts()
    }

    fn finish(mut self) -> Result<BTree> {
        let top = self.levels.len() - 1;
        let root = self.levels[top].block;
        for (i, level) in std::mem::take(&mut self.levels).into_iter().enumerate() {
            let mut body = level.body;
            body.root = i == top;
            self.write(body, level.block)?;
        }
        let storage = &self.tree.storage;
        let mut mtr = storage.mtr();
        let meta = mtr.add(storage.pool.pin_new(PageId::main(self.tree.rel, 0))?.write());
        mtr.init(meta);
        node::put_meta(&mut mtr, meta, root, top as u16);
        self.tree.cache_root(root, top as u16);
        mtr.commit();
        self.tree.shared().spare.lock().extend(self.spare.clone().rev());
        Ok(self.tree)
    }
}
