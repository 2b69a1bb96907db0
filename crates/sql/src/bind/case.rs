//! CASE, COALESCE and NULLIF: what they compute of their parts is a matter of rows, and of constants when they are planned.

use base::Result;
use pg_query::{NodeEnum, protobuf as pb};
use types::Datum;
use types::oids::{BOOL, BYTEA, UNKNOWN};

use crate::expr::Expr;
use crate::walk;

use super::{Binder, Scope, ast, inner};

impl Binder<'_> {
    /// CASE.
    pub(super) fn case(&mut self, scope: &Scope<'_>, c: &pb::CaseExpr) -> Result<Expr> {
        let subject = match inner(&c.arg) {
            Some(arg) => {
                let subject = self.expr(scope, arg)?;
                self.pin(&subject);
                Some(self.resolve_unknown(subject)?)
            }
            None => None,
        };
        // Each test refers to the operand. An operand without visible effects is repeated in each test, so that
        // indexes, constant folding and column kernels apply to it.
        let held = match &subject {
            Some(subject) if self.is_held(subject) => Some(self.held(subject)?),
            _ => None,
        };
        let mut decided = false;
        let mut arms = Vec::with_capacity(c.args.len());
        let mut types = Vec::with_capacity(c.args.len() + 1);
        for node in &c.args {
            let Some(NodeEnum::CaseWhen(when)) = &node.node else { continue };
            let at = inner(&when.expr).map_or(0, |n| self.at(ast::location(n)));
            let test = match arms.is_empty() {
                true => self.expr_box(scope, &when.expr)?,
                false => self.reached_if(decided, |b| b.expr_box(scope, &when.expr))?,
            };
            let test = match held.as_ref().or(subject.as_ref()) {
                Some(operand) => self.binary("=", operand.clone(), test, at)?,
                None => test,
            };
            // A set in the subject is CASE's error, not the test's.
            let test = match &subject {
                Some(subject) if crate::walk::has_set(subject) => test,
                _ => self.boolean(test, "CASE/WHEN", at)?,
            };
            // A constant test leaves out either its result or all that follows.
            decided |= may_be_constant(&test);
            let result = self.reached_if(decided, |b| b.expr_box(scope, &when.result))?;
            let at = inner(&when.result).map_or(0, |n| self.at(ast::location(n)));
            types.push((result.ty(), at));
            arms.push((test, result));
        }
        let (default, at) = match inner(&c.defresult) {
            Some(node) => {
                let default = self.reached_if(decided, |b| b.expr(scope, node))?;
                (default, self.at(ast::location(node)))
            }
            None => (Expr::Const(Datum::Null, UNKNOWN), 0),
        };
        // PostgreSQL looks at ELSE first.
        types.insert(0, (default.ty(), at));
        let ty = self.common_type(&types, "CASE")?;
        let default = Box::new(self.to_common(default, ty, "CASE/ELSE", at)?);
        let mut out = Vec::with_capacity(arms.len());
        for ((test, result), (_, at)) in arms.into_iter().zip(&types[1..]) {
            out.push((test, self.to_common(result, ty, "CASE/WHEN", *at)?));
        }
        let operand = subject.filter(|_| held.is_some()).map(Box::new);
        Ok(Expr::Case { operand, arms: out, default, ty })
    }

    /// Whether a CASE keeps its operand: it is to be printed as it was written, or to be computed once.
    fn is_held(&self, operand: &Expr) -> bool {
        let calls = |e: &Expr| match e {
            Expr::Call { function, .. } => matches!(function.body, types::func::Body::User),
            other => matches!(other, Expr::Subquery(_)),
        };
        self.record.is_some()
            || self.unfolded
            || walk::is_volatile(operand)
            || walk::any(operand, &calls)
    }

    /// What stands for a CASE's operand in its tests.
    fn held(&mut self, operand: &Expr) -> Result<Expr> {
        let held = Expr::Held(operand.ty());
        let collation = self.known_collation(operand)?;
        Ok(match collation == self.cx.catalog.type_collation(operand.ty().0) || collation == 0 {
            true => held,
            false => Expr::Collate(Box::new(held), collation, 0),
        })
    }

    /// `NULLIF(left, right)`, of the type in which both are compared.
    pub(super) fn null_if(&mut self, left: Expr, right: Expr, position: u32) -> Result<Expr> {
        let value = self.collating.then(|| left.clone());
        let (equal, left, right) = self.compare("=", left, right, position)?;
        match value {
            // What is compared under a collation are keys: the value itself is another expression.
            Some(value) if left.ty() == BYTEA && value.ty() != BYTEA => {
                let value = self.resolve_unknown(value)?;
                let test = self.call(equal, vec![left, right], BOOL, position);
                let (ty, null) = (value.ty(), Expr::Const(Datum::Null, value.ty()));
                let arms = vec![(test, null)];
                Ok(Expr::Case { operand: None, arms, default: Box::new(value), ty })
            }
            _ => Ok(Expr::NullIf { equal, args: Box::new([left, right]) }),
        }
    }

    /// COALESCE's arguments: a constant leaves out those behind it.
    pub(super) fn coalesced(&mut self, scope: &Scope<'_>, nodes: &[pb::Node]) -> Result<Vec<Expr>> {
        let mut args: Vec<Expr> = Vec::with_capacity(nodes.len());
        let mut decided = false;
        for node in nodes {
            let arg = match args.is_empty() {
                true => self.expr_node(scope, node)?,
                false => self.reached_if(decided, |b| b.expr_node(scope, node))?,
            };
            decided |= !matches!(arg, Expr::Const(Datum::Null, _)) && may_be_constant(&arg);
            args.push(arg);
        }
        Ok(args)
    }
}

/// Whether planning may find out what an expression's value is.
fn may_be_constant(e: &Expr) -> bool {
    !walk::has_columns(e) && !walk::has_subquery(e)
}
