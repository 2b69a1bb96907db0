//! ispell and hunspell dictionaries: base forms by taking affixes off.
//!
//! ```text
//!   words     book/GS                          the word, and the flags of the affixes that it takes
//!   affixes   flag *G:  [^E] > ING             ispell: a base form that ends in [^E] may take ING
//!             SFX G Y 1 / SFX G 0 ING [^E]     hunspell: the same
//!
//!   bookings ─ without S ─► booking ─ is a word with S   ─► booking
//!            └ without INGS ─► book ─ is a word with J   ─► book
//! ```
//!
//! A word may also be a compound: parts whose words or affixes allow it, the last one in any form.
//! Source: the manual's chapter 12.6.5, and hunspell(5).

use std::collections::{BTreeMap, HashMap, HashSet};

use base::{Result, err};
use regex::Regex;

use crate::dictionary::{Norm, Norms};
use crate::files;
use crate::lower::lower;
use crate::options::Options;

/// Where a word or an affix may stand.
mod place {
    /// Only as part of a compound.
    pub const ONLY_COMPOUND: u8 = 1;
    /// At a compound's beginning.
    pub const FIRST: u8 = 2;
    /// In its middle.
    pub const MIDDLE: u8 = 4;
    /// At its end.
    pub const LAST: u8 = 8;
    /// Anywhere in a compound.
    pub const ANYWHERE: u8 = FIRST | MIDDLE | LAST;
    /// The affix may stand inside of a compound.
    pub const PERMIT: u8 = 16;
    /// It may not.
    pub const FORBID: u8 = 32;
}

/// Letters of words that are looked at.
const LETTERS_MAX: usize = 256;
/// Answers for a word.
const ANSWERS_MAX: usize = 1023;
/// Attempts at taking a word apart.
const ATTEMPTS_MAX: usize = 10_000;

/// The form of flags.
#[derive(Clone, Copy, Default, PartialEq)]
enum FlagForm {
    /// One character each.
    #[default]
    Char,
    /// Two.
    Long,
    /// Numbers with commas between.
    Number,
}

/// A rule that makes a form of a base form.
struct Affix {
    flag: String,
    /// It may stand with one of the other kind.
    crosses: bool,
    places: u8,
    is_suffix: bool,
    /// Stands in the base form where `added` stands in the form.
    removed: String,
    added: String,
    /// The base forms that take it; None: all.
    mask: Option<Regex>,
}

/// A word's flags, and where it may stand.
#[derive(Default)]
struct Entry {
    flags: HashSet<String>,
    places: u8,
}

/// The dictionary.
#[derive(Default)]
pub struct Ispell {
    form: FlagForm,
    /// Sets of flags by number (AF).
    aliases: Option<Vec<String>>,
    /// Flags that say where words or affixes may stand.
    compound: Vec<(String, u8)>,
    words: HashMap<String, Entry>,
    affixes: Vec<Affix>,
    /// Affixes by what they add: prefixes and suffixes.
    by_added: [BTreeMap<String, Vec<usize>>; 2],
    stop: HashSet<String>,
}

fn bad_file(message: String) -> base::Error {
    err!(CONFIG_FILE_ERROR, "{message}")
}

