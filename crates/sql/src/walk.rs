//! Walks over expressions: children, columns used, sameness.

use base::{Oid, Result};
use types::func::{FunctionRow, Volatility};

use crate::expr::{AggCall, Expr, SortKey, SubqueryExpr, SubqueryKind};
use crate::logical::Col;

/// Calls `f` with each direct child. A subquery's children are what stands for the outer columns
/// that it uses, and the left side of its comparison.
pub fn for_children<'e>(e: &'e Expr, f: &mut dyn FnMut(&'e Expr)) {
    match e {
        Expr::Const(..)
        | Expr::Param(..)
        | Expr::Column(..)
        | Expr::Slot(..)
        | Expr::Held(_)
        | Expr::SessionValue(..) => {}
        Expr::Call { args, .. } => args.iter().for_each(f),
        Expr::InOutCast { arg, .. }
        | Expr::Typmod { arg, .. }
        | Expr::Relabel(arg, _)
        | Expr::Collate(arg, ..)
        | Expr::Not(arg)
        | Expr::IsNull { arg, .. }
        | Expr::BooleanTest { arg, .. } => f(arg),
        Expr::And(items) | Expr::Or(items) | Expr::Coalesce(items, _) | Expr::Row(items) => {
            items.iter().for_each(f)
        }
        Expr::MinMax { args, .. } => args.iter().for_each(f),
        Expr::Distinct { args, .. } => args.iter().for_each(f),
        Expr::Case { operand, arms, default, .. } => {
            operand.iter().for_each(|e| f(e));
            for (test, result) in arms {
                f(test);
                f(result);
            }
            f(default);
        }
        Expr::NullIf { args, .. } => args.iter().for_each(f),
        Expr::ArrayOp { left, array, .. } => {
            f(left);
            f(array);
        }
        Expr::Array { items, .. } => items.iter().for_each(f),
        Expr::Subscript { array, indexes, .. } => {
            f(array);
            indexes.iter().for_each(f);
        }
        Expr::RowCompare { fields, .. } => {
            for (l, r, _, _) in fields {
                f(l);
                f(r);
            }
        }
        Expr::Subquery(s) => {
            s.slots.iter().for_each(|(_, e)| f(e));
            if let SubqueryKind::Compare { test, .. } = &s.kind {
                f(test);
            }
        }
    }
}

/// Rebuilds an expression with each direct child replaced.
pub fn map_children(e: Expr, f: &mut dyn FnMut(Expr) -> Result<Expr>) -> Result<Expr> {
    fn all(items: Vec<Expr>, f: &mut dyn FnMut(Expr) -> Result<Expr>) -> Result<Vec<Expr>> {
        items.into_iter().map(f).collect()
    }
    fn one(e: Box<Expr>, f: &mut dyn FnMut(Expr) -> Result<Expr>) -> Result<Box<Expr>> {
        Ok(Box::new(f(*e)?))
    }
    fn pair(e: Box<[Expr; 2]>, f: &mut dyn FnMut(Expr) -> Result<Expr>) -> Result<Box<[Expr; 2]>> {
        let [a, b] = *e;
        Ok(Box::new([f(a)?, f(b)?]))
    }
    Ok(match e {
        Expr::Const(..)
        | Expr::Param(..)
        | Expr::Column(..)
        | Expr::Slot(..)
        | Expr::Held(_)
        | Expr::SessionValue(..) => e,
        Expr::Call { function, args, ty, position } => {
            let args = all(args.into_vec(), f)?.into_boxed_slice();
            Expr::Call { function, args, ty, position }
        }
        Expr::InOutCast { arg, ty, typmod } => Expr::InOutCast { arg: one(arg, f)?, ty, typmod },
        Expr::Typmod { arg, ty, typmod, explicit } => {
            Expr::Typmod { arg: one(arg, f)?, ty, typmod, explicit }
        }
        Expr::Relabel(arg, ty) => Expr::Relabel(one(arg, f)?, ty),
        Expr::Collate(arg, oid, at) => Expr::Collate(one(arg, f)?, oid, at),
        Expr::And(items) => Expr::And(all(items, f)?),
        Expr::Or(items) => Expr::Or(all(items, f)?),
        Expr::Not(arg) => Expr::Not(one(arg, f)?),
        Expr::IsNull { arg, negated } => Expr::IsNull { arg: one(arg, f)?, negated },
        Expr::BooleanTest { arg, is, negated } => {
            Expr::BooleanTest { arg: one(arg, f)?, is, negated }
        }
        Expr::Distinct { equal, args, negated } => {
            Expr::Distinct { equal, args: pair(args, f)?, negated }
        }
        Expr::Case { operand, arms, default, ty } => {
            let operand = operand.map(|e| one(e, f)).transpose()?;
            let arms = arms
                .into_iter()
                .map(|(test, result)| Ok((f(test)?, f(result)?)))
                .collect::<Result<_>>()?;
            Expr::Case { operand, arms, default: one(default, f)?, ty }
        }
        Expr::Coalesce(items, ty) => Expr::Coalesce(all(items, f)?, ty),
        Expr::NullIf { equal, args } => Expr::NullIf { equal, args: pair(args, f)? },
        Expr::MinMax { greatest, args, ty } => Expr::MinMax { greatest, args: all(args, f)?, ty },
        Expr::ArrayOp { function, left, array, all } => {
            Expr::ArrayOp { function, left: one(left, f)?, array: one(array, f)?, all }
        }
        Expr::Array { items, element, ty, nested } => {
            Expr::Array { items: all(items, f)?, element, ty, nested }
        }
        Expr::Subscript { array, indexes, ty } => {
            Expr::Subscript { array: one(array, f)?, indexes: all(indexes, f)?, ty }
        }
        Expr::Row(items) => Expr::Row(all(items, f)?),
        Expr::RowCompare { op, fields } => {
            let fields = fields
                .into_iter()
                .map(|(l, r, equal, less)| Ok((f(l)?, f(r)?, equal, less)))
                .collect::<Result<_>>()?;
            Expr::RowCompare { op, fields }
        }
        Expr::Subquery(s) => Expr::Subquery(Box::new(map_subquery(*s, f)?)),
    })
}

