//! Patterns of paths: `Top.*{0,2}.!sci@|math%*`.

use std::any::Any;

use base::{Oid, Result, err};
use types::open::{OpenType, OpenValue};
use types::{Datum, FormatContext};

use super::{Ltree, is_letter, received, syntax, unexpected_end};

/// How a word compares with a label.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Flags {
    /// `@`: whatever the case.
    any_case: bool,
    /// `*`: with its beginning.
    beginning: bool,
    /// `%`: with words of it, which underscores part.
    words: bool,
}

impl Flags {
    /// Notes a sign; false: it is none.
    pub(super) fn note(&mut self, sign: char) -> bool {
        match sign {
            '@' => self.any_case = true,
            '*' => self.beginning = true,
            '%' => self.words = true,
            _ => return false,
        }
        true
    }

    /// The signs, in the order in which they are written.
    pub(super) fn text(self) -> String {
        let signs = [(self.words, '%'), (self.any_case, '@'), (self.beginning, '*')];
        signs.iter().filter(|(is, _)| *is).map(|(_, sign)| *sign).collect()
    }

    fn is_plain(self) -> bool {
        self == Flags::default()
    }

    /// Whether a word fits a label.
    pub(super) fn fit(self, word: &str, label: &str) -> bool {
        if !self.any_case {
            return self.fit_as_is(word, label);
        }
        self.fit_as_is(&word.to_lowercase(), &label.to_lowercase())
    }

    fn fit_as_is(self, word: &str, label: &str) -> bool {
        let one = |word: &str, label: &str| match self.beginning {
            true => label.starts_with(word),
            false => label == word,
        };
        if !self.words {
            return one(word, label);
        }
        let parts = |text: &'_ str| -> Vec<String> {
            text.split('_').filter(|p| !p.is_empty()).map(str::to_owned).collect()
        };
        let own = parts(label);
        parts(word).iter().all(|word| own.iter().any(|label| one(word, label)))
    }
}

/// A piece between dots.
#[derive(Clone, Debug)]
struct Level {
    not: bool,
    /// Words, any of which will do; none: any label.
    words: Vec<(String, Flags)>,
    least: u16,
    most: u16,
    /// A number of labels was written.
    counted: bool,
}

impl Level {
    fn fits(&self, label: &str) -> bool {
        let fits = self.words.is_empty() || self.words.iter().any(|(w, flags)| flags.fit(w, label));
        fits != self.not
    }

    fn text(&self) -> String {
        let words: Vec<String> =
            self.words.iter().map(|(word, flags)| format!("{word}{}", flags.text())).collect();
        let any = self.words.is_empty();
        let name = if any { "*".to_owned() } else { words.join("|") };
        let count = match (self.least, self.most) {
            (0, u16::MAX) if any => String::new(),
            _ if !any && !self.counted => String::new(),
            (least, most) if least == most => format!("{{{least}}}"),
            (0, u16::MAX) => "{,}".to_owned(),
            (0, most) => format!("{{,{most}}}"),
            (least, u16::MAX) => format!("{{{least},}}"),
            (least, most) => format!("{{{least},{most}}}"),
        };
        format!("{}{name}{count}", if self.not { "!" } else { "" })
    }
}

/// A pattern.
#[derive(Debug)]
pub(super) struct LQuery {
    ty: Oid,
    levels: Vec<Level>,
}

impl LQuery {
    pub(super) fn text(&self) -> String {
        self.levels.iter().map(Level::text).collect::<Vec<_>>().join(".")
    }

    /// Whether a path fits: after each level, which numbers of labels can be behind it.
    ///
    /// # Errors
    /// An interrupt: the steps are levels times labels.
    pub(super) fn matches(&self, path: &Ltree) -> Result<bool> {
        let count = path.labels.len();
        let mut reached = vec![false; count + 1];
        reached[0] = true;
        for level in &self.levels {
            sched::check_interrupts_now()?;
            let (least, most) = (usize::from(level.least), usize::from(level.most));
            let mut next = vec![false; count + 1];
            // The last place reached that lies at least `least` labels back, and where the labels that fit begin.
            let (mut last, mut fits_from) = (None, 0);
            for at in 0..=count {
                if at > 0 && !level.fits(&path.labels[at - 1]) {
                    fits_from = at;
                }
                if at >= least && reached[at - least] {
                    last = Some(at - least);
                }
                next[at] = last.is_some_and(|from| from >= fits_from && at - from <= most);
            }
            reached = next;
        }
        Ok(reached[count])
    }

    /// The labels that every path which fits begins with.
    pub(super) fn beginning(&self) -> Vec<Box<str>> {
        let plain = |level: &&Level| {
            let one = (level.least, level.most) == (1, 1) && !level.not;
            one && level.words.len() == 1 && level.words[0].1.is_plain()
        };
        self.levels.iter().take_while(plain).map(|l| l.words[0].0.as_str().into()).collect()
    }
}

