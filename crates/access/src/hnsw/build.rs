//! Building an index: the graph is made in memory, by several threads, and written page after page. What doesn't fit
//! memory is added to the pages one by one, as later rows are.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use base::{Result, TupleId};
use sched::SpinLock;

use super::graph::{self, At, Graph, search_layer};
use super::page::{self, KIND_CELLS, KIND_META, Meta, ROWS};
use super::{HnswIndex, check_len};
use crate::cells::{CAPACITY, Place, SLOT};
use crate::method::NextEntry;
use crate::vector::VectorOps;

/// Bytes of an element in memory beside its vector and its links.
const OVERHEAD: usize = 200;

/// A neighbour.
#[derive(Clone, Copy)]
struct Link {
    distance: f32,
    id: u32,
}

/// An element.
struct Node {
    vector: Box<[u8]>,
    level: usize,
    rows: SpinLock<Vec<TupleId>>,
    /// By layers.
    links: SpinLock<Vec<Vec<Link>>>,
    /// Its row went to another element with the same vector.
    absorbed: AtomicBool,
}

/// The graph in memory.
struct Memory<'a> {
    ops: &'a dyn VectorOps,
    m: usize,
    ef_construction: usize,
    nodes: Vec<Node>,
    /// The entry point: one of the highest level, which is there first.
    entry: u32,
}

/// The graph as one thread sees it that adds an element.
struct Seen<'g> {
    graph: &'g Memory<'g>,
    vector: &'g [u8],
    /// The number of the search that met an element last.
    met: Vec<u32>,
    number: u32,
}

impl Seen<'_> {
    fn begin(&mut self, entries: &[At<u32>]) {
        self.number += 1;
        entries.iter().for_each(|e| self.met[e.id as usize] = self.number);
    }
}

impl Graph for Seen<'_> {
    type Id = u32;

    fn visit(&mut self, id: u32) -> bool {
        std::mem::replace(&mut self.met[id as usize], self.number) != self.number
    }

    fn neighbors(&mut self, id: u32, layer: usize, out: &mut Vec<u32>) -> Result<()> {
        let links = self.graph.nodes[id as usize].links.lock();
        out.extend(links.get(layer).into_iter().flatten().map(|link| link.id));
        Ok(())
    }

    fn at(&mut self, id: u32) -> Result<Option<At<u32>>> {
        let distance = self.graph.ops.distance(self.vector, &self.graph.nodes[id as usize].vector);
        Ok(Some(At { distance, id, live: true }))
    }
}

