//! ON CONFLICT: which unique indexes decide, and what is done about a row that is there already.

use base::{Error, Result, err};
use catalog::{ConstraintKind, Table};
use pg_query::{NodeEnum, protobuf as pb};

use crate::expr::Expr;
use crate::logical::{Conflict, ConflictUpdate, TableRel};
use crate::plan::{Assumed, ScanColumn};
use crate::walk;

use super::scope::{NsColumn, NsItem, Place};
use super::through::Through;
use super::{Binder, Scope, inner};

impl Binder<'_> {
    /// Binds the clause of an INSERT into `target`, whose names are `item`, perhaps through a view.
    pub(crate) fn conflict(
        &mut self,
        clause: &pb::OnConflictClause,
        target: &TableRel,
        item: &NsItem,
        through: Option<&Through>,
        others: &[NsItem],
    ) -> Result<Conflict> {
        let updates = clause.action == pb::OnConflictAction::OnconflictUpdate as i32;
        let arbiters = match &clause.infer {
            Some(infer) => self.arbiters(infer, target, item, updates)?,
            None if updates => {
                return Err(err!(
                    SYNTAX_ERROR,
                    "ON CONFLICT DO UPDATE requires inference specification or constraint name"
                )
                .hint("For example, ON CONFLICT (column_name).")
                .at(self.at(clause.location)));
            }
            None => Vec::new(),
        };
        if !updates {
            return Ok(Conflict { arbiters, update: None });
        }
        let excluded = self.table_rel(target.table.clone(), "excluded")?;
        self.need_change(excluded.base, 0, &[]);
        let mut scope = Scope::new(None);
        let mut other = self.item_of(&excluded);
        other.table = None;
        if let Some(through) = through {
            other.columns = self.excluded_columns(through, &excluded);
        }
        scope.items = vec![item.clone(), other];
        scope.items.extend_from_slice(others);
        let set = match through {
            Some(through) => {
                let list = self.view_assignments(through, &clause.target_list)?;
                self.set_list(&scope, target, &list)?
            }
            None => self.set_list(&scope, target, &clause.target_list)?,
        };
        let written: Vec<u16> = set.iter().map(|(n, _)| *n).collect();
        let levels = through.map_or(&[][..], |t| t.levels.as_slice());
        self.need_more_through(levels, target, catalog::acl::privilege::UPDATE, &written);
        let mut conditions = Vec::new();
        if let Some(node) = inner(&clause.where_clause) {
            let bound = self.condition(&scope, node, Place::Where)?;
            walk::conjuncts(bound, &mut conditions);
        }
        for e in set.iter().map(|(_, e)| e).chain(&conditions) {
            self.no_system_columns(&scope, e, "ON CONFLICT")?;
        }
        Ok(Conflict { arbiters, update: Some(ConflictUpdate { excluded, set, conditions }) })
    }

    /// A view's columns over the row that was to be inserted.
    fn excluded_columns(&self, through: &Through, excluded: &TableRel) -> Vec<NsColumn> {
        let target = &through.target;
        let moved = |col| {
            let at: u16 = u16::checked_sub(col, target.base)?;
            let inside = usize::from(at) < target.table.columns.len();
            inside.then(|| self.column(excluded.base + at))
        };
        let column = |c: &NsColumn| NsColumn {
            name: c.name.clone(),
            expr: walk::substitute(c.expr.clone(), &moved),
            of: None,
        };
        through.item.columns.iter().map(column).collect()
    }

    /// Whether an index's expressions are those of a conflict target, and its condition follows from the
    /// target's; for which values of parameters it does. None: it is another index.
    fn has_expressions(
        &mut self,
        index: &catalog::Index,
        target: &TableRel,
        exprs: &[Expr],
        given: &[Expr],
    ) -> Result<Option<Vec<Assumed>>> {
        let mut own = Vec::new();
        for key in index.columns.iter().filter_map(|c| c.expression.as_ref()) {
            let node = crate::parse::parse_expr(&key.sql)?;
            own.push(self.row_expr(target, &node)?);
        }
        let among = |e: &Expr, all: &[Expr]| all.iter().any(|x| walk::same(x, e));
        if !own.iter().all(|e| among(e, exprs)) || !exprs.iter().all(|e| among(e, &own)) {
            return Ok(None);
        }
        let Some(sql) = &index.predicate else { return Ok(Some(Vec::new())) };
        let node = crate::parse::parse_expr(sql)?;
        let mut demanded = Vec::new();
        walk::conjuncts(self.row_expr(target, &node)?, &mut demanded);
        let mut assumed = Vec::new();
        for e in demanded.iter().filter(|e| !among(e, given)) {
            let Some(found) = given.iter().find_map(|given| assumption(e, given)) else {
                return Ok(None);
            };
            assumed.extend(found);
        }
        Ok(Some(assumed))
    }

    /// The unique indexes that a conflict target means.
    fn arbiters(
        &mut self,
        infer: &pb::InferClause,
        target: &TableRel,
        item: &NsItem,
        updates: bool,
    ) -> Result<Vec<(u32, Vec<Assumed>)>> {
        let table = target.table.clone();
        if !infer.conname.is_empty() {
            let index = self.arbiter_constraint(&table, &infer.conname, updates)?;
            let index_columns = self.cx.catalog.index(index).map(|i| i.columns.clone());
            for key in index_columns.iter().flatten().filter(|c| c.expression.is_none()) {
                let key = self.column(target.col(ScanColumn::Attr(key.column)));
                self.note_read(&key);
            }
            return Ok(vec![(index, Vec::new())]);
        }
        let mut scope = Scope::new(None);
        scope.items.push(item.clone());
        scope.place.set(Place::IndexKey);
        let mut exprs = Vec::new();
        let mut columns = Vec::with_capacity(infer.index_elems.len());
        for node in &infer.index_elems {
            let Some(NodeEnum::IndexElem(elem)) = &node.node else { continue };
            if let Some(node) = inner(&elem.expr) {
                exprs.push(self.holding(|b| b.expr(&scope, node))?);
                continue;
            }
            let Some(column) = item.columns.iter().find(|c| c.name == elem.name) else {
                return Err(err!(UNDEFINED_COLUMN, "column \"{}\" does not exist", elem.name)
                    .at(self.at(infer.location)));
            };
            // Whether there is such a key is told by what becomes of the row.
            self.note_column(column);
            match &column.expr {
                Expr::Column(col, _) => match target.column(*col) {
                    Some(ScanColumn::Attr(n)) if !columns.contains(&n) => columns.push(n),
                    _ => {}
                },
                expr => exprs.push(expr.clone()),
            }
        }
        let mut given = Vec::new();
        if let Some(node) = inner(&infer.where_clause) {
            let bound = self.holding(|b| b.condition(&scope, node, Place::Where))?;
            walk::conjuncts(bound, &mut given);
        }
        let mut found = Vec::new();
        for index in self.cx.catalog.indexes_of(&table) {
            let plain = |c: &&catalog::IndexColumn| c.expression.is_none();
            let fits = index.unique
                && !index.invalid
                && index.columns.iter().filter(plain).all(|c| columns.contains(&c.column))
                && columns.iter().all(|n| index.columns.iter().any(|c| c.column == *n));
            if fits && let Some(assumed) = self.has_expressions(&index, target, &exprs, &given)? {
                found.push((index.oid, assumed));
            }
        }
        if found.is_empty() {
            return Err(no_arbiter());
        }
        Ok(found)
    }

    fn arbiter_constraint(&self, table: &Table, name: &str, updates: bool) -> Result<u32> {
        let Some(constraint) = table.constraints.iter().find(|c| c.name == name) else {
            return Err(err!(
                UNDEFINED_OBJECT,
                "constraint \"{name}\" for table \"{}\" does not exist",
                table.name
            ));
        };
        match &constraint.kind {
            ConstraintKind::PrimaryKey { index } | ConstraintKind::Unique { index, .. } => {
                let excludes = self.cx.catalog.index(*index).is_some_and(|i| !i.exclude.is_empty());
                if updates && excludes {
                    base::bail!(
                        WRONG_OBJECT_TYPE,
                        "ON CONFLICT DO UPDATE not supported with exclusion constraints"
                    );
                }
                Ok(*index)
            }
            _ => Err(err!(
                WRONG_OBJECT_TYPE,
                "constraint in ON CONFLICT clause has no associated index"
            )),
        }
    }
}

