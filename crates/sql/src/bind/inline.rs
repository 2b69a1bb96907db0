//! Calls of functions in SQL that become what their bodies say, by PostgreSQL's rules
//! (`inline_function`, `inline_set_returning_function`): then conditions find indexes, constants are
//! computed, and nothing is called for each row.
//!
//! An expression's body is bound alone, over its parameters, which the arguments replace. A query's body is
//! bound in the statement like a view's, where the parameters' names and numbers stand for the arguments.
//! What doesn't fit stays a call, which fails with its own words if it must.

use base::{Oid, Result};
use catalog::Function;
use pg_query::{NodeEnum, protobuf as pb};
use types::func::{Body, CastContext, FunctionRow, Volatility};
use types::oids::{RECORD, VOID};

use crate::expr::Expr;
use crate::logical::{Col, CteKind, Rel};
use crate::parse::{Positions, parse};
use crate::prepare::{Arguments, PrepareContext, keep_interrupt};
use crate::walk;

use super::{Binder, Scope, inner};

/// Calls inside calls that are replaced.
const DEPTH_MAX: usize = 32;
/// Parts of an expression that a call may become.
const PARTS_MAX: usize = 2000;
/// Operators that an argument may have that stands in several places.
const REPEATED_MAX: usize = 10;

/// A function whose body is being bound.
#[derive(Clone)]
pub(crate) struct Inlining {
    function: u32,
    name: String,
    /// Its parameters, and the arguments in their place: of a query's body.
    names: Vec<String>,
    args: Option<Vec<Expr>>,
}

/// Whether a function's body may stand in its place at all.
fn may_be(function: &Function) -> bool {
    function.language == "sql"
        && !function.procedure
        && !function.security_definer
        && function.settings.is_empty()
        && function.aggregate.is_none()
        && ![VOID, RECORD].contains(&Oid(function.result))
        || function.set && function.language == "sql" && function.result == RECORD.0
}

/// `SELECT expression`, and nothing else.
fn lone_expression(select: &pb::SelectStmt) -> Option<&NodeEnum> {
    let bare = select.from_clause.is_empty()
        && select.where_clause.is_none()
        && select.distinct_clause.is_empty()
        && select.group_clause.is_empty()
        && select.having_clause.is_none()
        && select.window_clause.is_empty()
        && select.values_lists.is_empty()
        && select.sort_clause.is_empty()
        && select.limit_count.is_none()
        && select.limit_offset.is_none()
        && select.locking_clause.is_empty()
        && select.with_clause.is_none()
        && select.into_clause.is_none()
        && select.larg.is_none();
    let [target] = &select.target_list[..] else { return None };
    match &target.node {
        Some(NodeEnum::ResTarget(target)) if bare => inner(&target.val),
        _ => None,
    }
}

/// Whether it is NULL whenever a parameter in it is.
fn is_strict(e: &Expr) -> bool {
    let of_children = || {
        let mut all = true;
        walk::for_children(e, &mut |child| all = all && is_strict(child));
        all
    };
    match e {
        Expr::Const(..) | Expr::Param(..) | Expr::SessionValue(..) => true,
        Expr::Call { function, .. } => function.strict && of_children(),
        Expr::InOutCast { .. }
        | Expr::Typmod { .. }
        | Expr::Relabel(..)
        | Expr::Collate(..)
        | Expr::Not(_)
        | Expr::Subscript { .. } => of_children(),
        _ => false,
    }
}

/// How often a parameter stands in an expression.
fn uses(e: &Expr, param: u32) -> usize {
    let own = usize::from(matches!(e, Expr::Param(n, _) if *n == param));
    let mut all = own;
    walk::for_children(e, &mut |child| all += uses(child, param));
    all
}

fn parts(e: &Expr) -> usize {
    let mut all = 1;
    walk::for_children(e, &mut |child| all += parts(child));
    all
}

/// Whether an argument may be computed several times.
fn may_repeat(e: &Expr) -> bool {
    let calls = std::cell::Cell::new(0);
    let dear = walk::any(e, &|e| match e {
        Expr::Call { function, .. } => {
            calls.set(calls.get() + 1);
            matches!(function.body, Body::User)
        }
        Expr::InOutCast { .. } => {
            calls.set(calls.get() + 1);
            false
        }
        Expr::Subquery(_) => true,
        _ => false,
    });
    !dear && calls.get() <= REPEATED_MAX && !walk::is_volatile(e)
}

/// Whether its rows are locked or its data changed.
fn locks(rel: &Rel) -> bool {
    let mut found = matches!(rel, Rel::Lock { .. });
    rel.for_inputs(&mut |input| found = found || locks(input));
    found
}

