//! Recall and queries a second of HNSW over clustered vectors, beside the crate `hnsw_rs` in this process:
//!
//! ```text
//! vectors PORT [ROWS [DIMENSIONS [QUERIES]]]
//! ```
//!
//! The server at 127.0.0.1:PORT trusts user postgres. Both get the same vectors, m = 16 and ef_construction = 64; one
//! client asks for the ten nearest, with ef 20, 40, 80 and 160. The server's figures have the protocol in them.

use std::io::Write;
use std::time::Instant;

use hnsw_rs::prelude::{DistL2, Hnsw};
use postgres::{Client, NoTls};

mod data;

use data::{NEAREST, Random, exact, points, recall};

const M: usize = 16;
const EF_CONSTRUCTION: usize = 64;

fn text(vector: &[f32]) -> String {
    let numbers: Vec<String> = vector.iter().map(f32::to_string).collect();
    format!("[{}]", numbers.join(","))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let port = args.next().ok_or("vectors PORT [ROWS [DIMENSIONS [QUERIES]]]")?;
    let mut number = |default: usize| args.next().map_or(Ok(default), |n| n.parse());
    let (rows, dimensions, asked) = (number(100_000)?, number(128)?, number(1_000)?);
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let centres: Vec<Vec<f32>> =
        (0..1_000).map(|_| (0..dimensions).map(|_| random.normal()).collect()).collect();
    let all = points(rows, dimensions, &mut random, &centres);
    let queries = points(asked, dimensions, &mut random, &centres);
    let wanted: Vec<Vec<usize>> = queries.iter().map(|q| exact(&all, q)).collect();

    let began = Instant::now();
    let layers = (rows as f32).ln().trunc() as usize;
    let graph: Hnsw<'_, f32, DistL2> =
        Hnsw::new(M, rows, layers.min(16), EF_CONSTRUCTION, DistL2 {});
    let data: Vec<(&Vec<f32>, usize)> = all.iter().zip(0..).collect();
    graph.parallel_insert(&data);
    println!("{rows} x {dimensions}; build: hnsw_rs {:.1} s", began.elapsed().as_secs_f64());

    let mut client = Client::connect(
        &format!("host=127.0.0.1 port={port} user=postgres dbname=postgres"),
        NoTls,
    )?;
    client.batch_execute(&format!(
        "CREATE EXTENSION IF NOT EXISTS vector; DROP TABLE IF EXISTS bench_vectors;
         CREATE TABLE bench_vectors (id int, e vector({dimensions}))"
    ))?;
    let mut copy = client.copy_in("COPY bench_vectors FROM STDIN")?;
    for (n, vector) in all.iter().enumerate() {
        writeln!(copy, "{n}\t{}", text(vector))?;
    }
    copy.finish()?;
    client.batch_execute("SET maintenance_work_mem = '1GB'; ANALYZE bench_vectors")?;
    let began = Instant::now();
    client.batch_execute(&format!(
        "CREATE INDEX ON bench_vectors USING hnsw (e vector_l2_ops)
         WITH (m = {M}, ef_construction = {EF_CONSTRUCTION})"
    ))?;
    println!("build: Threadgres {:.1} s", began.elapsed().as_secs_f64());
    client.batch_execute("SET enable_seqscan = off")?;
    let query =
        client.prepare("SELECT id FROM bench_vectors ORDER BY e <-> $1::text::vector LIMIT 10")?;
    let texts: Vec<String> = queries.iter().map(|q| text(q)).collect();
    println!(
        "{:>4} {:>10} {:>8} {:>12} {:>8} {:>6}",
        "ef", "hnsw_rs/s", "recall", "Threadgres/s", "recall", "ratio"
    );
    for ef in [20, 40, 80, 160] {
        let began = Instant::now();
        let found: Vec<Vec<usize>> = queries
            .iter()
            .map(|q| graph.search(q, NEAREST, ef).iter().map(|n| n.d_id).collect())
            .collect();
        let own = asked as f64 / began.elapsed().as_secs_f64();
        let own_recall = recall(&found, &wanted);
        client.batch_execute(&format!("SET hnsw.ef_search = {ef}"))?;
        let mut found = Vec::with_capacity(asked);
        let began = Instant::now();
        for text in &texts {
            let rows = client.query(&query, &[text])?;
            found.push(rows.iter().map(|row| row.get::<_, i32>(0) as usize).collect());
        }
        let server = asked as f64 / began.elapsed().as_secs_f64();
        println!(
            "{ef:>4} {own:>10.0} {own_recall:>8.3} {server:>12.0} {:>8.3} {:>6.2}",
            recall(&found, &wanted),
            server / own
        );
    }
    client.batch_execute("DROP TABLE bench_vectors")?;
    Ok(())
}
