//! Regular expressions: `~` and kin, `regexp_*`, `substring(… from …)`, `SIMILAR TO`.
//!
//! PostgreSQL's advanced regular expressions are rewritten for the `regex` crate, which runs in
//! linear time. What it has no way to do (back references, look-ahead) is answered with 0A000.
//! Among alternatives the first that matches is taken, not the longest.

use std::cell::RefCell;

use base::{Error, Result, err};
use regex::{Captures, Regex};

use super::text::char_count;
use super::{Body, NamedBody, S};
use crate::datum::{Datum, Text};
use crate::oids;

/// How a pattern is to be read.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Flags {
    global: bool,
    ignore_case: bool,
    /// `n`: a line break ends lines and no dot matches it.
    lines: bool,
    /// `p`: only the dot; `w`: only the anchors.
    dot_stops: bool,
    anchors_at_lines: bool,
    expanded: bool,
    literal: bool,
}

impl Flags {
    fn parse(text: &str, global_allowed: Option<&str>) -> Result<Flags> {
        let mut f = Flags::default();
        for c in text.chars() {
            match c {
                'g' if global_allowed.is_none() => f.global = true,
                'g' => {
                    return Err(err!(
                        INVALID_PARAMETER_VALUE,
                        "{} does not support the \"global\" option",
                        global_allowed.unwrap_or_default()
                    ));
                }
                'i' => f.ignore_case = true,
                'c' => f.ignore_case = false,
                'n' | 'm' => f.lines = true,
                'p' => f.dot_stops = true,
                'w' => f.anchors_at_lines = true,
                's' => f.lines = false,
                'x' => f.expanded = true,
                't' => f.expanded = false,
                'q' => f.literal = true,
                'b' | 'e' => {}
                c => {
                    return Err(err!(
                        INVALID_PARAMETER_VALUE,
                        "invalid regular expression option: \"{c}\""
                    ));
                }
            }
        }
        Ok(f)
    }
}

#[cold]
fn invalid(what: &str) -> Error {
    err!(INVALID_REGULAR_EXPRESSION, "invalid regular expression: {what}")
}

/// Rewrites an ARE in the library's syntax.
struct Rewriter<'a> {
    chars: std::iter::Peekable<std::str::Chars<'a>>,
    out: String,
}

