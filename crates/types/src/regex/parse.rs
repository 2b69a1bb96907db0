//! Patterns as trees: PostgreSQL's advanced regular expressions (manual, chapter 9.7.3), with the
//! basic and extended ones rewritten as such.

use std::iter::Peekable;
use std::str::Chars;

use base::{Error, Result, err};

/// Nested groups, at most.
const DEPTH_MAX: u32 = 200;
/// Repetitions that a bound may ask for, at most (`DUPMAX`).
const BOUND_MAX: u32 = 255;

/// How a pattern is to be read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Flags {
    /// All matches, not only the first.
    pub global: bool,
    /// `i`.
    pub ignore_case: bool,
    /// `n`, `p`: neither `.` nor `[^…]` matches a line break.
    pub dot_stops: bool,
    /// `n`, `w`: `^` and `$` match at lines.
    pub anchors_at_lines: bool,
    /// `x`: blanks and comments are left out.
    pub expanded: bool,
    /// `q`: all of it is literal.
    pub literal: bool,
    /// `b`: a basic regular expression. So is what a function's option `e` asks for (PostgreSQL 15 reads it
    /// so; as an embedded option it changes nothing).
    pub basic: bool,
}

impl Flags {
    /// Sets what a letter asks for; false when it is none of them.
    pub fn set(&mut self, letter: char) -> bool {
        let mut lines = |dots, anchors| {
            self.dot_stops = dots;
            self.anchors_at_lines = anchors;
        };
        match letter {
            'i' => self.ignore_case = true,
            'c' => self.ignore_case = false,
            'n' | 'm' => lines(true, true),
            'p' => lines(true, false),
            'w' => lines(false, true),
            's' => lines(false, false),
            'x' => self.expanded = true,
            't' => self.expanded = false,
            'q' => (self.literal, self.basic) = (true, false),
            'b' | 'e' => (self.literal, self.basic) = (false, true),
            _ => return false,
        }
        true
    }
}

/// A set of letters by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    Alpha,
    Digit,
    Alnum,
    Upper,
    Lower,
    Space,
    Blank,
    Word,
    Punct,
    Cntrl,
    Graph,
    Print,
    Xdigit,
    Ascii,
}

impl Class {
    fn named(name: &str) -> Option<Class> {
        Some(match name {
            "alpha" => Class::Alpha,
            "digit" => Class::Digit,
            "alnum" => Class::Alnum,
            "upper" => Class::Upper,
            "lower" => Class::Lower,
            "space" => Class::Space,
            "blank" => Class::Blank,
            "word" => Class::Word,
            "punct" => Class::Punct,
            "cntrl" => Class::Cntrl,
            "graph" => Class::Graph,
            "print" => Class::Print,
            "xdigit" => Class::Xdigit,
            "ascii" => Class::Ascii,
            _ => return None,
        })
    }
}

/// A part of a bracket expression.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Item {
    /// From one letter to another.
    Range(char, char),
    /// A class, or (true) all that is not in it.
    Class(Class, bool),
}

/// One letter out of these, or (`negated`) none of these.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Set {
    pub negated: bool,
    pub items: Vec<Item>,
}

/// A condition at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Assert {
    TextStart,
    TextEnd,
    LineStart,
    LineEnd,
    WordStart,
    WordEnd,
    WordEdge,
    NotWordEdge,
}

/// A part of a pattern.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Node {
    Empty,
    Char(char),
    Set(Set),
    Assert(Assert),
    /// In parentheses; its number if it captures.
    Group(Box<Node>, Option<usize>),
    Concat(Vec<Node>),
    Alternatives(Vec<Node>),
    Repeat {
        node: Box<Node>,
        min: u32,
        max: Option<u32>,
        greedy: bool,
        /// Written `{m}`: it prefers what its atom prefers.
        fixed: bool,
    },
    /// The text that a group captured.
    Back(usize),
    /// Look-ahead or (`behind`) look-behind.
    Look {
        node: Box<Node>,
        behind: bool,
        negated: bool,
    },
}

/// A pattern that was read.
pub(super) struct Parsed {
    pub node: Node,
    /// Groups that capture.
    pub groups: usize,
    pub flags: Flags,
}

