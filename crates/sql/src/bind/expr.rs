//! Expressions: one small method for each kind of node.

use base::{Oid, Result, err};
use pg_query::{NodeEnum, protobuf as pb};
use types::Datum;
use types::oids::*;

use crate::expr::{Expr, RowOp};
use crate::logical::TableRel;

use super::scope::Place;
use super::{Binder, Scope, ast, coerce, inner, operator, similar};

impl Binder<'_> {
    /// Binds a node of the tree.
    pub(crate) fn expr_node(&mut self, scope: &Scope<'_>, node: &pb::Node) -> Result<Expr> {
        match &node.node {
            Some(node) => self.expr(scope, node),
            None => Err(err!(SYNTAX_ERROR, "empty expression")),
        }
    }

    pub(super) fn expr_box(
        &mut self,
        scope: &Scope<'_>,
        node: &Option<Box<pb::Node>>,
    ) -> Result<Expr> {
        match inner(node) {
            Some(node) => self.expr(scope, node),
            None => Err(err!(SYNTAX_ERROR, "empty expression")),
        }
    }

    /// Binds an expression.
    ///
    /// # Errors
    /// Everything that names and types can be wrong about; `54001` nested too deeply.
    pub(crate) fn expr(&mut self, scope: &Scope<'_>, node: &NodeEnum) -> Result<Expr> {
        sched::check_stack()?;
        if self.depth >= super::depth_max() {
            return Err(crate::parse::too_complex());
        }
        self.depth += 1;
        let bound = self.expr_of(scope, node);
        self.depth -= 1;
        bound
    }

    fn expr_of(&mut self, scope: &Scope<'_>, node: &NodeEnum) -> Result<Expr> {
        match node {
            NodeEnum::AConst(c) => self.constant(c),
            NodeEnum::ColumnRef(c) if self.variables().is_some() => {
                self.column_or_variable(scope, c)
            }
            NodeEnum::ColumnRef(c) => self.column_ref(scope, c),
            NodeEnum::ParamRef(p) => self.param(p.number, p.location),
            NodeEnum::AExpr(e) => self.a_expr(scope, e),
            NodeEnum::BoolExpr(e) => self.bool_expr(scope, e),
            NodeEnum::TypeCast(c) => self.type_cast(scope, c),
            NodeEnum::FuncCall(c) => {
                let call = self.func_call(scope, c)?;
                Ok(operator::marked(call, c))
            }
            NodeEnum::NullTest(t) => {
                let arg = self.expr_box(scope, &t.arg)?;
                let arg = self.resolve_unknown(arg)?;
                let negated = t.nulltesttype == pb::NullTestType::IsNotNull as i32;
                Ok(Expr::IsNull { arg: Box::new(arg), negated })
            }
            NodeEnum::BooleanTest(t) => self.boolean_test(scope, t),
            NodeEnum::CaseExpr(c) => self.without_sets(scope, "CASE", |b| b.case(scope, c)),
            NodeEnum::CoalesceExpr(c) => self.without_sets(scope, "COALESCE", |b| {
                let args = b.coalesced(scope, &c.args)?;
                let (args, ty) = b.of_same_type(args, &c.args, "COALESCE")?;
                Ok(Expr::Coalesce(args, ty))
            }),
            NodeEnum::MinMaxExpr(m) => {
                let greatest = m.op == pb::MinMaxOp::IsGreatest as i32;
                let what = if greatest { "GREATEST" } else { "LEAST" };
                let (args, ty) = self.same_type(scope, &m.args, what)?;
                self.collated_extreme(greatest, args, ty)
            }
            NodeEnum::SubLink(s) => self.sublink(scope, s),
            NodeEnum::AArrayExpr(a) => self.array(scope, a, None),
            NodeEnum::AIndirection(i) => self.indirection(scope, i),
            NodeEnum::RowExpr(r) => {
                let fields = self.row_items(scope, &r.args)?;
                let fields =
                    fields.into_iter().map(|f| self.resolve_unknown(f)).collect::<Result<_>>()?;
                Ok(Expr::Row(fields))
            }
            NodeEnum::CollateClause(c) => self.collate(scope, c),
            NodeEnum::SqlvalueFunction(f) => self.sql_value(f),
            NodeEnum::SetToDefault(d) => {
                Err(err!(SYNTAX_ERROR, "DEFAULT is not allowed in this context")
                    .at(self.at(d.location)))
            }
            NodeEnum::GroupingFunc(g) => self.grouping_call(scope, g),
            other => Err(self.unsupported(&super::words::expression(other), ast::location(other))),
        }
    }

    /// Binds what may have no set-returning function in it.
    fn without_sets(
        &mut self,
        scope: &Scope<'_>,
        what: &str,
        bind: impl FnOnce(&mut Self) -> Result<Expr>,
    ) -> Result<Expr> {
        let (before, _) = scope.sets.get();
        let bound = bind(self)?;
        let (now, position) = scope.sets.get();
        if now > before {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "set-returning functions are not allowed in {what}"
            )
            .hint("You might be able to move the set-returning function into a LATERAL FROM item.")
            .at(position));
        }
        Ok(bound)
    }

    /// Binds several expressions; `t.*` among them is spread out.
    pub(crate) fn expr_list(&mut self, scope: &Scope<'_>, nodes: &[pb::Node]) -> Result<Vec<Expr>> {
        nodes.iter().map(|n| self.expr_node(scope, n)).collect()
    }

    /// The items of `ROW(…)`; `t.*` and `(row).*` among them are spread out.
    pub(super) fn row_items(&mut self, scope: &Scope<'_>, nodes: &[pb::Node]) -> Result<Vec<Expr>> {
        let mut out = Vec::with_capacity(nodes.len());
        for node in nodes {
            if !is_star(node) {
                out.push(self.expr_node(scope, node)?);
                continue;
            }
            // The name may be a column's, too (`x.*` of a function that is called x); the relation counts.
            let mut columns = Vec::new();
            if let Some(NodeEnum::ColumnRef(c)) = &node.node
                && self.star(scope, c, &mut columns).is_ok()
            {
                out.extend(columns.into_iter().map(|column| column.expr));
                continue;
            }
            let row = match &node.node {
                Some(NodeEnum::AIndirection(i)) => self.star_source(scope, i)?,
                _ => self.expr_node(scope, node)?,
            };
            let location = ast::location_of(node);
            out.extend(self.spread(row, location)?.into_iter().map(|(_, field)| field));
        }
        Ok(out)
    }

    /// The columns of a row value, each by its name.
    pub(crate) fn spread(&mut self, row: Expr, location: i32) -> Result<Vec<(types::Text, Expr)>> {
        let Some(columns) = super::from::columns_of_row(&row, &self.vars) else {
            return Err(err!(
                WRONG_OBJECT_TYPE,
                "type {} is not composite",
                types::io::format_type(row.ty(), -1)
            )
            .at(self.at(location)));
        };
        let field = |(at, (name, ty)): (usize, (types::Text, Oid))| {
            (name, self.field_at(row.clone(), at, ty))
        };
        Ok(columns.into_iter().enumerate().map(field).collect())
    }

    fn constant(&mut self, c: &pb::AConst) -> Result<Expr> {
        use pb::a_const::Val;
        if let Some(param) = self.lift_literal(c) {
            return Ok(param);
        }
        match &c.val {
            _ if c.isnull => Ok(Expr::Const(Datum::Null, UNKNOWN)),
            None => Ok(Expr::Const(Datum::Int4(0), INT4)),
            Some(Val::Ival(i)) => Ok(Expr::Const(Datum::Int4(i.ival), INT4)),
            Some(Val::Boolval(b)) => Ok(Expr::Const(Datum::Bool(b.boolval), BOOL)),
            Some(Val::Sval(s)) => Ok(Expr::Const(Datum::Text(s.sval.as_str().into()), UNKNOWN)),
            Some(Val::Fval(f)) => self.number(&f.fval, c.location),
            Some(Val::Bsval(b)) => self.literal(&b.bsval, BIT, self.at(c.location)),
        }
    }

    /// A number that the grammar didn't take for an int4.
    fn number(&mut self, text: &str, location: i32) -> Result<Expr> {
        let plain = text.replace('_', "");
        if let Ok(value) = plain.parse::<i32>() {
            return Ok(Expr::Const(Datum::Int4(value), INT4));
        }
        if let Ok(value) = plain.parse::<i64>() {
            return Ok(Expr::Const(Datum::Int8(value), INT8));
        }
        self.literal(&plain, NUMERIC, self.at(location))
    }

    pub(super) fn column_ref(&mut self, scope: &Scope<'_>, c: &pb::ColumnRef) -> Result<Expr> {
        let position = self.at(c.location);
        if matches!(c.fields.last().and_then(|f| f.node.as_ref()), Some(NodeEnum::AStar(_))) {
            let names = ast::strings(&c.fields[..c.fields.len() - 1]);
            let (schema, table) = ast::qualified(&names);
            if let Some(row) = self.variable_row(scope, &names, c.location)? {
                return Ok(row);
            }
            if names.is_empty() {
                return Err(err!(SYNTAX_ERROR, "row expansion via \"*\" is not supported here")
                    .at(position));
            }
            return self.whole_row(scope, schema, table, c.location);
        }
        if scope.place.get() == Place::Default {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "cannot use column reference in DEFAULT expression"
            )
            .at(position));
        }
        let names = ast::strings(&c.fields);
        if names.len() > 3 && names[0] != self.cx.database {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "cross-database references are not implemented: {}",
                names.join(".")
            )
            .at(position));
        }
        match names.as_slice() {
            [name] => {
                if let Some(expr) = self.find_column(scope, name, c.location)? {
                    return Ok(expr);
                }
                if self.find_item(scope, None, name, c.location)?.is_some() {
                    return self.whole_row(scope, None, name, c.location);
                }
                if let Some(expr) = self.parameter_named(&names) {
                    return Ok(expr);
                }
                let error = err!(UNDEFINED_COLUMN, "column \"{name}\" does not exist");
                Err(similar::hint(scope, None, name, error).at(position))
            }
            [table, name] => {
                if (self.cx.arguments.is_some() || !self.inlining.is_empty())
                    && self.find_item(scope, None, table, c.location)?.is_none()
                    && let Some(expr) = self.parameter_named(&names)
                {
                    return Ok(expr);
                }
                self.qualified_or_attribute(scope, (None, table), name, c.location)
            }
            [database, _, _, _] if *database != self.cx.database => Err(err!(
                FEATURE_NOT_SUPPORTED,
                "cross-database references are not implemented: {}",
                names.join(".")
            )
            .at(position)),
            [_, _, _, _, _, ..] => Err(err!(
                SYNTAX_ERROR,
                "improper qualified name (too many dotted names): {}",
                names.join(".")
            )
            .at(position)),
            [.., schema, table, name] => {
                if (self.cx.arguments.is_some() || !self.inlining.is_empty())
                    && self.find_item(scope, Some(schema), table, c.location)?.is_none()
                    && let Some(expr) = self.parameter_named(&names)
                {
                    return Ok(expr);
                }
                self.qualified_or_attribute(scope, (Some(schema), table), name, c.location)
            }
            [] => Err(err!(SYNTAX_ERROR, "empty column reference").at(position)),
        }
    }

    /// A relation's column, or a function of its row in the place of one.
    fn qualified_or_attribute(
        &mut self,
        scope: &Scope<'_>,
        (schema, table): (Option<&str>, &str),
        name: &str,
        location: i32,
    ) -> Result<Expr> {
        match self.find_qualified(scope, schema, table, name, location) {
            Err(error) if error.code() == base::sqlstate::UNDEFINED_COLUMN => {
                let call = self.attribute_of(scope, (schema, table), name, location)?;
                call.ok_or(error)
            }
            found => found,
        }
    }

    pub(super) fn whole_row(
        &mut self,
        scope: &Scope<'_>,
        schema: Option<&str>,
        table: &str,
        location: i32,
    ) -> Result<Expr> {
        match self.find_item(scope, schema, table, location)? {
            // A function's one value is the row itself.
            Some(item) if item.oid == super::scope::SCALAR_FUNCTION => {
                Ok(item.columns[0].expr.clone())
            }
            Some(item) => {
                let values = item.columns.iter().map(|c| c.expr.clone()).collect();
                let columns = item.columns.iter();
                let columns = columns.map(|c| (c.name.as_str().into(), c.expr.ty())).collect();
                let row_type = item.table.as_ref().map_or(0, |t| t.table.row_type[0]);
                let row = match types::user::shape(Oid(row_type)) {
                    // A column alias renames nothing in the row's type.
                    Some(shape) if shape.columns.len() == item.columns.len() => {
                        typed_row(values, shape)
                    }
                    _ => shaped_row(values, columns),
                };
                let ctid = |table: &TableRel| table.col(crate::plan::ScanColumn::Tid);
                let witness = item.table.as_ref().map(ctid).or(item.witness);
                let row = match witness.filter(|_| item.nullable) {
                    Some(witness) => {
                        let witness = Box::new(self.column(witness));
                        let test = Expr::IsNull { arg: witness, negated: false };
                        let (ty, null) = (row.ty(), Expr::Const(Datum::Null, row.ty()));
                        let arms = vec![(test, null)];
                        Expr::Case { operand: None, arms, default: Box::new(row), ty }
                    }
                    None => row,
                };
                item.columns.iter().for_each(|c| self.note_column(c));
                Ok(row)
            }
            None => Err(self.missing_from(scope, schema, table, location)),
        }
    }

    fn a_expr(&mut self, scope: &Scope<'_>, e: &pb::AExpr) -> Result<Expr> {
        use pb::AExprKind as K;
        let kind = K::try_from(e.kind).unwrap_or(K::Undefined);
        let position = self.at(e.location);
        let names = ast::strings(&e.name);
        ast::check_database(&names, self.cx.database, false).map_err(|e| e.at(position))?;
        let (schema, name) = ast::qualified(&names);
        let path = operator::OperatorPath { schema, name };
        match kind {
            K::AexprOp | K::AexprLike | K::AexprIlike | K::AexprSimilar => {
                self.operator_expr(scope, e, path, position)
            }
            K::AexprOpAny | K::AexprOpAll => {
                let left = self.expr_box(scope, &e.lexpr)?;
                let right = self.expr_box(scope, &e.rexpr)?;
                self.array_operator(path, left, right, kind == K::AexprOpAll, position)
            }
            K::AexprDistinct | K::AexprNotDistinct => {
                let left = self.expr_box(scope, &e.lexpr)?;
                let right = self.expr_box(scope, &e.rexpr)?;
                let (equal, left, right) = self.compare("=", left, right, position)?;
                let args = Box::new([left, right]);
                Ok(Expr::Distinct { equal, args, negated: kind == K::AexprNotDistinct })
            }
            K::AexprNullif => {
                let left = self.expr_box(scope, &e.lexpr)?;
                let right = self.expr_box(scope, &e.rexpr)?;
                self.null_if(left, right, position)
            }
            K::AexprIn => self.in_list(scope, e, name == "<>", position),
            K::AexprBetween | K::AexprNotBetween | K::AexprBetweenSym | K::AexprNotBetweenSym => {
                self.between(scope, e, kind, position)
            }
            K::Undefined => Err(self.unsupported("this operator", e.location)),
        }
    }

    fn operator_expr(
        &mut self,
        scope: &Scope<'_>,
        e: &pb::AExpr,
        path: operator::OperatorPath<'_>,
        position: u32,
    ) -> Result<Expr> {
        let name = path.name;
        let Some(left) = inner(&e.lexpr) else {
            let right = self.expr_box(scope, &e.rexpr)?;
            return self.prefix(path, right, position);
        };
        let Some(right) = inner(&e.rexpr) else {
            return Err(err!(SYNTAX_ERROR, "postfix operators are not supported").at(position));
        };
        if let (NodeEnum::RowExpr(l), NodeEnum::RowExpr(r)) = (left, right) {
            let left = self.expr_list(scope, &l.args)?;
            let right = self.expr_list(scope, &r.args)?;
            return self.compare_rows(name, left, right, position);
        }
        if let (NodeEnum::RowExpr(row), NodeEnum::SubLink(link)) = (left, right)
            && link.sub_link_type == pb::SubLinkType::ExprSublink as i32
            && let Some(NodeEnum::SelectStmt(select)) = inner(&link.subselect)
        {
            return self.compare_row_query(scope, name, row, (link, select), position);
        }
        let left = self.expr(scope, left)?;
        let right = self.expr(scope, right)?;
        if let (Expr::Row(l), Expr::Row(r)) = (&left, &right) {
            return self.compare_rows(name, l.clone(), r.clone(), position);
        }
        self.binary(path, left, right, position)
    }

    /// `(a, b) op (SELECT …)`.
    fn compare_row_query(
        &mut self,
        scope: &Scope<'_>,
        name: &str,
        row: &pb::RowExpr,
        (link, select): (&pb::SubLink, &pb::SelectStmt),
        position: u32,
    ) -> Result<Expr> {
        super::sublink::refuse(scope, position)?;
        let left = self.expr_list(scope, &row.args)?;
        let width = self.width_of(scope, select)?;
        if left.len() != width {
            let word = if width > left.len() { "many" } else { "few" };
            return Err(
                err!(SYNTAX_ERROR, "subquery has too {word} columns").at(self.at(link.location))
            );
        }
        if self.unfolded {
            return self.row_query_as_written(scope, (name, position), left, select);
        }
        let right = (0..width).map(|at| self.one_column_query(scope, select, at));
        let right = right.collect::<Result<Vec<Expr>>>()?;
        self.compare_rows(name, left, right, position)
    }

    /// `(a, b) op (c, d)`.
    pub(crate) fn compare_rows(
        &mut self,
        name: &str,
        left: Vec<Expr>,
        right: Vec<Expr>,
        position: u32,
    ) -> Result<Expr> {
        let op = match name {
            "=" => RowOp::Eq,
            "<>" => RowOp::Ne,
            "<" => RowOp::Lt,
            "<=" => RowOp::Le,
            ">" => RowOp::Gt,
            ">=" => RowOp::Ge,
            _ => {
                return Err(err!(
                    FEATURE_NOT_SUPPORTED,
                    "could not determine interpretation of row comparison operator {name}"
                )
                .at(position));
            }
        };
        if left.len() != right.len() {
            return Err(
                err!(SYNTAX_ERROR, "unequal number of entries in row expressions").at(position)
            );
        }
        if left.is_empty() {
            return Err(
                err!(FEATURE_NOT_SUPPORTED, "cannot compare rows of zero length").at(position)
            );
        }
        let mut fields = Vec::with_capacity(left.len());
        let mut each = Vec::new();
        for (l, r) in left.into_iter().zip(right) {
            self.pin(&l);
            self.pin(&r);
            if matches!(op, RowOp::Eq | RowOp::Ne) {
                let (function, l, r) = self.compare(name, l, r, position)?;
                each.push(Expr::Call { function, args: Box::new([l, r]), ty: BOOL, position });
                continue;
            }
            // What is compared by keys is so for both.
            let (less, l, r) = self.compare("<", l, r, position)?;
            let (equal, l, r) = self.compare("=", l, r, position)?;
            fields.push((l, r, equal, less));
        }
        // Rows are equal where all their fields are.
        Ok(match op {
            _ if each.len() == 1 => each.remove(0),
            RowOp::Eq => Expr::And(each),
            RowOp::Ne => Expr::Or(each),
            _ => Expr::RowCompare { op, fields },
        })
    }

    fn in_list(
        &mut self,
        scope: &Scope<'_>,
        e: &pb::AExpr,
        negated: bool,
        position: u32,
    ) -> Result<Expr> {
        let empty = Vec::new();
        let nodes = match inner(&e.rexpr) {
            Some(NodeEnum::List(list)) => &list.items,
            _ => &empty,
        };
        let name = if negated { "<>" } else { "=" };
        if let Some(NodeEnum::RowExpr(row)) = inner(&e.lexpr) {
            // Literals in rows take the type of what they are compared with.
            let left = Expr::Row(self.expr_list(scope, &row.args)?);
            let mut items = Vec::with_capacity(nodes.len());
            for node in nodes {
                items.push(match &node.node {
                    Some(NodeEnum::RowExpr(row)) => Expr::Row(self.expr_list(scope, &row.args)?),
                    Some(node) => self.expr(scope, node)?,
                    None => continue,
                });
            }
            return self.in_rows(left, items, negated, position);
        }
        let left = self.expr_box(scope, &e.lexpr)?;
        self.pin(&left);
        let items = self.expr_list(scope, nodes)?;
        if let Expr::Row(_) = &left {
            return self.in_rows(left, items, negated, position);
        }
        // What varies with the row is compared one by one, the rest as one array.
        let (varying, fixed): (Vec<_>, Vec<_>) =
            items.into_iter().partition(crate::walk::has_columns);
        let mut tests = Vec::with_capacity(varying.len() + 1);
        let mut separate = varying;
        if fixed.len() > 1 {
            let types: Vec<(Oid, u32)> =
                std::iter::once(&left).chain(&fixed).map(|x| (x.ty(), position)).collect();
            let array = match self.try_common_type(&types) {
                Ok(ty) => (coerce::array_of(ty) != Oid::INVALID).then_some(ty),
                Err(_) => None,
            };
            match array {
                Some(ty) => {
                    let mut cast = Vec::with_capacity(fixed.len());
                    for item in fixed {
                        cast.push(self.to_common(item, ty, "IN", position)?);
                    }
                    let array = self.array_of_items(cast, ty);
                    tests.push(self.array_operator(
                        name,
                        left.clone(),
                        array,
                        negated,
                        position,
                    )?);
                }
                None => separate.extend(fixed),
            }
        } else {
            separate.extend(fixed);
        }
        for item in separate {
            tests.push(self.binary(name, left.clone(), item, position)?);
        }
        Ok(combine(tests, negated))
    }

    fn in_rows(
        &mut self,
        left: Expr,
        items: Vec<Expr>,
        negated: bool,
        position: u32,
    ) -> Result<Expr> {
        let Expr::Row(fields) = left else {
            return Err(err!(INTERNAL_ERROR, "row expected"));
        };
        let mut tests = Vec::with_capacity(items.len());
        for item in items {
            let Expr::Row(other) = item else {
                return Err(
                    err!(SYNTAX_ERROR, "unequal number of entries in row expressions").at(position)
                );
            };
            let name = if negated { "<>" } else { "=" };
            tests.push(self.compare_rows(name, fields.clone(), other, position)?);
        }
        Ok(combine(tests, negated))
    }

    /// `ARRAY[items]` of items of one type; a constant if all are.
    pub(crate) fn array_of_items(&mut self, items: Vec<Expr>, element: Oid) -> Expr {
        let ty = coerce::array_of(element);
        let constants: Option<Vec<Datum>> = items
            .iter()
            .map(|i| match i {
                Expr::Const(value, _) => Some(value.clone()),
                _ => None,
            })
            .collect();
        match constants.filter(|_| !self.unfolded) {
            Some(items) => Expr::Const(array_datum(element, items), ty),
            None => Expr::Array { items, element, ty, nested: false },
        }
    }

    fn between(
        &mut self,
        scope: &Scope<'_>,
        e: &pb::AExpr,
        kind: pb::AExprKind,
        position: u32,
    ) -> Result<Expr> {
        use pb::AExprKind as K;
        let value = self.expr_box(scope, &e.lexpr)?;
        let bounds = match inner(&e.rexpr) {
            Some(NodeEnum::List(list)) => self.expr_list(scope, &list.items)?,
            _ => Vec::new(),
        };
        let Ok([low, high]) = <[Expr; 2]>::try_from(bounds) else {
            return Err(err!(SYNTAX_ERROR, "BETWEEN needs two bounds").at(position));
        };
        for part in [&value, &low, &high] {
            if self.expands && crate::walk::has_set(part) {
                return Err(
                    err!(DATATYPE_MISMATCH, "argument of AND must not return a set").at(position)
                );
            }
            self.pin(part);
        }
        let negated = matches!(kind, K::AexprNotBetween | K::AexprNotBetweenSym);
        let symmetric = matches!(kind, K::AexprBetweenSym | K::AexprNotBetweenSym);
        let plain = self.between_once(&value, &low, &high, negated, position)?;
        if !symmetric {
            return Ok(plain);
        }
        let swapped = self.between_once(&value, &high, &low, negated, position)?;
        Ok(if negated { and(vec![plain, swapped]) } else { or(vec![plain, swapped]) })
    }

    fn between_once(
        &mut self,
        value: &Expr,
        low: &Expr,
        high: &Expr,
        negated: bool,
        position: u32,
    ) -> Result<Expr> {
        let (first, second) = if negated { ("<", ">") } else { (">=", "<=") };
        let mut compare = |name, bound: &Expr| match (value, bound) {
            (Expr::Row(value), Expr::Row(bound)) => {
                self.compare_rows(name, value.clone(), bound.clone(), position)
            }
            _ => self.binary(name, value.clone(), bound.clone(), position),
        };
        let (a, b) = (compare(first, low)?, compare(second, high)?);
        Ok(if negated { or(vec![a, b]) } else { and(vec![a, b]) })
    }

    fn bool_expr(&mut self, scope: &Scope<'_>, e: &pb::BoolExpr) -> Result<Expr> {
        let (what, and_op) = match pb::BoolExprType::try_from(e.boolop) {
            Ok(pb::BoolExprType::AndExpr) => ("AND", true),
            Ok(pb::BoolExprType::OrExpr) => ("OR", false),
            _ => {
                // A loop, as there may be thousands of them before one operand.
                let (mut arg, mut count) = (e.args.first(), 1);
                while let Some(NodeEnum::BoolExpr(inner)) = arg.and_then(|arg| arg.node.as_ref())
                    && inner.boolop == pb::BoolExprType::NotExpr as i32
                {
                    (arg, count) = (inner.args.first(), count + 1);
                }
                // What walks over the tree elsewhere is no loop.
                if self.depth + count >= super::depth_max() {
                    return Err(crate::parse::too_complex());
                }
                let Some(arg) = arg else {
                    return Err(err!(SYNTAX_ERROR, "NOT needs an argument"));
                };
                let position = self.at(ast::location_of(arg));
                let bound = self.expr_node(scope, arg)?;
                let bound = self.boolean(bound, "NOT", position)?;
                return Ok((0..count).fold(bound, |bound, _| not(bound)));
            }
        };
        let mut args: Vec<Expr> = Vec::with_capacity(e.args.len());
        let mut decided = false;
        for arg in &e.args {
            let position = self.at(ast::location_of(arg));
            // A constant before it may decide.
            decided |= args.last().is_some_and(|arg| self.is_of_constants(arg));
            let bound = match args.is_empty() {
                true => self.expr_node(scope, arg)?,
                false => self.reached_if(decided, |b| b.expr_node(scope, arg))?,
            };
            args.push(self.boolean(bound, what, position)?);
        }
        Ok(if and_op { and(args) } else { or(args) })
    }

    fn boolean_test(&mut self, scope: &Scope<'_>, t: &pb::BooleanTest) -> Result<Expr> {
        use pb::BoolTestType as T;
        let (is, negated, what) = match T::try_from(t.booltesttype) {
            Ok(T::IsTrue) => (Some(true), false, "IS TRUE"),
            Ok(T::IsNotTrue) => (Some(true), true, "IS NOT TRUE"),
            Ok(T::IsFalse) => (Some(false), false, "IS FALSE"),
            Ok(T::IsNotFalse) => (Some(false), true, "IS NOT FALSE"),
            Ok(T::IsUnknown) => (None, false, "IS UNKNOWN"),
            _ => (None, true, "IS NOT UNKNOWN"),
        };
        let position = inner(&t.arg).map_or(0, |n| self.at(ast::location(n)));
        let arg = self.expr_box(scope, &t.arg)?;
        let arg = self.boolean(arg, what, position)?;
        Ok(Expr::BooleanTest { arg: Box::new(arg), is, negated })
    }

    fn same_type(
        &mut self,
        scope: &Scope<'_>,
        nodes: &[pb::Node],
        what: &str,
    ) -> Result<(Vec<Expr>, Oid)> {
        let args = self.expr_list(scope, nodes)?;
        self.of_same_type(args, nodes, what)
    }

    /// Arguments cast to what they have in common.
    fn of_same_type(
        &mut self,
        args: Vec<Expr>,
        nodes: &[pb::Node],
        what: &str,
    ) -> Result<(Vec<Expr>, Oid)> {
        let places: Vec<u32> = nodes.iter().map(|n| self.at(ast::location_of(n))).collect();
        let types: Vec<(Oid, u32)> = args.iter().zip(&places).map(|(a, p)| (a.ty(), *p)).collect();
        let ty = self.common_type(&types, what)?;
        let mut out = Vec::with_capacity(args.len());
        for (arg, place) in args.into_iter().zip(places) {
            out.push(self.to_common(arg, ty, what, place)?);
        }
        Ok((out, ty))
    }

    fn type_cast(&mut self, scope: &Scope<'_>, c: &pb::TypeCast) -> Result<Expr> {
        let Some(name) = &c.type_name else {
            return Err(err!(SYNTAX_ERROR, "cast without a type"));
        };
        let (ty, typmod) = self.type_name(name)?;
        self.note_type_collation(ty);
        let position = self.at(c.location);
        let Some(arg) = inner(&c.arg) else {
            return Err(err!(SYNTAX_ERROR, "cast of nothing"));
        };
        let arg_position = self.at(ast::location(arg));
        let bound = match arg {
            // One whose meaning hangs on catalogs or settings is part of the statement's shape.
            NodeEnum::AConst(_) if typmod != -1 || !is_plain(ty) => {
                self.holding(|b| b.expr(scope, arg))?
            }
            NodeEnum::AArrayExpr(a) if coerce::element_of(ty) != Oid::INVALID => {
                self.array(scope, a, Some((coerce::element_of(ty), typmod)))?
            }
            _ => self.expr(scope, arg)?,
        };
        self.explicit_cast(bound, ty, typmod, position, arg_position)
    }

    /// `ARRAY[…]`, with the element type if a cast around it says so.
    fn array(
        &mut self,
        scope: &Scope<'_>,
        a: &pb::AArrayExpr,
        element: Option<(Oid, i32)>,
    ) -> Result<Expr> {
        sched::check_stack()?;
        let position = self.at(a.location);
        let mut items = Vec::with_capacity(a.elements.len());
        let mut types = Vec::with_capacity(a.elements.len());
        let mut nested = false;
        for node in &a.elements {
            let item = match &node.node {
                Some(NodeEnum::AArrayExpr(sub)) => {
                    nested = true;
                    self.array(scope, sub, element)?
                }
                _ => self.expr_node(scope, node)?,
            };
            // A domain over arrays is an element like any other.
            nested |= coerce::base_of(item.ty()) == item.ty()
                && coerce::element_of(item.ty()) != Oid::INVALID;
            types.push((item.ty(), self.at(ast::location_of(node))));
            items.push(item);
        }
        if nested {
            return self.array_of_arrays(items, &types, element.map(|(ty, _)| ty));
        }
        let ty = match element {
            Some((ty, _)) => ty,
            None if items.is_empty() => {
                return Err(err!(INDETERMINATE_DATATYPE, "cannot determine type of empty array")
                    .hint("Explicitly cast to the desired type, for example ARRAY[]::integer[].")
                    .at(position));
            }
            None => self.common_type(&types, "ARRAY")?,
        };
        if coerce::array_of(ty) == Oid::INVALID {
            return Err(err!(
                UNDEFINED_OBJECT,
                "could not find array type for data type {}",
                types::io::format_type(ty, -1)
            )
            .at(position));
        }
        let mut out = Vec::with_capacity(items.len());
        for (item, (_, at)) in items.into_iter().zip(&types) {
            out.push(match element {
                Some((_, typmod)) => self.explicit_cast(item, ty, typmod, *at, *at)?,
                None => self.to_common(item, ty, "ARRAY", *at)?,
            });
        }
        Ok(self.array_of_items(out, ty))
    }

    /// `ARRAY[…]` of arrays: one dimension more.
    fn array_of_arrays(
        &mut self,
        items: Vec<Expr>,
        types: &[(Oid, u32)],
        element: Option<Oid>,
    ) -> Result<Expr> {
        let ty = match element {
            Some(element) => coerce::array_of(element),
            None => self.common_type(types, "ARRAY")?,
        };
        let inside = coerce::element_of(ty);
        if inside == Oid::INVALID {
            return Err(err!(
                UNDEFINED_OBJECT,
                "could not find element type for data type {}",
                types::io::format_type(ty, -1)
            )
            .at(types[0].1));
        }
        let mut out = Vec::with_capacity(items.len());
        for (item, (_, at)) in items.into_iter().zip(types) {
            out.push(match element {
                Some(_) => self.explicit_cast(item, ty, -1, *at, *at)?,
                None => self.to_common(item, ty, "ARRAY", *at)?,
            });
        }
        Ok(Expr::Array { items: out, element: inside, ty, nested: true })
    }

    /// `(row).name`.
    pub(super) fn field(&mut self, row: Expr, name: &str, location: i32) -> Result<Expr> {
        let columns = super::from::columns_of_row(&row, &self.vars);
        let Some(columns) = columns else {
            if row.ty() == RECORD && matches!(row, Expr::Column(..)) {
                base::bail!(WRONG_OBJECT_TYPE, "record type has not been registered");
            }
            let error = match row.ty() {
                RECORD => {
                    err!(
                        UNDEFINED_COLUMN,
                        "could not identify column \"{name}\" in record data type"
                    )
                }
                ty => err!(
                    WRONG_OBJECT_TYPE,
                    "column notation .{name} applied to type {}, which is not a composite type",
                    types::io::format_type(ty, -1)
                ),
            };
            return Err(error.at(self.at(location)));
        };
        let Some(at) = columns.iter().position(|(column, _)| column == name) else {
            let error = match row.ty() {
                RECORD => {
                    err!(
                        UNDEFINED_COLUMN,
                        "could not identify column \"{name}\" in record data type"
                    )
                }
                ty => err!(
                    UNDEFINED_COLUMN,
                    "column \"{name}\" not found in data type {}",
                    types::io::format_type(ty, -1)
                ),
            };
            return Err(error.at(self.at(location)));
        };
        Ok(self.field_at(row, at, columns[at].1))
    }

    /// A field by its number, from 0.
    pub(crate) fn field_at(&self, row: Expr, at: usize, ty: Oid) -> Expr {
        if let Some(fields) = coerce::row_fields(&row)
            && let Some(field) = fields.get(at)
            && !fields.iter().any(crate::walk::is_volatile)
        {
            return field.clone();
        }
        let args = vec![row, Expr::Const(Datum::Int4(at as i32), INT4)];
        self.call(&types::func::internal::FIELD, args, ty, 0)
    }

    fn collate(&mut self, scope: &Scope<'_>, c: &pb::CollateClause) -> Result<Expr> {
        // A loop, as there may be thousands of them behind one operand. Only the last one counts, but those before
        // it must exist.
        let mut clauses = vec![c];
        let mut arg = &c.arg;
        while let Some(NodeEnum::CollateClause(before)) = inner(arg) {
            clauses.push(before);
            arg = &before.arg;
        }
        // What walks over the tree elsewhere is no loop.
        if self.depth + clauses.len() >= super::depth_max() {
            return Err(crate::parse::too_complex());
        }
        // A literal stays one of no type: what stands around it says which it has.
        let mut arg = self.expr_box(scope, arg)?;
        let ty = arg.ty();
        let mut collation = 0;
        for clause in clauses.into_iter().rev() {
            if ty != UNKNOWN {
                self.check_collatable(ty, clause.location)?;
            }
            collation = self.collation(clause)?;
        }
        self.collating = true;
        if let Expr::Collate(below, ..) = arg {
            arg = *below;
        }
        Ok(Expr::Collate(Box::new(arg), collation, self.at(c.location)))
    }

    /// `42804` for a type that has no collation.
    pub(crate) fn check_collatable(&self, ty: Oid, location: i32) -> Result<()> {
        let element = types::TypeIo::array_element(ty).unwrap_or(ty);
        if types::TypeIo::get(element).is_some_and(|io| io.category == b'S') || element == UNKNOWN {
            return Ok(());
        }
        Err(err!(
            DATATYPE_MISMATCH,
            "collations are not supported by type {}",
            types::io::format_type(ty, -1)
        )
        .at(self.at(location)))
    }

    fn sql_value(&mut self, f: &pb::SqlValueFunction) -> Result<Expr> {
        use pb::SqlValueFunctionOp as F;
        let (name, ty) = match F::try_from(f.op) {
            Ok(F::SvfopCurrentDate) => ("current_date", DATE),
            Ok(F::SvfopCurrentTimestamp | F::SvfopCurrentTimestampN) => {
                ("current_timestamp", TIMESTAMPTZ)
            }
            Ok(F::SvfopLocaltimestamp | F::SvfopLocaltimestampN) => ("localtimestamp", TIMESTAMP),
            Ok(F::SvfopLocaltime | F::SvfopLocaltimeN) => ("localtime", TIME),
            Ok(F::SvfopCurrentTime | F::SvfopCurrentTimeN) => ("current_time", TIMETZ),
            Ok(F::SvfopCurrentRole) => ("current_role", NAME),
            Ok(F::SvfopCurrentUser) => ("current_user", NAME),
            Ok(F::SvfopUser) => ("user", NAME),
            Ok(F::SvfopSessionUser) => ("session_user", NAME),
            Ok(F::SvfopCurrentCatalog) => ("current_catalog", NAME),
            Ok(F::SvfopCurrentSchema) => ("current_schema", NAME),
            _ => return Err(self.unsupported("this value of SQL", f.location)),
        };
        let value = Expr::SessionValue(name.into(), ty);
        if f.typmod >= 0 && matches!(ty, TIMESTAMP | TIMESTAMPTZ | TIME | TIMETZ) {
            return self.with_typmod(value, f.typmod, true, self.at(f.location));
        }
        Ok(value)
    }

    /// Binds a condition of WHERE, HAVING, ON.
    pub(crate) fn condition(
        &mut self,
        scope: &Scope<'_>,
        node: &NodeEnum,
        place: Place,
    ) -> Result<Expr> {
        scope.place.set(place);
        let position = self.at(ast::location(node));
        let bound = self.expr(scope, node)?;
        let what = match place {
            Place::JoinOn => "JOIN/ON",
            Place::Check => "CHECK",
            Place::When | Place::TriggerWhen => "WHEN",
            Place::Policy => "POLICY",
            Place::PublicationWhere => "PUBLICATION WHERE",
            other => other.name(),
        };
        self.boolean(bound, what, position)
    }

    /// `=` of two expressions, for USING and the like.
    pub(crate) fn equals(&mut self, left: Expr, right: Expr, position: u32) -> Result<Expr> {
        self.binary("=", left, right, position)
    }

    /// Whether it is a type that an extension brings with an order.
    fn has_own_order(&self, ty: Oid) -> bool {
        let base = types::user::base_type(ty, -1).0;
        types::user::is_user(base)
            && self.cx.catalog.operator_classes().any(|c| c.usable && c.input == base.0)
    }

    /// Whether values of a type can be told apart (those of json can't).
    ///
    /// # Errors
    /// `42883`.
    pub(crate) fn check_groupable(&self, ty: Oid, position: u32) -> Result<()> {
        let mut inner = ty;
        while coerce::element_of(inner) != Oid::INVALID {
            inner = coerce::element_of(inner);
        }
        // The `=` of geometric types compares sizes, and belongs to no class.
        let geometric = types::TypeIo::get(inner).is_some_and(|t| t.category == b'G');
        let known = || !geometric && operator::comparison("=", inner).is_some();
        if inner == RECORD || inner == UNKNOWN || known() || self.has_own_order(inner) {
            return Ok(());
        }
        let name = types::io::format_type(ty, -1);
        Err(err!(UNDEFINED_FUNCTION, "could not identify an equality operator for type {name}")
            .at(position))
    }

    /// Whether a type has an order.
    pub(crate) fn check_sortable(&self, ty: Oid, position: u32) -> Result<()> {
        let sortable = coerce::element_of(ty) != Oid::INVALID
            || ty == RECORD
            || self.has_own_order(ty)
            || operator::comparison("<", ty).is_some()
                && types::TypeIo::get(ty).is_none_or(|t| t.category != b'G');
        if sortable {
            return Ok(());
        }
        let name = types::io::format_type(ty, -1);
        Err(err!(UNDEFINED_FUNCTION, "could not identify an ordering operator for type {name}")
            .hint("Use an explicit ordering operator or modify the query.")
            .at(position))
    }
}

