//! The CSV format: quoted fields may hold delimiters, quotes and line ends.

use base::{Result, bail};

use types::encodings::utf8;

use super::input::Input;
use crate::context::SessionHooks;

/// The characters that matter.
#[derive(Clone, Copy)]
pub struct Dialect {
    /// Between fields.
    pub delimiter: u8,
    /// Around fields.
    pub quote: u8,
    /// Before a quote inside a quoted field.
    pub escape: u8,
}

/// The next record without its line end, and the bytes to consume with it.
///
/// # Errors
/// `22P04` when a quoted field isn't closed.
pub fn next_record(
    input: &mut Input,
    dialect: Dialect,
    hooks: &mut dyn SessionHooks,
) -> Result<Option<(usize, usize)>> {
    let (mut at, mut quoted) = (0, false);
    loop {
        let rest = input.rest();
        while at < rest.len() {
            let byte = rest[at];
            if quoted && byte == dialect.escape && dialect.escape != dialect.quote {
                at += 2;
                continue;
            }
            if byte == dialect.quote {
                quoted = !quoted;
            } else if byte == b'\n' && !quoted {
                let line = if at > 0 && rest[at - 1] == b'\r' { at - 1 } else { at };
                return Ok(Some((line, at + 1)));
            }
            at += 1;
        }
        if !input.more(hooks)? {
            if quoted {
                bail!(BAD_COPY_FILE_FORMAT, "unterminated CSV quoted field");
            }
            let left = input.rest().len();
            return Ok((left > 0).then_some((left, left)));
        }
    }
}

/// Whether a record has a carriage return outside of quotes.
pub fn has_return(record: &[u8], dialect: Dialect) -> bool {
    let (mut at, mut quoted) = (0, false);
    while at < record.len() {
        let byte = record[at];
        if quoted && byte == dialect.escape && dialect.escape != dialect.quote {
            at += 1;
        } else if byte == dialect.quote {
            quoted = !quoted;
        } else if byte == b'\r' && !quoted {
            return true;
        }
        at += 1;
    }
    false
}

/// Calls `f` with each field of a record: its number, its text, None for NULL, and whether it had quotes.
///
/// # Errors
/// `f`'s; `22021`.
pub fn fields(
    record: &[u8],
    dialect: Dialect,
    null: &[u8],
    mut f: impl FnMut(usize, Option<&str>, bool) -> Result<()>,
) -> Result<usize> {
    let mut field = Vec::new();
    let (mut at, mut number) = (0, 0);
    loop {
        field.clear();
        let (mut quoted, mut had_quotes) = (false, false);
        while at < record.len() {
            let byte = record[at];
            let next = record.get(at + 1).copied();
            let escapes = next.is_some_and(|n| n == dialect.quote || n == dialect.escape);
            if quoted && byte == dialect.escape && escapes {
                field.extend(next);
                at += 2;
                continue;
            }
            if byte == dialect.quote {
                quoted = !quoted;
                had_quotes = true;
            } else if byte == dialect.delimiter && !quoted {
                break;
            } else {
                field.push(byte);
            }
            at += 1;
        }
        if !had_quotes && field == null {
            f(number, None, false)?;
        } else {
            f(number, Some(utf8(&field)?), had_quotes)?;
        }
        number += 1;
        if at >= record.len() {
            return Ok(number);
        }
        at += 1;
    }
}

/// Appends a value, quoted where it has to be. `alone`: the only column (`\.` must be quoted).
pub fn write(text: &[u8], dialect: Dialect, null: &[u8], alone: bool, out: &mut Vec<u8>) {
    let special =
        |b: &u8| *b == dialect.delimiter || *b == dialect.quote || *b == b'\n' || *b == b'\r';
    let quote = text == null || text.iter().any(special) || alone && text == b"\\.";
    if quote {
        write_quoted(text, dialect, out);
    } else {
        out.extend_from_slice(text);
    }
}

/// Appends a value in quotes.
pub fn write_quoted(text: &[u8], dialect: Dialect, out: &mut Vec<u8>) {
    out.push(dialect.quote);
    for byte in text {
        if *byte == dialect.quote || *byte == dialect.escape {
            out.push(dialect.escape);
        }
        out.push(*byte);
    }
    out.push(dialect.quote);
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Dialect = Dialect { delimiter: b',', quote: b'"', escape: b'"' };

    fn split(record: &str) -> Vec<Option<String>> {
        let mut all = Vec::new();
        let result = fields(record.as_bytes(), PLAIN, b"", |_, field, _| {
            all.push(field.map(str::to_owned));
            Ok(())
        });
        assert_eq!(result.ok(), Some(all.len()));
        all
    }

    #[test]
    fn quoted_fields_hold_anything() {
        let some = |s: &str| Some(s.to_owned());
        assert_eq!(split("a,\"b,\"\"c\"\"\",,\"\""), [some("a"), some("b,\"c\""), None, some("")]);
    }

    #[test]
    fn what_is_written_comes_back() {
        for value in ["", "a,b", "q\"q", "line\nend", "plain"] {
            let mut out = Vec::new();
            write(value.as_bytes(), PLAIN, b"", false, &mut out);
            let text = String::from_utf8_lossy(&out).into_owned();
            assert_eq!(split(&text), [Some(value.to_owned())]);
        }
    }
}
