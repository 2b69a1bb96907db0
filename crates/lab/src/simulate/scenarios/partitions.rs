//! The mapping table of the buffer pool. One operation looks up four pages, any of the pool's, and
//! works on each; one of five is not there and replaces another page.
//!
//! * *locked*: PostgreSQL. A look-up takes its partition's lock, shared, until it has the pin; a
//!   replacement takes the partitions of the old and the new page, exclusively.
//! * *unlocked*: the server. A look-up walks the chain without a lock; a replacement takes the locks
//!   as above.

use std::rc::Rc;

use super::super::coherence::Word;
use super::super::engine::{Core, Simulation};
use super::super::locks::{BOUNDED, Kind, Lock};
use super::pins::{Header, Pin};

const PAGES: usize = 8192;
const INNER: usize = 64;
/// One of so many look-ups replaces a page.
const REPLACED: u64 = 5;
/// Work on each page that was found.
const WORK_NS: f64 = 500.0;

/// The mapping table and the headers of the buffers.
pub struct Pool {
    locks: Vec<Lock>,
    /// A bucket each for some pages.
    buckets: Vec<Word>,
    headers: Vec<Header>,
    locked: bool,
}

impl Pool {
    /// With so many partitions; a header has a line of its own.
    pub fn new(
        simulation: &mut Simulation,
        kind: Kind,
        partitions: usize,
        pin: Pin,
        locked: bool,
    ) -> Pool {
        let header = |s: &mut Simulation| {
            let line = s.line();
            Header::on(s, line, pin)
        };
        Pool {
            locks: (0..partitions).map(|_| Lock::new(simulation, kind)).collect(),
            buckets: (0..PAGES).map(|_| simulation.word()).collect(),
            headers: (0..PAGES).map(|_| header(simulation)).collect(),
            locked,
        }
    }

    /// The pages of one select by key: the root of the index, an inner page, a leaf, and a page of
    /// the heap.
    pub fn path(core: &Core) -> [usize; 4] {
        let rest = (PAGES - 1 - INNER) as u64;
        let far = || 1 + INNER + core.random(rest) as usize;
        [0, 1 + core.random(INNER as u64) as usize, far(), far()]
    }

    fn lock(&self, page: usize) -> &Lock {
        // Pages lie in partitions as a hash would put them.
        &self.locks[page.wrapping_mul(0x9E37_79B1) >> 4 & (self.locks.len() - 1)]
    }

    /// Looks the page up and pins it.
    pub async fn pin(&self, core: &Core, page: usize) -> &Header {
        let lock = self.locked.then(|| self.lock(page));
        if let Some(lock) = lock {
            lock.acquire(core, false).await;
        }
        core.load(self.buckets[page]).await;
        self.headers[page].pin(core).await;
        if let Some(lock) = lock {
            lock.release(core, false).await;
        }
        &self.headers[page]
    }

    /// Puts the page where another one was.
    async fn replace(&self, core: &Core, page: usize) {
        let old = core.random(PAGES as u64) as usize;
        let (a, b) = (self.lock(page), self.lock(old));
        // In the order of their addresses, so that two of them don't wait for each other.
        let (first, second) = if std::ptr::from_ref(a) < b { (a, b) } else { (b, a) };
        let two = !std::ptr::eq(first, second);
        first.acquire(core, true).await;
        if two {
            second.acquire(core, true).await;
        }
        core.store(self.buckets[old], 1).await;
        core.store(self.buckets[page], 1).await;
        if two {
            second.release(core, true).await;
        }
        first.release(core, true).await;
    }
}

fn start(simulation: &mut Simulation, pool: Pool) {
    let pool = Rc::new(pool);
    simulation.each_core(|_| {
        let pool = Rc::clone(&pool);
        async move |core: &Core| {
            for _ in 0..4 {
                let page = core.random(PAGES as u64) as usize;
                if core.random(REPLACED) == 0 {
                    pool.replace(core, page).await;
                }
                let header = pool.pin(core, page).await;
                core.work_about(WORK_NS).await;
                header.unpin(core).await;
            }
        }
    });
}

/// Look-ups under the partition's lock.
pub fn locked(simulation: &mut Simulation, kind: Kind, partitions: usize) {
    let pool = Pool::new(simulation, kind, partitions, Pin::Cas, true);
    start(simulation, pool);
}

/// Look-ups without a lock.
pub fn unlocked(simulation: &mut Simulation, partitions: usize) {
    let pool = Pool::new(simulation, Kind::Ours(BOUNDED), partitions, Pin::Add, false);
    start(simulation, pool);
}