impl Rewriter<'_> {
    fn run(mut self) -> Result<String> {
        while let Some(c) = self.chars.next() {
            match c {
                '\\' => self.escape(false)?,
                '[' => self.bracket()?,
                '(' => self.group()?,
                '{' if !self.chars.peek().is_some_and(char::is_ascii_digit) => {
                    self.out.push_str("\\{");
                }
                '}' if !self.closes_bound() => self.out.push_str("\\}"),
                c => self.out.push(c),
            }
        }
        Ok(self.out)
    }

    /// Whether a `}` ends `{2,3}`.
    fn closes_bound(&self) -> bool {
        let head = self.out.trim_end_matches(|c: char| c.is_ascii_digit() || c == ',');
        head.len() < self.out.len() && head.ends_with('{') && !head.ends_with("\\{")
    }

    fn group(&mut self) -> Result<()> {
        self.out.push('(');
        let mut ahead = self.chars.clone();
        if ahead.next() == Some('?') {
            match ahead.next() {
                Some('=' | '!') => {
                    return Err(Error::unsupported("look-ahead in a regular expression"));
                }
                Some('<') => {
                    return Err(Error::unsupported("look-behind in a regular expression"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn escape(&mut self, in_bracket: bool) -> Result<()> {
        let Some(c) = self.chars.next() else { return Err(invalid("invalid escape \\ sequence")) };
        match c {
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => {
                self.out.push('\\');
                self.out.push(c);
            }
            'm' if !in_bracket => self.out.push_str("\\b{start}"),
            'M' if !in_bracket => self.out.push_str("\\b{end}"),
            'y' if !in_bracket => self.out.push_str("\\b"),
            'Y' if !in_bracket => self.out.push_str("\\B"),
            'A' if !in_bracket => self.out.push_str("\\A"),
            'Z' if !in_bracket => self.out.push_str("\\z"),
            '1'..='9' if !in_bracket => {
                return Err(Error::unsupported("a back reference in a regular expression"));
            }
            'a' => self.out.push_str("\\x07"),
            'b' => self.out.push_str("\\x08"),
            'B' => self.out.push_str("\\\\"),
            'e' => self.out.push_str("\\x1b"),
            'f' | 'n' | 'r' | 't' | 'v' => {
                self.out.push('\\');
                self.out.push(c);
            }
            '0' => self.out.push_str("\\x00"),
            'u' | 'U' | 'x' => {
                let most = match c {
                    'u' => 4,
                    'U' => 8,
                    _ => 255,
                };
                let mut digits = String::new();
                while digits.len() < most
                    && let Some(d) = self.chars.next_if(char::is_ascii_hexdigit)
                {
                    digits.push(d);
                }
                if digits.is_empty() {
                    return Err(invalid("invalid escape \\ sequence"));
                }
                self.out.push_str("\\x{");
                self.out.push_str(&digits);
                self.out.push('}');
            }
            c if c.is_ascii_alphanumeric() => return Err(invalid("invalid escape \\ sequence")),
            c => self.literal(c),
        }
        Ok(())
    }

    fn literal(&mut self, c: char) {
        if c.is_ascii() && !c.is_ascii_alphanumeric() && !c.is_ascii_whitespace() && c != '_' {
            self.out.push('\\');
        }
        self.out.push(c);
    }

    /// A bracket expression; the library has set operations in there, so punctuation is escaped.
    fn bracket(&mut self) -> Result<()> {
        let rest: String = self.chars.clone().take(6).collect();
        for (posix, ours) in [("[:<:]]", "\\b{start}"), ("[:>:]]", "\\b{end}")] {
            if rest == posix {
                self.chars.nth(5);
                self.out.push_str(ours);
                return Ok(());
            }
        }
        self.out.push('[');
        if self.chars.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        let mut first = true;
        loop {
            let Some(c) = self.chars.next() else {
                return Err(invalid("brackets [] not balanced"));
            };
            match c {
                ']' if !first => break,
                '[' if matches!(self.chars.peek(), Some(':' | '.' | '=')) => self.class()?,
                '\\' => self.escape(true)?,
                '-' if !first && self.chars.peek() != Some(&']') => self.out.push('-'),
                c => self.literal(c),
            }
            first = false;
        }
        self.out.push(']');
        Ok(())
    }

    /// `[:alpha:]`, `[.x.]`, `[=x=]` inside brackets.
    fn class(&mut self) -> Result<()> {
        let kind = self.chars.next().unwrap_or(':');
        let mut name = String::new();
        loop {
            match self.chars.next() {
                None => return Err(invalid("brackets [] not balanced")),
                Some(c) if c == kind && self.chars.peek() == Some(&']') => break,
                Some(c) => name.push(c),
            }
        }
        self.chars.next();
        if kind != ':' {
            name.chars().for_each(|c| self.literal(c));
            return Ok(());
        }
        self.out.push_str(match name.as_str() {
            "alpha" => "\\p{Alphabetic}",
            "digit" => "\\d",
            "alnum" => "\\p{Alphabetic}\\d",
            "upper" => "\\p{Uppercase}",
            "lower" => "\\p{Lowercase}",
            "space" => "\\s",
            "blank" => " \\t",
            "word" => "\\w",
            "punct" => "[:punct:]",
            "cntrl" => "[:cntrl:]",
            "graph" => "[:graph:]",
            "print" => "[:print:]",
            "xdigit" => "[:xdigit:]",
            "ascii" => "[:ascii:]",
            _ => return Err(invalid("invalid character class")),
        });
        Ok(())
    }
}

fn compile(pattern: &str, flags: Flags) -> Result<Regex> {
    let mut flags = flags;
    let body = match pattern {
        p if p.starts_with("***=") => {
            flags.literal = true;
            &p[4..]
        }
        p if p.starts_with("***:") => &p[4..],
        p => p,
    };
    let source = if flags.literal {
        regex::escape(body)
    } else {
        Rewriter { chars: body.chars().peekable(), out: String::with_capacity(body.len() + 8) }
            .run()?
    };
    regex::RegexBuilder::new(&source)
        .case_insensitive(flags.ignore_case)
        .dot_matches_new_line(!(flags.lines || flags.dot_stops))
        .multi_line(flags.lines || flags.anchors_at_lines)
        .ignore_whitespace(flags.expanded && !flags.literal)
        .build()
        .map_err(|e| explain(&e))
}

fn explain(e: &regex::Error) -> Error {
    let text = e.to_string();
    let has = |part: &str| text.contains(part);
    if matches!(e, regex::Error::CompiledTooBig(_)) {
        return invalid("regular expression is too complex");
    }
    invalid(if has("unclosed group") || has("unopened group") {
        "parentheses () not balanced"
    } else if has("unclosed character class") {
        "brackets [] not balanced"
    } else if has("repetition operator missing") || has("decimal literal") {
        "quantifier operand invalid"
    } else if has("repetition quantifier") || has("unclosed counted") {
        "braces {} not balanced"
    } else if has("invalid range") || has("invalid character class range") {
        "invalid character range"
    } else if has("escape") {
        "invalid escape \\ sequence"
    } else {
        "invalid regexp"
    })
}

/// Compiled patterns that a thread keeps: the same few are asked for row by row.
const CACHED: usize = 16;

thread_local! {
    static CACHE: RefCell<Vec<(String, Flags, Regex)>> = const { RefCell::new(Vec::new()) };
}

fn cached(pattern: &str, flags: Flags) -> Result<Regex> {
    let known = CACHE.with_borrow(|cache| {
        cache.iter().find(|(p, f, _)| p == pattern && *f == flags).map(|(_, _, r)| r.clone())
    });
    if let Some(regex) = known {
        return Ok(regex);
    }
    let regex = compile(pattern, flags)?;
    CACHE.with_borrow_mut(|cache| {
        if cache.len() == CACHED {
            cache.remove(0);
        }
        cache.push((pattern.to_owned(), flags, regex.clone()));
    });
    Ok(regex)
}

/// The regular expression of a jsonpath's `like_regex`; flags of `ismq`.
pub(crate) fn xquery_regex(pattern: &str, flags: &str) -> Result<Regex> {
    let has = |c: char| flags.contains(c);
    let flags = Flags {
        ignore_case: has('i'),
        dot_stops: !has('s'),
        anchors_at_lines: has('m'),
        literal: has('q'),
        ..Flags::default()
    };
    cached(pattern, flags)
}

fn is_match(a: &[Datum], ignore_case: bool) -> Result<bool> {
    let flags = Flags { ignore_case, ..Flags::default() };
    Ok(cached(a[1].as_str(), flags)?.is_match(a[0].as_str()))
}

/// Replaces matches; `\1` to `\9`, `\&` and `\\` in the replacement.
fn replace(s: &str, pattern: &str, with: &str, flags: Flags, start: i32, n: i32) -> Result<Datum> {
    let regex = cached(pattern, flags)?;
    let from = byte_at(s, start);
    let mut out = String::from(&s[..from]);
    let mut last = from;
    for (i, found) in regex.captures_iter_from(s, from).into_iter().enumerate() {
        let whole = found.get(0).map_or(0..0, |m| m.range());
        if n > 0 && i as i32 + 1 < n {
            continue;
        }
        out.push_str(&s[last..whole.start]);
        substitute(with, &found, &mut out);
        last = whole.end;
        if n > 0 || !flags.global {
            break;
        }
    }
    out.push_str(&s[last..]);
    Ok(Datum::from(out))
}

/// All matches from a byte position on, with what stands before it still in sight of `\b` and `^`.
trait CapturesFrom {
    fn captures_iter_from<'s>(&self, s: &'s str, from: usize) -> Vec<Captures<'s>>;
}

impl CapturesFrom for Regex {
    fn captures_iter_from<'s>(&self, s: &'s str, from: usize) -> Vec<Captures<'s>> {
        let (mut all, mut at, mut last_end) = (Vec::new(), from, None);
        while at <= s.len() {
            let Some(found) = self.captures_at(s, at) else { break };
            let range = found.get(0).map_or(at..at, |m| m.range());
            // An empty match right after another one doesn't count.
            if range.is_empty() && last_end == Some(range.start) {
                at = range.end + s[range.end..].chars().next().map_or(1, char::len_utf8);
                continue;
            }
            at = range.end;
            last_end = Some(range.end);
            all.push(found);
        }
        all
    }
}

fn substitute(with: &str, found: &Captures<'_>, out: &mut String) {
    let mut chars = with.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('&') => out.push_str(found.get(0).map_or("", |m| m.as_str())),
            Some(d @ '0'..='9') => {
                let group = d as usize - '0' as usize;
                out.push_str(found.get(group).map_or("", |m| m.as_str()));
            }
            Some(c) => {
                if c != '\\' {
                    out.push('\\');
                }
                out.push(c);
            }
            None => out.push('\\'),
        }
    }
}

