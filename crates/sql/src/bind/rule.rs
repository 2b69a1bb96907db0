//! CREATE and DROP RULE, and what a rule's parts see: the rows of the statement that it applies to, as `old` and
//! `new`.
//!
//! ```text
//!   UPDATE v SET a = a + 1 WHERE b > 0          rule: ON UPDATE TO v DO INSTEAD UPDATE t SET a = new.a WHERE k = old.k
//!
//!   Update t SET a = v.a + 1                    new.a is the expression that the statement sets
//!    └ Join t.k = v.k                           old.k is the column of the row that it would change
//!        ├ Filter v.b > 0, the rule's WHERE     [`Source`]: the rows of the statement
//!        │   └ v
//!        └ t
//! ```
//! Which statements there are in place of one is [`crate::rewrite`]'s.

use std::sync::Arc;

use base::{Error, Oid, Result, err};
use catalog::acl::privilege;
use catalog::{Rule, Table, TableKind, rule_event, trigger_type};
use pg_query::{NodeEnum, protobuf as pb};

use crate::embedded::Variables;
use crate::every_node::every_node;
use crate::expr::Expr;
use crate::logical::{Input, Rel, TableRel};
use crate::parse::{Tree, parse, parse_expr};
use crate::plan::{JoinKind, ScanColumn};
use crate::prepare::PrepareContext;
use crate::rule::{CreateRule, DropRule};
use crate::utility::Utility;
use crate::view::actions::{self, Look};
use crate::walk;

use super::from::join;
use super::record::{Record, address};
use super::scope::{NsColumn, NsItem, Place};
use super::select::{TargetEntry, filter};
use super::through::Through;
use super::{Binder, Scope, ast, inner};

/// What a statement of a rule sees: names, and the rows that they stand for.
pub(crate) struct Applied {
    /// The rows; None: it runs once, and doesn't use them.
    pub rel: Option<Rel>,
    /// `old` and `new`.
    pub items: Vec<NsItem>,
}

/// A condition that must not hold for a row.
#[derive(Clone)]
pub(crate) struct Excepted {
    /// The relation whose INSTEAD rule has it.
    pub table: Arc<Table>,
    /// The condition over `old` and `new`.
    pub condition: String,
}

/// The RETURNING clause of a statement that an action stands for.
pub(crate) struct Returned<'a> {
    /// The clause; None: the statement returns nothing.
    pub clause: Option<pb::ReturningClause>,
    /// The statement's name for the relation.
    pub name: String,
    /// The relation.
    pub table: Arc<Table>,
    /// The other names of the statement.
    pub from: Vec<NsItem>,
    /// In whose name.
    pub acting: u32,
    /// The program's variables, of its own statement.
    pub variables: Option<&'a dyn Variables>,
}

/// A statement's rows, before it is rewritten.
pub(crate) struct Source {
    /// The rows.
    pub rel: Rel,
    /// `old` and `new`, as far as it has them.
    pub items: Vec<NsItem>,
    /// Names of FROM and USING.
    pub from: Vec<NsItem>,
}

