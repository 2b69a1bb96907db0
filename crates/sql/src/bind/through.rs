//! Changes of rows through a view: the view's columns become expressions over the one table below
//! it, its conditions part of WHERE, its CHECK OPTION a rule for new rows.

use std::sync::Arc;

use base::{Result, err};
use catalog::snapshot::Relation;
use catalog::{CheckOption, Table, TableKind, trigger_type};
use pg_query::{NodeEnum, protobuf as pb};
use txn::LockMode;

use crate::expr::Expr;
use crate::logical::TableRel;
use crate::plan::ScanColumn;
use crate::walk;

use super::instead::Instead;
use super::rights::Level;
use super::scope::{NsColumn, NsItem, Place};
use super::{Binder, Scope, inner};

/// What a view that rows are changed through stands for.
pub(crate) struct Through {
    /// The table.
    pub target: TableRel,
    /// The view's columns over it.
    pub item: NsItem,
    /// Which rows of the table the view shows, by view, the innermost first.
    conditions: Vec<(String, Vec<Expr>)>,
    /// What new rows must be, by view.
    pub options: Vec<(String, Expr)>,
    /// The views, the innermost first.
    pub levels: Vec<Level>,
    /// Whether one of them is a security barrier.
    pub barrier: bool,
}

impl Through {
    /// All conditions.
    pub fn conditions(&self) -> Vec<Expr> {
        self.conditions.iter().flat_map(|(_, c)| c.iter().cloned()).collect()
    }

    /// The condition of each view that has one, the innermost first.
    pub fn by_view(&self) -> Vec<(String, Expr)> {
        let restricting = self.conditions.iter().filter(|(_, list)| !list.is_empty());
        restricting.map(|(view, list)| (view.clone(), super::expr::and(list.clone()))).collect()
    }
}

