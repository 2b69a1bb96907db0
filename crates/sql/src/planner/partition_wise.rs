//! Partition-wise plans: a pass over a finished plan finds joins and groups that need no rows of two partitions together
//! and lets them run partition by partition (`enable_partitionwise_join`, `enable_partitionwise_aggregate`; manual,
//! section 20.7). Hash tables are then as large as those of one partition.
//!
//! A plan is *spread* over bounds when rows that are equal in certain output columns come from partitions in the same
//! place of the bounds. A scan of a partitioned table is spread by its key, a join of two plans that are spread over equal
//! bounds by what it compares of both keys, groups by what they have of the key among them. Tables with partitions
//! that are partitioned themselves, and keys that are expressions or compared otherwise than by default, are left as they are.

use base::settings::setting;

use crate::PrepareContext;
use crate::expr::Expr;
use crate::plan::{
    JoinKind, ModifyAction, Node, PartitionScan, Plan, Prepared, ScanColumn, Statement,
};

/// Lets the parts of a statement's plan run partition by partition that can.
pub(crate) fn add(prepared: &mut Prepared, cx: &PrepareContext<'_>) {
    let of = |id| cx.settings.bool(id);
    let joins = of(setting::ENABLE_PARTITIONWISE_JOIN);
    let groups = of(setting::ENABLE_PARTITIONWISE_AGGREGATE);
    if !(joins || groups) || !prepared.changes.is_empty() {
        return;
    }
    let mut subplans = std::mem::take(&mut prepared.subplans);
    let pass = Pass { cx, joins, groups, subplans: &subplans };
    if let Statement::Query(plan) = &mut prepared.statement {
        match &mut plan.node {
            Node::Modify(modify) => {
                if let ModifyAction::Insert { input, .. } = &mut modify.action {
                    pass.visit(input);
                }
            }
            _ => pass.visit(plan),
        }
    }
    // Types of a subplan's columns are found in those before it.
    for n in 0..subplans.len() {
        let mut own = subplans[n].clone();
        Pass { cx, joins, groups, subplans: &subplans }.visit(&mut own);
        subplans[n] = own;
    }
    prepared.subplans = subplans;
}

struct Pass<'a> {
    cx: &'a PrepareContext<'a>,
    joins: bool,
    groups: bool,
    subplans: &'a [Plan],
}

/// Over which bounds a plan's rows are spread, and by what.
struct Spread {
    /// A table with these bounds.
    table: u32,
    /// For each part of the key, the output columns that hold it.
    keys: Vec<Vec<u16>>,
}

impl Spread {
    /// The same of other columns: `to` says where a column is.
    fn mapped(mut self, to: &dyn Fn(u16) -> Vec<u16>) -> Spread {
        for columns in &mut self.keys {
            *columns = columns.iter().flat_map(|n| to(*n)).collect();
        }
        self
    }
}