fn map_subquery(
    mut s: SubqueryExpr,
    f: &mut dyn FnMut(Expr) -> Result<Expr>,
) -> Result<SubqueryExpr> {
    for (_, e) in &mut s.slots {
        *e = f(e.clone())?;
    }
    if let SubqueryKind::Compare { test, hash_left, .. } = &mut s.kind {
        **test = f((**test).clone())?;
        for left in hash_left.iter_mut().flatten() {
            *left = f(left.clone())?;
        }
    }
    Ok(s)
}

/// Adds the columns that an expression uses.
pub fn columns_of(e: &Expr, out: &mut Vec<Col>) {
    if let Expr::Column(col, _) = e {
        out.push(*col);
    }
    for_children(e, &mut |child| columns_of(child, out));
}

/// Whether its value may change from one time to another: a call that isn't immutable, a value of
/// the session.
pub fn is_changeable(e: &Expr) -> bool {
    any(e, &|x| match x {
        // These two are a cast to text and `||`.
        Expr::Call { function, args, .. } if matches!(function.oid.0, 2003 | 2004) => {
            args.iter().any(|arg| !types::io::writes_immutably(arg.ty()))
        }
        Expr::Call { function, .. } => function.volatility != Volatility::Immutable,
        Expr::SessionValue(..) => true,
        // Items that are the same in both types: `varchar[]` to `text[]`.
        Expr::InOutCast { arg, ty, .. } if items_have_one_form(arg.ty(), *ty) => false,
        Expr::InOutCast { arg, ty, .. } => {
            !types::io::writes_immutably(arg.ty()) || !types::io::reads_immutably(*ty)
        }
        _ => false,
    })
}

fn items_have_one_form(from: Oid, to: Oid) -> bool {
    let item = |ty| types::TypeIo::get(ty).map_or(Oid::INVALID, |t| t.element);
    let (from, to) = (item(from), item(to));
    let texts = [types::oids::TEXT, types::oids::VARCHAR];
    from != Oid::INVALID && to != Oid::INVALID && texts.contains(&from) && texts.contains(&to)
}

/// Whether any part satisfies the test.
pub fn any(e: &Expr, test: &dyn Fn(&Expr) -> bool) -> bool {
    if test(e) {
        return true;
    }
    let mut found = false;
    for_children(e, &mut |child| found = found || any(child, test));
    found
}

/// Calls `f` with each subquery in it.
pub fn for_subqueries<'e>(e: &'e Expr, f: &mut dyn FnMut(&'e SubqueryExpr)) {
    if let Expr::Subquery(query) = e {
        f(query);
    }
    for_children(e, &mut |child| for_subqueries(child, f));
}

/// Whether it uses columns, or the value of a CASE's operand.
pub fn has_columns(e: &Expr) -> bool {
    any(e, &|x| matches!(x, Expr::Column(..) | Expr::Held(_)))
}

/// Whether it holds a set-returning call.
pub fn has_set(e: &Expr) -> bool {
    any(e, &|x| matches!(x, Expr::Call { function, .. } if function.returns_set))
}

/// Whether it may give another value each time, or others can see each time that it is computed.
pub fn is_volatile(e: &Expr) -> bool {
    any(e, &|x| match x {
        Expr::Call { function, .. } => function.volatility == Volatility::Volatile,
        // Without values of the row it is run once.
        Expr::Subquery(s) => s.acts && !s.slots.is_empty(),
        _ => false,
    })
}

