//! `ts_headline`: the parts of a document that show a query's lexemes best.
//!
//! A **cover** is a run of tokens that matches the query. Without fragments the headline is one part: the cover
//! with most lexemes of the query in it, made longer or shorter until it has as many words as wanted and ends
//! well. With fragments it is as many parts as wanted: covers, cut to the length of a part, and stretched on
//! both sides.

use base::{Result, err};

use crate::config::Config;
use crate::document::Parsed;
use crate::execute::{self, Document, Occurrence};
use crate::options::{Options, flag};
use crate::parser::{self, Parser};
use crate::query::{Operand, TsQuery};

/// How a headline looks.
struct Style {
    max_words: i64,
    min_words: i64,
    short_word: i64,
    max_fragments: i64,
    all: bool,
    start: String,
    stop: String,
    delimiter: String,
}

impl Style {
    fn read(options: &Options) -> Result<Style> {
        let mut style = Style {
            max_words: 35,
            min_words: 15,
            short_word: 3,
            max_fragments: 0,
            all: false,
            start: "<b>".into(),
            stop: "</b>".into(),
            delimiter: " ... ".into(),
        };
        for (name, value) in options.iter() {
            let number = || types::io::parse_int4(value).map(i64::from);
            match name {
                "maxwords" => style.max_words = number()?,
                "minwords" => style.min_words = number()?,
                "shortword" => style.short_word = number()?,
                "maxfragments" => style.max_fragments = number()?,
                "startsel" => style.start = value.to_owned(),
                "stopsel" => style.stop = value.to_owned(),
                "fragmentdelimiter" => style.delimiter = value.to_owned(),
                "highlightall" => style.all = flag(name, value).unwrap_or(false),
                _ => {
                    return Err(err!(
                        INVALID_PARAMETER_VALUE,
                        "unrecognized headline parameter: \"{name}\""
                    ));
                }
            }
        }
        for (name, value) in [
            ("StartSel", &style.start),
            ("StopSel", &style.stop),
            ("FragmentDelimiter", &style.delimiter),
        ] {
            if value.len() > MAX_MARK_BYTES {
                return Err(err!(INVALID_PARAMETER_VALUE, "value for \"{name}\" is too long"));
            }
        }
        if !style.all {
            let wrong = if style.min_words >= style.max_words {
                Some("MinWords should be less than MaxWords")
            } else if style.min_words <= 0 {
                Some("MinWords should be positive")
            } else if style.short_word < 0 {
                Some("ShortWord should be >= 0")
            } else if style.max_fragments < 0 {
                Some("MaxFragments should be >= 0")
            } else {
                None
            };
            if let Some(wrong) = wrong {
                return Err(err!(INVALID_PARAMETER_VALUE, "{wrong}"));
            }
        }
        Ok(style)
    }
}

/// Bytes of what marks a word or separates fragments, at most.
const MAX_MARK_BYTES: usize = 32_767;

/// A token of the document.
struct Word<'a> {
    kind: i32,
    text: &'a str,
    place: u16,
    /// Numbers of the query's lexemes that it is.
    items: Vec<usize>,
    shown: bool,
}

impl Word<'_> {
    /// Tokens whose parts follow.
    fn is_whole(&self) -> bool {
        matches!(self.kind, parser::URL | parser::NUMHWORD | parser::ASCIIHWORD | parser::HWORD)
    }

    /// Whether it counts as a word.
    fn counts(&self) -> bool {
        !(self.is_whole() || matches!(self.kind, parser::BLANK | parser::TAG))
    }

    fn is_wanted(&self) -> bool {
        !self.items.is_empty()
    }

    /// Whether a headline should not end here.
    fn ends_badly(&self, style: &Style) -> bool {
        let number = matches!(
            self.kind,
            parser::SFLOAT | parser::VERSION | parser::FLOAT | parser::INT | parser::UINT
        );
        let short = self.text.len() as i64 <= style.short_word;
        (!self.counts() || number || short) && !self.is_wanted()
    }
}

/// Part of a document, as a query is matched with it.
struct Part<'a, 'b> {
    operands: &'a [&'a Operand],
    words: &'a [Word<'b>],
}

impl Document for Part<'_, '_> {
    fn find(&self, operand: &Operand) -> Occurrence {
        let Some(number) = self.operands.iter().position(|o| std::ptr::eq(*o, operand)) else {
            return Occurrence::None;
        };
        let here = self.words.iter().filter(|w| w.items.contains(&number));
        let mut places: Vec<u16> = here.map(|w| w.place).collect();
        places.sort_unstable();
        places.dedup();
        if places.is_empty() { Occurrence::None } else { Occurrence::At(places) }
    }
}

