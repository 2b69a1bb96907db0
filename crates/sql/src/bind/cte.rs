//! WITH: plain queries, recursive ones, and statements that change data.
//!
//! Each WITH query is bound once, under its name. A recursive one is `base UNION [ALL] step`: the
//! base's columns name and type the whole; in the step its own name stands for the last round's
//! rows ([`Rel::WorkTable`]).

use base::{Result, err};
use pg_query::{NodeEnum, protobuf as pb};

use crate::every_node::every_node;
use crate::logical::{Col, Cte, CteKind, Query, Rel};

use super::from::FromItem;
use super::{Binder, Scope, ast, inner};

/// A WITH name in force.
pub(crate) struct CteName {
    /// The name.
    pub name: String,
    state: CteState,
}

/// A WITH query that is not bound yet, or is being bound.
pub(crate) struct PendingCte {
    name: String,
    /// Its WITH is RECURSIVE.
    recursive: bool,
    position: u32,
}

enum CteState {
    /// The query by this number.
    Bound(usize),
    /// A recursive query that is being bound.
    Binding {
        index: usize,
        stage: Stage,
        /// References so far.
        uses: u32,
        /// How many subqueries of expressions were around when it began.
        sublinks: u32,
        /// How many of [`Binder::unrecursive`] were.
        around: usize,
        /// Where it stands.
        begun: i32,
    },
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Base,
    Step,
    /// It has not the form of a recursive query.
    Other,
}

