//! Which statement a text is: the query identifier, and the text without its constants.
//!
//! Two texts are the same statement when they differ in constants, blanks, comments and the case of
//! unquoted words only, and name the same tables. Statements that are no queries (PostgreSQL 15
//! treats them so, too) keep their constants. Computed once, when a statement is planned, and kept
//! with its plan.
//!
//! A statement that comes with parameters has the identifier of the same one with constants in
//! their places. In PostgreSQL these are two, and so are an IN list of two and one of three values
//! (here, too).

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use base::Oid;

use crate::nesting;
use crate::plan::{Prepared, Statement};

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// The query identifier; 0: none (an empty statement).
    pub id: u64,
    /// The text with `$n` in place of constants.
    pub text: Arc<str>,
}

impl Identity {
    /// Of a statement that was planned from this text.
    pub(crate) fn new(text: &str, prepared: &Prepared) -> Identity {
        let text = crate::scan::trimmed(text).trim_ascii_start();
        let text: Arc<str> = match &prepared.statement {
            Statement::Empty => return Identity::default(),
            Statement::Query(_) => without_constants(text).into(),
            Statement::Utility(_) => crate::secrets::without_secrets(text).into(),
        };
        Identity { id: identifier(&text, prepared.locks.iter().map(|(oid, _)| *oid)), text }
    }
}

/// PostgreSQL's own way: constants of the parse tree become `$n`, numbered after the parameters
/// that are there.
fn without_constants(text: &str) -> String {
    if let Some(normal) = crate::long_values::without_constants(text) {
        return normal;
    }
    let levels = crate::nesting::levels(text).unwrap_or(usize::MAX);
    match crate::nesting::on_parsers_stack(levels.min(1 << 20), || pg_query::normalize(text)) {
        Ok(Ok(normal)) => normal,
        _ => text.to_owned(),
    }
}

fn identifier(text: &str, tables: impl Iterator<Item = Oid>) -> u64 {
    let mut hash = DefaultHasher::new();
    tables.for_each(|t| t.0.hash(&mut hash));
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = &bytes[at..];
        let word = rest.iter().position(|b| !is_word(*b)).unwrap_or(rest.len());
        let (length, counts) = match byte {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => (1, false),
            b'-' if rest.starts_with(b"--") => {
                (rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()), false)
            }
            b'/' if rest.starts_with(b"/*") => (nesting::comment(rest), false),
            quote @ (b'\'' | b'"') => {
                (2 + rest[1..].iter().position(|b| *b == quote).unwrap_or(rest.len() - 1), true)
            }
            _ => (word.max(1), true),
        };
        let token = &rest[..length.min(rest.len())];
        if counts && word > 0 {
            token.to_ascii_lowercase().hash(&mut hash);
        } else if counts {
            token.hash(&mut hash);
        }
        at += length;
    }
    hash.finish().max(1)
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$') || b >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> u64 {
        identifier(&without_constants(text), [Oid(7)].into_iter())
    }

    #[test]
    fn constants_blanks_comments_and_case_do_not_matter() {
        let one = id("SELECT a FROM t WHERE b = 5 AND c = 'x'");
        assert_eq!(one, id("select  a\nfrom T where b=-77 and c='a long one' -- why"));
        assert_eq!(one, id("SELECT a FROM t /* app:1 */ WHERE b = NULL AND c = true"));
        assert_eq!(one, id("SELECT a FROM t WHERE b = $1 AND c = $2"));
    }

    #[test]
    fn everything_else_does() {
        let one = id("SELECT a FROM t WHERE b = 5");
        for other in [
            "SELECT b FROM t WHERE b = 5",
            "SELECT \"A\" FROM t WHERE b = 5",
            "SELECT a FROM t WHERE b <> 5",
            "SELECT a FROM t WHERE b = 5 AND b = 5",
            "SELECT a FROM t WHERE b = 5 ORDER BY 1",
        ] {
            assert_ne!(one, id(other), "{other}");
        }
        assert_ne!(id("SELECT a FROM t ORDER BY 1"), id("SELECT a FROM t ORDER BY 2"));
        let text = "SELECT a FROM t";
        assert_ne!(
            identifier(text, [Oid(1)].into_iter()),
            identifier(text, [Oid(2)].into_iter()),
            "another table of that name"
        );
    }

    #[test]
    fn the_text_is_postgresqls() {
        let text =
            without_constants("SELECT a::varchar(5), $2 FROM t WHERE b IN (-1, 'x') LIMIT 3");
        assert_eq!(text, "SELECT a::varchar(5), $2 FROM t WHERE b IN ($3, $4) LIMIT $5");
    }
}