impl Memory<'_> {
    fn apart(&self, a: u32, b: u32) -> f32 {
        self.ops.distance(&self.nodes[a as usize].vector, &self.nodes[b as usize].vector)
    }

    /// Adds elements until none is left.
    fn add_all(&self, next: &AtomicUsize, helps: bool) -> Result<()> {
        let mut seen = Seen { graph: self, vector: &[], met: vec![0; self.nodes.len()], number: 0 };
        loop {
            if helps && sched::helpers::should_yield() {
                return Ok(());
            }
            let n = next.fetch_add(1, Ordering::Relaxed);
            let Some(node) = self.nodes.get(n) else { return Ok(()) };
            if n as u32 != self.entry {
                seen.vector = &node.vector;
                self.add(n as u32, node, &mut seen)?;
            }
        }
    }

    fn add<'g>(&'g self, id: u32, node: &'g Node, seen: &mut Seen<'g>) -> Result<()> {
        let mut entries: Vec<At<u32>> = seen.at(self.entry)?.into_iter().collect();
        let top = self.nodes[self.entry as usize].level;
        for layer in (node.level + 1..=top).rev() {
            seen.begin(&entries);
            entries = search_layer(seen, &entries, 1, layer, None)?;
        }
        let mut layers = Vec::with_capacity(node.level + 1);
        for layer in (0..=node.level.min(top)).rev() {
            seen.begin(&entries);
            entries = search_layer(seen, &entries, self.ef_construction, layer, None)?;
            layers.push((layer, entries.clone()));
        }
        if let Some((_, nearest)) = layers.last()
            && self.absorb(node, nearest)
        {
            return Ok(());
        }
        for (layer, found) in layers {
            let most = page::width(self.m, layer);
            let chosen =
                graph::choose(&found, most, |a, b| Ok(self.apart(found[a].id, found[b].id)))?;
            let links: Vec<Link> = chosen
                .into_iter()
                .map(|n| Link { distance: found[n].distance, id: found[n].id })
                .filter(|link| link.id != id)
                .collect();
            // Others may have linked here since this layer was searched: theirs stay.
            {
                let mut own = node.links.lock();
                let before = std::mem::replace(&mut own[layer], links.clone());
                let more = before.into_iter().filter(|b| links.iter().all(|l| l.id != b.id));
                let room = most.saturating_sub(links.len());
                own[layer].extend(more.take(room));
            }
            for link in links {
                self.tell(link.id, layer, Link { distance: link.distance, id })?;
            }
        }
        Ok(())
    }

    /// Gives a row to an element with the same vector, if one has room.
    fn absorb(&self, node: &Node, nearest: &[At<u32>]) -> bool {
        for at in nearest {
            let other = &self.nodes[at.id as usize];
            if other.vector != node.vector {
                continue;
            }
            let mut rows = other.rows.lock();
            if rows.len() < ROWS {
                rows.extend(node.rows.lock().iter());
                node.absorbed.store(true, Ordering::Relaxed);
                return true;
            }
        }
        false
    }

    /// Tells a neighbour of a new element.
    fn tell(&self, neighbor: u32, layer: usize, new: Link) -> Result<()> {
        let most = page::width(self.m, layer);
        let mut all = self.nodes[neighbor as usize].links.lock();
        let Some(links) = all.get_mut(layer) else { return Ok(()) };
        if links.iter().any(|link| link.id == new.id) {
            return Ok(());
        }
        if links.len() < most {
            links.push(new);
            return Ok(());
        }
        let with_new = links.iter().chain([&new]);
        let mut candidates: Vec<At<u32>> =
            with_new.map(|l| At { distance: l.distance, id: l.id, live: true }).collect();
        candidates.sort_unstable();
        let chosen = graph::choose(&candidates, most, |a, b| {
            Ok(self.apart(candidates[a].id, candidates[b].id))
        })?;
        *links = chosen
            .into_iter()
            .map(|n| Link { distance: candidates[n].distance, id: candidates[n].id })
            .collect();
        Ok(())
    }
}

impl HnswIndex {
    /// Fills an index whose file is empty, from entries in an order that has nothing to do with the vectors.
    ///
    /// # Errors
    /// As [`crate::IndexMethod::fill`].
    pub fn fill(&self, next: &mut NextEntry<'_>) -> Result<()> {
        let (m, ef_construction) = (usize::from(self.m), usize::from(self.ef_construction));
        let meta = Meta { m, ef_construction, entry: Place::NOWHERE, level: 0 };
        self.file.begin(KIND_META, &meta.to_bytes())?;
        let mut bytes = Vec::new();
        let mut nodes: Vec<Node> = Vec::new();
        let mut used = 0;
        let mut ended = false;
        while !ended && used < self.build_with.0 {
            sched::check_interrupts()?;
            let Some(row) = next(&mut bytes)? else {
                ended = true;
                break;
            };
            check_len(&bytes)?;
            let level = HnswIndex::level(m, nodes.len() as u64);
            used += bytes.len() + OVERHEAD + (level + 2) * m * size_of::<Link>();
            nodes.push(Node {
                vector: bytes.as_slice().into(),
                level,
                rows: SpinLock::new(vec![row]),
                links: SpinLock::new(vec![Vec::new(); level + 1]),
                absorbed: AtomicBool::new(false),
            });
        }
        if !nodes.is_empty() {
            self.fill_from_memory(meta, nodes)?;
        }
        while !ended {
            sched::check_interrupts()?;
            let Some(row) = next(&mut bytes)? else { break };
            self.add(&bytes, row, false)?;
        }
        Ok(())
    }

