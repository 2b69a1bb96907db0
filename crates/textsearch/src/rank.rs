//! Ranking: by how often lexemes of the query occur and how near to each other (`ts_rank`), and by how densely
//! the document covers the query (`ts_rank_cd`: Clarke, Cormack and Tudhope, 1999).

use base::{Result, err};
use types::Datum;

use crate::execute::{self, Document, Occurrence};
use crate::query::{Node, Operand, TsQuery};
use crate::vector::{Lexeme, MAX_PLACE, Position, TsVector};

/// By weight, D to A.
pub type Weights = [f32; 4];

/// The weights when nothing is said.
pub const USUAL: Weights = [0.1, 0.2, 0.4, 1.0];

/// The sum of 1/n² over all n: what a lexeme's contribution is divided by.
const BASEL: f64 = 1.644_934_066_85;

/// Weights from an array of float4.
///
/// # Errors
/// `2202E`, `22004`, `22023`.
pub fn weights(value: &Datum) -> Result<Weights> {
    let array = value.as_array();
    if array.dims.len() != 1 {
        return Err(err!(ARRAY_SUBSCRIPT_ERROR, "array of weight must be one-dimensional"));
    }
    if array.items.len() < USUAL.len() {
        return Err(err!(ARRAY_SUBSCRIPT_ERROR, "array of weight is too short"));
    }
    if array.items.iter().any(Datum::is_null) {
        return Err(err!(NULL_VALUE_NOT_ALLOWED, "array of weight must not contain nulls"));
    }
    let mut out = USUAL;
    for (weight, item) in out.iter_mut().zip(&array.items) {
        let given = item.as_float4();
        if given >= 0.0 {
            *weight = given;
        }
        if *weight > 1.0 {
            return Err(err!(INVALID_PARAMETER_VALUE, "weight out of range"));
        }
    }
    Ok(out)
}

/// Positions in the document, stop words left out.
fn length(v: &TsVector) -> usize {
    v.lexemes.iter().map(|l| l.positions.len().max(1)).sum()
}

/// Normalizes a rank by the bits of `normalization`.
fn normalized(rank: f64, method: i32, v: &TsVector, covers: Option<(f64, f64)>) -> f32 {
    let mut rank = rank as f32;
    let divide = |rank: f32, by: f64| (f64::from(rank) / by) as f32;
    let log2 = |n: usize| ((n + 1) as f64).ln() / std::f64::consts::LN_2;
    let unique = v.lexemes.len();
    if method & 1 != 0 {
        let by = if covers.is_some() { ((length(v) + 1) as f64).ln() } else { log2(length(v)) };
        rank = divide(rank, by);
    }
    if method & 2 != 0 && length(v) > 0 {
        rank /= length(v) as f32;
    }
    if let Some((count, nearness)) = covers
        && method & 4 != 0
        && count > 0.0
        && nearness > 0.0
    {
        rank = divide(rank, count / nearness);
    }
    if method & 8 != 0 && unique > 0 {
        rank /= unique as f32;
    }
    if method & 16 != 0 {
        rank = divide(rank, log2(unique));
    }
    if method & 32 != 0 {
        rank /= rank + 1.0;
    }
    rank
}

/// The different lexemes of a query, ascending.
fn operands(q: &TsQuery) -> Vec<&Operand> {
    let mut all: Vec<&Operand> = q.operands().collect();
    all.sort_by(|a, b| a.word.as_bytes().cmp(b.word.as_bytes()));
    all.dedup_by(|a, b| a.word == b.word);
    all
}

fn lexemes<'a>(v: &'a TsVector, operand: &Operand) -> &'a [Lexeme] {
    match operand.prefix {
        true => v.beginning(&operand.word),
        false => match v.find(&operand.word) {
            Ok(at) => std::slice::from_ref(&v.lexemes[at]),
            Err(_) => &[],
        },
    }
}

/// Where a lexeme without positions is taken to be.
const UNKNOWN: &[Position] = &[Position(MAX_PLACE)];

fn positions(lexeme: &Lexeme) -> &[Position] {
    if lexeme.positions.is_empty() { UNKNOWN } else { &lexeme.positions }
}

/// `ts_rank`.
///
/// # Errors
/// Cancelled.
pub fn rank(w: &Weights, v: &TsVector, q: &TsQuery, method: i32) -> Result<f32> {
    let Some(root) = q.root().filter(|_| !v.lexemes.is_empty()) else { return Ok(0.0) };
    let all = operands(q);
    let together = matches!(q.node(root), Node::And(..) | Node::Phrase(..)) && all.len() > 1;
    let rank = if together { by_nearness(w, v, &all)? } else { by_frequency(w, v, &all)? };
    let rank = if rank < 0.0 { 1e-20 } else { rank };
    Ok(normalized(rank.into(), method, v, None))
}

fn by_frequency(w: &Weights, v: &TsVector, all: &[&Operand]) -> Result<f32> {
    let mut rank = 0f32;
    for lexeme in all.iter().flat_map(|o| lexemes(v, o)) {
        sched::check_interrupts()?;
        let (mut sum, mut best, mut at) = (0f32, -1f32, 0usize);
        for (n, p) in positions(lexeme).iter().enumerate() {
            let weight = w[usize::from(p.weight())];
            sum += weight / ((n + 1) * (n + 1)) as f32;
            if weight > best {
                (best, at) = (weight, n);
            }
        }
        // The heaviest occurrence counts as if it were the first.
        let total = best + sum - best / ((at + 1) * (at + 1)) as f32;
        rank = (f64::from(rank) + f64::from(total) / BASEL) as f32;
    }
    Ok(if all.is_empty() { rank } else { rank / all.len() as f32 })
}

