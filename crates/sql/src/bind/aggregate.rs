//! Aggregate calls, and the rule that other columns must be grouped by.

use std::sync::Arc;

use base::{Result, err};
use pg_query::protobuf as pb;
use types::func::AggregateRow;

use crate::expr::{AggCall, Expr, OwnAggregate, SortKey};
use crate::logical::Col;
use crate::walk;

use super::function::Signature;
use super::scope::Place;
use super::{Binder, Scope, inner};

/// The arguments of the aggregates that make JSON become JSON here, where their types are known.
pub(crate) fn json_items(name: &str, args: Vec<Expr>) -> Vec<Expr> {
    use types::func::internal::{JSON_ITEM, JSON_KEY, JSONB_ITEM};
    let (item, ty) = match name {
        "json_agg" | "json_object_agg" => (&JSON_ITEM, types::oids::JSON),
        "jsonb_agg" | "jsonb_object_agg" => (&JSONB_ITEM, types::oids::JSONB),
        _ => return args,
    };
    let last = args.len() - 1;
    let wrap = |(i, arg)| {
        let (function, ty) = if i == last { (item, ty) } else { (&JSON_KEY, types::oids::TEXT) };
        Expr::Call { function, args: Box::new([arg]), ty, position: 0 }
    };
    args.into_iter().enumerate().map(wrap).collect()
}

/// `42809` for an ordered-set aggregate that is called as another one.
pub(crate) fn without_group(name: &str) -> base::Error {
    err!(WRONG_OBJECT_TYPE, "WITHIN GROUP is required for ordered-set aggregate {name}")
}

/// An argument before it became JSON.
pub(crate) fn before_json(arg: &Expr) -> &Expr {
    use types::func::internal::{JSON_ITEM, JSON_KEY, JSONB_ITEM};
    match arg {
        Expr::Call { function, args, .. } => match &args[..] {
            [inner]
                if [&JSON_ITEM, &JSONB_ITEM, &JSON_KEY].iter().any(|f| f.name == function.name) =>
            {
                inner
            }
            _ => arg,
        },
        _ => arg,
    }
}