impl Binder<'_> {
    fn may_inline(&self, function: &Function) -> bool {
        self.record.is_none()
            && !self.unfolded
            && may_be(function)
            && self.inlining.len() < DEPTH_MAX
            && self.inlining.iter().all(|one| one.function != function.oid)
    }

    /// A parameter of the function whose query is being bound.
    pub(crate) fn inlined_parameter(&self, name: &str) -> Option<Expr> {
        let one = self.inlining.last()?;
        let at = one.names.iter().position(|n| !n.is_empty() && n == name)?;
        one.args.as_ref()?.get(at).cloned()
    }

    /// The same by the function's name and its own, or by number.
    pub(crate) fn inlined_by(
        &self,
        function: Option<&str>,
        at: Result<usize, &str>,
    ) -> Option<Expr> {
        let one = self.inlining.last()?;
        match (function, at) {
            (Some(function), _) if function != one.name => None,
            (_, Ok(number)) => one.args.as_ref()?.get(number).cloned(),
            (_, Err(name)) => self.inlined_parameter(name),
        }
    }

    /// What a call of a function that is one expression says; None: it stays a call.
    pub(crate) fn inlined(&mut self, function: &Function, args: &[Expr], ty: Oid) -> Option<Expr> {
        let plain = |ty: Oid| types::user::shape(ty).is_none() && !types::user::has_domains(ty);
        if function.set
            || !self.may_inline(function)
            || !plain(ty)
            || !args.iter().all(|a| plain(a.ty()))
            || function.inputs().count() != args.len()
        {
            return None;
        }
        let types: Vec<Oid> = args.iter().map(Expr::ty).collect();
        match self.body_expression(function, &types, ty) {
            Ok(Some(body)) => self.fits(function, &body, args).then(|| self.filled_in(body, args)),
            Ok(None) => None,
            Err(error) => {
                keep_interrupt(&error);
                None
            }
        }
    }

    /// The expression of a body, over the parameters.
    fn body_expression(
        &mut self,
        function: &Function,
        types: &[Oid],
        ty: Oid,
    ) -> Result<Option<Expr>> {
        let text = crate::routine::text_of(function);
        let mut statements = parse(&text)?;
        let (Some(one), true) = (statements.pop(), statements.is_empty()) else { return Ok(None) };
        let NodeEnum::SelectStmt(select) = &*one.node else { return Ok(None) };
        let Some(node) = lone_expression(select) else { return Ok(None) };
        let names = Arguments {
            function: function.name.clone(),
            names: function.inputs().map(|a| a.name.clone()).collect(),
        };
        let search_path = match function.standard_body {
            true => &function.path[..],
            false => self.cx.search_path,
        };
        let cx = PrepareContext {
            arguments: Some(&names),
            variables: None,
            values: &[],
            search_path,
            ..*self.cx
        };
        let mut binder = Binder::new(&cx, &text, types);
        binder.acting = self.acting;
        binder.inlining.clone_from(&self.inlining);
        binder.inlining.push(Inlining {
            function: function.oid,
            name: function.name.clone(),
            names: Vec::new(),
            args: None,
        });
        let value = binder.expr(&Scope::new(None), node)?;
        let value = binder.resolve_unknown(value)?;
        let Some(value) = binder.coerce(value, ty, CastContext::Assignment, 0)? else {
            return Ok(None);
        };
        let alone = binder.subqueries.is_empty()
            && binder.ctes.is_empty()
            && binder.needs.is_empty()
            && !binder.collating
            && binder.params.len() == types.len();
        self.called.extend(binder.called);
        let plain =
            alone && value.ty() == ty && !walk::has_columns(&value) && !walk::has_set(&value);
        Ok(plain.then_some(value))
    }

    /// Whether the body may stand for a call with these arguments.
    fn fits(&self, function: &Function, body: &Expr, args: &[Expr]) -> bool {
        let keeps = match function.volatility {
            'i' => !walk::is_changeable(body),
            's' => !walk::is_volatile(body),
            _ => true,
        };
        if !keeps || function.strict && !is_strict(body) {
            return false;
        }
        let mut size = parts(body);
        for (n, arg) in args.iter().enumerate() {
            // The body may put it into another CASE, whose operand isn't meant.
            if walk::any(arg, &|e| matches!(e, Expr::Held(_))) {
                return false;
            }
            match uses(body, n as u32) {
                0 if function.strict || walk::is_volatile(arg) => return false,
                0 | 1 => {}
                _ if !may_repeat(arg) => return false,
                n => size += n * parts(arg),
            }
        }
        size <= PARTS_MAX
    }

    /// The body with the arguments in place of its parameters, what is constant then computed.
    fn filled_in(&self, body: Expr, args: &[Expr]) -> Expr {
        if let Expr::Param(n, _) = &body
            && let Some(arg) = args.get(*n as usize)
        {
            return arg.clone();
        }
        let kept = body.clone();
        let filled = walk::map_children(body, &mut |child| Ok(self.filled_in(child, args)));
        match filled.unwrap_or(kept) {
            Expr::Call { function, args, ty, .. } => self.call(function, args.into_vec(), ty, 0),
            other => other,
        }
    }

    /// The rows of a function in FROM that is a query, under these columns; None: it stays a call.
    pub(crate) fn inlined_rows(
        &mut self,
        call: &Expr,
        columns: &[(types::Text, Oid)],
        cols: &[Col],
    ) -> Option<Rel> {
        let Expr::Call { function: row, args, .. } = call else { return None };
        if !super::routine::is_users(row) || row.strict || row.volatility == Volatility::Volatile {
            return None;
        }
        let catalog = self.cx.catalog.clone();
        let function = catalog.function(row.oid.0)?;
        let plain = |e: &Expr| !walk::is_volatile(e) && !walk::has_subquery(e);
        let inputs = function.inputs().count();
        if !row.returns_set
            || !self.may_inline(function)
            || args.len() != inputs
            || row.args.len() != inputs
            || function.standard_body && function.path != self.cx.search_path
            || !args.iter().all(plain)
        {
            return None;
        }
        let before = Before::of(self);
        match self.body_rows(function, row, args, columns, cols) {
            Ok(Some(rel)) => Some(rel),
            Ok(None) => {
                before.restore(self);
                None
            }
            Err(error) => {
                keep_interrupt(&error);
                before.restore(self);
                None
            }
        }
    }

    fn body_rows(
        &mut self,
        function: &Function,
        row: &FunctionRow,
        args: &[Expr],
        columns: &[(types::Text, Oid)],
        cols: &[Col],
    ) -> Result<Option<Rel>> {
        let text = crate::routine::text_of(function);
        let mut statements = parse(&text)?;
        let (Some(one), true) = (statements.pop(), statements.is_empty()) else { return Ok(None) };
        let NodeEnum::SelectStmt(select) = &*one.node else { return Ok(None) };
        if select.into_clause.is_some() {
            return Ok(None);
        }
        let ctes = self.ctes.len();
        self.inlining.push(Inlining {
            function: function.oid,
            name: function.name.clone(),
            names: function.inputs().map(|a| a.name.clone()).collect(),
            args: Some(args.to_vec()),
        });
        let query = self.foreign_text(|b| b.select(select, None, true));
        self.inlining.pop();
        let query = query?;
        let changes = self.ctes[ctes..].iter().any(|c| matches!(c.kind, CteKind::Change(_)));
        if changes || locks(&query.rel) || query.cols.len() != columns.len() {
            return Ok(None);
        }
        let mut exprs = Vec::with_capacity(cols.len());
        for (n, ((_, ty), col)) in columns.iter().zip(cols).enumerate() {
            let value = self.column(query.cols[n]);
            if value.ty() == RECORD {
                return Ok(None);
            }
            let Some(mut value) = self.coerce(value, *ty, CastContext::Assignment, 0)? else {
                return Ok(None);
            };
            if row.result != RECORD && types::user::shape(row.result).is_some() {
                let typmod = super::coerce::typmod_of_field(row.result, n);
                value = self.with_typmod(value, typmod, false, 0)?;
            }
            if value.ty() != *ty {
                return Ok(None);
            }
            if let Expr::Column(below, _) = value {
                let of = usize::from(*col);
                self.vars[of].collation = self.vars[usize::from(below)].collation;
            }
            exprs.push((*col, value));
        }
        Ok(Some(Rel::Project { input: Box::new(query.rel), exprs, set: false }))
    }

    /// Binds a text that is not the statement's: no names of its own, no positions, literals as they are, in
    /// the session's name.
    fn foreign_text<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        let names = std::mem::take(&mut self.cte_names);
        let pending = std::mem::take(&mut self.pending_ctes);
        let acting = std::mem::replace(&mut self.acting, self.cx.role);
        let text = std::mem::take(&mut self.text);
        let positions = std::mem::replace(&mut self.positions, Positions::new(""));
        let result = self.without_variables(|b| b.holding(f));
        self.positions = positions;
        self.text = text;
        self.acting = acting;
        self.pending_ctes = pending;
        self.cte_names = names;
        result
    }
}