impl Ispell {
    /// From its options.
    ///
    /// # Errors
    /// `22023`; those of its files.
    pub fn make(options: &Options) -> Result<Ispell> {
        let invalid = |message: String| err!(INVALID_PARAMETER_VALUE, "{message}");
        let (mut words, mut affixes, mut stop) = (None, None, None);
        for (name, value) in options.iter() {
            let (place, shown) = match name {
                "dictfile" => (&mut words, "DictFile"),
                "afffile" => (&mut affixes, "AffFile"),
                "stopwords" => (&mut stop, "StopWords"),
                _ => return Err(invalid(format!("unrecognized Ispell parameter: \"{name}\""))),
            };
            if place.replace(value).is_some() {
                return Err(invalid(format!("multiple {shown} parameters")));
            }
        }
        let missing = |what: &str| invalid(format!("missing {what} parameter"));
        let (Some(words), Some(affixes)) = (words, affixes) else {
            return Err(missing(if affixes.is_none() { "AffFile" } else { "DictFile" }));
        };
        let mut out = Ispell::default();
        if let Some(stop) = stop {
            out.stop = files::stop_words(stop)?;
        }
        let words = files::read(words, "dict", "dictionary file")?;
        out.read_affixes(&files::read(affixes, "affix", "affix file")?)?;
        out.read_words(&words)?;
        for (n, affix) in out.affixes.iter().enumerate() {
            let by_added = &mut out.by_added[usize::from(affix.is_suffix)];
            by_added.entry(affix.added.clone()).or_default().push(n);
        }
        Ok(out)
    }

    fn read_words(&mut self, text: &str) -> Result<()> {
        for line in text.lines() {
            sched::check_interrupts()?;
            let (word, flags) = line.split_once('/').unwrap_or((line, ""));
            let word = lower(word.split_whitespace().next().unwrap_or_default());
            if word.is_empty() {
                continue;
            }
            let shown = |c: &char| c.is_ascii_graphic();
            let flags: String = flags.chars().take_while(shown).collect();
            let flags = self.flag_set(&flags)?;
            let mut places = self.places(&flags);
            if places & place::ONLY_COMPOUND != 0 && places & place::ANYWHERE == 0 {
                places |= place::ANYWHERE;
            }
            let entry = self.words.entry(word).or_default();
            entry.places |= places;
            entry.flags.extend(flags);
        }
        Ok(())
    }

    /// The flags of a set, which may be an alias' number.
    fn flag_set(&self, text: &str) -> Result<Vec<String>> {
        match &self.aliases {
            Some(aliases) if !text.is_empty() => {
                let digits =
                    text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
                let wrong = || bad_file(format!("invalid affix alias \"{text}\""));
                // A number with something behind it is none.
                if digits == 0 || text[digits..].starts_with(',') {
                    return Err(wrong());
                }
                let number: usize = text[..digits].parse().map_err(|_| wrong())?;
                match number.checked_sub(1) {
                    None => Ok(Vec::new()),
                    Some(at) => self.split_flags(aliases.get(at).ok_or_else(wrong)?),
                }
            }
            _ => self.split_flags(text),
        }
    }

    fn split_flags(&self, text: &str) -> Result<Vec<String>> {
        match self.form {
            FlagForm::Char => {
                Ok(text.chars().filter(|c| !c.is_whitespace()).map(String::from).collect())
            }
            FlagForm::Long => {
                let chars: Vec<char> = text.chars().collect();
                if chars.len() % 2 == 1 {
                    return Err(bad_file(format!(
                        "invalid affix flag \"{text}\" with \"long\" flag value"
                    )));
                }
                Ok(chars.chunks(2).map(|two| two.iter().collect()).collect())
            }
            FlagForm::Number => {
                let parts = text.split(',').map(str::trim).filter(|p| !p.is_empty());
                let number = |part: &str| {
                    let wrong = || bad_file(format!("invalid affix flag \"{part}\""));
                    let number: u64 = part.parse().map_err(|_| wrong())?;
                    if number > u64::from(u16::MAX) {
                        return Err(bad_file(format!("affix flag \"{part}\" is out of range")));
                    }
                    Ok(number.to_string())
                };
                parts.map(number).collect()
            }
        }
    }

    fn places(&self, flags: &[String]) -> u8 {
        let of = |flag: &String| {
            let own = self.compound.iter().filter(|(known, _)| known == flag);
            own.fold(0, |all, (_, place)| all | place)
        };
        flags.iter().fold(0, |all, flag| all | of(flag))
    }