/// The headline of a document.
///
/// # Errors
/// Those of dictionaries; `22023` for options.
pub fn headline(
    config: &mut Config,
    text: &str,
    query: &TsQuery,
    options: &Options,
) -> Result<String> {
    let style = Style::read(options)?;
    let operands: Vec<&Operand> = query.operands().collect();
    let mut words = words(config, text, &operands)?;
    let search = Search { query, operands: &operands, style: &style };
    if style.all {
        words.iter_mut().for_each(|w| w.shown = true);
    } else if style.max_fragments > 0 {
        search.fragments(&mut words)?;
    } else {
        let (first, last) = search.best(&words)?;
        show(&mut words, first, last);
    }
    Ok(print(&words, &style))
}

fn words<'a>(config: &mut Config, text: &'a str, operands: &[&Operand]) -> Result<Vec<Word<'a>>> {
    let mut parsed = Parsed::default();
    parsed.add(config, text)?;
    let word = |t: parser::Token<'a>| Word {
        kind: t.kind,
        text: t.text,
        place: 0,
        items: Vec::new(),
        shown: false,
    };
    let mut words: Vec<Word<'a>> = Parser::new(text).map(word).collect();
    for lexeme in &parsed.lexemes {
        sched::check_interrupts()?;
        let word = &mut words[lexeme.tokens.0];
        word.place = lexeme.place.min(usize::from(crate::vector::MAX_PLACE)) as u16;
        for (number, operand) in operands.iter().enumerate() {
            let fits = match operand.prefix {
                true => lexeme.norm.word.starts_with(operand.word.as_str()),
                false => lexeme.norm.word == operand.word,
            };
            if fits && !word.items.contains(&number) {
                word.items.push(number);
            }
        }
    }
    Ok(words)
}

