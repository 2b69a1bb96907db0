//! The beginning of a session: authentication, key, parameters, versions.

use base::{Error, Result};

use crate::reader::Reader;
use crate::writer::Message;

/// AuthenticationOk.
pub fn ok(out: &mut Vec<u8>) {
    Message::new(out, b'R').int32(0).end();
}

/// AuthenticationCleartextPassword.
pub fn cleartext(out: &mut Vec<u8>) {
    Message::new(out, b'R').int32(3).end();
}

/// AuthenticationMD5Password.
pub fn md5(out: &mut Vec<u8>, salt: [u8; 4]) {
    Message::new(out, b'R').int32(5).bytes(&salt).end();
}

/// AuthenticationSASL: the mechanisms, best first.
pub fn sasl(out: &mut Vec<u8>, mechanisms: &[&str]) {
    let mut message = Message::new(out, b'R');
    message.int32(10);
    for mechanism in mechanisms {
        message.string(mechanism);
    }
    message.bytes(&[0]).end();
}

/// AuthenticationSASLContinue.
pub fn sasl_continue(out: &mut Vec<u8>, data: &str) {
    Message::new(out, b'R').int32(11).bytes(data.as_bytes()).end();
}

/// AuthenticationSASLFinal.
pub fn sasl_final(out: &mut Vec<u8>, data: &str) {
    Message::new(out, b'R').int32(12).bytes(data.as_bytes()).end();
}

/// PasswordMessage: the password, or the answer to a challenge.
///
/// # Errors
/// `08P01`, fatal.
pub fn password(body: &[u8]) -> Result<&[u8]> {
    let mut r = Reader::new(body);
    let password = r.string().map_err(Error::fatal)?;
    r.end().map_err(Error::fatal)?;
    Ok(password)
}

/// SASLInitialResponse: the mechanism and its first message (none: empty).
///
/// # Errors
/// `08P01`, fatal.
pub fn sasl_initial(body: &[u8]) -> Result<(&[u8], &[u8])> {
    let mut r = Reader::new(body);
    let mut read = || {
        let mechanism = r.string()?;
        let message = r.value()?.unwrap_or_default();
        r.end()?;
        Ok((mechanism, message))
    };
    read().map_err(Error::fatal)
}

/// BackendKeyData: what a cancel request must repeat.
pub fn key_data(out: &mut Vec<u8>, pid: i32, secret: &[u8]) {
    Message::new(out, b'K').int32(pid).bytes(secret).end();
}

/// ParameterStatus.
pub fn parameter_status(out: &mut Vec<u8>, name: &str, value: &str) {
    Message::new(out, b'S').string(name).string(value).end();
}

/// NegotiateProtocolVersion: the minor version that is spoken, and the options not known.
pub fn negotiate(out: &mut Vec<u8>, minor: u16, options: &[&str]) {
    let mut message = Message::new(out, b'v');
    message.int32(3 << 16 | i32::from(minor)).int32(options.len() as i32);
    for option in options {
        message.string(option);
    }
    message.end();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_the_manuals() {
        let mut out = Vec::new();
        sasl(&mut out, &["A", "B"]);
        assert_eq!(out, b"R\0\0\0\x0d\0\0\0\x0aA\0B\0\0");
        out.clear();
        md5(&mut out, [1, 2, 3, 4]);
        assert_eq!(out, b"R\0\0\0\x0c\0\0\0\x05\x01\x02\x03\x04");
        out.clear();
        assert_eq!(sasl_initial(b"A\0\0\0\0\x01x").unwrap(), (&b"A"[..], &b"x"[..]));
        assert!(sasl_initial(b"A\0\0\0\0\x02x").is_err());
        assert_eq!(password(b"a\0").unwrap(), b"a");
        assert!(password(b"a\0b").is_err());
        ok(&mut out);
        assert_eq!(out, b"R\0\0\0\x08\0\0\0\0");
        out.clear();
        negotiate(&mut out, 2, &["_pq_.a"]);
        assert_eq!(out, b"v\0\0\0\x13\0\x03\0\x02\0\0\0\x01_pq_.a\0");
        out.clear();
        parameter_status(&mut out, "a", "b");
        assert_eq!(out, b"S\0\0\0\x08a\0b\0");
    }
}
