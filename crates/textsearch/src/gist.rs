//! `tsvector_ops` and `tsquery_ops` of GiST: documents and queries by the codes of their lexemes.

use std::sync::Arc;

use base::ternary::Ternary;
use base::{Oid, Result};
use types::Datum;
use types::gist::{GistClass, KeyCheck, possible, signature};

use crate::gin::{Part, evaluate, opened};
use crate::query::TsQuery;
use crate::vector::TsVector;
use types::gin::QueryKey;

/// The classes' oids.
const TSVECTOR_OPS: u32 = 10_072;
const TSQUERY_OPS: u32 = 10_075;

/// Makes the classes known.
pub fn register() {
    types::gist::register(TSVECTOR_OPS, |_: Oid| Arc::new(LexemeOps { of_queries: false }));
    types::gist::register(TSQUERY_OPS, |_: Oid| Arc::new(LexemeOps { of_queries: true }));
}

struct LexemeOps {
    of_queries: bool,
}

fn codes_of(query: &TsQuery) -> Vec<u32> {
    query.operands().map(|operand| signature::code(operand.word.as_bytes())).collect()
}

impl GistClass for LexemeOps {
    fn key(&self, value: &Datum) -> Result<Vec<u8>> {
        if self.of_queries {
            return Ok(signature::key_of(codes_of(opened(value)?)));
        }
        let vector: &TsVector = opened(value)?;
        let codes = vector.lexemes.iter().map(|l| signature::code(l.word.as_bytes()));
        Ok(signature::key_of(codes.collect()))
    }

    fn union(&self, keys: &[&[u8]]) -> Vec<u8> {
        signature::union(keys)
    }

    fn penalty(&self, cover: &[u8], new: &[u8]) -> f64 {
        signature::penalty(cover, new)
    }

    fn split(&self, keys: &[&[u8]]) -> Vec<bool> {
        signature::split(keys)
    }

    fn check(&self, strategy: u16, value: &Datum) -> Result<KeyCheck> {
        let query: &TsQuery = opened(value)?;
        if self.of_queries {
            let codes = codes_of(query);
            return Ok(Arc::new(move |key, leaf| {
                possible(match strategy {
                    7 => codes.iter().all(|code| signature::may_have(key, *code)),
                    // Only a query's own lexemes say that there are no others.
                    8 if leaf => signature::exact_codes(key)
                        .is_none_or(|own| own.iter().all(|code| codes.contains(code))),
                    _ => true,
                })
            }));
        }
        let Some(root) = query.root() else { return Ok(Arc::new(|_, _| Ternary::False)) };
        let mut keys = Vec::new();
        let nodes: Vec<Part> = query.nodes.iter().map(|node| Part::of(node, &mut keys)).collect();
        let codes: Vec<Option<u32>> = keys
            .iter()
            .map(|key| match key {
                QueryKey::Key(word) => Some(signature::code(word)),
                _ => None,
            })
            .collect();
        Ok(Arc::new(move |key, _| {
            let present: Vec<Ternary> = codes
                .iter()
                .map(|code| possible(code.is_none_or(|code| signature::may_have(key, code))))
                .collect();
            evaluate(&nodes, root, &present).min(Ternary::Maybe)
        }))
    }
}