/// Whether others can see that it is computed, if only once: it must stand in one place, and is computed even if
/// nobody reads it.
pub fn acts(e: &Expr) -> bool {
    is_volatile(e) || any(e, &|x| matches!(x, Expr::Subquery(s) if s.acts))
}

/// The greatest number of a parameter in it.
pub fn max_param(e: &Expr) -> Option<u32> {
    let most = std::cell::Cell::new(None);
    any(e, &|x| {
        if let Expr::Param(n, _) = x {
            most.set(most.get().max(Some(*n)));
        }
        false
    });
    most.get()
}

/// Whether it holds a subquery.
pub fn has_subquery(e: &Expr) -> bool {
    any(e, &|x| matches!(x, Expr::Subquery(_)))
}

/// Whether a function is the `=` of some type.
pub fn is_equality(function: &FunctionRow) -> bool {
    // That of geometric types compares sizes: equal values need not be the same.
    let geometric = |ty: &base::Oid| types::TypeIo::get(*ty).is_some_and(|t| t.category == b'G');
    if function.operator != base::Oid::INVALID {
        return types::opclass::comparison(function.operator) == Some("=");
    }
    is_operator(function, "=") && !function.args.iter().any(geometric)
}

/// Whether a function is the `<>` of some type of the server's own.
pub fn is_inequality(function: &FunctionRow) -> bool {
    let geometric = |ty: &base::Oid| types::TypeIo::get(*ty).is_some_and(|t| t.category == b'G');
    function.operator == base::Oid::INVALID
        && is_operator(function, "<>")
        && !function.args.iter().any(geometric)
}

/// Whether a function is behind an operator of this name.
pub fn is_operator(function: &FunctionRow, name: &str) -> bool {
    types::func::operators_named(name).iter().any(|o| o.function == function.oid)
}