    fn read_affixes(&mut self, text: &str) -> Result<()> {
        let first = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
        const HUNSPELL: [&str; 6] =
            ["FLAG", "SFX", "PFX", "COMPOUNDFLAG", "COMPOUNDMIN", "ONLYINCOMPOUND"];
        if text.lines().any(|line| HUNSPELL.contains(&first(line).as_str())) {
            self.read_hunspell(text)
        } else {
            self.read_ispell(text)
        }
    }

    fn read_ispell(&mut self, text: &str) -> Result<()> {
        let mut is_suffix = None;
        let (mut flag, mut crosses, mut places) = (String::new(), false, 0);
        for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
            let folded = lower(line);
            if folded.starts_with("compoundwords") {
                let last = line.split_whitespace().nth(2).and_then(|w| w.chars().next());
                let last = last.map(|flag| (flag.to_string(), place::ANYWHERE));
                self.compound.extend(last);
            } else if folded.starts_with("suffixes") {
                is_suffix = Some(true);
            } else if folded.starts_with("prefixes") {
                is_suffix = Some(false);
            } else if folded.starts_with("flag") {
                let mut rest = line["flag".len()..].trim_start().chars().peekable();
                (crosses, places) = (false, 0);
                while let Some(sign) = rest.next_if(|c| matches!(c, '*' | '~')) {
                    match sign {
                        '*' => crosses = true,
                        _ => places = place::ONLY_COMPOUND,
                    }
                }
                rest.next_if_eq(&'\\');
                flag = rest.next().map(String::from).unwrap_or_default();
            } else if let (Some(is_suffix), false) = (is_suffix, flag.is_empty()) {
                let Some((mask, change)) = folded.split_once('>') else { continue };
                let change = change.split('#').next().unwrap_or_default();
                let change: String = change.chars().filter(|c| !c.is_whitespace()).collect();
                let (removed, added) = match change.strip_prefix('-') {
                    Some(both) => both.split_once(',').unwrap_or((both, "")),
                    None => ("", change.as_str()),
                };
                let added = if added == "-" { "" } else { added };
                let mask: String = mask.chars().filter(|c| !c.is_whitespace()).collect();
                let rule = (flag.clone(), crosses, places, is_suffix);
                self.add(rule, (removed, added, &mask))?;
            }
        }
        Ok(())
    }

    fn read_hunspell(&mut self, text: &str) -> Result<()> {
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let ["FLAG", form, ..] = words[..] else { continue };
            self.form = match form {
                "long" => FlagForm::Long,
                "num" => FlagForm::Number,
                "default" => FlagForm::Char,
                _ => {
                    return Err(bad_file(
                        "Ispell dictionary supports only \"default\", \"long\", and \"num\" flag values"
                            .into(),
                    ));
                }
            };
        }
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [word, flag, ..] = words[..] else { continue };
            let place = match word {
                "COMPOUNDFLAG" => place::ANYWHERE,
                "COMPOUNDBEGIN" => place::FIRST,
                "COMPOUNDMIDDLE" => place::MIDDLE,
                "COMPOUNDLAST" | "COMPOUNDEND" => place::LAST,
                "ONLYINCOMPOUND" => place::ONLY_COMPOUND,
                "COMPOUNDPERMITFLAG" => place::PERMIT,
                "COMPOUNDFORBIDFLAG" => place::FORBID,
                "AF" => {
                    match &mut self.aliases {
                        None => self.aliases = Some(Vec::new()),
                        Some(aliases) => aliases.push(flag.to_owned()),
                    }
                    continue;
                }
                _ => continue,
            };
            self.compound.push((flag.to_owned(), place));
        }
        let mut crosses = false;
        for line in text.lines() {
            sched::check_interrupts()?;
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            let (kind, flag, rest) = match &words[..] {
                [kind @ ("SFX" | "PFX"), flag, rest @ ..] => (*kind, *flag, rest),
                _ => continue,
            };
            let letters = flag.chars().count();
            let fits = match self.form {
                FlagForm::Char => letters == 1,
                FlagForm::Long => letters == 2,
                FlagForm::Number => flag.parse::<u32>().is_ok(),
            };
            if !fits {
                continue;
            }
            match rest {
                [cross, _count] => crosses = cross.eq_ignore_ascii_case("y"),
                [removed, added, mask, ..] => {
                    let (added, flags) = added.split_once('/').unwrap_or((added, ""));
                    let places = self.places(&self.flag_set(flags)?);
                    let part = |text: &str| if text == "0" { String::new() } else { lower(text) };
                    let rule = (flag.to_owned(), crosses, places, kind == "SFX");
                    self.add(rule, (&part(removed), &part(added), &part(mask)))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        (flag, crosses, mut places, is_suffix): (String, bool, u8, bool),
        (removed, added, mask): (&str, &str, &str),
    ) -> Result<()> {
        if places & (place::ONLY_COMPOUND | place::PERMIT) != 0 && places & place::ANYWHERE == 0 {
            places |= place::ANYWHERE;
        }
        let mask = match mask {
            "" | "." => None,
            mask => {
                let whole = if is_suffix { format!("(?:{mask})$") } else { format!("^(?:{mask})") };
                let made = Regex::new(&whole);
                Some(made.map_err(|e| {
                    err!(INVALID_REGULAR_EXPRESSION, "invalid regular expression: {e}")
                })?)
            }
        };
        let (removed, added) = (removed.to_owned(), added.to_owned());
        self.affixes.push(Affix { flag, crosses, places, is_suffix, removed, added, mask });
        Ok(())
    }

    /// The base forms of a word in lower case.
    ///
    /// # Errors
    /// Interrupts.
    pub fn lexize(&self, word: &str) -> Result<Norms> {
        if word.is_empty() {
            return Ok(None);
        }
        let mut out: Vec<Norm> = Vec::new();
        let mut variant = 0_u16;
        for form in self.base_forms(word, 0) {
            variant = variant.saturating_add(1);
            out.push(Norm { word: form.into(), variant, ..Norm::default() });
        }
        if !self.compound.is_empty() {
            let mut search = Split { of: self, word, attempts: 0, found: Vec::new() };
            search.from(0, &mut Vec::new())?;
            for parts in search.found {
                variant = variant.saturating_add(1);
                let norm = |part: String| Norm { word: part.into(), variant, ..Norm::default() };
                out.extend(parts.into_iter().map(norm));
            }
        }
        if out.is_empty() {
            return Ok(None);
        }
        out.retain(|norm| !self.stop.contains(norm.word.as_str()));
        Ok(Some(out))
    }

    /// The base forms of a word, or of a part of a compound at a place (0: a word of its own).
    fn base_forms(&self, word: &str, at: u8) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        if word.len() > LETTERS_MAX {
            return out;
        }
        let mut add = |form: String| {
            if out.len() < ANSWERS_MAX && out.last() != Some(&form) {
                out.push(form);
            }
        };
        if self.has(word, None, at) {
            add(word.to_owned());
        }
        for prefix in self.fitting(word, false) {
            if let Some(base) = prefix.taken_off(word, at, None)
                && self.has(&base, Some(&prefix.flag), at)
            {
                add(base);
            }
        }
        for suffix in self.fitting(word, true) {
            let Some(base) = suffix.taken_off(word, at, None) else { continue };
            if self.has(&base, Some(&suffix.flag), at) {
                add(base.clone());
            }
            let common = word.len() - suffix.added.len();
            for prefix in self.fitting(&base, false) {
                let Some(inner) = prefix.taken_off(&base, at, Some(common)) else { continue };
                let crossed = prefix.crosses && suffix.crosses;
                let wanted = if crossed { None } else { Some(prefix.flag.as_str()) };
                if self.has(&inner, wanted, at) {
                    add(inner);
                }
            }
        }
        out
    }

    /// Affixes that stand at a word's beginning or end, the shortest first.
    fn fitting<'a>(
        &'a self,
        word: &'a str,
        is_suffix: bool,
    ) -> impl Iterator<Item = &'a Affix> + 'a {
        let by_added = &self.by_added[usize::from(is_suffix)];
        let ends = word.char_indices().map(|(at, _)| at).chain([word.len()]);
        let mut lengths: Vec<usize> = ends.collect();
        if is_suffix {
            lengths.iter_mut().for_each(|at| *at = word.len() - *at);
            lengths.reverse();
        }
        let added = move |len: usize| match is_suffix {
            true => &word[word.len() - len..],
            false => &word[..len],
        };
        lengths
            .into_iter()
            .filter_map(move |len| by_added.get(added(len)))
            .flatten()
            .map(|n| &self.affixes[*n])
    }

    /// Whether there is a word that takes a flag (None: any word) and may stand at a place.
    fn has(&self, word: &str, flag: Option<&str>, at: u8) -> bool {
        let Some(entry) = self.words.get(word) else { return false };
        let stands = match at {
            0 => entry.places & place::ONLY_COMPOUND == 0,
            at => entry.places & at != 0,
        };
        stands && flag.is_none_or(|flag| entry.flags.contains(flag))
    }
}