    fn fill_from_memory(&self, meta: Meta, nodes: Vec<Node>) -> Result<()> {
        let ops = self.ops()?;
        for two in nodes.windows(2) {
            ops.check(&two[0].vector, &two[1].vector)?;
        }
        let highest = nodes.iter().enumerate().rev().max_by_key(|(_, node)| node.level);
        let entry = highest.map_or(0, |(n, _)| n as u32);
        let (m, ef_construction) = (meta.m, meta.ef_construction);
        let graph = Memory { ops, m, ef_construction, nodes, entry };
        let next = AtomicUsize::new(0);
        let help = || graph.add_all(&next, true);
        match self.build_with.1 {
            0 => graph.add_all(&next, false)?,
            count => {
                sched::helpers::together(count, &help, || graph.add_all(&next, false))?;
            }
        }
        self.write(meta, graph)
    }

    /// Writes the graph into pages.
    fn write(&self, meta: Meta, graph: Memory<'_>) -> Result<()> {
        let (m, entry) = (meta.m, graph.entry as usize);
        let mut places = vec![(Place::NOWHERE, Place::NOWHERE); graph.nodes.len()];
        let mut room = self.shared().writing.lock();
        // Which cells go to which page: an element, or (true) its links.
        let mut pages: Vec<(u32, Vec<(usize, bool)>)> = Vec::new();
        let (mut left, mut left_for_links, mut links_page) = (0, 0, 0);
        for (n, node) in graph.nodes.iter().enumerate() {
            if node.absorbed.load(Ordering::Relaxed) {
                continue;
            }
            let element = page::HEAD + node.vector.len() + SLOT;
            let links = page::links_len(m, node.level) + SLOT;
            let together = element + links <= CAPACITY;
            let needed = if together { element + links } else { element };
            if left < needed {
                pages.push((self.file.allocate(&mut room)?, Vec::new()));
                left = CAPACITY;
            }
            left -= needed;
            let Some((block, cells)) = pages.last_mut() else { continue };
            let place = |number: usize, block: u32| Place { block, number: number as u16 };
            places[n].0 = place(cells.len(), *block);
            cells.push((n, false));
            if together {
                places[n].1 = place(cells.len(), *block);
                cells.push((n, true));
                continue;
            }
            if left_for_links < links {
                let block = self.file.allocate(&mut room)?;
                // Before the page of the elements, which stays the last one.
                links_page = pages.len() - 1;
                pages.insert(links_page, (block, Vec::new()));
                left_for_links = CAPACITY;
            }
            left_for_links -= links;
            let (block, cells) = &mut pages[links_page];
            places[n].1 = place(cells.len(), *block);
            cells.push((n, true));
        }
        for (block, cells) in &pages {
            sched::check_interrupts()?;
            let bytes: Vec<Vec<u8>> = cells
                .iter()
                .map(|(n, links)| {
                    let node = &graph.nodes[*n];
                    if !links {
                        let rows = node.rows.lock();
                        let head = page::head(node.level, places[*n].1, &rows);
                        return [&head[..], &node.vector[..]].concat();
                    }
                    let own = node.links.lock();
                    let of = |layer: &Vec<Link>| {
                        layer.iter().map(|link| places[link.id as usize].0).collect()
                    };
                    let layers: Vec<Vec<Place>> = own.iter().map(of).collect();
                    page::links_bytes(m, node.level, &layers)
                })
                .collect();
            let cells: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
            self.file.write_new(*block, KIND_CELLS, 0, &cells)?;
        }
        let level = graph.nodes[entry].level;
        self.put_entry(Meta { entry: places[entry].0, level, ..meta })
    }
}
