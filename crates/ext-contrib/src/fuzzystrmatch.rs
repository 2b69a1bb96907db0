//! fuzzystrmatch: edit distance, soundex, metaphone and double metaphone.
//!
//! Sources: R. Wagner and M. Fischer, "The String-to-String Correction Problem" (1974); the soundex code of the U.S.
//! National Archives; L. Philips, "Hanging on the Metaphone" (1990).

use base::{Result, err};
use types::Datum;
use types::extension::Library;
use types::func::Body;

use crate::common::Bodies;
use crate::dmetaphone;

/// The extension's code.
pub static LIBRARY: Library = Library { name: "fuzzystrmatch", bodies, ..Library::EMPTY };

/// Letters that the edit distance takes.
const LETTERS_MAX: usize = 255;

fn number(value: &Datum) -> i64 {
    value.to_i64().unwrap_or_default()
}

/// The cost of making one text of the other by inserting, deleting and replacing letters.
fn distance(a: &str, b: &str, [insert, delete, replace]: [i64; 3]) -> Result<i64> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len() > LETTERS_MAX || b.len() > LETTERS_MAX {
        return Err(err!(
            INVALID_PARAMETER_VALUE,
            "levenshtein argument exceeds maximum length of {LETTERS_MAX} characters"
        ));
    }
    let mut before: Vec<i64> = (0..=a.len() as i64).map(|n| n * delete).collect();
    for letter in &b {
        let mut now = Vec::with_capacity(before.len());
        now.push(before[0] + insert);
        for (n, other) in a.iter().enumerate() {
            let changed = before[n] + if letter == other { 0 } else { replace };
            now.push(changed.min(before[n + 1] + insert).min(now[n] + delete));
        }
        before = now;
    }
    Ok(before[a.len()])
}

/// The same up to a limit; beyond it, something greater.
fn limited(a: &str, b: &str, costs: [i64; 3], most: i64) -> Result<Datum> {
    let exact = distance(a, b, costs)?;
    let over = most >= 0 && exact > most;
    let shown = i32::try_from(if over { most + 1 } else { exact });
    let shown =
        shown.map_err(|_| err!(NUMERIC_VALUE_OUT_OF_RANGE, "levenshtein distance out of range"))?;
    Ok(Datum::Int4(shown))
}

/// The digit of a letter in soundex; None: it has none.
fn soundex_digit(letter: u8) -> Option<u8> {
    const DIGITS: &[u8; 26] = b"01230120022455012623010202";
    letter.is_ascii_alphabetic().then(|| DIGITS[usize::from(letter.to_ascii_uppercase() - b'A')])
}

fn soundex(text: &str) -> String {
    let mut letters = text.bytes().skip_while(|b| !b.is_ascii_alphabetic());
    let Some(first) = letters.next() else { return String::new() };
    let mut out = vec![first.to_ascii_uppercase()];
    let mut last = first;
    for letter in letters {
        if out.len() == 4 {
            break;
        }
        if let Some(digit) = soundex_digit(letter)
            && Some(digit) != soundex_digit(last)
            && digit != b'0'
        {
            out.push(digit);
        }
        last = letter;
    }
    out.resize(4, b'0');
    out.into_iter().map(char::from).collect()
}

/// How many of the letters of two codes agree.
fn difference(a: &str, b: &str) -> i32 {
    let (a, b) = (soundex(a), soundex(b));
    a.bytes().zip(b.bytes()).filter(|(x, y)| x == y).count() as i32
}

/// A word, for metaphone: upper case, letters only are looked at.
struct Word(Vec<u8>);

impl Word {
    fn at(&self, n: isize) -> u8 {
        usize::try_from(n).ok().and_then(|n| self.0.get(n)).map_or(0, u8::to_ascii_uppercase)
    }
}

fn vowel(c: u8) -> bool {
    matches!(c, b'A' | b'E' | b'I' | b'O' | b'U')
}

/// Makes the letters before it soft.
fn front(c: u8) -> bool {
    matches!(c, b'E' | b'I' | b'Y')
}

/// Not made to F by an H that follows, so that G is silent before it.
fn no_gh_to_f(c: u8) -> bool {
    matches!(c, b'B' | b'D' | b'H')
}

/// Takes an H into itself.
fn takes_h(c: u8) -> bool {
    matches!(c, b'C' | b'G' | b'P' | b'S' | b'T')
}