/// `2201B`.
#[cold]
pub(super) fn invalid(what: &str) -> Error {
    err!(INVALID_REGULAR_EXPRESSION, "invalid regular expression: {what}")
}

/// Reads a pattern.
///
/// # Errors
/// `2201B`.
pub(super) fn parse(pattern: &str, flags: Flags) -> Result<Parsed> {
    let mut flags = flags;
    let mut body = pattern;
    if let Some(rest) = body.strip_prefix("***=") {
        flags.set('q');
        body = rest;
    } else if let Some(rest) = body.strip_prefix("***:") {
        (flags.literal, flags.basic) = (false, false);
        body = rest;
    } else if body.starts_with("***") {
        return Err(invalid("quantifier operand invalid"));
    }
    if !(flags.literal || flags.basic)
        && let Some(rest) = options(body)
    {
        let (letters, rest) = rest;
        for letter in letters.chars() {
            if letter != 'e' && !flags.set(letter) {
                return Err(invalid("invalid embedded option"));
            }
        }
        body = rest;
    }
    if flags.literal {
        let node = Node::Concat(body.chars().map(Node::Char).collect());
        return Ok(Parsed { node, groups: 0, flags });
    }
    let rewritten = if flags.basic { from_basic(body)? } else { String::new() };
    let source = if flags.basic { &rewritten } else { body };
    let mut parser = Parser {
        chars: source.chars().peekable(),
        flags,
        opened: 0,
        closed: Vec::new(),
        depth: 0,
        looking: 0,
    };
    let node = parser.alternatives()?;
    match parser.chars.next() {
        None => Ok(Parsed { node, groups: parser.opened, flags }),
        Some(_) => Err(invalid("parentheses () not balanced")),
    }
}

/// The letters of `(?imx)` at the beginning, and what follows.
fn options(body: &str) -> Option<(&str, &str)> {
    let (letters, rest) = body.strip_prefix("(?")?.split_once(')')?;
    let plain = !letters.is_empty() && letters.chars().all(|c| c.is_ascii_alphabetic());
    plain.then_some((letters, rest))
}

/// A basic regular expression as an advanced one.
fn from_basic(body: &str) -> Result<String> {
    let mut out = String::with_capacity(body.len() + 8);
    let mut chars = body.chars().peekable();
    let mut first = true;
    while let Some(c) = chars.next() {
        let mut begins = false;
        match c {
            '\\' => match chars.next() {
                None => return Err(invalid("invalid escape \\ sequence")),
                Some(c @ ('(' | ')' | '{' | '}')) => {
                    out.push(c);
                    begins = c == '(';
                }
                Some('<') => out.push_str("\\m"),
                Some('>') => out.push_str("\\M"),
                Some(c) if c.is_alphabetic() => out.push(c),
                Some(c) => out.extend(['\\', c]),
            },
            '[' => bracket_as_is(&mut chars, &mut out),
            '*' if first => out.push_str("\\*"),
            '^' if !first => out.push_str("\\^"),
            '^' => {
                out.push('^');
                begins = true;
            }
            '$' if chars.peek().is_some() && !ends_group(&chars) => out.push_str("\\$"),
            '(' | ')' | '{' | '}' | '+' | '?' | '|' => out.extend(['\\', c]),
            c => out.push(c),
        }
        first = begins;
    }
    Ok(out)
}

fn ends_group(rest: &Peekable<Chars<'_>>) -> bool {
    let mut ahead = rest.clone();
    ahead.next() == Some('\\') && ahead.next() == Some(')')
}

/// A bracket expression where a backslash is an ordinary letter.
fn bracket_as_is(chars: &mut Peekable<Chars<'_>>, out: &mut String) {
    out.push('[');
    let mut first = true;
    if let Some(c) = chars.next_if_eq(&'^') {
        out.push(c);
    }
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.push_str("\\\\"),
            c => out.push(c),
        }
        if c == '['
            && let Some(kind) = chars.next_if(|c| matches!(c, ':' | '.' | '='))
        {
            out.push(kind);
            while let Some(c) = chars.next() {
                out.push(c);
                if c == kind
                    && let Some(end) = chars.next_if_eq(&']')
                {
                    out.push(end);
                    break;
                }
            }
        } else if c == ']' && !first {
            return;
        }
        first = false;
    }
}

