//! Walks the whole graph, which nobody changes meanwhile.

use std::collections::HashMap;

use base::Result;

use super::HnswIndex;
use super::page::{self, Element, KIND_CELLS};
use crate::cells::{Cells, Place};
use crate::method::Report;

impl HnswIndex {
    /// Checks every page, that links lead to elements of their layer, and that the entry point is one.
    pub(super) fn verify(&self) -> Result<Report> {
        let mut report = Report::default();
        let Ok(meta) = self.meta() else {
            report.findings.push("block 0 is no meta page".to_owned());
            return Ok(report);
        };
        let mut levels: HashMap<Place, usize> = HashMap::new();
        let mut links: Vec<(Place, Place, usize)> = Vec::new();
        for block in 1..self.file.blocks()? {
            sched::check_interrupts()?;
            let pinned = self.file.pin(block)?;
            let guard = pinned.read();
            let cells = Cells(guard.page());
            if cells.kind() == 0 {
                continue;
            }
            if cells.kind() != KIND_CELLS || !cells.is_sound() {
                report.findings.push(format!("block {block} is no page of the graph"));
                continue;
            }
            for number in 0..cells.count() as u16 {
                let Some(element) = Element::of(cells, number) else { continue };
                if element.is_free() {
                    continue;
                }
                let place = Place { block, number };
                levels.insert(place, element.level());
                links.push((place, element.links(), element.level()));
            }
        }
        let mut neighbors = Vec::new();
        for (place, own, level) in &links {
            sched::check_interrupts()?;
            let mut say = |what: &str| {
                report.findings.push(format!("element {}.{} {what}", place.block, place.number));
            };
            let len = match own.block < self.file.blocks()? {
                true => {
                    let pinned = self.file.pin(own.block)?;
                    let guard = pinned.read();
                    Cells(guard.page()).cell(own.number.into()).map_or(0, <[u8]>::len)
                }
                false => 0,
            };
            if len != page::links_len(meta.m, *level) {
                say("has no links");
                continue;
            }
            for layer in 0..=*level {
                neighbors.clear();
                self.neighbors(meta.m, *place, layer, &mut neighbors)?;
                if neighbors.iter().any(|n| levels.get(n).is_none_or(|l| *l < layer)) {
                    say("leads to what is no element of its layer");
                }
            }
            let entry = |element: Element<'_>, _: Cells<'_>| {
                let vector = element.vector();
                element.rows().map(|row| (vector.to_vec(), row)).collect::<Vec<_>>()
            };
            report.entries.extend(self.element(*place, entry)?.unwrap_or_default());
        }
        let entry = levels.get(&meta.entry);
        if meta.entry != Place::NOWHERE && entry != Some(&meta.level) {
            report.findings.push("its entry point is no element".to_owned());
        }
        report.entries.sort_unstable();
        report.entries.dedup();
        Ok(report)
    }
}
