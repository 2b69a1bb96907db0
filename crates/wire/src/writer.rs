//! Appends messages to the session's output buffer.

/// A message in the making: its length is filled in when it ends.
pub struct Message<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Message<'a> {
    /// Begins a message of this type.
    pub fn new(out: &'a mut Vec<u8>, tag: u8) -> Message<'a> {
        let start = out.len() + 1;
        out.extend_from_slice(&[tag, 0, 0, 0, 0]);
        Message { out, start }
    }

    /// Adds a byte.
    pub fn byte(&mut self, value: u8) -> &mut Self {
        self.out.push(value);
        self
    }

    /// Adds a 16-bit number.
    pub fn int16(&mut self, value: i16) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    /// Adds a 32-bit number.
    pub fn int32(&mut self, value: i32) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    /// Adds bytes as they are.
    pub fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.out.extend_from_slice(value);
        self
    }

    /// Adds a string and its zero byte; a zero inside would end it early and is left out.
    pub fn string(&mut self, value: &str) -> &mut Self {
        if value.as_bytes().contains(&0) {
            self.out.extend(value.bytes().filter(|b| *b != 0));
        } else {
            self.out.extend_from_slice(value.as_bytes());
        }
        self.byte(0)
    }

    /// Ends the message.
    pub fn end(&mut self) {
        let length = (self.out.len() - self.start) as u32;
        self.out[self.start..self.start + 4].copy_from_slice(&length.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_counts_itself_but_not_the_type() {
        let mut out = b"before".to_vec();
        Message::new(&mut out, b'S').string("a\0b").int16(1).end();
        assert_eq!(out, b"beforeS\0\0\0\x09ab\0\0\x01");
    }
}