/// Byte offset of a character position from 1.
fn byte_at(s: &str, position: i32) -> usize {
    s.char_indices().nth(position.max(1) as usize - 1).map_or(s.len(), |(i, _)| i)
}

/// The groups of a match, or the whole of it when there are none.
fn groups(found: &Captures<'_>) -> Datum {
    let text = |i: usize| Datum::from(found.get(i).map(|m| Text::from(m.as_str())));
    let items = if found.len() == 1 { vec![text(0)] } else { (1..found.len()).map(text).collect() };
    Datum::array(oids::TEXT, items)
}

fn flags_of(a: &[Datum], at: usize, global_allowed: Option<&str>) -> Result<Flags> {
    a.get(at).map_or(Ok(Flags::default()), |f| Flags::parse(f.as_str(), global_allowed))
}

fn regexp_match(a: &[Datum]) -> Result<Datum> {
    let regex = cached(a[1].as_str(), flags_of(a, 2, Some("regexp_match()"))?)?;
    Ok(regex.captures(a[0].as_str()).map_or(Datum::Null, |found| groups(&found)))
}

fn regexp_matches(a: &[Datum]) -> Result<Vec<Datum>> {
    let flags = flags_of(a, 2, None)?;
    let regex = cached(a[1].as_str(), Flags { global: false, ..flags })?;
    let mut all = regex.captures_iter_from(a[0].as_str(), 0);
    if !flags.global {
        all.truncate(1);
    }
    Ok(all.iter().map(groups).collect())
}

