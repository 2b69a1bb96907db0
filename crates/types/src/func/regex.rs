//! Regular expressions: `~` and kin, `regexp_*`, `substring(… from …)`, `SIMILAR TO`.

use std::cell::RefCell;
use std::sync::Arc;

use base::{Result, err};

use super::text::char_count;
use super::{Body, NamedBody, S};
use crate::bulk;
use crate::datum::{Datum, Text};
use crate::oids;
use crate::regex::{Flags, Found, Regex};

/// Reads a function's options; `global_allowed` names the function that has no `g`.
fn parse_flags(text: &str, global_allowed: Option<&str>) -> Result<Flags> {
    let mut flags = Flags::default();
    for c in text.chars() {
        match c {
            'g' if global_allowed.is_none() => flags.global = true,
            'g' => {
                return Err(err!(
                    INVALID_PARAMETER_VALUE,
                    "{} does not support the \"global\" option",
                    global_allowed.unwrap_or_default()
                ));
            }
            c if flags.set(c) => {}
            c => {
                return Err(err!(
                    INVALID_PARAMETER_VALUE,
                    "invalid regular expression option: \"{c}\""
                ));
            }
        }
    }
    Ok(flags)
}

/// Compiled patterns that a thread keeps: the same few are asked for row by row.
const CACHED: usize = 16;

thread_local! {
    static CACHE: RefCell<Vec<(String, Flags, Arc<Regex>)>> = const { RefCell::new(Vec::new()) };
}

fn cached(pattern: &str, flags: Flags) -> Result<Arc<Regex>> {
    let flags = Flags { global: false, ..flags };
    if let Some(regex) = find(pattern, flags) {
        return Ok(regex);
    }
    let regex = Arc::new(Regex::new(pattern, flags)?);
    keep(pattern, flags, &regex);
    Ok(regex)
}

// A task that waits may go on on another thread: neither is inlined, and what they hand out is any thread's.

#[inline(never)]
fn find(pattern: &str, flags: Flags) -> Option<Arc<Regex>> {
    CACHE.with_borrow(|cache| {
        cache.iter().find(|(p, f, _)| p == pattern && *f == flags).map(|(_, _, r)| r.clone())
    })
}

#[inline(never)]
fn keep(pattern: &str, flags: Flags, regex: &Arc<Regex>) {
    CACHE.with_borrow_mut(|cache| {
        if cache.len() == CACHED {
            cache.remove(0);
        }
        cache.push((pattern.to_owned(), flags, regex.clone()));
    });
}

/// The regular expression of a jsonpath's `like_regex`; flags of `ismq`.
pub(crate) fn xquery_regex(pattern: &str, flags: &str) -> Result<Arc<Regex>> {
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
    cached(a[1].as_str(), flags)?.is_match(a[0].as_str())
}

/// Replaces matches; `\1` to `\9`, `\&` and `\\` in the replacement.
fn replace(s: &str, pattern: &str, with: &str, flags: Flags, start: i32, n: i32) -> Result<Datum> {
    let regex = cached(pattern, flags)?;
    let from = byte_at(s, start);
    let mut out = String::new();
    bulk::push_str(&mut out, &s[..from])?;
    let mut last = from;
    let most = match n {
        1.. => n as usize,
        _ if flags.global => usize::MAX,
        _ => 1,
    };
    let mut count = 0;
    regex.each(s, from, most, |found| {
        count += 1;
        if n > 0 && count < n {
            return Ok(());
        }
        let whole = found[0].clone().unwrap_or(0..0);
        bulk::push_str(&mut out, &s[last..whole.start])?;
        last = whole.end;
        substitute(with, s, &found, &mut out)
    })?;
    bulk::push_str(&mut out, &s[last..])?;
    bulk::text(out).map(Datum::Text)
}

/// The text that a group captured.
fn part<'s>(s: &'s str, found: &Found, group: usize) -> Option<&'s str> {
    found.get(group).cloned().flatten().map(|range| &s[range])
}

fn substitute(with: &str, s: &str, found: &Found, out: &mut String) -> Result<()> {
    let mut rest = with;
    while let Some(at) = rest.find('\\') {
        bulk::push_str(out, &rest[..at])?;
        let mut chars = rest[at + 1..].chars();
        match chars.next() {
            Some('&') => bulk::push_str(out, part(s, found, 0).unwrap_or_default())?,
            Some(d @ '0'..='9') => {
                let group = d as usize - '0' as usize;
                bulk::push_str(out, part(s, found, group).unwrap_or_default())?;
            }
            Some('\\') | None => bulk::push_str(out, "\\")?,
            Some(_) => {
                bulk::push_str(out, "\\")?;
                chars = rest[at + 1..].chars();
            }
        }
        rest = chars.as_str();
    }
    bulk::push_str(out, rest)
}