/// Whether two expressions are the same by structure.
pub fn same(a: &Expr, b: &Expr) -> bool {
    let heads = match (a, b) {
        (Expr::Const(x, t), Expr::Const(y, u)) => t == u && x == y,
        (Expr::Param(x, t), Expr::Param(y, u)) => t == u && x == y,
        (Expr::Column(x, _), Expr::Column(y, _)) => x == y,
        (Expr::Slot(x, _), Expr::Slot(y, _)) => x == y,
        (Expr::Held(t), Expr::Held(u)) => t == u,
        (Expr::SessionValue(x, t), Expr::SessionValue(y, u)) => t == u && x == y,
        (Expr::Call { function: f, ty: t, .. }, Expr::Call { function: g, ty: u, .. }) => {
            f.oid == g.oid && t == u
        }
        (Expr::InOutCast { ty: t, typmod: m, .. }, Expr::InOutCast { ty: u, typmod: n, .. }) => {
            t == u && m == n
        }
        (Expr::Typmod { ty: t, typmod: m, .. }, Expr::Typmod { ty: u, typmod: n, .. }) => {
            t == u && m == n
        }
        (Expr::Relabel(_, t), Expr::Relabel(_, u)) => t == u,
        (Expr::Collate(_, c, _), Expr::Collate(_, d, _)) => c == d,
        (Expr::And(_), Expr::And(_))
        | (Expr::Or(_), Expr::Or(_))
        | (Expr::Not(_), Expr::Not(_))
        | (Expr::Row(_), Expr::Row(_))
        | (Expr::NullIf { .. }, Expr::NullIf { .. }) => true,
        (Expr::IsNull { negated: m, .. }, Expr::IsNull { negated: n, .. }) => m == n,
        (
            Expr::BooleanTest { is: i, negated: m, .. },
            Expr::BooleanTest { is: j, negated: n, .. },
        ) => i == j && m == n,
        (Expr::Distinct { negated: m, .. }, Expr::Distinct { negated: n, .. }) => m == n,
        (
            Expr::Case { operand: o, arms: x, ty: t, .. },
            Expr::Case { operand: p, arms: y, ty: u, .. },
        ) => t == u && x.len() == y.len() && o.is_some() == p.is_some(),
        (Expr::Coalesce(_, t), Expr::Coalesce(_, u)) => t == u,
        (Expr::MinMax { greatest: m, ty: t, .. }, Expr::MinMax { greatest: n, ty: u, .. }) => {
            m == n && t == u
        }
        (Expr::ArrayOp { function: f, all: m, .. }, Expr::ArrayOp { function: g, all: n, .. }) => {
            f.oid == g.oid && m == n
        }
        (Expr::Array { ty: t, .. }, Expr::Array { ty: u, .. }) => t == u,
        (Expr::Subscript { ty: t, .. }, Expr::Subscript { ty: u, .. }) => t == u,
        (Expr::RowCompare { op: m, .. }, Expr::RowCompare { op: n, .. }) => m == n,
        (Expr::Subquery(x), Expr::Subquery(y)) => x.twin == y.twin,
        _ => false,
    };
    if !heads {
        return false;
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for_children(a, &mut |c| left.push(c));
    for_children(b, &mut |c| right.push(c));
    left.len() == right.len() && left.iter().zip(&right).all(|(x, y)| same(x, y))
}

/// Whether two aggregate calls are the same.
pub fn same_aggregate(a: &AggCall, b: &AggCall) -> bool {
    let keys = |x: &[SortKey], y: &[SortKey]| {
        x.len() == y.len()
            && x.iter().zip(y).all(|(k, l)| {
                k.descending == l.descending
                    && k.nulls_first == l.nulls_first
                    && same(&k.expr, &l.expr)
            })
    };
    let filters = match (&a.filter, &b.filter) {
        (None, None) => true,
        (Some(x), Some(y)) => same(x, y),
        _ => false,
    };
    let own = |x: &AggCall| x.own.as_ref().map(|own| own.function);
    a.aggregate.oid == b.aggregate.oid
        && own(a) == own(b)
        && a.direct.is_none()
        && b.direct.is_none()
        && a.distinct == b.distinct
        && a.ty == b.ty
        && filters
        && keys(&a.order, &b.order)
        && a.args.len() == b.args.len()
        && a.args.iter().zip(&b.args).all(|(x, y)| same(x, y) && !is_volatile(x))
}

/// What a test of CASE compares with the value of the operand, if it is a plain comparison: what stands behind WHEN.
pub fn compared_with_held(test: &Expr) -> Option<&Expr> {
    fn is_held(e: &Expr) -> bool {
        match e {
            Expr::Held(_) => true,
            Expr::Relabel(arg, _) | Expr::Collate(arg, ..) | Expr::InOutCast { arg, .. } => {
                is_held(arg)
            }
            // An implicit cast by a function.
            Expr::Call { args, .. } => matches!(&**args, [arg] if is_held(arg)),
            _ => false,
        }
    }
    match test {
        Expr::Call { args, .. } => match &**args {
            [operand, value] if is_held(operand) => Some(value),
            _ => None,
        },
        _ => None,
    }
}

/// Replaces columns by expressions.
pub fn substitute(e: Expr, map: &dyn Fn(Col) -> Option<Expr>) -> Expr {
    fn step(e: Expr, map: &dyn Fn(Col) -> Option<Expr>) -> Result<Expr> {
        if let Expr::Column(col, _) = &e
            && let Some(new) = map(*col)
        {
            return Ok(new);
        }
        map_children(e, &mut |child| step(child, map))
    }
    let kept = e.clone();
    step(e, map).unwrap_or(kept)
}

/// Replaces parameters by values.
pub fn map_params(e: Expr, value: &mut dyn FnMut(u32) -> Option<types::Datum>) -> Expr {
    fn step(e: Expr, value: &mut dyn FnMut(u32) -> Option<types::Datum>) -> Result<Expr> {
        if let Expr::Param(n, ty) = &e
            && let Some(found) = value(*n)
        {
            return Ok(Expr::Const(found, *ty));
        }
        map_children(e, &mut |child| step(child, value))
    }
    let kept = e.clone();
    step(e, value).unwrap_or(kept)
}

/// Splits a condition at its ANDs.
pub fn conjuncts(e: Expr, out: &mut Vec<Expr>) {
    match e {
        Expr::And(items) => items.into_iter().for_each(|i| conjuncts(i, out)),
        Expr::Const(types::Datum::Bool(true), _) => {}
        Expr::Or(arms) => factored(arms, out),
        other => out.push(other),
    }
}

/// `(a AND b) OR (a AND c)` is `a AND (b OR c)`: what all arms have in common may be joined on.
fn factored(arms: Vec<Expr>, out: &mut Vec<Expr>) {
    let parts = |arm: &Expr| match arm {
        Expr::And(items) => items.clone(),
        other => vec![other.clone()],
    };
    let mut lists: Vec<Vec<Expr>> = arms.iter().map(parts).collect();
    let Some((first, rest)) = lists.split_first() else { return };
    let shared = |e: &&Expr| rest.iter().all(|l| l.iter().any(|x| same(x, e))) && !is_volatile(e);
    let common: Vec<Expr> = first.iter().filter(shared).cloned().collect();
    if common.is_empty() {
        out.push(Expr::Or(arms));
        return;
    }
    for list in &mut lists {
        list.retain(|e| !common.iter().any(|c| same(c, e)));
    }
    out.extend(common);
    // An arm with nothing left holds wherever the common part does.
    if lists.iter().any(Vec::is_empty) {
        return;
    }
    let arms = lists.into_iter().map(|mut l| match l.len() {
        1 => l.remove(0),
        _ => Expr::And(l),
    });
    out.push(Expr::Or(arms.collect()));
}