/// Parts between matches; an empty match separates characters.
fn split(a: &[Datum], name: &str) -> Result<Vec<Datum>> {
    let s = a[0].as_str();
    let regex = cached(a[1].as_str(), flags_of(a, 2, Some(name))?)?;
    let (mut parts, mut last) = (Vec::new(), 0);
    for found in regex.find_iter(s) {
        // Empty at the beginning, at the end, or right after the last: no separator.
        if found.is_empty()
            && (found.start() == last && found.start() == 0 || found.end() == s.len())
        {
            continue;
        }
        parts.push(Datum::text(&s[last..found.start()]));
        last = found.end();
    }
    parts.push(Datum::text(&s[last..]));
    Ok(parts)
}

/// `substring(text from pattern)`: the first group, or the whole match.
fn regexp_substring(s: &str, pattern: &str) -> Result<Datum> {
    let regex = cached(pattern, Flags::default())?;
    let Some(found) = regex.captures(s) else { return Ok(Datum::Null) };
    let group = usize::from(found.len() > 1);
    Ok(found.get(group).map(|m| Text::from(m.as_str())).into())
}

fn positive(a: &[Datum], at: usize, default: i32, name: &str) -> Result<i32> {
    let v = a.get(at).map_or(default, Datum::as_int4);
    if v > 0 {
        return Ok(v);
    }
    Err(err!(INVALID_PARAMETER_VALUE, "invalid value for parameter \"{name}\": {v}"))
}

fn regexp_count(a: &[Datum]) -> Result<Datum> {
    let s = a[0].as_str();
    let start = positive(a, 2, 1, "start")?;
    let regex = cached(a[1].as_str(), flags_of(a, 3, Some("regexp_count()"))?)?;
    if start as usize > char_count(s) + 1 {
        return Ok(0.into());
    }
    Ok((regex.captures_iter_from(s, byte_at(s, start)).len() as i32).into())
}

fn regexp_instr(a: &[Datum]) -> Result<Datum> {
    let s = a[0].as_str();
    let (start, n) = (positive(a, 2, 1, "start")?, positive(a, 3, 1, "n")?);
    let end = a.get(4).map_or(0, Datum::as_int4);
    let regex = cached(a[1].as_str(), flags_of(a, 5, Some("regexp_instr()"))?)?;
    let group = a.get(6).map_or(0, Datum::as_int4).max(0) as usize;
    let all = regex.captures_iter_from(s, byte_at(s, start));
    let found = all.get(n as usize - 1).and_then(|c| c.get(group));
    Ok(found
        .map_or(0, |m| char_count(&s[..if end == 1 { m.end() } else { m.start() }]) as i32 + 1)
        .into())
}

