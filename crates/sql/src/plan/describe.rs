//! The description of a plan node for every pass over plans: its inputs, its name, the types of its columns. A new node is
//! described here, shown by `exec::explain` and run by an operator of `exec::ops`; nothing else lists them all.

use base::Oid;
use types::oids;

use super::{ModifyAction, Node, Plan, Scan, ScanColumn};
use crate::expr::Expr;
use crate::tid::Tids;
use crate::walk;

impl ModifyAction {
    /// The plan of the rows.
    pub fn input(&self) -> &Plan {
        match self {
            ModifyAction::Insert { input, .. }
            | ModifyAction::Merge { input, .. }
            | ModifyAction::Update { input, .. }
            | ModifyAction::Delete { input, .. } => input,
        }
    }
}

impl ModifyAction {
    /// The plan of the rows, to be changed.
    pub fn input_mut(&mut self) -> &mut Plan {
        match self {
            ModifyAction::Insert { input, .. }
            | ModifyAction::Merge { input, .. }
            | ModifyAction::Update { input, .. }
            | ModifyAction::Delete { input, .. } => input,
        }
    }
}

impl Scan {
    /// The types of the columns that it returns.
    pub fn types(&self) -> Vec<Oid> {
        self.columns.iter().map(|c| c.type_in(&self.table)).collect()
    }
}

impl ScanColumn {
    /// The column's type in a table.
    pub fn type_in(self, table: &catalog::Table) -> Oid {
        match self {
            ScanColumn::Attr(n) => Oid(table.columns[usize::from(n) - 1].ty),
            ScanColumn::Tid | ScanColumn::Root => oids::TID,
            ScanColumn::TableOid => oids::OID,
            ScanColumn::Xmin | ScanColumn::Xmax | ScanColumn::Cmin | ScanColumn::Cmax => oids::XID,
        }
    }
}

impl Plan {
    /// The inputs, the outer one first. Subplans are no inputs: see [`super::Prepared::subplans`].
    pub fn children(&self) -> Vec<&Plan> {
        match &self.node {
            Node::Filter { input, .. }
            | Node::Project { input, .. }
            | Node::ProjectSet { input, .. }
            | Node::Aggregate { input, .. }
            | Node::Window { input, .. }
            | Node::Sort { input, .. }
            | Node::IncrementalSort { input, .. }
            | Node::BitmapHeapScan { input, .. }
            | Node::Memoize { input, .. }
            | Node::Gather { input, .. }
            | Node::PartitionWise { input, .. }
            | Node::Limit { input, .. }
            | Node::Distinct { input, .. }
            | Node::LockRows { input, .. } => vec![input],
            Node::NestedLoop { left, right, .. }
            | Node::HashJoin { left, right, .. }
            | Node::MergeJoin { left, right, .. }
            | Node::SetOp { left, right, .. } => vec![left, right],
            Node::RecursiveUnion { base, step, .. } => vec![base, step],
            Node::Append(inputs) | Node::BitmapAnd(inputs) | Node::BitmapOr(inputs) => {
                inputs.iter().collect()
            }
            Node::PartitionScan(parts) => vec![&parts.scan],
            Node::Modify(modify) => vec![modify.action.input()],
            Node::OneRow
            | Node::Nothing
            | Node::Values(_)
            | Node::SeqScan(_)
            | Node::IndexScan { .. }
            | Node::IndexOnlyScan { .. }
            | Node::BitmapIndexScan { .. }
            | Node::SystemScan { .. }
            | Node::SampleScan { .. }
            | Node::ForeignScan(_)
            | Node::ForeignQuery(_)
            | Node::FunctionScan { .. }
            | Node::Cte { .. }
            | Node::Rewritten(_)
            | Node::WorkTable { .. } => vec![],
        }
    }

    /// The inputs, to be changed.
    pub fn children_mut(&mut self) -> Vec<&mut Plan> {
        match &mut self.node {
            Node::Filter { input, .. }
            | Node::Project { input, .. }
            | Node::ProjectSet { input, .. }
            | Node::Aggregate { input, .. }
            | Node::Window { input, .. }
            | Node::Sort { input, .. }
            | Node::IncrementalSort { input, .. }
            | Node::BitmapHeapScan { input, .. }
            | Node::Memoize { input, .. }
            | Node::PartitionWise { input, .. }
            | Node::Limit { input, .. }
            | Node::Distinct { input, .. }
            | Node::LockRows { input, .. } => vec![input],
            Node::NestedLoop { left, right, .. }
            | Node::HashJoin { left, right, .. }
            | Node::MergeJoin { left, right, .. }
            | Node::SetOp { left, right, .. } => vec![left, right],
            Node::RecursiveUnion { base, step, .. } => vec![base, step],
            Node::Append(inputs) | Node::BitmapAnd(inputs) | Node::BitmapOr(inputs) => {
                inputs.iter_mut().collect()
            }
            Node::PartitionScan(parts) => vec![&mut parts.scan],
            Node::Modify(modify) => vec![modify.action.input_mut()],
            _ => vec![],
        }
    }

