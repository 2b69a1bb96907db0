//! Subqueries in expressions.

use base::{Oid, Result, err};
use pg_query::{NodeEnum, protobuf as pb};
use types::oids::*;

use crate::expr::{Expr, SubqueryExpr, SubqueryKind};
use crate::logical::{Query, Rel};

use super::record::{SublinkRecord, address};
use super::scope::Place;
use super::{Binder, Scope, ast, coerce, inner};

/// `0A000` where subqueries can't be.
pub(super) fn refuse(scope: &Scope<'_>, position: u32) -> Result<()> {
    let place = match scope.place.get() {
        Place::Check => "check constraint",
        Place::Default => "DEFAULT expression",
        Place::Execute => "EXECUTE parameter",
        Place::Generated => "column generation expression",
        Place::IndexKey => "index expression",
        Place::IndexWhere => "index predicate",
        Place::Transform => "transform expression",
        Place::CopyWhere => "COPY FROM WHERE condition",
        Place::TriggerWhen => "trigger WHEN condition",
        Place::PartitionKey => "partition key expression",
        Place::PartitionBound => "partition bound",
        _ => "",
    };
    if !place.is_empty() {
        return Err(err!(FEATURE_NOT_SUPPORTED, "cannot use subquery in {place}").at(position));
    }
    Ok(())
}

/// A subquery as it was written.
pub(crate) struct WrittenSublink {
    /// Its number.
    plan: usize,
    text: String,
    /// The columns of levels outside that it uses.
    outer: Vec<u16>,
}