impl Pass<'_> {
    fn visit(&self, plan: &mut Plan) {
        if sched::check_stack().is_err() {
            return;
        }
        let wanted = match &plan.node {
            Node::HashJoin { .. } => self.joins,
            Node::Aggregate { .. } | Node::Distinct { .. } => self.groups,
            _ => false,
        };
        if !wanted || self.spread(plan).is_none() {
            return plan.children_mut().into_iter().for_each(|child| self.visit(child));
        }
        let mut places = Vec::new();
        plan.walk(&mut |below| {
            if let Node::PartitionScan(scan) = &below.node
                && let Some(parts) = self.parts(scan)
            {
                places.extend(parts.iter().enumerate().map(|(n, part)| (part.oid, n as u32)));
            }
        });
        places.sort_unstable();
        let estimate = plan.estimate;
        let input = std::mem::replace(plan, Plan { node: Node::Nothing, estimate });
        plan.node = Node::PartitionWise { input: Box::new(input), places };
    }

    fn parts(&self, scan: &PartitionScan) -> Option<&[std::sync::Arc<catalog::Table>]> {
        let by = scan.table.partitioning.as_ref()?;
        let bounds = self.cx.catalog.family(scan.table.oid)?.bounds(by).ok()?;
        bounds.nested.is_empty().then_some(&bounds.parts[..])
    }

    fn spread(&self, plan: &Plan) -> Option<Spread> {
        sched::check_stack().ok()?;
        match &plan.node {
            Node::PartitionScan(scan) if scan.order.is_empty() => self.spread_of_scan(scan),
            Node::Filter { input, .. } => self.spread(input),
            Node::Project { input, exprs } => {
                let place = |n: u16| places_of(exprs, n);
                Some(self.spread(input)?.mapped(&place))
            }
            Node::HashJoin { left, right, kind, keys, .. } if self.joins => {
                let (of_left, of_right) = (self.spread(left)?, self.spread(right)?);
                if !self.are_alike(of_left.table, of_right.table) {
                    return None;
                }
                let compared = |(own, other): (&Vec<u16>, &Vec<u16>)| {
                    keys.iter().any(|pair| match pair {
                        (Expr::Column(l, lt), Expr::Column(r, rt)) => {
                            lt == rt && own.contains(l) && other.contains(r)
                        }
                        _ => false,
                    })
                };
                if !of_left.keys.iter().zip(&of_right.keys).all(compared) {
                    return None;
                }
                let width = left.output_types(self.subplans).len() as u16;
                Some(join(*kind, of_left, of_right, width))
            }
            Node::Aggregate { input, groups, sets: None, plain: false, sorted: false, .. }
            | Node::Distinct { input, keys: groups, sorted: false }
                if self.groups =>
            {
                let below = self.spread(input)?;
                let grouped =
                    |columns: &Vec<u16>| columns.iter().any(|n| !places_of(groups, *n).is_empty());
                if !below.keys.iter().all(grouped) {
                    return None;
                }
                Some(match plan.node {
                    // A column of the input is where it was.
                    Node::Distinct { .. } => below,
                    _ => below.mapped(&|n| places_of(groups, n)),
                })
            }
            _ => None,
        }
    }

    fn spread_of_scan(&self, scan: &PartitionScan) -> Option<Spread> {
        let by = scan.table.partitioning.as_ref()?;
        if self.parts(scan)?.len() < 2 {
            return None;
        }
        let (Node::SeqScan(of)
        | Node::IndexScan { scan: of, .. }
        | Node::IndexOnlyScan { scan: of, .. }
        | Node::BitmapHeapScan { scan: of, .. }) = &scan.scan.node
        else {
            return None;
        };
        let mut keys = Vec::with_capacity(by.keys.len());
        for key in &by.keys {
            let plain = key.column > 0
                && key.slot.is_none()
                && key.class.is_none()
                && key.hash_function == 0;
            if !plain {
                return None;
            }
            let is = |c: &ScanColumn| matches!(c, ScanColumn::Attr(n) if *n == key.column);
            let found = of.columns.iter().enumerate().filter(|(_, c)| is(c));
            keys.push(found.map(|(n, _)| n as u16).collect());
        }
        Some(Spread { table: scan.table.oid, keys })
    }

    /// Whether two tables have the same bounds.
    fn are_alike(&self, a: u32, b: u32) -> bool {
        let of = |table: u32| {
            let table = self.cx.catalog.table(table)?;
            let by = table.partitioning.as_ref()?;
            let bounds = self.cx.catalog.family(table.oid)?.bounds(by).ok()?;
            Some((by, bounds))
        };
        let (Some((a_by, a)), Some((b_by, b))) = (of(a), of(b)) else { return false };
        let key = |(a, b): (&catalog::PartitionKey, &catalog::PartitionKey)| {
            a.ty == b.ty && a.collation == b.collation
        };
        let bound = |(a, b): (&std::sync::Arc<catalog::Table>, &std::sync::Arc<catalog::Table>)| {
            format!("{:?}", a.bound) == format!("{:?}", b.bound)
        };
        a_by.strategy == b_by.strategy
            && a_by.keys.len() == b_by.keys.len()
            && a_by.keys.iter().zip(&b_by.keys).all(key)
            && a.parts.len() == b.parts.len()
            && a.parts.iter().zip(&b.parts).all(bound)
    }
}

/// Where a column is among expressions.
fn places_of(exprs: &[Expr], column: u16) -> Vec<u16> {
    let is = |e: &Expr| matches!(e, Expr::Column(n, _) if *n == column);
    exprs.iter().enumerate().filter(|(_, e)| is(e)).map(|(n, _)| n as u16).collect()
}

/// By what the rows of a join are spread: a side that may be padded with NULLs does not count.
fn join(kind: JoinKind, left: Spread, right: Spread, width: u16) -> Spread {
    let shifted = |right: Spread, by: u16| right.mapped(&|n| vec![n + by]);
    match kind {
        JoinKind::Left | JoinKind::Semi | JoinKind::Anti => left,
        JoinKind::RightSemi | JoinKind::RightAnti => right,
        JoinKind::Right => shifted(right, width),
        JoinKind::Full => left.mapped(&|_| Vec::new()),
        JoinKind::Inner => {
            let mut both = left;
            for (own, other) in both.keys.iter_mut().zip(shifted(right, width).keys) {
                own.extend(other);
            }
            both
        }
    }
}