/// What of a rule is bound.
pub(crate) enum Parts<'s> {
    /// Its WHERE.
    Condition(&'s str),
    /// A statement.
    Action(&'s str),
}

/// A part of a rule, bound to be printed.
pub(crate) struct BoundPart {
    /// What binding knew.
    pub record: Record,
    /// A statement's tree.
    pub node: Option<Tree>,
    /// `old` and `new`.
    pub rows: Vec<NsItem>,
    /// The condition.
    pub condition: Option<Expr>,
}

/// Rows beside rows.
pub(crate) fn beside(left: Option<Rel>, right: Option<Rel>) -> Option<Rel> {
    match (left, right) {
        (Some(left), Some(right)) => Some(join(JoinKind::Inner, left, right, Vec::new())),
        (left, right) => left.or(right),
    }
}

/// The columns that rules see of a row.
fn row_item(name: &str, table: &Table, columns: Vec<NsColumn>) -> NsItem {
    NsItem {
        oid: table.oid,
        cols_visible: false,
        rule_row: true,
        ..NsItem::of_columns(Some(name.to_owned()), columns)
    }
}

/// The relation that a statement changes, and what it does to it ([`rule_event`]).
pub(crate) fn changed(node: &NodeEnum) -> Option<(&pb::RangeVar, char)> {
    let (range, event) = match node {
        NodeEnum::InsertStmt(s) => (&s.relation, rule_event::INSERT),
        NodeEnum::UpdateStmt(s) => (&s.relation, rule_event::UPDATE),
        NodeEnum::DeleteStmt(s) => (&s.relation, rule_event::DELETE),
        _ => return None,
    };
    range.as_ref().map(|range| (range, event))
}

/// The event in [`catalog::Trigger::kind`].
pub(crate) fn trigger_event(event: char) -> i16 {
    match event {
        rule_event::INSERT => trigger_type::INSERT,
        rule_event::UPDATE => trigger_type::UPDATE,
        _ => trigger_type::DELETE,
    }
}

fn returning_of(node: &NodeEnum) -> Option<&pb::ReturningClause> {
    match node {
        NodeEnum::InsertStmt(s) => s.returning_clause.as_ref(),
        NodeEnum::UpdateStmt(s) => s.returning_clause.as_ref(),
        NodeEnum::DeleteStmt(s) => s.returning_clause.as_ref(),
        _ => None,
    }
}

impl<'a> Binder<'a> {
    /// The relations that a change goes to: the one that is named and, through views whose rows can be changed,
    /// those below.
    pub(crate) fn changed_relations(
        &self,
        range: &pb::RangeVar,
        event: char,
    ) -> Result<Vec<Arc<Table>>> {
        let mut out: Vec<Arc<Table>> = Vec::new();
        let schema = (!range.schemaname.is_empty()).then_some(range.schemaname.as_str());
        let mut next = self.find_relation(schema, &range.relname);
        while let Some(catalog::snapshot::Relation::Table(table)) = next {
            out.push(table.clone());
            let trigger = table.has_instead(trigger_event(event));
            let Some(query) = table.query.as_ref().filter(|_| table.kind == TableKind::View) else {
                break;
            };
            if trigger || out.len() > 64 {
                break;
            }
            let tree = super::view::tree_of(&query.sql)?;
            let NodeEnum::SelectStmt(select) = &*tree else { break };
            if !self.why_not_updatable(select)?.is_empty() {
                break;
            }
            next = match select.from_clause.first().and_then(|n| n.node.as_ref()) {
                Some(NodeEnum::RangeVar(range)) => {
                    let schema =
                        (!range.schemaname.is_empty()).then_some(range.schemaname.as_str());
                    self.find_relation(schema, &range.relname)
                }
                _ => None,
            };
        }
        Ok(out)
    }

    /// The target of a change whose rows a rule of `relation` sees: a view that is named stands for itself, a table
    /// below is reached through it.
    fn source_target(
        &mut self,
        range: &pb::RangeVar,
        relation: &Table,
        verb: &str,
    ) -> Result<(Option<Through>, Option<super::instead::Instead>)> {
        let named = self.find_table(range)?;
        if named.oid != relation.oid {
            self.changed_view = if relation.kind == TableKind::View { relation.oid } else { 0 };
            let through = self.through(&Some(range.clone()), verb);
            self.changed_view = 0;
            return Ok((through?, None));
        }
        if named.kind == TableKind::View {
            return Ok((None, Some(self.view_as_table(named, range)?)));
        }
        Ok((None, None))
    }

    /// The rows of a statement and what it makes of them, as rules of `relation` see them.
    ///
    /// # Errors
    /// Those of binding it.
    pub(crate) fn rule_source(&mut self, node: &NodeEnum, relation: &Arc<Table>) -> Result<Source> {
        match node {
            NodeEnum::InsertStmt(stmt) => self.inserted(stmt, relation),
            NodeEnum::UpdateStmt(stmt) => self.updated(stmt, relation),
            NodeEnum::DeleteStmt(stmt) => self.deleted(stmt, relation),
            _ => Err(Error::internal("a rule applies to no such statement")),
        }
    }

    fn inserted(&mut self, stmt: &pb::InsertStmt, relation: &Arc<Table>) -> Result<Source> {
        let applied = self.applied.take();
        if let Some(with) = &stmt.with_clause {
            self.with_clause(with, None, self.queries == 0)?;
        }
        let Some(range) = &stmt.relation else { return Err(Error::internal("no relation")) };
        self.overriding = stmt.r#override;
        let (through, instead) = self.source_target(range, relation, "INSERT")?;
        let (columns, target, levels) = match (&through, instead) {
            (Some(through), _) => {
                let all = self.view_column_defaults(through)?.into_iter();
                let oid = through.target.table.oid;
                self.shown_defaults = all.map(|(n, sql)| (oid, n, sql)).collect();
                let columns = self.view_columns(through, &stmt.cols)?;
                (columns, through.target.clone(), through.levels.as_slice())
            }
            (None, Some(instead)) => {
                let columns = self.insert_columns(&instead.target.table, &stmt.cols)?;
                (columns, instead.target, &[][..])
            }
            (None, None) => {
                let columns = self.insert_columns(relation, &stmt.cols)?;
                (columns, self.table_rel(relation.clone(), &range.relname)?, &[][..])
            }
        };
        let given = super::dml::given_width(stmt).min(columns.len());
        self.need_change_through(levels, &target, privilege::INSERT, &columns[..given]);
        let input = self.insert_input(stmt, &target.table, &columns, applied)?;
        self.shown_defaults.clear();
        let mut new = self.inserted_item(&input, relation);
        if target.table.oid == relation.oid {
            self.compute_inserted(&mut new, &input, &target)?;
        }
        Ok(Source { rel: input.rel, items: vec![new], from: Vec::new() })
    }

    /// `new` of an INSERT.
    fn inserted_item(&self, input: &Input, table: &Table) -> NsItem {
        let column = |(n, c): (u16, &catalog::Column)| NsColumn {
            name: c.name.clone(),
            expr: self.column(input.cols[usize::from(n) - 1]),
            of: None,
        };
        row_item("new", table, table.live_columns().map(column).collect())
    }

    fn updated(&mut self, stmt: &pb::UpdateStmt, relation: &Arc<Table>) -> Result<Source> {
        let applied = self.applied.take();
        if let Some(with) = &stmt.with_clause {
            self.with_clause(with, None, self.queries == 0)?;
        }
        let Some(range) = &stmt.relation else { return Err(Error::internal("no relation")) };
        let (mut through, instead) = self.source_target(range, relation, "UPDATE")?;
        let levels = through.as_mut().map(|t| std::mem::take(&mut t.levels)).unwrap_or_default();
        let assignments = match &through {
            Some(through) => self.view_assignments(through, &stmt.target_list)?,
            None => stmt.target_list.clone(),
        };
        self.applied = applied;
        let (mut rel, _, target, scope) = self.changed_rows(
            (through, instead),
            &stmt.relation,
            &stmt.from_clause,
            &stmt.where_clause,
        )?;
        let mut set = self.set_list(&scope, &target, &assignments)?;
        let written: Vec<u16> = set.iter().map(|(n, _)| *n).collect();
        self.need_change_through(&levels, &target, privilege::UPDATE, &written);
        // What is computed once stands as a column.
        let costly = |e: &Expr| walk::has_subquery(e) || walk::is_volatile(e);
        if set.iter().any(|(_, e)| costly(e)) {
            let mut cols = Vec::new();
            rel.output(&mut cols);
            let mut exprs: Vec<_> = cols.iter().map(|c| (*c, self.column(*c))).collect();
            for (n, e) in set.iter_mut().filter(|(_, e)| costly(e)) {
                let column = &target.table.columns[usize::from(*n) - 1];
                let col = self.new_var(&column.name, Oid(column.ty), column.typmod)?;
                let value = std::mem::replace(e, self.column(col));
                exprs.push((col, value));
            }
            rel = Rel::Project { input: Box::new(rel), exprs, set: false };
        }
        let items = self.changed_items(&target, Some(&set))?;
        let from = scope.items.into_iter().skip(1).collect();
        Ok(Source { rel, items, from })
    }

    fn deleted(&mut self, stmt: &pb::DeleteStmt, relation: &Arc<Table>) -> Result<Source> {
        let applied = self.applied.take();
        if let Some(with) = &stmt.with_clause {
            self.with_clause(with, None, self.queries == 0)?;
        }
        let Some(range) = &stmt.relation else { return Err(Error::internal("no relation")) };
        let (mut through, instead) = self.source_target(range, relation, "DELETE")?;
        let levels = through.as_mut().map(|t| std::mem::take(&mut t.levels)).unwrap_or_default();
        self.applied = applied;
        let (rel, _, target, scope) = self.changed_rows(
            (through, instead),
            &stmt.relation,
            &stmt.using_clause,
            &stmt.where_clause,
        )?;
        self.need_change_through(&levels, &target, privilege::DELETE, &[]);
        let items = self.changed_items(&target, None)?;
        let from = scope.items.into_iter().skip(1).collect();
        Ok(Source { rel, items, from })
    }

    /// `old` and, of an UPDATE, `new` of a table's row.
    fn changed_items(
        &mut self,
        target: &TableRel,
        set: Option<&[(u16, Expr)]>,
    ) -> Result<Vec<NsItem>> {
        let table = &target.table;
        let mut old = row_item("old", table, self.table_columns(target));
        old.table =
            matches!(table.kind, TableKind::Table | TableKind::Foreign).then(|| target.clone());
        let mut out = vec![old];
        if let Some(set) = set {
            let column = |(n, c): (u16, &catalog::Column)| {
                let value = set.iter().find(|(number, _)| *number == n).map(|(_, e)| e.clone());
                let old = || self.column(target.col(ScanColumn::Attr(n)));
                NsColumn { name: c.name.clone(), expr: value.unwrap_or_else(old), of: None }
            };
            let mut new = row_item("new", table, table.live_columns().map(column).collect());
            let given =
                |n: u16| set.iter().find(|(number, _)| *number == n).map(|(_, e)| e.clone());
            self.compute(&mut new, target, &given)?;
            out.push(new);
        }
        Ok(out)
    }

    /// Puts the expressions of generated columns into a new row, over the values that `given` tells by column.
    fn compute(
        &mut self,
        new: &mut NsItem,
        target: &TableRel,
        given: &dyn Fn(u16) -> Option<Expr>,
    ) -> Result<()> {
        if target.table.kind != TableKind::Table {
            return Ok(());
        }
        let value = |col| match target.column(col)? {
            ScanColumn::Attr(n) => given(n),
            _ => None,
        };
        for (number, expr) in self.generated(target)? {
            let at = target.table.live_columns().position(|(n, _)| n == number);
            if let Some(shown) = at.and_then(|at| new.columns.get_mut(at)) {
                shown.expr = walk::substitute(expr, &value);
            }
        }
        Ok(())
    }

    fn compute_inserted(
        &mut self,
        new: &mut NsItem,
        input: &Input,
        target: &TableRel,
    ) -> Result<()> {
        let cols: Vec<Expr> = input.cols.iter().map(|col| self.column(*col)).collect();
        self.compute(new, target, &|n| cols.get(usize::from(n) - 1).cloned())
    }

    /// A rule's condition, over the rows that `items` name, in the name of the relation's owner.
    pub(crate) fn rule_condition(
        &mut self,
        table: &Table,
        items: &[NsItem],
        sql: &str,
    ) -> Result<Vec<Expr>> {
        let node = parse_expr(sql)?;
        let mut scope = Scope::new(None);
        scope.items = items.to_vec();
        let acting = std::mem::replace(&mut self.acting, table.owner);
        let bound =
            self.without_variables(|b| b.holding(|b| b.condition(&scope, &node, Place::Where)));
        self.acting = acting;
        let mut out = Vec::new();
        walk::conjuncts(bound.map_err(|e| self.near(e))?, &mut out);
        Ok(out)
    }

    /// What must hold for the rows of an UPDATE or DELETE because conditional INSTEAD rules take others.
    pub(crate) fn exceptions(
        &mut self,
        scope: &Scope<'_>,
        target: &TableRel,
        set: &[(u16, Expr)],
        excepted: &[Excepted],
    ) -> Result<Vec<Expr>> {
        let mut out = Vec::new();
        for one in excepted {
            let mut items = self.changed_items(target, Some(set))?;
            if one.table.oid != target.table.oid
                && let Some(shown) = scope.items.first()
            {
                items = self.shown_items(shown, target, set, &one.table);
            }
            let negated = format!("({}) IS NOT TRUE", one.condition);
            out.extend(self.rule_condition(&one.table, &items, &negated)?);
        }
        Ok(out)
    }

    /// `old` and `new` of a view that a change goes through.
    fn shown_items(
        &self,
        shown: &NsItem,
        target: &TableRel,
        set: &[(u16, Expr)],
        view: &Table,
    ) -> Vec<NsItem> {
        let moved = |col| match target.column(col)? {
            ScanColumn::Attr(n) => {
                set.iter().find(|(number, _)| *number == n).map(|(_, e)| e.clone())
            }
            _ => None,
        };
        let new =
            |c: &NsColumn| NsColumn { expr: walk::substitute(c.expr.clone(), &moved), ..c.clone() };
        let columns = shown.columns.iter().map(new).collect();
        vec![row_item("old", view, shown.columns.clone()), row_item("new", view, columns)]
    }

    /// Leaves out the rows of an INSERT that conditional INSTEAD rules take.
    pub(crate) fn except_inserted(
        &mut self,
        input: &mut Input,
        target: &TableRel,
        through: Option<&Through>,
        excepted: &[Excepted],
    ) -> Result<()> {
        for one in excepted {
            let item = match through.filter(|_| one.table.oid != target.table.oid) {
                None => {
                    let mut new = self.inserted_item(input, &target.table);
                    self.compute_inserted(&mut new, input, target)?;
                    new
                }
                Some(through) => {
                    let moved = |col| match target.column(col)? {
                        ScanColumn::Attr(n) => Some(self.column(input.cols[usize::from(n) - 1])),
                        _ => None,
                    };
                    let new = |c: &NsColumn| NsColumn {
                        expr: walk::substitute(c.expr.clone(), &moved),
                        ..c.clone()
                    };
                    let columns = through.item.columns.iter().map(new).collect();
                    row_item("new", &one.table, columns)
                }
            };
            let negated = format!("({}) IS NOT TRUE", one.condition);
            let conditions = self.rule_condition(&one.table, &[item], &negated)?;
            let rel = std::mem::replace(&mut input.rel, Rel::Nothing);
            input.rel = filter(rel, conditions);
        }
        Ok(())
    }

    /// RETURNING of the statement that an action stands for, over what the action returns.
    pub(crate) fn returned_targets(
        &mut self,
        one: Returned<'a>,
        targets: Vec<TargetEntry>,
    ) -> Result<Vec<TargetEntry>> {
        let Some(clause) = &one.clause else { return Ok(targets) };
        let mut scope = Scope::new(None);
        let named = one.table.live_columns().zip(targets);
        let column = |((_, c), target): ((u16, &catalog::Column), TargetEntry)| NsColumn {
            name: c.name.clone(),
            expr: target.expr,
            of: None,
        };
        let columns = named.map(column).collect();
        scope
            .items
            .push(NsItem { oid: one.table.oid, ..NsItem::of_columns(Some(one.name), columns) });
        scope.items.extend(one.from);
        let acting = std::mem::replace(&mut self.acting, one.acting);
        let variables = std::mem::replace(&mut self.variables, one.variables);
        let list = self.target_list(&scope, &clause.exprs, Place::Returning);
        (self.acting, self.variables) = (acting, variables);
        let mut list = list?;
        for target in &mut list {
            let e = std::mem::replace(&mut target.expr, Expr::Row(Vec::new()));
            target.expr = self.resolve_unknown(e)?;
        }
        Ok(list)
    }

    /// What a statement returns, for [`Binder::returned`].
    pub(crate) fn returned_by(
        &self,
        node: &NodeEnum,
        table: &Arc<Table>,
        from: Vec<NsItem>,
        acting: u32,
        variables: Option<&'a dyn Variables>,
    ) -> Returned<'a> {
        let name = changed(node).map_or_else(String::new, |(range, _)| {
            range.alias.as_ref().map_or(&range.relname, |a| &a.aliasname).clone()
        });
        let clause = returning_of(node).cloned();
        Returned { clause, name, table: table.clone(), from, acting, variables }
    }

    /// `old` and `new` of a rule that is defined or printed.
    fn defined_rows(&mut self, table: &Arc<Table>) -> Result<Vec<NsItem>> {
        let mut out = Vec::with_capacity(2);
        for name in ["old", "new"] {
            let rel = self.unasked_rel(table.clone(), name)?;
            let mut item = row_item(name, table, self.table_columns(&rel));
            item.table = matches!(table.kind, TableKind::Table | TableKind::Foreign).then_some(rel);
            out.push(item);
        }
        Ok(out)
    }

    /// Binds a statement of a rule.
    ///
    /// # Errors
    /// The statement's.
    pub(crate) fn bind_action(&mut self, node: &NodeEnum, rows: &[NsItem]) -> Result<()> {
        if !rows.is_empty() {
            self.applied = Some(Applied { rel: None, items: rows.to_vec() });
        }
        match node {
            NodeEnum::InsertStmt(stmt) => self.insert(stmt).map(drop),
            NodeEnum::UpdateStmt(stmt) => self.update(stmt).map(drop),
            NodeEnum::DeleteStmt(stmt) => self.delete(stmt).map(drop),
            NodeEnum::SelectStmt(stmt) => self.select(stmt, None, true).map(drop),
            NodeEnum::NotifyStmt(_) => {
                self.applied = None;
                Ok(())
            }
            other => Err(Error::unsupported(format_args!(
                "{} in a rule",
                super::words::statement(other)
            ))),
        }
    }

    /// CREATE RULE.
    pub(crate) fn create_rule(&mut self, stmt: &pb::RuleStmt) -> Result<Utility> {
        let Some(range) = &stmt.relation else { return Err(Error::internal("no relation")) };
        let table = self.find_table(range).map_err(Error::without_position)?;
        let name = self.name_of_range(&stmt.relation)?;
        if table.kind == TableKind::Materialized {
            base::bail!(FEATURE_NOT_SUPPORTED, "rules on materialized views are not supported");
        }
        if table.kind == TableKind::System {
            base::bail!(
                INSUFFICIENT_PRIVILEGE,
                "permission denied: \"{}\" is a system catalog",
                table.name
            );
        }
        let mut rule = Rule {
            name: stmt.rulename.clone(),
            instead: stmt.instead,
            enabled: 'O',
            ..Rule::default()
        };
        let actions: Vec<&NodeEnum> = stmt.actions.iter().filter_map(|n| n.node.as_ref()).collect();
        let mut create =
            CreateRule { replace: stmt.replace, table: name, rule: rule.clone(), select: None };
        rule.event = match pb::CmdType::try_from(stmt.event) {
            Ok(pb::CmdType::CmdUpdate) => rule_event::UPDATE,
            Ok(pb::CmdType::CmdInsert) => rule_event::INSERT,
            Ok(pb::CmdType::CmdDelete) => rule_event::DELETE,
            _ => {
                create.select = Some(self.select_rule(stmt, &actions)?);
                return Ok(Utility::CreateRule(Box::new(create)));
            }
        };
        let mut uses = Vec::new();
        if let Some(node) = inner(&stmt.where_clause) {
            let tree = Tree::copy(node)?;
            let bound =
                self.defined_part(&table, |b, rows| b.defined_condition(&rule, tree, rows))?;
            uses.extend(bound.record.uses.iter().copied());
            rule.condition = Some(actions::condition(self, &bound, Look::stored(self.cx.catalog))?);
        }
        for node in actions {
            if let NodeEnum::NotifyStmt(_) = node
                && rule.condition.is_some()
            {
                return Err(err!(
                    INVALID_OBJECT_DEFINITION,
                    "rules with WHERE conditions can only have SELECT, INSERT, UPDATE, or DELETE actions"
                ));
            }
            check_with(node)?;
            let tree = Tree::copy(node)?;
            let bound = self.defined_part(&table, |b, rows| {
                let tree = spread_rows(tree, rows);
                b.bind_action(&tree, rows)?;
                Ok((Some(tree), None))
            })?;
            self.check_rows(&rule, &bound)?;
            self.check_returning(&rule, &table, &bound)?;
            uses.extend(bound.record.uses.iter().copied());
            rule.actions.push(actions::action(self, &bound, Look::stored(self.cx.catalog))?);
        }
        let returning = |sql: &&String| {
            let parsed = parse(sql).ok().and_then(|mut all| all.pop());
            parsed.is_some_and(|one| returning_of(&one.node).is_some())
        };
        if rule.actions.iter().filter(returning).count() > 1 {
            base::bail!(FEATURE_NOT_SUPPORTED, "cannot have multiple RETURNING lists in a rule");
        }
        uses.sort_unstable();
        uses.dedup();
        // A column of a relation says that the relation is used, too.
        let columns: Vec<u32> = uses.iter().filter(|(_, n)| *n != 0).map(|(id, _)| *id).collect();
        uses.retain(|(id, n)| *n != 0 || *id != table.oid && !columns.contains(id));
        rule.uses = uses;
        create.rule = rule;
        Ok(Utility::CreateRule(Box::new(create)))
    }

    /// The query of an ON SELECT rule.
    fn select_rule(
        &mut self,
        stmt: &pb::RuleStmt,
        actions: &[&NodeEnum],
    ) -> Result<(Vec<crate::utility::ColumnDef>, catalog::ViewQuery)> {
        let node = match actions {
            [one] => Some(*one),
            [] => None,
            _ => {
                return Err(err!(
                    FEATURE_NOT_SUPPORTED,
                    "multiple actions for rules on SELECT are not implemented"
                )
                .hint("Use views instead."));
            }
        };
        let query = node.filter(|n| matches!(n, NodeEnum::SelectStmt(_)) && stmt.instead);
        let Some(node) = query else {
            base::bail!(FEATURE_NOT_SUPPORTED, "rules on SELECT must have action INSTEAD SELECT");
        };
        if stmt.where_clause.is_some() {
            base::bail!(
                FEATURE_NOT_SUPPORTED,
                "event qualifications are not implemented for rules on SELECT"
            );
        }
        self.defined_query(node, &[])
    }

    /// Binds a part of a rule that is being defined, recording it.
    fn defined_part(
        &mut self,
        table: &Arc<Table>,
        f: impl FnOnce(&mut Self, &[NsItem]) -> Result<(Option<Tree>, Option<Expr>)>,
    ) -> Result<BoundPart> {
        let bound = self.recorded_part(|b| b.defined_rows(table), f)?;
        if !self.params.is_empty() {
            return Err(err!(UNDEFINED_PARAMETER, "there is no parameter $1"));
        }
        Ok(bound)
    }

    /// Binds a statement of a standard body, recording it.
    ///
    /// # Errors
    /// The statement's.
    pub(crate) fn body_part(&mut self, node: Tree) -> Result<BoundPart> {
        let no_rows = |_: &mut Self| Ok(Vec::new());
        self.recorded_part(no_rows, |b, rows| {
            b.bind_action(&node, rows)?;
            Ok((Some(node), None))
        })
    }

    fn recorded_part(
        &mut self,
        rows: impl FnOnce(&mut Self) -> Result<Vec<NsItem>>,
        f: impl FnOnce(&mut Self, &[NsItem]) -> Result<(Option<Tree>, Option<Expr>)>,
    ) -> Result<BoundPart> {
        self.record = Some(Record::default());
        let unfolded = std::mem::replace(&mut self.unfolded, true);
        let bypassing = std::mem::replace(&mut self.bypassing, true);
        let rows = rows(self)?;
        let done = self.holding(|b| f(b, &rows));
        (self.unfolded, self.bypassing) = (unfolded, bypassing);
        let (node, condition) = done?;
        if let (Some(record), Some(condition)) = (&mut self.record, &condition) {
            record.exprs.insert((0, super::record::Part::On), vec![condition.clone()]);
        }
        let targets: Vec<(u32, u16)> = self
            .record
            .iter()
            .flat_map(|r| r.changes.values())
            .flat_map(|c| {
                let columns = c.columns.iter().copied().chain(c.set.iter().map(|(n, _)| *n));
                std::iter::once((c.target, 0)).chain(columns.map(|n| (c.target, n)))
            })
            .collect();
        targets.into_iter().for_each(|(id, n)| self.note_use(id, n));
        self.note_columns();
        let record = self.record.take().unwrap_or_default();
        Ok(BoundPart { record, node, rows, condition })
    }

    fn defined_condition(
        &mut self,
        rule: &Rule,
        tree: Tree,
        rows: &[NsItem],
    ) -> Result<(Option<Tree>, Option<Expr>)> {
        let mut scope = Scope::new(None);
        scope.items = rows.to_vec();
        // Unlike those of its statements, the names of its condition may stand alone.
        scope.items.retain(|item| match rule.event {
            rule_event::INSERT => item.name.as_deref() == Some("new"),
            rule_event::DELETE => item.name.as_deref() == Some("old"),
            _ => true,
        });
        scope.items.iter_mut().for_each(|item| item.cols_visible = true);
        let condition = self.condition(&scope, &tree, Place::Where)?;
        let mut cols = Vec::new();
        walk::columns_of(&condition, &mut cols);
        check_used(rule, rows, &cols)?;
        Ok((Some(tree), Some(condition)))
    }

    /// The rows that an action uses are there.
    fn check_rows(&self, rule: &Rule, bound: &BoundPart) -> Result<()> {
        let mut cols = Vec::new();
        let record = &bound.record;
        for select in record.selects.values() {
            let exprs = select.targets.iter().map(|(_, e)| e).chain(&select.conditions);
            exprs
                .chain(&select.groups)
                .chain(&select.having)
                .for_each(|e| walk::columns_of(e, &mut cols));
        }
        record.exprs.values().flatten().for_each(|e| walk::columns_of(e, &mut cols));
        for change in record.changes.values() {
            let set =
                change.set.iter().map(|(_, e)| e).chain(change.returning.iter().map(|(_, e)| e));
            set.chain(&change.conditions).for_each(|e| walk::columns_of(e, &mut cols));
        }
        check_used(rule, &bound.rows, &cols)
    }

    /// RETURNING gives the relation's columns.
    fn check_returning(&self, rule: &Rule, table: &Table, bound: &BoundPart) -> Result<()> {
        let Some(node) = bound.node.as_ref().filter(|n| returning_of(n).is_some()) else {
            return Ok(());
        };
        let wrong = |text: String| Error::new(base::sqlstate::INVALID_OBJECT_DEFINITION, text);
        let refused = |text: &str| Error::new(base::sqlstate::FEATURE_NOT_SUPPORTED, text);
        if rule.condition.is_some() {
            return Err(refused("RETURNING lists are not supported in conditional rules"));
        }
        if !rule.instead {
            return Err(refused("RETURNING lists are not supported in non-INSTEAD rules"));
        }
        let at = match &**node {
            NodeEnum::InsertStmt(s) => address(&**s),
            NodeEnum::UpdateStmt(s) => address(&**s),
            NodeEnum::DeleteStmt(s) => address(&**s),
            _ => 0,
        };
        let given = bound.record.changes.get(&at).map_or(&[][..], |c| c.returning.as_slice());
        let live: Vec<_> = table.live_columns().map(|(_, c)| c).collect();
        for (n, (_, e)) in given.iter().enumerate() {
            let Some(column) = live.get(n) else {
                return Err(wrong("RETURNING list has too many entries".to_owned()));
            };
            if e.ty().0 != column.ty {
                let ty = |ty| types::io::format_type(ty, -1);
                return Err(wrong(format!(
                    "RETURNING list's entry {} has different type from column \"{}\"",
                    n + 1,
                    column.name
                ))
                .detail(format!(
                    "RETURNING list entry has type {}, but column has type {}.",
                    ty(e.ty()),
                    ty(Oid(column.ty))
                )));
            }
        }
        if given.len() < live.len() {
            return Err(wrong("RETURNING list has too few entries".to_owned()));
        }
        Ok(())
    }

    /// DROP RULE.
    pub(crate) fn drop_rule(&self, stmt: &pb::DropStmt) -> Option<Utility> {
        if stmt.remove_type != pb::ObjectType::ObjectRule as i32 {
            return None;
        }
        let Some(NodeEnum::List(list)) = stmt.objects.first().and_then(|n| n.node.as_ref()) else {
            return None;
        };
        let (name, table) = list.items.split_last()?;
        Some(Utility::DropRule(DropRule {
            table: self.name_of_list(table),
            name: ast::string(name).to_owned(),
            if_exists: stmt.missing_ok,
            cascade: stmt.behavior == pb::DropBehavior::DropCascade as i32,
        }))
    }
}

