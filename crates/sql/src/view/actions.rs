//! Data-changing statements written back as SQL, as PostgreSQL lays them out: the actions of rules
//! (`pg_get_ruledef`).

use base::{Error, Result};
use catalog::Snapshot;
use catalog::definition::quote_ident;
use pg_query::{NodeEnum, protobuf as pb};
use types::func::quote_literal;

use super::{Here, Out, Printer, STD};
use crate::bind::record::{ChangeRecord, Part, SelectRecord, address};
use crate::bind::rule::BoundPart;
use crate::bind::scope::NsItem;
use crate::bind::{Binder, ast, inner};
use crate::expr::Expr;

/// How names are printed.
#[derive(Clone, Copy)]
pub(crate) struct Look<'l> {
    /// Where they come from.
    pub naming: &'l Snapshot,
    /// Relations that need no schema; None: all get one.
    pub path: Option<&'l [u32]>,
    /// See [`Printer`].
    pub pretty: bool,
}

impl<'l> Look<'l> {
    /// Of the form that is kept.
    pub fn stored(naming: &'l Snapshot) -> Look<'l> {
        Look { naming, path: None, pretty: false }
    }

    pub(super) fn printer<'p, 'b>(
        self,
        binder: &'p Binder<'b>,
        bound: &'p BoundPart,
    ) -> Printer<'p, 'b>
    where
        'l: 'p,
    {
        Printer {
            binder,
            record: &bound.record,
            naming: self.naming,
            path: self.path,
            pretty: self.pretty,
            bare: false,
            rows: true,
            qualifies: false,
            frames: Default::default(),
            selects: bound.node.as_ref().map(|n| bound.record.selects_of(n)).unwrap_or_default(),
        }
    }
}

/// A rule's condition.
pub(crate) fn condition(binder: &Binder<'_>, bound: &BoundPart, look: Look<'_>) -> Result<String> {
    let Some(condition) = &bound.condition else {
        return Err(Error::internal("a rule without a condition"));
    };
    let printer = look.printer(binder, bound);
    printer.enter(names(bound.rows.clone()), Vec::new());
    Ok(printer.expr(condition, 0))
}

/// A rule's statement.
pub(crate) fn action(binder: &Binder<'_>, bound: &BoundPart, look: Look<'_>) -> Result<String> {
    let Some(node) = &bound.node else {
        return Err(Error::internal("a rule without a statement"));
    };
    action_at(&look.printer(binder, bound), node, &bound.rows, 0)
}

/// A statement of a rule or a standard body with its first line at an indentation.
pub(super) fn action_at(
    printer: &Printer<'_, '_>,
    node: &NodeEnum,
    rows: &[NsItem],
    indent: i32,
) -> Result<String> {
    let mut out = Out { text: String::new(), indent };
    match node {
        NodeEnum::SelectStmt(stmt) => {
            if is_values(stmt) {
                printer.enter(names(rows.to_vec()), Vec::new());
            }
            return printer.query(stmt, None, indent);
        }
        NodeEnum::InsertStmt(stmt) => printer.insert(stmt, rows, &mut out)?,
        NodeEnum::UpdateStmt(stmt) => printer.update(stmt, &mut out)?,
        NodeEnum::DeleteStmt(stmt) => printer.delete(stmt, &mut out)?,
        NodeEnum::NotifyStmt(stmt) => {
            out.keyword("", 0, STD, 1);
            out.push(&format!("NOTIFY {}", quote_ident(&stmt.conditionname)));
            if !stmt.payload.is_empty() {
                out.push(&format!(", {}", quote_literal(&stmt.payload)));
            }
        }
        _ => return Err(Error::internal("a rule's statement is none that rules have")),
    }
    Ok(out.text)
}

fn names(items: Vec<NsItem>) -> SelectRecord {
    SelectRecord { items, ..SelectRecord::default() }
}

impl Printer<'_, '_> {
    /// A data-changing statement in WITH.
    pub(super) fn changing(&self, node: &NodeEnum, indent: i32) -> Result<String> {
        let mut out = Out { text: String::new(), indent };
        match node {
            NodeEnum::SelectStmt(stmt) => return self.query(stmt, None, indent),
            NodeEnum::InsertStmt(stmt) => self.insert(stmt, &[], &mut out)?,
            NodeEnum::UpdateStmt(stmt) => self.update(stmt, &mut out)?,
            NodeEnum::DeleteStmt(stmt) => self.delete(stmt, &mut out)?,
            _ => return Err(Error::unsupported("this statement in WITH of a stored query")),
        }
        Ok(out.text)
    }