/// `42P10`: no index is meant by the conflict target.
pub fn no_arbiter() -> Error {
    err!(
        INVALID_COLUMN_REFERENCE,
        "there is no unique or exclusion constraint matching the ON CONFLICT specification"
    )
}

/// The values of parameters with which a condition is the one that an index demands; None: with none.
fn assumption(demanded: &Expr, given: &Expr) -> Option<Vec<Assumed>> {
    fn leaves<'e>(e: &'e Expr, out: &mut Vec<&'e Expr>) {
        let before = out.len();
        walk::for_children(e, &mut |child| leaves(child, out));
        if out.len() == before {
            out.push(e);
        }
    }
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    leaves(demanded, &mut theirs);
    leaves(given, &mut ours);
    let mut assumed: Vec<Assumed> = Vec::new();
    for (theirs, ours) in theirs.iter().zip(&ours) {
        if let (Expr::Const(value, ty), Expr::Param(n, of)) = (theirs, ours)
            && ty == of
            && !assumed.iter().any(|(known, _)| known == n)
        {
            assumed.push((*n, value.clone()));
        }
    }
    let value = &mut |n: u32| assumed.iter().find(|(p, _)| *p == n).map(|(_, v)| v.clone());
    let fixed = walk::map_params(given.clone(), value);
    walk::same(&fixed, demanded).then_some(assumed)
}
