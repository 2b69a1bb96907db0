//! INSERT, UPDATE, DELETE.

use std::sync::Arc;

use base::{Oid, Result, err};
use catalog::acl::privilege;
use catalog::{ConstraintKind, Table, TableKind, trigger_type};
use pg_query::{NodeEnum, protobuf as pb};
use txn::LockMode;
use types::Datum;
use types::oids::*;

use crate::expr::Expr;
use crate::logical::{Change, ChangeAction, ChildTarget, Input, Query, Rel, TableRel};
use crate::plan::{JoinKind, OutputColumn, RowRules, ScanColumn};
use crate::walk;

use super::from::join;
use super::instead::Instead;
use super::policy::command;
use super::record::Part;
use super::rule::{Applied, Returned};
use super::scope::{NsItem, Place};
use super::select::{TargetEntry, filter};
use super::{Binder, Scope, ast, inner};

/// How many columns an INSERT gives values at most, as far as its syntax says.
pub(crate) fn given_width(stmt: &pb::InsertStmt) -> usize {
    match inner(&stmt.select_stmt) {
        None => 0,
        Some(NodeEnum::SelectStmt(select)) if is_plain_values(select) => {
            match select.values_lists.first().and_then(|l| l.node.as_ref()) {
                Some(NodeEnum::List(list)) => list.items.len(),
                _ => usize::MAX,
            }
        }
        Some(_) => usize::MAX,
    }
}

/// A bound change with the columns that RETURNING gives.
pub(crate) type BoundChange = (Change, Vec<OutputColumn>);