    fn change<T>(&self, stmt: &T) -> Result<&ChangeRecord> {
        let found = self.record.changes.get(&address(stmt));
        found.ok_or_else(|| Error::internal("a statement that was not recorded"))
    }

    fn insert(&self, stmt: &pb::InsertStmt, rows: &[NsItem], out: &mut Out) -> Result<()> {
        let change = self.change(stmt)?;
        // A query names the rows of the rule itself.
        let values = match inner(&stmt.select_stmt) {
            Some(NodeEnum::SelectStmt(select)) => is_values(select),
            _ => true,
        };
        let outside = if values { rows.to_vec() } else { Vec::new() };
        self.enter(names(outside), Vec::new());
        if let Some(with) = &stmt.with_clause {
            self.with(with, out)?;
        }
        out.indent += STD;
        out.push(" INSERT INTO ");
        out.push(&self.target_name(change));
        let range = stmt.relation.as_ref();
        if let Some(alias) = range.and_then(|r| r.alias.as_ref()) {
            out.push(&format!(" AS {}", quote_ident(&alias.aliasname)));
        }
        out.push(" ");
        let list = |n: &u16| self.target_column(change, *n);
        let mut columns: Vec<String> = change.columns.iter().map(list).collect();
        if let Some(NodeEnum::SelectStmt(_)) = inner(&stmt.select_stmt) {
            for (text, node) in columns.iter_mut().zip(&stmt.cols) {
                if let Some(NodeEnum::ResTarget(target)) = &node.node
                    && !target.indirection.is_empty()
                {
                    text.push_str(&path_of(target)?);
                }
            }
            out.push(&format!("({}) ", columns.join(", ")));
        }
        match pb::OverridingKind::try_from(stmt.r#override) {
            Ok(pb::OverridingKind::OverridingUserValue) => out.push("OVERRIDING USER VALUE "),
            Ok(pb::OverridingKind::OverridingSystemValue) => out.push("OVERRIDING SYSTEM VALUE "),
            _ => {}
        }
        match inner(&stmt.select_stmt) {
            None => out.push("DEFAULT VALUES"),
            Some(NodeEnum::SelectStmt(select)) if is_values(select) => {
                let several = select.values_lists.len() > 1;
                match several {
                    true => out.push("VALUES "),
                    false => out.keyword("VALUES (", -STD, STD, 2),
                }
                let mut all = Vec::with_capacity(select.values_lists.len());
                for (n, list) in select.values_lists.iter().enumerate() {
                    let part = (address(&**select), Part::Row(n));
                    let row = self.record.exprs.get(&part).map_or(&[][..], Vec::as_slice);
                    let nodes = ast::list(list);
                    if nodes.len() != row.len() {
                        // A row stood for several values.
                        let texts: Vec<String> =
                            row.iter().map(|e| self.outermost(e, out.indent)).collect();
                        all.push(texts.join(if several { "," } else { ", " }));
                        continue;
                    }
                    let items = nodes.iter().zip(row);
                    let texts: Vec<String> = items
                        .map(|(node, e)| match &node.node {
                            Some(NodeEnum::SetToDefault(_)) => "DEFAULT".to_owned(),
                            _ if several => self.alone(e, out.indent),
                            _ => self.outermost(e, out.indent),
                        })
                        .collect();
                    all.push(texts.join(if several { "," } else { ", " }));
                }
                match several {
                    true => out.push(&format!("({})", all.join("), ("))),
                    false => out.push(&format!("{})", all.join(", "))),
                }
            }
            Some(NodeEnum::SelectStmt(select)) => {
                let text = self.query(select, None, out.indent)?;
                out.push(&text);
            }
            Some(_) => return Err(Error::unsupported("a rule with this source of an INSERT")),
        }
        if let Some(clause) = &stmt.on_conflict_clause {
            self.frames.borrow_mut().pop();
            self.enter(names(rows.to_vec()), Vec::new());
            self.on_conflict(clause, change, out)?;
        }
        self.frames.borrow_mut().pop();
        self.enter(names(change.items.clone()), Vec::new());
        self.returning_list(change, out);
        self.frames.borrow_mut().pop();
        Ok(())
    }