/// A row whose columns have names.
pub(crate) fn shaped_row(values: Vec<Expr>, columns: Vec<(types::Text, Oid)>) -> Expr {
    let nulls = vec![Datum::Null; columns.len()];
    let shape = types::datum::Shape { ty: RECORD, columns };
    let template = Expr::Const(Datum::record(shape.into(), nulls), RECORD);
    Expr::Call {
        function: &types::func::internal::SHAPED_ROW,
        args: Box::new([Expr::Row(values), template]),
        ty: RECORD,
        position: 0,
    }
}

/// A row of a composite type.
pub(crate) fn typed_row(values: Vec<Expr>, shape: std::sync::Arc<types::datum::Shape>) -> Expr {
    let nulls = vec![Datum::Null; shape.columns.len()];
    let ty = shape.ty;
    let template = Expr::Const(Datum::record(shape, nulls), ty);
    Expr::Call {
        function: &types::func::internal::SHAPED_ROW,
        args: Box::new([Expr::Row(values), template]),
        ty,
        position: 0,
    }
}

/// One dimension, counted from 1.
pub(crate) fn array_datum(element: Oid, items: Vec<Datum>) -> Datum {
    let dims = if items.is_empty() { Vec::new() } else { vec![(items.len() as i32, 1)] };
    Datum::Array(std::sync::Arc::new(types::datum::Array { element, dims, items }))
}

