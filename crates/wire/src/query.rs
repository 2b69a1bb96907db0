//! The simple protocol's one message.

use base::Result;

use crate::reader::Reader;

/// Query: the text of one or more statements, not yet known to be valid UTF-8.
pub fn query(body: &[u8]) -> Result<&[u8]> {
    let mut r = Reader::new(body);
    let text = r.string()?;
    r.end()?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_one_string_and_nothing_else() {
        assert_eq!(query(b"SELECT 1\0").unwrap(), b"SELECT 1");
        assert_eq!(query(b"\0").unwrap(), b"");
        assert!(query(b"SELECT 1").is_err());
        assert!(query(b"a\0b\0").is_err());
    }
}
