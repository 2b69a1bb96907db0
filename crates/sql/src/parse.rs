//! The grammar adapter: text in, libpg_query's tree out, errors as PostgreSQL words them.
//!
//! The parser is deeply recursive C and runs on the worker's own stack
//! ([`sched::on_native_stack`]). Its limits: [`TEXT_MAX`] bytes of text; nesting is bounded by the
//! a scan of the text ([`nesting`]) and by the library itself, and answers `54001`. Long chains of operators are
//! parsed in pieces ([`chains`]); of long lists of rows the first one is ([`long_values`]).
//!
//! The binding hands over an error's message without its position. [`locate`] finds it again: the
//! parser reads from left to right, so the offending token is the first one whose inclusion makes
//! the text's beginning wrong rather than merely unfinished.

use std::ops::Range;

use base::{Error, Result, err};
use pg_query::{NodeEnum, protobuf as pb};

use crate::{chains, graft, long_values, nesting};

/// Longest statement text in bytes.
pub const TEXT_MAX: usize = 64 << 20;

/// A tree of the grammar, and how deeply it may be nested. Copying or freeing one recurses as deeply, in frames
/// that nobody counts: both are done on the parser's stack.
pub(crate) struct Tree(Option<Box<NodeEnum>>, usize);

impl Tree {
    fn new(node: NodeEnum, levels: usize) -> Tree {
        Tree(Some(Box::new(node)), levels)
    }

    /// A copy of a part of a tree.
    ///
    /// # Errors
    /// `53200`.
    pub fn copy(node: &NodeEnum) -> Result<Tree> {
        let levels = running_levels();
        nesting::on_parsers_stack(levels, || Tree::new(node.clone(), levels))
    }
}

/// How deeply what is being bound may be nested: as the stack has room for.
fn running_levels() -> usize {
    nesting::levels_of(sched::stack_bytes())
}

impl std::ops::Deref for Tree {
    type Target = NodeEnum;

