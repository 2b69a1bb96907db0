//! The thesaurus: phrases of the text that are replaced, the longest first.
//!
//! ```text
//! supernovae stars : *sn        a word with * stands as it is; ? is any stop word
//! ```
//!
//! Words of both sides go through the thesaurus' own dictionary.

use std::sync::{Arc, OnceLock};

use base::{Error, Oid, Result, err};

use crate::dictionary::{self, Dictionary, Norm, Norms};
use crate::files;
use crate::options::Options;

/// A phrase and what replaces it.
struct Entry {
    /// The lexemes of each word, any of which will do; None: a stop word.
    words: Vec<Option<Vec<String>>>,
    replacement: Vec<Norm>,
}

/// The dictionary.
pub struct Thesaurus {
    file: String,
    below: String,
    /// Made when they are first needed: then the dictionary below can be found.
    entries: OnceLock<(Arc<Dictionary>, Vec<Entry>)>,
}

impl Thesaurus {
    /// From its options.
    ///
    /// # Errors
    /// `22023`.
    pub fn make(options: &Options) -> Result<Thesaurus> {
        let (mut file, mut below) = (None, None);
        for (name, value) in options.iter() {
            match name {
                "dictfile" if file.is_some() => {
                    return Err(err!(INVALID_PARAMETER_VALUE, "multiple DictFile parameters"));
                }
                "dictfile" => file = Some(value.to_owned()),
                "dictionary" if below.is_some() => {
                    return Err(err!(INVALID_PARAMETER_VALUE, "multiple Dictionary parameters"));
                }
                "dictionary" => below = Some(value.to_owned()),
                _ => {
                    return Err(err!(
                        INVALID_PARAMETER_VALUE,
                        "unrecognized Thesaurus parameter: \"{name}\""
                    ));
                }
            }
        }
        let missing = |what: &str| err!(INVALID_PARAMETER_VALUE, "missing {what} parameter");
        let file = file.ok_or_else(|| missing("DictFile"))?;
        let below = below.ok_or_else(|| missing("Dictionary"))?;
        let made = Thesaurus { file, below, entries: OnceLock::new() };
        made.ready()?;
        Ok(made)
    }

    fn ready(&self) -> Result<&(Arc<Dictionary>, Vec<Entry>)> {
        if let Some(ready) = self.entries.get() {
            return Ok(ready);
        }
        let id = types::user::object_named(types::oids::REGDICTIONARY, &self.below)?;
        let below = dictionary::get(Oid(id))?;
        let text = files::read(&self.file, "ths", "thesaurus file")?;
        let mut entries = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            entries.push(entry(line, number, &below, self)?);
        }
        Ok(self.entries.get_or_init(|| (below, entries)))
    }

    /// The words that replace a single word.
    ///
    /// # Errors
    /// Those of the dictionary below.
    pub fn single(&self, word: &str) -> Result<Norms> {
        Ok(self.longest(&[word])?.map(|(_, norms)| norms))
    }

    /// The longest phrase that the words begin with: how many of them it takes, and what replaces them.
    ///
    /// # Errors
    /// Those of the dictionary below.
    pub fn longest(&self, words: &[&str]) -> Result<Option<(usize, Vec<Norm>)>> {
        let (below, entries) = self.ready()?;
        let mut known: Vec<Norms> = Vec::new();
        let mut best: Option<(usize, &Entry)> = None;
        for entry in entries.iter().filter(|e| e.words.len() <= words.len()) {
            if best.is_some_and(|(len, _)| len >= entry.words.len()) {
                continue;
            }
            let mut fits = true;
            for (n, wanted) in entry.words.iter().enumerate() {
                if known.len() <= n {
                    known.push(below.lexize(words[n])?);
                }
                fits = match (&known[n], wanted) {
                    (Some(norms), Some(any)) => {
                        norms.iter().any(|norm| any.iter().any(|w| *w == norm.word))
                    }
                    (Some(norms), None) => norms.is_empty(),
                    (None, _) => false,
                };
                if !fits {
                    break;
                }
            }
            if fits {
                best = Some((entry.words.len(), entry));
            }
        }
        Ok(best.map(|(len, entry)| (len, entry.replacement.clone())))
    }

    /// Words of its longest phrase.
    ///
    /// # Errors
    /// Those of the dictionary below.
    pub fn longest_phrase(&self) -> Result<usize> {
        Ok(self.ready()?.1.iter().map(|e| e.words.len()).max().unwrap_or(0))
    }
}

fn entry(line: &str, number: u32, below: &Dictionary, t: &Thesaurus) -> Result<Entry> {
    let (left, right) = line
        .split_once(':')
        .ok_or_else(|| err!(CONFIG_FILE_ERROR, "missing delimiter in thesaurus file"))?;
    let mut words = Vec::new();
    for word in left.split_whitespace() {
        if word == "?" {
            words.push(None);
            continue;
        }
        match below.lexize(word)? {
            Some(norms) if !norms.is_empty() => {
                words.push(Some(norms.iter().map(|n| n.word.to_string()).collect()));
            }
            Some(_) => {
                return Err(problem(t, word, number, "sample", true));
            }
            None => return Err(problem(t, word, number, "sample", false)),
        }
    }
    let mut replacement: Vec<Norm> = Vec::new();
    for (place, word) in right.split_whitespace().enumerate() {
        let norms = match word.strip_prefix('*') {
            Some(word) => vec![Norm::of(word)],
            None => match below.lexize(word)? {
                Some(norms) if !norms.is_empty() => norms,
                Some(_) => return Err(problem(t, word, number, "substitute", true)),
                None => return Err(problem(t, word, number, "substitute", false)),
            },
        };
        for (n, norm) in norms.into_iter().enumerate() {
            replacement.push(Norm { next_place: n == 0 && place > 0, variant: 1, ..norm });
        }
    }
    if words.is_empty() || replacement.is_empty() {
        return Err(err!(CONFIG_FILE_ERROR, "unexpected end of line"));
    }
    Ok(Entry { words, replacement })
}

fn problem(t: &Thesaurus, word: &str, rule: u32, side: &str, stop: bool) -> Error {
    let _ = t;
    match (side, stop) {
        ("sample", true) => {
            err!(CONFIG_FILE_ERROR, "thesaurus sample word \"{word}\" is a stop word (rule {rule})")
                .hint("Use \"?\" to represent a stop word within a sample phrase.")
        }
        (_, true) => err!(
            CONFIG_FILE_ERROR,
            "thesaurus substitute word \"{word}\" is a stop word (rule {rule})"
        ),
        _ => err!(
            CONFIG_FILE_ERROR,
            "thesaurus {side} word \"{word}\" isn't recognized by subdictionary (rule {rule})"
        ),
    }
}
