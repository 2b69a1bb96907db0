//! Collations of ICU: the order of texts by a language's rules, and its upper and lower case.
//!
//! A collation's order is that of *keys*: bytes that `memcmp` compares ([`Slot::key`]). So nothing that
//! sorts, hashes, joins or keeps an index has to know of collations: the binder puts a text's key in
//! the place of the text, and an index column holds keys. What has no collation of ICU has no key
//! either, and compares its bytes as ever.
//!
//! ```text
//! deterministic      the key of ICU   00   the text     equal only when the texts are
//! not deterministic  the key of ICU                     equal when ICU says so
//! ```
//!
//! Keys of ICU have no 00 in them, and 00 is below all that can stand in its place: a text whose key
//! begins as another one's comes behind it.
//!
//! Collations that are in use have numbers ([`Slot`]), which belong to the running program: they are
//! in plans, never on disk. A number stands for a locale, so there are few; they are never given back.
//!
//! Left out: rules of one's own (PostgreSQL 16), `kb` and `kr` in locales, which the library takes
//! from its data only. Source: Unicode Technical Standards 10 and 35.

use std::collections::HashMap;
use std::sync::{OnceLock, PoisonError, RwLock};

use base::{Error, Result, err};
use icu_casemap::CaseMapper;
use icu_casemap::options::TitlecaseOptions;
use icu_collator::options::{AlternateHandling, CaseLevel, CollatorOptions, MaxVariable, Strength};
use icu_collator::{Collator, CollatorBorrowed, CollatorPreferences};
use icu_locale_core::{LanguageIdentifier, Locale};
use unicode_segmentation::UnicodeSegmentation;

use crate::datum::{Array, Datum};
use crate::oids;
use crate::order::trim_bpchar;

/// The version of the library's data (that of Unicode's CLDR), as `pg_collation_actual_version` says it.
pub const VERSION: &str = "48";

/// Most locales that can be in use at once.
const SLOTS_MAX: usize = 4096;

/// A collation of ICU in use; [`Slot::BYTES`] for all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Slot(pub u16);

struct Known {
    collator: CollatorBorrowed<'static>,
    language: LanguageIdentifier,
    deterministic: bool,
}

static KNOWN: [OnceLock<Box<Known>>; SLOTS_MAX] = [const { OnceLock::new() }; SLOTS_MAX];
static NUMBERS: RwLock<Option<HashMap<(String, bool), Slot>>> = RwLock::new(None);

impl Slot {
    /// No collation of ICU: bytes are compared.
    pub const BYTES: Slot = Slot(0);

    /// Bytes, too, where only ASCII's letters have a case (`C`).
    pub const ASCII: Slot = Slot(u16::MAX);

    /// The number of a locale's collation.
    ///
    /// # Errors
    /// `0A000` what the library can't do, `22023` what ICU refuses.
    pub fn of(locale: &str, deterministic: bool) -> Result<Slot> {
        let name = (locale.to_owned(), deterministic);
        let known = NUMBERS.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = known.as_ref().and_then(|map| map.get(&name)) {
            return Ok(*slot);
        }
        drop(known);
        let made = open(locale, deterministic)?;
        let mut known = NUMBERS.write().unwrap_or_else(PoisonError::into_inner);
        let map = known.get_or_insert_default();
        if let Some(slot) = map.get(&name) {
            return Ok(*slot);
        }
        let at = map.len() + 1;
        let place = KNOWN
            .get(at)
            .ok_or_else(|| err!(PROGRAM_LIMIT_EXCEEDED, "too many collations are in use"))?;
        place.get_or_init(|| Box::new(made));
        let slot = Slot(at as u16);
        map.insert(name, slot);
        Ok(slot)
    }

