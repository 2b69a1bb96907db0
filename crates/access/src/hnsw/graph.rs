//! The two algorithms of the paper that everything else is made of, over any form of the graph: the search of a
//! layer (algorithm 2) and the choice of neighbours (algorithm 4).

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use base::Result;

/// An element by its distance.
#[derive(Clone, Copy, Debug)]
pub(super) struct At<I> {
    pub distance: f32,
    pub id: I,
    /// It has rows: others are a way to those only.
    pub live: bool,
}

impl<I: Ord> Ord for At<I> {
    fn cmp(&self, other: &At<I>) -> Ordering {
        self.distance.total_cmp(&other.distance).then_with(|| self.id.cmp(&other.id))
    }
}

impl<I: Ord> PartialOrd for At<I> {
    fn partial_cmp(&self, other: &At<I>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<I: Ord> PartialEq for At<I> {
    fn eq(&self, other: &At<I>) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<I: Ord> Eq for At<I> {}

/// A graph as one search sees it.
pub(super) trait Graph {
    type Id: Copy + Ord;

    /// Notes that an element was met; false: it has been before.
    fn visit(&mut self, id: Self::Id) -> bool;

    /// Puts an element's neighbours on a layer into the list.
    fn neighbors(&mut self, id: Self::Id, layer: usize, out: &mut Vec<Self::Id>) -> Result<()>;

    /// An element by its distance from what is looked for; None: there is none any more.
    fn at(&mut self, id: Self::Id) -> Result<Option<At<Self::Id>>>;
}

/// The elements that a search has met and not given, the nearest first.
pub(super) type Discarded<I> = BinaryHeap<Reverse<At<I>>>;

/// The nearest elements of a layer that a search finds from some others, `breadth` at most, the nearest first. What it has
/// met beside those goes to `discarded`.
///
/// # Errors
/// Of the graph; interrupts.
pub(super) fn search_layer<G: Graph>(
    graph: &mut G,
    entries: &[At<G::Id>],
    breadth: usize,
    layer: usize,
    mut discarded: Option<&mut Discarded<G::Id>>,
) -> Result<Vec<At<G::Id>>> {
    let mut todo: BinaryHeap<Reverse<At<G::Id>>> = entries.iter().copied().map(Reverse).collect();
    let mut found: BinaryHeap<At<G::Id>> = entries.iter().copied().filter(|e| e.live).collect();
    let mut neighbors = Vec::new();
    while let Some(Reverse(nearest)) = todo.pop() {
        sched::check_interrupts()?;
        let full = found.len() >= breadth;
        if full && found.peek().is_some_and(|last| nearest.distance > last.distance) {
            break;
        }
        neighbors.clear();
        graph.neighbors(nearest.id, layer, &mut neighbors)?;
        for id in &neighbors {
            if !graph.visit(*id) {
                continue;
            }
            let Some(at) = graph.at(*id)? else { continue };
            let full = found.len() >= breadth;
            if full && found.peek().is_some_and(|last| at.distance >= last.distance) {
                if let Some(discarded) = discarded.as_deref_mut().filter(|_| at.live) {
                    discarded.push(Reverse(at));
                }
                continue;
            }
            todo.push(Reverse(at));
            if !at.live {
                continue;
            }
            found.push(at);
            if found.len() > breadth
                && let (Some(last), Some(discarded)) = (found.pop(), discarded.as_deref_mut())
            {
                discarded.push(Reverse(last));
            }
        }
    }
    Ok(found.into_sorted_vec())
}

/// Of candidates, the nearest first, the places of those that are to be neighbours: nearer to the element than to any
/// other neighbour, and if these are too few, of the rest the nearest.
///
/// # Errors
/// Of `apart`.
pub(super) fn choose<I: Copy>(
    candidates: &[At<I>],
    most: usize,
    mut apart: impl FnMut(usize, usize) -> Result<f32>,
) -> Result<Vec<usize>> {
    if candidates.len() <= most {
        return Ok((0..candidates.len()).collect());
    }
    let (mut chosen, mut rest) = (Vec::with_capacity(most), Vec::new());
    for (n, candidate) in candidates.iter().enumerate() {
        if chosen.len() == most {
            break;
        }
        let mut near = true;
        for other in &chosen {
            if apart(n, *other)? <= candidate.distance {
                near = false;
                break;
            }
        }
        if near { chosen.push(n) } else { rest.push(n) }
    }
    let missing = most - chosen.len();
    chosen.extend(rest.into_iter().take(missing));
    Ok(chosen)
}
