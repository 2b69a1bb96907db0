//! Cuts a running session's input into messages: one byte of type, four of length (which counts
//! itself but not the type), the body.
//!
//! ```text
//!   'Q'  00 00 00 0D  S E L E C T ␠ 1 00
//!   type  length 13    body: 9 bytes
//! ```
//!
//! A length is checked before its body has arrived, so a lie costs the liar a connection and the
//! server no memory.

use base::Result;

use crate::reader::violation;

/// Longest body of a message that carries text or data. One gigabyte, as in PostgreSQL.
pub const LARGE_LIMIT: usize = (1 << 30) - 1;
/// Longest body of any other message.
pub const SMALL_LIMIT: usize = 10_000;
/// Type and length.
pub const HEADER: usize = 5;

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its type.
    pub tag: u8,
    /// The bytes after the length.
    pub body: &'a [u8],
}

impl Frame<'_> {
    /// Bytes that the whole message takes.
    pub fn size(&self) -> usize {
        HEADER + self.body.len()
    }
}

/// The limit for a type; None when there is no such type.
fn limit(tag: u8) -> Option<usize> {
    match tag {
        b'Q' | b'P' | b'B' | b'F' | b'd' => Some(LARGE_LIMIT),
        b'C' | b'D' | b'E' | b'H' | b'S' | b'X' | b'c' | b'f' | b'p' => Some(SMALL_LIMIT),
        _ => None,
    }
}

/// The first message of `input`; None when it isn't complete.
///
/// # Errors
/// `08P01`: an unknown type, or a length that is too small or too large.
pub fn next_frame(input: &[u8]) -> Result<Option<Frame<'_>>> {
    let Some(&tag) = input.first() else { return Ok(None) };
    let Some(limit) = limit(tag) else {
        return Err(violation(format!("invalid frontend message type {tag}")));
    };
    let Some(length) = input.get(1..HEADER) else { return Ok(None) };
    let length = i32::from_be_bytes([length[0], length[1], length[2], length[3]]);
    if length < 4 || length as usize - 4 > limit {
        return Err(violation("invalid message length"));
    }
    let end = length as usize + 1;
    Ok(input.get(HEADER..end).map(|body| Frame { tag, body }))
}

/// How many bytes the first, incomplete message of `input` still lacks (at least 1).
pub fn missing(input: &[u8]) -> usize {
    match input.get(1..HEADER) {
        Some(l) => (i32::from_be_bytes([l[0], l[1], l[2], l[3]]).max(4) as usize + 1)
            .saturating_sub(input.len())
            .max(1),
        None => HEADER - input.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_cut_out_when_it_is_complete_and_not_before() {
        let input = b"Q\0\0\0\x06a\0S\0\0\0\x04";
        for cut in 0..7 {
            assert_eq!(next_frame(&input[..cut]).unwrap(), None, "{cut} bytes");
            assert!(missing(&input[..cut]) <= 7 - cut);
        }
        let first = next_frame(input).unwrap().unwrap();
        assert_eq!(first, Frame { tag: b'Q', body: b"a\0" });
        let second = next_frame(&input[first.size()..]).unwrap().unwrap();
        assert_eq!(second, Frame { tag: b'S', body: b"" });
    }

    #[test]
    fn bad_types_and_lengths_are_refused_before_the_body_comes() {
        assert!(next_frame(b"!").is_err());
        assert!(next_frame(b"Q\0\0\0\x03").is_err());
        assert!(next_frame(b"Q\xff\xff\xff\xff").is_err());
        assert!(next_frame(b"Q\x40\0\0\x04").is_err());
        assert!(next_frame(b"S\0\0\x27\x15").is_err());
        assert!(next_frame(b"S\0\0\x27\x14").unwrap().is_none());
    }
}
