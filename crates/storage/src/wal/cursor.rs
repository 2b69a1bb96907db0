//! Bytes that are read one after the other.

use base::{Fork, Result, err};

/// Little-endian numbers from the front of a slice, with every length checked.
pub struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    /// The next `n` bytes.
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8]> {
        match self.0.split_at_checked(n) {
            Some((head, rest)) => {
                self.0 = rest;
                Ok(head)
            }
            None => Err(malformed()),
        }
    }
    /// One byte.
    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.bytes(1)?[0])
    }
    /// Two bytes.
    pub fn u16(&mut self) -> Result<u16> {
        let b = self.bytes(2)?;
        Ok(u16::from_le_bytes([b[0], b[1]]))
    }
    /// Four bytes.
    pub fn u32(&mut self) -> Result<u32> {
        let b = self.bytes(4)?;
        Ok(u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    }
    /// Eight bytes.
    pub fn u64(&mut self) -> Result<u64> {
        let (low, high) = (self.u32()?, self.u32()?);
        Ok(u64::from(high) << 32 | u64::from(low))
    }
    /// One of the three forks.
    pub fn fork(&mut self) -> Result<Fork> {
        match self.u8()? {
            0 => Ok(Fork::Main),
            1 => Ok(Fork::Fsm),
            2 => Ok(Fork::Vm),
            _ => Err(malformed()),
        }
    }
    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cold]
pub(crate) fn malformed() -> base::Error {
    err!(DATA_CORRUPTED, "malformed record in the write-ahead log")
}