fn combine(tests: Vec<Expr>, negated: bool) -> Expr {
    if negated { and(tests) } else { or(tests) }
}

/// AND, flattened and without what is always true.
pub(crate) fn and(parts: Vec<Expr>) -> Expr {
    let mut out = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Expr::And(inner) => out.extend(inner),
            Expr::Const(Datum::Bool(true), _) => {}
            Expr::Const(Datum::Bool(false), _) => return part,
            other => out.push(other),
        }
    }
    match out.len() {
        0 => Expr::Const(Datum::Bool(true), BOOL),
        1 => out.remove(0),
        _ => Expr::And(out),
    }
}

/// OR, flattened and without what is always false.
pub(crate) fn or(parts: Vec<Expr>) -> Expr {
    let mut out = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Expr::Or(inner) => out.extend(inner),
            Expr::Const(Datum::Bool(false), _) => {}
            Expr::Const(Datum::Bool(true), _) => return part,
            other => out.push(other),
        }
    }
    match out.len() {
        0 => Expr::Const(Datum::Bool(false), BOOL),
        1 => out.remove(0),
        _ => Expr::Or(out),
    }
}

/// NOT, without doubling it.
pub(crate) fn not(expr: Expr) -> Expr {
    match expr {
        Expr::Not(inner) => *inner,
        Expr::Const(Datum::Bool(b), ty) => Expr::Const(Datum::Bool(!b), ty),
        Expr::Const(Datum::Null, ty) => Expr::Const(Datum::Null, ty),
        // A row can be neither: of its fields some are NULL.
        Expr::IsNull { arg, negated } if !is_row(arg.ty()) => {
            Expr::IsNull { arg, negated: !negated }
        }
        other => Expr::Not(Box::new(other)),
    }
}

/// Whether a literal with a cast to the type may become a parameter of it.
fn is_plain(ty: Oid) -> bool {
    const TYPES: [Oid; 15] = [
        BOOL,
        INT2,
        INT4,
        INT8,
        FLOAT4,
        FLOAT8,
        NUMERIC,
        TEXT,
        VARCHAR,
        DATE,
        TIME,
        TIMESTAMP,
        TIMESTAMPTZ,
        INTERVAL,
        UUID,
    ];
    TYPES.contains(&ty)
}

fn is_row(ty: Oid) -> bool {
    ty == RECORD || types::user::shape(ty).is_some()
}

/// Whether a node is `t.*` or `(row).*`.
pub(super) fn is_star(n: &pb::Node) -> bool {
    match &n.node {
        Some(NodeEnum::ColumnRef(c)) => {
            matches!(c.fields.last().and_then(|f| f.node.as_ref()), Some(NodeEnum::AStar(_)))
        }
        Some(NodeEnum::AIndirection(i)) => super::subscript::ends_with_star(i),
        _ => false,
    }
}
