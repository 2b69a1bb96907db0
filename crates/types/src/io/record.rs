//! Text and binary input of composite values: `(1,"a b",)`.

use std::sync::Arc;

use base::{Oid, Result, err};

use super::{FormatContext, format_type, input};
use crate::datum::{Datum, Shape};

#[cold]
fn malformed(text: &str, detail: &str) -> base::Error {
    err!(INVALID_TEXT_REPRESENTATION, "malformed record literal: \"{text}\"").detail(detail)
}

/// Reads a composite value.
///
/// # Errors
/// `22P02`, those of the columns' inputs.
pub(super) fn parse(
    shape: &Arc<Shape>,
    typmods: &[i32],
    text: &str,
    cx: &FormatContext,
) -> Result<Datum> {
    sched::check_stack()?;
    let rest = text.trim_start().strip_prefix('(');
    let mut rest = rest.ok_or_else(|| malformed(text, "Missing left parenthesis."))?;
    let mut fields = Vec::with_capacity(shape.columns.len());
    for (i, (_, ty)) in shape.columns.iter().enumerate() {
        if i > 0 {
            let next = rest.strip_prefix(',');
            rest = next.ok_or_else(|| malformed(text, "Too few columns."))?;
        }
        if rest.starts_with([',', ')']) {
            fields.push(Datum::Null);
            continue;
        }
        let (word, after) =
            field(rest).ok_or_else(|| malformed(text, "Unexpected end of input."))?;
        rest = after;
        fields.push(input(*ty, typmods.get(i).copied().unwrap_or(-1), &word, cx)?);
    }
    let end = rest.strip_prefix(')').ok_or_else(|| malformed(text, "Too many columns."))?;
    if !end.trim_start().is_empty() {
        return Err(malformed(text, "Junk after right parenthesis."));
    }
    Ok(Datum::record(shape.clone(), fields))
}

/// One field's characters, and what comes after them; None when the text ends within.
fn field(text: &str) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut quoted = false;
    let mut chars = text.char_indices().peekable();
    loop {
        let (at, c) = *chars.peek()?;
        if !quoted && (c == ',' || c == ')') {
            return Some((word, &text[at..]));
        }
        chars.next();
        match c {
            '\\' => word.push(chars.next()?.1),
            '"' if !quoted => quoted = true,
            '"' if matches!(chars.peek(), Some((_, '"'))) => {
                chars.next();
                word.push('"');
            }
            '"' => quoted = false,
            c => word.push(c),
        }
    }
}

/// Checks the number of a composite value's columns in binary input.
///
/// # Errors
/// `42804`.
pub(super) fn check_columns(shape: &Shape, count: i32) -> Result<()> {
    if usize::try_from(count) != Ok(shape.columns.len()) {
        return Err(err!(
            DATATYPE_MISMATCH,
            "wrong number of columns: {count}, expected {}",
            shape.columns.len()
        ));
    }
    Ok(())
}

/// The same of one column, from 0.
///
/// # Errors
/// `42804`.
pub(super) fn check_column(shape: &Shape, at: usize, found: Oid) -> Result<()> {
    let expected = shape.columns[at].1;
    if found == expected {
        return Ok(());
    }
    Err(err!(
        DATATYPE_MISMATCH,
        "binary data has type {found} ({}) instead of expected {expected} ({}) in record column {}",
        format_type(found, -1),
        format_type(expected, -1),
        at + 1
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datum::Text;
    use crate::oids;

    fn read(text: &str) -> Result<Vec<Datum>> {
        let columns: Vec<(Text, Oid)> = vec![("a".into(), oids::INT4), ("b".into(), oids::TEXT)];
        let shape = Arc::new(Shape { ty: oids::RECORD, columns });
        let row = parse(&shape, &[-1, -1], text, &FormatContext::default())?;
        Ok(row.as_record().to_vec())
    }

    #[test]
    fn records_are_read_as_they_are_written() {
        let of = |a, b: &str| vec![Datum::Int4(a), Datum::text(b)];
        assert_eq!(read("(1,x)").unwrap(), of(1, "x"));
        assert_eq!(read(" ( 2 ,\" a\"\"b\\\\,) \" ) ").unwrap(), of(2, " a\"b\\,)  "));
        assert_eq!(read("(,)").unwrap(), vec![Datum::Null, Datum::Null]);
        assert_eq!(read("(1,\"\")").unwrap(), of(1, ""));
        for (text, detail) in [
            ("1,x", "Missing left parenthesis."),
            ("(1)", "Too few columns."),
            ("(1,2,3)", "Too many columns."),
            ("(1,x", "Unexpected end of input."),
            ("(1,x) y", "Junk after right parenthesis."),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.fields().detail.as_deref(), Some(detail), "{text}");
        }
    }
}
