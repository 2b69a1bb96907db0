//! Percent-encoding, as connection URIs and the requests of browsers have it. Source: RFC 3986, section 2.1.

/// The bytes of a text in which `%41` stands for one; None: a `%` is not followed by two hexadecimal digits.
///
/// ```
/// assert_eq!(base::percent::decode("a%40b").as_deref(), Some(&b"a@b"[..]));
/// assert_eq!(base::percent::decode("5%"), None);
/// ```
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(if byte == b'%' {
            digit(bytes.next()?)? * 16 + digit(bytes.next()?)?
        } else {
            byte
        });
    }
    Some(out)
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn two_digits_follow_each_sign() {
        let text = |encoded: &str| {
            decode(encoded).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        };
        assert_eq!(text("%2Ftmp%2f+").as_deref(), Some("/tmp/+"));
        assert_eq!(text("%C3%A9t%C3%A9").as_deref(), Some("été"));
        assert_eq!(text(""), Some(String::new()));
        for wrong in ["%", "a%4", "%+5", "%é0", "%%41", "%G0"] {
            assert_eq!(text(wrong), None, "{wrong}");
        }
    }
}