    /// Calls `visit` for this plan and all below it, each before its inputs.
    pub fn walk<'p>(&'p self, visit: &mut dyn FnMut(&'p Plan)) {
        visit(self);
        self.children().into_iter().for_each(|child| child.walk(visit));
    }

    /// The cost of its dearest part, were that run to its end: that a LIMIT ends it soon is an estimate for any values.
    pub fn greatest_cost(&self) -> f64 {
        let mut most = 0.0_f64;
        self.walk(&mut |plan| most = most.max(plan.estimate.total));
        most
    }

    /// The types of the output columns; `subplans` are the statement's.
    pub fn output_types(&self, subplans: &[Plan]) -> Vec<Oid> {
        match &self.node {
            Node::OneRow | Node::Nothing => vec![],
            Node::Values(rows) => match rows.first() {
                Some(row) => row.iter().map(|e| e.ty()).collect(),
                None => vec![],
            },
            Node::SeqScan(scan)
            | Node::IndexScan { scan, .. }
            | Node::IndexOnlyScan { scan, .. }
            | Node::BitmapHeapScan { scan, .. }
            | Node::SampleScan { scan, .. } => scan.types(),
            Node::ForeignScan(foreign) => foreign.scan.types(),
            Node::ForeignQuery(query) => query.types.clone(),
            Node::BitmapIndexScan { .. } | Node::BitmapAnd(_) | Node::BitmapOr(_) => vec![],
            Node::PartitionScan(parts) => parts.scan.output_types(subplans),
            Node::PartitionWise { input, .. } => input.output_types(subplans),
            Node::SystemScan { table, columns, .. } => {
                columns.iter().map(|c| table.columns[usize::from(*c)].1).collect()
            }
            Node::FunctionScan { calls, ordinality, .. } => {
                let columns = |call: &Expr| match crate::record_columns(call) {
                    list if list.is_empty() => vec![call.ty()],
                    _ if call.ty() != oids::RECORD && ::types::user::shape(call.ty()).is_none() => {
                        vec![call.ty()]
                    }
                    list => list.into_iter().map(|c| c.1).collect(),
                };
                let all = calls.iter().flat_map(columns);
                all.chain(ordinality.then_some(oids::INT8)).collect()
            }
            Node::Window { input, calls, .. } => {
                let mut all = input.output_types(subplans);
                all.extend(calls.iter().map(|c| c.ty));
                all
            }
            Node::RecursiveUnion { base, .. } => base.output_types(subplans),
            Node::WorkTable { columns, .. } => columns.iter().map(|c| c.1).collect(),
            Node::Project { exprs, .. } | Node::ProjectSet { exprs, .. } => {
                exprs.iter().map(|e| e.ty()).collect()
            }
            Node::NestedLoop { left, right, kind, .. }
            | Node::HashJoin { left, right, kind, .. }
            | Node::MergeJoin { left, right, kind, .. } => {
                let mut all = Vec::new();
                if kind.gives_left() {
                    all.extend(left.output_types(subplans));
                }
                if kind.gives_right() {
                    all.extend(right.output_types(subplans));
                }
                all
            }
            Node::Aggregate { groups, aggs, sets, .. } => {
                let masks = sets.iter().flat_map(|s| s.masks.iter().map(|_| oids::INT4));
                let values = aggs.iter().map(|a| a.ty);
                groups.iter().map(|g| g.ty()).chain(values).chain(masks).collect()
            }
            Node::Filter { input, .. }
            | Node::Sort { input, .. }
            | Node::IncrementalSort { input, .. }
            | Node::Gather { input, .. }
            | Node::Memoize { input, .. }
            | Node::Limit { input, .. }
            | Node::Distinct { input, .. }
            | Node::LockRows { input, .. }
            // Both sides have the same types; chains of set operations have theirs on the left.
            | Node::SetOp { right: input, .. } => input.output_types(subplans),
            Node::Append(inputs) => match inputs.first() {
                Some(first) => first.output_types(subplans),
                None => vec![],
            },
            Node::Modify(modify) => match &modify.returning {
                Some(exprs) => exprs.iter().map(|e| e.ty()).collect(),
                None => vec![],
            },
            Node::Rewritten(all) => all.types.clone(),
            Node::Cte { plan, .. } => subplans[*plan].output_types(subplans),
        }
    }
}

