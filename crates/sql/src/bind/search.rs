//! SEARCH and CYCLE of a recursive WITH query: columns that the query computes beside its own.
//!
//! ```text
//! SEARCH DEPTH FIRST BY a SET s     s:  ARRAY[ROW(a)]      then  s || ROW(a)
//! SEARCH BREADTH FIRST BY a SET s   s:  ROW(0, a)          then  ROW(depth + 1, a)
//! CYCLE a SET m TO v DEFAULT d      m:  d                  then  v if ROW(a) is in p, else d
//!       USING p                     p:  ARRAY[ROW(a)]      then  p || ROW(a)
//!                                   and only rows with m <> v go on
//! ```
//!
//! The first form is of the rows of the base, the second of those of a step, from the values of the row
//! that the step began with. These the step must carry: they are added to its SELECT. The depth is a
//! column that nobody can name.

use base::{Result, err};
use pg_query::protobuf as pb;

use crate::expr::Expr;
use crate::logical::{Col, Query, Rel};
use crate::parse::{deparse_expr, parse_expr};
use crate::plan::OutputColumn;

use super::select::filter;
use super::{Binder, Scope, ast, inner};

const DEPTH: &str = "*DEPTH*";

/// A computed column: its name, its value in the base and in a step, as SQL over `*row*` and
/// `*old*`, the one before.
struct Extra {
    name: String,
    base: String,
    step: String,
}

/// What the clauses ask for.
pub(crate) struct Extras {
    columns: Vec<Extra>,
    /// Which rows go on, over `*old*`.
    condition: Option<String>,
    /// Columns at the end that nobody can name.
    pub hidden: usize,
}

fn quoted(name: &str) -> String {
    catalog::definition::quote_ident(name)
}

fn row_of(names: &[String], first: &str) -> String {
    let fields: Vec<String> = names.iter().map(|n| format!("\"*row*\".{}", quoted(n))).collect();
    format!("ROW({first}{})", fields.join(", "))
}