    fn on_conflict(
        &self,
        clause: &pb::OnConflictClause,
        change: &ChangeRecord,
        out: &mut Out,
    ) -> Result<()> {
        out.push(" ON CONFLICT");
        if let Some(infer) = &clause.infer {
            if !infer.conname.is_empty() {
                out.push(&format!(" ON CONSTRAINT {}", quote_ident(&infer.conname)));
            } else {
                let mut list = Vec::with_capacity(infer.index_elems.len());
                for node in &infer.index_elems {
                    let Some(NodeEnum::IndexElem(elem)) = &node.node else { continue };
                    if elem.name.is_empty() {
                        let Some(expr) = inner(&elem.expr) else { continue };
                        list.push(format!("({})", crate::parse::deparse_expr(expr)?));
                    } else {
                        list.push(quote_ident(&elem.name));
                    }
                }
                out.push(&format!("({})", list.join(", ")));
                if let Some(node) = inner(&infer.where_clause) {
                    out.push(&format!(" WHERE {}", crate::parse::deparse_expr(node)?));
                }
            }
        }
        let Some((items, set, conditions)) = &change.conflict else {
            out.push(" DO NOTHING");
            return Ok(());
        };
        out.push(" DO UPDATE SET ");
        let rows = self.frames.borrow().last().map_or_else(Vec::new, |f| f.select.items.clone());
        let items = items.iter().cloned().chain(rows).collect();
        self.frames.borrow_mut().pop();
        self.enter(names(items), Vec::new());
        self.assignments(&clause.target_list, set, change, out)?;
        if !conditions.is_empty() {
            out.keyword(" WHERE ", -STD, STD, 1);
            let condition = crate::bind::expr::and(conditions.clone());
            let text = self.expr(&condition, out.indent);
            out.push(&text);
        }
        Ok(())
    }

    fn update(&self, stmt: &pb::UpdateStmt, out: &mut Out) -> Result<()> {
        let change = self.change(stmt)?;
        let joins = self.aliased_joins(&change.items, &stmt.from_clause);
        self.enter(names(change.items.clone()), joins);
        if let Some(with) = &stmt.with_clause {
            self.with(with, out)?;
        }
        out.indent += STD;
        out.push(" UPDATE ");
        if let Some(range) = &stmt.relation {
            self.relation_as(range, "AS ", out)?;
        }
        out.push(" SET ");
        self.assignments(&stmt.target_list, &change.set, change, out)?;
        self.from_list(" FROM ", &stmt.from_clause, out)?;
        self.conditions_and_list(change, out);
        self.frames.borrow_mut().pop();
        Ok(())
    }

    fn delete(&self, stmt: &pb::DeleteStmt, out: &mut Out) -> Result<()> {
        let change = self.change(stmt)?;
        let joins = self.aliased_joins(&change.items, &stmt.using_clause);
        self.enter(names(change.items.clone()), joins);
        if let Some(with) = &stmt.with_clause {
            self.with(with, out)?;
        }
        out.indent += STD;
        out.push(" DELETE FROM ");
        if let Some(range) = &stmt.relation {
            self.relation_as(range, "AS ", out)?;
        }
        self.from_list(" USING ", &stmt.using_clause, out)?;
        self.conditions_and_list(change, out);
        self.frames.borrow_mut().pop();
        Ok(())
    }

