//! Recall and queries a second of the index method alone, without a server, beside the crate `hnsw_rs`:
//!
//! ```text
//! in-process [ROWS [DIMENSIONS [QUERIES]]]
//! ```
//!
//! Both have m = 16 and ef_construction = 64 and are built by all processors; one thread asks for the ten nearest.

#[path = "../data.rs"]
mod data;

use std::sync::Arc;
use std::time::Instant;

use access::vector::{Iterative, VectorOps, VectorSearch};
use access::{AnyIndex, hnsw::HnswIndex};
use base::{RelId, TupleId};
use data::{NEAREST, Random, exact, points, recall};
use hnsw_rs::prelude::{DistL2, Hnsw};
use storage::{Options, Storage};
use txn::{Isolation, TxnManager};

struct Squares;

impl VectorOps for Squares {
    fn distance(&self, a: &[u8], b: &[u8]) -> f32 {
        const LANES: usize = 16;
        let ((a, _), (b, _)) = (a.as_chunks::<4>(), b.as_chunks::<4>());
        let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
        let square = |a: &[u8; 4], b: &[u8; 4]| {
            let off = f32::from_le_bytes(*a) - f32::from_le_bytes(*b);
            off * off
        };
        let mut sums = [0.0_f32; LANES];
        for (a, b) in a.iter().zip(b) {
            for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
                *sum += square(a, b);
            }
        }
        sums.iter().copied().chain(a_rest.iter().zip(b_rest).map(|(a, b)| square(a, b))).sum()
    }

    fn check(&self, _: &[u8], _: &[u8]) -> base::Result<()> {
        Ok(())
    }

    fn sample(&self, vector: &[u8]) -> Vec<u8> {
        vector.to_vec()
    }

    fn mean(&self, samples: &[&[u8]]) -> Vec<u8> {
        samples[0].to_vec()
    }
}

fn bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|n| n.to_le_bytes()).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut number = |default: usize| args.next().map_or(Ok(default), |n| n.parse());
    let (rows, dimensions, asked) = (number(100_000)?, number(128)?, number(1_000)?);
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let centres: Vec<Vec<f32>> =
        (0..1_000).map(|_| (0..dimensions).map(|_| random.normal()).collect()).collect();
    let all = points(rows, dimensions, &mut random, &centres);
    let queries = points(asked, dimensions, &mut random, &centres);
    let wanted: Vec<Vec<usize>> = queries.iter().map(|q| exact(&all, q)).collect();

    let began = Instant::now();
    let graph: Hnsw<'_, f32, DistL2> =
        Hnsw::new(16, rows, (rows as f32).ln() as usize, 64, DistL2 {});
    let data: Vec<(&Vec<f32>, usize)> = all.iter().zip(0..).collect();
    graph.parallel_insert(&data);
    let other = began.elapsed().as_secs_f64();

    let dir = std::env::temp_dir().join(format!("bench-vectors-{}", std::process::id()));
    let options = || Options { frames: 32_768, fsync: Some(false), ..Options::from_settings() };
    Storage::create_with(&dir, &options())?;
    let manager = TxnManager::new(&dir);
    let storage = Storage::open_with(&dir, manager.participant(None), options())?;
    manager.attach(&storage);
    let rel = RelId(manager.next_oid()?);
    storage.create_relation(rel)?;
    let mut index = HnswIndex::open(&storage, rel);
    index.ops = Some(Arc::new(Squares));
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
    index.build_with = (usize::MAX, processors - 1);
    let began = Instant::now();
    let mut next = 0;
    index.fill(&mut |out| {
        let Some(vector) = all.get(next) else { return Ok(None) };
        *out = bytes(vector);
        next += 1;
        let number = next as u32 - 1;
        Ok(Some(TupleId { block: number / 100, offset: (number % 100 + 1) as u16 }))
    })?;
    let own = began.elapsed().as_secs_f64();
    println!("{rows} x {dimensions}; build: hnsw_rs {other:.1} s, here {own:.1} s");
    let index = AnyIndex::Hnsw(index);
    let owner = manager.new_owner(&sched::current(), 0);
    let tx = manager.begin(&owner, Isolation::ReadCommitted, false);
    println!(
        "{:>4} {:>10} {:>8} {:>10} {:>8} {:>6}",
        "ef", "hnsw_rs/s", "recall", "here/s", "recall", "ratio"
    );
    for ef in [20, 40, 80, 160] {
        let began = Instant::now();
        let found: Vec<Vec<usize>> = queries
            .iter()
            .map(|q| graph.search(q, NEAREST, ef).iter().map(|n| n.d_id).collect())
            .collect();
        let other = asked as f64 / began.elapsed().as_secs_f64();
        let other_recall = recall(&found, &wanted);
        let mut found = Vec::with_capacity(asked);
        let began = Instant::now();
        for query in &queries {
            let search = VectorSearch {
                query: Some(bytes(query)),
                breadth: ef,
                iterative: Iterative::Off,
                most: 0,
            };
            let mut scan = index.nearest_vectors(search).ok_or("an index of vectors")?;
            let mut ids = Vec::with_capacity(NEAREST);
            while ids.len() < NEAREST
                && let Some(near) = scan.next(&tx)?
            {
                let root = near.found.root;
                ids.push(root.block as usize * 100 + usize::from(root.offset) - 1);
            }
            found.push(ids);
        }
        let own = asked as f64 / began.elapsed().as_secs_f64();
        let own_recall = recall(&found, &wanted);
        println!(
            "{ef:>4} {other:>10.0} {other_recall:>8.3} {own:>10.0} {own_recall:>8.3} {:>6.2}",
            own / other
        );
    }
    tx.abort();
    drop(index);
    storage.abandon();
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}
