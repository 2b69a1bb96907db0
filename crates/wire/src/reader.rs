//! Reads the fields of one message. Every read is checked against the message's end.

use base::{Error, err};

/// A breach of the protocol: `08P01`, and the connection ends.
#[cold]
pub fn violation(message: impl Into<String>) -> Error {
    let message = message.into();
    err!(PROTOCOL_VIOLATION, "{message}").fatal()
}

/// A message whose frame is whole and whose content is not: `08P01`, which fails the message.
#[cold]
pub fn malformed(message: impl Into<String>) -> Error {
    let message = message.into();
    err!(PROTOCOL_VIOLATION, "{message}")
}

/// The rest of a message.
pub struct Reader<'a> {
    rest: &'a [u8],
}

type Result<T> = base::Result<T>;

impl<'a> Reader<'a> {
    /// From the beginning of a message's body.
    pub fn new(body: &'a [u8]) -> Reader<'a> {
        Reader { rest: body }
    }

    /// Exactly `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        if count > self.rest.len() {
            return Err(malformed("insufficient data left in message"));
        }
        let (taken, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(taken)
    }

    /// One byte.
    pub fn byte(&mut self) -> Result<u8> {
        Ok(self.bytes(1)?[0])
    }

    /// A 16-bit number.
    pub fn int16(&mut self) -> Result<i16> {
        let b = self.bytes(2)?;
        Ok(i16::from_be_bytes([b[0], b[1]]))
    }

    /// A 32-bit number.
    pub fn int32(&mut self) -> Result<i32> {
        let b = self.bytes(4)?;
        Ok(i32::from_be_bytes([b[0], b[1], b[2], b[3]]))
    }

    /// A count of things that take at least `size` bytes each: more than can follow is an error, so
    /// that nobody allocates for a lie. Read as unsigned, as PostgreSQL does.
    pub fn count(&mut self, size: usize) -> Result<usize> {
        let count = usize::from(self.int16()? as u16);
        if count * size > self.rest.len() {
            return Err(malformed("insufficient data left in message"));
        }
        Ok(count)
    }

    /// A string up to its zero byte, which is consumed.
    pub fn string(&mut self) -> Result<&'a [u8]> {
        match self.rest.iter().position(|b| *b == 0) {
            Some(end) => {
                let text = &self.rest[..end];
                self.rest = &self.rest[end + 1..];
                Ok(text)
            }
            None => Err(malformed("invalid string in message")),
        }
    }

    /// A value with its length before it; -1 is NULL.
    pub fn value(&mut self) -> Result<Option<&'a [u8]>> {
        match self.int32()? {
            -1 => Ok(None),
            length if length < 0 => Err(malformed("invalid argument size in message")),
            length => self.bytes(length as usize).map(Some),
        }
    }

    /// Everything that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// The message must end here.
    pub fn end(&self) -> Result<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(malformed("invalid message format")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_stop_at_the_end_of_the_message() {
        let mut r = Reader::new(&[0, 5, b'a', 0, 9]);
        assert_eq!(r.int16().unwrap(), 5);
        assert_eq!(r.string().unwrap(), b"a");
        assert!(r.end().is_err());
        let e = r.int32().unwrap_err();
        assert_eq!(e.code().as_str(), "08P01");
        assert_eq!(e.severity(), base::error::Severity::Error);
        assert_eq!(r.rest(), [9]);
        r.end().unwrap();
    }

    #[test]
    fn counts_and_lengths_that_lie_are_refused() {
        assert!(Reader::new(&[0xff, 0xff, 0, 0]).count(2).is_err());
        assert_eq!(Reader::new(&[0, 1, 0, 0]).count(2).unwrap(), 1);
        assert!(Reader::new(&[0xff, 0xff, 0xff, 0xfe]).value().is_err());
        assert_eq!(Reader::new(&[0xff; 4]).value().unwrap(), None);
        assert!(Reader::new(&[0x7f, 0xff, 0xff, 0xff, 1]).value().is_err());
        assert!(Reader::new(b"no end").string().is_err());
    }
}