impl Binder<'_> {
    /// The view that a change names, if it is one. `verb`: INSERT, UPDATE or DELETE.
    ///
    /// # Errors
    /// `55000` when rows can't be changed through it.
    pub(crate) fn through(
        &mut self,
        range: &Option<pb::RangeVar>,
        verb: &str,
    ) -> Result<Option<Through>> {
        let Some(range) = range else { return Ok(None) };
        let schema = (!range.schemaname.is_empty()).then_some(range.schemaname.as_str());
        let Some(Relation::Table(view)) = self.find_relation(schema, &range.relname) else {
            return Ok(None);
        };
        match view.kind {
            TableKind::View => {}
            TableKind::Materialized => {
                base::bail!(WRONG_OBJECT_TYPE, "cannot change materialized view \"{}\"", view.name)
            }
            _ => return Ok(None),
        }
        let alias = range.alias.as_ref().map_or(range.relname.as_str(), |a| &a.aliasname);
        let record = self.record.take();
        self.view_depth += 1;
        let result = self.open_view(&view, alias, verb, None);
        self.view_depth -= 1;
        self.record = record;
        let mut through = result?;
        if range.alias.is_none() {
            through.item.schema = self.cx.catalog.schema(view.schema).map(|s| s.name.clone());
        }
        let table = through.target.table.clone();
        self.lock(table.oid, LockMode::RowExclusive);
        for (_, key) in table.foreign_keys() {
            self.lock(key.table, LockMode::RowShare);
        }
        Ok(Some(through))
    }

    /// `above`: the use of the view that this one stands in.
    fn open_view(
        &mut self,
        view: &Arc<Table>,
        alias: &str,
        verb: &str,
        above: Option<usize>,
    ) -> Result<Through> {
        let need = self.need_view(view);
        if let Some(above) = above {
            self.need_below(None, above);
        }
        self.within_view(view, |b| b.open_query(view, alias, verb, need))
    }

    fn open_query(
        &mut self,
        view: &Arc<Table>,
        alias: &str,
        verb: &str,
        need: usize,
    ) -> Result<Through> {
        let Some(query) = &view.query else {
            return Err(base::Error::internal("a view without a query"));
        };
        let tree = match crate::parse::parse(&query.sql)?.pop() {
            Some(one) => one.node,
            None => return Err(base::Error::internal("a view without a query")),
        };
        let NodeEnum::SelectStmt(select) = &*tree else {
            return Err(base::Error::internal("a view's query is not a SELECT"));
        };
        let why = self.why_not_updatable(select)?;
        if !why.is_empty() {
            return Err(not_updatable(&view.name, verb, why));
        }
        let range = match select.from_clause.first().and_then(|n| n.node.as_ref()) {
            Some(NodeEnum::RangeVar(range)) => range,
            _ => return Err(base::Error::internal("an updatable view without a table")),
        };
        let base = self.find_table(range).map_err(|e| self.near(e))?;
        let name = range.alias.as_ref().map_or(range.relname.as_str(), |a| &a.aliasname);
        // What the triggers or rules of a view below do is done to its rows.
        let own = base.kind == TableKind::View
            && (base.has_instead(event_of(verb)) || base.oid == self.changed_view);
        let mut below = if own {
            let Instead { target, item } = self.view_as_table(base, range)?;
            self.need_below(Some(target.base), need);
            let (conditions, options, levels) = Default::default();
            Through { target, item, conditions, options, levels, barrier: false }
        } else if base.kind == TableKind::View {
            self.open_view(&base, name, verb, Some(need))?
        } else {
            let mut target = self.table_rel(base.clone(), name)?;
            if range.inh && verb != "INSERT" {
                target.children = self.children_of(&base, LockMode::RowExclusive);
            }
            self.need_below(Some(target.base), need);
            let item = self.item_of(&target);
            let (conditions, options, levels) = Default::default();
            Through { target, item, conditions, options, levels, barrier: false }
        };
        self.rename_columns(&mut below.item, range.alias.as_ref())?;
        self.view_over(view, alias, select, below, need)
    }

    /// Binds a view's target list and condition over what is below it.
    fn view_over(
        &mut self,
        view: &Arc<Table>,
        alias: &str,
        select: &pb::SelectStmt,
        below: Through,
        need: usize,
    ) -> Result<Through> {
        let Through { target, item, mut conditions, mut options, mut levels, barrier } = below;
        let barrier = barrier || view.is_security_barrier();
        let mut scope = Scope::new(None);
        scope.items.push(item);
        let targets =
            self.holding(|b| b.target_list(&scope, &select.target_list, Place::Target))?;
        let mut own = Vec::new();
        if let Some(node) = inner(&select.where_clause) {
            let condition = self.holding(|b| b.condition(&scope, node, Place::Where))?;
            walk::conjuncts(condition, &mut own);
        }
        let mut columns = Vec::with_capacity(targets.len());
        for (column, bound) in view.columns.iter().zip(targets) {
            let expr = self.resolve_unknown(bound.expr)?;
            let of = Some((need, columns.len() as u16 + 1));
            columns.push(NsColumn { name: column.name.clone(), expr, of });
        }
        let plain = |c: &NsColumn| match &c.expr {
            Expr::Column(col, _) => Some(*col),
            _ => None,
        };
        levels.push(Level { need, cols: columns.iter().map(plain).collect() });
        let check = view.query.as_ref().map_or(CheckOption::None, |q| q.check);
        if check == CheckOption::Cascaded {
            for (name, list) in &conditions {
                if !options.iter().any(|(n, _)| n == name) && !list.is_empty() {
                    options.push((name.clone(), super::expr::and(list.clone())));
                }
            }
        }
        if check != CheckOption::None && !own.is_empty() {
            options.push((view.name.clone(), super::expr::and(own.clone())));
        }
        conditions.push((view.name.clone(), own));
        let item = NsItem { oid: view.oid, ..NsItem::of_columns(Some(alias.to_owned()), columns) };
        Ok(Through { target, item, conditions, options, levels, barrier })
    }

    /// The table's column that a view's column is.
    fn base_column(&self, through: &Through, name: &str, verb: &str, position: u32) -> Result<u16> {
        let view = self.cx.catalog.table(through.item.oid).map_or("", |t| t.name.as_str());
        let Some(column) = through.item.columns.iter().find(|c| c.name == name) else {
            return Err(err!(
                UNDEFINED_COLUMN,
                "column \"{name}\" of relation \"{view}\" does not exist"
            )
            .at(position));
        };
        if let Expr::Column(col, _) = &column.expr
            && let Some(ScanColumn::Attr(n)) = through.target.column(*col)
        {
            return Ok(n);
        }
        let what = if verb == "INSERT" { "insert into" } else { "update" };
        let system =
            matches!(&column.expr, Expr::Column(col, _) if through.target.column(*col).is_some());
        let why = match system {
            true => "View columns that refer to system columns are not updatable.",
            false => "View columns that are not columns of their base relation are not updatable.",
        };
        Err(err!(FEATURE_NOT_SUPPORTED, "cannot {what} column \"{name}\" of view \"{view}\"")
            .detail(why))
    }

    /// The defaults of views' columns, for columns of the table that an INSERT through them gives no value: the
    /// outermost view's counts.
    ///
    /// # Errors
    /// `0A000` for a default of a column that can't be changed.
    pub(crate) fn view_column_defaults(&self, through: &Through) -> Result<Vec<(u16, String)>> {
        let mut out: Vec<(u16, String)> = Vec::new();
        for level in &through.levels {
            let Some(view) = self.cx.catalog.table(self.needs[level.need].object()) else {
                continue;
            };
            for (column, col) in view.columns.iter().zip(&level.cols) {
                let Some(sql) = &column.default else { continue };
                let number = match col.and_then(|col| through.target.column(col)) {
                    Some(ScanColumn::Attr(n)) => n,
                    _ => {
                        self.base_column(through, &column.name, "INSERT", 0)?;
                        continue;
                    }
                };
                out.retain(|(n, _)| *n != number);
                out.push((number, sql.clone()));
            }
        }
        Ok(out)
    }

    /// The table's columns that an INSERT through a view gives values for.
    pub(crate) fn view_columns(&self, through: &Through, cols: &[pb::Node]) -> Result<Vec<u16>> {
        let mut out = Vec::new();
        if cols.is_empty() {
            for column in &through.item.columns {
                out.push(self.base_column(through, &column.name, "INSERT", 0)?);
            }
            return Ok(out);
        }
        for node in cols {
            let Some(NodeEnum::ResTarget(target)) = &node.node else { continue };
            let position = self.at(target.location);
            let n = self.base_column(through, &target.name, "INSERT", position)?;
            if out.contains(&n) {
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

    /// An UPDATE's assignments with the table's names in place of the view's.
    pub(crate) fn view_assignments(
        &self,
        through: &Through,
        nodes: &[pb::Node],
    ) -> Result<Vec<pb::Node>> {
        let mut out = Vec::with_capacity(nodes.len());
        for node in nodes {
            let mut node = node.clone();
            if let Some(NodeEnum::ResTarget(target)) = &mut node.node {
                let position = self.at(target.location);
                let n = self.base_column(through, &target.name, "UPDATE", position)?;
                let column = &through.target.table.columns[usize::from(n) - 1];
                target.name.clone_from(&column.name);
            }
            out.push(node);
        }
        Ok(out)
    }
}

/// What a statement does, in [`catalog::Trigger::kind`].
fn event_of(verb: &str) -> i16 {
    match verb {
        "INSERT" => trigger_type::INSERT,
        "UPDATE" => trigger_type::UPDATE,
        _ => trigger_type::DELETE,
    }
}

fn not_updatable(view: &str, verb: &str, why: String) -> base::Error {
    let (what, doing) = match verb {
        "INSERT" => ("insert into", "inserting into"),
        "DELETE" => ("delete from", "deleting from"),
        _ => ("update", "updating"),
    };
    err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "cannot {what} view \"{view}\"").detail(why).hint(
        format!(
            "To enable {doing} the view, provide an INSTEAD OF {verb} trigger or an unconditional ON {verb} DO INSTEAD rule."
        ),
    )
}