impl<'a> Binder<'a> {
    pub(crate) fn target_table(
        &mut self,
        range: &Option<pb::RangeVar>,
    ) -> Result<(Arc<Table>, pb::RangeVar)> {
        let Some(range) = range else {
            return Err(err!(SYNTAX_ERROR, "statement without a table"));
        };
        let table = self.find_table(range)?;
        if table.kind == TableKind::System {
            return Err(err!(
                INSUFFICIENT_PRIVILEGE,
                "permission denied: \"{}\" is a system catalog",
                table.name
            ));
        }
        if table.query.is_some() {
            let word = if table.kind == TableKind::View { "views" } else { "materialized views" };
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "cannot execute MERGE on relation \"{}\"",
                table.name
            )
            .detail(format!("This operation is not supported for {word}.")));
        }
        self.lock(table.oid, LockMode::RowExclusive);
        for (_, key) in table.foreign_keys() {
            self.lock(key.table, LockMode::RowShare);
        }
        Ok((table, range.clone()))
    }

    /// INSERT.
    pub(crate) fn insert(&mut self, stmt: &pb::InsertStmt) -> Result<BoundChange> {
        let (applied, excepted) = (self.applied.take(), std::mem::take(&mut self.excepted));
        let returned = std::mem::take(&mut self.returned);
        let names = self.cte_names.len();
        if let Some(with) = &stmt.with_clause {
            self.with_clause(with, None, self.queries == 0)?;
        }
        self.changing = true;
        self.overriding = stmt.r#override;
        let instead = self.instead(&stmt.relation, trigger_type::INSERT)?;
        let through = match &instead {
            Some(_) => None,
            None => self.through(&stmt.relation, "INSERT")?,
        };
        let levels = through.as_ref().map_or(&[][..], |t| t.levels.as_slice());
        let (columns, target, item, options) = match (&through, instead) {
            (None, Some(Instead { target, item })) => {
                let columns = self.insert_columns(&target.table, &stmt.cols)?;
                (columns, target, item, Vec::new())
            }
            (Some(through), _) => {
                let columns = self.view_columns(through, &stmt.cols)?;
                let options = through.options.clone();
                (columns, through.target.clone(), through.item.clone(), options)
            }
            (None, None) => {
                let (table, range) = self.target_table(&stmt.relation)?;
                let columns = self.insert_columns(&table, &stmt.cols)?;
                let (rel, item) = self.table_item(table, &pb::RangeVar { inh: false, ..range })?;
                let Rel::Table(target) = rel else {
                    return Err(err!(INTERNAL_ERROR, "insert into a computed table"));
                };
                (columns, target, item, Vec::new())
            }
        };
        let table = target.table.clone();
        let given = &columns[..columns.len().min(given_width(stmt))];
        self.need_change_through(levels, &target, privilege::INSERT, given);
        if let Some(through) = &through {
            let all = self.view_column_defaults(through)?.into_iter();
            self.shown_defaults = all.map(|(n, sql)| (table.oid, n, sql)).collect();
        }
        let known = applied.as_ref().map_or_else(Vec::new, |a| a.items.clone());
        let mut input = self.insert_input(stmt, &table, &columns, applied)?;
        self.shown_defaults.clear();
        self.note_change(stmt, |change| {
            change.target = table.oid;
            change.columns.clone_from(&columns);
            if !stmt.cols.is_empty() || columns.len() > given_width(stmt) {
                change.columns.truncate(given_width(stmt));
            }
        });
        self.except_inserted(&mut input, &target, through.as_ref(), &excepted)?;
        let conflict = match &stmt.on_conflict_clause {
            Some(clause) => {
                Some(self.conflict(clause, &target, &item, through.as_ref(), &known)?)
            }
            None => None,
        };
        if let Some(update) = conflict.as_ref().and_then(|c| c.update.as_ref()) {
            let (own, mut other) = (item.clone(), self.item_of(&update.excluded));
            other.table = None;
            self.note_change(stmt, |change| {
                let (set, conditions) = (update.set.clone(), update.conditions.clone());
                change.conflict = Some((vec![own, other], set, conditions));
            });
        }
        let mut checks = RowRules { options, ..self.checks(&target)? };
        let mut items = vec![item];
        items.extend(known);
        if let Some(update) = conflict.as_ref().and_then(|c| c.update.as_ref()) {
            // RETURNING knows of it, but may not use it.
            let mut excluded = self.item_of(&update.excluded);
            (excluded.rel_visible, excluded.cols_visible) = (false, false);
            items.push(excluded);
        }
        self.note_change(stmt, |change| change.items.clone_from(&items));
        let (returning, output) = self.returning(&stmt.returning_clause, items, returned)?;
        self.note_returning(stmt, &returning, &output);
        let updates = conflict.as_ref().is_some_and(|c| c.update.is_some());
        if updates {
            checks.shown = through.as_ref().map_or_else(Vec::new, super::through::Through::by_view);
        }
        checks.policies = self.written_rules(&target, command::INSERT, updates)?;
        self.cte_names.truncate(names);
        let action = ChangeAction::Insert { input, conflict };
        let children = Vec::new();
        Ok((Change { table: target, action, returning, checks, children }, output))
    }

    /// The rows of an INSERT, complete.
    pub(crate) fn insert_input(
        &mut self,
        stmt: &pb::InsertStmt,
        table: &Table,
        columns: &[u16],
        applied: Option<Applied>,
    ) -> Result<Input> {
        let listed = !stmt.cols.is_empty();
        match inner(&stmt.select_stmt) {
            None => {
                let row = self.default_row(table)?;
                self.rows_input(table, vec![row], applied.and_then(|a| a.rel))
            }
            Some(NodeEnum::SelectStmt(select)) if is_plain_values(select) => {
                self.insert_values(table, (columns, listed), select, &stmt.cols, applied)
            }
            Some(NodeEnum::SelectStmt(select)) => {
                self.applied = applied;
                self.insert_select(table, columns, listed, select, &stmt.cols)
            }
            Some(_) => Err(base::Error::unsupported("this INSERT source")),
        }
    }

    /// Notes RETURNING.
    fn note_returning<T>(
        &mut self,
        stmt: &T,
        returning: &Option<Vec<Expr>>,
        output: &[OutputColumn],
    ) {
        let exprs = returning.iter().flatten().cloned();
        let list = output.iter().map(|c| c.name.clone()).zip(exprs).collect();
        self.note_change(stmt, |change| change.returning = list);
    }

    /// The columns that are given values, from 1.
    pub(crate) fn insert_columns(&self, table: &Table, cols: &[pb::Node]) -> Result<Vec<u16>> {
        if cols.is_empty() {
            return Ok(table.live_columns().map(|(n, _)| n).collect());
        }
        let mut out = Vec::with_capacity(cols.len());
        for node in cols {
            let Some(NodeEnum::ResTarget(target)) = &node.node else { continue };
            let position = self.at(target.location);
            let Some((n, _)) = table.column(&target.name) else {
                return Err(self.missing_column(table, &target.name, position));
            };
            let whole = |node: &pb::Node| match &node.node {
                Some(NodeEnum::ResTarget(t)) => t.name == target.name && t.indirection.is_empty(),
                _ => false,
            };
            if out.contains(&n) && cols.iter().any(whole) {
                return Err(err!(
                    DUPLICATE_COLUMN,
                    "column \"{}\" specified more than once",
                    target.name
                )
                .at(position));
            }
            out.push(n);
        }
        Ok(out)
    }

    fn missing_column(&self, table: &Table, name: &str, position: u32) -> base::Error {
        err!(UNDEFINED_COLUMN, "column \"{name}\" of relation \"{}\" does not exist", table.name)
            .at(position)
    }

    fn default_row(&mut self, table: &Table) -> Result<Vec<Expr>> {
        let mut row = Vec::with_capacity(table.columns.len());
        for n in 1..=table.columns.len() as u16 {
            row.push(self.column_default(table, n)?);
        }
        Ok(row)
    }

    /// `around`: rows whose columns the expressions may use.
    fn rows_input(
        &mut self,
        table: &Table,
        rows: Vec<Vec<Expr>>,
        around: Option<Rel>,
    ) -> Result<Input> {
        if let [row] = rows.as_slice()
            && row.iter().any(walk::has_set)
        {
            let targets: Vec<TargetEntry> = (table.columns.iter().zip(row))
                .map(|(column, value)| TargetEntry {
                    name: column.name.clone(),
                    expr: value.clone(),
                    typmod: column.typmod,
                })
                .collect();
            let (rel, cols) = self.project_set(around.unwrap_or(Rel::OneRow), &targets)?;
            return Ok(Input { rel, cols });
        }
        if let Some(around) = around {
            let mut cols = Vec::with_capacity(table.columns.len());
            for column in &table.columns {
                cols.push(self.new_var(&column.name, Oid(column.ty), column.typmod)?);
            }
            let rel = match <[_; 1]>::try_from(rows) {
                Ok([row]) => {
                    let exprs = cols.iter().copied().zip(row).collect();
                    Rel::Project { input: Box::new(around), exprs, set: false }
                }
                Err(rows) => {
                    let values = Rel::Values { cols: cols.clone(), rows };
                    join(JoinKind::Inner, around, values, Vec::new())
                }
            };
            return Ok(Input { rel, cols });
        }
        let mut cols = Vec::with_capacity(table.columns.len());
        for column in &table.columns {
            cols.push(self.new_var(&column.name, Oid(column.ty), column.typmod)?);
        }
        Ok(Input { rel: Rel::Values { cols: cols.clone(), rows }, cols })
    }

    /// Binds a default's SQL text.
    pub(crate) fn stored_default(
        &mut self,
        sql: &str,
        ty: Oid,
        typmod: i32,
        name: &str,
    ) -> Result<Expr> {
        let node = crate::parse::parse_expr(sql)?;
        let bound = self.without_variables(|b| b.default_expr(&node, ty, typmod, name));
        bound.map_err(|e| self.near(e))
    }

    /// Binds a default's expression.
    pub(crate) fn default_expr(
        &mut self,
        node: &NodeEnum,
        ty: Oid,
        typmod: i32,
        name: &str,
    ) -> Result<Expr> {
        let scope = Scope::new(None);
        scope.place.set(Place::Default);
        let expr = self.holding(|b| b.expr(&scope, node))?;
        let from = expr.ty();
        let position = self.at(ast::location(node));
        self.holding(|b| b.assign(expr, ty, typmod, name, position))
            .map_err(|e| super::define::default_mismatch(e, name, ty, from))
    }

    fn insert_values(
        &mut self,
        table: &Table,
        (columns, listed): (&[u16], bool),
        select: &pb::SelectStmt,
        cols: &[pb::Node],
        applied: Option<Applied>,
    ) -> Result<Input> {
        let mut scope = Scope::new(None);
        scope.place.set(match select.values_lists.len() {
            1 => Place::ValuesRow,
            _ => Place::Values,
        });
        let around = applied.and_then(|applied| {
            scope.items.extend(applied.items);
            applied.rel
        });
        let mut defaults: Option<Vec<Expr>> = None;
        let mut rows = Vec::with_capacity(select.values_lists.len());
        let starred = |list: &pb::Node| ast::list(list).iter().any(super::expr::is_star);
        if select.values_lists.iter().any(starred) && cols.iter().all(|c| !has_parts(c)) {
            for list in &select.values_lists {
                let row =
                    self.starred_row(table, (columns, listed), &scope, ast::list(list), cols)?;
                let written: Vec<Expr> = match self.record.is_some() {
                    true => columns.iter().map(|n| row[usize::from(*n) - 1].clone()).collect(),
                    false => Vec::new(),
                };
                self.note(select, Part::Row(rows.len()), &written);
                rows.push(row);
            }
            return self.rows_input(table, rows, around);
        }
        let first_width = select.values_lists.first().map_or(0, |l| ast::list(l).len());
        for list in &select.values_lists {
            let items = ast::list(list);
            if items.len() != first_width {
                let at = items.first().map_or(-1, ast::location_of);
                return Err(
                    err!(SYNTAX_ERROR, "VALUES lists must all be the same length").at(self.at(at))
                );
            }
            self.check_width(items.len(), columns.len(), listed, cols, |n| {
                items.get(n).map_or(-1, ast::location_of)
            })?;
            let mut row = self.default_template(table, columns, items.len(), &mut defaults)?;
            let mut written = Vec::new();
            for (at, (node, number)) in items.iter().zip(columns).enumerate() {
                let column = &table.columns[usize::from(*number) - 1];
                if matches!(node.node, Some(NodeEnum::SetToDefault(_))) {
                    if let Some(part) = part_of(cols, at) {
                        return Err(super::subscript::cannot_default(part, self.at(part.location)));
                    }
                    self.check_shown_default(table, *number)?;
                }
                row[usize::from(*number) - 1] =
                    if matches!(node.node, Some(NodeEnum::SetToDefault(_)))
                        || !self.takes_value(table, *number)?
                    {
                        self.column_default(table, *number)?
                    } else {
                        let position = self.at(ast::location_of(node));
                        let e = self.expr_node(&scope, node)?;
                        if let Some(part) = part_of(cols, at) {
                            let old = row[usize::from(*number) - 1].clone();
                            row[usize::from(*number) - 1] =
                                self.assign_part(&scope, old, column, part, e)?;
                            continue;
                        }
                        self.assign(e, Oid(column.ty), column.typmod, &column.name, position)?
                    };
                if self.record.is_some() {
                    written.push(row[usize::from(*number) - 1].clone());
                }
            }
            self.note(select, Part::Row(rows.len()), &written);
            rows.push(row);
        }
        self.rows_input(table, rows, around)
    }

    /// A row of VALUES in which `x.*` stands for as many values as the row x has.
    fn starred_row(
        &mut self,
        table: &Table,
        (columns, listed): (&[u16], bool),
        scope: &Scope<'_>,
        items: &[pb::Node],
        cols: &[pb::Node],
    ) -> Result<Vec<Expr>> {
        let mut values: Vec<(Option<Expr>, i32)> = Vec::with_capacity(columns.len());
        for node in items {
            let at = ast::location_of(node);
            if matches!(node.node, Some(NodeEnum::SetToDefault(_))) {
                values.push((None, at));
                continue;
            }
            let all = self.row_items(scope, std::slice::from_ref(node))?;
            values.extend(all.into_iter().map(|e| (Some(e), at)));
        }
        self.check_width(values.len(), columns.len(), listed, cols, |n| {
            values.get(n).map_or(-1, |v| v.1)
        })?;
        let mut row = self.default_template(table, columns, values.len(), &mut None)?;
        for ((value, at), number) in values.into_iter().zip(columns) {
            let column = &table.columns[usize::from(*number) - 1];
            row[usize::from(*number) - 1] = match value {
                Some(e) if self.takes_value(table, *number)? => {
                    let at = self.at(at);
                    self.assign(e, Oid(column.ty), column.typmod, &column.name, at)?
                }
                _ => {
                    self.check_shown_default(table, *number)?;
                    self.column_default(table, *number)?
                }
            };
        }
        Ok(row)
    }

    /// A row of defaults where no value is given, NULLs elsewhere.
    fn default_template(
        &mut self,
        table: &Table,
        columns: &[u16],
        given: usize,
        known: &mut Option<Vec<Expr>>,
    ) -> Result<Vec<Expr>> {
        if let Some(row) = known {
            return Ok(row.clone());
        }
        let mut row = Vec::with_capacity(table.columns.len());
        for number in 1..=table.columns.len() as u16 {
            row.push(if columns[..given.min(columns.len())].contains(&number) {
                Expr::Const(Datum::Null, Oid(table.columns[usize::from(number) - 1].ty))
            } else {
                self.column_default(table, number)?
            });
        }
        Ok(known.insert(row).clone())
    }

    fn check_width(
        &self,
        given: usize,
        wanted: usize,
        listed: bool,
        cols: &[pb::Node],
        location: impl Fn(usize) -> i32,
    ) -> Result<()> {
        if given > wanted {
            return Err(err!(SYNTAX_ERROR, "INSERT has more expressions than target columns")
                .at(self.at(location(wanted))));
        }
        if given < wanted && listed {
            let at = cols.get(given).map_or(-1, ast::location_of);
            return Err(err!(SYNTAX_ERROR, "INSERT has more target columns than expressions")
                .at(self.at(at)));
        }
        Ok(())
    }

    fn insert_select(
        &mut self,
        table: &Table,
        columns: &[u16],
        listed: bool,
        select: &pb::SelectStmt,
        cols: &[pb::Node],
    ) -> Result<Input> {
        let query = self.select(select, None, false)?;
        let location = |n: usize| match select.target_list.get(n).and_then(|t| t.node.as_ref()) {
            Some(NodeEnum::ResTarget(t)) => t.location,
            _ => -1,
        };
        self.check_width(query.cols.len(), columns.len(), listed, cols, location)?;
        let mut known = None;
        let mut row = self.default_template(table, columns, query.cols.len(), &mut known)?;
        let Query { rel, cols: given, .. } = query;
        let mut rel = rel;
        for (i, (col, number)) in given.iter().zip(columns).enumerate() {
            let column = &table.columns[usize::from(*number) - 1];
            // A literal at the top of the query is read as the column's type.
            let mut e = self.column(*col);
            if e.ty() == UNKNOWN
                && let Rel::Project { exprs, set: false, .. } = &mut rel
                && let Some((_, direct)) = exprs.iter().find(|(c, _)| c == col)
                && !walk::has_columns(direct)
            {
                e = direct.clone();
                let at = exprs.iter().position(|(c, _)| c == col).unwrap_or(0);
                exprs[at].1 = Expr::Const(Datum::Null, TEXT);
            }
            if !self.takes_value(table, *number)? {
                row[usize::from(*number) - 1] = self.column_default(table, *number)?;
                continue;
            }
            let position = self.at(location(i));
            if let Some(part) = part_of(cols, i) {
                let scope = Scope::new(None);
                let old = row[usize::from(*number) - 1].clone();
                row[usize::from(*number) - 1] = self.assign_part(&scope, old, column, part, e)?;
                continue;
            }
            row[usize::from(*number) - 1] =
                self.assign(e, Oid(column.ty), column.typmod, &column.name, position)?;
        }
        let mut exprs = Vec::with_capacity(row.len());
        for (column, e) in table.columns.iter().zip(row) {
            exprs.push((self.new_var(&column.name, Oid(column.ty), column.typmod)?, e));
        }
        let cols = exprs.iter().map(|(c, _)| *c).collect();
        Ok(Input { rel: Rel::Project { input: Box::new(rel), exprs, set: false }, cols })
    }

    /// What holds for each new row, over the table's columns.
    pub(crate) fn checks(&mut self, target: &TableRel) -> Result<RowRules> {
        Ok(RowRules {
            generated: self.generated(target)?,
            checks: self.check_constraints_of(target)?,
            keys: self.index_expressions(target)?,
            options: Vec::new(),
            shown: Vec::new(),
            written: self.written(target.base),
            conditions: self.trigger_conditions(&target.table)?,
            policies: None,
        })
    }

    /// WHEN of the table's triggers.
    fn trigger_conditions(&self, table: &Table) -> Result<Vec<(u32, Expr)>> {
        let mut out = Vec::new();
        for trigger in &table.triggers {
            if let Some(sql) = &trigger.when {
                out.push((trigger.oid, crate::trigger::condition(self.cx, table, sql)?));
            }
        }
        Ok(out)
    }

    /// What the table's indexes compute.
    fn index_expressions(&mut self, target: &TableRel) -> Result<Vec<Expr>> {
        let mut out = Vec::new();
        for index in self.cx.catalog.indexes_of(&target.table) {
            for sql in index.expressions() {
                let node = crate::parse::parse_expr(sql)?;
                out.push(self.row_expr(target, &node).map_err(|e| self.near(e))?);
            }
        }
        Ok(out)
    }

    fn check_constraints_of(&mut self, target: &TableRel) -> Result<Vec<(String, Expr)>> {
        let mut out = Vec::new();
        for constraint in &target.table.clone().constraints {
            let ConstraintKind::Check(sql) = &constraint.kind else { continue };
            let node = crate::parse::parse_expr(sql)?;
            let check = self.check_expr(target, &node).map_err(|e| self.near(e))?;
            out.push((constraint.name.clone(), check));
        }
        // PostgreSQL checks them in the order of their names.
        out.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(out)
    }

    /// Binds a CHECK expression over a table.
    pub(crate) fn check_expr(&mut self, target: &TableRel, node: &NodeEnum) -> Result<Expr> {
        let mut scope = Scope::new(None);
        scope.items.push(self.item_of(target));
        self.unseen += 1;
        let check = self.holding(|b| b.condition(&scope, node, Place::Check));
        self.unseen -= 1;
        check
    }

    /// Binds an expression over a table's row.
    pub(crate) fn row_expr(&mut self, target: &TableRel, node: &NodeEnum) -> Result<Expr> {
        let mut scope = Scope::new(None);
        scope.items.push(self.item_of(target));
        scope.place.set(Place::IndexKey);
        self.unseen += 1;
        let expr = self.holding(|b| b.expr(&scope, node));
        self.unseen -= 1;
        self.resolve_unknown(expr?)
    }

    pub(crate) fn item_of(&self, target: &TableRel) -> NsItem {
        NsItem {
            table: Some(target.clone()),
            oid: target.table.oid,
            ..NsItem::of_columns(Some(target.alias.clone()), self.table_columns(target))
        }
    }

    fn returning(
        &mut self,
        clause: &Option<pb::ReturningClause>,
        items: Vec<NsItem>,
        returned: Vec<Returned<'a>>,
    ) -> Result<(Option<Vec<Expr>>, Vec<OutputColumn>)> {
        let Some(clause) = clause else { return Ok((None, Vec::new())) };
        if returned.iter().any(|one| one.clause.is_none()) {
            return Ok((None, Vec::new()));
        }
        let mut scope = Scope::new(None);
        scope.items = items;
        let mut targets: Vec<TargetEntry> =
            self.target_list(&scope, &clause.exprs, Place::Returning)?;
        for target in &mut targets {
            let e = std::mem::replace(&mut target.expr, Expr::Row(Vec::new()));
            target.expr = self.resolve_unknown(e)?;
        }
        if targets.is_empty() {
            let at = clause.exprs.first().and_then(|e| e.node.as_ref()).map_or(-1, ast::location);
            return Err(
                err!(SYNTAX_ERROR, "RETURNING must have at least one column").at(self.at(at))
            );
        }
        for one in returned {
            targets = self.returned_targets(one, targets)?;
        }
        let output = self.describe_targets(&targets)?;
        let table = scope.items.first().and_then(|i| i.table.clone());
        for target in &mut targets {
            let e = std::mem::replace(&mut target.expr, Expr::Row(Vec::new()));
            target.expr = walk::substitute(e, &|col| {
                // Rows of several tables say which one they are in.
                let is_one = |t: &&TableRel| t.children.is_none() && !t.table.is_partitioned();
                let table = table.as_ref().filter(is_one)?;
                (table.column(col)? == ScanColumn::TableOid)
                    .then(|| Expr::Const(Datum::Oid(table.table.oid), OID))
            });
        }
        Ok((Some(targets.into_iter().map(|t| t.expr).collect()), output))
    }

    /// `0A000` for an expression over a row that has no place yet.
    pub(crate) fn no_system_columns(&self, scope: &Scope<'_>, e: &Expr, place: &str) -> Result<()> {
        let mut used = Vec::new();
        walk::columns_of(e, &mut used);
        let target = scope.items.first().and_then(|i| i.table.as_ref());
        let system = |col: &u16| {
            target
                .and_then(|t| t.column(*col))
                .is_some_and(|c| !matches!(c, crate::plan::ScanColumn::Attr(_)))
        };
        match used.iter().find(|c| system(c)) {
            Some(_) => Err(base::Error::unsupported(format!("a system column in {place}"))),
            None => Ok(()),
        }
    }

    /// UPDATE.
    pub(crate) fn update(&mut self, stmt: &pb::UpdateStmt) -> Result<BoundChange> {
        let excepted = std::mem::take(&mut self.excepted);
        let returned = std::mem::take(&mut self.returned);
        let names = self.cte_names.len();
        if let Some(with) = &stmt.with_clause {
            self.with_clause(with, None, self.queries == 0)?;
        }
        self.changing = true;
        let instead = self.instead(&stmt.relation, trigger_type::UPDATE)?;
        let mut through = match &instead {
            Some(_) => None,
            None => self.through(&stmt.relation, "UPDATE")?,
        };
        let options = through.as_ref().map(|t| t.options.clone()).unwrap_or_default();
        let levels = through.as_mut().map(|t| std::mem::take(&mut t.levels)).unwrap_or_default();
        let assignments = match &through {
            Some(through) => Some(self.view_assignments(through, &stmt.target_list)?),
            None => None,
        };
        let (mut rel, mut recheck, target, scope) = self.changed_rows(
            (through, instead),
            &stmt.relation,
            &stmt.from_clause,
            &stmt.where_clause,
        )?;
        let assignments = assignments.as_ref().unwrap_or(&stmt.target_list);
        let set = self.set_list(&scope, &target, assignments)?;
        let but = self.exceptions(&scope, &target, &set, &excepted)?;
        if !but.is_empty() {
            rel = filter(rel, but.clone());
            recheck.extend(but);
        }
        self.note_change(stmt, |change| {
            change.target = target.table.oid;
            change.items.clone_from(&scope.items);
            change.set.clone_from(&set);
            change.conditions.clone_from(&recheck);
        });
        let written: Vec<u16> = set.iter().map(|(n, _)| *n).collect();
        self.need_change_through(&levels, &target, privilege::UPDATE, &written);
        let checks = RowRules { options, ..self.checks(&target)? };
        let (returning, output) = self.returning(&stmt.returning_clause, scope.items, returned)?;
        self.note_returning(stmt, &returning, &output);
        self.guard_changed(&mut rel, &mut recheck, &target, command::UPDATE)?;
        let policies = self.written_rules(&target, command::UPDATE, false)?;
        let checks = RowRules { policies, ..checks };
        let children = self.child_targets(&target, Some(&checks))?;
        self.cte_names.truncate(names);
        let action = ChangeAction::Update { rel, set, recheck };
        Ok((Change { table: target, action, returning, checks, children }, output))
    }

    /// DELETE.
    pub(crate) fn delete(&mut self, stmt: &pb::DeleteStmt) -> Result<BoundChange> {
        let excepted = std::mem::take(&mut self.excepted);
        let returned = std::mem::take(&mut self.returned);
        let names = self.cte_names.len();
        if let Some(with) = &stmt.with_clause {
            self.with_clause(with, None, self.queries == 0)?;
        }
        self.changing = true;
        let instead = self.instead(&stmt.relation, trigger_type::DELETE)?;
        let mut through = match &instead {
            Some(_) => None,
            None => self.through(&stmt.relation, "DELETE")?,
        };
        let levels = through.as_mut().map(|t| std::mem::take(&mut t.levels)).unwrap_or_default();
        let (mut rel, mut recheck, target, scope) = self.changed_rows(
            (through, instead),
            &stmt.relation,
            &stmt.using_clause,
            &stmt.where_clause,
        )?;
        let but = self.exceptions(&scope, &target, &[], &excepted)?;
        if !but.is_empty() {
            rel = filter(rel, but.clone());
            recheck.extend(but);
        }
        self.note_change(stmt, |change| {
            change.target = target.table.oid;
            change.items.clone_from(&scope.items);
            change.conditions.clone_from(&recheck);
        });
        self.need_change_through(&levels, &target, privilege::DELETE, &[]);
        let (returning, output) = self.returning(&stmt.returning_clause, scope.items, returned)?;
        self.note_returning(stmt, &returning, &output);
        self.guard_changed(&mut rel, &mut recheck, &target, command::DELETE)?;
        self.cte_names.truncate(names);
        let children = self.child_targets(&target, None)?;
        let action = ChangeAction::Delete { rel, recheck };
        let conditions = self.trigger_conditions(&target.table)?;
        let checks = RowRules { conditions, ..RowRules::default() };
        Ok((Change { table: target, action, returning, checks, children }, output))
    }

    /// The children of a table whose rows are changed, locked. `rules`: WITH CHECK OPTION and policies over the
    /// table's columns; None: rows are deleted, new ones need no rules.
    pub(crate) fn child_targets(
        &mut self,
        target: &TableRel,
        rules: Option<&RowRules>,
    ) -> Result<Vec<ChildTarget>> {
        let Some(children) = target.children.clone() else { return Ok(Vec::new()) };
        let mut out = Vec::with_capacity(children.len());
        for child in &*children {
            self.lock(child.table.oid, LockMode::RowExclusive);
            for (_, key) in child.table.foreign_keys() {
                self.lock(key.table, LockMode::RowShare);
            }
            let rel = self.unasked_rel(child.table.clone(), &target.alias)?;
            let conditions = self.trigger_conditions(&child.table)?;
            let mut checks = RowRules { conditions, ..RowRules::default() };
            if let Some(rules) = rules {
                checks = self.checks(&rel)?;
                let there = |col: crate::logical::Col| {
                    let column = child.column(target.column(col)?);
                    Some(self.column(rel.col(column)))
                };
                let moved = |(name, e): &(String, Expr)| {
                    (name.clone(), walk::substitute(e.clone(), &there))
                };
                checks.options = rules.options.iter().map(moved).collect();
                let named = RowRules { policies: rules.policies.clone(), ..RowRules::default() };
                let own = named.map(&mut |e| Ok(walk::substitute(e, &there)))?;
                checks.policies = own.policies;
            }
            out.push(ChildTarget { rel, checks });
        }
        Ok(out)
    }

    /// The rows to change: the table, joined with FROM or USING, under WHERE.
    pub(crate) fn changed_rows(
        &mut self,
        (through, instead): (Option<super::through::Through>, Option<Instead>),
        range: &Option<pb::RangeVar>,
        others: &[pb::Node],
        condition: &Option<Box<pb::Node>>,
    ) -> Result<(Rel, Vec<Expr>, TableRel, Scope<'static>)> {
        let applied = self.applied.take();
        let mut scope = Scope::new(None);
        let cursor = super::current::cursor_of(condition);
        let (mut target_rows, mut barrier) = (None, false);
        let (target, shown) = match (through, instead, range) {
            (Some(_), ..) | (_, Some(_), _) if cursor.is_some() => {
                return Err(err!(
                    FEATURE_NOT_SUPPORTED,
                    "WHERE CURRENT OF on a view is not implemented"
                ));
            }
            (Some(through), ..) => {
                let shown = through.conditions();
                barrier = through.barrier;
                let table = through.target.table.clone();
                if table.kind == TableKind::View {
                    let relname = table.name.clone();
                    let below = pb::RangeVar { relname, inh: true, ..pb::RangeVar::default() };
                    target_rows = Some(self.instead_rows(&through.target, &below)?);
                }
                scope.items.push(through.item);
                (through.target, shown)
            }
            (None, Some(Instead { target, item }), Some(range)) => {
                target_rows = Some(self.instead_rows(&target, range)?);
                scope.items.push(item);
                (target, Vec::new())
            }
            (None, ..) => {
                let (table, range) = self.target_table(range)?;
                let (rel, item) = self.table_item(table, &range)?;
                let Rel::Table(target) = rel else {
                    return Err(err!(INTERNAL_ERROR, "change of a computed table"));
                };
                scope.items.push(item);
                (target, Vec::new())
            }
        };
        for item in &mut scope.items {
            (item.target, item.lateral_only, item.lateral_ok) = (true, true, false);
        }
        let mut whole = target_rows.unwrap_or_else(|| Rel::Table(target.clone()));
        if barrier {
            whole = super::policy::behind(whole, shown.clone());
        }
        if let Some(applied) = applied {
            scope.items.extend(applied.items);
            whole = match applied.rel {
                Some(around) => join(JoinKind::Inner, around, whole, Vec::new()),
                None => whole,
            };
        }
        if let Some(others) = self.from_clause(&mut scope, others)? {
            whole = join(JoinKind::Inner, whole, others, Vec::new());
        }
        for item in scope.items.iter_mut().filter(|item| item.target) {
            (item.lateral_only, item.lateral_ok) = (false, true);
        }
        let mut recheck = shown;
        if let Some(cursor) = cursor {
            // A row that has moved since is the cursor's row nevertheless.
            let current = self.current_of(cursor, &target)?;
            let mut conditions = recheck.clone();
            conditions.push(current);
            return Ok((filter(whole, conditions), recheck, target, scope));
        }
        if let Some(node) = inner(condition) {
            let bound = self.condition(&scope, node, Place::Where)?;
            walk::conjuncts(bound, &mut recheck);
        }
        Ok((filter(whole, recheck.clone()), recheck, target, scope))
    }

    pub(crate) fn set_list(
        &mut self,
        scope: &Scope<'_>,
        target: &TableRel,
        nodes: &[pb::Node],
    ) -> Result<Vec<(u16, Expr)>> {
        let table = target.table.clone();
        let mut set: Vec<(u16, Expr)> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let Some(NodeEnum::ResTarget(assignment)) = &node.node else { continue };
            let position = self.at(assignment.location);
            let Some((number, column)) = table.column(&assignment.name) else {
                return Err(self.missing_column(&table, &assignment.name, position));
            };
            if !assignment.indirection.is_empty() {
                self.assign_item(scope, target, assignment, number, &mut set)?;
                continue;
            }
            if set.iter().any(|(n, _)| *n == number) {
                return Err(err!(
                    SYNTAX_ERROR,
                    "multiple assignments to same column \"{}\"",
                    assignment.name
                ));
            }
            let Some(value) = inner(&assignment.val) else { continue };
            scope.place.set(Place::Set);
            let value = match value {
                NodeEnum::SetToDefault(_) => self.column_default(&table, number)?,
                NodeEnum::MultiAssignRef(multi) => {
                    let e = self.multi_assign(scope, multi, assignment.location)?;
                    match e {
                        Some(e) => {
                            self.check_settable(&table, number)?;
                            self.assign(e, Oid(column.ty), column.typmod, &column.name, position)?
                        }
                        None => self.column_default(&table, number)?,
                    }
                }
                other => {
                    self.check_settable(&table, number)?;
                    let at = self.at(ast::location(other));
                    let e = self.expr(scope, other)?;
                    self.assign(e, Oid(column.ty), column.typmod, &column.name, at)?
                }
            };
            set.push((number, value));
        }
        Ok(set)
    }

    /// One field of `(a, b) = (x, y)`; None for DEFAULT.
    pub(super) fn multi_assign(
        &mut self,
        scope: &Scope<'_>,
        multi: &pb::MultiAssignRef,
        location: i32,
    ) -> Result<Option<Expr>> {
        match inner(&multi.source) {
            // `ROW(v.*)`: as many values as the star stands for.
            Some(NodeEnum::RowExpr(row)) if row.args.iter().any(super::expr::is_star) => {
                let mut items = self.row_items(scope, &row.args)?;
                if items.len() != multi.ncolumns as usize {
                    return Err(err!(
                        SYNTAX_ERROR,
                        "number of columns does not match number of values"
                    )
                    .at(self.at(row.location)));
                }
                Ok(Some(items.swap_remove((multi.colno - 1) as usize)))
            }
            Some(NodeEnum::RowExpr(row)) => {
                if row.args.len() != multi.ncolumns as usize {
                    return Err(err!(
                        SYNTAX_ERROR,
                        "number of columns does not match number of values"
                    )
                    .at(self.at(row.location)));
                }
                let Some(node) = row.args.get((multi.colno - 1) as usize) else {
                    return Err(err!(SYNTAX_ERROR, "too few values").at(self.at(location)));
                };
                if matches!(node.node, Some(NodeEnum::SetToDefault(_))) {
                    return Ok(None);
                }
                self.expr_node(scope, node).map(Some)
            }
            Some(NodeEnum::SubLink(link)) => {
                let Some(NodeEnum::SelectStmt(select)) = inner(&link.subselect) else {
                    return Err(self.unsupported("this subquery", location));
                };
                if multi.colno == 1 {
                    let width = self.width_of(scope, select)?;
                    if width != multi.ncolumns as usize {
                        return Err(err!(
                            SYNTAX_ERROR,
                            "number of columns does not match number of values"
                        )
                        .at(self.at(link.location)));
                    }
                }
                self.one_column_query(scope, select, (multi.colno - 1) as usize).map(Some)
            }
            _ => Err(err!(
                FEATURE_NOT_SUPPORTED,
                "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression"
            )
            .at(self.at(location))),
        }
    }
}

