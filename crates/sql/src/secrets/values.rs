//! Secrets that are seen by what stands around them in a text of any kind: `password=…` in a connection string,
//! `"token": "…"` in JSON, `user:password@` in an address, `Bearer …` in a header.

use std::ops::Range;

/// A name that ends with one of these has a secret behind its `=` or `:`.
const KEYS: &[&[u8]] = &[
    b"password",
    b"passwd",
    b"passphrase",
    b"pwd",
    b"secret",
    b"token",
    b"apikey",
    b"api_key",
    b"access_key",
    b"private_key",
    b"secret_key",
];

const BEARER: &[u8] = b"bearer ";

/// Finds them in a part of a text in which `quotes` apostrophes stand for one.
pub(super) fn find(
    text: &[u8],
    range: Range<usize>,
    quotes: usize,
    hidden: &mut Vec<Range<usize>>,
) {
    let (from, bytes) = (range.start, &text[range]);
    let mut note = |found: Option<Range<usize>>| {
        let end = found.as_ref().map(|range| range.end);
        hidden.extend(found.map(|range| range.start + from..range.end + from));
        end
    };
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b':' if bytes[at..].starts_with(b"://") => note(in_address(bytes, at + 3)),
            b'=' | b':' => note(behind_key(bytes, at, quotes)),
            b'b' | b'B' if super::begins(&bytes[at..], BEARER) => {
                let start = at + BEARER.len();
                note(Some(start..start + length(&bytes[start..])))
            }
            _ => None,
        };
        at = end.unwrap_or(0).max(at + 1);
    }
}

/// The length of what ends with a blank or a quotation mark.
fn length(bytes: &[u8]) -> usize {
    let ends = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'');
    bytes.iter().position(ends).unwrap_or(bytes.len())
}

/// The password of an address whose `://` ends here.
fn in_address(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let ends = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'/' | b'?' | b'#' | b'"' | b'\'');
    let rest = &bytes[at..];
    let authority = &rest[..rest.iter().position(ends).unwrap_or(rest.len())];
    let host = authority.iter().rposition(|b| *b == b'@')?;
    let colon = authority[..host].iter().position(|b| *b == b':')?;
    Some(at + colon + 1..at + host)
}

/// The value behind a separator, if what stands before it is one of [`KEYS`].
fn behind_key(bytes: &[u8], separator: usize, quotes: usize) -> Option<Range<usize>> {
    let before = bytes[..separator].trim_ascii_end();
    let before = before.strip_suffix(b"\"").unwrap_or(before);
    let is_key = |key: &&&[u8]| {
        before.len() >= key.len() && before[before.len() - key.len()..].eq_ignore_ascii_case(key)
    };
    KEYS.iter().find(is_key)?;
    let rest = &bytes[separator + 1..];
    // `token::text`, `token := x`.
    if bytes[separator] == b':' && matches!(rest.first(), Some(b':' | b'=')) {
        return None;
    }
    let blanks = rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
    let (start, rest) = (separator + 1 + blanks, &rest[blanks..]);
    let parameter = matches!(rest, [b'$', digit, ..] if digit.is_ascii_digit());
    if rest.is_empty() || parameter {
        return None;
    }
    let run = rest.iter().take_while(|b| **b == b'\'').count();
    let (opening, closing): (usize, Vec<u8>) = match rest {
        [b'"', ..] => (1, vec![b'"']),
        [b'\\', mark @ (b'\'' | b'"'), ..] => (2, vec![b'\\', *mark]),
        _ if run >= quotes => (quotes, vec![b'\''; quotes]),
        // An apostrophe that delimits nothing is where the text around ends.
        _ if run > 0 => return None,
        _ => (0, Vec::new()),
    };
    let ends = |rest: &[u8]| match closing.is_empty() {
        true => rest[0].is_ascii_whitespace(),
        false => rest.starts_with(&closing),
    };
    let mut end = opening;
    while end < rest.len() && !ends(&rest[end..]) {
        end += if rest[end] == b'\\' { 2 } else { 1 };
    }
    Some(start + opening..start + end.min(rest.len()))
}
