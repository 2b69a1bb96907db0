//! PostgreSQL's regular expressions.
//!
//! ```text
//! pattern ─ parse ─► tree ─┬─ printed for the `regex` crate: whether and where a match begins
//!                          └─ exact: where it ends and what its groups are
//! ```
//!
//! The crate runs in linear time but takes the first of several alternatives, where PostgreSQL takes the longest match.
//! Where a match begins is the same for both, and for patterns that leave no choice ([`is_plain`])
//! all else, too. Back references and look-around are beyond the crate: such patterns run on [`exact`] alone.
//!
//! The crate can't be interrupted. At worst it visits each of the pattern's letters at each of the text's; where
//! that is too much ([`WORK_MAX`]) [`exact`] searches, which can be.

mod exact;
mod parse;

use std::ops::Range;

use base::Result;

use exact::{Matcher, Program};
use parse::{Assert, Class, Item, Node, Set};

pub(crate) use parse::Flags;

/// Letters of the pattern (repeated ones counted so often) times bytes of the text that the crate is asked for.
/// A visit takes some nanoseconds, and seldom is there more than one for a byte.
const WORK_MAX: usize = 2_000_000_000;

/// A compiled pattern.
pub(crate) struct Regex {
    /// The pattern for the crate, if it has a way to say it.
    fast: Option<regex::Regex>,
    /// The same for the engine here.
    exact: Program,
    /// Whether the crate's answer is all that is to be known.
    plain: bool,
    /// Bytes of text that the crate is asked for, at most.
    fast_max: usize,
    /// Groups that capture.
    groups: usize,
}

/// A pattern for callers that have no expression.
pub struct Pattern(Regex);

impl std::fmt::Debug for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pattern")
    }
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// `2201B`.
    pub fn new(pattern: &str) -> Result<Pattern> {
        Regex::new(pattern, Flags::default()).map(Pattern)
    }

    /// The first group of the first match, if there is one; None: no match.
    ///
    /// # Errors
    /// `2201B` for what is too much work.
    pub fn first_group<'s>(&self, s: &'s str) -> Result<Option<Option<&'s str>>> {
        let found = self.0.all(s, 0, 1)?.pop();
        Ok(found.map(|found| found.get(1).cloned().flatten().map(|range| &s[range])))
    }
}

/// A match: the whole, then the groups, as ranges of bytes.
pub(crate) type Found = Vec<Option<Range<usize>>>;

impl Regex {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// `2201B`.
    pub(crate) fn new(pattern: &str, flags: Flags) -> Result<Regex> {
        // Trees are as deep as patterns are nested, and so are the crate's calls.
        sched::on_native_stack(|| Regex::compile(pattern, flags))
    }

    fn compile(pattern: &str, flags: Flags) -> Result<Regex> {
        let parsed = parse::parse(pattern, flags)?;
        let any_case = parsed.flags.ignore_case;
        let mut text = String::with_capacity(pattern.len() + 16);
        let fast = match print(&parsed.node, &mut text) {
            false => None,
            true => {
                let mut builder = regex::RegexBuilder::new(&text);
                builder.case_insensitive(any_case).nest_limit(1000).build().ok()
            }
        };
        Ok(Regex {
            plain: fast.is_some() && is_plain(&parsed.node),
            fast,
            exact: Program::new(&parsed.node, parsed.groups, any_case),
            fast_max: WORK_MAX / letters(&parsed.node).max(1),
            groups: parsed.groups,
        })
    }

    /// The pattern for the crate, if this text is for it.
    fn fast(&self, s: &str) -> Option<&regex::Regex> {
        self.fast.as_ref().filter(|_| s.len() <= self.fast_max)
    }

    /// The number of groups that capture.
    pub(crate) fn groups(&self) -> usize {
        self.groups
    }

    /// Whether the pattern matches anywhere.
    ///
    /// # Errors
    /// `2201B` for what is too much work.
    pub(crate) fn is_match(&self, s: &str) -> Result<bool> {
        match self.fast(s) {
            Some(fast) => Ok(fast.is_match(s)),
            None => Ok(Matcher::new(&self.exact, s).find(0)?.is_some()),
        }
    }

    /// Matches from a byte position on, one after the other, with what stands before it still in sight of
    /// `\b` and `^`; at most so many.
    ///
    /// # Errors
    /// `2201B` for what is too much work.
    pub(crate) fn all(&self, s: &str, from: usize, most: usize) -> Result<Vec<Found>> {
        let mut all = Vec::new();
        self.each(s, from, most, |found| {
            all.push(found);
            Ok(())
        })?;
        Ok(all)
    }