impl Binder<'_> {
    /// How many columns a subquery of an expression has.
    pub(crate) fn width_of(&mut self, scope: &Scope<'_>, select: &pb::SelectStmt) -> Result<usize> {
        self.sublinks += 1;
        let query = self.select(select, Some(scope), true);
        self.sublinks -= 1;
        Ok(query?.cols.len())
    }

    /// One column (from 0) of `(SELECT …)` that has several: a subquery that computes only that one.
    pub(crate) fn one_column_query(
        &mut self,
        scope: &Scope<'_>,
        select: &pb::SelectStmt,
        at: usize,
    ) -> Result<Expr> {
        self.sublinks += 1;
        let query = self.select(select, Some(scope), true);
        self.sublinks -= 1;
        let mut query = query?;
        query.cols = vec![query.cols[at]];
        query.output = vec![query.output.swap_remove(at)];
        let ty = query.output[0].ty;
        Ok(self.subquery(query, crate::expr::SubqueryKind::Scalar, ty))
    }
}

/// Whether a target of INSERT is a part of a column.
fn has_parts(target: &pb::Node) -> bool {
    matches!(&target.node, Some(NodeEnum::ResTarget(t)) if !t.indirection.is_empty())
}

/// VALUES and nothing else.
fn is_plain_values(select: &pb::SelectStmt) -> bool {
    !select.values_lists.is_empty()
        && select.sort_clause.is_empty()
        && select.limit_count.is_none()
        && select.limit_offset.is_none()
        && select.with_clause.is_none()
        && select.op <= pb::SetOperation::SetopNone as i32
}

/// The target of an INSERT's column when it is a part of one.
fn part_of(cols: &[pb::Node], at: usize) -> Option<&pb::ResTarget> {
    match &cols.get(at)?.node {
        Some(NodeEnum::ResTarget(target)) if !target.indirection.is_empty() => Some(target),
        _ => None,
    }
}