    fn deref(&self) -> &NodeEnum {
        match &self.0 {
            Some(node) => node,
            None => unreachable!("a tree is emptied only when it is dropped"),
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if let Some(node) = self.0.take() {
            let node = std::mem::ManuallyDrop::new(node);
            // Without room for a stack it stays: to free it here could overflow this one.
            let _ = nesting::on_parsers_stack(self.1, move || {
                drop(std::mem::ManuallyDrop::into_inner(node));
            });
        }
    }
}

/// A statement's tree and where its text is.
pub(crate) struct RawStatement {
    /// Byte range.
    pub range: Range<usize>,
    /// The tree.
    pub node: Tree,
}

/// Parses a string of statements.
///
/// # Errors
/// `42601` with position, `54000` too long, `54001` nested too deeply.
pub(crate) fn parse(text: &str) -> Result<Vec<RawStatement>> {
    if text.len() > TEXT_MAX {
        return Err(err!(
            PROGRAM_LIMIT_EXCEEDED,
            "statement is too long: {} bytes, the limit is {TEXT_MAX}",
            text.len()
        ));
    }
    let Some(levels) = nesting::levels(text) else {
        return Err(too_complex());
    };
    let statements = nesting::on_parsers_stack(levels, || {
        if let Some(statements) = long_values::parse(text) {
            return Ok(statements);
        }
        if nesting::may_be_chains(text, levels)
            && let Some(statements) = graft::parse(text, &chains::cuts(text))
        {
            return Ok(statements);
        }
        match pg_query::parse(text, 0) {
            Ok(result) => Ok(result.protobuf.stmts),
            Err(error) => Err(syntax_error(text, error)),
        }
    })??;
    statements.into_iter().map(|raw| raw_statement(text, raw, levels)).collect()
}

fn raw_statement(text: &str, raw: pb::RawStmt, levels: usize) -> Result<RawStatement> {
    let start = usize::try_from(raw.stmt_location).unwrap_or(0).min(text.len());
    let end = match usize::try_from(raw.stmt_len) {
        Ok(0) | Err(_) => text.len(),
        Ok(len) => (start + len).min(text.len()),
    };
    let node = raw.stmt.and_then(|n| n.node);
    match node {
        Some(node) => Ok(RawStatement { range: start..end, node: Tree::new(node, levels) }),
        None => Err(Error::unsupported("this statement")),
    }
}

fn message_of(error: &pg_query::Error) -> String {
    match error {
        pg_query::Error::Parse(message) => message.clone(),
        other => other.to_string(),
    }
}

fn syntax_error(text: &str, error: pg_query::Error) -> Error {
    let message = message_of(&error);
    // As PostgreSQL's grammar says it of ten thousand operators that stand before their operand, or brackets.
    if !message.starts_with("memory exhausted at or near")
        && (is_too_deep(&message) || matches!(error, pg_query::Error::Decode(_)))
    {
        return too_complex();
    }
    if ["not yet implemented", "not implemented", "cannot be marked"]
        .iter()
        .any(|m| message.contains(m))
    {
        return Error::new(base::sqlstate::FEATURE_NOT_SUPPORTED, message);
    }
    if message.starts_with("column number must be in range") {
        return err!(INVALID_PARAMETER_VALUE, "{message}");
    }
    if message.starts_with("frame start") || message.starts_with("frame end") {
        return err!(WINDOWING_ERROR, "{message}");
    }
    let position = locate(text, &message);
    err!(SYNTAX_ERROR, "{message}").at(position)
}

/// Where BY DEFAULT stands before an expression in brackets.
fn by_default(text: &str) -> Option<usize> {
    let lower = text.to_ascii_lowercase();
    let is_it = |at: usize| {
        let mut words = lower[at..].split_ascii_whitespace();
        words.next() == Some("by")
            && words.next() == Some("default")
            && words.next().is_some_and(|w| {
                w.starts_with("as(")
                    || (w == "as" && words.next().is_some_and(|w| w.starts_with('(')))
            })
    };
    lower.match_indices("by").map(|(at, _)| at).find(|at| is_it(*at))
}

/// Whether the library says that something is nested too deeply for it.
fn is_too_deep(message: &str) -> bool {
    ["memory exhausted", "depth limit", "nested too deeply"].iter().any(|m| message.contains(m))
}

/// `54001`, as PostgreSQL words it.
pub(crate) fn too_complex() -> Error {
    err!(STATEMENT_TOO_COMPLEX, "stack depth limit exceeded")
        .hint("The statement is nested too deeply; simplify it.")
}

/// Position (characters from 1) of the token that the message names; 0 if it can't be told.
fn locate(text: &str, message: &str) -> u32 {
    if message.starts_with("for a generated column, GENERATED ALWAYS") {
        return by_default(text).map_or(0, |at| char_position(text, at));
    }
    if message.ends_with("at end of input") {
        return char_position(text, text.len());
    }
    let Some(token) =
        message.split_once(" at or near \"").and_then(|(_, rest)| rest.strip_suffix('"'))
    else {
        return 0;
    };
    if token.is_empty() {
        return 0;
    }
    let places: Vec<usize> = text.match_indices(token).map(|(at, _)| at).collect();
    // Once a beginning of the text is wrong, every longer one is: binary search. Beginnings that
    // cut a quoted string in two differ in their message only.
    let found = places.partition_point(|at| !is_wrong(&text[..at + token.len()], message));
    places.get(found).or(places.last()).map_or(0, |at| char_position(text, *at))
}

fn is_wrong(beginning: &str, message: &str) -> bool {
    match pg_query::parse(beginning, 0) {
        Ok(_) => false,
        Err(error) => message_of(&error) == message,
    }
}

/// Character position from 1 of a byte offset.
pub(crate) fn char_position(text: &str, offset: usize) -> u32 {
    let end = offset.min(text.len());
    text.as_bytes()[..end].iter().filter(|b| (**b & 0xC0) != 0x80).count() as u32 + 1
}

/// Character positions of byte offsets in one text, cheap for many look-ups.
pub(crate) struct Positions {
    /// Characters before each 256th byte; empty when all is ASCII.
    marks: Vec<u32>,
    text: String,
}

impl Positions {
    pub fn new(text: &str) -> Positions {
        if text.is_ascii() {
            return Positions { marks: Vec::new(), text: String::new() };
        }
        let mut marks = Vec::with_capacity(text.len() / 256 + 1);
        let mut count = 0;
        for (i, b) in text.bytes().enumerate() {
            if i % 256 == 0 {
                marks.push(count);
            }
            count += u32::from((b & 0xC0) != 0x80);
        }
        Positions { marks, text: text.to_owned() }
    }

