//! Dictionaries: a word in, its lexemes out. One for each template and options, shared by all sessions.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use base::{Error, Oid, Result, err};
use types::Text;
use types::user::TextSearch;

use crate::files;
use crate::ispell::Ispell;
use crate::lower::lower;
use crate::options::{Options, flag};
use crate::thesaurus::Thesaurus;

/// A lexeme that a dictionary gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Norm {
    /// Its text.
    pub word: Text,
    /// Lexemes of one variant belong together; variants exclude each other.
    pub variant: u16,
    /// It stands one place after the one before.
    pub next_place: bool,
    /// All words with this beginning are meant.
    pub prefix: bool,
    /// It takes the word's place for the dictionaries that follow (of a filter).
    pub filters: bool,
}

impl Norm {
    /// A lexeme of its own.
    pub fn of(word: &str) -> Norm {
        Norm { word: word.into(), ..Norm::default() }
    }
}

/// The answer of a dictionary for a word: None: it doesn't know it; no lexemes: it is a stop word.
pub type Norms = Option<Vec<Norm>>;

/// A dictionary that is ready.
pub enum Dictionary {
    /// Lower case, without stop words.
    Simple {
        /// Words that are left out.
        stop: HashSet<String>,
        /// Whether other words are known to it.
        accept: bool,
    },
    /// Word by word.
    Synonym {
        /// The words, and what each is replaced by.
        words: HashMap<String, Norm>,
        /// Whether case matters.
        case_sensitive: bool,
    },
    /// Phrases.
    Thesaurus(Thesaurus),
    /// By affixes.
    Ispell(Box<Ispell>),
    /// Snowball's stems.
    Snowball {
        /// The algorithm.
        stem: crate::snowball::Stem,
        /// Words that are left out.
        stop: HashSet<String>,
    },
    /// One that another crate has.
    Other(Box<dyn OtherDictionary>),
}

/// A dictionary of an extension.
pub trait OtherDictionary: Send + Sync {
    /// The answer for a word, in the case in which it stands.
    ///
    /// # Errors
    /// The dictionary's own.
    fn lexize(&self, word: &str) -> Result<Norms>;
}

static OTHERS: Mutex<Vec<(&'static str, Make)>> = Mutex::new(Vec::new());

/// Makes a template known by the name of its code (library and symbol of the function that makes a dictionary), when
/// the server starts.
pub fn register(code: &'static str, make: Make) {
    OTHERS.lock().unwrap_or_else(PoisonError::into_inner).push((code, make));
}

/// Code of the server by the names of its functions, and the template's oid.
const BUILT_IN: &[(&str, u32)] = &[
    ("dsimple", 3727),
    ("dsynonym", 3730),
    ("dispell", 3733),
    ("thesaurus", 3742),
    ("dsnowball", 13150),
];

fn with_code(code: &str) -> Option<Make> {
    let others = OTHERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, make)) = others.iter().find(|(known, _)| *known == code) {
        return Some(*make);
    }
    let of = code.strip_suffix("_init").or_else(|| code.strip_suffix("_lexize"))?;
    let (_, oid) = BUILT_IN.iter().find(|(name, _)| *name == of)?;
    TEMPLATES.iter().find(|(id, _)| id == oid).map(|(_, make)| *make)
}

/// Whether there is a template with this code.
pub fn has_template(code: &str) -> bool {
    with_code(code).is_some()
}

/// The templates by oid.
const TEMPLATES: &[(u32, Make)] =
    &[(3727, simple), (3730, synonym), (3733, ispell), (3742, thesaurus), (13150, snowball)];

/// Makes a dictionary of its options.
pub type Make = fn(&Options) -> Result<Dictionary>;

type Key = (Oid, Text);

static READY: Mutex<Option<HashMap<Key, Arc<Dictionary>>>> = Mutex::new(None);

/// Dictionaries that are kept ready, at most: with more all are made anew.
const READY_AT_MOST: usize = 200;

/// The dictionary with an oid.
///
/// # Errors
/// Unknown ones; what is wrong with its options or files.
pub fn get(id: Oid) -> Result<Arc<Dictionary>> {
    let missing =
        || Error::internal(format!("cache lookup failed for text search dictionary {id}"));
    let found = types::user::text_search(types::oids::REGDICTIONARY, id.0).ok_or_else(missing)?;
    let TextSearch::Dictionary { template, options, .. } = &*found else { return Err(missing()) };
    of(*template, options)
}

/// The dictionary of a template with options.
///
/// # Errors
/// As [`get`].
pub fn of(template: Oid, options: &Text) -> Result<Arc<Dictionary>> {
    let key = (template, options.clone());
    let ready = || READY.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(dictionary) = ready().as_ref().and_then(|m| m.get(&key).cloned()) {
        return Ok(dictionary);
    }
    let made = Arc::new(make(template, &Options::parse(options)?)?);
    let mut ready = ready();
    let all = ready.get_or_insert_default();
    if all.len() >= READY_AT_MOST {
        all.clear();
    }
    all.insert(key, made.clone());
    Ok(made)
}

