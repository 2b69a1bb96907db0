//! Classes of GiST: intervals of paths in their order, and signatures of what lies above the paths of an array.

use std::sync::Arc;

use base::Result;
use base::ternary::{Mode, Ternary};
use types::Datum;
use types::gin::{GinClass, GinQuery, QueryKey};
use types::gist::{GistClass, KeyCheck, interval, possible};
use types::open::OpenValue;

use super::lquery::LQuery;
use super::{Ltree, own, paths};

/// `gist_ltree_ops`.
pub(super) struct PathOps;

fn key(path: &Ltree) -> Vec<u8> {
    let mut out = Vec::new();
    path.key(&mut out);
    out
}

impl GistClass for PathOps {
    fn key(&self, value: &Datum) -> Result<Vec<u8>> {
        let key = key(own(value));
        Ok(interval::key_of(key.clone(), key))
    }

    fn union(&self, keys: &[&[u8]]) -> Vec<u8> {
        interval::union(keys)
    }

    fn penalty(&self, cover: &[u8], new: &[u8]) -> f64 {
        interval::penalty(cover, new)
    }

    fn split(&self, keys: &[&[u8]]) -> Vec<bool> {
        interval::split(keys)
    }

    fn check(&self, strategy: u16, value: &Datum) -> Result<KeyCheck> {
        // The keys of a path and its descendants lie between these two.
        let below = |path: &Ltree| {
            let from = key(path);
            let to = [&from[..], &[2]].concat();
            (from, to)
        };
        let (from, to) = match strategy {
            1 | 2 => (Vec::new(), key(own(value))),
            3 => (key(own(value)), key(own(value))),
            4 | 5 => (key(own(value)), vec![u8::MAX; 64]),
            10 => (Vec::new(), key(own(value))),
            11 => below(own(value)),
            12 => {
                let query: &LQuery = value.as_open();
                let labels = query.beginning();
                if labels.is_empty() {
                    return Ok(Arc::new(|_, _| Ternary::Maybe));
                }
                below(&Ltree { ty: query.ty(), labels })
            }
            _ => return Ok(Arc::new(|_, _| Ternary::Maybe)),
        };
        Ok(Arc::new(move |key, _| {
            let ends = interval::read(key).ends();
            possible(ends.is_some_and(|(lower, upper)| lower <= &to[..] && &from[..] <= upper))
        }))
    }
}

/// The keys of `gist__ltree_ops`: each path of an array, and all above it.
pub(super) struct PathsOps;

impl GinClass for PathsOps {
    fn value_keys(&self, value: &Datum, keys: &mut Vec<Option<Vec<u8>>>) -> Result<()> {
        for path in paths(value)? {
            for len in 1..=path.labels.len() {
                keys.push(Some(key(&path.of(&path.labels[..len]))));
            }
        }
        Ok(())
    }

    fn query(&self, strategy: u16, value: &Datum) -> Result<GinQuery> {
        let wanted = match strategy {
            10 => own(value).clone(),
            12 => {
                let query: &LQuery = value.as_open();
                Ltree { ty: query.ty(), labels: query.beginning() }
            }
            _ => return Ok(GinQuery::everything()),
        };
        if wanted.labels.is_empty() {
            return Ok(GinQuery::everything());
        }
        let check: base::ternary::Check =
            Arc::new(|present: &[Ternary]| present.iter().copied().min().unwrap_or(Ternary::Maybe));
        Ok(GinQuery { keys: vec![QueryKey::Key(key(&wanted))], mode: Mode::Default, check })
    }
}