impl Binder<'_> {
    /// Binds the queries of a WITH clause. `top`: of the statement itself.
    pub(crate) fn with_clause(
        &mut self,
        with: &pb::WithClause,
        parent: Option<&Scope<'_>>,
        top: bool,
    ) -> Result<()> {
        let pending = self.pending_ctes.len();
        // Whatever a query of it has inside is not at the top.
        self.queries += 1;
        let bound = self.with_queries(with, parent, top);
        self.queries -= 1;
        self.pending_ctes.truncate(pending);
        bound
    }

    fn with_queries(
        &mut self,
        with: &pb::WithClause,
        parent: Option<&Scope<'_>>,
        top: bool,
    ) -> Result<()> {
        let first = self.cte_names.len();
        let in_order = in_order(with);
        let pending = self.pending_ctes.len();
        for cte in in_order.iter().rev() {
            let position = self.at(cte.location);
            let name = cte.ctename.clone();
            self.pending_ctes.push(PendingCte { name, recursive: with.recursive, position });
        }
        for (n, cte) in in_order.iter().enumerate() {
            self.pending_ctes.truncate(pending + in_order.len() - n);
            if self.cte_names[first..].iter().any(|n| n.name == cte.ctename) {
                return Err(err!(
                    DUPLICATE_ALIAS,
                    "WITH query name \"{}\" specified more than once",
                    cte.ctename
                )
                .at(self.at(cte.location)));
            }
            let clauses = cte.search_clause.is_some() || cte.cycle_clause.is_some();
            if clauses && !with.recursive {
                return Err(self.not_recursive(cte));
            }
            let index = match inner(&cte.ctequery) {
                Some(NodeEnum::SelectStmt(select)) if with.recursive => {
                    self.recursive_cte(cte, select, parent)?
                }
                Some(NodeEnum::SelectStmt(select)) => {
                    let query = self.select(select, parent, true)?;
                    self.new_cte(cte, query, CteKind::Plain)?
                }
                Some(other) => self.changing_cte(cte, other, top)?,
                None => return Err(err!(SYNTAX_ERROR, "WITH query without a statement")),
            };
            self.cte_names
                .push(CteName { name: cte.ctename.clone(), state: CteState::Bound(index) });
        }
        Ok(())
    }

    /// For a table's name that was not found: the WITH query that is not visible from where it stands.
    pub(crate) fn hidden_cte(&self, range: &pb::RangeVar, error: base::Error) -> base::Error {
        let named = |p: &&PendingCte| p.name == range.relname;
        let Some(found) = self.pending_ctes.iter().rev().find(named) else { return error };
        if !range.schemaname.is_empty() {
            return error;
        }
        if found.recursive {
            return err!(
                FEATURE_NOT_SUPPORTED,
                "mutual recursion between WITH items is not implemented"
            )
            .at(self.pending_ctes.last().map_or(found.position, |bound| bound.position));
        }
        error
            .detail(format!(
                "There is a WITH item named \"{}\", but it cannot be referenced from this part of the query.",
                range.relname
            ))
            .hint("Use WITH RECURSIVE, or re-order the WITH items to remove forward references.")
    }

    /// Keeps a bound WITH query under its column names.
    fn new_cte(&mut self, cte: &pb::CommonTableExpr, query: Query, kind: CteKind) -> Result<usize> {
        let query = self.named_columns(cte, query)?;
        let outer = query.rel.outer_columns();
        let materialized = match pb::CteMaterialize::try_from(cte.ctematerialized) {
            Ok(pb::CteMaterialize::Always) => Some(true),
            Ok(pb::CteMaterialize::Never) => Some(false),
            _ => None,
        };
        let name = cte.ctename.clone();
        let named = (query.output.len(), query.output.len());
        self.ctes.push(Cte { name, query, kind, outer, uses: 0, materialized, named });
        Ok(self.ctes.len() - 1)
    }

    fn not_recursive(&self, cte: &pb::CommonTableExpr) -> base::Error {
        err!(SYNTAX_ERROR, "WITH query is not recursive").at(self.at(cte.location))
    }

    fn named_columns(&self, cte: &pb::CommonTableExpr, mut query: Query) -> Result<Query> {
        let names = ast::owned_strings(&cte.aliascolnames);
        if names.len() > query.output.len() {
            return Err(err!(
                INVALID_COLUMN_REFERENCE,
                "WITH query \"{}\" has {} columns available but {} columns specified",
                cte.ctename,
                query.output.len(),
                names.len()
            )
            .at(self.at(cte.location)));
        }
        for (column, name) in query.output.iter_mut().zip(names) {
            column.name = name;
        }
        Ok(query)
    }

    fn changing_cte(
        &mut self,
        cte: &pb::CommonTableExpr,
        node: &NodeEnum,
        top: bool,
    ) -> Result<usize> {
        if !top {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "WITH clause containing a data-modifying statement must be at the top level"
            )
            .at(self.at(cte.location)));
        }
        crate::rewrite::refuse_in_with(self, node)?;
        let (change, output) = match node {
            NodeEnum::InsertStmt(stmt) => self.insert(stmt)?,
            NodeEnum::UpdateStmt(stmt) => self.update(stmt)?,
            NodeEnum::DeleteStmt(stmt) => self.delete(stmt)?,
            _ => {
                return Err(err!(FEATURE_NOT_SUPPORTED, "MERGE not supported in WITH query")
                    .at(self.at(cte.location)));
            }
        };
        let mut cols = Vec::with_capacity(output.len());
        for column in &output {
            cols.push(self.new_var(&column.name, column.ty, column.typmod)?);
        }
        let query = Query { rel: Rel::Nothing, cols, output };
        self.new_cte(cte, query, CteKind::Change(Box::new(change)))
    }

    /// A query of WITH RECURSIVE, which may refer to itself.
    fn recursive_cte(
        &mut self,
        cte: &pb::CommonTableExpr,
        select: &pb::SelectStmt,
        parent: Option<&Scope<'_>>,
    ) -> Result<usize> {
        let outer_names = self.cte_names.len();
        let bound = self.recursive_query(cte, select, parent);
        self.cte_names.truncate(outer_names);
        bound
    }

    fn recursive_query(
        &mut self,
        cte: &pb::CommonTableExpr,
        select: &pb::SelectStmt,
        parent: Option<&Scope<'_>>,
    ) -> Result<usize> {
        let is_union = select.op == pb::SetOperation::SetopUnion as i32;
        let (Some(larg), Some(rarg), true) = (&select.larg, &select.rarg, is_union) else {
            self.begin_cte(cte, usize::MAX, Stage::Other);
            let query = self.select(select, parent, true)?;
            if cte.search_clause.is_some() || cte.cycle_clause.is_some() {
                return Err(self.not_recursive(cte));
            }
            return self.new_cte(cte, query, CteKind::Plain);
        };
        if let Some(with) = &select.with_clause {
            self.with_clause(with, parent, false)?;
        }
        self.begin_cte(cte, usize::MAX, Stage::Base);
        let name = self.cte_names.len() - 1;
        let mut base = self.set_leaf(larg, parent)?;
        self.cte_names.truncate(name);
        // A column of no known type is text to the step, but not to a plain UNION.
        let untyped = base.clone();
        self.resolve_output(&mut base)?;
        let index = self.new_cte(cte, base, CteKind::Plain)?;
        let extras = self.search_and_cycle(cte, &self.ctes[index].query.output)?;
        if let Some(extras) = &extras {
            for (leaf, side) in [(larg, "left"), (rarg, "right")] {
                if leaf.op > pb::SetOperation::SetopNone as i32 {
                    return Err(err!(
                        FEATURE_NOT_SUPPORTED,
                        "with a SEARCH or CYCLE clause, the {side} side of the UNION must be a SELECT"
                    ));
                }
            }
            let base = self.ctes[index].query.clone();
            let own = base.output.len();
            let base = self.extend_base(base, extras)?;
            self.ctes[index].named = (own, base.output.len() - extras.hidden);
            self.ctes[index].query = base;
        }
        self.begin_cte(cte, index, Stage::Step);
        let mut step = self.set_leaf(rarg, parent)?;
        let CteState::Binding { uses, .. } = self.cte_names[name].state else {
            return Err(base::Error::internal("a WITH name was bound twice"));
        };
        self.cte_names.truncate(name);
        if uses == 0 {
            if extras.is_some() {
                return Err(self.not_recursive(cte));
            }
            let both = ((untyped, &**larg), (step, &**rarg));
            let mut query =
                self.combine(pb::SetOperation::SetopUnion, select.all, both.0, both.1)?;
            self.resolve_output(&mut query)?;
            let query = self.order_and_limit(query, select, parent)?;
            let query = self.named_columns(cte, query)?;
            self.ctes[index].outer = query.rel.outer_columns();
            self.ctes[index].query = query;
            return Ok(index);
        }
        self.check_recursion(select)?;
        if let Some(extras) = &extras {
            self.carry_extras(cte, index, &mut step, extras)?;
        }
        let mut step = self.recursive_step(cte, index, step, (larg, rarg))?;
        if let Some(extras) = &extras {
            let names = self.ctes[index].query.output.iter().map(|c| c.name.clone());
            step.output.iter_mut().zip(names).for_each(|(column, name)| column.name = name);
            step = self.extend_step(step, extras)?;
        }
        let outer = step.rel.outer_columns();
        let known = &mut self.ctes[index].outer;
        known.extend(outer);
        known.sort_unstable();
        known.dedup();
        for (i, column) in step.output.iter().enumerate().filter(|_| !select.all) {
            if self.check_groupable(column.ty, 0).is_err() {
                self.check_groupable(column.ty, self.at(super::setop::leaf_location(larg, i)))?;
            }
        }
        self.ctes[index].kind = CteKind::Recursive { step, all: select.all };
        Ok(index)
    }

    fn begin_cte(&mut self, cte: &pb::CommonTableExpr, index: usize, stage: Stage) {
        let state = CteState::Binding {
            index,
            stage,
            uses: 0,
            sublinks: self.sublinks,
            around: self.unrecursive.len(),
            begun: cte.location,
        };
        self.cte_names.push(CteName { name: cte.ctename.clone(), state });
    }

    /// What a recursive query may not have.
    fn check_recursion(&self, select: &pb::SelectStmt) -> Result<()> {
        let refuse = |what: &str, at: i32| {
            Err(err!(FEATURE_NOT_SUPPORTED, "{what} in a recursive query is not implemented")
                .at(self.at(at)))
        };
        if let Some(node) = select.sort_clause.first() {
            let at = match &node.node {
                Some(NodeEnum::SortBy(sort)) => inner(&sort.node).map_or(-1, ast::location),
                _ => -1,
            };
            return refuse("ORDER BY", at);
        }
        if let Some(node) = inner(&select.limit_offset) {
            return refuse("OFFSET", ast::location(node));
        }
        if let Some(node) = inner(&select.limit_count) {
            return refuse("LIMIT", ast::location(node));
        }
        if !select.locking_clause.is_empty() {
            return refuse("FOR UPDATE/SHARE", -1);
        }
        Ok(())
    }

    /// The step with the base's column types.
    fn recursive_step(
        &mut self,
        cte: &pb::CommonTableExpr,
        index: usize,
        mut step: Query,
        (larg, rarg): (&pb::SelectStmt, &pb::SelectStmt),
    ) -> Result<Query> {
        let base = self.ctes[index].query.output.clone();
        if base.len() != step.cols.len() {
            return Err(err!(
                SYNTAX_ERROR,
                "each UNION query must have the same number of columns"
            )
            .at(self.at(super::setop::leaf_location(rarg, 0))));
        }
        let mut types = Vec::with_capacity(base.len());
        for (i, (column, other)) in base.iter().zip(&step.output).enumerate() {
            let position = self.at(super::setop::leaf_location(larg, i));
            let there = self.at(super::setop::leaf_location(rarg, i));
            let ty = self.common_type(&[(column.ty, position), (other.ty, there)], "UNION")?;
            if ty != column.ty {
                return Err(err!(
                    DATATYPE_MISMATCH,
                    "recursive query \"{}\" column {} has type {} in non-recursive term but type {} overall",
                    cte.ctename,
                    i + 1,
                    types::io::format_type(column.ty, column.typmod),
                    types::io::format_type(ty, -1)
                )
                .hint("Cast the output of the non-recursive term to the correct type.")
                .at(position));
            }
            types.push(ty);
        }
        let position = self.at(super::setop::leaf_location(rarg, 0));
        self.coerce_output(&mut step, &types, "UNION", position)?;
        Ok(step)
    }

    /// Binds a part of a query in which, if this names a construct, a recursive query must not refer to itself.
    pub(crate) fn not_recursive_in<R>(
        &mut self,
        construct: Option<&'static str>,
        bind: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<R> {
        let Some(construct) = construct else { return bind(self) };
        self.unrecursive.push(construct);
        let bound = bind(self);
        self.unrecursive.pop();
        bound
    }

    /// A WITH name in FROM; None when it is none.
    pub(crate) fn cte_item(&mut self, range: &pb::RangeVar) -> Result<Option<FromItem>> {
        if !range.schemaname.is_empty() {
            return Ok(None);
        }
        let (sublinks_now, around_now) = (self.sublinks, self.unrecursive.len());
        let innermost = self.unrecursive.last().copied().unwrap_or_default();
        let Some(found) = self.cte_names.iter_mut().rev().find(|n| n.name == range.relname) else {
            return Ok(None);
        };
        let index = match &mut found.state {
            CteState::Bound(index) => {
                let index = *index;
                return self.cte_ref(index, range).map(Some);
            }
            CteState::Binding { index, stage, uses, sublinks, around, begun } => {
                *uses += 1;
                let at = if *stage == Stage::Other { *begun } else { range.location };
                let what = match stage {
                    Stage::Other => Some(format!(
                        "recursive query \"{}\" does not have the form non-recursive-term UNION [ALL] recursive-term",
                        range.relname
                    )),
                    Stage::Base => Some(refused(range, "within its non-recursive term")),
                    Stage::Step if sublinks_now > *sublinks => {
                        Some(refused(range, "within a subquery"))
                    }
                    Stage::Step if around_now > *around => {
                        Some(refused(range, &format!("within {innermost}")))
                    }
                    Stage::Step if *uses > 1 => Some(refused(range, "more than once")),
                    Stage::Step => None,
                };
                if let Some(what) = what {
                    return Err(err!(INVALID_RECURSION, "{what}").at(self.at(at)));
                }
                *index
            }
        };
        let (mut names, cols) = self.columns_of_cte(index)?;
        names.truncate(self.ctes[index].named.0);
        self.plain_from(Rel::WorkTable { index, cols: cols.clone() }, &names, &cols, range)
            .map(Some)
    }

    /// New columns like those of a WITH query.
    fn columns_of_cte(&mut self, index: usize) -> Result<(Vec<String>, Vec<Col>)> {
        let query = &self.ctes[index].query;
        let (output, from) = (query.output.clone(), query.cols.clone());
        let (names, cols) = self.columns_for(&output)?;
        for (from, to) in from.iter().zip(&cols) {
            self.vars[usize::from(*to)].row = self.vars[usize::from(*from)].row.clone();
            self.vars[usize::from(*to)].collation = self.vars[usize::from(*from)].collation;
        }
        Ok((names, cols))
    }

    /// A reference to a bound WITH query.
    fn cte_ref(&mut self, index: usize, range: &pb::RangeVar) -> Result<FromItem> {
        let cte = &mut self.ctes[index];
        if matches!(&cte.kind, CteKind::Change(change) if change.returning.is_none()) {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "WITH query \"{}\" does not have a RETURNING clause",
                range.relname
            )
            .at(self.at(range.location)));
        }
        cte.uses += 1;
        let (outer, named) = (cte.outer.clone(), cte.named.1);
        let (mut names, cols) = self.columns_of_cte(index)?;
        names.truncate(named);
        let outer = outer.into_iter().map(|col| (col, self.column(col))).collect();
        let alias = range.alias.as_ref().map(|alias| alias.aliasname.clone());
        let rel = Rel::Cte { index, alias, cols: cols.clone(), outer };
        self.plain_from(rel, &names, &cols, range)
    }
}

