//! Building an index: centres by k-means (Lloyd's algorithm, begun as in Arthur and Vassilvitskii, "k-means++: The
//! Advantages of Careful Seeding", 2007) over a sample, then every row to the list with the nearest centre.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use base::{Result, TupleId};

use super::{IvfIndex, KIND_LISTS, KIND_META, KIND_ROWS, LIST_HEAD, check_len};
use crate::cells::{CAPACITY, Room, SLOT};
use crate::method::NextEntry;
use crate::vector::{VectorOps, scrambled};

/// Vectors of the sample for each list, and at least.
const FOR_EACH: usize = 50;
const LEAST: usize = 10_000;
/// Rounds of the algorithm, at most.
const ROUNDS: usize = 12;
/// Vectors that a thread takes at a time.
const PIECE: usize = 256;

type Vectors = Vec<Box<[u8]>>;

/// The place of the centre that is nearest.
fn nearest(ops: &dyn VectorOps, centres: &[Vec<u8>], vector: &[u8]) -> (usize, f32) {
    let mut best = (0, f32::INFINITY);
    for (n, centre) in centres.iter().enumerate() {
        let distance = ops.distance(vector, centre);
        if distance < best.1 {
            best = (n, distance);
        }
    }
    best
}

/// A row that is to be written.
type Cell = Vec<u8>;

/// The lists of an index that is being built.
struct Lists {
    centres: Vec<Vec<u8>>,
    /// Of each list: cells that are not written, their bytes, and the page that was written last.
    open: Vec<(Vec<Cell>, usize, u32)>,
}

impl IvfIndex {
    /// Fills an index whose file is empty, from entries in an order that has nothing to do with the vectors: the first
    /// ones are the sample.
    ///
    /// # Errors
    /// As [`crate::IndexMethod::fill`].
    pub fn fill(&self, next: &mut NextEntry<'_>) -> Result<()> {
        self.file.begin(KIND_META, &[0; 16])?;
        let wanted = (self.lists as usize * FOR_EACH).max(LEAST);
        let mut sample: Vec<(Box<[u8]>, TupleId)> = Vec::new();
        let mut bytes = Vec::new();
        let (mut ended, mut used) = (false, 0);
        while sample.len() < wanted && used < self.build_with.0 {
            sched::check_interrupts()?;
            let Some(row) = next(&mut bytes)? else {
                ended = true;
                break;
            };
            check_len(&bytes)?;
            used += bytes.len() * 2 + 64;
            sample.push((bytes.as_slice().into(), row));
        }
        if sample.is_empty() {
            return Ok(());
        }
        let ops = self.ops()?;
        for two in sample.windows(2) {
            ops.check(&two[0].0, &two[1].0)?;
        }
        let vectors: Vectors = sample.iter().map(|(v, _)| ops.sample(v).into()).collect();
        let centres = self.centres(ops, &vectors)?;
        drop(vectors);
        let open = centres.iter().map(|_| (Vec::new(), 0, 0)).collect();
        let mut lists = Lists { centres, open };
        let mut room = self.shared().writing.lock();
        for (vector, row) in sample {
            self.put(ops, &mut lists, &mut room, &vector, row)?;
        }
        while !ended {
            let Some(row) = next(&mut bytes)? else { break };
            check_len(&bytes)?;
            ops.check(&bytes, &lists.centres[0])?;
            self.put(ops, &mut lists, &mut room, &bytes, row)?;
        }
        self.finish(lists, &mut room)
    }

