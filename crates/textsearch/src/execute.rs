//! Whether a document matches a query.
//!
//! Outside phrases that is plain logic. Inside them each part is a set of places: where its **last** lexeme
//! stands, how **wide** it is (the first one stands so many places before), and whether the set says where it
//! is *not*. The rules of sets with a complement follow: `!a & !b` is the complement of `a | b`.

use base::Result;

use crate::query::{Node, Operand, TsQuery};
use crate::vector::{Position, TsVector};

/// Where an operand occurs.
pub enum Occurrence {
    /// Nowhere.
    None,
    /// Somewhere: places are not known.
    Unplaced,
    /// At these places, ascending.
    At(Vec<u16>),
}

/// The document that a query is matched with.
pub trait Document {
    /// Where an operand occurs.
    fn find(&self, operand: &Operand) -> Occurrence;
}

/// Those that have one of the weights (0: all).
fn placed(positions: &[Position], weights: u8, out: &mut Vec<u16>) {
    let wanted = |p: &&Position| weights == 0 || weights >> p.weight() & 1 == 1;
    out.extend(positions.iter().filter(wanted).map(|p| p.place()));
}

impl Document for TsVector {
    fn find(&self, operand: &Operand) -> Occurrence {
        let lexemes = match operand.prefix {
            true => self.beginning(&operand.word),
            false => match self.find(&operand.word) {
                Ok(at) => std::slice::from_ref(&self.lexemes[at]),
                Err(_) => &[],
            },
        };
        let mut places = Vec::new();
        let mut unplaced = false;
        for lexeme in lexemes {
            unplaced |= lexeme.positions.is_empty();
            placed(&lexeme.positions, operand.weights, &mut places);
        }
        if places.is_empty() {
            return if unplaced { Occurrence::Unplaced } else { Occurrence::None };
        }
        if lexemes.len() > 1 {
            places.sort_unstable();
            places.dedup();
        }
        Occurrence::At(places)
    }
}

/// Places of a part of a phrase.
#[derive(Clone, Debug, Default)]
struct Places {
    at: Vec<u16>,
    width: i32,
    /// These are the places where it isn't.
    complement: bool,
}

/// Whether a document matches the whole query; the empty one never does.
///
/// # Errors
/// `54001`: nested too deeply.
pub fn matches(query: &TsQuery, document: &dyn Document) -> Result<bool> {
    match query.root() {
        Some(root) => matches_part(query, root, document),
        None => Ok(false),
    }
}

/// Whether a document matches the part below a node.
///
/// # Errors
/// As [`matches`].
pub fn matches_part(query: &TsQuery, at: u32, document: &dyn Document) -> Result<bool> {
    sched::check_stack()?;
    sched::check_interrupts()?;
    Ok(match query.node(at) {
        Node::Value(v) => !matches!(document.find(v), Occurrence::None),
        Node::Stop => true,
        Node::Not(a) => !matches_part(query, *a, document)?,
        Node::And(a, b) => matches_part(query, *a, document)? && matches_part(query, *b, document)?,
        Node::Or(a, b) => matches_part(query, *a, document)? || matches_part(query, *b, document)?,
        Node::Phrase(..) => {
            let places = places(query, at, document)?;
            places.is_some_and(|all| all.iter().any(|p| p.complement || !p.at.is_empty()))
        }
    })
}

/// Where a part of a phrase stands, by how wide it is there: alternatives of which one must fit. None: the
/// document has no places for one of its lexemes.
fn places(query: &TsQuery, at: u32, document: &dyn Document) -> Result<Option<Vec<Places>>> {
    sched::check_stack()?;
    sched::check_interrupts()?;
    let of = |at: &u32| places(query, *at, document);
    Ok(match query.node(at) {
        Node::Value(v) => match document.find(v) {
            Occurrence::None => Some(vec![Places::default()]),
            Occurrence::Unplaced => None,
            Occurrence::At(at) => Some(vec![Places { at, ..Places::default() }]),
        },
        Node::Stop => Some(vec![Places { complement: true, ..Places::default() }]),
        Node::Not(a) => of(a)?.map(|all| {
            // Not one of them is: none is.
            let nots = all.into_iter().map(|p| Places { complement: !p.complement, ..p });
            nots.reduce(both_as_wide).into_iter().collect()
        }),
        node @ (Node::Phrase(a, b, _) | Node::And(a, b) | Node::Or(a, b)) => {
            let (Some(left), Some(right)) = (of(a)?, of(b)?) else { return Ok(None) };
            if matches!(node, Node::Or(..)) {
                return Ok(Some(merged(left.into_iter().chain(right))));
            }
            let mut out = Vec::new();
            for l in &left {
                for r in &right {
                    out.push(match node {
                        Node::Phrase(_, _, distance) => {
                            let shift = i32::from(*distance) + r.width;
                            both((l, shift), (r, 0), shift + l.width)
                        }
                        _ => both_as_wide(l.clone(), r.clone()),
                    });
                }
            }
            Some(merged(out.into_iter()))
        }
    })
}