impl Binder<'_> {
    /// EXISTS, IN, ANY, ALL, scalar and ARRAY subqueries.
    pub(crate) fn sublink(&mut self, scope: &Scope<'_>, s: &pb::SubLink) -> Result<Expr> {
        let mut bound = self.new_sublink(scope, s)?;
        // Literals that became parameters may have other values another time.
        if let (false, Expr::Subquery(subquery)) = (self.is_lifted(), &mut bound) {
            let node = NodeEnum::SubLink(Box::new(s.clone()));
            let Ok(text) = crate::parse::deparse_expr(&node) else { return Ok(bound) };
            let outer: Vec<u16> = subquery.slots.iter().map(|(col, _)| *col).collect();
            let alike = |w: &&WrittenSublink| w.text == text && w.outer == outer;
            match self.written_sublinks.iter().find(alike) {
                Some(first) => subquery.twin = first.plan,
                None => {
                    let plan = subquery.plan;
                    self.written_sublinks.push(WrittenSublink { plan, text, outer });
                }
            }
        }
        Ok(bound)
    }

    fn new_sublink(&mut self, scope: &Scope<'_>, s: &pb::SubLink) -> Result<Expr> {
        use pb::SubLinkType as T;
        let position = self.at(s.location);
        refuse(scope, position)?;
        let Some(select) = inner(&s.subselect) else {
            return Err(err!(SYNTAX_ERROR, "empty subquery").at(position));
        };
        let NodeEnum::SelectStmt(select) = select else {
            return Err(self.unsupported("this subquery", s.location));
        };
        self.sublinks += 1;
        let query = self.select(select, Some(scope), true);
        self.sublinks -= 1;
        let query = query?;
        if let Some(record) = &mut self.record {
            let names = ast::strings(&s.oper_name);
            let operator = names.last().copied().unwrap_or("=").to_owned();
            let (select, left) = (address(&**select), Vec::new());
            let noted = SublinkRecord { select, left, operator, row: false };
            record.sublinks.insert(self.subqueries.len(), noted);
        }
        match T::try_from(s.sub_link_type) {
            Ok(T::ExistsSublink) => Ok(self.subquery(query, SubqueryKind::Exists, BOOL)),
            Ok(T::ExprSublink) => {
                let ty = self.one_column(&query, position)?;
                if let Some(column) = query.output.first() {
                    self.scalar_names.insert(address(&**select), column.name.clone());
                }
                Ok(self.subquery(query, SubqueryKind::Scalar, ty))
            }
            Ok(T::ArraySublink) => {
                let element = self.one_column(&query, position)?;
                let ty = match coerce::array_of(element) {
                    // Arrays become one array with a dimension more.
                    Oid::INVALID if coerce::element_of(element) != Oid::INVALID => {
                        coerce::base_of(element)
                    }
                    ty => ty,
                };
                if ty == Oid::INVALID {
                    return Err(err!(
                        UNDEFINED_OBJECT,
                        "could not find array type for data type {}",
                        types::io::format_type(element, -1)
                    )
                    .at(position));
                }
                Ok(self.subquery(query, SubqueryKind::Array, ty))
            }
            Ok(T::AnySublink) => self.compare_sublink(scope, s, query, false, position),
            Ok(T::AllSublink) => self.compare_sublink(scope, s, query, true, position),
            Ok(T::RowcompareSublink) => {
                Err(self.unsupported("comparing a row with a subquery", s.location))
            }
            _ => Err(self.unsupported("this subquery", s.location)),
        }
    }

    fn one_column(&self, query: &Query, position: u32) -> Result<base::Oid> {
        match query.output.as_slice() {
            [one] => Ok(one.ty),
            _ => Err(err!(SYNTAX_ERROR, "subquery must return only one column").at(position)),
        }
    }

    fn compare_sublink(
        &mut self,
        scope: &Scope<'_>,
        s: &pb::SubLink,
        query: Query,
        all: bool,
        position: u32,
    ) -> Result<Expr> {
        let Some(test) = inner(&s.testexpr) else {
            return Err(err!(SYNTAX_ERROR, "subquery without left side").at(position));
        };
        // Subqueries on the left side get their numbers before this one.
        let number = self.subqueries.len();
        let noted = self.record.as_mut().and_then(|r| r.sublinks.remove(&number));
        let left = match self.expr(scope, test)? {
            Expr::Row(fields) => fields,
            one => vec![one],
        };
        if left.len() < query.cols.len() {
            return Err(err!(SYNTAX_ERROR, "subquery has too many columns").at(position));
        }
        if left.len() > query.cols.len() {
            return Err(err!(SYNTAX_ERROR, "subquery has too few columns").at(position));
        }
        // IN has no operator name in the tree.
        let names = ast::strings(&s.oper_name);
        let name = names.last().copied().unwrap_or("=");
        // Inside the test the subquery's columns are slots, counted from 0 until planning.
        let columns: Vec<Expr> =
            query.output.iter().enumerate().map(|(i, c)| Expr::Slot(i as u16, c.ty)).collect();
        let collations = query.cols.iter().map(|c| self.vars[usize::from(*c)].collation).collect();
        let outer = std::mem::replace(&mut self.slot_collations, collations);
        let test = if left.len() == 1 {
            let (mut left, mut columns) = (left, columns);
            match (left.pop(), columns.pop()) {
                (Some(l), Some(r)) => self.binary(name, l, r, position)?,
                _ => return Err(err!(SYNTAX_ERROR, "subquery has too few columns").at(position)),
            }
        } else {
            self.compare_rows(name, left, columns, position)?
        };
        self.slot_collations = outer;
        // The left sides are shown as they are compared.
        if let (Some(record), Some(noted)) = (&mut self.record, noted) {
            let noted = SublinkRecord { left: left_sides(&test), ..noted };
            record.sublinks.insert(self.subqueries.len(), noted);
        }
        if test.ty() != BOOL {
            return Err(err!(
                DATATYPE_MISMATCH,
                "operator {name} must return type boolean, not type {}",
                types::io::format_type(test.ty(), -1)
            )
            .at(position));
        }
        let hash_left = if all || name != "=" { None } else { hashable_left(&test) };
        let kind = SubqueryKind::Compare { test: Box::new(test), first_slot: 0, all, hash_left };
        Ok(self.subquery(query, kind, BOOL))
    }

    /// Keeps a bound subquery and refers to it. Until planning, `slots` says for each column of an
    /// outer query that it uses which expression stands for it.
    pub(crate) fn subquery(&mut self, query: Query, kind: SubqueryKind, ty: base::Oid) -> Expr {
        let outer = query.rel.outer_columns();
        let slots = outer.into_iter().map(|col| (col, self.column(col))).collect();
        // EXISTS computes nothing of the rows that it looks for.
        let acts = match (&kind, &query.rel) {
            (SubqueryKind::Exists, Rel::Project { input, set: false, .. }) => input.acts(),
            (_, rel) => rel.acts(),
        };
        self.subqueries.push(query);
        let plan = self.subqueries.len() - 1;
        Expr::Subquery(Box::new(SubqueryExpr {
            plan,
            twin: plan,
            slots,
            once: false,
            memo: false,
            acts,
            kind,
            ty,
        }))
    }
}

