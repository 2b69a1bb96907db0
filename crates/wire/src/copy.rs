//! The COPY sub-protocol.

use base::Result;

use crate::reader::Reader;
use crate::writer::Message;

/// CopyInResponse: the client may send now.
pub fn in_response(out: &mut Vec<u8>, binary: bool, columns: usize) {
    response(out, b'G', binary, columns);
}

/// CopyOutResponse: data follows.
pub fn out_response(out: &mut Vec<u8>, binary: bool, columns: usize) {
    response(out, b'H', binary, columns);
}

/// CopyBothResponse: both send.
pub fn both_response(out: &mut Vec<u8>) {
    response(out, b'W', false, 0);
}

fn response(out: &mut Vec<u8>, tag: u8, binary: bool, columns: usize) {
    let mut message = Message::new(out, tag);
    message.byte(u8::from(binary)).int16(columns as i16);
    for _ in 0..columns {
        message.int16(i16::from(binary));
    }
    message.end();
}

/// CopyData.
pub fn data(out: &mut Vec<u8>, bytes: &[u8]) {
    Message::new(out, b'd').bytes(bytes).end();
}

/// CopyDone.
pub fn done(out: &mut Vec<u8>) {
    out.extend_from_slice(b"c\0\0\0\x04");
}

/// Reads a CopyFail's reason.
pub fn fail(body: &[u8]) -> Result<&[u8]> {
    let mut r = Reader::new(body);
    let reason = r.string()?;
    r.end()?;
    Ok(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_repeat_the_format_for_each_column() {
        let mut out = Vec::new();
        in_response(&mut out, true, 2);
        assert_eq!(out, b"G\0\0\0\x0b\x01\0\x02\0\x01\0\x01");
        out.clear();
        data(&mut out, b"x");
        done(&mut out);
        assert_eq!(out, b"d\0\0\0\x05xc\0\0\0\x04");
    }
}
