//! Descending a B-tree of three levels: one root, some inner pages, many leaves. A page's state,
//! version and latch share a line, as in the server's frames; reading the page itself is local
//! work.
//!
//! * *latched*: pin and shared latch on each page, as PostgreSQL does.
//! * *pinned*: pin on each page, its version read before and after instead of the latch.
//! * *optimistic*: the server. Inner pages: only the version, before and after, so that nothing
//!   shared is written; the leaf is pinned and latched.
//!
//! One of twenty is an insert: it latches the leaf exclusively and changes its version. One of 400
//! inserts splits, which does the same to an inner page.

use std::rc::Rc;

use super::super::coherence::Word;
use super::super::engine::{Core, Simulation};
use super::super::locks::{BOUNDED, Kind, Lock};
use super::pins::{Header, Pin};

const INNER: usize = 64;
const LEAVES: usize = 4096;
const INSERTS: u64 = 20;
const SPLITS: u64 = 400;
/// The search within one page.
const SEARCH_NS: f64 = 150.0;

/// How it descends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Descent {
    /// Pin and latch everywhere.
    Latched,
    /// Pin everywhere, latch on the leaf.
    Pinned,
    /// Versions on inner pages.
    Optimistic,
}

/// A page of the tree.
pub struct Page {
    header: Header,
    version: Word,
    latch: Lock,
}

impl Page {
    fn new(simulation: &mut Simulation, kind: Kind, pin: Pin) -> Page {
        let line = simulation.line();
        Page {
            header: Header::on(simulation, line, pin),
            version: simulation.word_on(line),
            latch: Lock::on(simulation, line, kind),
        }
    }

    /// Reads it while it does not change.
    pub async fn read_version(&self, core: &Core) {
        loop {
            let before = core.load(self.version).await;
            core.work_about(SEARCH_NS).await;
            if before.is_multiple_of(2) && core.load(self.version).await == before {
                return;
            }
        }
    }

    /// Pins it and reads it without a latch.
    async fn read_pinned(&self, core: &Core) {
        self.header.pin(core).await;
        self.read_version(core).await;
        self.header.unpin(core).await;
    }

    /// Pins and latches it and reads it.
    pub async fn read_latched(&self, core: &Core) {
        self.header.pin(core).await;
        self.latch.acquire(core, false).await;
        core.work_about(SEARCH_NS).await;
        self.latch.release(core, false).await;
        self.header.unpin(core).await;
    }

    async fn change(&self, core: &Core) {
        self.header.pin(core).await;
        self.latch.acquire(core, true).await;
        let version = core.load(self.version).await;
        core.store(self.version, version + 1).await;
        core.work_about(SEARCH_NS).await;
        core.store(self.version, version + 2).await;
        self.latch.release(core, true).await;
        self.header.unpin(core).await;
    }
}

/// A tree.
pub struct Tree {
    root: Page,
    inner: Vec<Page>,
    leaves: Vec<Page>,
    descent: Descent,
}

impl Tree {
    /// Locks and pins as the descent's owner has them.
    pub fn new(simulation: &mut Simulation, descent: Descent, kind: Kind, pin: Pin) -> Tree {
        Tree {
            root: Page::new(simulation, kind, pin),
            inner: (0..INNER).map(|_| Page::new(simulation, kind, pin)).collect(),
            leaves: (0..LEAVES).map(|_| Page::new(simulation, kind, pin)).collect(),
            descent,
        }
    }

    /// From the root to a random leaf; returns the inner page and the leaf.
    pub async fn descend(&self, core: &Core) -> (&Page, &Page) {
        let leaf = core.random(LEAVES as u64) as usize;
        let inner = &self.inner[leaf % INNER];
        for page in [&self.root, inner] {
            match self.descent {
                Descent::Latched => page.read_latched(core).await,
                Descent::Pinned => page.read_pinned(core).await,
                Descent::Optimistic => page.read_version(core).await,
            }
        }
        (inner, &self.leaves[leaf])
    }
}

/// Searches and inserts.
pub fn start(simulation: &mut Simulation, descent: Descent) {
    let (kind, pin) = match descent {
        Descent::Latched => (Kind::Atomic, Pin::Cas),
        _ => (Kind::Ours(BOUNDED), Pin::Add),
    };
    let tree = Rc::new(Tree::new(simulation, descent, kind, pin));
    simulation.each_core(|_| {
        let tree = Rc::clone(&tree);
        async move |core: &Core| {
            let (inner, leaf) = tree.descend(core).await;
            if core.random(INSERTS) > 0 {
                leaf.read_latched(core).await;
                return;
            }
            leaf.change(core).await;
            if core.random(SPLITS) == 0 {
                inner.change(core).await;
            }
        }
    });
}