/// How far binding was.
struct Before {
    vars: usize,
    subqueries: usize,
    ctes: usize,
    needs: usize,
    called: usize,
    guards: usize,
    locks: Vec<(Oid, txn::LockMode)>,
    nesting: (u32, u32, usize, u32, u32),
    inlining: usize,
    collating: bool,
}

impl Before {
    fn of(binder: &Binder<'_>) -> Before {
        Before {
            vars: binder.vars.len(),
            subqueries: binder.subqueries.len(),
            ctes: binder.ctes.len(),
            needs: binder.needs.len(),
            called: binder.called.len(),
            guards: binder.guards.len(),
            locks: binder.locks.clone(),
            nesting: (
                binder.queries,
                binder.sublinks,
                binder.depth,
                binder.view_depth,
                binder.unseen,
            ),
            inlining: binder.inlining.len(),
            collating: binder.collating,
        }
    }

    fn restore(self, binder: &mut Binder<'_>) {
        binder.vars.truncate(self.vars);
        binder.subqueries.truncate(self.subqueries);
        binder.ctes.truncate(self.ctes);
        binder.needs.truncate(self.needs);
        binder.called.truncate(self.called);
        binder.guards.truncate(self.guards);
        binder.locks = self.locks;
        (binder.queries, binder.sublinks, binder.depth, binder.view_depth, binder.unseen) =
            self.nesting;
        binder.inlining.truncate(self.inlining);
        binder.collating = self.collating;
    }
}