/// How much two places so far apart count together.
fn nearness(distance: u16) -> f64 {
    if distance > 100 {
        return 1e-30;
    }
    1.0 / (1.005 + 0.05 * (f64::from(f32::from(distance)) / 1.5 - 2.0).exp())
}

fn by_nearness(w: &Weights, v: &TsVector, all: &[&Operand]) -> Result<f32> {
    let mut rank = -1f32;
    let mut before: Vec<&[Position]> = Vec::new();
    for operand in all {
        let mut last = None;
        for lexeme in lexemes(v, operand) {
            let here = positions(lexeme);
            last = Some(here);
            for other in &before {
                for a in here {
                    sched::check_interrupts()?;
                    for b in *other {
                        let unknown = std::ptr::eq(here, UNKNOWN) || std::ptr::eq(*other, UNKNOWN);
                        let distance = match a.place().abs_diff(b.place()) {
                            0 if !unknown => continue,
                            0 => MAX_PLACE,
                            n => n,
                        };
                        let both = w[usize::from(a.weight())] * w[usize::from(b.weight())];
                        let pair = (f64::from(both) * nearness(distance)).sqrt() as f32;
                        rank = if rank < 0.0 {
                            pair
                        } else {
                            (1.0 - (1.0 - f64::from(rank)) * (1.0 - f64::from(pair))) as f32
                        };
                    }
                }
            }
        }
        before.extend(last);
    }
    Ok(rank)
}

/// A place of the document at which lexemes of the query stand.
struct Spot {
    position: Position,
    /// Numbers of the operands.
    operands: Vec<usize>,
}

/// The part of a document between two spots.
struct Part<'a> {
    operands: &'a [&'a Operand],
    spots: &'a [Spot],
}

impl Document for Part<'_> {
    fn find(&self, operand: &Operand) -> Occurrence {
        let Some(number) = self.operands.iter().position(|o| *o == operand) else {
            return Occurrence::None;
        };
        let here = self.spots.iter().filter(|s| s.operands.contains(&number));
        let places: Vec<u16> = here.map(|s| s.position.place()).collect();
        if places.is_empty() { Occurrence::None } else { Occurrence::At(places) }
    }
}

fn spots(v: &TsVector, all: &[&Operand]) -> Vec<Spot> {
    let mut out: Vec<(Position, usize)> = Vec::new();
    for (number, operand) in all.iter().enumerate() {
        for lexeme in lexemes(v, operand) {
            let wanted =
                |p: &&Position| operand.weights == 0 || operand.weights >> p.weight() & 1 == 1;
            // A lexeme without a place is near to nothing.
            let here = lexeme.positions.iter().filter(wanted);
            out.extend(here.map(|p| (*p, number)));
        }
    }
    out.sort_by_key(|(p, number)| (p.place(), p.weight(), *number));
    let mut spots: Vec<Spot> = Vec::new();
    for (position, number) in out {
        match spots.last_mut() {
            Some(last) if last.position == position => last.operands.push(number),
            _ => spots.push(Spot { position, operands: vec![number] }),
        }
    }
    spots
}

/// `ts_rank_cd`.
///
/// # Errors
/// Cancelled; `54001`.
pub fn rank_cd(w: &Weights, v: &TsVector, q: &TsQuery, method: i32) -> Result<f32> {
    let mut all: Vec<&Operand> = q.operands().collect();
    let mut seen: Vec<&Operand> = Vec::new();
    all.retain(|o| {
        !seen.contains(o) && {
            seen.push(o);
            true
        }
    });
    let spots = spots(v, &all);
    let (mut rank, mut count, mut near, mut before) = (0f64, 0f64, 0f64, 0f64);
    let mut from = 0;
    while let Some((first, last)) = cover(q, &all, &spots, from)? {
        from = first + 1;
        let inside = &spots[first..=last];
        let weigh = |s: &Spot| 1.0 / f64::from(w[usize::from(s.position.weight())]);
        let density = inside.len() as f64 / inside.iter().map(weigh).sum::<f64>();
        let (p, q) = (inside[0].position.place(), inside[inside.len() - 1].position.place());
        let between = i32::from(q) - i32::from(p) - (last - first) as i32;
        let noise = if between < 0 { (last - first) as i32 / 2 } else { between };
        rank += density / f64::from(1 + noise);
        let middle = (f64::from(q) + f64::from(p)) / 2.0;
        if count > 0.0 && middle > before {
            near += 1.0 / (middle - before);
        }
        before = middle;
        count += 1.0;
    }
    if spots.is_empty() {
        return Ok(0.0);
    }
    Ok(normalized(rank, method, v, Some((count, near))))
}

/// The shortest run of spots from `from` on that matches: it ends where a match is first complete, and begins
/// as near to that as it can.
fn cover(
    q: &TsQuery,
    operands: &[&Operand],
    spots: &[Spot],
    from: usize,
) -> Result<Option<(usize, usize)>> {
    let matches = |spots: &[Spot]| execute::matches(q, &Part { operands, spots });
    for last in from..spots.len() {
        sched::check_interrupts()?;
        if !matches(&spots[from..=last])? {
            continue;
        }
        for first in (from..=last).rev() {
            if matches(&spots[first..=last])? {
                return Ok(Some((first, last)));
            }
        }
    }
    Ok(None)
}
