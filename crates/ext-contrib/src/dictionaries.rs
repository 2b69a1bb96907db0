//! Dictionaries of text search, as templates: unaccent (with its function), dict_int and dict_xsyn.

use std::collections::HashMap;

use base::{Oid, Result, bail, err};
use exec::context::ExecContext;
use exec::native::{Native, Symbols};
use textsearch::dictionary::{self, Dictionary, Norm, Norms, OtherDictionary};
use textsearch::files;
use textsearch::options::{Options, flag};
use types::Datum;
use types::extension::Library;

/// The libraries.
pub static LIBRARIES: [Library; 3] = [
    Library { name: "unaccent", silent: &["unaccent_init", "unaccent_lexize"], ..Library::EMPTY },
    Library { name: "dict_int", silent: &["dintdict_init", "dintdict_lexize"], ..Library::EMPTY },
    Library { name: "dict_xsyn", silent: &["dxsyn_init", "dxsyn_lexize"], ..Library::EMPTY },
];

/// The functions of unaccent.
pub const SYMBOLS: Symbols = &[("unaccent_dict", Native::Scalar(unaccent))];

/// Makes the templates known.
pub fn register() {
    files::register("unaccent.rules", include_str!("../data/unaccent.rules"));
    dictionary::register("unaccent/unaccent_init", Unaccent::make);
    dictionary::register("dict_int/dintdict_init", Integers::make);
    dictionary::register("dict_xsyn/dxsyn_init", Synonyms::make);
}

fn invalid(message: String) -> base::Error {
    err!(INVALID_PARAMETER_VALUE, "{message}")
}

/// Replacements of letters, of which the longest that fits is taken.
struct Unaccent {
    rules: HashMap<String, String>,
    letters_max: usize,
}

impl Unaccent {
    fn make(options: &Options) -> Result<Dictionary> {
        let mut file = None;
        for (name, value) in options.iter() {
            match name {
                "rules" if file.is_some() => {
                    return Err(invalid("multiple Rules parameters".into()));
                }
                "rules" => file = Some(value),
                _ => return Err(invalid(format!("unrecognized Unaccent parameter: \"{name}\""))),
            }
        }
        let file = file.ok_or_else(|| invalid("missing Rules parameter".into()))?;
        let mut rules = HashMap::new();
        let mut letters_max = 1;
        for line in files::read(file, "rules", "unaccent file")?.lines() {
            let mut words = line.split_whitespace();
            let Some(from) = words.next() else { continue };
            let to = words.next().unwrap_or_default();
            if words.next().is_some() {
                continue;
            }
            letters_max = letters_max.max(from.chars().count());
            rules.entry(from.to_owned()).or_insert_with(|| to.to_owned());
        }
        Ok(Dictionary::Other(Box::new(Unaccent { rules, letters_max })))
    }

    /// The text with its letters replaced; None: there are none to be.
    fn replaced(&self, text: &str) -> Option<String> {
        let mut out = String::with_capacity(text.len());
        let mut changed = false;
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8()).take(self.letters_max);
            let ends: Vec<usize> = ends.collect();
            let found =
                ends.iter().rev().find_map(|end| Some((*end, self.rules.get(&rest[..*end])?)));
            let used = match found {
                Some((end, to)) => {
                    changed = true;
                    out.push_str(to);
                    end
                }
                None => {
                    out.push(first);
                    first.len_utf8()
                }
            };
            rest = &rest[used..];
        }
        changed.then_some(out)
    }
}

impl OtherDictionary for Unaccent {
    fn lexize(&self, word: &str) -> Result<Norms> {
        let norm = |word: String| Norm { word: word.into(), filters: true, ..Norm::default() };
        Ok(self.replaced(word).map(|word| vec![norm(word)]))
    }
}

/// The dictionary `unaccent`, in the schemas that are searched or wherever it is.
fn own_dictionary(cx: &mut ExecContext<'_>) -> Result<Oid> {
    let view = cx.catalog_tx.view();
    let found = view.text_search_named(cx.search_path, "d", None, "unaccent");
    let any = || view.text_search_dictionaries().find(|d| d.name == "unaccent").map(|d| d.oid);
    found
        .or_else(any)
        .map(Oid)
        .ok_or_else(|| err!(UNDEFINED_OBJECT, "text search dictionary \"unaccent\" does not exist"))
}

