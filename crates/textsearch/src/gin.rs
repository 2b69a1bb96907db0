//! `tsvector_ops` of GIN: documents by their lexemes.

use std::sync::Arc;

use base::ternary::{Mode, Ternary};
use base::{Error, Oid, Result};
use types::Datum;
use types::gin::{GinClass, GinQuery, QueryKey};

use crate::query::{Node, Operand, TsQuery};
use crate::vector::TsVector;

/// The class's oid.
const TSVECTOR_OPS: u32 = 10_073;

/// Makes the class known.
pub fn register() {
    types::gin::register(TSVECTOR_OPS, |_: Oid| Arc::new(TsVectorOps));
}

struct TsVectorOps;

impl GinClass for TsVectorOps {
    fn value_keys(&self, value: &Datum, keys: &mut Vec<Option<Vec<u8>>>) -> Result<()> {
        let vector: &TsVector = opened(value)?;
        keys.extend(vector.lexemes.iter().map(|l| Some(l.word.as_bytes().to_vec())));
        Ok(())
    }

    fn query(&self, _strategy: u16, value: &Datum) -> Result<GinQuery> {
        let query: &TsQuery = opened(value)?;
        let Some(root) = query.root() else { return Ok(GinQuery::nothing()) };
        let mut keys = Vec::new();
        let mut nodes = Vec::with_capacity(query.nodes.len());
        for node in &query.nodes {
            nodes.push(Part::of(node, &mut keys));
        }
        let mode = if needs_lexeme(&query.nodes, root) { Mode::Default } else { Mode::All };
        let check = Arc::new(move |present: &[Ternary]| evaluate(&nodes, root, present));
        Ok(GinQuery { keys, mode, check })
    }
}

/// A value of one of the types.
pub(crate) fn opened<T: types::open::OpenValue>(value: &Datum) -> Result<&T> {
    match value {
        Datum::Open(open) => open.get(),
        _ => None,
    }
    .ok_or_else(|| Error::internal("tsvector_ops over another type"))
}

/// A node, its lexeme as a place among those that are asked for.
pub(crate) enum Part {
    /// A lexeme; it may have to have a weight.
    Lexeme(usize, bool),
    Node(Node),
}

impl Part {
    pub(crate) fn of(node: &Node, keys: &mut Vec<QueryKey>) -> Part {
        let Node::Value(operand) = node else { return Part::Node(node.clone()) };
        let key = key(operand);
        let place = keys.iter().position(|k| *k == key).unwrap_or_else(|| {
            keys.push(key);
            keys.len() - 1
        });
        Part::Lexeme(place, operand.weights != 0)
    }
}

fn key(operand: &Operand) -> QueryKey {
    let word = operand.word.as_bytes().to_vec();
    if operand.prefix { QueryKey::Beginning(word) } else { QueryKey::Key(word) }
}

/// Whether documents without any of the lexemes never match. Children come before their parents.
fn needs_lexeme(nodes: &[Node], root: u32) -> bool {
    let mut needs: Vec<bool> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let of = |n: &u32| needs.get(*n as usize).copied().unwrap_or(false);
        let needed = match node {
            Node::Value(_) => true,
            Node::Stop | Node::Not(_) => false,
            Node::And(a, b) | Node::Phrase(a, b, _) => of(a) || of(b),
            Node::Or(a, b) => of(a) && of(b),
        };
        needs.push(needed);
    }
    needs.get(root as usize).copied().unwrap_or(false)
}

/// The query's truth for a document that has these lexemes.
pub(crate) fn evaluate(parts: &[Part], root: u32, present: &[Ternary]) -> Ternary {
    let mut known: Vec<Ternary> = Vec::with_capacity(parts.len());
    for part in parts {
        let of = |n: &u32| known.get(*n as usize).copied().unwrap_or(Ternary::Maybe);
        let now = match part {
            Part::Lexeme(n, false) => present[*n],
            Part::Lexeme(n, true) => present[*n].min(Ternary::Maybe),
            Part::Node(Node::Not(a)) => match of(a) {
                Ternary::True => Ternary::False,
                Ternary::False => Ternary::True,
                Ternary::Maybe => Ternary::Maybe,
            },
            Part::Node(Node::And(a, b)) => of(a).min(of(b)),
            // Places are not in the index; what is not there may be what the phrase wants.
            Part::Node(Node::Phrase(a, b, _)) => of(a).min(of(b)).min(Ternary::Maybe),
            Part::Node(Node::Or(a, b)) => of(a).max(of(b)),
            Part::Node(Node::Value(_) | Node::Stop) => Ternary::Maybe,
        };
        known.push(now);
    }
    known.get(root as usize).copied().unwrap_or(Ternary::Maybe)
}
