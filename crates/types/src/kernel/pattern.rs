//! `LIKE` with one pattern for all rows, when it is made of plain text and `%` alone: the text must
//! begin with the first piece, end with the last one, and have the others between them in order.

use base::Result;
use memchr::memmem::Finder;

use super::{Operand, VectorBody, all_null, nulls};
use crate::batch::{Column, Vector};
use crate::datum::{Datum, Text};

/// A pattern taken apart at its `%`.
struct Pieces<'p> {
    /// Without any `%`: the whole text.
    whole: Option<&'p [u8]>,
    first: &'p [u8],
    last: &'p [u8],
    middle: Vec<Finder<'p>>,
}

impl<'p> Pieces<'p> {
    /// None when the pattern has more than text and `%` in it.
    fn of(pattern: &'p str) -> Option<Pieces<'p>> {
        if pattern.contains(['_', '\\']) {
            return None;
        }
        let parts: Vec<&[u8]> = pattern.split('%').map(str::as_bytes).collect();
        let (first, last) = (*parts.first()?, *parts.last()?);
        if parts.len() == 1 {
            return Some(Pieces { whole: Some(first), first, last, middle: Vec::new() });
        }
        let middle = parts[1..parts.len() - 1].iter().filter(|p| !p.is_empty());
        Some(Pieces { whole: None, first, last, middle: middle.map(|p| Finder::new(*p)).collect() })
    }

    fn match_whole(&self, text: &[u8]) -> bool {
        if let Some(whole) = self.whole {
            return text == whole;
        }
        let Some(rest) = text.strip_prefix(self.first) else { return false };
        let Some(mut rest) = rest.strip_suffix(self.last) else { return false };
        for piece in &self.middle {
            match piece.find(rest) {
                Some(at) => rest = &rest[at + piece.needle().len()..],
                None => return false,
            }
        }
        true
    }
}

fn like(a: Operand<'_>, b: Operand<'_>, rows: usize, wanted: bool) -> Result<Option<Column>> {
    if let Some(column) = all_null(a, b, rows, |n| Vector::Bool(vec![false; n])) {
        return Ok(Some(column));
    }
    let (Operand::Column(column), Operand::Value(Datum::Text(pattern))) = (a, b) else {
        return Ok(None);
    };
    let (Vector::Text(texts) | Vector::Bpchar(texts), Some(pieces)) =
        (&column.data, Pieces::of(pattern))
    else {
        return Ok(None);
    };
    let test = |text: &Text| pieces.match_whole(text.as_bytes()) == wanted;
    let data = Vector::Bool(texts.iter().map(test).collect());
    Ok(Some(Column { data, nulls: nulls(a, b) }))
}

/// The kernels of patterns.
pub(super) fn named() -> Vec<(&'static str, VectorBody)> {
    let yes: VectorBody = |a, b, n| like(a, b, n, true);
    let no: VectorBody = |a, b, n| like(a, b, n, false);
    vec![
        ("textlike", yes),
        ("textnlike", no),
        ("bpcharlike", yes),
        ("bpcharnlike", no),
        ("namelike", yes),
        ("namenlike", no),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_pieces_match_as_like_does() {
        let texts = ["", "a", "ab", "aba", "special x requests", "requests special", "aXbXa", "é"];
        let patterns =
            ["", "%", "a%", "%a", "a%a", "%b%", "%special%requests%", "ab", "%%", "a%b%a"];
        for pattern in patterns {
            let pieces = Pieces::of(pattern).unwrap();
            for text in texts {
                let wanted = crate::func::like::like(text, pattern).unwrap();
                assert_eq!(pieces.match_whole(text.as_bytes()), wanted, "{text} LIKE {pattern}");
            }
        }
        assert!(Pieces::of("a_").is_none() && Pieces::of("a\\%").is_none());
    }
}
