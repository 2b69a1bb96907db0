//! pg_trgm: how much two texts have in common by their trigrams, and GIN indexes over trigrams.
//!
//! A text's words, in lower case, stand between two blanks and one: `cat` has the trigrams `  c`, ` ca`, `cat`,
//! `at `. A trigram of other letters than ASCII's is kept as a checksum of three bytes, as PostgreSQL keeps it.
//!
//! The similarity of a word with a text is the greatest that the word has with a run of the text's trigrams.

use std::collections::HashSet;
use std::sync::Arc;

use base::ternary::{Mode, Ternary};
use base::{Result, err};
use exec::context::ExecContext;
use exec::native::{Native, Symbols};
use types::Datum;
use types::bulk::{self, Pace};
use types::extension::Library;
use types::func::Body;
use types::gin::{GinClass, GinQuery, QueryKey};
use types::gist::{GistClass, KeyCheck, KeyDistance, signature};
use types::oids::TEXT;

use crate::common::{Bodies, KeyType, Signatures};

/// The extension's code.
pub static LIBRARY: Library = Library {
    name: "pg_trgm",
    bodies,
    types: &[("gtrgm_in", &KeyType)],
    gin: &[("gin_extract_value_trgm", |_| Arc::new(TrgmOps))],
    gist: &[("gtrgm_consistent", |_| Arc::new(GistTrgmOps(Signatures(Arc::new(TrgmOps)))))],
    silent: &["gtrgm_in", "gtrgm_out"],
    ..Library::EMPTY
};

/// The functions that need the session's settings.
pub const SYMBOLS: Symbols = &[
    ("set_limit", Native::Scalar(set_limit)),
    ("show_limit", Native::Scalar(|_, cx| Ok(Datum::Float4(threshold(SIMILARITY, cx)? as f32)))),
    (
        "similarity_op",
        Native::Scalar(|args, cx| {
            reaches(similarity(args[0].as_str(), args[1].as_str())?, SIMILARITY, cx)
        }),
    ),
    ("word_similarity_op", Native::Scalar(|args, cx| word_op(args, false, false, cx))),
    ("word_similarity_commutator_op", Native::Scalar(|args, cx| word_op(args, true, false, cx))),
    ("strict_word_similarity_op", Native::Scalar(|args, cx| word_op(args, false, true, cx))),
    (
        "strict_word_similarity_commutator_op",
        Native::Scalar(|args, cx| word_op(args, true, true, cx)),
    ),
];