impl OpenValue for LQuery {
    fn ty(&self) -> Oid {
        self.ty
    }

    fn write(&self, _cx: &FormatContext, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(self.text().as_bytes());
        Ok(())
    }

    fn send(&self, out: &mut Vec<u8>) -> Result<()> {
        out.push(1);
        out.extend_from_slice(self.text().as_bytes());
        Ok(())
    }

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.text().as_bytes());
    }

    fn heap_bytes(&self) -> usize {
        size_of::<LQuery>() + self.levels.iter().map(|l| 64 + 48 * l.words.len()).sum::<usize>()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

pub(super) struct LQueryType;

impl OpenType for LQueryType {
    fn input(&self, ty: Oid, _typmod: i32, text: &str, _cx: &FormatContext) -> Result<Datum> {
        Ok(Datum::open(LQuery { ty, levels: Parser::new(text).levels()? }))
    }

    fn receive(&self, ty: Oid, _typmod: i32, bytes: &[u8], cx: &FormatContext) -> Result<Datum> {
        self.input(ty, -1, received("lquery", bytes)?, cx)
    }

    fn load(&self, ty: Oid, bytes: &[u8]) -> Option<Datum> {
        let levels = Parser::new(std::str::from_utf8(bytes).ok()?).levels().ok()?;
        Some(Datum::open(LQuery { ty, levels }))
    }
}

struct Parser {
    chars: Vec<char>,
    at: usize,
}

impl Parser {
    fn new(text: &str) -> Parser {
        Parser { chars: text.chars().collect(), at: 0 }
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn take(&mut self, wanted: char) -> bool {
        let is = self.peek() == Some(wanted);
        self.at += usize::from(is);
        is
    }

    fn wrong(&self) -> base::Error {
        match self.peek() {
            None => unexpected_end("lquery"),
            Some(_) => syntax("lquery", self.at + 1),
        }
    }

    fn levels(&mut self) -> Result<Vec<Level>> {
        let mut out = Vec::new();
        loop {
            out.push(self.level()?);
            if self.peek().is_none() {
                return Ok(out);
            }
            if !self.take('.') {
                return Err(self.wrong());
            }
        }
    }

    fn level(&mut self) -> Result<Level> {
        if self.take('*') {
            let (least, most) = self.count()?.unwrap_or((0, u16::MAX));
            return Ok(Level { not: false, words: Vec::new(), least, most, counted: true });
        }
        let not = self.take('!');
        let mut words = Vec::new();
        loop {
            let start = self.at;
            while self.peek().is_some_and(is_letter) {
                self.at += 1;
            }
            if self.at == start {
                return Err(match (self.peek(), not && words.is_empty()) {
                    (None, true) => {
                        syntax("lquery", self.at + 1).detail("Empty labels are not allowed.")
                    }
                    _ => self.wrong(),
                });
            }
            let word: String = self.chars[start..self.at].iter().collect();
            let letters = self.at - start;
            if letters > super::LETTERS_MAX {
                return Err(err!(NAME_TOO_LONG, "label string is too long").detail(format!(
                    "Label length is {letters}, must be at most {}, at character {}.",
                    super::LETTERS_MAX,
                    self.at + 1
                )));
            }
            let mut flags = Flags::default();
            while self.peek().is_some_and(|c| flags.note(c)) {
                self.at += 1;
            }
            words.push((word, flags));
            if !self.take('|') {
                break;
            }
        }
        let count = self.count()?;
        let (least, most) = count.unwrap_or((1, 1));
        Ok(Level { not, words, least, most, counted: count.is_some() })
    }

    fn number(&mut self, word: &str) -> Result<Option<u16>> {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        let text: String = self.chars[start..self.at].iter().collect();
        if text.is_empty() {
            return Ok(None);
        }
        match text.parse::<u64>() {
            Ok(n) if n <= u64::from(u16::MAX) => Ok(Some(n as u16)),
            _ => Err(err!(PROGRAM_LIMIT_EXCEEDED, "lquery syntax error").detail(format!(
                "{word} limit ({text}) exceeds the maximum allowed ({}), at character {}.",
                u16::MAX,
                start + 1
            ))),
        }
    }

    /// Reads how many labels a level is, in braces.
    fn count(&mut self) -> Result<Option<(u16, u16)>> {
        if !self.take('{') {
            return Ok(None);
        }
        let least = self.number("Low")?;
        let (least, most) = if self.take(',') {
            let at = self.at;
            let most = self.number("High")?.unwrap_or(u16::MAX);
            let least = least.unwrap_or(0);
            if least > most {
                return Err(err!(SYNTAX_ERROR, "lquery syntax error").detail(format!(
                    "Low limit ({least}) is greater than high limit ({most}), at character {}.",
                    at + 1
                )));
            }
            (least, most)
        } else {
            match least {
                Some(n) => (n, n),
                None => return Err(self.wrong()),
            }
        };
        if !self.take('}') {
            return Err(self.wrong());
        }
        Ok(Some((least, most)))
    }
}