/// `0A000` for WITH queries that name `old` or `new`.
fn check_with(node: &NodeEnum) -> Result<()> {
    let with = match node {
        NodeEnum::InsertStmt(s) => &s.with_clause,
        NodeEnum::UpdateStmt(s) => &s.with_clause,
        NodeEnum::DeleteStmt(s) => &s.with_clause,
        NodeEnum::SelectStmt(s) => &s.with_clause,
        _ => return Ok(()),
    };
    for query in with.iter().flat_map(|w| &w.ctes).filter_map(|n| n.node.as_ref()) {
        for found in every_node(query) {
            let pg_query::NodeRef::ColumnRef(c) = found else { continue };
            let word = match c.fields.first().map(ast::string) {
                Some("old") if c.fields.len() > 1 => "OLD",
                Some("new") if c.fields.len() > 1 => "NEW",
                _ => continue,
            };
            return Err(err!(
                INVALID_OBJECT_DEFINITION,
                "cannot refer to {word} within WITH query"
            ));
        }
    }
    Ok(())
}

/// `42P17` for the row that the rule's statement doesn't have.
fn check_used(rule: &Rule, rows: &[NsItem], cols: &[crate::logical::Col]) -> Result<()> {
    let of = |item: &NsItem| {
        item.columns.iter().any(|c| matches!(&c.expr, Expr::Column(col, _) if cols.contains(col)))
    };
    let used = |name: &str| rows.iter().any(|item| item.name.as_deref() == Some(name) && of(item));
    let word = match rule.event {
        rule_event::INSERT if used("old") => "ON INSERT rule cannot use OLD",
        rule_event::DELETE if used("new") => "ON DELETE rule cannot use NEW",
        _ => return Ok(()),
    };
    Err(Error::new(base::sqlstate::INVALID_OBJECT_DEFINITION, word))
}

