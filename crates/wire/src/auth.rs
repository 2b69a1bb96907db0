//! The beginning of a session: authentication, key, parameters, versions.

use crate::writer::Message;

/// AuthenticationOk.
pub fn ok(out: &mut Vec<u8>) {
    Message::new(out, b'R').int32(0).end();
}

/// BackendKeyData: what a cancel request must repeat.
pub fn key_data(out: &mut Vec<u8>, pid: i32, secret: i32) {
    Message::new(out, b'K').int32(pid).int32(secret).end();
}

/// ParameterStatus.
pub fn parameter_status(out: &mut Vec<u8>, name: &str, value: &str) {
    Message::new(out, b'S').string(name).string(value).end();
}

/// NegotiateProtocolVersion: the newest minor version there is, and the options not known.
pub fn negotiate(out: &mut Vec<u8>, options: &[&str]) {
    let mut message = Message::new(out, b'v');
    message.int32(3 << 16).int32(options.len() as i32);
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
        ok(&mut out);
        assert_eq!(out, b"R\0\0\0\x08\0\0\0\0");
        out.clear();
        negotiate(&mut out, &["_pq_.a"]);
        assert_eq!(out, b"v\0\0\0\x13\0\x03\0\0\0\0\0\x01_pq_.a\0");
        out.clear();
        parameter_status(&mut out, "a", "b");
        assert_eq!(out, b"S\0\0\0\x08a\0b\0");
    }
}
