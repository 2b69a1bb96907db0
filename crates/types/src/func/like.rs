//! `LIKE`, `ILIKE` and their negations, on text, name, bpchar and bytea.

use base::{Result, err};

use super::{NamedBody, S};
use crate::datum::Datum;

#[cold]
fn ends_with_escape() -> base::Error {
    err!(INVALID_ESCAPE_SEQUENCE, "LIKE pattern must not end with escape character")
}

/// Bytes of the character that starts at `at`.
fn char_len(text: &[u8], at: usize, bytes: bool) -> usize {
    if bytes {
        return 1;
    }
    match text[at] {
        0..0x80 => 1,
        0x80..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    }
    .min(text.len() - at)
}

/// Whether a whole text matches a pattern: `%` any run, `_` one character, `\` takes the next
/// literally. Remembers only the last `%`: what stands before it has matched in the shortest way,
/// and a longer match of it can't help.
fn matches(text: &[u8], pattern: &[u8], bytes: bool) -> Result<bool> {
    let (mut t, mut p) = (0, 0);
    // Pattern position after the last `%`, and the text position to try it at next.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let step = match pattern.get(p) {
            Some(b'%') => {
                p += 1;
                if p == pattern.len() {
                    return Ok(true);
                }
                retry = Some((p, t));
                continue;
            }
            Some(b'_') if t < text.len() => Some((char_len(text, t, bytes), 1)),
            Some(b'_') => None,
            // At the end of the text nobody looks at what the escape stands before.
            Some(b'\\') if t == text.len() => None,
            Some(b'\\') => match pattern.get(p + 1) {
                None => return Err(ends_with_escape()),
                Some(b) => (text.get(t) == Some(b)).then_some((1, 2)),
            },
            Some(b) => (text.get(t) == Some(b)).then_some((1, 1)),
            None if t == text.len() => return Ok(true),
            None => None,
        };
        match (step, retry) {
            (Some((dt, dp)), _) => {
                t += dt;
                p += dp;
            }
            (None, Some((after, from))) if from < text.len() => {
                sched::check_interrupts()?;
                let from = from + char_len(text, from, bytes);
                retry = Some((after, from));
                (t, p) = (from, after);
            }
            _ => return Ok(false),
        }
    }
}

/// `LIKE` on text.
///
/// # Errors
/// `22025` when the pattern ends in its escape character.
pub fn like(text: &str, pattern: &str) -> Result<bool> {
    matches(text.as_bytes(), pattern.as_bytes(), false)
}

/// The beginning of every text that matches a pattern.
pub fn like_beginning(pattern: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(pattern.len());
    let mut bytes = pattern.bytes();
    loop {
        match bytes.next() {
            None | Some(b'%' | b'_') => return out,
            Some(b'\\') => match bytes.next() {
                Some(b) => out.push(b),
                None => return out,
            },
            Some(b) => out.push(b),
        }
    }
}

fn ilike(text: &str, pattern: &str) -> Result<bool> {
    like(&super::text::lower(text), &super::text::lower(pattern))
}

/// A pattern with another escape character, rewritten to use the backslash.
fn with_escape(pattern: &str, escape: &str) -> Result<String> {
    let mut chars = escape.chars();
    let (escape, more) = (chars.next(), chars.next());
    if more.is_some() {
        return Err(bad_escape());
    }
    Ok(with_backslashes(pattern.chars(), escape, '\\').collect())
}

/// The same of bytes.
fn bytes_with_escape(pattern: &[u8], escape: &[u8]) -> Result<Vec<u8>> {
    if escape.len() > 1 {
        return Err(bad_escape());
    }
    Ok(with_backslashes(pattern.iter().copied(), escape.first().copied(), b'\\').collect())
}

#[cold]
fn bad_escape() -> base::Error {
    err!(INVALID_ESCAPE_SEQUENCE, "invalid escape string")
        .hint("Escape string must be empty or one character.")
}

fn with_backslashes<T: Copy + PartialEq>(
    pattern: impl Iterator<Item = T>,
    escape: Option<T>,
    backslash: T,
) -> impl Iterator<Item = T> {
    let mut after_escape = false;
    pattern
        .flat_map(move |c| {
            if Some(c) == escape && !after_escape {
                after_escape = true;
                return [Some(backslash), None];
            }
            // A backslash means itself when it isn't the escape.
            let itself = c == backslash && escape != Some(backslash) && !after_escape;
            after_escape = false;
            if itself { [Some(backslash), Some(c)] } else { [Some(c), None] }
        })
        .flatten()
}

/// The bodies of this family.
pub(super) fn bodies() -> Vec<NamedBody> {
    let mut all: Vec<NamedBody> = Vec::new();
    for (like_name, not_like) in [("textlike", "textnlike"), ("namelike", "namenlike")] {
        all.extend([
            (like_name, S(|a, _| like(a[0].as_str(), a[1].as_str()).map(Into::into))),
            (not_like, S(|a, _| like(a[0].as_str(), a[1].as_str()).map(|m| (!m).into()))),
        ]);
    }
    for (like_name, not_like) in [("texticlike", "texticnlike"), ("nameiclike", "nameicnlike")] {
        all.extend([
            (like_name, S(|a, _| ilike(a[0].as_str(), a[1].as_str()).map(Into::into))),
            (not_like, S(|a, _| ilike(a[0].as_str(), a[1].as_str()).map(|m| (!m).into()))),
        ]);
    }
    all.extend([
        ("bytealike", S(|a, _| matches(a[0].as_bytea(), a[1].as_bytea(), true).map(Into::into))),
        (
            "byteanlike",
            S(|a, _| matches(a[0].as_bytea(), a[1].as_bytea(), true).map(|m| (!m).into())),
        ),
        ("like_escape", S(|a, _| with_escape(a[0].as_str(), a[1].as_str()).map(Datum::from))),
        (
            "like_escape_bytea",
            S(|a, _| bytes_with_escape(a[0].as_bytea(), a[1].as_bytea()).map(|b| Datum::bytea(&b))),
        ),
    ]);
    all
}
