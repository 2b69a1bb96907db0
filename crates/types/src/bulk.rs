//! Work of a size that a user's data decides: its memory is asked for before it is taken, and its loops look for
//! interrupts, which also lets the worker's other sessions in.
//!
//! * A loop over items (of arrays, matches, members) has a [`Pace`].
//! * Text and bytes are worked on piece by piece ([`pieces`], [`map_text`]).
//! * What grows, grows by [`push_str`] and [`push_bytes`], which know PostgreSQL's bound of 1 GB, too.
//!
//! Not here: functions whose result is no longer than their arguments. The executor asks for those.

use base::{Error, Result, err};
pub use sched::memory::ask;

use crate::datum::{Datum, Text};
use crate::func::FunctionRow;
use crate::oids;

/// Bytes that are worked on between two looks for interrupts.
pub const PIECE_BYTES: usize = 64 << 10;

/// Values that are made between two looks for interrupts, where making one takes but a copy.
const PIECE_VALUES: usize = 4 << 10;

/// Longest text or bytea, in bytes (1 GB, as PostgreSQL).
pub const BYTES_MAX: usize = 0x3fff_ffff;

/// From here on buffers grow by an eighth, not to twice their size: growing copies nothing there
/// (`sched::memory`), and room that isn't used counts as held.
const LARGE_BYTES: usize = 32 << 20;

/// Steps of a loop that takes little time for each.
#[derive(Default)]
pub struct Pace(u8);

impl Pace {
    /// One more step; looks for interrupts now and then.
    ///
    /// # Errors
    /// That of an interrupt.
    #[inline]
    pub fn step(&mut self) -> Result<()> {
        self.0 = self.0.wrapping_add(1);
        if self.0 == 0 { sched::check_interrupts_now() } else { Ok(()) }
    }
}

/// A text in pieces of [`PIECE_BYTES`], with a look for interrupts before each.
pub fn pieces(mut text: &str) -> impl Iterator<Item = Result<&str>> {
    std::iter::from_fn(move || {
        if text.is_empty() {
            return None;
        }
        let (piece, rest) = text.split_at(text.floor_char_boundary(PIECE_BYTES));
        text = rest;
        Some(sched::check_interrupts_now().map(|()| piece))
    })
}

/// A text in pieces of [`PIECE_BYTES`], each of which lets others in; for what raises no errors.
pub fn unhurried(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        if text.is_empty() {
            return None;
        }
        if text.len() > PIECE_BYTES {
            sched::give_way();
        }
        let (piece, rest) = text.split_at(text.floor_char_boundary(PIECE_BYTES));
        text = rest;
        Some(piece)
    })
}

/// Bytes in pieces of [`PIECE_BYTES`], with a look for interrupts before each.
pub fn byte_pieces(bytes: &[u8]) -> impl Iterator<Item = Result<&[u8]>> {
    bytes.chunks(PIECE_BYTES).map(|piece| sched::check_interrupts_now().map(|()| piece))
}

/// The text that `f` makes of one, piece by piece.
///
/// # Errors
/// As [`push_str`].
pub fn map_text(text: &str, mut f: impl FnMut(&str, &mut Text)) -> Result<Datum> {
    let mut out = Text::with_capacity(text.len());
    for piece in pieces(text) {
        f(piece?, &mut out);
    }
    check_len(0, out.len())?;
    Ok(Datum::Text(out))
}

/// A text from a buffer.
///
/// # Errors
/// `53200`, interrupts.
pub fn text(buffer: impl AsRef<[u8]>) -> Result<Text> {
    let bytes = buffer.as_ref();
    if bytes.len() <= PIECE_BYTES {
        return Ok(Text::from(String::from_utf8_lossy(bytes).as_ref()));
    }
    ask(bytes.len())?;
    let mut out = Text::with_capacity(bytes.len());
    match std::str::from_utf8(bytes) {
        Ok(whole) => pieces(whole).try_for_each(|piece| piece.map(|p| out.push_str(p)))?,
        Err(_) => out.push_str(&String::from_utf8_lossy(bytes)),
    }
    Ok(out)
}

#[cold]
fn too_long(len: usize, more: usize) -> Error {
    err!(PROGRAM_LIMIT_EXCEEDED, "out of memory").detail(format!(
        "Cannot enlarge string buffer containing {len} bytes by {more} more bytes."
    ))
}

fn check_len(len: usize, more: usize) -> Result<()> {
    if len.saturating_add(more) > BYTES_MAX { Err(too_long(len, more)) } else { Ok(()) }
}

/// How much room a buffer gets in which so many bytes more don't fit.
#[cold]
fn growth(len: usize, more: usize) -> Result<usize> {
    check_len(len, more)?;
    let spare = if len < LARGE_BYTES { len } else { len / 8 };
    let room = (len + more + spare).min(BYTES_MAX) - len;
    ask(room).map(|()| room)
}

/// Appends to a text that may become long.
///
/// # Errors
/// `54000` beyond 1 GB, `53200`, interrupts.
#[inline]
pub fn push_str(out: &mut String, part: &str) -> Result<()> {
    if part.len() > out.capacity() - out.len() {
        out.reserve_exact(growth(out.len(), part.len())?);
    }
    if part.len() <= PIECE_BYTES {
        out.push_str(part);
        return Ok(());
    }
    pieces(part).try_for_each(|piece| piece.map(|p| out.push_str(p)))
}