    /// The same matches, one after the other.
    ///
    /// # Errors
    /// `2201B` for what is too much work; those of `take`.
    pub(crate) fn each(
        &self,
        s: &str,
        from: usize,
        most: usize,
        mut take: impl FnMut(Found) -> Result<()>,
    ) -> Result<()> {
        let fast = self.fast(s);
        let plain = self.plain && fast.is_some();
        let mut exact = (!plain).then(|| Exact::new(&self.exact, s));
        let (mut count, mut at) = (0, from);
        while at <= s.len() && count < most {
            sched::check_interrupts()?;
            let found = match (&mut exact, fast) {
                (None, Some(fast)) => fast.captures_at(s, at).map(|captures| {
                    captures.iter().map(|group| group.map(|m| m.range())).collect()
                }),
                (Some(exact), Some(fast)) => match fast.find_at(s, at) {
                    Some(found) => exact.find_at(found.start())?,
                    None => None,
                },
                (Some(exact), None) => exact.find(at)?,
                (None, None) => None,
            };
            let Some(found): Option<Found> = found else { break };
            let range = found[0].clone().unwrap_or(at..at);
            // Behind an empty match the search goes on one letter later.
            let step = s[range.end..].chars().next().map_or(1, char::len_utf8);
            at = range.end + if range.is_empty() { step } else { 0 };
            take(found)?;
            count += 1;
        }
        Ok(())
    }

    /// The first match.
    ///
    /// # Errors
    /// `2201B` for what is too much work.
    pub(crate) fn first(&self, s: &str) -> Result<Option<Found>> {
        Ok(self.all(s, 0, 1)?.pop())
    }
}

/// The exact engine on a text, told of bytes instead of letters.
struct Exact<'p> {
    matcher: Matcher<'p>,
    /// Where each letter begins, and the end.
    bytes: Vec<usize>,
}