    fn conditions_and_list(&self, change: &ChangeRecord, out: &mut Out) {
        if !change.conditions.is_empty() {
            out.keyword(" WHERE ", -STD, STD, 1);
            let condition = crate::bind::expr::and(change.conditions.clone());
            let text = self.expr(&condition, out.indent);
            out.push(&text);
        }
        self.returning_list(change, out);
    }

    fn returning_list(&self, change: &ChangeRecord, out: &mut Out) {
        if change.returning.is_empty() {
            return;
        }
        out.keyword(" RETURNING", -STD, STD, 1);
        let visible = change.returning.len();
        let list =
            SelectRecord { targets: change.returning.clone(), visible, ..SelectRecord::default() };
        self.targets(&list, None, out);
    }

    /// SET.
    fn assignments(
        &self,
        nodes: &[pb::Node],
        set: &[(u16, Expr)],
        change: &ChangeRecord,
        out: &mut Out,
    ) -> Result<()> {
        let table = self.binder.cx.catalog.table(change.target);
        let mut list = Vec::with_capacity(nodes.len());
        for node in nodes {
            let Some(NodeEnum::ResTarget(target)) = &node.node else { continue };
            let number = table.and_then(|t| t.column(&target.name)).map(|(n, _)| n);
            let value = set.iter().find(|(n, _)| Some(*n) == number).map(|(_, e)| e);
            let (Some(number), Some(value)) = (number, value) else {
                return Err(Error::internal("an assignment that was not recorded"));
            };
            let part = self.record.exprs.get(&(address(&**target), Part::Assigned));
            let value = part.and_then(|all| all.first()).unwrap_or(value);
            let text = match inner(&target.val) {
                Some(NodeEnum::SetToDefault(_)) => "DEFAULT".to_owned(),
                Some(NodeEnum::MultiAssignRef(multi))
                    if matches!(inner(&multi.source), Some(NodeEnum::SubLink(_))) =>
                {
                    return Err(Error::unsupported("a rule that assigns a row"));
                }
                _ => self.outermost(value, out.indent),
            };
            let column = self.target_column(change, number);
            list.push(format!("{column}{} = {text}", path_of(target)?));
        }
        out.push(&list.join(", "));
        Ok(())
    }

    /// A whole expression: the casts that its target implied are not shown.
    pub(super) fn outermost(&self, e: &Expr, indent: i32) -> String {
        let names = Here::new(self, indent);
        self.printer(&names, indent).outer(e)
    }

    fn target_name(&self, change: &ChangeRecord) -> String {
        let found = self.naming.relation_by_oid(change.target);
        found.map_or_else(String::new, |relation| self.relation(&relation))
    }

    fn target_column(&self, change: &ChangeRecord, number: u16) -> String {
        let table = self.naming.table(change.target);
        let column = table.and_then(|t| t.columns.get(usize::from(number) - 1));
        column.map_or_else(String::new, |c| quote_ident(&c.name))
    }
}

fn path_of(target: &pb::ResTarget) -> Result<String> {
    let mut out = String::new();
    for node in &target.indirection {
        match &node.node {
            Some(NodeEnum::String(field)) => {
                out.push_str(&format!(".{}", quote_ident(&field.sval)))
            }
            Some(NodeEnum::AIndices(at)) if !at.is_slice => {
                let Some(node) = inner(&at.uidx) else { continue };
                out.push_str(&format!("[{}]", crate::parse::deparse_expr(node)?));
            }
            _ => return Err(Error::unsupported("a rule that changes a slice of a column")),
        }
    }
    Ok(out)
}

fn is_values(select: &pb::SelectStmt) -> bool {
    !select.values_lists.is_empty() && select.op <= pb::SetOperation::SetopNone as i32
}
