//! Index conditions of a path (`@?`, `@@`): the names on the way to a value, and values that something must
//! equal. All else is left to the document itself.

use std::sync::Arc;

use base::Result;
use base::ternary::{Mode, Ternary};

use super::jsonb::{Way, name_key, scalar_key};
use super::{GinQuery, QueryKey, doubted};
use crate::jsonb::Json;
use crate::jsonb::path::{Comparison, Expr, Head, Path, Step};

/// The entries that must be there for a path to find something.
enum Need {
    Key(usize),
    All(Vec<Need>),
    Any(Vec<Need>),
}

impl Need {
    fn of(&self, present: &[Ternary]) -> Ternary {
        match self {
            Need::Key(n) => present[*n],
            Need::All(parts) => parts.iter().map(|p| p.of(present)).min().unwrap_or(Ternary::True),
            Need::Any(parts) => parts.iter().map(|p| p.of(present)).max().unwrap_or(Ternary::False),
        }
    }
}

/// How far one has come on the way to a value.
#[derive(Clone)]
enum Place {
    /// For `jsonb_ops`: the names on the way.
    Names(Vec<Vec<u8>>),
    /// For `jsonb_path_ops`.
    At(Way),
}

struct Needs {
    keys: Vec<Vec<u8>>,
    by_way: bool,
}

/// The query of a path.
pub(super) fn query(path: &Path, exists: bool, by_way: bool) -> Result<GinQuery> {
    let mut needs = Needs { keys: Vec::new(), by_way };
    let root = needs.root();
    let need = match exists {
        true => needs.path(&path.expr, &root, None)?,
        false => needs.predicate(&path.expr, &root)?,
    };
    let Some(need) = need else { return Ok(GinQuery::everything()) };
    let keys = needs.keys.into_iter().map(QueryKey::Key).collect();
    let check = Arc::new(move |present: &[Ternary]| doubted(need.of(present)));
    Ok(GinQuery { keys, mode: Mode::Default, check })
}

/// All of these; None: nothing is known.
fn together(mut parts: Vec<Need>) -> Option<Need> {
    match parts.len() {
        0 | 1 => parts.pop(),
        _ => Some(Need::All(parts)),
    }
}

impl Needs {
    fn root(&self) -> Place {
        match self.by_way {
            true => Place::At(Way::root()),
            false => Place::Names(Vec::new()),
        }
    }

    fn key(&mut self, bytes: Vec<u8>) -> Need {
        let known = self.keys.iter().position(|k| *k == bytes);
        Need::Key(known.unwrap_or_else(|| {
            self.keys.push(bytes);
            self.keys.len() - 1
        }))
    }

    /// The entries needed for a path from `current` to find something, which equals `value` if there is one.
    fn path(&mut self, e: &Expr, current: &Place, value: Option<&Json>) -> Result<Option<Need>> {
        sched::check_stack()?;
        let mut at = match e.head {
            Head::Root => self.root(),
            Head::Current => current.clone(),
            _ => return Ok(None),
        };
        let mut needs = Vec::new();
        for step in &e.steps {
            match (step, &mut at) {
                (Step::Member(name), Place::Names(names)) => names.push(name_key(name)),
                (Step::Member(name), Place::At(way)) => *way = way.member(name),
                (Step::AnyItem | Step::Items(_), _) => {}
                (Step::AnyMember | Step::Descend(..), Place::Names(_)) => {}
                (Step::Filter(condition), at) => {
                    let here = at.clone();
                    needs.extend(self.predicate(condition, &here)?);
                }
                // Where it leads is not known.
                _ => return Ok(together(needs)),
            }
        }
        match (at, value) {
            (Place::Names(names), value) => {
                for name in names {
                    let need = self.key(name);
                    needs.push(need);
                }
                match value {
                    // As an item of an array it is kept as a name.
                    Some(Json::String(s)) => {
                        let as_value = scalar_key(&Json::String(s.clone()))?;
                        let either = vec![self.key(as_value), self.key(name_key(s))];
                        needs.push(Need::Any(either));
                    }
                    Some(value) => {
                        let key = scalar_key(value)?;
                        needs.push(self.key(key));
                    }
                    None => {}
                }
            }
            (Place::At(way), Some(value)) => {
                let key = way.key(value)?;
                needs.push(self.key(key));
            }
            (Place::At(_), None) => {}
        }
        Ok(together(needs))
    }

    /// The entries needed for a condition to hold.
    fn predicate(&mut self, e: &Expr, current: &Place) -> Result<Option<Need>> {
        sched::check_stack()?;
        if !e.steps.is_empty() {
            return Ok(None);
        }
        match &e.head {
            Head::And(a, b) => {
                let both = [self.predicate(a, current)?, self.predicate(b, current)?];
                Ok(together(both.into_iter().flatten().collect()))
            }
            Head::Or(a, b) => {
                let either = [self.predicate(a, current)?, self.predicate(b, current)?];
                Ok(match either {
                    [Some(a), Some(b)] => Some(Need::Any(vec![a, b])),
                    _ => None,
                })
            }
            Head::Exists(of) => self.path(of, current, None),
            Head::Compare(Comparison::Eq, a, b) => match (scalar(a), scalar(b)) {
                (None, Some(value)) => self.path(a, current, Some(&value)),
                (Some(value), None) => self.path(b, current, Some(&value)),
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }
}

fn scalar(e: &Expr) -> Option<Json> {
    if !e.steps.is_empty() {
        return None;
    }
    Some(match &e.head {
        Head::Null => Json::Null,
        Head::Bool(b) => Json::Bool(*b),
        Head::Number(n) => Json::Number(n.clone()),
        Head::String(s) => Json::String(s.clone()),
        _ => return None,
    })
}