    fn known(self) -> Option<&'static Known> {
        KNOWN.get(usize::from(self.0))?.get().map(|k| &**k)
    }

    /// Whether texts are equal only when their bytes are.
    pub fn is_deterministic(self) -> bool {
        self.known().is_none_or(|k| k.deterministic)
    }

    /// A value in the form whose bytes compare as the collation has it: a text as bytea, an array of
    /// texts as one of bytea, NULL as NULL.
    pub fn key(self, value: &Datum) -> Datum {
        match value {
            Datum::Text(s) => self.key_of(s),
            Datum::Bpchar(s) => self.key_of(trim_bpchar(s)),
            Datum::Array(a) => {
                let items = a.items.iter().map(|item| self.key(item)).collect();
                let array = Array { element: oids::BYTEA, dims: a.dims.clone(), items };
                Datum::Array(array.into())
            }
            other => other.clone(),
        }
    }

    fn key_of(self, text: &str) -> Datum {
        let mut out = Vec::with_capacity(text.len() * 3 + 8);
        match self.known() {
            Some(known) => {
                // Writing to memory does not fail.
                let _ = known.collator.write_sort_key_to(text, &mut out);
                if known.deterministic {
                    out.push(0);
                    out.extend_from_slice(text.as_bytes());
                }
            }
            None => out.extend_from_slice(text.as_bytes()),
        }
        Datum::bytea(&out)
    }

    /// The text in another case, by the collation's language.
    pub fn in_case(self, case: Case, text: &str) -> String {
        let Some(known) = self.known() else { return in_ascii(case, text) };
        let mapper = CaseMapper::new();
        match case {
            Case::Lower => mapper.lowercase_to_string(text, &known.language).into_owned(),
            Case::Upper => mapper.uppercase_to_string(text, &known.language).into_owned(),
            Case::Title => text
                .split_word_bounds()
                .map(|word| {
                    let options = TitlecaseOptions::default();
                    mapper.titlecase_segment_with_only_case_data_to_string(
                        word,
                        &known.language,
                        options,
                    )
                })
                .collect(),
        }
    }
}

/// The changes of case that `lower`, `upper` and `initcap` make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// `lower`.
    Lower,
    /// `upper`.
    Upper,
    /// `initcap`.
    Title,
}

/// By the rules of the C library's locale `C`.
fn in_ascii(case: Case, text: &str) -> String {
    let mut inside = false;
    let one = |c: char| {
        let upper = match case {
            Case::Lower => false,
            Case::Upper => true,
            Case::Title => !inside,
        };
        inside = c.is_ascii_alphanumeric();
        if upper { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() }
    };
    text.chars().map(one).collect()
}

/// A locale's name as Unicode writes it: `de@collation=phonebook` is `de-u-co-phonebk`.
fn canonical(name: &str) -> String {
    let (language, keywords) = name.split_once('@').unwrap_or((name, ""));
    let language = language.split('.').next().unwrap_or_default();
    let mut out = match language {
        "" | "root" => "und".to_owned(),
        other => other.replace('_', "-"),
    };
    let mut pairs: Vec<(String, String)> = Vec::new();
    for pair in keywords.split(';').filter(|k| !k.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, "yes"));
        let key = match key.trim().to_ascii_lowercase().as_str() {
            "collation" => "co".to_owned(),
            "colstrength" => "ks".to_owned(),
            "colalternate" => "ka".to_owned(),
            "colcaselevel" => "kc".to_owned(),
            "colcasefirst" => "kf".to_owned(),
            "colnumeric" => "kn".to_owned(),
            "colbackwards" => "kb".to_owned(),
            "colreorder" => "kr".to_owned(),
            "colnormalization" => "kk".to_owned(),
            other => other.to_owned(),
        };
        let value = match value.trim().to_ascii_lowercase().as_str() {
            "phonebook" => "phonebk".to_owned(),
            "traditional" => "trad".to_owned(),
            "primary" => "level1".to_owned(),
            "secondary" => "level2".to_owned(),
            "tertiary" => "level3".to_owned(),
            "quaternary" | "quarternary" => "level4".to_owned(),
            "identical" => "identic".to_owned(),
            "non-ignorable" => "noignore".to_owned(),
            "yes" => "true".to_owned(),
            "no" => "false".to_owned(),
            other => other.to_owned(),
        };
        pairs.push((key, value));
    }
    pairs.retain(|(key, _)| key.len() == 2);
    if !pairs.is_empty() && !out.contains("-u-") {
        out.push_str("-u");
    }
    for (key, value) in pairs {
        out.push_str(&format!("-{key}-{value}"));
    }
    out
}

/// The value of a key of the locale's `-u-` part; empty for a key that stands alone.
fn keyword<'n>(name: &'n str, key: &str) -> Option<&'n str> {
    let at = name.to_ascii_lowercase().find("-u-")? + 3;
    let mut parts = name[at..].split('-').skip_while(|p| !p.eq_ignore_ascii_case(key));
    parts.next()?;
    Some(parts.next().filter(|value| value.len() > 2).unwrap_or_default())
}