fn regexp_substr(a: &[Datum]) -> Result<Datum> {
    let s = a[0].as_str();
    let (start, n) = (positive(a, 2, 1, "start")?, positive(a, 3, 1, "n")?);
    let regex = cached(a[1].as_str(), flags_of(a, 4, Some("regexp_substr()"))?)?;
    let group = a.get(5).map_or(0, Datum::as_int4).max(0) as usize;
    let all = regex.captures_iter_from(s, byte_at(s, start));
    let found = all.get(n as usize - 1).and_then(|c| c.get(group));
    Ok(found.map(|m| Text::from(m.as_str())).into())
}

/// The regular expression of a `SIMILAR TO` pattern.
fn similar(pattern: &str, escape: Option<char>) -> Result<String> {
    let mut out = String::from("^(?:");
    let mut chars = pattern.chars();
    let mut in_bracket = false;
    while let Some(c) = chars.next() {
        if Some(c) == escape {
            if let Some(next) = chars.next() {
                if !next.is_alphanumeric() {
                    out.push('\\');
                }
                out.push(next);
            }
            continue;
        }
        match c {
            ']' => {
                in_bracket = false;
                out.push(c);
            }
            c if in_bracket => {
                if c == '\\' {
                    out.push('\\');
                }
                out.push(c);
            }
            '[' => {
                in_bracket = true;
                out.push(c);
            }
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            '(' => out.push_str("(?:"),
            '\\' | '.' | '^' | '$' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out.push_str(")$");
    Ok(out)
}

/// `substring(text from pattern for escape)`: the part of a `SIMILAR TO` pattern that stands between
/// two escaped double quotes, or all of it.
pub(super) fn similar_substring(a: &[Datum]) -> Result<Datum> {
    let (pattern, escape) = (a[1].as_str(), a[2].as_str().chars().next());
    let mark = escape.map(|e| format!("{e}\""));
    let parts: Vec<&str> = match &mark {
        Some(mark) => pattern.split(mark.as_str()).collect(),
        None => vec![pattern],
    };
    let inner = |p: &str| similar(p, escape).map(|s| s[1..s.len() - 1].to_owned());
    let source = match parts[..] {
        [all] => format!("^({})$", inner(all)?),
        [before, part, after] => {
            let (before, after) = (inner(before)?.replace(".*", ".*?"), inner(after)?);
            format!("^{before}({}){after}$", inner(part)?)
        }
        _ => {
            return Err(err!(
                INVALID_USE_OF_ESCAPE_CHARACTER,
                "SQL regular expression may not contain more than two escape-double-quote separators"
            ));
        }
    };
    regexp_substring(a[0].as_str(), &source)
}

fn similar_escape(a: &[Datum]) -> Result<Datum> {
    if a[0].is_null() {
        return Ok(Datum::Null);
    }
    let escape = match a.get(1) {
        None | Some(Datum::Null) => Some('\\'),
        Some(e) => {
            let mut chars = e.as_str().chars();
            let first = chars.next();
            if chars.next().is_some() {
                return Err(err!(INVALID_ESCAPE_SEQUENCE, "invalid escape string")
                    .hint("Escape string must be empty or one character."));
            }
            first
        }
    };
    similar(a[0].as_str(), escape).map(Datum::from)
}

/// The bodies of this family.
pub(super) fn bodies() -> Vec<NamedBody> {
    let mut all = matching();
    all.extend(replacing());
    all.extend(finding());
    all
}

fn matching() -> Vec<NamedBody> {
    let yes = S(|a, _| is_match(a, false).map(Into::into));
    let no = S(|a, _| is_match(a, false).map(|m| (!m).into()));
    let yes_any_case = S(|a, _| is_match(a, true).map(Into::into));
    let no_any_case = S(|a, _| is_match(a, true).map(|m| (!m).into()));
    vec![
        ("textregexeq", yes),
        ("nameregexeq", yes),
        ("textregexne", no),
        ("nameregexne", no),
        ("texticregexeq", yes_any_case),
        ("nameicregexeq", yes_any_case),
        ("texticregexne", no_any_case),
        ("nameicregexne", no_any_case),
        ("regexp_like_no_flags", yes),
        (
            "regexp_like",
            S(|a, _| {
                let flags = flags_of(a, 2, Some("regexp_like()"))?;
                Ok(cached(a[1].as_str(), flags)?.is_match(a[0].as_str()).into())
            }),
        ),
        ("similar_to_escape_1", S(|a, _| similar_escape(a))),
        ("similar_to_escape_2", S(|a, _| similar_escape(a))),
        ("similar_escape", S(|a, _| similar_escape(a))),
    ]
}

fn replacing() -> Vec<NamedBody> {
    vec![
        (
            "textregexreplace_noopt",
            S(|a, _| replace(a[0].as_str(), a[1].as_str(), a[2].as_str(), Flags::default(), 1, 0)),
        ),
        (
            "textregexreplace",
            S(|a, _| {
                let options = a[3].as_str();
                if options.starts_with(|c: char| c.is_ascii_digit()) {
                    return Err(err!(
                        INVALID_PARAMETER_VALUE,
                        "invalid regular expression option: \"{}\"",
                        &options[..1]
                    )
                    .hint("If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly."));
                }
                let flags = Flags::parse(options, None)?;
                replace(a[0].as_str(), a[1].as_str(), a[2].as_str(), flags, 1, 0)
            }),
        ),
        (
            "textregexreplace_extended",
            S(|a, _| {
                let flags = Flags::parse(a[5].as_str(), None)?;
                let start = positive(a, 3, 1, "start")?;
                let n = a[4].as_int4();
                let flags = Flags { global: n == 0, ..flags };
                replace(a[0].as_str(), a[1].as_str(), a[2].as_str(), flags, start, n)
            }),
        ),
        (
            "textregexreplace_extended_no_flags",
            S(|a, _| {
                let start = positive(a, 3, 1, "start")?;
                let n = a[4].as_int4();
                let flags = Flags { global: n == 0, ..Flags::default() };
                replace(a[0].as_str(), a[1].as_str(), a[2].as_str(), flags, start, n)
            }),
        ),
        (
            "textregexreplace_extended_no_n",
            S(|a, _| {
                let start = positive(a, 3, 1, "start")?;
                replace(a[0].as_str(), a[1].as_str(), a[2].as_str(), Flags::default(), start, 1)
            }),
        ),
    ]
}

fn finding() -> Vec<NamedBody> {
    let substr = S(|a, _| regexp_substr(a));
    let instr = S(|a, _| regexp_instr(a));
    let count = S(|a, _| regexp_count(a));
    vec![
        ("regexp_match", S(|a, _| regexp_match(a))),
        ("regexp_match_no_flags", S(|a, _| regexp_match(a))),
        ("regexp_matches", Body::Set(|a, _| regexp_matches(a))),
        ("regexp_matches_no_flags", Body::Set(|a, _| regexp_matches(a))),
        (
            "regexp_split_to_array",
            S(|a, _| Ok(Datum::array(oids::TEXT, split(a, "regexp_split_to_array()")?))),
        ),
        (
            "regexp_split_to_array_no_flags",
            S(|a, _| Ok(Datum::array(oids::TEXT, split(a, "regexp_split_to_array()")?))),
        ),
        ("regexp_split_to_table", Body::Set(|a, _| split(a, "regexp_split_to_table()"))),
        ("regexp_split_to_table_no_flags", Body::Set(|a, _| split(a, "regexp_split_to_table()"))),
        ("textregexsubstr", S(|a, _| regexp_substring(a[0].as_str(), a[1].as_str()))),
        ("regexp_count", count),
        ("regexp_count_no_flags", count),
        ("regexp_count_no_start", count),
        ("regexp_instr", instr),
        ("regexp_instr_no_subexpr", instr),
        ("regexp_instr_no_flags", instr),
        ("regexp_instr_no_endoption", instr),
        ("regexp_instr_no_n", instr),
        ("regexp_instr_no_start", instr),
        ("regexp_substr", substr),
        ("regexp_substr_no_subexpr", substr),
        ("regexp_substr_no_flags", substr),
        ("regexp_substr_no_n", substr),
        ("regexp_substr_no_start", substr),
    ]
}