/// The places that both have when the narrower one is taken to be as wide as the other.
fn both_as_wide(left: Places, right: Places) -> Places {
    let width = left.width.max(right.width);
    both((&left, width - left.width), (&right, width - right.width), width)
}

/// Alternatives of one width become one.
fn merged(all: impl Iterator<Item = Places>) -> Vec<Places> {
    let mut out: Vec<Places> = Vec::new();
    for p in all {
        let like = |o: &&mut Places| o.width == p.width && o.complement == p.complement;
        match out.iter_mut().find(like) {
            Some(other) if p.complement => other.at.retain(|at| p.at.binary_search(at).is_ok()),
            Some(other) => {
                other.at.extend(&p.at);
                other.at.sort_unstable();
                other.at.dedup();
            }
            None => out.push(p),
        }
    }
    out
}

/// Places that both have, each after a shift.
fn both((left, ls): (&Places, i32), (right, rs): (&Places, i32), width: i32) -> Places {
    let shifted = |p: &Places, by: i32| -> Vec<u16> {
        p.at.iter().filter_map(|at| u16::try_from(i32::from(*at) + by).ok()).collect()
    };
    let (a, b) = (shifted(left, ls), shifted(right, rs));
    let has = |list: &[u16], at: &u16| list.binary_search(at).is_ok();
    let (at, complement) = match (left.complement, right.complement) {
        (false, false) => (a.into_iter().filter(|at| has(&b, at)).collect(), false),
        (false, true) => (a.into_iter().filter(|at| !has(&b, at)).collect(), false),
        (true, false) => (b.into_iter().filter(|at| !has(&a, at)).collect(), false),
        (true, true) => {
            let mut all: Vec<u16> = a.into_iter().chain(b).collect();
            all.sort_unstable();
            all.dedup();
            (all, true)
        }
    };
    Places { at, width, complement }
}

/// A query without its stops: phrases grow by the places of those between their parts.
///
/// # Errors
/// `54001`: nested too deeply.
pub fn without_stops(query: TsQuery) -> Result<TsQuery> {
    let Some(root) = query.root() else { return Ok(query) };
    let mut builder = crate::query::Builder::default();
    let kept = keep(&query, root, &mut builder)?;
    Ok(builder.finish(kept.node))
}

/// The rest of a part, and how many places stops took before and behind it.
struct Remaining {
    node: Option<u32>,
    before: i32,
    behind: i32,
}

fn keep(query: &TsQuery, at: u32, out: &mut crate::query::Builder) -> Result<Remaining> {
    sched::check_stack()?;
    let none = |places| Remaining { node: None, before: places, behind: places };
    Ok(match query.node(at) {
        Node::Value(v) => {
            Remaining { node: Some(out.push(Node::Value(v.clone()))), before: 0, behind: 0 }
        }
        Node::Stop => none(0),
        Node::Not(a) => {
            let kept = keep(query, *a, out)?;
            Remaining { node: kept.node.map(|n| out.push(Node::Not(n))), ..kept }
        }
        node @ (Node::And(a, b) | Node::Or(a, b) | Node::Phrase(a, b, _)) => {
            let (left, right) = (keep(query, *a, out)?, keep(query, *b, out)?);
            let distance = match node {
                Node::Phrase(_, _, n) => Some(i32::from(*n)),
                _ => None,
            };
            match (left.node, right.node, distance) {
                (None, None, Some(n)) => none(left.before + n + right.before),
                (None, None, None) => none(left.before.max(right.before)),
                (Some(_), None, _) => Remaining {
                    behind: left.behind + distance.map_or(0, |n| n + right.before),
                    ..left
                },
                (None, Some(_), _) => Remaining {
                    before: right.before + distance.map_or(0, |n| n + left.before),
                    ..right
                },
                (Some(a), Some(b), Some(n)) => {
                    let n = n + left.behind + right.before;
                    let n = n.clamp(0, i32::from(crate::query::MAX_DISTANCE)) as u16;
                    let node = Some(out.push(Node::Phrase(a, b, n)));
                    Remaining { node, before: left.before, behind: right.behind }
                }
                (Some(a), Some(b), None) => {
                    let joined = match node {
                        Node::And(..) => Node::And(a, b),
                        _ => Node::Or(a, b),
                    };
                    let node = Some(out.push(joined));
                    Remaining {
                        node,
                        before: left.before.max(right.before),
                        behind: left.behind.max(right.behind),
                    }
                }
            }
        }
    })
}