/// Byte offset of a character position from 1.
fn byte_at(s: &str, position: i32) -> usize {
    s.char_indices().nth(position.max(1) as usize - 1).map_or(s.len(), |(i, _)| i)
}

/// The groups of a match, or the whole of it when there are none.
fn groups(s: &str, found: &Found) -> Datum {
    let text = |i: usize| Datum::from(part(s, found, i).map(Text::from));
    let items = if found.len() == 1 { vec![text(0)] } else { (1..found.len()).map(text).collect() };
    Datum::array(oids::TEXT, items)
}

fn flags_of(a: &[Datum], at: usize, global_allowed: Option<&str>) -> Result<Flags> {
    a.get(at).map_or(Ok(Flags::default()), |f| parse_flags(f.as_str(), global_allowed))
}

fn regexp_match(a: &[Datum]) -> Result<Datum> {
    let regex = cached(a[1].as_str(), flags_of(a, 2, Some("regexp_match()"))?)?;
    let s = a[0].as_str();
    Ok(regex.first(s)?.map_or(Datum::Null, |found| groups(s, &found)))
}

fn regexp_matches(a: &[Datum]) -> Result<Vec<Datum>> {
    let flags = flags_of(a, 2, None)?;
    let (s, most) = (a[0].as_str(), if flags.global { usize::MAX } else { 1 });
    let mut all = Vec::new();
    cached(a[1].as_str(), flags)?.each(s, 0, most, |found| {
        all.push(groups(s, &found));
        Ok(())
    })?;
    Ok(all)
}

/// Parts between matches; an empty match separates characters.
fn split(a: &[Datum], name: &str) -> Result<Vec<Datum>> {
    let s = a[0].as_str();
    let regex = cached(a[1].as_str(), flags_of(a, 2, Some(name))?)?;
    let (mut parts, mut last, mut seen) = (Vec::new(), 0, 0);
    regex.each(s, 0, usize::MAX, |found| {
        let found = found[0].clone().unwrap_or(0..0);
        // Empty at the beginning, at the end, or right after the last: no separator.
        let separates = found.start < s.len() && found.end > seen;
        seen = found.end;
        if separates {
            parts.push(Datum::text(&s[last..found.start]));
            last = found.end;
        }
        Ok(())
    })?;
    parts.push(Datum::text(&s[last..]));
    Ok(parts)
}

/// `substring(text from pattern)`: the first group, or the whole match.
fn regexp_substring(s: &str, pattern: &str) -> Result<Datum> {
    let regex = cached(pattern, Flags::default())?;
    let Some(found) = regex.first(s)? else { return Ok(Datum::Null) };
    let group = usize::from(regex.groups() > 0);
    Ok(part(s, &found, group).map(Text::from).into())
}

fn positive(a: &[Datum], at: usize, default: i32, name: &str) -> Result<i32> {
    let v = a.get(at).map_or(default, Datum::as_int4);
    if v > 0 {
        return Ok(v);
    }
    Err(invalid_parameter(name, v))
}

fn not_negative(a: &[Datum], at: usize, name: &str) -> Result<usize> {
    let v = a.get(at).map_or(0, Datum::as_int4);
    usize::try_from(v).map_err(|_| invalid_parameter(name, v))
}

#[cold]
fn invalid_parameter(name: &str, v: i32) -> base::Error {
    err!(INVALID_PARAMETER_VALUE, "invalid value for parameter \"{name}\": {v}")
}

fn regexp_count(a: &[Datum]) -> Result<Datum> {
    let s = a[0].as_str();
    let start = positive(a, 2, 1, "start")?;
    let regex = cached(a[1].as_str(), flags_of(a, 3, Some("regexp_count()"))?)?;
    if start as usize > char_count(s) + 1 {
        return Ok(0.into());
    }
    let mut count = 0;
    regex.each(s, byte_at(s, start), usize::MAX, |_| {
        count += 1;
        Ok(())
    })?;
    Ok(count.into())
}

