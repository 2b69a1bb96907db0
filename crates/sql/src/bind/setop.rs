//! UNION, INTERSECT, EXCEPT and VALUES.

use base::{Oid, Result, err};
use pg_query::{NodeEnum, protobuf as pb};
use types::oids::*;

use crate::expr::Expr;
use crate::logical::{Col, Input, Query, Rel};
use crate::plan::OutputColumn;

use super::record::Part;
use super::scope::Place;
use super::{Binder, Scope, ast, inner};

impl Binder<'_> {
    /// A set operation with its ORDER BY and LIMIT.
    pub(crate) fn set_operation(
        &mut self,
        stmt: &pb::SelectStmt,
        parent: Option<&Scope<'_>>,
        resolve: bool,
    ) -> Result<Query> {
        if !stmt.locking_clause.is_empty() {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "FOR UPDATE is not allowed with UNION/INTERSECT/EXCEPT"
            ));
        }
        let mut query = self.set_tree(stmt, parent)?;
        if resolve {
            self.resolve_output(&mut query)?;
        }
        self.order_and_limit(query, stmt, parent)
    }

    fn set_tree(&mut self, stmt: &pb::SelectStmt, parent: Option<&Scope<'_>>) -> Result<Query> {
        sched::check_stack()?;
        let (Some(larg), Some(rarg)) = (&stmt.larg, &stmt.rarg) else {
            return Err(err!(SYNTAX_ERROR, "set operation without two sides"));
        };
        let op = pb::SetOperation::try_from(stmt.op).unwrap_or(pb::SetOperation::Undefined);
        // A row that comes in a later round would take back what earlier rounds have given.
        let (of_left, of_right) = match op {
            pb::SetOperation::SetopIntersect if stmt.all => (Some("INTERSECT"), Some("INTERSECT")),
            pb::SetOperation::SetopExcept => (stmt.all.then_some("EXCEPT"), Some("EXCEPT")),
            _ => (None, None),
        };
        let left = self.not_recursive_in(of_left, |b| b.set_leaf(larg, parent))?;
        let right = self.not_recursive_in(of_right, |b| b.set_leaf(rarg, parent))?;
        self.combine(op, stmt.all, (left, larg), (right, rarg))
    }

    pub(crate) fn set_leaf(
        &mut self,
        stmt: &pb::SelectStmt,
        parent: Option<&Scope<'_>>,
    ) -> Result<Query> {
        let nested = stmt.op > pb::SetOperation::SetopNone as i32
            && stmt.sort_clause.is_empty()
            && stmt.limit_count.is_none()
            && stmt.limit_offset.is_none()
            && stmt.with_clause.is_none();
        if nested { self.set_tree(stmt, parent) } else { self.select(stmt, parent, false) }
    }

    pub(crate) fn combine(
        &mut self,
        op: pb::SetOperation,
        all: bool,
        (mut left, left_stmt): (Query, &pb::SelectStmt),
        (mut right, right_stmt): (Query, &pb::SelectStmt),
    ) -> Result<Query> {
        let name = match op {
            pb::SetOperation::SetopIntersect => "INTERSECT",
            pb::SetOperation::SetopExcept => "EXCEPT",
            _ => "UNION",
        };
        if left.cols.len() != right.cols.len() {
            return Err(err!(
                SYNTAX_ERROR,
                "each {name} query must have the same number of columns"
            )
            .at(self.at(leaf_location(right_stmt, 0))));
        }
        let mut types = Vec::with_capacity(left.cols.len());
        for (i, (l, r)) in left.output.iter().zip(&right.output).enumerate() {
            // Only an error names the place, and in a long chain it is far away.
            let place = |stmt| if l.ty == r.ty { 0 } else { self.at(leaf_location(stmt, i)) };
            let both = [(l.ty, place(left_stmt)), (r.ty, place(right_stmt))];
            types.push(self.common_type(&both, name)?);
        }
        if self.record.is_some() {
            self.note_types(left_stmt, &types)?;
            self.note_types(right_stmt, &types)?;
        }
        for (side, stmt) in [(&mut left, left_stmt), (&mut right, right_stmt)] {
            if side.output.iter().zip(&types).any(|(c, t)| c.ty != *t) {
                self.coerce_output(side, &types, name, self.at(leaf_location(stmt, 0)))?;
            }
        }
        let mut cols = Vec::with_capacity(types.len());
        let mut output = Vec::with_capacity(types.len());
        let ends: Vec<[crate::logical::Col; 2]> =
            left.cols.iter().zip(&right.cols).map(|(l, r)| [*l, *r]).collect();
        let bag = all && name == "UNION";
        if !bag {
            for (i, ty) in types.iter().enumerate() {
                if self.check_groupable(*ty, 0).is_err() {
                    self.check_groupable(*ty, self.at(leaf_location(left_stmt, i)))?;
                }
            }
        }
        for (((l, r), ty), ends) in left.output.iter().zip(&right.output).zip(&types).zip(ends) {
            let typmod = if l.typmod == r.typmod { l.typmod } else { -1 };
            let col = self.new_var(&l.name, *ty, typmod)?;
            self.set_collation(col, ends, bag)?;
            cols.push(col);
            output.push(OutputColumn {
                name: l.name.clone(),
                ty: *ty,
                typmod,
                table: Oid::INVALID,
                column: 0,
                collation: self.vars[usize::from(col)].collation,
            });
        }
        let left = Input { rel: left.rel, cols: left.cols };
        let right = Input { rel: right.rel, cols: right.cols };
        let rel = if name == "UNION" {
            let mut inputs = Vec::new();
            for input in [left, right] {
                self.branches(input, &cols, all, &mut inputs);
            }
            let append = Rel::Append { inputs, cols: cols.clone() };
            if all {
                append
            } else {
                let mut keys: Vec<Expr> = cols.iter().map(|c| self.column(*c)).collect();
                self.equal_values(&mut keys)?;
                Rel::Distinct { input: Box::new(append), keys, sorted: false }
            }
        } else {
            self.require_deterministic(&cols, name)?;
            Rel::SetOp {
                left: Box::new(left),
                right: Box::new(right),
                except: name == "EXCEPT",
                all,
                cols: cols.clone(),
            }
        };
        Ok(Query { rel, cols, output })
    }

    /// A side of a UNION with the columns `cols`, as branches of it: UNION ALL of UNION ALL is one list, and so is UNION
    /// of either, as duplicates go in the end.
    fn branches(&self, side: Input, cols: &[Col], all: bool, to: &mut Vec<Input>) {
        let collation = |c: &Col| &self.vars[usize::from(*c)].collation;
        let inner = match side.rel {
            Rel::Append { inputs, cols: own } if own == side.cols => inputs,
            Rel::Distinct { input, keys, sorted: false }
                if !all
                    && keys.len() == cols.len()
                    && side.cols.iter().map(collation).eq(cols.iter().map(collation)) =>
            {
                match *input {
                    Rel::Append { inputs, cols: own } if own == side.cols => inputs,
                    other => {
                        let rel = Rel::Distinct { input: Box::new(other), keys, sorted: false };
                        return to.push(Input { rel, cols: side.cols });
                    }
                }
            }
            rel => return to.push(Input { rel, cols: side.cols }),
        };
        if to.is_empty() {
            *to = inner;
        } else {
            to.extend(inner);
        }
    }

    /// Literals without a type in a side of a set operation are shown with the type that they get.
    fn note_types(&mut self, stmt: &pb::SelectStmt, types: &[Oid]) -> Result<()> {
        let Some(record) = &self.record else { return Ok(()) };
        let Some(select) = record.selects.get(&super::record::address(stmt)) else { return Ok(()) };
        let mut targets = select.targets.clone();
        for ((_, e), ty) in targets.iter_mut().zip(types) {
            if e.ty() == UNKNOWN && matches!(e, Expr::Const(..)) {
                let context = types::func::CastContext::Implicit;
                if let Some(typed) = self.coerce(e.clone(), *ty, context, 0)? {
                    *e = typed;
                }
            }
        }
        if let Some(record) = &mut self.record
            && let Some(select) = record.selects.get_mut(&super::record::address(stmt))
        {
            select.targets = targets;
        }
        Ok(())
    }

    /// Casts a query's output columns.
    pub(crate) fn coerce_output(
        &mut self,
        query: &mut Query,
        types: &[Oid],
        what: &str,
        position: u32,
    ) -> Result<()> {
        if query.output.iter().zip(types).all(|(c, t)| c.ty == *t) {
            return Ok(());
        }
        // Literals are cast where they stand.
        if let Rel::Project { exprs, set: false, .. } = &mut query.rel {
            let mut direct = Vec::new();
            for ((col, output), ty) in query.cols.iter().zip(&mut query.output).zip(types) {
                if output.ty != UNKNOWN || *ty == UNKNOWN {
                    continue;
                }
                if let Some(at) = exprs.iter().position(|(c, _)| c == col) {
                    direct.push((at, *col, *ty));
                    output.ty = *ty;
                }
            }
            for (at, col, ty) in direct {
                let e = exprs[at].1.clone();
                exprs[at].1 = self.to_common(e, ty, what, position)?;
                self.vars[usize::from(col)].ty = ty;
            }
        }
        if query.output.iter().zip(types).all(|(c, t)| c.ty == *t) {
            return Ok(());
        }
        let mut exprs = Vec::with_capacity(types.len());
        for ((col, output), ty) in query.cols.iter_mut().zip(&mut query.output).zip(types) {
            let cast = self.to_common(self.column(*col), *ty, what, position)?;
            *col = self.new_var(&output.name, *ty, -1)?;
            self.pass_collation(*col, &cast)?;
            if output.ty != *ty {
                output.ty = *ty;
                output.typmod = -1;
            }
            exprs.push((*col, cast));
        }
        let input = std::mem::replace(&mut query.rel, Rel::Nothing);
        query.rel = Rel::Project { input: Box::new(input), exprs, set: false };
        Ok(())
    }

    /// Output columns of no known type become text.
    pub(crate) fn resolve_output(&mut self, query: &mut Query) -> Result<()> {
        let types: Vec<Oid> =
            query.output.iter().map(|c| if c.ty == UNKNOWN { TEXT } else { c.ty }).collect();
        self.coerce_output(query, &types, "SELECT", 0)
    }

    /// ORDER BY and LIMIT over named output columns.
    pub(crate) fn order_and_limit(
        &mut self,
        mut query: Query,
        stmt: &pb::SelectStmt,
        parent: Option<&Scope<'_>>,
    ) -> Result<Query> {
        let mut keys = Vec::with_capacity(stmt.sort_clause.len());
        for node in &stmt.sort_clause {
            let Some(NodeEnum::SortBy(sort)) = &node.node else { continue };
            let Some(value) = inner(&sort.node) else { continue };
            let at = self.output_column(&query, value)?;
            let column = self.column(query.cols[at]);
            keys.push(self.sort_key(sort, column)?);
        }
        self.sort_values(&mut keys)?;
        let ties = keys.iter().map(|k| k.expr.clone()).collect();
        if !keys.is_empty() {
            query.rel = Rel::Sort { input: Box::new(query.rel), keys };
        }
        let limits = self.limits(stmt, &Scope::new(parent))?;
        query.rel = limits.over(query.rel, ties);
        Ok(query)
    }

    fn output_column(&self, query: &Query, node: &NodeEnum) -> Result<usize> {
        let position = self.at(ast::location(node));
        match node {
            NodeEnum::ColumnRef(c) if c.fields.len() == 1 => {
                let name = ast::string(&c.fields[0]);
                match query.output.iter().position(|o| o.name == name) {
                    Some(at) => Ok(at),
                    None => Err(err!(UNDEFINED_COLUMN, "column \"{name}\" does not exist")
                        .at(position)),
                }
            }
            NodeEnum::AConst(c) => match &c.val {
                Some(pb::a_const::Val::Ival(i)) => match usize::try_from(i.ival) {
                    Ok(n) if (1..=query.cols.len()).contains(&n) => Ok(n - 1),
                    _ => Err(err!(
                        INVALID_COLUMN_REFERENCE,
                        "ORDER BY position {} is not in select list",
                        i.ival
                    )
                    .at(position)),
                },
                _ => Err(err!(SYNTAX_ERROR, "non-integer constant in ORDER BY").at(position)),
            },
            _ => Err(err!(
                FEATURE_NOT_SUPPORTED,
                "invalid UNION/INTERSECT/EXCEPT ORDER BY clause"
            )
            .detail("Only result column names can be used, not expressions or functions.")
            .hint("Add the expression/function to every SELECT, or move the UNION into a FROM clause.")
            .at(position)),
        }
    }

    /// VALUES as a query.
    pub(crate) fn values(
        &mut self,
        stmt: &pb::SelectStmt,
        parent: Option<&Scope<'_>>,
        resolve: bool,
    ) -> Result<Query> {
        let scope = Scope::new(parent);
        scope.place.set(Place::Values);
        let mut rows: Vec<Vec<Expr>> = Vec::with_capacity(stmt.values_lists.len());
        for list in &stmt.values_lists {
            let row = self.expr_list(&scope, ast::list(list))?;
            if rows.first().is_some_and(|first| first.len() != row.len()) {
                let at = ast::list(list).first().map_or(-1, ast::location_of);
                return Err(
                    err!(SYNTAX_ERROR, "VALUES lists must all be the same length").at(self.at(at))
                );
            }
            rows.push(row);
        }
        let width = rows.first().map_or(0, Vec::len);
        let mut cols = Vec::with_capacity(width);
        let mut output = Vec::with_capacity(width);
        for i in 0..width {
            let types: Vec<(Oid, u32)> = rows
                .iter()
                .zip(&stmt.values_lists)
                .map(|(r, l)| (r[i].ty(), self.at(ast::location_of(&ast::list(l)[i]))))
                .collect();
            let all_unknown = types.iter().all(|(t, _)| *t == UNKNOWN);
            let ty =
                if all_unknown && !resolve { UNKNOWN } else { self.common_type(&types, "VALUES")? };
            let typmod = rows.first().map_or(-1, |r| self.typmod_of(&r[i]));
            let typmod =
                if rows.iter().all(|r| self.typmod_of(&r[i]) == typmod) { typmod } else { -1 };
            for (row, (_, position)) in rows.iter_mut().zip(&types) {
                if ty != UNKNOWN {
                    let e = std::mem::replace(&mut row[i], Expr::Row(Vec::new()));
                    row[i] = self.to_common(e, ty, "VALUES", *position)?;
                }
            }
            let name = format!("column{}", i + 1);
            let col = self.new_var(&name, ty, typmod)?;
            if self.collating {
                let column: Vec<Expr> = rows.iter().map(|r| r[i].clone()).collect();
                self.pass_collations(col, ty, &column)?;
            }
            cols.push(col);
            let collation = self.vars[usize::from(col)].collation;
            let (table, column) = (Oid::INVALID, 0);
            output.push(OutputColumn { name, ty, typmod, table, column, collation });
        }
        for (n, row) in rows.iter().enumerate() {
            self.note(stmt, Part::Row(n), row);
        }
        // One row is what a SELECT without FROM computes, and planned as that.
        let rel = match <[_; 1]>::try_from(rows) {
            Ok([row]) => Rel::Project {
                input: Box::new(Rel::OneRow),
                exprs: cols.iter().copied().zip(row).collect(),
                set: false,
            },
            Err(rows) => Rel::Values { cols: cols.clone(), rows },
        };
        self.order_and_limit(Query { rel, cols, output }, stmt, parent)
    }
}

/// Where the column number `i` of one side of a set operation stands.
pub(super) fn leaf_location(stmt: &pb::SelectStmt, i: usize) -> i32 {
    let mut first = stmt;
    while let Some(side) = &first.larg {
        first = side;
    }
    let value = |target: &pb::Node| match &target.node {
        Some(NodeEnum::ResTarget(t)) => inner(&t.val).map_or(t.location, ast::location),
        _ => -1,
    };
    if let Some(row) = first.values_lists.first() {
        return ast::list(row).get(i).map_or(-1, ast::location_of);
    }
    first.target_list.get(i).or(first.target_list.last()).map_or(-1, value)
}