fn metaphone(text: &str, most: usize) -> String {
    let w = Word(text.bytes().collect());
    let len = w.0.len() as isize;
    let mut i = 0;
    while i < len && !w.at(i).is_ascii_alphabetic() {
        i += 1;
    }
    if i == len {
        return String::new();
    }
    let mut out: Vec<u8> = Vec::new();
    // The beginning of a word is heard in its own way.
    match (w.at(i), w.at(i + 1)) {
        (b'A', b'E') => {
            out.push(b'E');
            i += 2;
        }
        (b'G' | b'K' | b'P', b'N') => {
            out.push(b'N');
            i += 2;
        }
        (b'X', _) => {
            out.push(b'S');
            i += 1;
        }
        (b'W', b'R') => {
            out.push(b'R');
            i += 2;
        }
        (b'W', next) if vowel(next) => {
            out.push(b'W');
            i += 2;
        }
        (b'W', _) => i += 1,
        (c, _) if vowel(c) => {
            out.push(c);
            i += 1;
        }
        _ => {}
    }
    while i < len && out.len() < most {
        let c = w.at(i);
        let (before, next, after) = (w.at(i - 1), w.at(i + 1), w.at(i + 2));
        let mut skip = 0;
        if !c.is_ascii_alphabetic() || c == before && c != b'C' {
            i += 1;
            continue;
        }
        match c {
            b'B' if before == b'M' => {}
            b'B' => out.push(b'B'),
            b'C' if front(next) => {
                if next == b'I' && after == b'A' {
                    out.push(b'X');
                } else if before != b'S' {
                    out.push(b'S');
                }
            }
            b'C' if next == b'H' => {
                out.push(if after == b'R' || before == b'S' { b'K' } else { b'X' });
                skip = 1;
            }
            b'C' => out.push(b'K'),
            b'D' if next == b'G' && front(after) => {
                out.push(b'J');
                skip = 1;
            }
            b'D' => out.push(b'T'),
            b'G' if next == b'H' => {
                if !(no_gh_to_f(w.at(i - 3)) || w.at(i - 4) == b'H') {
                    out.push(b'F');
                    skip = 1;
                }
            }
            b'G' if next == b'N' => {
                let ends = !after.is_ascii_alphabetic() || after == b'E' && w.at(i + 3) == b'D';
                if !ends {
                    out.push(b'K');
                }
            }
            b'G' if front(next) && before != b'G' => out.push(b'J'),
            b'G' => out.push(b'K'),
            b'H' if vowel(next) && !takes_h(before) => out.push(b'H'),
            b'K' if before != b'C' => out.push(b'K'),
            b'P' if next == b'H' => out.push(b'F'),
            b'P' => out.push(b'P'),
            b'Q' => out.push(b'K'),
            b'S' if next == b'I' && matches!(after, b'O' | b'A') => out.push(b'X'),
            b'S' if next == b'H' => {
                out.push(b'X');
                skip = 1;
            }
            b'S' if next == b'C' && after == b'H' && w.at(i + 3) == b'W' => {
                out.push(b'X');
                skip = 2;
            }
            b'S' => out.push(b'S'),
            b'T' if next == b'I' && matches!(after, b'O' | b'A') => out.push(b'X'),
            b'T' if next == b'H' => {
                out.push(b'0');
                skip = 1;
            }
            b'T' => out.push(b'T'),
            b'V' => out.push(b'F'),
            b'W' if vowel(next) => out.push(b'W'),
            b'X' => out.extend_from_slice(b"KS"),
            b'Y' if vowel(next) => out.push(b'Y'),
            b'Z' => out.push(b'S'),
            b'F' | b'J' | b'L' | b'M' | b'N' | b'R' => out.push(c),
            _ => {}
        }
        i += 1 + skip;
    }
    out.truncate(most.max(1));
    out.into_iter().map(char::from).collect()
}

fn metaphone_of(args: &[Datum]) -> Result<Datum> {
    let (text, most) = (args[0].as_str(), number(&args[1]));
    if text.is_empty() {
        return Ok(Datum::text(""));
    }
    if text.len() > LETTERS_MAX {
        return Err(err!(
            INVALID_PARAMETER_VALUE,
            "argument exceeds the maximum length of {LETTERS_MAX} bytes"
        ));
    }
    if most > LETTERS_MAX as i64 {
        return Err(err!(
            INVALID_PARAMETER_VALUE,
            "output exceeds the maximum length of {LETTERS_MAX} bytes"
        ));
    }
    if most <= 0 {
        base::bail!(ZERO_LENGTH_CHARACTER_STRING, "output cannot be empty string");
    }
    Ok(Datum::text(&metaphone(text, most as usize)))
}

fn bodies() -> Bodies {
    fn costs(args: &[Datum]) -> [i64; 3] {
        [number(&args[2]), number(&args[3]), number(&args[4])]
    }
    vec![
        (
            "levenshtein",
            Body::Scalar(|args, _| limited(args[0].as_str(), args[1].as_str(), [1; 3], -1)),
        ),
        (
            "levenshtein_with_costs",
            Body::Scalar(|args, _| limited(args[0].as_str(), args[1].as_str(), costs(args), -1)),
        ),
        (
            "levenshtein_less_equal",
            Body::Scalar(|args, _| {
                limited(args[0].as_str(), args[1].as_str(), [1; 3], number(&args[2]))
            }),
        ),
        (
            "levenshtein_less_equal_with_costs",
            Body::Scalar(|args, _| {
                limited(args[0].as_str(), args[1].as_str(), costs(args), number(&args[5]))
            }),
        ),
        ("metaphone", Body::Scalar(|args, _| metaphone_of(args))),
        ("dmetaphone", Body::Scalar(|a, _| Ok(Datum::text(&dmetaphone::codes(a[0].as_str())[0])))),
        (
            "dmetaphone_alt",
            Body::Scalar(|a, _| Ok(Datum::text(&dmetaphone::codes(a[0].as_str())[1]))),
        ),
        ("soundex", Body::Scalar(|args, _| Ok(Datum::text(&soundex(args[0].as_str()))))),
        (
            "difference",
            Body::Scalar(|args, _| Ok(Datum::Int4(difference(args[0].as_str(), args[1].as_str())))),
        ),
    ]
}
