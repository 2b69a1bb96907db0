//! Parts of a plan that one foreign server can answer as a whole: joins, groups, sorts and limits over its tables.
//!
//! ```text
//! Limit                                   Foreign Scan
//!   Sort                        ─►          Relations: Aggregate on ((a) INNER JOIN (b))
//!     HashAggregate                         Remote SQL: SELECT … GROUP BY 1 ORDER BY … LIMIT 3
//!       Hash Join
//!         Foreign Scan on a
//!         Foreign Scan on b
//! ```
//!
//! The plan is gone through from below once it is made. What stays here: conditions that do not ship, columns of the
//! system, joins of other kinds, orders of strings (the server may have another collation), rows that are locked.

use std::sync::Arc;

use base::Oid;
use types::oids;

use crate::expr::{AggCall, Expr, SortKey};
use crate::foreign::{Ships, ships};
use crate::plan::{
    ForeignQuery, ForeignScan, JoinKind, Node, Plan, RemoteRel, ScanColumn, Statement,
};
use crate::{PrepareContext, Prepared};

/// Puts queries of foreign servers in the place of what they can answer.
pub fn push_down(prepared: &mut Prepared, cx: &PrepareContext<'_>) {
    if cx.catalog.foreign_servers().next().is_none() {
        return;
    }
    if let Statement::Query(plan) = &mut prepared.statement {
        push(plan);
    }
    prepared.subplans.iter_mut().for_each(push);
}

/// The same for a plan.
fn push(plan: &mut Plan) {
    match candidate(plan) {
        Some(found) if !matches!(found.rel, RemoteRel::Table { .. }) => {
            let types = plan.output_types(&[]);
            let Candidate { server, role, code, rel, .. } = found;
            let query = ForeignQuery { server, code, role, rel, types };
            plan.node = Node::ForeignQuery(Box::new(query));
        }
        _ => plan.children_mut().into_iter().for_each(push),
    }
}

/// A part of the query that one server can answer.
struct Candidate {
    server: u32,
    role: u32,
    code: Arc<str>,
    ships: Ships,
    rel: RemoteRel,
}

impl Candidate {
    fn with(self, make: impl FnOnce(Box<RemoteRel>) -> RemoteRel) -> Candidate {
        let Candidate { server, role, code, ships, rel } = self;
        Candidate { server, role, code, ships, rel: make(Box::new(rel)) }
    }

    fn all_ship(&self, exprs: &[Expr]) -> bool {
        exprs.iter().all(|e| (self.ships)(e))
    }
}

fn of_table(scan: &ForeignScan) -> Option<Candidate> {
    let ships = ships(&scan.code)?;
    let foreign = scan.scan.table.foreign.as_ref()?;
    let mut columns = Vec::with_capacity(scan.scan.columns.len());
    for column in &scan.scan.columns {
        match column {
            ScanColumn::Attr(n) => columns.push(*n),
            _ => return None,
        }
    }
    if scan.scan.filter.is_some() {
        return None;
    }
    Some(Candidate {
        server: foreign.server,
        role: scan.role,
        code: scan.code.clone(),
        ships,
        rel: RemoteRel::Table {
            table: scan.scan.table.clone(),
            alias: scan.scan.alias.clone(),
            columns,
            conditions: scan.remote.clone(),
        },
    })
}