fn unaccent(args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    let (id, text) = match args {
        [dictionary, text] => (Oid(dictionary.as_oid()), text),
        [text] => (own_dictionary(cx)?, text),
        _ => return Ok(Datum::Null),
    };
    let norms = dictionary::get(id)?.lexize(text.as_str())?;
    Ok(match norms.as_deref() {
        Some([first, ..]) => Datum::Text(first.word.clone()),
        _ => text.clone(),
    })
}

/// Numbers, cut to a length.
struct Integers {
    digits_max: usize,
    reject: bool,
    unsigned: bool,
}

impl Integers {
    fn make(options: &Options) -> Result<Dictionary> {
        let mut out = Integers { digits_max: 6, reject: false, unsigned: false };
        for (name, value) in options.iter() {
            match name {
                "maxlen" => match value.trim().parse() {
                    Ok(number) if number > 0 => out.digits_max = number,
                    _ => bail!(INVALID_PARAMETER_VALUE, "maxlen value has to be >= 1"),
                },
                "rejectlong" => out.reject = flag("rejectlong", value)?,
                "absval" => out.unsigned = flag("absval", value)?,
                _ => return Err(invalid(format!("unrecognized intdict parameter: \"{name}\""))),
            }
        }
        Ok(Dictionary::Other(Box::new(out)))
    }
}

impl OtherDictionary for Integers {
    fn lexize(&self, word: &str) -> Result<Norms> {
        if word.is_empty() {
            return Ok(None);
        }
        let word = match self.unsigned {
            true => word.strip_prefix(['+', '-']).unwrap_or(word),
            false => word,
        };
        if word.len() <= self.digits_max {
            return Ok(Some(vec![Norm::of(word)]));
        }
        let cut: String = word.chars().take(self.digits_max).collect();
        Ok(Some(if self.reject { Vec::new() } else { vec![Norm::of(&cut)] }))
    }
}

/// Words with others that are indexed along.
#[derive(Default)]
struct Synonyms {
    keep_original: bool,
    keep_synonyms: bool,
    words: HashMap<String, Vec<String>>,
}

impl Synonyms {
    fn make(options: &Options) -> Result<Dictionary> {
        let mut out = Synonyms { keep_original: true, keep_synonyms: true, words: HashMap::new() };
        let (mut match_original, mut match_synonyms, mut file) = (true, false, None);
        for (name, value) in options.iter() {
            match name {
                "matchorig" => match_original = flag(name, value)?,
                "keeporig" => out.keep_original = flag(name, value)?,
                "matchsynonyms" => match_synonyms = flag(name, value)?,
                "keepsynonyms" => out.keep_synonyms = flag(name, value)?,
                "rules" => file = Some(value),
                _ => return Err(invalid(format!("unrecognized xsyn parameter: \"{name}\""))),
            }
        }
        let text = match file {
            Some(file) => files::read(file, "rules", "synonym file")?,
            None => String::new(),
        };
        for line in text.lines() {
            let line = line.to_lowercase();
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let Some((first, others)) = words.split_first().filter(|(w, _)| !w.starts_with('#'))
            else {
                continue;
            };
            let original = match_original.then_some(first);
            let others = others.iter().filter(|_| match_synonyms);
            for key in original.into_iter().chain(others) {
                out.words.entry(key.clone()).or_insert_with(|| words.clone());
            }
        }
        Ok(Dictionary::Other(Box::new(out)))
    }
}

impl OtherDictionary for Synonyms {
    fn lexize(&self, word: &str) -> Result<Norms> {
        let Some(words) = self.words.get(&word.to_lowercase()) else { return Ok(None) };
        let kept = words.iter().enumerate().filter(|(n, _)| match n {
            0 => self.keep_original,
            _ => self.keep_synonyms,
        });
        Ok(Some(kept.map(|(_, word)| Norm::of(word)).collect()))
    }
}
