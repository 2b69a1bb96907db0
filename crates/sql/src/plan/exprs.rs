//! The expressions of a plan node: one list of the places where they stand, for all passes that look at them.

use super::{
    IndexBounds, KeyStep, MergeAction, Modify, ModifyAction, Node, Plan, RemoteRel, ScanKey,
};
use crate::expr::Expr;
use crate::window::WindowCall;

impl Plan {
    /// Calls `f` with each expression of the node itself. Those of its inputs and of subplans are theirs, and a
    /// changed row's rules and triggers are the table's.
    pub fn for_exprs<'p>(&'p self, f: &mut dyn FnMut(&'p Expr)) {
        match &self.node {
            Node::OneRow
            | Node::Nothing
            | Node::BitmapAnd(_)
            | Node::BitmapOr(_)
            | Node::PartitionScan(_)
            | Node::PartitionWise { .. }
            | Node::Memoize { .. }
            | Node::Append(_)
            | Node::SetOp { .. }
            | Node::Rewritten(_)
            | Node::RecursiveUnion { .. }
            | Node::WorkTable { .. } => {}
            Node::Values(rows) => rows.iter().flatten().for_each(f),
            Node::SeqScan(scan) => scan.filter.iter().for_each(f),
            Node::IndexScan { scan, bounds, .. } | Node::IndexOnlyScan { scan, bounds, .. } => {
                scan.filter.iter().for_each(&mut *f);
                bounds.for_exprs(f);
            }
            Node::BitmapHeapScan { scan, recheck, .. } => {
                scan.filter.iter().chain(recheck).for_each(f);
            }
            Node::BitmapIndexScan { bounds, .. } => bounds.for_exprs(f),
            Node::SystemScan { equal, filter, .. } => {
                equal.iter().map(|(_, e)| e).chain(filter).for_each(f);
            }
            Node::SampleScan { scan, percent, seed, .. } => {
                scan.filter.iter().chain([percent]).chain(seed).for_each(f);
            }
            Node::ForeignScan(foreign) => {
                foreign.scan.filter.iter().chain(&foreign.remote).for_each(f);
            }
            Node::ForeignQuery(query) => query.rel.for_exprs(f),
            Node::FunctionScan { calls, filter, .. } => calls.iter().chain(filter).for_each(f),
            Node::Filter { condition, .. } => f(condition),
            Node::Project { exprs, .. } | Node::ProjectSet { exprs, .. } => {
                exprs.iter().for_each(f);
            }
            Node::NestedLoop { slots, condition, .. } => {
                slots.iter().map(|(_, e)| e).chain(condition).for_each(f);
            }
            Node::HashJoin { keys, condition, .. } => {
                keys.iter().flat_map(|(l, r)| [l, r]).chain(condition).for_each(f);
            }
            Node::MergeJoin { keys, condition, .. } => {
                keys.iter().flat_map(|key| [&key.left, &key.right]).chain(condition).for_each(f);
            }
            Node::Aggregate { groups, aggs, .. } => {
                groups.iter().for_each(&mut *f);
                aggs.iter().for_each(|agg| agg.for_exprs(f));
            }
            Node::Window { partition, order, calls, .. } => {
                partition.iter().for_each(&mut *f);
                order.iter().for_each(|key| f(&key.expr));
                calls.iter().for_each(|call: &WindowCall| call.for_exprs(f));
            }
            Node::Sort { keys, .. } | Node::IncrementalSort { keys, .. } => {
                keys.iter().for_each(|key| f(&key.expr));
            }
            Node::Gather { first, .. } => first.iter().for_each(f),
            Node::Limit { count, offset, ties, .. } => {
                count.iter().chain(offset).chain(ties).for_each(f);
            }
            Node::Distinct { keys, .. } => keys.iter().for_each(f),
            Node::LockRows { targets, .. } => {
                targets.iter().filter_map(|target| target.recheck.as_ref()).for_each(f);
            }
            Node::Modify(modify) => modify.for_exprs(f),
            Node::Cte { slots, .. } => slots.iter().for_each(|(_, e)| f(e)),
        }
    }
}

impl Modify {
    /// Calls `f` with each expression of the statement.
    pub fn for_exprs<'p>(&'p self, f: &mut dyn FnMut(&'p Expr)) {
        match &self.action {
            ModifyAction::Insert { conflict, .. } => {
                for update in conflict.iter().filter_map(|conflict| conflict.update.as_ref()) {
                    update.set.iter().map(|(_, e)| e).chain(&update.condition).for_each(&mut *f);
                }
            }
            ModifyAction::Update { set, recheck, .. } => {
                set.iter().map(|(_, e)| e).chain(recheck).for_each(&mut *f);
            }
            ModifyAction::Delete { recheck, .. } => recheck.iter().for_each(&mut *f),
            ModifyAction::Merge { recheck, clauses, .. } => {
                recheck.iter().for_each(&mut *f);
                for clause in clauses {
                    clause.condition.iter().for_each(&mut *f);
                    match &clause.action {
                        MergeAction::Nothing | MergeAction::Delete => {}
                        MergeAction::Update(set) => set.iter().for_each(|(_, e)| f(e)),
                        MergeAction::Insert(row) => row.iter().for_each(&mut *f),
                    }
                }
            }
        }
        for child in &self.children {
            child.set.iter().for_each(|(_, e)| f(e));
        }
        self.returning.iter().flatten().for_each(f);
    }
}

impl IndexBounds {
    /// Calls `f` with each expression.
    pub fn for_exprs<'p>(&'p self, f: &mut dyn FnMut(&'p Expr)) {
        self.equal.iter().for_each(&mut *f);
        for step in &self.steps {
            match step {
                KeyStep::Equal(e) | KeyStep::Any(e) => f(e),
                KeyStep::Null | KeyStep::Each(_) => {}
            }
        }
        let ends = self.lower.iter().chain(&self.upper).flat_map(|(values, _)| values);
        ends.chain(self.begins.iter().map(|(e, _)| e)).for_each(&mut *f);
        let value = |key: &'p ScanKey| &key.value;
        self.keys.iter().chain(&self.nearest).map(value).for_each(&mut *f);
        self.distances.iter().chain(&self.recheck).for_each(&mut *f);
        self.either.iter().for_each(|other| other.for_exprs(f));
    }
}

impl RemoteRel {
    /// Calls `f` with each expression of it and of what is below.
    pub fn for_exprs<'p>(&'p self, f: &mut dyn FnMut(&'p Expr)) {
        match self {
            RemoteRel::Table { conditions, .. } => conditions.iter().for_each(f),
            RemoteRel::Join { left, right, conditions, .. } => {
                conditions.iter().for_each(&mut *f);
                left.for_exprs(f);
                right.for_exprs(f);
            }
            RemoteRel::Filter { input, conditions } => {
                conditions.iter().for_each(&mut *f);
                input.for_exprs(f);
            }
            RemoteRel::Project { input, exprs } => {
                exprs.iter().for_each(&mut *f);
                input.for_exprs(f);
            }
            RemoteRel::Aggregate { input, groups, aggs } => {
                groups.iter().for_each(&mut *f);
                aggs.iter().for_each(|agg| agg.for_exprs(f));
                input.for_exprs(f);
            }
            RemoteRel::Sort { input, keys } => {
                keys.iter().for_each(|key| f(&key.expr));
                input.for_exprs(f);
            }
            RemoteRel::Limit { input, count, offset } => {
                count.iter().chain(offset).for_each(&mut *f);
                input.for_exprs(f);
            }
        }
    }
}