type Threshold = (&'static str, f64);

const SIMILARITY: Threshold = ("pg_trgm.similarity_threshold", 0.3);
const WORD: Threshold = ("pg_trgm.word_similarity_threshold", 0.6);
const STRICT_WORD: Threshold = ("pg_trgm.strict_word_similarity_threshold", 0.5);

fn threshold((name, usual): Threshold, cx: &mut ExecContext<'_>) -> Result<f64> {
    let acting = cx.acting();
    let args = [Datum::text(name), Datum::Bool(true)];
    match cx.hooks.call(types::func::SessionFunction::CurrentSetting, &args, acting)? {
        Datum::Text(text) => Ok(text.as_str().trim().parse().unwrap_or(usual)),
        _ => Ok(usual),
    }
}

fn reaches(value: f32, wanted: Threshold, cx: &mut ExecContext<'_>) -> Result<Datum> {
    Ok(Datum::Bool(f64::from(value) >= threshold(wanted, cx)?))
}

fn set_limit(args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    let Datum::Float4(limit) = args[0] else { return Ok(Datum::Null) };
    if !(0.0..=1.0).contains(&limit) {
        return Err(err!(
            INVALID_PARAMETER_VALUE,
            "{limit} is outside the valid range for parameter \"{}\" (0 .. 1)",
            SIMILARITY.0
        ));
    }
    let acting = cx.acting();
    let set = [Datum::text(SIMILARITY.0), Datum::text(&limit.to_string()), Datum::Bool(false)];
    cx.hooks.call(types::func::SessionFunction::SetConfig, &set, acting)?;
    Ok(Datum::Float4(limit))
}

fn word_op(args: &[Datum], swapped: bool, strict: bool, cx: &mut ExecContext<'_>) -> Result<Datum> {
    let wanted = if strict { STRICT_WORD } else { WORD };
    reaches(word_of(args, swapped, strict)?, wanted, cx)
}

fn word_of(args: &[Datum], swapped: bool, strict: bool) -> Result<f32> {
    let (a, b) = (args[0].as_str(), args[1].as_str());
    if swapped { word_similarity(b, a, strict) } else { word_similarity(a, b, strict) }
}

type Trigram = [u8; 3];

/// The checksum of a trigram of letters beyond ASCII: CRC-32 with its table read by the high byte.
fn checksum(bytes: &[u8]) -> Trigram {
    let entry =
        |n: u32| (0..8).fold(n, |c, _| if c & 1 == 1 { c >> 1 ^ 0xedb8_8320 } else { c >> 1 });
    let step = |crc: u32, byte: &u8| entry((crc >> 24 ^ u32::from(*byte)) & 0xff) ^ crc << 8;
    let crc = !bytes.iter().fold(0xffff_ffff, step);
    let [a, b, c, _] = crc.to_le_bytes();
    [a, b, c]
}

fn trigram(letters: &[char]) -> Trigram {
    if let [a, b, c] = letters
        && [a, b, c].iter().all(|c| c.is_ascii())
    {
        return [*a as u8, *b as u8, *c as u8];
    }
    let text: String = letters.iter().collect();
    checksum(text.as_bytes())
}

fn lower(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    let mut all = c.to_lowercase();
    match (all.next(), all.next()) {
        (Some(lower), None) => lower,
        _ => c,
    }
}

/// Hands the trigrams of a text to `take` in their order, each with whether a word begins or ends with it.
fn for_trigrams(text: &str, take: &mut dyn FnMut(Trigram, bool, bool) -> Result<()>) -> Result<()> {
    const BLANK: char = ' ';
    let mut before: Option<[char; 2]> = None;
    for piece in bulk::pieces(text) {
        for c in piece?.chars() {
            match (c.is_alphanumeric(), before) {
                (true, None) => {
                    let letter = lower(c);
                    take(trigram(&[BLANK, BLANK, letter]), true, false)?;
                    before = Some([BLANK, letter]);
                }
                (true, Some([a, b])) => {
                    let letter = lower(c);
                    take(trigram(&[a, b, letter]), false, false)?;
                    before = Some([b, letter]);
                }
                (false, Some([a, b])) => {
                    take(trigram(&[a, b, BLANK]), false, true)?;
                    before = None;
                }
                (false, None) => {}
            }
        }
    }
    match before {
        Some([a, b]) => take(trigram(&[a, b, BLANK]), false, true),
        None => Ok(()),
    }
}

/// The trigrams of a text in their order, each with whether a word begins or ends with it.
fn in_order(text: &str) -> Result<Vec<(Trigram, bool, bool)>> {
    let mut out = Vec::new();
    for_trigrams(text, &mut |trigram, begins, ends| {
        out.push((trigram, begins, ends));
        Ok(())
    })?;
    Ok(out)
}

/// Texts from here on may have so many trigrams that a bit for each that there can be takes less room and time than
/// sorting them.
const LONG_BYTES: usize = 1 << 20;

/// The different trigrams of a text, sorted.
fn trigrams(text: &str) -> Result<Vec<Trigram>> {
    let mut out = Vec::new();
    if text.len() < LONG_BYTES {
        for_trigrams(text, &mut |trigram, _, _| {
            out.push(trigram);
            Ok(())
        })?;
        out.sort_unstable();
        out.dedup();
        return Ok(out);
    }
    let mut seen = vec![0_u64; 1 << 18];
    for_trigrams(text, &mut |[a, b, c], _, _| {
        let code = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        seen[code >> 6] |= 1 << (code & 63);
        Ok(())
    })?;
    for (at, word) in seen.iter().enumerate() {
        let mut left = *word;
        while left != 0 {
            let code = (at as u32) << 6 | left.trailing_zeros();
            let [_, a, b, c] = code.to_be_bytes();
            out.push([a, b, c]);
            left &= left - 1;
        }
    }
    Ok(out)
}

fn share(common: usize, a: usize, b: usize) -> f32 {
    if a == 0 || b == 0 { 0.0 } else { common as f32 / (a + b - common) as f32 }
}

fn similarity(a: &str, b: &str) -> Result<f32> {
    let (a, b) = (trigrams(a)?, trigrams(b)?);
    let mut common = 0;
    for some in a.chunks(1024) {
        sched::check_interrupts_now()?;
        common += some.iter().filter(|t| b.binary_search(t).is_ok()).count();
    }
    Ok(share(common, a.len(), b.len()))
}

/// The greatest similarity of a word with a run of the text's trigrams; `strict`: of whole words.
fn word_similarity(word: &str, text: &str, strict: bool) -> Result<f32> {
    let wanted = trigrams(word)?;
    let all = in_order(text)?;
    let mut is_wanted = Vec::with_capacity(all.len());
    let mut pace = Pace::default();
    for (trigram, ..) in &all {
        pace.step()?;
        is_wanted.push(wanted.binary_search(trigram).is_ok());
    }
    let mut best = 0.0_f32;
    let mut seen: HashSet<Trigram> = HashSet::new();
    for from in 0..all.len() {
        if !(if strict { all[from].1 } else { is_wanted[from] }) {
            continue;
        }
        pace.step()?;
        seen.clear();
        let mut common = 0;
        for (at, (trigram, _, ends)) in all.iter().enumerate().skip(from) {
            pace.step()?;
            if seen.insert(*trigram) && is_wanted[at] {
                common += 1;
            }
            if if strict { *ends } else { is_wanted[at] } {
                best = best.max(share(common, wanted.len(), seen.len()));
            }
            // Whatever follows, it can't become better than all wanted among these.
            if share(wanted.len(), wanted.len(), seen.len().max(wanted.len())) <= best {
                break;
            }
        }
    }
    Ok(best)
}

/// A trigram as `show_trgm` shows it.
fn shown(trigram: &Trigram) -> String {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b.is_ascii_whitespace();
    match trigram.iter().all(plain) {
        true => trigram.iter().map(|b| *b as char).collect(),
        false => format!("0x{:02x}{:02x}{:02x}", trigram[0], trigram[1], trigram[2]),
    }
}

fn show(args: &[Datum]) -> Result<Datum> {
    let mut all = trigrams(args[0].as_str())?;
    // Bytes are compared as signed ones.
    let signed = |t: &Trigram| t.map(|b| b as i8);
    all.sort_unstable_by(sched::unhurried(|a, b| signed(a).cmp(&signed(b))));
    let (mut texts, mut pace) = (Vec::with_capacity(all.len()), Pace::default());
    for trigram in &all {
        pace.step()?;
        texts.push(Datum::text(&shown(trigram)));
    }
    Ok(Datum::array(TEXT, texts))
}

fn distance(value: f32) -> Result<Datum> {
    Ok(Datum::Float4(1.0 - value))
}

fn bodies() -> Bodies {
    fn both(args: &[Datum]) -> Result<f32> {
        similarity(args[0].as_str(), args[1].as_str())
    }
    vec![
        ("show_trgm", Body::Scalar(|args, _| show(args))),
        ("similarity", Body::Scalar(|args, _| Ok(Datum::Float4(both(args)?)))),
        ("similarity_dist", Body::Scalar(|args, _| distance(both(args)?))),
        (
            "word_similarity",
            Body::Scalar(|args, _| Ok(Datum::Float4(word_of(args, false, false)?))),
        ),
        (
            "strict_word_similarity",
            Body::Scalar(|args, _| Ok(Datum::Float4(word_of(args, false, true)?))),
        ),
        ("word_similarity_dist_op", Body::Scalar(|a, _| distance(word_of(a, false, false)?))),
        (
            "word_similarity_dist_commutator_op",
            Body::Scalar(|a, _| distance(word_of(a, true, false)?)),
        ),
        ("strict_word_similarity_dist_op", Body::Scalar(|a, _| distance(word_of(a, false, true)?))),
        (
            "strict_word_similarity_dist_commutator_op",
            Body::Scalar(|a, _| distance(word_of(a, true, true)?)),
        ),
    ]
}

/// `gin_trgm_ops`. Conditions are always asked again: what the index has are sets.
struct TrgmOps;

/// Trigrams that a LIKE pattern's matches have for sure. A piece between wildcards has its ends as words have them
/// where the pattern's own text says that a word begins or ends there.
fn of_like(pattern: &str) -> Vec<Trigram> {
    let mut out = Vec::new();
    // None: a wildcard.
    let mut letters: Vec<Option<char>> = Vec::new();
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        letters.push(match c {
            '%' | '_' => None,
            '\\' => rest.next(),
            other => Some(other),
        });
    }
    let is_word = |c: &Option<char>| c.is_some_and(char::is_alphanumeric);
    let mut at = 0;
    while at < letters.len() {
        if !is_word(&letters[at]) {
            at += 1;
            continue;
        }
        let from = at;
        while at < letters.len() && is_word(&letters[at]) {
            at += 1;
        }
        let begins = from == 0 || letters[from - 1].is_some();
        let ends = at == letters.len() || letters[at].is_some();
        let mut word: Vec<char> = Vec::new();
        word.extend(std::iter::repeat_n(' ', if begins { 2 } else { 0 }));
        word.extend(letters[from..at].iter().flatten().map(|c| lower(*c)));
        word.extend(std::iter::repeat_n(' ', usize::from(ends)));
        out.extend(word.windows(3).map(trigram));
    }
    out
}