/// Whether a statement of a query's WITH clause changes data.
pub(crate) fn changes_data(query: &NodeEnum) -> bool {
    let NodeEnum::SelectStmt(select) = query else { return false };
    let ctes = select.with_clause.iter().flat_map(|with| &with.ctes);
    ctes.into_iter().any(|node| match &node.node {
        Some(NodeEnum::CommonTableExpr(cte)) => {
            !matches!(inner(&cte.ctequery), Some(NodeEnum::SelectStmt(_)) | None)
        }
        _ => false,
    })
}

/// The queries of a WITH clause, of WITH RECURSIVE in an order in which each stands behind those that it
/// reads, as far as there is one.
fn in_order(with: &pb::WithClause) -> Vec<&pb::CommonTableExpr> {
    let mut left: Vec<&pb::CommonTableExpr> = with
        .ctes
        .iter()
        .filter_map(|node| match &node.node {
            Some(NodeEnum::CommonTableExpr(cte)) => Some(&**cte),
            _ => None,
        })
        .collect();
    if !with.recursive || left.len() < 2 {
        return left;
    }
    let mut reads: Vec<Vec<&str>> = left.iter().map(|cte| names_read(cte)).collect();
    let mut sorted = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let is_ready = |n: &usize| {
            let waits = |name: &&str| left.iter().any(|c| c.ctename == *name);
            !reads[*n].iter().filter(|name| **name != left[*n].ctename).any(waits)
        };
        let next = (0..left.len()).find(is_ready).unwrap_or(0);
        reads.remove(next);
        sorted.push(left.remove(next));
    }
    sorted
}

/// Names without a schema that stand in a WITH query's FROM clauses.
fn names_read(cte: &pb::CommonTableExpr) -> Vec<&str> {
    let Some(query) = inner(&cte.ctequery) else { return Vec::new() };
    let tables = every_node(query).into_iter().filter_map(|node| match node {
        pg_query::NodeRef::RangeVar(range) if range.schemaname.is_empty() => {
            Some(range.relname.as_str())
        }
        _ => None,
    });
    tables.collect()
}

fn refused(range: &pb::RangeVar, how: &str) -> String {
    format!("recursive reference to query \"{}\" must not appear {how}", range.relname)
}