    fn centres(&self, ops: &dyn VectorOps, vectors: &Vectors) -> Result<Vec<Vec<u8>>> {
        let mut centres = self.seeds(ops, vectors)?;
        let of: Vec<AtomicU32> = vectors.iter().map(|_| AtomicU32::new(u32::MAX)).collect();
        for round in 0..ROUNDS {
            let (next, changed) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let assign = || -> Result<()> {
                loop {
                    let from = next.fetch_add(PIECE, Ordering::Relaxed);
                    if from >= vectors.len() {
                        return Ok(());
                    }
                    sched::check_interrupts()?;
                    let piece = vectors[from..].iter().zip(&of[from..]).take(PIECE);
                    for (vector, own) in piece {
                        let (list, _) = nearest(ops, &centres, vector);
                        if own.swap(list as u32, Ordering::Relaxed) != list as u32 {
                            changed.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            };
            match self.build_with.1 {
                0 => assign()?,
                count => {
                    sched::helpers::together(count, &assign, assign)?;
                }
            }
            if changed.load(Ordering::Relaxed) * 200 < vectors.len() {
                break;
            }
            let mut members: Vec<Vec<&[u8]>> = vec![Vec::new(); centres.len()];
            for (vector, own) in vectors.iter().zip(&of) {
                members[own.load(Ordering::Relaxed) as usize].push(vector);
            }
            centres = members
                .iter()
                .enumerate()
                .map(|(n, own)| match own[..] {
                    // Nobody is nearest to it: anywhere else is better.
                    [] => {
                        let any = scrambled((round * centres.len() + n) as u64);
                        vectors[(any % vectors.len() as u64) as usize].to_vec()
                    }
                    _ => ops.mean(own),
                })
                .collect();
        }
        Ok(centres)
    }

    /// The first centres: vectors far from those that were chosen before are likelier.
    fn seeds(&self, ops: &dyn VectorOps, vectors: &Vectors) -> Result<Vec<Vec<u8>>> {
        let most = (self.lists as usize).min(vectors.len());
        let mut centres: Vec<Vec<u8>> = Vec::with_capacity(most);
        let mut off = vec![f32::INFINITY; vectors.len()];
        let mut chosen = (scrambled(1) % vectors.len() as u64) as usize;
        loop {
            sched::check_interrupts()?;
            let centre = vectors[chosen].to_vec();
            let mut least = f32::INFINITY;
            for (own, vector) in off.iter_mut().zip(vectors) {
                *own = own.min(ops.distance(vector, &centre));
                least = least.min(*own);
            }
            centres.push(centre);
            if centres.len() >= most {
                return Ok(centres);
            }
            // Distances may be negative: what counts is how much farther one is than the nearest.
            let weight = |own: &f32| f64::from(own - least).max(0.0);
            let sum: f64 = off.iter().map(weight).sum();
            let chance = (scrambled(centres.len() as u64) >> 11) as f64 / (1_u64 << 53) as f64;
            let mut left = chance * sum;
            let next = off.iter().position(|own| {
                left -= weight(own);
                left < 0.0
            });
            // All are equal to one of the centres.
            let Some(next) = next else { return Ok(centres) };
            chosen = next;
        }
    }

    fn put(
        &self,
        ops: &dyn VectorOps,
        lists: &mut Lists,
        room: &mut Room,
        vector: &[u8],
        row: TupleId,
    ) -> Result<()> {
        sched::check_interrupts()?;
        let (list, _) = nearest(ops, &lists.centres, vector);
        let (cells, size, last) = &mut lists.open[list];
        let cell = [&row.to_bytes()[..], vector].concat();
        if *size + cell.len() + SLOT > CAPACITY {
            self.write_rows(cells, last, room)?;
            *size = 0;
        }
        *size += cell.len() + SLOT;
        cells.push(cell);
        Ok(())
    }

    fn write_rows(&self, cells: &mut Vec<Cell>, last: &mut u32, room: &mut Room) -> Result<()> {
        let block = self.file.allocate(room)?;
        let all: Vec<&[u8]> = cells.iter().map(Vec::as_slice).collect();
        self.file.write_new(block, KIND_ROWS, *last, &all)?;
        *last = block;
        cells.clear();
        Ok(())
    }

    /// Writes what is left, and the lists.
    fn finish(&self, mut lists: Lists, room: &mut Room) -> Result<()> {
        for (cells, _, last) in &mut lists.open {
            sched::check_interrupts()?;
            if !cells.is_empty() {
                self.write_rows(cells, last, room)?;
            }
        }
        let all = lists.centres.iter().zip(&lists.open).map(|(centre, (.., last))| {
            let last = last.to_le_bytes();
            [&last[..], &last[..], centre].concat()
        });
        let mut pages: Vec<Vec<Cell>> = vec![Vec::new()];
        let mut size = 0;
        for cell in all {
            if size + cell.len() + SLOT > CAPACITY {
                pages.push(Vec::new());
                size = 0;
            }
            size += cell.len() + SLOT;
            if let Some(page) = pages.last_mut() {
                page.push(cell);
            }
        }
        let mut next = 0;
        for page in pages.iter().rev() {
            debug_assert!(page.iter().all(|cell| cell.len() >= LIST_HEAD));
            let block = self.file.allocate(room)?;
            let cells: Vec<&[u8]> = page.iter().map(Vec::as_slice).collect();
            self.file.write_new(block, KIND_LISTS, next, &cells)?;
            next = block;
        }
        self.file.put_meta(0, &next.to_le_bytes())
    }
}