/// Trigrams that a regular expression's matches have for sure: those inside of runs of letters that stand for
/// themselves, as long as there are no alternatives and no groups.
fn of_regex(pattern: &str) -> Vec<Trigram> {
    if pattern.starts_with("***") || pattern.starts_with("(?") || pattern.contains(['|', '(', '['])
    {
        return Vec::new();
    }
    let mut out = Vec::new();
    let mut run: Vec<char> = Vec::new();
    let mut flush = |run: &mut Vec<char>| {
        out.extend(run.windows(3).map(trigram));
        run.clear();
    };
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' => {
                // Escapes of letters are classes or places; their arguments are of no interest.
                if rest.next().is_some_and(char::is_alphanumeric) {
                    flush(&mut run);
                    return Vec::new();
                }
                flush(&mut run);
            }
            '*' | '?' | '{' => {
                run.pop();
                flush(&mut run);
                if c == '{' {
                    for inside in rest.by_ref() {
                        if inside == '}' {
                            break;
                        }
                    }
                }
            }
            '+' => flush(&mut run),
            c if c.is_alphanumeric() => run.push(lower(c)),
            _ => flush(&mut run),
        }
    }
    flush(&mut run);
    out
}

impl GinClass for TrgmOps {
    fn value_keys(&self, value: &Datum, keys: &mut Vec<Option<Vec<u8>>>) -> Result<()> {
        keys.extend(trigrams(value.as_str())?.into_iter().map(|t| Some(t.to_vec())));
        Ok(())
    }