impl Binder<'_> {
    /// An aggregate call: noted in the scope, stands as a column.
    pub(crate) fn aggregate(
        &mut self,
        scope: &Scope<'_>,
        row: &'static AggregateRow,
        call: &pb::FuncCall,
        args: Vec<Expr>,
        position: u32,
    ) -> Result<Expr> {
        if types::func::is_ordered_set(row.name) {
            return Err(without_group(row.name).at(position));
        }
        let signature = Signature { declared: row.args, result: row.result };
        let written = args.clone();
        let (args, ty) = self.fit(&signature, args, position)?;
        let args = json_items(row.name, args);
        self.plain_aggregate(scope, (row, None), call, (args, &written, ty), position)
    }

    /// An aggregate's call with arguments that are cast.
    pub(crate) fn plain_aggregate(
        &mut self,
        scope: &Scope<'_>,
        (row, own): (&'static AggregateRow, Option<Arc<OwnAggregate>>),
        call: &pb::FuncCall,
        (args, written, ty): (Vec<Expr>, &[Expr], base::Oid),
        position: u32,
    ) -> Result<Expr> {
        let nested = scope.in_aggregate.replace(true);
        let order = self.aggregate_order(scope, call);
        let filter = self.aggregate_filter(scope, call);
        scope.in_aggregate.set(nested);
        let (mut order, filter) = (order?, filter?);
        if self.unfolded {
            // An argument is sorted by with the casts that the call implies.
            for key in &mut order {
                let is_it = |arg: &&Expr| walk::same(crate::print::shown(arg), &key.expr);
                if let Some(arg) = args.iter().map(before_json).find(is_it) {
                    key.expr = arg.clone();
                }
            }
        }
        let owner = {
            let order = order.iter().map(|k| &k.expr);
            let parts: Vec<&Expr> = args.iter().chain(order).chain(filter.iter()).collect();
            let owner = self.aggregate_level(scope, &parts);
            self.check_not_nested(owner, &parts)?;
            owner
        };
        if !std::ptr::eq(owner, scope) && owner.place.get() == Place::From {
            return Err(err!(
                GROUPING_ERROR,
                "aggregate functions are not allowed in FROM clause of their own query level"
            )
            .at(position));
        }
        owner.check_aggregate(position)?;
        // Casts that nobody wrote don't hide an argument.
        let hidden = |k: &SortKey| {
            !args.iter().map(before_json).chain(written).any(|arg| walk::same(arg, &k.expr))
        };
        if call.agg_distinct
            && let Some(at) = order.iter().position(hidden)
        {
            let place = match call.agg_order.get(at).and_then(|n| n.node.as_ref()) {
                Some(pg_query::NodeEnum::SortBy(sort)) => {
                    inner(&sort.node).map_or(-1, super::ast::location)
                }
                _ => -1,
            };
            return Err(err!(
                INVALID_COLUMN_REFERENCE,
                "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list"
            )
            .at(self.at(place)));
        }
        if call.agg_distinct {
            for (n, arg) in args.iter().map(before_json).enumerate() {
                let place =
                    call.args.get(n).map_or(position, |n| self.at(super::ast::location_of(n)));
                self.check_groupable(arg.ty(), place)?;
                self.check_sortable(arg.ty(), place).map_err(|e| {
                    e.detail("Aggregates with DISTINCT must be able to sort their inputs.")
                })?;
            }
        }
        let collation = if self.collating { Some(args.clone()) } else { None };
        let mut aggregate = AggCall {
            aggregate: row,
            args,
            distinct: call.agg_distinct,
            order,
            filter,
            direct: None,
            ty,
            own,
        };
        self.collated_aggregate(&mut aggregate)?;
        let value = self.note_aggregate(owner, aggregate)?;
        if let Expr::Column(col, _) = value {
            if let Some(args) = collation {
                self.pass_collations(col, ty, &args)?;
            }
            let var = &mut self.vars[usize::from(col)];
            if var.position == 0 {
                var.position = position;
            }
        }
        Ok(value)
    }

    /// An aggregate call as a column. The same call twice is computed once.
    pub(crate) fn note_aggregate(&mut self, scope: &Scope<'_>, aggregate: AggCall) -> Result<Expr> {
        let ty = aggregate.ty;
        let known = scope
            .aggs
            .borrow()
            .iter()
            .find(|(_, a)| walk::same_aggregate(a, &aggregate))
            .map(|(col, _)| *col);
        if let Some(col) = known {
            return Ok(Expr::Column(col, ty));
        }
        let col = self.new_var(aggregate.name(), ty, -1)?;
        scope.aggs.borrow_mut().push((col, aggregate));
        Ok(Expr::Column(col, ty))
    }

    pub(crate) fn aggregate_order(
        &mut self,
        scope: &Scope<'_>,
        call: &pb::FuncCall,
    ) -> Result<Vec<SortKey>> {
        let mut keys = Vec::with_capacity(call.agg_order.len());
        for node in &call.agg_order {
            let Some(pg_query::NodeEnum::SortBy(sort)) = &node.node else { continue };
            let Some(value) = inner(&sort.node) else { continue };
            let bound = self.holding(|b| b.expr(scope, value))?;
            let bound = self.resolve_unknown(bound)?;
            keys.push(self.sort_key(sort, bound)?);
        }
        Ok(keys)
    }

    pub(crate) fn aggregate_filter(
        &mut self,
        scope: &Scope<'_>,
        call: &pb::FuncCall,
    ) -> Result<Option<Expr>> {
        let Some(node) = inner(&call.agg_filter) else { return Ok(None) };
        let position = self.at(super::ast::location(node));
        let place = scope.place.replace(Place::Filter);
        let bound = self.expr(scope, node);
        scope.place.set(place);
        self.boolean(bound?, "FILTER", position).map(Some)
    }

    /// `42803` for an aggregate of the same level in an aggregate's arguments.
    fn check_not_nested(&self, owner: &Scope<'_>, parts: &[&Expr]) -> Result<()> {
        let mut cols = Vec::new();
        parts.iter().for_each(|e| walk::columns_of(e, &mut cols));
        let aggs = owner.aggs.borrow();
        match cols.iter().find(|c| aggs.iter().any(|(a, _)| a == *c)) {
            None => Ok(()),
            Some(col) => Err(err!(GROUPING_ERROR, "aggregate function calls cannot be nested")
                .at(self.vars[usize::from(*col)].position)),
        }
    }

    /// The level that an aggregate belongs to: the innermost one whose columns, or aggregates, its arguments use.
    pub(crate) fn aggregate_level<'s, 'p>(
        &self,
        scope: &'s Scope<'p>,
        args: &[&Expr],
    ) -> &'s Scope<'p>
    where
        'p: 's,
    {
        let mut cols = Vec::new();
        args.iter().for_each(|a| walk::columns_of(a, &mut cols));
        let has = |level: &Scope<'_>, col: Col| {
            self.belongs_to(level, col) || level.aggs.borrow().iter().any(|(a, _)| *a == col)
        };
        let mut level = scope;
        while !cols.is_empty() && !cols.iter().any(|c| has(level, *c)) {
            match level.parent {
                Some(parent) => level = parent,
                None => return scope,
            }
        }
        level
    }

    /// Replaces grouped expressions by the group's columns; `42803` for columns that are left.
    pub(crate) fn over_groups(
        &mut self,
        scope: &Scope<'_>,
        groups: &mut Vec<(Col, Expr)>,
        e: Expr,
    ) -> Result<Expr> {
        sched::check_stack()?;
        if let Some((col, _)) = groups.iter().find(|(_, g)| walk::same(g, &e)) {
            return Ok(Expr::Column(*col, e.ty()));
        }
        match e {
            Expr::Column(col, ty) => {
                if scope.aggs.borrow().iter().any(|(c, _)| *c == col)
                    || !self.belongs_to(scope, col)
                {
                    return Ok(Expr::Column(col, ty));
                }
                self.dependent_column(scope, groups, col)
            }
            other => walk::map_children(other, &mut |child| self.over_groups(scope, groups, child)),
        }
    }

    /// Whether a column comes from this level's FROM.
    pub(crate) fn belongs_to(&self, scope: &Scope<'_>, col: Col) -> bool {
        scope.items.iter().any(|item| {
            item.table.as_ref().is_some_and(|t| t.column(col).is_some())
                || item.columns.iter().any(|c| {
                    let mut own = Vec::new();
                    walk::columns_of(&c.expr, &mut own);
                    own.contains(&col)
                })
        })
    }

    /// A column of a table whose primary key is grouped by is known in each group.
    fn dependent_column(
        &mut self,
        scope: &Scope<'_>,
        groups: &mut Vec<(Col, Expr)>,
        col: Col,
    ) -> Result<Expr> {
        let var = self.vars[usize::from(col)].clone();
        let table =
            scope.items.iter().filter_map(|i| i.table.as_ref()).find(|t| t.column(col).is_some());
        if let Some(table) = table {
            let keys = table.table.constraints.iter().find_map(|c| match &c.kind {
                catalog::ConstraintKind::PrimaryKey { index } if !c.deferrable => {
                    Some((c.oid, self.cx.catalog.index(*index)?))
                }
                _ => None,
            });
            // Of several sets all must have the key.
            let common = scope.common_groups.borrow();
            let counts = |at: usize| common.as_ref().is_none_or(|common| common.contains(&at));
            let covered = keys.as_ref().is_some_and(|(_, index)| {
                index.columns.iter().all(|k| {
                    let key = table.col(crate::plan::ScanColumn::Attr(k.column));
                    groups.iter().enumerate().any(|(at, (_, g))| {
                        counts(at) && matches!(g, Expr::Column(c, _) if *c == key)
                    })
                })
            });
            if covered {
                let group = self.new_var(&var.name, var.ty, var.typmod)?;
                groups.push((group, Expr::Column(col, var.ty)));
                if let Some((constraint, _)) = keys {
                    self.note_use(constraint, 0);
                }
                return Ok(Expr::Column(group, var.ty));
            }
        }
        let owner = scope
            .items
            .iter()
            .find(|i| {
                i.columns.iter().any(|c| matches!(&c.expr, Expr::Column(n, _) if *n == col))
                    && i.name.is_some()
            })
            .and_then(|i| i.name.clone());
        let full = owner.map_or_else(|| var.name.clone(), |o| format!("{o}.{}", var.name));
        Err(err!(
            GROUPING_ERROR,
            "column \"{full}\" must appear in the GROUP BY clause or be used in an aggregate function"
        )
        .at(var.position))
    }
}