impl Node {
    /// The name in EXPLAIN, as PostgreSQL's, without what depends on the kind of a join.
    pub fn label(&self) -> &'static str {
        match self {
            Node::OneRow | Node::Nothing => "Result",
            Node::Values(_) => "Values Scan on \"*VALUES*\"",
            Node::SeqScan(scan) => match scan.tids() {
                None => "Seq Scan",
                Some(Tids::Between { .. }) => "Tid Range Scan",
                Some(_) => "Tid Scan",
            },
            Node::SystemScan { .. } => "Seq Scan",
            Node::IndexScan { .. } => "Index Scan",
            Node::IndexOnlyScan { .. } => "Index Only Scan",
            Node::BitmapHeapScan { .. } => "Bitmap Heap Scan",
            Node::BitmapIndexScan { .. } => "Bitmap Index Scan",
            Node::BitmapAnd(_) => "BitmapAnd",
            Node::BitmapOr(_) => "BitmapOr",
            Node::FunctionScan { .. } => "Function Scan",
            Node::Filter { .. } | Node::Project { .. } => "Result",
            Node::ProjectSet { .. } => "ProjectSet",
            Node::NestedLoop { .. } => "Nested Loop",
            Node::HashJoin { .. } => "Hash Join",
            Node::MergeJoin { .. } => "Merge Join",
            Node::Aggregate { plain: true, .. } => "Aggregate",
            Node::Aggregate { sets: Some(_), .. } => "MixedAggregate",
            Node::Window { .. } => "WindowAgg",
            Node::SampleScan { .. } => "Sample Scan",
            Node::ForeignScan(_) | Node::ForeignQuery(_) => "Foreign Scan",
            Node::RecursiveUnion { .. } => "Recursive Union",
            Node::WorkTable { .. } => "WorkTable Scan",
            Node::Aggregate { sorted: true, .. } => "GroupAggregate",
            Node::Aggregate { .. } => "HashAggregate",
            Node::Sort { .. } => "Sort",
            Node::IncrementalSort { .. } => "Incremental Sort",
            Node::Gather { .. } => "Gather",
            Node::Limit { .. } => "Limit",
            Node::Memoize { .. } => "Memoize",
            Node::Distinct { sorted: true, .. } => "Unique",
            Node::Distinct { .. } => "HashAggregate",
            Node::Append(_) | Node::PartitionScan(_) | Node::PartitionWise { .. } => "Append",
            Node::SetOp { .. } => "HashSetOp",
            Node::LockRows { .. } => "LockRows",
            Node::Modify(modify) => match modify.action {
                ModifyAction::Insert { .. } => "Insert",
                ModifyAction::Update { .. } => "Update",
                ModifyAction::Delete { .. } => "Delete",
                ModifyAction::Merge { .. } => "Merge",
            },
            Node::Rewritten(_) => "Rules",
            Node::Cte { .. } => "CTE Scan",
        }
    }
}

impl Scan {
    /// Where its rows may be, if its condition says so.
    pub fn tids(&self) -> Option<Tids> {
        self.tids_of(self.conditions())
    }

    /// The conditions that say where rows may be, and the others.
    pub fn by_tids(&self) -> (Vec<&Expr>, Vec<&Expr>) {
        self.conditions().iter().partition(|one| self.tids_of(std::slice::from_ref(*one)).is_some())
    }

    fn conditions(&self) -> &[Expr] {
        match &self.filter {
            Some(Expr::And(conditions)) => conditions,
            Some(condition) => std::slice::from_ref(condition),
            None => &[],
        }
    }

    fn tids_of(&self, conditions: &[Expr]) -> Option<Tids> {
        if !self.columns.contains(&ScanColumn::Tid) {
            return None;
        }
        let is_tid = |column| self.columns.get(usize::from(column)) == Some(&ScanColumn::Tid);
        let is_known = |e: &Expr| {
            let mut used = Vec::new();
            walk::columns_of(e, &mut used);
            used.is_empty() && !walk::is_volatile(e)
        };
        Tids::of(conditions.iter(), &is_tid, &is_known)
    }
}