/// A quantifier.
struct Bound {
    min: u32,
    max: Option<u32>,
    /// Written `{m}`.
    fixed: bool,
}

struct Parser<'a> {
    chars: Peekable<Chars<'a>>,
    flags: Flags,
    /// Groups begun that capture.
    opened: usize,
    /// Those that are complete.
    closed: Vec<usize>,
    depth: u32,
    /// Above 0 inside look-around.
    looking: u32,
}

impl Parser<'_> {
    fn alternatives(&mut self) -> Result<Node> {
        let mut all = vec![self.branch()?];
        while self.chars.next_if_eq(&'|').is_some() {
            all.push(self.branch()?);
        }
        Ok(if all.len() == 1 { all.swap_remove(0) } else { Node::Alternatives(all) })
    }

    fn branch(&mut self) -> Result<Node> {
        let mut parts = Vec::new();
        loop {
            self.skip_blanks()?;
            match self.chars.peek() {
                None | Some('|' | ')') => break,
                _ => parts.push(self.piece()?),
            }
        }
        Ok(match parts.len() {
            0 => Node::Empty,
            1 => parts.swap_remove(0),
            _ => Node::Concat(parts),
        })
    }

    /// Comments, and in the expanded form blanks.
    fn skip_blanks(&mut self) -> Result<()> {
        loop {
            if self.flags.expanded {
                if self.chars.next_if(|c| c.is_whitespace()).is_some() {
                    continue;
                }
                if self.chars.next_if_eq(&'#').is_some() {
                    while self.chars.next_if(|c| *c != '\n').is_some() {}
                    continue;
                }
            }
            let mut ahead = self.chars.clone();
            if !"(?#".chars().all(|c| ahead.next() == Some(c)) {
                return Ok(());
            }
            while self.chars.next_if(|c| *c != ')').is_some() {}
            self.chars.next();
        }
    }

    fn piece(&mut self) -> Result<Node> {
        let atom = self.atom()?;
        self.skip_blanks()?;
        let Some(Bound { min, max, fixed }) = self.bound()? else { return Ok(atom) };
        if matches!(atom, Node::Assert(_) | Node::Look { .. }) {
            return Err(invalid("quantifier operand invalid"));
        }
        let greedy = self.flags.basic || self.chars.next_if_eq(&'?').is_none();
        self.skip_blanks()?;
        if self.bound()?.is_some() {
            return Err(invalid("quantifier operand invalid"));
        }
        Ok(Node::Repeat { node: Box::new(atom), min, max, greedy, fixed })
    }

    /// A quantifier, if there is one.
    fn bound(&mut self) -> Result<Option<Bound>> {
        let (min, max) = match self.chars.peek().copied() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') if self.is_bound() => return self.braces().map(Some),
            _ => return Ok(None),
        };
        self.chars.next();
        Ok(Some(Bound { min, max, fixed: false }))
    }

    /// Whether a `{` begins a bound: a digit follows.
    fn is_bound(&self) -> bool {
        let mut ahead = self.chars.clone();
        ahead.next();
        ahead.next().is_some_and(|c| c.is_ascii_digit())
    }

    fn braces(&mut self) -> Result<Bound> {
        self.chars.next();
        let min = self.count()?.unwrap_or(0);
        let fixed = self.chars.next_if_eq(&',').is_none();
        let max = if fixed { Some(min) } else { self.count()? };
        if self.chars.next() != Some('}') {
            return Err(invalid("braces {} not balanced"));
        }
        if max.is_some_and(|max| max < min) {
            return Err(invalid("invalid repetition count(s)"));
        }
        Ok(Bound { min, max, fixed })
    }

    fn count(&mut self) -> Result<Option<u32>> {
        let mut count = None;
        while let Some(c) = self.chars.next_if(char::is_ascii_digit) {
            let next = count.unwrap_or(0) * 10 + c.to_digit(10).unwrap_or(0);
            if next > BOUND_MAX {
                return Err(invalid("invalid repetition count(s)"));
            }
            count = Some(next);
        }
        Ok(count)
    }

    fn atom(&mut self) -> Result<Node> {
        let lines = self.flags.anchors_at_lines;
        Ok(match self.chars.next() {
            None => Node::Empty,
            Some('(') => self.group()?,
            Some('[') => self.bracket()?,
            Some('\\') => self.escape()?,
            Some('.') => Node::Set(self.none_of(Vec::new())),
            Some('^') => Node::Assert(if lines { Assert::LineStart } else { Assert::TextStart }),
            Some('$') => Node::Assert(if lines { Assert::LineEnd } else { Assert::TextEnd }),
            Some('*' | '+' | '?') => return Err(invalid("quantifier operand invalid")),
            Some('{') if self.chars.peek().is_some_and(char::is_ascii_digit) => {
                return Err(invalid("quantifier operand invalid"));
            }
            Some(c) => Node::Char(c),
        })
    }

    fn none_of(&self, mut items: Vec<Item>) -> Set {
        if self.flags.dot_stops {
            items.push(Item::Range('\n', '\n'));
        }
        Set { negated: true, items }
    }

    fn group(&mut self) -> Result<Node> {
        let mut number = None;
        let mut look = None;
        if self.chars.next_if_eq(&'?').is_some() {
            let behind = self.chars.next_if_eq(&'<').is_some();
            match self.chars.next() {
                Some(':') if !behind => {}
                Some('=') => look = Some((behind, false)),
                Some('!') => look = Some((behind, true)),
                _ => return Err(invalid("quantifier operand invalid")),
            }
        } else if self.looking == 0 {
            self.opened += 1;
            number = Some(self.opened);
        }
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(invalid("regular expression is too complex"));
        }
        self.looking += u32::from(look.is_some());
        let inner = self.alternatives()?;
        self.looking -= u32::from(look.is_some());
        self.depth -= 1;
        if self.chars.next() != Some(')') {
            return Err(invalid("parentheses () not balanced"));
        }
        self.closed.extend(number);
        let node = Box::new(inner);
        Ok(match look {
            Some((behind, negated)) => Node::Look { node, behind, negated },
            None => Node::Group(node, number),
        })
    }

    fn escape(&mut self) -> Result<Node> {
        let class = |class, negated| {
            Node::Set(Set { negated: false, items: vec![Item::Class(class, negated)] })
        };
        let Some(c) = self.chars.peek().copied() else {
            return Err(invalid("invalid escape \\ sequence"));
        };
        let node = match c {
            'd' => class(Class::Digit, false),
            'D' => class(Class::Digit, true),
            's' => class(Class::Space, false),
            'S' => class(Class::Space, true),
            'w' => class(Class::Word, false),
            'W' => class(Class::Word, true),
            'A' => Node::Assert(Assert::TextStart),
            'Z' => Node::Assert(Assert::TextEnd),
            'm' => Node::Assert(Assert::WordStart),
            'M' => Node::Assert(Assert::WordEnd),
            'y' => Node::Assert(Assert::WordEdge),
            'Y' => Node::Assert(Assert::NotWordEdge),
            '1'..='9' => return self.back(),
            _ => return self.escaped().map(Node::Char),
        };
        self.chars.next();
        Ok(node)
    }

    /// `\1`: a back reference, or from two digits on, where there is no such group, a letter in octal.
    fn back(&mut self) -> Result<Node> {
        let mut ahead = self.chars.clone();
        let digits: String =
            std::iter::from_fn(|| ahead.next_if(char::is_ascii_digit)).take(3).collect();
        let known = |text: &str| text.parse().ok().filter(|n| self.closed.contains(n));
        let longest = (1..=digits.len()).rev().find(|n| *n == 1 || known(&digits[..*n]).is_some());
        let length = longest.unwrap_or(1);
        if length == 1 && digits.len() > 1 && digits.bytes().take(2).all(|b| b < b'8') {
            return self.octal().map(Node::Char);
        }
        let Some(number) = known(&digits[..length]) else {
            return Err(invalid("invalid backreference number"));
        };
        if self.looking > 0 {
            return Err(invalid("invalid backreference number"));
        }
        self.chars.nth(length - 1);
        Ok(Node::Back(number))
    }

    fn octal(&mut self) -> Result<char> {
        let mut value = 0;
        for _ in 0..3 {
            let Some(c) = self.chars.next_if(|c| matches!(c, '0'..='7')) else { break };
            value = value * 8 + c.to_digit(8).unwrap_or(0);
        }
        char::from_u32(value).ok_or_else(|| invalid("invalid escape \\ sequence"))
    }

    /// The letter that stands behind a backslash.
    fn escaped(&mut self) -> Result<char> {
        let bad = || invalid("invalid escape \\ sequence");
        if self.chars.peek() == Some(&'0') {
            return self.octal();
        }
        Ok(match self.chars.next().ok_or_else(bad)? {
            'a' => '\x07',
            'b' => '\x08',
            'B' => '\\',
            'c' => {
                let c = self.chars.next().ok_or_else(bad)?;
                char::from(c as u8 & 31)
            }
            'e' => '\x1b',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            'u' => self.hex(4, 4)?,
            'U' => self.hex(8, 8)?,
            'x' => self.hex(1, 255)?,
            c if c.is_ascii_alphanumeric() => return Err(bad()),
            c => c,
        })
    }

    fn hex(&mut self, least: usize, most: usize) -> Result<char> {
        let (mut value, mut count) = (0u32, 0);
        while count < most
            && let Some(c) = self.chars.next_if(char::is_ascii_hexdigit)
        {
            value = value.saturating_mul(16).saturating_add(c.to_digit(16).unwrap_or(0));
            count += 1;
        }
        let good = if count < least { None } else { char::from_u32(value) };
        good.ok_or_else(|| invalid("invalid escape \\ sequence"))
    }

    fn bracket(&mut self) -> Result<Node> {
        let ahead: String = self.chars.clone().take(6).collect();
        for (text, assert) in [("[:<:]]", Assert::WordStart), ("[:>:]]", Assert::WordEnd)] {
            if ahead == text {
                self.chars.nth(5);
                return Ok(Node::Assert(assert));
            }
        }
        let negated = self.chars.next_if_eq(&'^').is_some();
        let mut items = Vec::new();
        let mut first = true;
        while first || self.chars.next_if_eq(&']').is_none() {
            let item = self.bracket_item()?;
            first = false;
            let Item::Range(low, _) = item else {
                items.push(item);
                continue;
            };
            let mut ahead = self.chars.clone();
            let range = ahead.next() == Some('-') && ahead.next().is_some_and(|c| c != ']');
            if !range {
                items.push(item);
                continue;
            }
            self.chars.next();
            match self.bracket_item()? {
                Item::Range(high, _) if low <= high => items.push(Item::Range(low, high)),
                _ => return Err(invalid("invalid character range")),
            }
        }
        Ok(Node::Set(if negated { self.none_of(items) } else { Set { negated, items } }))
    }

    fn bracket_item(&mut self) -> Result<Item> {
        let unbalanced = || invalid("brackets [] not balanced");
        let c = self.chars.next().ok_or_else(unbalanced)?;
        let one = |c| Item::Range(c, c);
        if c == '['
            && let Some(kind) = self.chars.next_if(|c| matches!(c, ':' | '.' | '='))
        {
            let mut name = String::new();
            loop {
                match self.chars.next() {
                    None => return Err(unbalanced()),
                    Some(c) if c == kind && self.chars.next_if_eq(&']').is_some() => break,
                    Some(c) => name.push(c),
                }
            }
            let mut letters = name.chars();
            return match (kind, letters.next(), letters.next()) {
                (':', ..) => Class::named(&name)
                    .map(|class| Item::Class(class, false))
                    .ok_or_else(|| invalid("invalid character class")),
                (_, Some(c), None) => Ok(one(c)),
                _ => Err(invalid("invalid collating element")),
            };
        }
        if c != '\\' {
            return Ok(one(c));
        }
        let class = match self.chars.peek() {
            Some('d') => Item::Class(Class::Digit, false),
            Some('s') => Item::Class(Class::Space, false),
            Some('w') => Item::Class(Class::Word, false),
            Some('D') => Item::Class(Class::Digit, true),
            Some('S') => Item::Class(Class::Space, true),
            Some('W') => Item::Class(Class::Word, true),
            Some('1'..='7') => return self.octal().map(one),
            _ => return self.escaped().map(one),
        };
        self.chars.next();
        Ok(class)
    }
}