/// Appends blanks, maybe many.
///
/// # Errors
/// As [`push_str`].
pub fn push_blanks(out: &mut String, count: usize) -> Result<()> {
    const BLANKS: &str = "                                                                ";
    if count > out.capacity() - out.len() {
        out.reserve_exact(growth(out.len(), count)?);
    }
    let (mut left, mut pace) = (count, Pace::default());
    while left > 0 {
        pace.step()?;
        let some = left.min(BLANKS.len());
        out.push_str(&BLANKS[..some]);
        left -= some;
    }
    Ok(())
}

/// Appends to bytes that may become many.
///
/// # Errors
/// As [`push_str`].
#[inline]
pub fn push_bytes(out: &mut Vec<u8>, part: &[u8]) -> Result<()> {
    if part.len() > out.capacity() - out.len() {
        out.reserve_exact(growth(out.len(), part.len())?);
    }
    if part.len() <= PIECE_BYTES {
        out.extend_from_slice(part);
        return Ok(());
    }
    byte_pieces(part).try_for_each(|piece| piece.map(|p| out.extend_from_slice(p)))
}

/// So many copies of a value.
///
/// # Errors
/// `53200`, interrupts.
pub fn filled(value: &Datum, count: usize) -> Result<Vec<Datum>> {
    ask(count.saturating_mul(size_of::<Datum>()))?;
    let mut items = Vec::with_capacity(count);
    while items.len() < count {
        sched::check_interrupts_now()?;
        items.resize((items.len() + PIECE_VALUES).min(count), value.clone());
    }
    Ok(items)
}

/// Appends copies of values.
///
/// # Errors
/// `53200`, interrupts.
pub fn push_values<T: Clone>(out: &mut Vec<T>, values: &[T]) -> Result<()> {
    ask(size_of_val(values))?;
    for piece in values.chunks(PIECE_VALUES) {
        sched::check_interrupts_now()?;
        out.extend_from_slice(piece);
    }
    Ok(())
}

/// Copies of values.
///
/// # Errors
/// `53200`, interrupts.
pub fn copied<T: Clone>(values: &[T]) -> Result<Vec<T>> {
    let mut out = Vec::new();
    if values.len() > PIECE_VALUES {
        ask(size_of_val(values))?;
        out.reserve_exact(values.len());
    }
    push_values(&mut out, values).map(|()| out)
}

/// A text a number of times.
///
/// # Errors
/// `53200`, interrupts.
pub fn repeated(text: &str, times: usize) -> Result<Text> {
    let len = text.len().saturating_mul(times);
    if len <= PIECE_BYTES {
        return Ok(Text::from(text.repeat(times)));
    }
    ask(len)?;
    let block = text.repeat((PIECE_BYTES / text.len()).clamp(1, times));
    let mut out = Text::with_capacity(len);
    while out.len() < len {
        for piece in pieces(&block[..block.len().min(len - out.len())]) {
            out.push_str(piece?);
        }
    }
    Ok(out)
}

/// Functions that give a part of their argument, and need no memory for all of it.
const TAKERS: [&str; 22] = [
    "substr",
    "substring",
    "left",
    "right",
    "split_part",
    "get_byte",
    "regexp_match",
    "regexp_substr",
    "jsonb_object_field",
    "jsonb_object_field_text",
    "jsonb_array_element",
    "jsonb_array_element_text",
    "jsonb_extract_path",
    "jsonb_extract_path_text",
    "json_object_field",
    "json_object_field_text",
    "json_array_element",
    "json_array_element_text",
    "json_extract_path",
    "json_extract_path_text",
    "jsonb_path_query_first",
    "json_typeof",
];

/// A function is about to be called: asks for a result as large as its arguments, where it may be.
///
/// # Errors
/// `53200`, interrupts.
#[inline]
pub fn ask_for_call(function: &FunctionRow, args: &[Datum]) -> Result<()> {
    let bytes = args.iter().map(Datum::bulk).sum();
    if bytes <= PIECE_BYTES { Ok(()) } else { ask_for_result(function, bytes) }
}

#[cold]
fn ask_for_result(function: &FunctionRow, bytes: usize) -> Result<()> {
    let small = matches!(
        function.result,
        oids::BOOL | oids::INT2 | oids::INT4 | oids::INT8 | oids::FLOAT4 | oids::FLOAT8 | oids::OID
    );
    if small || TAKERS.contains(&function.name) { sched::check_interrupts() } else { ask(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_the_whole() {
        let long = "äbc€".repeat(50_000);
        let parts: Vec<&str> = pieces(&long).map(|p| p.expect("no interrupt")).collect();
        assert!(parts.len() > 5 && parts.concat() == long);
        assert_eq!(repeated("ä€", 70_000).expect("room"), "ä€".repeat(70_000));
        assert_eq!(text(long.as_bytes()).expect("room"), long);
        let mut out = String::new();
        push_str(&mut out, &long).expect("room");
        push_str(&mut out, "x").expect("room");
        assert_eq!(out, long + "x");
    }

    #[test]
    fn what_is_longer_than_a_gigabyte_is_refused() {
        let error = growth(BYTES_MAX - 5, 6).expect_err("too long");
        assert_eq!(error.code(), base::sqlstate::PROGRAM_LIMIT_EXCEEDED);
        assert_eq!(growth(BYTES_MAX - 5, 5).expect("fits"), 5);
    }
}