fn open(locale: &str, deterministic: bool) -> Result<Known> {
    let name = canonical(locale);
    let word = |key: &str| keyword(&name, key).map(str::to_ascii_lowercase);
    let is_on = |value: &str| matches!(value, "" | "true" | "yes");
    if word("kb").is_some_and(|v| is_on(&v)) || word("kr").is_some() || word("vt").is_some() {
        return Err(Error::unsupported(format!("the keywords of locale \"{locale}\"")));
    }
    let mut options = CollatorOptions::default();
    options.strength = match word("ks").as_deref() {
        Some("level1") => Some(Strength::Primary),
        Some("level2") => Some(Strength::Secondary),
        Some("level3") => Some(Strength::Tertiary),
        Some("level4") => Some(Strength::Quaternary),
        Some("identic") => Some(Strength::Identical),
        _ => None,
    };
    options.alternate_handling = match word("ka").as_deref() {
        Some("shifted") => Some(AlternateHandling::Shifted),
        Some("noignore") => Some(AlternateHandling::NonIgnorable),
        _ => None,
    };
    options.case_level = word("kc").map(|v| if is_on(&v) { CaseLevel::On } else { CaseLevel::Off });
    options.max_variable = match word("kv").as_deref() {
        Some("space") => Some(MaxVariable::Space),
        Some("punct") => Some(MaxVariable::Punctuation),
        Some("symbol") => Some(MaxVariable::Symbol),
        Some("currency") => Some(MaxVariable::Currency),
        _ => None,
    };
    // As ICU: the root's order stands in for a language that nobody knows.
    let parsed: Locale = name.parse().unwrap_or(Locale::UNKNOWN);
    let collator = Collator::try_new(CollatorPreferences::from(&parsed), options).map_err(|e| {
        err!(INVALID_PARAMETER_VALUE, "could not open collator for locale \"{locale}\": {e}")
    })?;
    Ok(Known { collator, language: parsed.id, deterministic })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(locale: &str, words: &str) -> String {
        let slot = Slot::of(locale, true).unwrap();
        let mut list: Vec<&str> = words.split(' ').collect();
        list.sort_by_key(|w| match slot.key(&Datum::text(w)) {
            Datum::Bytea(b) => b.to_vec(),
            other => panic!("{other:?}"),
        });
        list.join(" ")
    }

    #[test]
    fn languages_have_their_orders() {
        assert_eq!(sorted("und", "b B a A ä z Ä"), "a A ä Ä b B z");
        assert_eq!(sorted("sv", "ä z å ö a"), "a z å ä ö");
        assert_eq!(sorted("de", "of ö oz"), "ö of oz");
        assert_eq!(sorted("de-u-co-phonebk", "of ö od oz"), "od ö of oz");
        assert_eq!(sorted("de@collation=phonebook", "of ö od oz"), "od ö of oz");
        assert_eq!(sorted("es-u-co-trad", "cz ch d ca"), "ca cz ch d");
        assert_eq!(sorted("fr-CA", "côté cote coté côte"), "cote côte coté côté");
        assert_eq!(sorted("fr", "côté cote coté côte"), "cote coté côte côté");
    }

    #[test]
    fn options_stand_in_the_locale() {
        assert_eq!(sorted("en-u-kn", "a10 a9 a1"), "a1 a9 a10");
        assert_eq!(sorted("en-u-kf-upper", "a A b B"), "A a B b");
        assert_eq!(sorted("und-u-ka-shifted", "b de-x de"), "b de de-x");
        let equal = |locale: &str, a: &str, b: &str| {
            let slot = Slot::of(locale, false).unwrap();
            slot.key(&Datum::text(a)) == slot.key(&Datum::text(b))
        };
        assert!(equal("und-u-ks-level2", "Case", "cASE"));
        assert!(!equal("und-u-ks-level2", "e", "é"));
        assert!(equal("und-u-ks-level1", "e", "É"));
        assert!(equal("und@colStrength=primary", "e", "É"));
        assert!(equal("und-u-kc-ks-level1", "e", "é"));
        assert!(!equal("und-u-kc-ks-level1", "e", "E"));
    }

    #[test]
    fn a_deterministic_collation_tells_all_texts_apart() {
        let slot = Slot::of("und-u-ks-level1", true).unwrap();
        assert_ne!(slot.key(&Datum::text("a")), slot.key(&Datum::text("A")));
        assert_eq!(slot, Slot::of("und-u-ks-level1", true).unwrap());
        assert_ne!(slot, Slot::of("und-u-ks-level1", false).unwrap());
    }

    #[test]
    fn letters_have_the_case_of_their_language() {
        let turkish = Slot::of("tr", true).unwrap();
        assert_eq!(turkish.in_case(Case::Upper, "iı"), "İI");
        assert_eq!(turkish.in_case(Case::Lower, "Iİ"), "ıi");
        let german = Slot::of("de", true).unwrap();
        assert_eq!(german.in_case(Case::Upper, "straße"), "STRASSE");
        assert_eq!(
            german.in_case(Case::Title, "hello WORLD o'neil x-ray"),
            "Hello World O'neil X-Ray"
        );
    }
}