/// `old.*` and `new.*` among values, column by column.
fn spread_rows(tree: Tree, rows: &[NsItem]) -> Tree {
    let NodeEnum::InsertStmt(stmt) = &*tree else { return tree };
    let Some(NodeEnum::SelectStmt(select)) = inner(&stmt.select_stmt) else { return tree };
    let whole = |node: &pb::Node| -> Option<(String, i32)> {
        let Some(NodeEnum::ColumnRef(c)) = &node.node else { return None };
        let [first, last] = c.fields.as_slice() else { return None };
        matches!(last.node, Some(NodeEnum::AStar(_)))
            .then(|| (ast::string(first).to_owned(), c.location))
    };
    let lists = || select.values_lists.iter().flat_map(ast::list);
    if !lists().any(|node| whole(node).is_some()) {
        return tree;
    }
    let mut stmt = (**stmt).clone();
    let values = match stmt.select_stmt.as_mut().and_then(|n| n.node.as_mut()) {
        Some(NodeEnum::SelectStmt(select)) => &mut select.values_lists,
        _ => return tree,
    };
    for node in values {
        let Some(NodeEnum::List(list)) = &mut node.node else { continue };
        let mut items = Vec::with_capacity(list.items.len());
        for item in list.items.drain(..) {
            let row = whole(&item).and_then(|(name, location)| {
                let row = rows.iter().find(|r| r.name.as_deref() == Some(name.as_str()))?;
                Some((name, location, row))
            });
            let Some((name, location, row)) = row else {
                items.push(item);
                continue;
            };
            let text = |s: &str| pb::Node {
                node: Some(NodeEnum::String(pb::String { sval: s.to_owned() })),
            };
            for column in &row.columns {
                let fields = vec![text(&name), text(&column.name)];
                let reference = pb::ColumnRef { fields, location };
                items.push(pb::Node { node: Some(NodeEnum::ColumnRef(reference)) });
            }
        }
        list.items = items;
    }
    Tree::copy(&NodeEnum::InsertStmt(Box::new(stmt))).unwrap_or(tree)
}

/// Binds a stored part of a rule again, recording it.
///
/// # Errors
/// Those of binding it.
pub(crate) fn bind_stored(
    cx: &PrepareContext<'_>,
    table: &Table,
    rule: &Rule,
    part: Parts<'_>,
    f: impl FnOnce(&Binder<'_>, &BoundPart) -> Result<String>,
) -> Result<String> {
    let sql = match part {
        Parts::Condition(sql) | Parts::Action(sql) => sql,
    };
    let mut binder = Binder::new(cx, sql, &[]);
    let table = Arc::new(table.clone());
    let bound = match part {
        Parts::Condition(sql) => {
            let node = parse_expr(sql)?;
            binder.defined_part(&table, |b, rows| b.defined_condition(rule, node, rows))?
        }
        Parts::Action(sql) => {
            let Some(one) = parse(sql)?.pop() else {
                return Err(Error::internal("a rule without a statement"));
            };
            binder.defined_part(&table, |b, rows| {
                b.bind_action(&one.node, rows)?;
                Ok((Some(one.node), None))
            })?
        }
    };
    f(&binder, &bound)
}