fn regexp_instr(a: &[Datum]) -> Result<Datum> {
    let s = a[0].as_str();
    let (start, n) = (positive(a, 2, 1, "start")?, positive(a, 3, 1, "n")?);
    let end = a.get(4).map_or(0, Datum::as_int4);
    let regex = cached(a[1].as_str(), flags_of(a, 5, Some("regexp_instr()"))?)?;
    if !matches!(end, 0 | 1) {
        return Err(invalid_parameter("endoption", end));
    }
    let group = not_negative(a, 6, "subexpr")?;
    let all = regex.all(s, byte_at(s, start), n as usize)?;
    let found = all.get(n as usize - 1).and_then(|found| found.get(group).cloned().flatten());
    Ok(found
        .map_or(0, |m| char_count(&s[..if end == 1 { m.end } else { m.start }]) as i32 + 1)
        .into())
}

fn regexp_substr(a: &[Datum]) -> Result<Datum> {
    let s = a[0].as_str();
    let (start, n) = (positive(a, 2, 1, "start")?, positive(a, 3, 1, "n")?);
    let regex = cached(a[1].as_str(), flags_of(a, 4, Some("regexp_substr()"))?)?;
    let group = not_negative(a, 5, "subexpr")?;
    let all = regex.all(s, byte_at(s, start), n as usize)?;
    let found = all.get(n as usize - 1).and_then(|found| part(s, found, group));
    Ok(found.map(Text::from).into())
}

/// The regular expression of a `SIMILAR TO` pattern. Two escaped double quotes cut it into three parts, of which the
/// middle one is what `substring` takes:
///
/// ```text
///   a#"b#"c   ──►   ^(?:a){1,1}?(b){1,1}(?:c)$
/// ```
fn similar(pattern: &str, escape: Option<char>) -> Result<String> {
    const SEPARATORS: [&str; 2] = ["){1,1}?(", "){1,1}(?:"];
    let mut out = String::from("^(?:");
    let mut chars = pattern.chars();
    let (mut in_bracket, mut separators) = (false, SEPARATORS.iter());
    while let Some(c) = chars.next() {
        if Some(c) == escape {
            match chars.next() {
                Some('"') if !in_bracket => match separators.next() {
                    Some(separator) => out.push_str(separator),
                    None => base::bail!(
                        INVALID_USE_OF_ESCAPE_CHARACTER,
                        "SQL regular expression may not contain more than two escape-double-quote separators"
                    ),
                },
                Some(next) => out.extend(['\\', next]),
                None => {}
            }
            continue;
        }
        match c {
            c if in_bracket => {
                in_bracket = c != ']';
                out.extend((c == '\\').then_some('\\'));
                out.push(c);
            }
            '[' => {
                in_bracket = true;
                out.push(c);
            }
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            '(' => out.push_str("(?:"),
            '\\' | '.' | '^' | '$' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out.push_str(")$");
    Ok(out)
}

/// `substring(text from pattern for escape)`: the part of a `SIMILAR TO` pattern that stands between
/// two escaped double quotes, or all of it.
pub(super) fn similar_substring(a: &[Datum]) -> Result<Datum> {
    let source = similar(a[1].as_str(), escape_character(a[2].as_str())?)?;
    regexp_substring(a[0].as_str(), &source)
}

fn escape_character(text: &str) -> Result<Option<char>> {
    let mut chars = text.chars();
    let first = chars.next();
    if chars.next().is_some() {
        return Err(err!(INVALID_ESCAPE_SEQUENCE, "invalid escape string")
            .hint("Escape string must be empty or one character."));
    }
    Ok(first)
}

fn similar_escape(a: &[Datum]) -> Result<Datum> {
    if a[0].is_null() {
        return Ok(Datum::Null);
    }
    let escape = match a.get(1) {
        None | Some(Datum::Null) => Some('\\'),
        Some(e) => escape_character(e.as_str())?,
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
                Ok(cached(a[1].as_str(), flags)?.is_match(a[0].as_str())?.into())
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
                let flags = parse_flags(options, None)?;
                replace(a[0].as_str(), a[1].as_str(), a[2].as_str(), flags, 1, 0)
            }),
        ),
        (
            "textregexreplace_extended",
            S(|a, _| {
                let flags = parse_flags(a[5].as_str(), None)?;
                let start = positive(a, 3, 1, "start")?;
                let n = not_negative(a, 4, "n")? as i32;
                let flags = Flags { global: n == 0, ..flags };
                replace(a[0].as_str(), a[1].as_str(), a[2].as_str(), flags, start, n)
            }),
        ),
        (
            "textregexreplace_extended_no_flags",
            S(|a, _| {
                let start = positive(a, 3, 1, "start")?;
                let n = not_negative(a, 4, "n")? as i32;
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
