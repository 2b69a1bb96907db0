//! The messages of `pgoutput` as a subscriber reads them.

use base::{Result, err};
use exec::apply::{Cell, RemoteChange, RemoteTable};

/// A message.
#[derive(Debug)]
pub enum Message {
    /// A transaction begins.
    Begin,
    /// A transaction has committed: where its commit record ends.
    Commit(u64),
    /// A table.
    Table(RemoteTable),
    /// A change.
    Change(RemoteChange),
    /// Anything that says nothing about rows.
    Other,
}

struct Reader<'a>(&'a [u8]);

fn broken() -> base::Error {
    err!(PROTOCOL_VIOLATION, "a message of the logical replication stream is cut short")
}

impl<'a> Reader<'a> {
    fn bytes(&mut self, n: usize) -> Result<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n).ok_or_else(broken)?;
        self.0 = rest;
        Ok(head)
    }

    fn u8(&mut self) -> Result<u8> {
        Ok(self.bytes(1)?[0])
    }

    fn u16(&mut self) -> Result<u16> {
        let b = self.bytes(2)?;
        Ok(u16::from_be_bytes([b[0], b[1]]))
    }

    fn u32(&mut self) -> Result<u32> {
        let b = self.bytes(4)?;
        Ok(u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
    }

    fn u64(&mut self) -> Result<u64> {
        Ok(u64::from(self.u32()?) << 32 | u64::from(self.u32()?))
    }

    fn text(&mut self) -> Result<String> {
        let end = self.0.iter().position(|b| *b == 0).ok_or_else(broken)?;
        let text = String::from_utf8_lossy(&self.0[..end]).into_owned();
        self.0 = &self.0[end + 1..];
        Ok(text)
    }

    fn tuple(&mut self) -> Result<Vec<Cell>> {
        let count = self.u16()?;
        let mut out = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            out.push(match self.u8()? {
                b'n' => Cell::Null,
                b'u' => Cell::Unchanged,
                b't' => {
                    let length = self.u32()? as usize;
                    Cell::Text(String::from_utf8_lossy(self.bytes(length)?).into_owned())
                }
                _ => {
                    return Err(err!(
                        PROTOCOL_VIOLATION,
                        "a value in binary form was not asked for"
                    ));
                }
            });
        }
        Ok(out)
    }
}

/// Reads a message.
///
/// # Errors
/// `08P01`.
pub fn read(bytes: &[u8]) -> Result<Message> {
    let mut from = Reader(bytes);
    Ok(match from.u8()? {
        b'B' => Message::Begin,
        b'C' => {
            from.u8()?;
            from.u64()?;
            Message::Commit(from.u64()?)
        }
        b'R' => {
            let (oid, schema, name) = (from.u32()?, from.text()?, from.text()?);
            let identity = char::from(from.u8()?);
            let mut columns = Vec::new();
            for _ in 0..from.u16()? {
                let key = from.u8()? & 1 != 0;
                let column = from.text()?;
                from.u32()?;
                from.u32()?;
                columns.push((column, key));
            }
            Message::Table(RemoteTable { oid, schema, name, identity, columns })
        }
        b'I' => {
            let oid = from.u32()?;
            from.u8()?;
            Message::Change(RemoteChange::Insert(oid, from.tuple()?))
        }
        b'U' => {
            let oid = from.u32()?;
            let old = match from.u8()? {
                b'N' => None,
                _ => {
                    let old = from.tuple()?;
                    from.u8()?;
                    Some(old)
                }
            };
            Message::Change(RemoteChange::Update(oid, old, from.tuple()?))
        }
        b'D' => {
            let oid = from.u32()?;
            from.u8()?;
            Message::Change(RemoteChange::Delete(oid, from.tuple()?))
        }
        b'T' => {
            let (count, flags) = (from.u32()?, from.u8()?);
            let mut oids = Vec::new();
            for _ in 0..count {
                oids.push(from.u32()?);
            }
            Message::Change(RemoteChange::Truncate(oids, flags & 1 != 0, flags & 2 != 0))
        }
        _ => Message::Other,
    })
}
