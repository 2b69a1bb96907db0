//! Walks the whole tree, which nobody changes meanwhile.

use std::collections::HashSet;

use base::{Fork, Result};

use super::page::{self, CAPACITY, Node, Target};
use super::{GistIndex, LEVELS_MAX, ROOT};
use crate::method::Report;

impl GistIndex {
    /// Checks every page, that keys cover those below them, and that each page is in the tree once.
    pub(super) fn verify(&self) -> Result<Report> {
        let mut report = Report::default();
        if page::last_split(self.pin(0)?.read().page()).is_none() {
            report.findings.push("block 0 is no meta page".to_owned());
            return Ok(report);
        }
        let last = self.last_split()?;
        let blocks = self.storage.block_count(self.rel, Fork::Main)?;
        let mut seen = HashSet::from([0, ROOT]);
        let mut todo: Vec<(u32, Option<u16>, Option<Vec<u8>>)> = vec![(ROOT, None, None)];
        while let Some((block, level, cover)) = todo.pop() {
            sched::check_interrupts()?;
            let pinned = self.pin(block)?;
            let guard = pinned.read();
            let node = Node(guard.page());
            let mut say = |what: &str| report.findings.push(format!("block {block} {what}"));
            if !node.is_node() {
                say("is no page of the tree");
                continue;
            }
            if level.is_some_and(|level| level != node.level())
                || usize::from(node.level()) > LEVELS_MAX
            {
                say("is of the wrong level");
                continue;
            }
            if node.split() > last {
                say("was split later than the index knows");
            }
            let Some(cells) = node.owned() else {
                say("has cells that make no sense");
                continue;
            };
            if cells.iter().map(page::Cell::size).sum::<usize>() > CAPACITY {
                say("has more than a page holds");
            }
            for cell in cells {
                if let (Some(cover), Some(ops)) = (&cover, &self.ops)
                    && ops.union(&[cover, &cell.key]).ok().as_ref() != Some(cover)
                {
                    say("has a key that the one above doesn't cover");
                }
                match cell.target {
                    Target::Row(row) => report.entries.push((cell.key, row)),
                    Target::Child(child) if child == 0 || child >= blocks => {
                        say("leads out of the file");
                    }
                    Target::Child(child) if !seen.insert(child) => {
                        say(&format!("leads to block {child}, which is in the tree twice"));
                    }
                    Target::Child(child) => {
                        todo.push((child, Some(node.level() - 1), Some(cell.key)));
                    }
                }
            }
        }
        for block in 0..blocks {
            sched::check_interrupts()?;
            if seen.contains(&block) {
                continue;
            }
            let pinned = self.pin(block)?;
            let guard = pinned.read();
            if page::kind(guard.page()) != 0 && !Node(guard.page()).is_deleted() {
                report.findings.push(format!("block {block} is not in the tree"));
            }
        }
        Ok(report)
    }
}