/// Makes a dictionary, as a check of its options too.
///
/// # Errors
/// As [`get`].
pub fn make(template: Oid, options: &Options) -> Result<Dictionary> {
    let missing =
        || Error::internal(format!("cache lookup failed for text search template {template}"));
    if let Some((_, make)) = TEMPLATES.iter().find(|(id, _)| *id == template.0) {
        return make(options);
    }
    let found = types::user::text_search(types::oids::REGDICTIONARY, template.0);
    let Some(TextSearch::Template { code }) = found.as_deref() else { return Err(missing()) };
    with_code(code.as_str()).ok_or_else(missing)?(options)
}

fn invalid(message: String) -> Error {
    err!(INVALID_PARAMETER_VALUE, "{message}")
}

fn simple(options: &Options) -> Result<Dictionary> {
    let (mut stop, mut accept) = (None, None);
    for (name, value) in options.iter() {
        match name {
            "stopwords" if stop.is_some() => {
                return Err(invalid("multiple StopWords parameters".into()));
            }
            "stopwords" => stop = Some(files::stop_words(value)?),
            "accept" if accept.is_some() => {
                return Err(invalid("multiple Accept parameters".into()));
            }
            "accept" => accept = Some(flag("accept", value)?),
            _ => {
                return Err(invalid(format!(
                    "unrecognized simple dictionary parameter: \"{name}\""
                )));
            }
        }
    }
    Ok(Dictionary::Simple { stop: stop.unwrap_or_default(), accept: accept.unwrap_or(true) })
}

fn synonym(options: &Options) -> Result<Dictionary> {
    let (mut file, mut case_sensitive) = (None, false);
    for (name, value) in options.iter() {
        match name {
            "synonyms" => file = Some(value),
            "casesensitive" => case_sensitive = flag("casesensitive", value)?,
            _ => return Err(invalid(format!("unrecognized synonym parameter: \"{name}\""))),
        }
    }
    let file = file.ok_or_else(|| invalid("missing Synonyms parameter".into()))?;
    let mut words = HashMap::new();
    for line in files::read(file, "syn", "synonym file")?.lines() {
        let mut fields = line.split_whitespace();
        let (Some(from), Some(to)) = (fields.next(), fields.next()) else { continue };
        let case = |word: &str| if case_sensitive { word.to_owned() } else { lower(word) };
        let (to, prefix) = match to.strip_suffix('*') {
            Some(to) if !to.is_empty() => (to, true),
            _ => (to, false),
        };
        let norm = Norm { word: case(to).into(), prefix, ..Norm::default() };
        // Of several lines for a word one counts.
        words.entry(case(from)).or_insert(norm);
    }
    Ok(Dictionary::Synonym { words, case_sensitive })
}

fn thesaurus(options: &Options) -> Result<Dictionary> {
    Thesaurus::make(options).map(Dictionary::Thesaurus)
}

fn ispell(options: &Options) -> Result<Dictionary> {
    Ispell::make(options).map(|i| Dictionary::Ispell(Box::new(i)))
}

fn snowball(options: &Options) -> Result<Dictionary> {
    let (mut stop, mut language) = (None, None);
    for (name, value) in options.iter() {
        match name {
            "stopwords" if stop.is_some() => {
                return Err(invalid("multiple StopWords parameters".into()));
            }
            "stopwords" => stop = Some(files::stop_words(value)?),
            "language" if language.is_some() => {
                return Err(invalid("multiple Language parameters".into()));
            }
            "language" => language = Some(value),
            _ => return Err(invalid(format!("unrecognized Snowball parameter: \"{name}\""))),
        }
    }
    let language = language.ok_or_else(|| invalid("missing Language parameter".into()))?;
    let stem = crate::snowball::find(language).ok_or_else(|| {
        err!(
            UNDEFINED_OBJECT,
            "no Snowball stemmer available for language \"{language}\" and encoding \"UTF8\""
        )
    })?;
    Ok(Dictionary::Snowball { stem, stop: stop.unwrap_or_default() })
}

/// Bytes of a word that Snowball looks at, at most: longer ones are no words.
const STEM_BYTES: usize = 1000;

impl Dictionary {
    /// The answer for a word. (A thesaurus is asked for phrases, and says nothing of words.)
    ///
    /// # Errors
    /// Those of a thesaurus' own dictionary.
    pub fn lexize(&self, word: &str) -> Result<Norms> {
        Ok(match self {
            Dictionary::Simple { stop, accept } => {
                let lower = lower(word);
                if lower.is_empty() || stop.contains(&lower) {
                    Some(Vec::new())
                } else {
                    accept.then(|| vec![Norm::of(&lower)])
                }
            }
            Dictionary::Synonym { words, case_sensitive } => {
                let key = if *case_sensitive { word.to_owned() } else { lower(word) };
                words.get(&key).map(|norm| vec![norm.clone()])
            }
            Dictionary::Thesaurus(t) => t.single(word)?,
            Dictionary::Ispell(i) => i.lexize(&lower(word))?,
            Dictionary::Other(other) => other.lexize(word)?,
            Dictionary::Snowball { stem, stop } => {
                let lower = lower(word);
                if lower.len() > STEM_BYTES {
                    Some(vec![Norm::of(&lower)])
                } else if lower.is_empty() || stop.contains(&lower) {
                    Some(Vec::new())
                } else {
                    Some(vec![Norm::of(&stem(&lower))])
                }
            }
        })
    }
}
