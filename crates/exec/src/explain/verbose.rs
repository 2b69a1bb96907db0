//! VERBOSE in EXPLAIN: the columns that nodes give, schemas of tables, and the table's name before columns in the
//! conditions of scans.

use std::cell::RefCell;
use std::collections::HashMap;

use catalog::{Snapshot, Table};
use sql::Plan;
use sql::plan::{Modify, Node, Scan, ScanColumn};

use super::node::{Describe, Detail, Shown, name_of_scan, own_column};
use crate::session::quote_identifier;

/// Names that VERBOSE prints with.
pub struct Verbose {
    catalog: std::sync::Arc<Snapshot>,
    /// `t.`, before the columns of the scan that is described.
    prefix: RefCell<String>,
}

impl Verbose {
    /// The catalog as the statement sees it.
    pub fn catalog(&self) -> &Snapshot {
        &self.catalog
    }

    /// With the catalog as the statement sees it.
    pub fn new(catalog: std::sync::Arc<Snapshot>) -> Verbose {
        Verbose { catalog, prefix: RefCell::default() }
    }
}

impl Describe<'_> {
    /// A node whose parts are described from now on.
    pub(super) fn enter(&self, plan: &Plan) {
        if let Some(verbose) = &self.verbose
            && name_of_scan(plan).is_some()
        {
            *verbose.prefix.borrow_mut() = format!("{}.", quote_identifier(&self.alias(plan)));
        }
    }

    /// A table's column as its own scan shows it.
    pub(super) fn own_column(&self, table: &Table, column: ScanColumn) -> String {
        self.prefixed(own_column(table, column))
    }

    /// A column's name as the scan that is described shows it.
    pub(super) fn prefixed(&self, name: String) -> String {
        match &self.verbose {
            Some(verbose) => format!("{}{name}", verbose.prefix.borrow()),
            None => name,
        }
    }

    /// The schema of a scan's table, if it is to be shown.
    pub(super) fn schema_of(&self, scan: &Scan) -> Option<String> {
        let verbose = self.verbose.as_ref()?;
        Some(verbose.catalog.schema(scan.table.schema)?.name.clone())
    }

    /// Adds the columns that a node gives.
    pub(super) fn show_output(&self, plan: &Plan, shown: &mut Shown, slots: &HashMap<u16, String>) {
        // Those of an Append are its first input's; the nodes of a bitmap give no rows.
        let silent = matches!(
            &plan.node,
            Node::BitmapIndexScan { .. }
                | Node::BitmapAnd(_)
                | Node::BitmapOr(_)
                | Node::Append(_)
                | Node::PartitionScan(_)
                | Node::PartitionWise { .. }
                | Node::RecursiveUnion { .. }
                | Node::Rewritten(_)
        );
        let changes = matches!(&plan.node, Node::Modify(m) if no_rows(m));
        if self.verbose.is_none() || silent || changes {
            return;
        }
        let columns = self.output(plan, slots);
        if let Some(at) = shown.details.iter().position(|(name, _)| *name == OUTPUT) {
            shown.details.remove(at);
        } else if matches!(&plan.node, Node::Project { .. }) && !is_result(plan) {
            return;
        }
        if !columns.is_empty() {
            shown.details.insert(0, (OUTPUT, Detail::List(columns)));
        }
    }
}

const OUTPUT: &str = "Output";

fn no_rows(modify: &Modify) -> bool {
    modify.returning.is_none()
}

/// Whether a projection stands on nothing.
fn is_result(plan: &Plan) -> bool {
    matches!(&plan.node, Node::Project { input, .. } if matches!(input.node, Node::OneRow | Node::Nothing))
}