    fn query(&self, strategy: u16, value: &Datum) -> Result<GinQuery> {
        let text = value.as_str();
        let similar = matches!(strategy, 1 | 7 | 9);
        let mut wanted = match strategy {
            3 | 4 => of_like(text),
            5 | 6 => of_regex(text),
            _ => trigrams(text)?,
        };
        wanted.sort_unstable();
        wanted.dedup();
        if wanted.is_empty() {
            return Ok(if similar { GinQuery::nothing() } else { GinQuery::everything() });
        }
        let keys = wanted.iter().map(|t| QueryKey::Key(t.to_vec())).collect();
        let check: base::ternary::Check = match similar {
            true => Arc::new(|present: &[Ternary]| {
                present.iter().copied().max().unwrap_or(Ternary::False).min(Ternary::Maybe)
            }),
            false => Arc::new(|present: &[Ternary]| {
                present.iter().copied().min().unwrap_or(Ternary::False).min(Ternary::Maybe)
            }),
        };
        Ok(GinQuery { keys, mode: Mode::Default, check })
    }
}

/// `gist_trgm_ops`: signatures of trigrams, with distances.
struct GistTrgmOps(Signatures);

impl GistClass for GistTrgmOps {
    fn key(&self, value: &Datum) -> Result<Vec<u8>> {
        self.0.key(value)
    }

    fn union(&self, keys: &[&[u8]]) -> Vec<u8> {
        self.0.union(keys)
    }

    fn penalty(&self, cover: &[u8], new: &[u8]) -> f64 {
        self.0.penalty(cover, new)
    }

    fn split(&self, keys: &[&[u8]]) -> Vec<bool> {
        self.0.split(keys)
    }

    fn check(&self, strategy: u16, value: &Datum) -> Result<KeyCheck> {
        self.0.check(strategy, value)
    }

    /// A text has no trigram that its key lacks; the share can't be greater than if the key had no others.
    fn distance(&self, strategy: u16, value: &Datum) -> Result<Option<KeyDistance>> {
        if !matches!(strategy, 2 | 8 | 10) {
            return Ok(None);
        }
        let mut codes = self.0.codes(value)?;
        codes.sort_unstable();
        codes.dedup();
        Ok(Some(Arc::new(move |key, _| {
            let common = codes.iter().filter(|code| signature::may_have(key, **code)).count();
            (f64::from(1.0 - share(common, codes.len(), common)), true)
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trigrams_stand_between_blanks() {
        let all: Vec<String> = trigrams("Cat").expect("a short text").iter().map(shown).collect();
        assert_eq!(all, ["  c", " ca", "at ", "cat"]);
        assert!(trigrams("..").expect("a short text").is_empty());
    }

    #[test]
    fn long_texts_have_the_trigrams_of_short_ones() {
        let short = "Ab cde ÄÖü x1 99".repeat(3);
        let long = short.clone() + " " + &"Ab cde ÄÖü x1 99 ".repeat(LONG_BYTES / 16);
        let of = |text: &str| trigrams(text).expect("room");
        assert!(long.len() >= LONG_BYTES);
        let both = of(&(short.clone() + " " + &short));
        assert_eq!(of(&long).iter().filter(|t| !both.contains(t)).count(), 0);
        assert!(of(&long).is_sorted());
    }

    #[test]
    fn patterns_have_what_all_matches_have() {
        let shown = |list: Vec<Trigram>| list.iter().map(super::shown).collect::<Vec<_>>();
        assert_eq!(shown(of_like("%bcde%")), ["bcd", "cde"]);
        assert_eq!(shown(of_like("ab%")), ["  a", " ab"]);
        assert_eq!(shown(of_like("%a%")), [""; 0]);
        assert_eq!(shown(of_regex("abcd*efg")), ["abc", "efg"]);
        assert_eq!(shown(of_regex("abc|def")), [""; 0]);
    }
}