impl Affix {
    /// The word with what was before this affix; None: it can't have been made by it. `common`: how many bytes the
    /// form shares with the base form, when a suffix is off already.
    fn taken_off(&self, word: &str, at: u8, common: Option<usize>) -> Option<String> {
        let has = |place: u8| self.places & place != 0;
        let stands = match at {
            0 => !has(place::ONLY_COMPOUND),
            place::FIRST => !has(place::FORBID) && (has(place::FIRST) || !self.is_suffix),
            place::MIDDLE => has(place::MIDDLE) && !has(place::FORBID),
            _ => !has(place::FORBID) && (has(place::LAST) || self.is_suffix),
        };
        if !stands {
            return None;
        }
        let base = if self.is_suffix {
            format!("{}{}", &word[..word.len() - self.added.len()], self.removed)
        } else {
            if common.is_some_and(|common| common + self.removed.len() <= self.added.len()) {
                return None;
            }
            format!("{}{}", self.removed, &word[self.added.len()..])
        };
        self.mask.as_ref().is_none_or(|mask| mask.is_match(&base)).then_some(base)
    }
}

/// A search for the parts of a compound.
struct Split<'a> {
    of: &'a Ispell,
    word: &'a str,
    attempts: usize,
    found: Vec<Vec<String>>,
}