impl Binder<'_> {
    /// What a WITH query's clauses ask for, over the columns that it has; None: it has no clauses.
    pub(crate) fn search_and_cycle(
        &self,
        cte: &pb::CommonTableExpr,
        output: &[OutputColumn],
    ) -> Result<Option<Extras>> {
        if cte.search_clause.is_none() && cte.cycle_clause.is_none() {
            return Ok(None);
        }
        let mut out = Extras { columns: Vec::new(), condition: None, hidden: 0 };
        let taken = |name: &str| output.iter().any(|c| c.name == name);
        if let Some(search) = &cte.search_clause {
            let at = self.at(search.location);
            let by = self.listed("search", &search.search_col_list, output, at)?;
            let name = search.search_seq_column.clone();
            if taken(&name) {
                return Err(err!(
                    SYNTAX_ERROR,
                    "search sequence column name \"{name}\" already used in WITH query column list"
                )
                .at(at));
            }
            if search.search_breadth_first {
                let next = format!("\"*old*\".{} + 1", quoted(DEPTH));
                out.columns.push(Extra {
                    name,
                    base: row_of(&by, "0::bigint, "),
                    step: row_of(&by, &format!("{next}, ")),
                });
                out.columns.push(Extra {
                    name: DEPTH.to_owned(),
                    base: "0::bigint".to_owned(),
                    step: next,
                });
                out.hidden = 1;
            } else {
                let row = row_of(&by, "");
                let step = format!("\"*old*\".{} || {row}", quoted(&name));
                out.columns.push(Extra { name, base: format!("ARRAY[{row}]"), step });
            }
        }
        if let Some(cycle) = &cte.cycle_clause {
            let depth = out.columns.len() - out.hidden;
            let depth = out.columns.split_off(depth);
            self.cycle_columns(cte, cycle, output, &mut out)?;
            out.columns.extend(depth);
        }
        Ok(Some(out))
    }

    fn cycle_columns(
        &self,
        cte: &pb::CommonTableExpr,
        cycle: &pb::CteCycleClause,
        output: &[OutputColumn],
        out: &mut Extras,
    ) -> Result<()> {
        let at = self.at(cycle.location);
        let by = self.listed("cycle", &cycle.cycle_col_list, output, at)?;
        let (mark, path) = (&cycle.cycle_mark_column, &cycle.cycle_path_column);
        for (what, name) in [("mark", mark), ("path", path)] {
            if output.iter().any(|c| c.name == *name) {
                return Err(err!(
                    SYNTAX_ERROR,
                    "cycle {what} column name \"{name}\" already used in WITH query column list"
                )
                .at(at));
            }
        }
        if mark == path {
            return Err(err!(
                SYNTAX_ERROR,
                "cycle mark column name and cycle path column name are the same"
            )
            .at(at));
        }
        if let Some(search) = &cte.search_clause {
            for (what, name) in [("mark", mark), ("path", path)] {
                if search.search_seq_column == *name {
                    return Err(err!(
                        SYNTAX_ERROR,
                        "search sequence column name and cycle {what} column name are the same"
                    )
                    .at(self.at(search.location)));
                }
            }
        }
        let text = |node: &Option<Box<pb::Node>>, usual: &str| match inner(node) {
            Some(node) => deparse_expr(node),
            None => Ok(usual.to_owned()),
        };
        let value = text(&cycle.cycle_mark_value, "true")?;
        let default = text(&cycle.cycle_mark_default, "false")?;
        let row = row_of(&by, "");
        out.columns.push(Extra {
            name: mark.clone(),
            base: format!("CASE WHEN false THEN {value} ELSE {default} END"),
            step: format!(
                "CASE WHEN {row} = ANY (\"*old*\".{}) THEN {value} ELSE {default} END",
                quoted(path)
            ),
        });
        out.columns.push(Extra {
            name: path.clone(),
            base: format!("ARRAY[{row}]"),
            step: format!("\"*old*\".{} || {row}", quoted(path)),
        });
        out.condition = Some(format!("\"*old*\".{} <> {value}", quoted(mark)));
        Ok(())
    }

    /// The columns that a clause lists.
    fn listed(
        &self,
        what: &str,
        nodes: &[pb::Node],
        output: &[OutputColumn],
        at: u32,
    ) -> Result<Vec<String>> {
        let names = ast::owned_strings(nodes);
        for (n, name) in names.iter().enumerate() {
            if !output.iter().any(|c| c.name == *name) {
                return Err(err!(
                    SYNTAX_ERROR,
                    "{what} column \"{name}\" not in WITH query column list"
                )
                .at(at));
            }
            if names[..n].contains(name) {
                return Err(err!(
                    DUPLICATE_COLUMN,
                    "{what} column \"{name}\" specified more than once"
                )
                .at(at));
            }
        }
        Ok(names)
    }

    /// Adds the columns to the base.
    pub(crate) fn extend_base(&mut self, query: Query, extras: &Extras) -> Result<Query> {
        let texts: Vec<&str> = extras.columns.iter().map(|e| e.base.as_str()).collect();
        let own = query.output.len();
        self.extend(query, own, extras, &texts)
    }

    /// Makes the step carry the columns of the row that it began with, behind its own.
    pub(crate) fn carry_extras(
        &mut self,
        cte: &pb::CommonTableExpr,
        index: usize,
        step: &mut Query,
        extras: &Extras,
    ) -> Result<()> {
        let misplaced = || {
            err!(
                FEATURE_NOT_SUPPORTED,
                "with a SEARCH or CYCLE clause, the recursive reference to WITH query \"{}\" must be at the top level of its right-hand SELECT",
                cte.ctename
            )
        };
        let Rel::Project { input, exprs, .. } = &mut step.rel else { return Err(misplaced()) };
        let Some(all) = worked(input, index) else { return Err(misplaced()) };
        let old = &all[all.len() - extras.columns.len()..];
        let output = self.ctes[index].query.output[all.len() - extras.columns.len()..].to_vec();
        let mut carried = Vec::with_capacity(old.len());
        for (col, column) in old.iter().zip(&output) {
            let new = self.new_var(&column.name, column.ty, column.typmod)?;
            carried.push((new, Expr::Column(*col, column.ty)));
        }
        step.cols.extend(carried.iter().map(|(c, _)| *c));
        exprs.extend(carried);
        step.output.extend(output);
        Ok(())
    }

    /// The step's rows with their own values of the columns.
    pub(crate) fn extend_step(&mut self, mut step: Query, extras: &Extras) -> Result<Query> {
        let own = step.output.len() - extras.columns.len();
        if let Some(text) = &extras.condition {
            let condition = self.extra_value(&step, own, text)?;
            step.rel = filter(step.rel, vec![condition]);
        }
        let texts: Vec<&str> = extras.columns.iter().map(|e| e.step.as_str()).collect();
        self.extend(step, own, extras, &texts)
    }

    /// The first `own` columns of a query, and these.
    fn extend(
        &mut self,
        query: Query,
        own: usize,
        extras: &Extras,
        texts: &[&str],
    ) -> Result<Query> {
        let mut exprs = Vec::with_capacity(own + texts.len());
        let mut output = query.output[..own].to_vec();
        for (col, column) in query.cols.iter().zip(&output) {
            let new = self.new_var(&column.name, column.ty, column.typmod)?;
            self.vars[usize::from(new)].collation = self.vars[usize::from(*col)].collation;
            exprs.push((new, self.column(*col)));
        }
        for (extra, text) in extras.columns.iter().zip(texts) {
            let value = self.extra_value(&query, own, text)?;
            let ty = value.ty();
            exprs.push((self.new_var(&extra.name, ty, -1)?, value));
            let (name, table) = (extra.name.clone(), base::Oid(0));
            output.push(OutputColumn { name, ty, typmod: -1, table, column: 0, collation: 0 });
        }
        let cols: Vec<Col> = exprs.iter().map(|(c, _)| *c).collect();
        let rel = Rel::Project { input: Box::new(query.rel), exprs, set: false };
        Ok(Query { rel, cols, output })
    }

    fn extra_value(&mut self, query: &Query, own: usize, text: &str) -> Result<Expr> {
        let names: Vec<String> = query.output.iter().map(|c| c.name.clone()).collect();
        let mut scope = Scope::new(None);
        scope.items.push(self.plain_item(Some("*row*"), &names[..own], &query.cols[..own]));
        scope.items.push(self.plain_item(Some("*old*"), &names[own..], &query.cols[own..]));
        scope.place.set(super::scope::Place::Target);
        let node = parse_expr(text)?;
        let record = self.record.take();
        let value = self.holding(|b| b.expr(&scope, &node)).map_err(|e| self.near(e));
        self.record = record;
        self.resolve_unknown(value?)
    }
}

/// The columns of the last round's rows, if they are among an operator's.
fn worked(rel: &Rel, index: usize) -> Option<Vec<Col>> {
    match rel {
        Rel::WorkTable { index: i, cols } if *i == index => Some(cols.clone()),
        Rel::Filter { input, .. } => worked(input, index),
        Rel::Join { left, right, .. } => worked(left, index).or_else(|| worked(right, index)),
        _ => None,
    }
}