impl<'p> Exact<'p> {
    fn new(program: &'p Program, s: &str) -> Exact<'p> {
        let bytes = s.char_indices().map(|(at, _)| at).chain([s.len()]).collect();
        Exact { matcher: Matcher::new(program, s), bytes }
    }

    fn letter(&self, byte: usize) -> u32 {
        self.bytes.partition_point(|at| *at < byte) as u32
    }

    fn in_bytes(&self, spans: exact::Spans) -> Found {
        let range = |(from, to): (u32, u32)| self.bytes[from as usize]..self.bytes[to as usize];
        spans.into_iter().map(|span| span.map(range)).collect()
    }

    fn find(&mut self, from: usize) -> Result<Option<Found>> {
        let found = self.matcher.find(self.letter(from))?;
        Ok(found.map(|spans| self.in_bytes(spans)))
    }

    fn find_at(&mut self, start: usize) -> Result<Option<Found>> {
        let found = self.matcher.find_at(self.letter(start))?;
        Ok(found.map(|spans| self.in_bytes(spans)))
    }
}

/// Whether the first match that the crate takes is the longest one: there are no alternatives and
/// nothing is repeated but single letters, as often as possible.
fn is_plain(node: &Node) -> bool {
    match node {
        Node::Empty | Node::Char(_) | Node::Set(_) | Node::Assert(_) => true,
        Node::Group(inner, _) => is_plain(inner),
        Node::Concat(all) => all.iter().all(is_plain),
        Node::Repeat { node, greedy: true, .. } => matches!(**node, Node::Char(_) | Node::Set(_)),
        _ => false,
    }
}

/// Letters of a pattern, repeated ones as often as they may stand there.
fn letters(node: &Node) -> usize {
    match node {
        Node::Char(_) | Node::Set(_) => 1,
        Node::Empty | Node::Assert(_) | Node::Back(_) => 0,
        Node::Group(inner, _) | Node::Look { node: inner, .. } => letters(inner),
        Node::Concat(all) | Node::Alternatives(all) => {
            all.iter().fold(0, |sum: usize, node| sum.saturating_add(letters(node)))
        }
        Node::Repeat { node, min, max, .. } => {
            letters(node).saturating_mul(max.unwrap_or(*min).max(1) as usize)
        }
    }
}

/// Writes a pattern for the crate; false when it has no way to say it.
fn print(node: &Node, out: &mut String) -> bool {
    match node {
        Node::Empty => {}
        Node::Char(c) => print_char(*c, out),
        Node::Set(set) => print_set(set, out),
        Node::Assert(assert) => out.push_str(match assert {
            Assert::TextStart => "\\A",
            Assert::TextEnd => "\\z",
            Assert::LineStart => "(?m:^)",
            Assert::LineEnd => "(?m:$)",
            Assert::WordStart => "\\b{start}",
            Assert::WordEnd => "\\b{end}",
            Assert::WordEdge => "\\b",
            Assert::NotWordEdge => "\\B",
        }),
        Node::Group(inner, number) => {
            out.push_str(if number.is_some() { "(" } else { "(?:" });
            let done = print(inner, out);
            out.push(')');
            return done;
        }
        Node::Concat(all) => return all.iter().all(|node| print(node, out)),
        Node::Alternatives(all) => {
            out.push_str("(?:");
            for (n, node) in all.iter().enumerate() {
                if n > 0 {
                    out.push('|');
                }
                if !print(node, out) {
                    return false;
                }
            }
            out.push(')');
        }
        Node::Repeat { node, min, max, greedy, .. } => {
            out.push_str("(?:");
            if !print(node, out) {
                return false;
            }
            match max {
                Some(max) => *out += &format!("){{{min},{max}}}"),
                None => *out += &format!("){{{min},}}"),
            }
            if !greedy {
                out.push('?');
            }
        }
        Node::Back(_) | Node::Look { .. } => return false,
    }
    true
}

fn print_char(c: char, out: &mut String) {
    *out += &format!("\\x{{{:x}}}", u32::from(c));
}

fn print_set(set: &Set, out: &mut String) {
    if set.items.is_empty() {
        // Everything; a set of nothing can't be written.
        out.push_str("(?s:.)");
        return;
    }
    out.push_str(if set.negated { "[^" } else { "[" });
    for item in &set.items {
        match *item {
            Item::Range(low, high) => {
                print_char(low, out);
                if high > low {
                    out.push('-');
                    print_char(high, out);
                }
            }
            Item::Class(class, negated) => {
                *out += &format!("[{}{}]", if negated { "^" } else { "" }, class_text(class));
            }
        }
    }
    out.push(']');
}

fn class_text(class: Class) -> &'static str {
    match class {
        Class::Alpha => "\\p{Alphabetic}",
        Class::Digit => "0-9",
        Class::Alnum => "\\p{Alphabetic}0-9",
        Class::Upper => "\\p{Uppercase}",
        Class::Lower => "\\p{Lowercase}",
        Class::Space => "\\s",
        Class::Blank => " \\t",
        Class::Word => "\\p{Alphabetic}0-9_",
        Class::Punct => "[:punct:]",
        Class::Cntrl => "[:cntrl:]",
        Class::Graph => "[:graph:]",
        Class::Print => "[:print:]",
        Class::Xdigit => "[:xdigit:]",
        Class::Ascii => "[:ascii:]",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(letters: &str) -> Flags {
        let mut flags = Flags::default();
        assert!(letters.chars().all(|c| flags.set(c)));
        flags
    }

    /// The match and its groups, `-` for a group that captured nothing; `none` without a match.
    fn shown(pattern: &str, letters: &str, text: &str) -> String {
        let regex = match Regex::new(pattern, flags(letters)) {
            Ok(regex) => regex,
            Err(error) => return error.message().to_owned(),
        };
        match regex.first(text) {
            Err(error) => error.message().to_owned(),
            Ok(None) => "none".to_owned(),
            Ok(Some(found)) => {
                let part = |r: &Option<Range<usize>>| match r {
                    Some(r) => text[r.clone()].to_owned(),
                    None => "-".to_owned(),
                };
                found.iter().map(part).collect::<Vec<_>>().join("|")
            }
        }
    }

    #[test]
    fn matches_are_what_postgresql_finds() {
        // Each line was asked of PostgreSQL 15.
        for (pattern, letters, text, wanted) in [
            ("foo|foobar", "", "a foobar", "foobar"),
            ("a?(ab)?", "", "ab", "ab|ab"),
            ("Y*([0-9]{1,3})", "", "XY1234Z", "Y123|123"),
            ("Y*?([0-9]{1,3})", "", "XY1234Z", "Y1|1"),
            ("(.*)(\\d+)(.*)", "", "abc01234xyz", "abc01234xyz|abc0123|4|xyz"),
            ("(.*?)(\\d+)(.*)", "", "abc01234xyz", "abc0|abc|0|"),
            ("(?:(.*?)(\\d+)(.*)){1,1}", "", "abc01234xyz", "abc01234xyz|abc|01234|xyz"),
            ("^(ab)\\1$", "", "abab", "abab|ab"),
            ("^(ab)\\1$", "", "abba", "none"),
            ("(\\w+) \\1", "", "say hello hello", "hello hello|hello"),
            ("(a+)(b|\\1)c", "", "aaaac", "aaaac|aa|aa"),
            ("foo(?=bar)", "", "foobaz foobar", "foo"),
            ("(?<!foo)bar", "", "foobar xbar", "bar"),
            ("(?<=\\$)[0-9]+", "", "5 $42", "42"),
            ("((a)|(b))*", "", "ab", "ab|b|-|b"),
            ("(a|ab)(c|bcd)(d*)", "", "abcd", "abcd|ab|c|d"),
            ("(a*)+", "", "aa", "aa|"),
            ("(a*){2,3}", "", "aa", "aa|"),
            ("x*", "", "aaa", ""),
            ("a{2,3}?", "", "aaaa", "aa"),
            ("A(B)c", "i", "xaBC", "aBC|B"),
            ("[^a]", "n", "\n", "none"),
            ("^b$", "n", "a\nb\nc", "b"),
            ("a b # note", "x", "ab", "ab"),
            ("a.c", "q", "abc a.c", "a.c"),
            ("\\(ab\\)*\\1", "b", "abab", "abab|ab"),
            ("a\\{2\\}", "b", "aaa", "aa"),
            ("a{1}", "e", "a", "none"),
            ("(?e)a{1}", "", "a", "a"),
            ("(a*|b|c)+?c", "", "abcabc", "abc|b"),
            ("(a+?)(a*)b", "", "aab", "aab|a|a"),
            ("[[:alpha:]_]+[[:digit:]]", "", "?ab_1", "ab_1"),
            ("a**", "", "", "invalid regular expression: quantifier operand invalid"),
            ("a{256}", "", "", "invalid regular expression: invalid repetition count(s)"),
            ("(a)\\2", "", "", "invalid regular expression: invalid backreference number"),
            ("(", "", "", "invalid regular expression: parentheses () not balanced"),
            ("[a", "", "", "invalid regular expression: brackets [] not balanced"),
            ("[b-a]", "", "", "invalid regular expression: invalid character range"),
        ] {
            assert_eq!(shown(pattern, letters, text), wanted, "{pattern} on {text:?}");
        }
    }

    #[test]
    fn the_engine_here_and_the_crate_agree_on_plain_patterns() {
        for (pattern, text) in [
            ("[a-c]+d?(e*)", "xxabcdee"),
            ("(\\w+)@(\\w+)\\.com", "to me@here.com now"),
            ("^\\s*(\\d{2,4})", "  12345"),
            ("é+", "caféé"),
        ] {
            let parsed = parse::parse(pattern, Flags::default()).unwrap();
            let program = Program::new(&parsed.node, parsed.groups, false);
            let exact = Exact::new(&program, text).find(0).unwrap();
            assert_eq!(Regex::new(pattern, Flags::default()).unwrap().first(text).unwrap(), exact);
            assert!(exact.is_some());
        }
    }

    #[test]
    fn long_and_deep_patterns_stay_within_the_stack() {
        // As a coroutine has it.
        let run = || {
            let letters = "a".repeat(100_000);
            assert_eq!(shown(&format!("{letters}|b"), "", &letters), letters);
            let parts = "(?:a|b)?".repeat(20_000);
            assert_eq!(shown(&parts, "", "a"), "stack depth limit exceeded");
            let deep = format!("{}a{}", "(".repeat(200), ")".repeat(200));
            assert!(shown(&deep, "", "a").starts_with("a|a|a"));
            let deep = format!("{}a{}", "((?:".repeat(90), ")*|b)".repeat(90));
            assert!(shown(&deep, "", "a").starts_with("a|"));
        };
        let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap();
        thread.join().unwrap();
    }

    #[test]
    fn what_would_take_the_crate_too_long_can_be_interrupted() {
        let regex = Regex::new("((a?){200}){200}b", flags("")).unwrap();
        assert!(regex.fast_max < 60_000, "{}", regex.fast_max);
        assert!(regex.fast(&"a".repeat(1 << 20)).is_none());
        assert!(Regex::new("foo.*bar", flags("")).unwrap().fast_max > 200_000_000);
    }

    #[test]
    fn a_text_with_many_matches_is_no_matter_of_memory() {
        let text = "ab".repeat(700_000);
        let all = Regex::new("(a|ab)(b|c)?", flags("")).unwrap().all(&text, 0, usize::MAX).unwrap();
        assert_eq!(all.len(), 700_000);
    }

    #[test]
    fn many_choices_take_bounded_time() {
        let text = "a".repeat(2000);
        assert_eq!(shown("(a|aa)*b", "", &text), "none");
        assert_eq!(shown("(a*)*\\1b", "", &text[..40]), "none");
        assert!(shown("((a|b)*|(a|c)*)*", "", &text).starts_with(&text));
    }
}