impl Split<'_> {
    /// Takes the rest of the word apart, the shortest parts first.
    fn from(&mut self, start: usize, parts: &mut Vec<String>) -> Result<()> {
        sched::check_interrupts()?;
        let rest = &self.word[start..];
        let at = if start == 0 { place::FIRST } else { place::MIDDLE };
        for (end, _) in rest.char_indices().skip(1) {
            self.attempts += 1;
            if self.attempts > ATTEMPTS_MAX || self.found.len() > ANSWERS_MAX {
                return Ok(());
            }
            let part = &rest[..end];
            let stems = match self.of.has(part, None, at) {
                true => vec![part.to_owned()],
                false => self.with_affix(part, at),
            };
            if stems.is_empty() {
                continue;
            }
            let before = parts.len();
            parts.extend(stems);
            self.from(start + end, parts)?;
            parts.truncate(before);
        }
        if start > 0 {
            for form in self.of.base_forms(rest, place::LAST) {
                self.found.push(parts.iter().cloned().chain([form]).collect());
            }
        }
        Ok(())
    }

    /// Base forms of a part that ends with an affix which may stand inside of compounds.
    fn with_affix(&self, part: &str, at: u8) -> Vec<String> {
        let inside = |a: &Affix| !a.added.is_empty() && a.places & place::ANYWHERE != 0;
        match self.of.fitting(part, true).any(inside) {
            true => self.of.base_forms(part, at),
            false => Vec::new(),
        }
    }
}