impl Binder<'_> {
    /// `(a, b) op (SELECT …)`, to be printed.
    pub(crate) fn row_query_as_written(
        &mut self,
        scope: &Scope<'_>,
        (name, position): (&str, u32),
        left: Vec<Expr>,
        select: &pb::SelectStmt,
    ) -> Result<Expr> {
        self.sublinks += 1;
        let query = self.select(select, Some(scope), true);
        self.sublinks -= 1;
        let query = query?;
        let slot = |(i, c): (usize, &crate::plan::OutputColumn)| Expr::Slot(i as u16, c.ty);
        let columns: Vec<Expr> = query.output.iter().enumerate().map(slot).collect();
        let collations = query.cols.iter().map(|c| self.vars[usize::from(*c)].collation).collect();
        let outer = std::mem::replace(&mut self.slot_collations, collations);
        let test = self.compare_rows(name, left, columns, position);
        self.slot_collations = outer;
        let test = test?;
        let number = self.subqueries.len();
        if let Some(record) = &mut self.record {
            let (select, left, operator) = (address(select), left_sides(&test), name.to_owned());
            let noted = SublinkRecord { select, left, operator, row: true };
            record.sublinks.insert(number, noted);
        }
        let kind = SubqueryKind::Compare {
            test: Box::new(test),
            first_slot: 0,
            all: false,
            hash_left: None,
        };
        Ok(self.subquery(query, kind, BOOL))
    }
}

/// What a comparison with a subquery's columns compares.
fn left_sides(test: &Expr) -> Vec<Expr> {
    match test {
        Expr::And(tests) | Expr::Or(tests) => tests.iter().flat_map(left_sides).collect(),
        Expr::RowCompare { fields, .. } => fields.iter().map(|field| field.0.clone()).collect(),
        Expr::Not(test) => left_sides(test),
        Expr::Call { args, .. } => args.first().cloned().into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Fields that a row looked up in a hash table may have.
const HASHED_FIELDS_MAX: usize = 64;

/// The left sides of `left = column` for each column as it is: a hash table can answer those.
fn hashable_left(test: &Expr) -> Option<Vec<Expr>> {
    let tests = match test {
        Expr::And(tests) => tests.as_slice(),
        one => std::slice::from_ref(one),
    };
    if tests.len() > HASHED_FIELDS_MAX {
        return None;
    }
    let integer = |ty| matches!(ty, INT2 | INT4 | INT8);
    let left = tests.iter().enumerate().map(|(n, test)| match test {
        Expr::Call { function, args, .. } if crate::walk::is_equality(function) => match &**args {
            [left, Expr::Slot(slot, ty)]
                if usize::from(*slot) == n
                    && (left.ty() == *ty || integer(left.ty()) && integer(*ty)) =>
            {
                Some(left.clone())
            }
            _ => None,
        },
        _ => None,
    });
    left.collect()
}