fn show(words: &mut [Word<'_>], first: usize, last: usize) {
    let len = words.len();
    words[first.min(len)..(last + 1).min(len)].iter_mut().for_each(|w| w.shown = true);
}

fn print(words: &[Word<'_>], style: &Style) -> String {
    let mut out = String::new();
    let (mut parts, mut inside) = (0, false);
    for word in words {
        if !word.shown {
            inside = false;
            continue;
        }
        if !inside {
            inside = true;
            if parts > 0 {
                out.push_str(&style.delimiter);
            }
            parts += 1;
        }
        if word.kind == parser::TAG && !style.all {
            out.push(' ');
        } else if !word.is_whole() {
            if word.is_wanted() {
                out.push_str(&style.start);
            }
            out.push_str(word.text);
            if word.is_wanted() {
                out.push_str(&style.stop);
            }
        }
    }
    out
}

/// Words and wanted words of a run.
fn count(words: &[Word<'_>]) -> (i64, i64) {
    words.iter().fold((0, 0), |(n, wanted), w| {
        (n + i64::from(w.counts()), wanted + i64::from(w.is_wanted()))
    })
}

struct Search<'a> {
    query: &'a TsQuery,
    operands: &'a [&'a Operand],
    style: &'a Style,
}

/// A cover that may become a fragment.
struct Fragment {
    first: usize,
    last: usize,
    len: i64,
    wanted: i64,
    used: bool,
}

impl Search<'_> {
    /// The first cover that begins at or behind a token.
    fn cover(&self, words: &[Word<'_>], from: usize) -> Result<Option<(usize, usize)>> {
        let longest = (self.style.max_words * 10).max(100) * self.style.max_fragments.max(1);
        let wanted = |n: &usize| words[*n].is_wanted();
        for first in (from..words.len()).filter(wanted) {
            let end = words.len().min(first.saturating_add(longest.max(0) as usize));
            for last in (first..end).filter(wanted) {
                sched::check_interrupts()?;
                let part = Part { operands: self.operands, words: &words[first..=last] };
                if execute::matches(self.query, &part)? {
                    return Ok(Some((first, last)));
                }
            }
        }
        Ok(None)
    }

    /// The best single part.
    fn best(&self, words: &[Word<'_>]) -> Result<(usize, usize)> {
        let bad = |n: usize| words[n].ends_badly(self.style);
        let mut best: Option<(usize, usize, i64, bool)> = None;
        let mut from = 0;
        while let Some((p, q)) = self.cover(words, from)? {
            from = p + 1;
            let (first, last) = self.fitted(words, p, q);
            let (_, wanted) = count(&words[first..=last]);
            let whole = first <= p && last >= q;
            let better = match best {
                None => true,
                Some((_, best_last, best_wanted, best_whole)) => {
                    whole && !best_whole
                        || whole == best_whole
                            && (wanted > best_wanted
                                || wanted == best_wanted && !bad(last) && bad(best_last))
                }
            };
            if better {
                best = Some((first, last, wanted, whole));
            }
        }
        Ok(match best {
            Some((first, last, ..)) => (first, last),
            None => (0, self.beginning(words)),
        })
    }

    /// Where the first words of a document end.
    fn beginning(&self, words: &[Word<'_>]) -> usize {
        let (mut len, mut last) = (0, 0);
        for (n, word) in words.iter().enumerate() {
            if len >= self.style.min_words {
                break;
            }
            len += i64::from(word.counts());
            last = n;
        }
        last
    }

    /// A cover made as long as a headline should be.
    fn fitted(&self, words: &[Word<'_>], p: usize, q: usize) -> (usize, usize) {
        let (min, max) = (self.style.min_words, self.style.max_words);
        let bad = |n: usize| words[n].ends_badly(self.style);
        let counts = |n: usize| i64::from(words[n].counts());
        let (mut first, mut last, mut len) = (p, p, 0);
        let mut at = p;
        while at <= q && len < max {
            len += counts(at);
            last = at;
            at += 1;
        }
        if len < max {
            // To the right, as far as a good end.
            let mut at = at - 1;
            while at < words.len() && len < max {
                if at != q {
                    len += counts(at);
                }
                last = at;
                if !bad(at) && len >= min {
                    break;
                }
                at += 1;
            }
            if len < min {
                // The text is at its end: to the left.
                let mut at = p;
                first = 0;
                while at > 0 {
                    at -= 1;
                    len += counts(at);
                    if len >= max || !bad(at) && len >= min {
                        first = at;
                        break;
                    }
                }
            }
        } else {
            let mut at = at.min(q);
            while len > min {
                len -= counts(at);
                last = at;
                if !bad(at) || at == 0 {
                    break;
                }
                at -= 1;
            }
        }
        (first, last)
    }

    fn fragments(&self, words: &mut [Word<'_>]) -> Result<()> {
        let mut all = self.candidates(words)?;
        let mut shown = 0;
        while shown < self.style.max_fragments {
            let mut best: Option<usize> = None;
            for (n, f) in all.iter().enumerate().filter(|(_, f)| !f.used && f.wanted > 0) {
                let better = best.is_none_or(|b| {
                    f.wanted > all[b].wanted || f.wanted == all[b].wanted && f.len < all[b].len
                });
                if better {
                    best = Some(n);
                }
            }
            let Some(best) = best else { break };
            let (first, last) = self.stretched(words, &all[best]);
            show(words, first, last);
            all[best].used = true;
            for f in &mut all {
                f.used |= f.first <= last && f.last >= first;
            }
            shown += 1;
        }
        if shown == 0 {
            let last = self.beginning(words);
            show(words, 0, last);
        }
        Ok(())
    }

    /// Covers, cut into pieces that are not too long.
    fn candidates(&self, words: &[Word<'_>]) -> Result<Vec<Fragment>> {
        let mut all = Vec::new();
        let mut from = 0;
        while let Some((p, q)) = self.cover(words, from)? {
            from = p + 1;
            let mut start = p;
            while start <= q {
                let fragment = self.piece(words, start, q);
                start = fragment.last + 1;
                all.push(fragment);
            }
        }
        Ok(all)
    }

    /// The first piece of a cover: from a wanted word on, to one when it had to be cut.
    fn piece(&self, words: &[Word<'_>], start: usize, end: usize) -> Fragment {
        let first = (start..=end).find(|n| words[*n].is_wanted()).unwrap_or(end);
        let (mut len, mut wanted, mut at) = (0, 0, first);
        while at <= end && len < self.style.max_words {
            len += i64::from(words[at].counts());
            wanted += i64::from(words[at].is_wanted());
            at += 1;
        }
        let mut last = end;
        if end > at {
            last = at;
            while last > first && !words[last].is_wanted() {
                len -= i64::from(words[last].counts());
                last -= 1;
            }
        }
        Fragment { first, last, len, wanted, used: false }
    }

    /// A fragment with words on both sides.
    fn stretched(&self, words: &[Word<'_>], f: &Fragment) -> (usize, usize) {
        let max = self.style.max_words;
        let bad = |n: usize| words[n].ends_badly(self.style);
        let counts = |n: usize| i64::from(words[n].counts());
        let (mut first, mut last, mut len) = (f.first, f.last, f.len);
        if len >= max {
            return (first, last);
        }
        let most = (max - len) / 2;
        let mut stretch = 0;
        let mut at = first;
        while at > 0 && stretch < most && !words[at - 1].shown {
            at -= 1;
            len += counts(at);
            stretch += counts(at);
        }
        while at < first && bad(at) {
            len -= counts(at);
            at += 1;
        }
        first = at;
        let mut at = last;
        while at + 1 < words.len() && len < max && !words[at + 1].shown {
            at += 1;
            len += counts(at);
        }
        while at > last && bad(at) {
            at -= 1;
        }
        last = at;
        (first, last)
    }
}