    /// Characters from 1; 0 for the tree's "unknown" (-1).
    pub fn at(&self, location: i32) -> u32 {
        let Ok(offset) = usize::try_from(location) else { return 0 };
        if self.marks.is_empty() {
            return offset as u32 + 1;
        }
        let offset = offset.min(self.text.len().saturating_sub(1));
        let mark = offset / 256;
        let rest = &self.text.as_bytes()[mark * 256..offset];
        self.marks[mark] + rest.iter().filter(|b| (**b & 0xC0) != 0x80).count() as u32 + 1
    }
}

/// An expression's SQL text, by the library's printer.
pub(crate) fn deparse_expr(node: &NodeEnum) -> Result<String> {
    let text = nesting::on_parsers_stack(running_levels(), || {
        let target = pb::ResTarget {
            name: String::new(),
            indirection: Vec::new(),
            val: Some(Box::new(pb::Node { node: Some(node.clone()) })),
            location: -1,
        };
        let select = pb::SelectStmt {
            target_list: vec![pb::Node { node: Some(NodeEnum::ResTarget(Box::new(target))) }],
            limit_option: pb::LimitOption::Default as i32,
            op: pb::SetOperation::SetopNone as i32,
            ..Default::default()
        };
        print(NodeEnum::SelectStmt(Box::new(select)))
    })??;
    Ok(text.strip_prefix("SELECT ").unwrap_or(&text).to_owned())
}

/// A statement's SQL text, by the library's printer.
pub(crate) fn deparse_statement(node: &NodeEnum) -> Result<String> {
    nesting::on_parsers_stack(running_levels(), || print(node.clone()))?
}

fn print(node: NodeEnum) -> Result<String> {
    let raw = pb::RawStmt {
        stmt: Some(Box::new(pb::Node { node: Some(node) })),
        stmt_location: 0,
        stmt_len: 0,
    };
    let tree = pb::ParseResult { version: 0, stmts: vec![raw] };
    pg_query::deparse(&tree, Default::default()).map_err(|e| match message_of(&e) {
        message if is_too_deep(&message) => too_complex(),
        message => err!(INTERNAL_ERROR, "can't print an expression: {message}"),
    })
}

/// Parses the SQL text of one expression (a stored default or check).
pub(crate) fn parse_expr(sql: &str) -> Result<Tree> {
    let statements = parse(&format!("SELECT {sql}"))?;
    if let Some(NodeEnum::SelectStmt(select)) = statements.first().map(|s| &*s.node)
        && let Some(NodeEnum::ResTarget(target)) =
            select.target_list.first().and_then(|n| n.node.as_ref())
        && let Some(node) = target.val.as_ref().and_then(|n| n.node.as_ref())
    {
        return Tree::copy(node);
    }
    Err(err!(INTERNAL_ERROR, "can't read the stored expression: {sql}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(text: &str) -> (String, u32) {
        let error = parse(text).err().expect("a syntax error");
        (error.message().to_owned(), error.fields().position)
    }

    #[test]
    fn syntax_errors_have_the_position_of_their_token() {
        assert_eq!(failure("selec 1"), ("syntax error at or near \"selec\"".into(), 1));
        assert_eq!(
            failure("select 1 from from t"),
            ("syntax error at or near \"from\"".into(), 15)
        );
        assert_eq!(failure("select 'é', from"), ("syntax error at or near \"from\"".into(), 13));
        assert_eq!(failure("select (1"), ("syntax error at end of input".into(), 10));
        let (message, position) = failure("select 'abc");
        assert_eq!((message.contains("unterminated quoted string"), position), (true, 8));
    }

    #[test]
    fn statements_have_their_ranges() {
        let text = "select 1; select 2 ;";
        let got: Vec<_> = parse(text).unwrap().into_iter().map(|s| text[s.range].trim()).collect();
        assert_eq!(got, ["select 1", "select 2"]);
    }

    #[test]
    fn positions_count_characters() {
        let text = "é".repeat(300);
        assert_eq!(Positions::new(&text).at(598), 300);
        assert_eq!(Positions::new("abc").at(2), 3);
        assert_eq!(Positions::new("abc").at(-1), 0);
    }

    #[test]
    fn deep_nesting_is_an_error_and_not_a_crash() {
        let text = format!("select {}1{}", "(".repeat(50_000), ")".repeat(50_000));
        if let Err(error) = parse(&text) {
            assert_eq!(error.code().as_str(), "54001");
        }
        // The grammar's own limit, in PostgreSQL's words.
        for (text, near) in [
            (format!("select {}1", "- ".repeat(20_000)), "-"),
            (format!("select {}true", "not ".repeat(12_000)), "not"),
        ] {
            let error = parse(&text).err().expect("too deep");
            assert_eq!(error.code().as_str(), "42601");
            let words = format!("memory exhausted at or near \"{near}\"");
            assert!(error.message().starts_with(&words), "{error}");
        }
    }

    #[test]
    fn chains_are_not_nesting() {
        for link in [
            " collate \"C\"",
            " + 1",
            " || 'a'",
            "::int",
            " union select 1",
            " except all select 1",
        ] {
            let text = format!("select 1{}", link.repeat(10_000));
            assert_eq!(parse(&text).map(|s| s.len()).map_err(|e| e.to_string()), Ok(1), "{link}");
        }
        let text = format!("select {}true and false", "not ".repeat(6000));
        assert_eq!(parse(&text).map(|s| s.len()).map_err(|e| e.to_string()), Ok(1));
    }

    #[test]
    fn expressions_survive_printing() {
        let node = parse_expr("a > 1 AND b IS NOT NULL").unwrap();
        assert_eq!(deparse_expr(&node).unwrap(), "a > 1 AND b IS NOT NULL");
    }
}
