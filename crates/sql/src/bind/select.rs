//! SELECT: target list, grouping, order, limits, row locks.

use base::{Result, err};
use pg_query::{NodeEnum, protobuf as pb};
use txn::RowLockMode;
use types::func::CastContext;
use types::oids::*;

use crate::expr::{Expr, SortKey};
use crate::logical::{Col, Query, Rel, RelLock};
use crate::plan::{LockRowsWait, OutputColumn, ScanColumn};
use crate::walk;

use super::record::{Part, SelectRecord};
use super::scope::{NsItem, Place};
use super::{Binder, Scope, ast, inner};

/// An entry of the target list.
#[derive(Clone)]
pub(crate) struct TargetEntry {
    pub name: String,
    pub expr: Expr,
    /// The typmod of a constant that was cast (the cast itself is gone); -1 for all else.
    pub typmod: i32,
}

/// A sort key before it has a place: which target (visible ones first, then hidden ones).
struct OrderBy {
    target: usize,
    descending: bool,
    nulls_first: bool,
}

/// TargetEntry list with hidden entries behind the visible ones.
pub(crate) struct Targets {
    pub list: Vec<TargetEntry>,
    pub visible: usize,
}

impl Binder<'_> {
    /// A query; `resolve`: literals without a type become text.
    pub(crate) fn select(
        &mut self,
        stmt: &pb::SelectStmt,
        parent: Option<&Scope<'_>>,
        resolve: bool,
    ) -> Result<Query> {
        sched::check_stack()?;
        sched::check_interrupts()?;
        if let Some(into) = &stmt.into_clause
            && !std::mem::take(&mut self.into_allowed)
        {
            return Err(self.no_into(into));
        }
        let applied = self.applied.take();
        let (outer_names, outer_ctes) = (self.cte_names.len(), self.ctes.len());
        self.queries += 1;
        if let Some(with) = &stmt.with_clause {
            let top = self.queries == 1 && !self.changing;
            self.with_clause(with, parent, top)?;
        }
        let query = if stmt.op > pb::SetOperation::SetopNone as i32 {
            self.set_operation(stmt, parent, resolve)
        } else if !stmt.values_lists.is_empty() {
            match applied {
                None => self.values(stmt, parent, resolve),
                Some(applied) => {
                    let mut rows = Scope::new(parent);
                    rows.items = applied.items;
                    self.values(stmt, Some(&rows), resolve).map(|mut query| {
                        let rel = super::rule::beside(applied.rel, Some(query.rel));
                        query.rel = rel.unwrap_or(Rel::Nothing);
                        query
                    })
                }
            }
        } else {
            self.plain_select(stmt, parent, applied, resolve)
        };
        self.cte_names.truncate(outer_names);
        self.queries -= 1;
        let mut query = query?;
        // All readers of a WITH query that uses outer values must see the same ones, so that the joins
        // around it may not come between its readers.
        let shared = |cte: &crate::logical::Cte| cte.uses > 1 && !cte.outer.is_empty();
        if parent.is_some() && self.ctes[outer_ctes..].iter().any(shared) {
            let input = Box::new(query.rel);
            query.rel = Rel::Limit { input, count: None, offset: None, ties: Vec::new() };
        }
        Ok(query)
    }

    /// `42601` for `SELECT … INTO` that is part of something else.
    pub(crate) fn no_into(&self, into: &pb::IntoClause) -> base::Error {
        let at = into.rel.as_ref().map_or(-1, |rel| rel.location);
        err!(SYNTAX_ERROR, "SELECT ... INTO is not allowed here").at(self.at(at))
    }

    fn plain_select(
        &mut self,
        stmt: &pb::SelectStmt,
        parent: Option<&Scope<'_>>,
        applied: Option<super::rule::Applied>,
        resolve: bool,
    ) -> Result<Query> {
        let mut scope = Scope::new(parent);
        let windows = self.window_clause(&stmt.window_clause)?;
        scope.named_windows = windows.into_iter().map(std::sync::Arc::new).collect();
        if let Some(record) = &mut self.record {
            record.windows.extend(scope.named_windows.iter().cloned());
        }
        let around = applied.and_then(|applied| {
            scope.items.extend(applied.items);
            applied.rel
        });
        let from = self.locked_from(&mut scope, stmt)?;
        let from = super::rule::beside(around, from);
        let mut rel = from.unwrap_or(Rel::OneRow);
        // Columns missing from GROUP BY are reported where the list or HAVING names them.
        self.forget_positions(&scope, |_| true);
        // Expressions that must be found again elsewhere keep their literals.
        let compares = !stmt.group_clause.is_empty()
            || !stmt.distinct_clause.is_empty()
            || stmt.sort_clause.iter().any(is_complex_sort)
            || is_windowed_by_calls(stmt);
        let list = if compares {
            self.holding(|b| b.target_list(&scope, &stmt.target_list, Place::Target))?
        } else {
            self.target_list(&scope, &stmt.target_list, Place::Target)?
        };
        let mut targets = Targets { visible: list.len(), list };
        // WHERE is bound behind the list: of two mistakes the one in the list is reported.
        let unnamed: Vec<Col> = self.columns_without_position(&scope);
        let mut conditions = Vec::new();
        if let Some(node) = inner(&stmt.where_clause) {
            let condition = self.condition(&scope, node, Place::Where)?;
            walk::conjuncts(condition, &mut conditions);
        }
        self.forget_positions(&scope, |col| unnamed.contains(&col));
        rel = filter(rel, conditions.clone());
        let order = self.holding(|b| b.order_by(&scope, &mut targets, &stmt.sort_clause))?;
        let (groups, sets) = self.holding(|b| b.group_by(&scope, &targets, stmt))?;
        let distinct = self.holding(|b| b.distinct(&scope, &mut targets, stmt, &order))?;
        let having = match inner(&stmt.having_clause) {
            Some(node) if compares => {
                Some(self.holding(|b| b.condition(&scope, node, Place::Having))?)
            }
            Some(node) => Some(self.condition(&scope, node, Place::Having)?),
            None => None,
        };
        self.check_named_windows(&scope)?;
        for target in &mut targets.list {
            if resolve || !stmt.distinct_clause.is_empty() {
                let expr = std::mem::replace(&mut target.expr, Expr::Row(Vec::new()));
                target.expr = self.resolve_unknown(expr)?;
            }
        }
        self.note_select(stmt, &scope, || SelectRecord {
            targets: targets.list.iter().map(|t| (t.name.clone(), t.expr.clone())).collect(),
            visible: targets.visible,
            conditions: conditions.clone(),
            groups: groups.iter().map(|(_, e)| e.clone()).collect(),
            having: having.clone(),
            order: order.iter().map(|o| (o.target, o.descending, o.nulls_first)).collect(),
            distinct: distinct.clone(),
            sets: scope.grouping_sets.get(),
            groupings: scope.noted_groupings(),
            windows: scope.window_notes.borrow().clone(),
            named: scope.window_specs.borrow().clone(),
            ..SelectRecord::default()
        });
        let grouped = !groups.is_empty()
            || !stmt.group_clause.is_empty()
            || having.is_some()
            || !scope.aggs.borrow().is_empty()
            || !scope.groupings.borrow().is_empty();
        if let Some((col, _)) = scope.aggs.borrow().first()
            && reads_work_table(&rel)
        {
            return Err(err!(
                INVALID_RECURSION,
                "aggregate functions are not allowed in a recursive query's recursive term"
            )
            .at(self.vars[usize::from(*col)].position));
        }
        if grouped {
            rel = self.grouped(&scope, rel, (groups, sets), &mut targets, having)?;
        }
        let windowed = !scope.windows.borrow().is_empty();
        let expands = targets.list.iter().any(|t| walk::has_set(&t.expr));
        let locks = self.row_locks(&scope, stmt, (grouped, windowed, expands))?;
        for lock in &locks {
            self.guard_locked(&mut rel, &lock.table)?;
        }
        let mut recheck = self.guards_of(locks.iter().map(|lock| lock.table.base));
        if !locks.is_empty() {
            let beneath = scope.items.iter().flat_map(|item| &item.beneath.conditions);
            recheck.extend(beneath.cloned());
        }
        recheck.extend(conditions);
        if windowed {
            rel = self.sets_below_windows(&scope, rel, &mut targets.list)?;
            let sorted: Vec<Expr> =
                order.iter().map(|o| targets.list[o.target].expr.clone()).collect();
            rel = self.windows(&scope, rel, &sorted);
        }
        let limits = self.limits(stmt, &scope)?;
        self.assemble(rel, targets, order, distinct, locks, recheck, limits)
    }

    /// Columns of FROM that nothing has named so far.
    fn columns_without_position(&self, scope: &Scope<'_>) -> Vec<Col> {
        let cols = scope.items.iter().flat_map(|item| &item.columns).filter_map(|c| match c.expr {
            Expr::Column(col, _) => Some(col),
            _ => None,
        });
        cols.filter(|col| self.vars[usize::from(*col)].position == 0).collect()
    }

    /// Lets the next use of these columns count as their first.
    fn forget_positions(&mut self, scope: &Scope<'_>, which: impl Fn(Col) -> bool) {
        for column in scope.items.iter().flat_map(|item| &item.columns) {
            if let Expr::Column(col, _) = column.expr
                && which(col)
            {
                self.vars[usize::from(col)].position = 0;
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn assemble(
        &mut self,
        mut rel: Rel,
        mut targets: Targets,
        order: Vec<OrderBy>,
        distinct: Option<Vec<usize>>,
        locks: Vec<RelLock>,
        recheck: Vec<Expr>,
        limits: Limits,
    ) -> Result<Query> {
        let sets = targets.list.iter().any(|t| walk::has_set(&t.expr));
        let changes = order.iter().any(|o| walk::is_volatile(&targets.list[o.target].expr));
        let output = self.describe_targets(&targets.list[..targets.visible])?;
        if !sets && distinct.is_none() && !changes {
            // Sort the input, project what is left.
            let mut keys: Vec<SortKey> =
                order.iter().map(|o| sort_key_of(o, targets.list[o.target].expr.clone())).collect();
            self.sort_values(&mut keys)?;
            let ties = keys.iter().map(|k| k.expr.clone()).collect();
            rel = sorted(rel, keys);
            if !locks.is_empty() {
                rel = Rel::Lock { input: Box::new(rel), targets: locks, recheck };
            }
            let visible = &targets.list[..targets.visible];
            // What can be seen of the rows that OFFSET skips is seen.
            if limits.skips() && visible.iter().any(|t| walk::acts(&t.expr)) {
                let (rel, cols) = self.project(rel, visible)?;
                return Ok(Query { rel: limits.over(rel, Vec::new()), cols, output });
            }
            rel = limits.over(rel, ties);
            let (rel, cols) = self.project(rel, visible)?;
            return Ok(Query { rel, cols, output });
        }
        // Errors that have a place in the target.
        for o in &order {
            self.sort_value(targets.list[o.target].expr.clone())?;
        }
        let whole = distinct.as_ref().is_some_and(Vec::is_empty);
        if whole {
            for target in &targets.list[..targets.visible] {
                self.equal_value(&target.expr)?;
            }
        }
        let on = distinct.as_deref().unwrap_or_default();
        let compared: Vec<usize> =
            order.iter().map(|o| o.target).chain(on.iter().copied()).collect();
        // Sets to which no comparison refers are expanded last.
        let late = sets
            && !order.is_empty()
            && !whole
            && !limits.ties
            && !compared.iter().any(|t| walk::has_set(&targets.list[*t].expr));
        // A key that is volatile is computed for all rows, what is not compared for those that are left.
        let alone = changes && !sets && distinct.is_none() && !limits.ties;
        let ahead = late || alone || !locks.is_empty();
        let mut cols = Vec::new();
        if ahead {
            rel = self.project_compared(rel, &mut targets, &compared, (&locks, &recheck))?;
        } else {
            (rel, cols) = match sets {
                true => self.project_set(rel, &targets.list)?,
                false => self.project(rel, &targets.list)?,
            };
            for (target, col) in targets.list.iter_mut().zip(&cols) {
                target.expr = self.column(*col);
            }
        }
        let mut keys: Vec<SortKey> =
            order.iter().map(|o| sort_key_of(o, targets.list[o.target].expr.clone())).collect();
        self.sort_values(&mut keys)?;
        let ties = keys.iter().map(|k| k.expr.clone()).collect();
        match distinct {
            None => rel = sorted(rel, keys),
            Some(_) if whole => {
                let visible = &targets.list[..targets.visible];
                let mut all: Vec<Expr> = visible.iter().map(|t| t.expr.clone()).collect();
                self.equal_values(&mut all)?;
                rel = Rel::Distinct { input: Box::new(rel), keys: all, sorted: false };
                rel = sorted(rel, keys);
            }
            Some(on) => {
                let mut full: Vec<SortKey> = keys;
                for target in &on {
                    if !order.iter().any(|o| o.target == *target) {
                        full.push(SortKey {
                            expr: self.sort_value(targets.list[*target].expr.clone())?,
                            descending: false,
                            nulls_first: false,
                        });
                    }
                }
                rel = sorted(rel, full);
                let mut keys: Vec<Expr> =
                    on.iter().map(|t| targets.list[*t].expr.clone()).collect();
                self.equal_values(&mut keys)?;
                rel = Rel::Distinct { input: Box::new(rel), keys, sorted: true };
            }
        }
        if !locks.is_empty() {
            rel = Rel::Lock { input: Box::new(rel), targets: locks, recheck };
        }
        if !ahead {
            rel = limits.over(rel, ties);
            cols.truncate(targets.visible);
            return Ok(Query { rel, cols, output });
        }
        targets.list.truncate(targets.visible);
        if sets {
            (rel, cols) = self.project_set(rel, &targets.list)?;
            rel = limits.over(rel, ties);
        } else if limits.skips() && targets.list.iter().any(|t| walk::acts(&t.expr)) {
            (rel, cols) = self.project(rel, &targets.list)?;
            rel = limits.over(rel, Vec::new());
        } else {
            rel = limits.over(rel, ties);
            (rel, cols) = self.project(rel, &targets.list)?;
        }
        Ok(Query { rel, cols, output })
    }

    /// Computes the targets that rows are compared by, which become columns; what the others and
    /// row locks need is passed on.
    fn project_compared(
        &mut self,
        rel: Rel,
        targets: &mut Targets,
        compared: &[usize],
        (locks, recheck): (&[RelLock], &[Expr]),
    ) -> Result<Rel> {
        let mut passed = Vec::new();
        let mut own = Vec::new();
        for (n, target) in targets.list.iter().enumerate() {
            match compared.contains(&n) {
                true => own.push(n),
                false => walk::columns_of(&target.expr, &mut passed),
            }
        }
        let list: Vec<TargetEntry> = own.iter().map(|n| targets.list[*n].clone()).collect();
        recheck.iter().for_each(|e| walk::columns_of(e, &mut passed));
        let mut available = Vec::new();
        rel.output(&mut available);
        passed.retain(|c| available.contains(c));
        for lock in locks {
            let system = [ScanColumn::Tid, ScanColumn::Root, ScanColumn::TableOid];
            passed.extend(system.map(|c| lock.table.col(c)));
        }
        passed.sort_unstable();
        passed.dedup();
        let (rel, cols) = self.project(rel, &list)?;
        for (n, col) in own.iter().zip(&cols) {
            targets.list[*n].expr = self.column(*col);
        }
        let Rel::Project { input, mut exprs, set } = rel else { return Ok(rel) };
        exprs.extend(passed.iter().map(|c| (*c, self.column(*c))));
        Ok(Rel::Project { input, exprs, set })
    }

    /// The typmod that a cast names.
    fn cast_typmod(&self, cast: &pb::TypeCast) -> i32 {
        let named = cast.type_name.as_ref().and_then(|name| self.type_name(name).ok());
        named.map_or(-1, |(_, typmod)| typmod)
    }

    /// How targets are described to the client.
    pub(crate) fn describe_targets(&self, targets: &[TargetEntry]) -> Result<Vec<OutputColumn>> {
        targets
            .iter()
            .map(|t| {
                let origin = match &t.expr {
                    Expr::Column(col, _) => self.vars[usize::from(*col)].origin,
                    _ => None,
                };
                Ok(OutputColumn {
                    name: t.name.clone(),
                    ty: t.expr.ty(),
                    typmod: self.typmod_of(&t.expr).max(t.typmod),
                    table: base::Oid(origin.map_or(0, |o| o.0)),
                    column: origin.map_or(0, |o| o.1),
                    collation: self.output_collation(&t.expr)?,
                })
            })
            .collect()
    }

    /// A projection with new columns.
    pub(crate) fn project(&mut self, rel: Rel, targets: &[TargetEntry]) -> Result<(Rel, Vec<Col>)> {
        let mut exprs = Vec::with_capacity(targets.len());
        for target in targets {
            let typmod = self.typmod_of(&target.expr).max(target.typmod);
            let col = self.new_var(&target.name, target.expr.ty(), typmod)?;
            if let Expr::Column(from, _) = &target.expr {
                self.vars[usize::from(col)].origin = self.vars[usize::from(*from)].origin;
            }
            self.note_row(col, &target.expr);
            self.pass_collation(col, &target.expr)?;
            exprs.push((col, target.expr.clone()));
        }
        let cols = exprs.iter().map(|(c, _)| *c).collect();
        Ok((Rel::Project { input: Box::new(rel), exprs, set: false }, cols))
    }

    /// The target list, `*` spread out.
    pub(crate) fn target_list(
        &mut self,
        scope: &Scope<'_>,
        nodes: &[pb::Node],
        place: Place,
    ) -> Result<Vec<TargetEntry>> {
        scope.place.set(place);
        let mut out = Vec::with_capacity(nodes.len());
        for node in nodes {
            let Some(NodeEnum::ResTarget(target)) = &node.node else { continue };
            let Some(value) = inner(&target.val) else { continue };
            if let NodeEnum::ColumnRef(c) = value
                && matches!(c.fields.last().and_then(|f| f.node.as_ref()), Some(NodeEnum::AStar(_)))
            {
                self.star(scope, c, &mut out)?;
                continue;
            }
            if let NodeEnum::AIndirection(i) = value
                && super::subscript::ends_with_star(i)
            {
                let row = self.star_source(scope, i)?;
                let fields = self.spread(row, target.location)?;
                let target = |(name, expr): (types::Text, Expr)| TargetEntry {
                    name: name.into(),
                    expr,
                    typmod: -1,
                };
                out.extend(fields.into_iter().map(target));
                continue;
            }
            let expr = self.expr(scope, value)?;
            let name =
                if target.name.is_empty() { self.name_of(value) } else { target.name.clone() };
            let typmod = match (value, &expr) {
                (NodeEnum::TypeCast(c), Expr::Const(..)) => self.cast_typmod(c),
                _ => -1,
            };
            out.push(TargetEntry { name, expr, typmod });
        }
        if out.len() > 1664 {
            return Err(err!(TOO_MANY_COLUMNS, "target lists can have at most 1664 entries"));
        }
        Ok(out)
    }

    /// `*`: all columns, which are read.
    pub(super) fn star(
        &mut self,
        scope: &Scope<'_>,
        c: &pb::ColumnRef,
        out: &mut Vec<TargetEntry>,
    ) -> Result<()> {
        let names = ast::strings(&c.fields[..c.fields.len() - 1]);
        if names.is_empty() {
            let mut any = false;
            for item in scope.items.iter().filter(|i| i.cols_visible) {
                any = true;
                self.star_of(item, out);
            }
            if !any {
                return Err(err!(SYNTAX_ERROR, "SELECT * with no tables specified is not valid")
                    .at(self.at(c.location)));
            }
            return Ok(());
        }
        let (schema, table) = ast::qualified(&names);
        if let Some(row) = self.variable_row(scope, &names, c.location)? {
            let fields = self.spread(row, c.location)?;
            let target = |(name, expr): (types::Text, Expr)| TargetEntry {
                name: name.into(),
                expr,
                typmod: -1,
            };
            out.extend(fields.into_iter().map(target));
            return Ok(());
        }
        let Some(item) = self.find_item(scope, schema, table, c.location)? else {
            return Err(self.missing_from(scope, schema, table, c.location));
        };
        self.star_of(item, out);
        Ok(())
    }

    fn star_of(&mut self, item: &NsItem, out: &mut Vec<TargetEntry>) {
        for column in &item.columns {
            self.note_column(column);
            let (name, expr) = (column.name.clone(), column.expr.clone());
            out.push(TargetEntry { name, expr, typmod: -1 });
        }
    }

    /// ORDER BY: a column of the result by name or number, or an expression.
    fn order_by(
        &mut self,
        scope: &Scope<'_>,
        targets: &mut Targets,
        nodes: &[pb::Node],
    ) -> Result<Vec<OrderBy>> {
        let mut keys = Vec::with_capacity(nodes.len());
        for node in nodes {
            let Some(NodeEnum::SortBy(sort)) = &node.node else { continue };
            let Some(value) = inner(&sort.node) else { continue };
            scope.place.set(Place::OrderBy);
            let target = match self.output_reference(targets, value, "ORDER BY")? {
                Some(target) => target,
                None => {
                    let expr = self.expr(scope, value)?;
                    let expr = self.resolve_unknown(expr)?;
                    self.target_for(targets, expr)
                }
            };
            let key = &targets.list[target];
            let position = self.at(ast::location(value));
            if key.expr.ty() != UNKNOWN {
                self.check_sortable(key.expr.ty(), position)?;
            }
            let shape = self.sort_key(sort, Expr::Row(Vec::new()))?;
            keys.push(OrderBy {
                target,
                descending: shape.descending,
                nulls_first: shape.nulls_first,
            });
        }
        Ok(keys)
    }

    /// Direction and place of NULLs of a sort key.
    pub(crate) fn sort_key(&mut self, sort: &pb::SortBy, expr: Expr) -> Result<SortKey> {
        let descending = match pb::SortByDir::try_from(sort.sortby_dir) {
            Ok(pb::SortByDir::SortbyDesc) => true,
            Ok(pb::SortByDir::SortbyUsing) => match ast::strings(&sort.use_op).last().copied() {
                Some("<") => false,
                Some(">") => true,
                _ => return Err(self.unsupported("ORDER BY USING", sort.location)),
            },
            _ => false,
        };
        let nulls_first = match pb::SortByNulls::try_from(sort.sortby_nulls) {
            Ok(pb::SortByNulls::SortbyNullsFirst) => true,
            Ok(pb::SortByNulls::SortbyNullsLast) => false,
            _ => descending,
        };
        Ok(SortKey { expr, descending, nulls_first })
    }

    /// A name or number of an output column.
    pub(crate) fn output_reference(
        &mut self,
        targets: &Targets,
        node: &NodeEnum,
        clause: &str,
    ) -> Result<Option<usize>> {
        match node {
            NodeEnum::ColumnRef(c) if c.fields.len() == 1 => {
                let name = ast::string(&c.fields[0]);
                let mut found: Option<usize> = None;
                for (i, target) in targets.list[..targets.visible].iter().enumerate() {
                    if target.name != name {
                        continue;
                    }
                    match found {
                        Some(other) if !walk::same(&targets.list[other].expr, &target.expr) => {
                            return Err(err!(AMBIGUOUS_COLUMN, "{clause} \"{name}\" is ambiguous")
                                .at(self.at(c.location)));
                        }
                        Some(_) => {}
                        None => found = Some(i),
                    }
                }
                Ok(found)
            }
            NodeEnum::AConst(c) => {
                let position = self.at(c.location);
                match &c.val {
                    Some(pb::a_const::Val::Ival(i)) => match usize::try_from(i.ival) {
                        Ok(n) if (1..=targets.visible).contains(&n) => Ok(Some(n - 1)),
                        _ => Err(err!(
                            INVALID_COLUMN_REFERENCE,
                            "{clause} position {} is not in select list",
                            i.ival
                        )
                        .at(position)),
                    },
                    _ => Err(err!(SYNTAX_ERROR, "non-integer constant in {clause}").at(position)),
                }
            }
            _ => Ok(None),
        }
    }

    /// The target with this expression; a hidden one is added if there is none.
    fn target_for(&mut self, targets: &mut Targets, expr: Expr) -> usize {
        if let Some(at) = targets.list.iter().position(|t| walk::same(&t.expr, &expr)) {
            return at;
        }
        targets.list.push(TargetEntry { name: "?column?".to_owned(), expr, typmod: -1 });
        targets.list.len() - 1
    }

    /// None: no DISTINCT; empty: DISTINCT; else the targets of DISTINCT ON.
    fn distinct(
        &mut self,
        scope: &Scope<'_>,
        targets: &mut Targets,
        stmt: &pb::SelectStmt,
        order: &[OrderBy],
    ) -> Result<Option<Vec<usize>>> {
        let nodes = &stmt.distinct_clause;
        let Some(first) = nodes.first() else { return Ok(None) };
        if first.node.is_none() {
            for (target, node) in targets.list[..targets.visible].iter().zip(&stmt.target_list) {
                let place = match &node.node {
                    Some(NodeEnum::ResTarget(t)) => t.location,
                    _ => -1,
                };
                self.check_groupable(target.expr.ty(), self.at(place))?;
            }
            if let Some(hidden) = order.iter().find(|o| o.target >= targets.visible) {
                let _ = hidden;
                return Err(err!(
                    INVALID_COLUMN_REFERENCE,
                    "for SELECT DISTINCT, ORDER BY expressions must appear in select list"
                )
                .at(self.first_hidden_position(stmt, targets, order)));
            }
            return Ok(Some(Vec::new()));
        }
        let mut on = Vec::with_capacity(nodes.len());
        for node in nodes {
            let Some(value) = &node.node else { continue };
            scope.place.set(Place::OrderBy);
            let target = match self.output_reference(targets, value, "DISTINCT ON")? {
                Some(target) => target,
                None => {
                    let expr = self.expr(scope, value)?;
                    let expr = self.resolve_unknown(expr)?;
                    self.target_for(targets, expr)
                }
            };
            let ty = targets.list[target].expr.ty();
            self.check_groupable(ty, self.at(ast::location(value)))?;
            if !on.contains(&target) {
                on.push(target);
            }
        }
        let matching = order.iter().take_while(|o| on.contains(&o.target)).count();
        let distinct_in_order = on.iter().filter(|t| order.iter().any(|o| o.target == **t)).count();
        if matching < order.len() && distinct_in_order < on.len()
            || order[matching..].iter().any(|o| on.contains(&o.target))
        {
            return Err(err!(
                INVALID_COLUMN_REFERENCE,
                "SELECT DISTINCT ON expressions must match initial ORDER BY expressions"
            )
            .at(self.at(ast::location_of(first))));
        }
        Ok(Some(on))
    }

    fn first_hidden_position(
        &self,
        stmt: &pb::SelectStmt,
        targets: &Targets,
        order: &[OrderBy],
    ) -> u32 {
        let at = order.iter().position(|o| o.target >= targets.visible).unwrap_or(0);
        match stmt.sort_clause.get(at).and_then(|n| n.node.as_ref()) {
            Some(NodeEnum::SortBy(sort)) => {
                inner(&sort.node).map_or(0, |n| self.at(ast::location(n)))
            }
            _ => 0,
        }
    }

    /// LIMIT and OFFSET. `scope`: the query's own names, which they may not use, and those around it.
    pub(crate) fn limits(&mut self, stmt: &pb::SelectStmt, scope: &Scope<'_>) -> Result<Limits> {
        let ties = stmt.limit_option == pb::LimitOption::WithTies as i32;
        if ties && stmt.sort_clause.is_empty() {
            return Err(err!(
                SYNTAX_ERROR,
                "WITH TIES cannot be specified without ORDER BY clause"
            ));
        }
        if ties && matches!(inner(&stmt.limit_count), Some(NodeEnum::AConst(c)) if c.isnull) {
            return Err(err!(
                INVALID_ROW_COUNT_IN_LIMIT_CLAUSE,
                "row count cannot be null in FETCH FIRST ... WITH TIES clause"
            ));
        }
        let count = self.limit(scope, inner(&stmt.limit_count), "LIMIT")?;
        let offset = self.limit(scope, inner(&stmt.limit_offset), "OFFSET")?;
        count.iter().for_each(|e| self.note(stmt, Part::Limit, std::slice::from_ref(e)));
        offset.iter().for_each(|e| self.note(stmt, Part::Offset, std::slice::from_ref(e)));
        Ok(Limits { count, offset, ties })
    }

    /// `42P10` when an expression has columns of the query itself; those of outer queries are constants to it.
    pub(super) fn refuse_variables(
        &self,
        scope: &Scope<'_>,
        value: &Expr,
        what: &str,
        position: u32,
    ) -> Result<()> {
        let mut used = Vec::new();
        walk::columns_of(value, &mut used);
        if !used.iter().any(|c| self.belongs_to(scope, *c)) {
            return Ok(());
        }
        Err(err!(INVALID_COLUMN_REFERENCE, "argument of {what} must not contain variables")
            .at(position))
    }

    fn limit(
        &mut self,
        scope: &Scope<'_>,
        node: Option<&NodeEnum>,
        what: &str,
    ) -> Result<Option<Expr>> {
        let Some(node) = node else { return Ok(None) };
        if matches!(node, NodeEnum::AConst(c) if c.isnull) {
            return Ok(None);
        }
        let position = self.at(ast::location(node));
        scope.place.set(Place::Limit);
        let value = self.expr(scope, node)?;
        self.refuse_variables(scope, &value, what, position)?;
        let from = value.ty();
        match self.coerce(value, INT8, CastContext::Assignment, position)? {
            Some(value) => Ok(Some(value)),
            None => Err(err!(
                DATATYPE_MISMATCH,
                "argument of {what} must be type bigint, not type {}",
                types::io::format_type(from, -1)
            )
            .at(position)),
        }
    }

    /// FOR UPDATE and kin.
    fn row_locks(
        &mut self,
        scope: &Scope<'_>,
        stmt: &pb::SelectStmt,
        (grouped, windowed, expands): (bool, bool, bool),
    ) -> Result<Vec<RelLock>> {
        let mut locks: Vec<RelLock> = Vec::new();
        for node in &stmt.locking_clause {
            let Some(NodeEnum::LockingClause(clause)) = &node.node else { continue };
            let (mode, name) = lock_strength(clause.strength);
            if !stmt.distinct_clause.is_empty() {
                return Err(not_allowed(name, "DISTINCT clause"));
            }
            if grouped {
                let what = if stmt.group_clause.is_empty() {
                    "aggregate functions"
                } else {
                    "GROUP BY clause"
                };
                return Err(not_allowed(name, what));
            }
            if windowed {
                return Err(not_allowed(name, "window functions"));
            }
            if expands {
                return Err(not_allowed(name, "set-returning functions in the target list"));
            }
            let wait = match pb::LockWaitPolicy::try_from(clause.wait_policy) {
                Ok(pb::LockWaitPolicy::LockWaitSkip) => LockRowsWait::Skip,
                Ok(pb::LockWaitPolicy::LockWaitError) => LockRowsWait::NoWait,
                _ => LockRowsWait::Block,
            };
            let mut wanted = Vec::new();
            for rel in &clause.locked_rels {
                if let Some(NodeEnum::RangeVar(range)) = &rel.node {
                    wanted.push((range.relname.as_str(), range.location));
                }
            }
            for (relname, location) in &wanted {
                let found = scope.items.iter().any(|i| i.name.as_deref() == Some(relname));
                if !found {
                    return Err(err!(
                        UNDEFINED_TABLE,
                        "relation \"{relname}\" in {name} clause not found in FROM clause"
                    )
                    .at(self.at(*location)));
                }
            }
            for item in &scope.items {
                let tables = match &item.table {
                    Some(table) => std::slice::from_ref(table),
                    None => &item.beneath.tables,
                };
                if tables.is_empty() {
                    continue;
                }
                let named = |n: &(&str, i32)| item.name.as_deref() == Some(n.0);
                if !wanted.is_empty() && !wanted.iter().any(named) {
                    continue;
                }
                if item.nullable {
                    return Err(err!(
                        FEATURE_NOT_SUPPORTED,
                        "{name} cannot be applied to the nullable side of an outer join"
                    ));
                }
                self.need_locks(item);
                for table in tables {
                    self.add_row_lock(&mut locks, RelLock { table: table.clone(), mode, wait });
                }
            }
        }
        Ok(locks)
    }
}

pub(super) fn not_allowed(name: &str, what: &str) -> base::Error {
    err!(FEATURE_NOT_SUPPORTED, "{name} is not allowed with {what}")
}

/// The mode of a locking clause, and its words.
pub(crate) fn lock_strength(strength: i32) -> (RowLockMode, &'static str) {
    match pb::LockClauseStrength::try_from(strength) {
        Ok(pb::LockClauseStrength::LcsForkeyshare) => (RowLockMode::KeyShare, "FOR KEY SHARE"),
        Ok(pb::LockClauseStrength::LcsForshare) => (RowLockMode::Share, "FOR SHARE"),
        Ok(pb::LockClauseStrength::LcsFornokeyupdate) => {
            (RowLockMode::NoKeyUpdate, "FOR NO KEY UPDATE")
        }
        _ => (RowLockMode::Update, "FOR UPDATE"),
    }
}

fn sort_key_of(order: &OrderBy, expr: Expr) -> SortKey {
    SortKey { expr, descending: order.descending, nulls_first: order.nulls_first }
}

/// LIMIT, OFFSET and WITH TIES.
pub(crate) struct Limits {
    count: Option<Expr>,
    offset: Option<Expr>,
    ties: bool,
}

impl Limits {
    /// Whether rows are skipped whose order matters no more.
    fn skips(&self) -> bool {
        self.offset.is_some() && !self.ties
    }

    /// Over rows that are sorted by `keys`.
    pub(crate) fn over(self, rel: Rel, keys: Vec<Expr>) -> Rel {
        if self.count.is_none() && self.offset.is_none() {
            return rel;
        }
        let ties = if self.ties { keys } else { Vec::new() };
        Rel::Limit { input: Box::new(rel), count: self.count, offset: self.offset, ties }
    }
}

/// A filter, if there is a condition.
pub(crate) fn filter(rel: Rel, conditions: Vec<Expr>) -> Rel {
    if conditions.is_empty() {
        return rel;
    }
    Rel::Filter { input: Box::new(rel), conditions }
}

fn sorted(rel: Rel, keys: Vec<SortKey>) -> Rel {
    if keys.is_empty() { rel } else { Rel::Sort { input: Box::new(rel), keys } }
}

/// Whether FROM has a recursive query's rows so far.
fn reads_work_table(rel: &Rel) -> bool {
    match rel {
        Rel::WorkTable { .. } => true,
        Rel::Filter { input, .. } => reads_work_table(input),
        Rel::Join { left, right, .. } => reads_work_table(left) || reads_work_table(right),
        _ => false,
    }
}

/// A sort key that isn't just a name or a number.
fn is_complex_sort(node: &pb::Node) -> bool {
    match &node.node {
        Some(NodeEnum::SortBy(sort)) => {
            !matches!(inner(&sort.node), Some(NodeEnum::ColumnRef(_) | NodeEnum::AConst(_)))
        }
        _ => true,
    }
}

/// Whether a window is partitioned or sorted by more than columns, which the target list may compute, too.
fn is_windowed_by_calls(stmt: &pb::SelectStmt) -> bool {
    let complex = |def: &pb::WindowDef| {
        let plain = |n: &pb::Node| matches!(n.node, Some(NodeEnum::ColumnRef(_)));
        !def.partition_clause.iter().all(plain) || def.order_clause.iter().any(is_complex_sort)
    };
    let over = |node: &pb::Node| match &node.node {
        Some(NodeEnum::ResTarget(target)) => match inner(&target.val) {
            Some(NodeEnum::FuncCall(call)) => call.over.as_deref().is_some_and(complex),
            _ => false,
        },
        Some(NodeEnum::WindowDef(def)) => complex(def),
        _ => false,
    };
    stmt.target_list.iter().any(over) || stmt.window_clause.iter().any(over)
}

/// The name that an expression gives to its output column.
pub(crate) fn column_name(node: &NodeEnum) -> String {
    match name_of(node, &|_| None) {
        Some((name, _)) => name,
        None => "?column?".to_owned(),
    }
}

impl Binder<'_> {
    /// The same of an expression that is bound: a scalar subquery has the name of its column.
    fn name_of(&self, node: &NodeEnum) -> String {
        let scalar = |select: &pb::SelectStmt| {
            self.scalar_names.get(&super::record::address(select)).cloned()
        };
        name_of(node, &scalar).map_or_else(|| "?column?".to_owned(), |(name, _)| name)
    }
}

/// The name and whether it is a strong one (a cast around it doesn't replace it). `scalar`: of a subquery's column.
fn name_of(
    node: &NodeEnum,
    scalar: &dyn Fn(&pb::SelectStmt) -> Option<String>,
) -> Option<(String, bool)> {
    let name_of = |node: &NodeEnum| name_of(node, scalar);
    let weak = |s: &str| Some((s.to_owned(), false));
    let strong = |s: &str| Some((s.to_owned(), true));
    match node {
        NodeEnum::ColumnRef(c) => {
            let name = c.fields.iter().rev().map(ast::string).find(|s| !s.is_empty())?;
            strong(name)
        }
        NodeEnum::AIndirection(i) => {
            match i.indirection.iter().rev().map(ast::string).find(|s| !s.is_empty()) {
                Some(name) => strong(name),
                None => name_of(inner(&i.arg)?),
            }
        }
        NodeEnum::GroupingFunc(_) => strong("grouping"),
        NodeEnum::FuncCall(f) => strong(ast::strings(&f.funcname).last()?),
        NodeEnum::AExpr(e) if e.kind == pb::AExprKind::AexprNullif as i32 => strong("nullif"),
        NodeEnum::TypeCast(c) => match inner(&c.arg).and_then(name_of) {
            Some((name, true)) => Some((name, true)),
            other => match &c.type_name {
                Some(ty) => weak(ast::strings(&ty.names).last()?),
                None => other,
            },
        },
        NodeEnum::CollateClause(c) => name_of(inner(&c.arg)?),
        NodeEnum::CaseExpr(c) => match inner(&c.defresult).and_then(name_of) {
            Some((name, true)) => Some((name, true)),
            _ => weak("case"),
        },
        NodeEnum::AArrayExpr(_) => strong("array"),
        NodeEnum::RowExpr(_) => strong("row"),
        NodeEnum::CoalesceExpr(_) => strong("coalesce"),
        NodeEnum::MinMaxExpr(m) => {
            let greatest = m.op == pb::MinMaxOp::IsGreatest as i32;
            strong(if greatest { "greatest" } else { "least" })
        }
        NodeEnum::SqlvalueFunction(f) => {
            use pb::SqlValueFunctionOp as F;
            strong(match F::try_from(f.op) {
                Ok(F::SvfopCurrentDate) => "current_date",
                Ok(F::SvfopCurrentTime | F::SvfopCurrentTimeN) => "current_time",
                Ok(F::SvfopCurrentTimestamp | F::SvfopCurrentTimestampN) => "current_timestamp",
                Ok(F::SvfopLocaltime | F::SvfopLocaltimeN) => "localtime",
                Ok(F::SvfopLocaltimestamp | F::SvfopLocaltimestampN) => "localtimestamp",
                Ok(F::SvfopCurrentRole) => "current_role",
                Ok(F::SvfopCurrentUser) => "current_user",
                Ok(F::SvfopUser) => "user",
                Ok(F::SvfopSessionUser) => "session_user",
                Ok(F::SvfopCurrentCatalog) => "current_catalog",
                _ => "current_schema",
            })
        }
        NodeEnum::SubLink(s) => match pb::SubLinkType::try_from(s.sub_link_type) {
            Ok(pb::SubLinkType::ExistsSublink) => strong("exists"),
            Ok(pb::SubLinkType::ArraySublink) => strong("array"),
            Ok(pb::SubLinkType::ExprSublink) => match inner(&s.subselect) {
                Some(NodeEnum::SelectStmt(select)) => {
                    if let Some(name) = scalar(select) {
                        return Some((name, true));
                    }
                    match select.target_list.first().and_then(|t| t.node.as_ref()) {
                        Some(NodeEnum::ResTarget(t)) if !t.name.is_empty() => strong(&t.name),
                        Some(NodeEnum::ResTarget(t)) => name_of(inner(&t.val)?),
                        _ => None,
                    }
                }
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}