/// A plan as a query of one server; None: it isn't one.
fn candidate(plan: &Plan) -> Option<Candidate> {
    match &plan.node {
        Node::ForeignScan(scan) => of_table(scan),
        Node::Filter { input, condition } => {
            let input = candidate(input)?;
            let conditions = vec![condition.clone()];
            input
                .all_ship(&conditions)
                .then(|| input.with(|input| RemoteRel::Filter { input, conditions }))
        }
        Node::Project { input, exprs } => {
            let input = candidate(input)?;
            let exprs = exprs.clone();
            input.all_ship(&exprs).then(|| input.with(|input| RemoteRel::Project { input, exprs }))
        }
        Node::Aggregate { input, groups, aggs, plain, sets: None, .. } => {
            let input = candidate(sorted_input(input))?;
            let fits = aggs.iter().all(|agg| aggregate_ships(agg, input.ships));
            // Without groups there is one row, even of none.
            if !fits || !input.all_ship(groups) || groups.is_empty() != *plain {
                return None;
            }
            let (groups, aggs) = (groups.clone(), aggs.clone());
            Some(input.with(|input| RemoteRel::Aggregate { input, groups, aggs }))
        }
        Node::HashJoin { left, right, kind, keys, condition, .. } => {
            let (left, right) = (candidate(left)?, candidate(right)?);
            let mut conditions = Vec::with_capacity(keys.len() + 1);
            let width = left.rel.width();
            for (a, b) in keys {
                conditions.push(equality(a, &moved(b, width))?);
            }
            conditions.extend(condition.clone());
            join(left, right, *kind, conditions)
        }
        Node::MergeJoin { left, right, kind, keys, condition } => {
            let (left, right) = (candidate(sorted_input(left))?, candidate(sorted_input(right))?);
            let mut conditions = Vec::with_capacity(keys.len() + 1);
            let width = left.rel.width();
            for key in keys {
                conditions.push(equality(&key.left, &moved(&key.right, width))?);
            }
            conditions.extend(condition.clone());
            join(left, right, *kind, conditions)
        }
        Node::NestedLoop { left, right, kind, slots, condition } if slots.is_empty() => {
            let (left, right) = (candidate(left)?, candidate(right)?);
            join(left, right, *kind, condition.iter().cloned().collect())
        }
        Node::Sort { input, keys, .. } => {
            let input = candidate(input)?;
            let fits = keys.iter().all(|key| key_ships(key, input.ships));
            let keys = keys.clone();
            fits.then(|| input.with(|input| RemoteRel::Sort { input, keys }))
        }
        Node::Limit { input, count, offset, ties } if ties.is_empty() => {
            let input = candidate(input)?;
            let both: Vec<Expr> = count.iter().chain(offset).cloned().collect();
            let (count, offset) = (count.clone(), offset.clone());
            input
                .all_ship(&both)
                .then(|| input.with(|input| RemoteRel::Limit { input, count, offset }))
        }
        _ => None,
    }
}

/// A join or group that is made on the server needs no sorted input.
fn sorted_input(plan: &Plan) -> &Plan {
    match &plan.node {
        Node::Sort { input, top: false, .. } => input,
        _ => plan,
    }
}

fn join(
    left: Candidate,
    right: Candidate,
    kind: JoinKind,
    conditions: Vec<Expr>,
) -> Option<Candidate> {
    let known = matches!(kind, JoinKind::Inner | JoinKind::Left | JoinKind::Right | JoinKind::Full);
    let fits = (left.server, left.role) == (right.server, right.role) && left.code == right.code;
    if !known || !fits || !left.all_ship(&conditions) {
        return None;
    }
    // FULL JOIN takes conditions that can be hashed or merged only.
    if conditions.is_empty() && kind != JoinKind::Inner {
        return None;
    }
    let right = Box::new(right.rel);
    Some(left.with(|left| RemoteRel::Join { left, right, kind, conditions }))
}

/// An expression over the right side, as one over both.
fn moved(e: &Expr, width: usize) -> Expr {
    let types = crate::foreign::typed_columns(e);
    let place = |n: u16| {
        let (_, ty) = types.iter().find(|(at, _)| *at == n)?;
        Some(Expr::Column(n + width as u16, *ty))
    };
    crate::walk::substitute(e.clone(), &place)
}

/// `a = b` by the operator of their type.
fn equality(a: &Expr, b: &Expr) -> Option<Expr> {
    let (left, right) = (a.ty(), b.ty());
    let named = types::func::operators_named("=");
    let operator = named.iter().find(|o| o.left == left && o.right == right)?;
    let function = types::func::function(operator.function)?;
    Some(Expr::Call {
        function,
        args: Box::new([a.clone(), b.clone()]),
        ty: oids::BOOL,
        position: 0,
    })
}

fn is_string(ty: Oid) -> bool {
    types::TypeIo::get(ty).is_none_or(|io| io.category == b'S')
}

fn key_ships(key: &SortKey, ships: Ships) -> bool {
    ships(&key.expr) && !is_string(key.expr.ty()) && !matches!(key.expr, Expr::Const(..))
}

/// Aggregates of strings that depend on their order, or of what the server does not know, stay here.
fn aggregate_ships(agg: &AggCall, ships: Ships) -> bool {
    const KNOWN: &[&str] = &[
        "count",
        "sum",
        "avg",
        "min",
        "max",
        "bool_and",
        "bool_or",
        "every",
        "bit_and",
        "bit_or",
        "stddev",
        "stddev_samp",
        "stddev_pop",
        "variance",
        "var_samp",
        "var_pop",
    ];
    let ordered = matches!(agg.aggregate.name, "min" | "max");
    agg.own.is_none()
        && agg.direct.is_none()
        && agg.order.is_empty()
        && agg.ty.0 < Oid::FIRST_USER.0
        && KNOWN.contains(&agg.aggregate.name)
        && agg.args.iter().all(|e| ships(e) && !(ordered && is_string(e.ty())))
        && agg.filter.iter().all(ships)
}
