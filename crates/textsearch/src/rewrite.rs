//! `ts_rewrite`, `@>` of queries, `querytree`.

use base::Result;

use crate::query::{Builder, Node, TsQuery};
use crate::tree::{Operator, Tree, compare};

/// A query with its operators flat and in order.
fn prepared(query: &TsQuery) -> Result<Option<Tree>> {
    let Some(root) = query.root() else { return Ok(None) };
    let mut tree = Tree::of(query, root);
    tree.flatten()?;
    tree.sort()?;
    Ok(Some(tree))
}

/// Replaces what equals `target` in a query by `substitute` (by nothing, when that is empty).
///
/// # Errors
/// `54001`.
pub fn rewrite(query: &TsQuery, target: &TsQuery, substitute: &TsQuery) -> Result<TsQuery> {
    let (Some(tree), Some(target)) = (prepared(query)?, prepared(target)?) else {
        return Ok(query.clone());
    };
    let substitute = substitute.root().map(|root| Tree::of(substitute, root));
    let mut found = false;
    match replace(tree, &target, substitute.as_ref(), &mut found)? {
        Some(tree) => tree.to_query(),
        None => Ok(TsQuery::default()),
    }
}

fn equal(a: &Tree, b: &Tree) -> bool {
    match (a, b) {
        (Tree::Value(x, _), Tree::Value(y, _)) => x.word == y.word,
        _ => compare(a, b).is_eq(),
    }
}

/// The tree after the replacement; None: nothing is left.
fn replace(
    tree: Tree,
    target: &Tree,
    substitute: Option<&Tree>,
    found: &mut bool,
) -> Result<Option<Tree>> {
    sched::check_stack()?;
    sched::check_interrupts()?;
    if equal(&tree, target) {
        *found = true;
        return Ok(substitute.cloned());
    }
    let Tree::Operator(operator, distance, operands) = tree else { return Ok(Some(tree)) };
    let mut operands = operands;
    // Some of the operands of `&` or `|` may be all of the target's.
    if let Tree::Operator(o, d, wanted) = target
        && *o == operator
        && *d == distance
        && wanted.len() < operands.len()
        && matches!(operator, Operator::And | Operator::Or)
    {
        let mut rest = operands.clone();
        let all = wanted.iter().all(|w| match rest.iter().position(|r| equal(r, w)) {
            Some(at) => {
                rest.remove(at);
                true
            }
            None => false,
        });
        if all {
            *found = true;
            rest.extend(substitute.cloned());
            operands = rest;
            let mut whole = Tree::Operator(operator, distance, operands);
            whole.sort_operands();
            return Ok(collapse(whole));
        }
    }
    let mut kept = Vec::new();
    for operand in operands {
        kept.extend(replace(operand, target, substitute, found)?);
    }
    let mut whole = Tree::Operator(operator, distance, kept);
    if *found {
        whole.sort_operands();
    }
    Ok(collapse(whole))
}

/// An operator over fewer operands than it needs is its operand, or nothing.
fn collapse(tree: Tree) -> Option<Tree> {
    match tree {
        Tree::Operator(Operator::Not, _, ref operands) if operands.is_empty() => None,
        Tree::Operator(operator, _, mut operands)
            if operator != Operator::Not && operands.len() < 2 =>
        {
            operands.pop()
        }
        tree => Some(tree),
    }
}

/// Whether all lexemes of `part` are among those of `whole`.
pub fn contains(whole: &TsQuery, part: &TsQuery) -> bool {
    part.operands().all(|p| whole.operands().any(|w| w.word == p.word))
}

/// The part of a query that an index can be asked: its negated parts are left out. None: all of it (`T`).
///
/// # Errors
/// `54001`.
pub fn indexable(query: &TsQuery) -> Result<Option<TsQuery>> {
    let mut builder = Builder::default();
    let Some(root) = query.root() else { return Ok(Some(TsQuery::default())) };
    Ok(positive(query, root, &mut builder)?.map(|root| builder.finish(Some(root))))
}

fn positive(query: &TsQuery, at: u32, out: &mut Builder) -> Result<Option<u32>> {
    sched::check_stack()?;
    Ok(match query.node(at) {
        Node::Value(v) => Some(out.push(Node::Value(v.clone()))),
        Node::Stop | Node::Not(_) => None,
        Node::Or(a, b) => match (positive(query, *a, out)?, positive(query, *b, out)?) {
            (Some(a), Some(b)) => Some(out.push(Node::Or(a, b))),
            _ => None,
        },
        node @ (Node::And(a, b) | Node::Phrase(a, b, _)) => {
            match (positive(query, *a, out)?, positive(query, *b, out)?) {
                (Some(a), Some(b)) => Some(out.push(match node {
                    Node::Phrase(_, _, n) => Node::Phrase(a, b, *n),
                    _ => Node::And(a, b),
                })),
                (a, b) => a.or(b),
            }
        }
    })
}
