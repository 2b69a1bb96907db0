//! Checks a B-tree's structure, level by level from the root down. Nobody changes it meanwhile.

use base::{Result, TupleId};

use super::BTree;
use super::node::Node;

/// The findings of a check, and all entries in order.
#[derive(Debug, Default)]
pub struct Report {
    /// Faults, one a line.
    pub findings: Vec<String>,
    /// Every leaf entry.
    pub entries: Vec<(Vec<u8>, TupleId)>,
    /// Pages in the tree.
    pub pages: u32,
    /// Levels.
    pub levels: u16,
    /// The pages above the leaves, from the root down.
    pub inner: Vec<u32>,
}

/// A bound: key and row id.
type Bound = (Vec<u8>, Vec<u8>);

impl BTree {
    /// Walks all levels from left to right.
    ///
    /// # Errors
    /// I/O errors, checksums, interrupts.
    pub fn verify(&self) -> Result<Report> {
        let mut report = Report::default();
        let (root, level) = {
            let meta = self.pin(0)?;
            let guard = meta.read();
            super::node::read_meta(guard.page()).ok_or_else(|| self.corrupted(0))?
        };
        report.levels = level + 1;
        // The pages of a level as their parents list them: block and lower bound.
        let mut expected: Vec<(u32, Bound)> = vec![(root, (Vec::new(), Vec::new()))];
        for level in (0..=level).rev() {
            expected = self.verify_level(level, &expected, &mut report)?;
        }
        Ok(report)
    }

    fn verify_level(
        &self,
        level: u16,
        expected: &[(u32, Bound)],
        report: &mut Report,
    ) -> Result<Vec<(u32, Bound)>> {
        let mut children = Vec::new();
        let mut last: Option<Bound> = None;
        let mut left = 0;
        for (position, (block, low)) in expected.iter().enumerate() {
            sched::check_interrupts()?;
            let pinned = self.pin(*block)?;
            let guard = pinned.read();
            let node = Node(guard.page());
            report.pages += 1;
            if level > 0 {
                report.inner.push(*block);
            }
            let mut say = |what: String| report.findings.push(format!("block {block}: {what}"));
            if !node.is_node() || node.level() != level {
                say(format!("is no page of level {level}"));
                return Ok(children);
            }
            let next = expected.get(position + 1);
            if node.right() != next.map_or(0, |n| n.0) {
                say(format!("its right neighbour is {}, not the parent's", node.right()));
            }
            if node.left() != left {
                say(format!("its left neighbour is {}, not {left}", node.left()));
            }
            left = *block;
            let high = node.high().map(|h| (h.key.to_vec(), h.tid.to_vec()));
            if high.as_ref() != next.map(|n| &n.1) {
                say("its upper bound is not the next page's lower bound".into());
            }
            for index in 0..node.count() {
                let Some(entry) = node.entry(index) else {
                    say(format!("entry {index} can't be read"));
                    break;
                };
                let is_first_inner = level > 0 && index == 0;
                let bound = if is_first_inner {
                    low.clone()
                } else {
                    (entry.key.to_vec(), entry.tid.to_vec())
                };
                if last.as_ref().is_some_and(|l| *l >= bound) && !is_first_inner {
                    say(format!("entry {index} is out of order"));
                }
                if bound < *low || high.as_ref().is_some_and(|h| bound >= *h) {
                    say(format!("entry {index} is outside of the page's bounds"));
                }
                if level > 0 {
                    children.push((entry.child, bound.clone()));
                } else {
                    report.entries.push((entry.key.to_vec(), entry.row()));
                }
                last = Some(bound);
            }
        }
        Ok(children)
    }
}
