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
    /// A part of a transaction that is open begins; its id.
    Part(u32),
    /// The part ends.
    PartEnd,
    /// A change of such a part, and the id of its subtransaction.
    PartChange(u32, RemoteChange),
    /// A transaction that came in parts has committed: its id, and where its commit record ends.
    PartsCommit(u32, u64),
    /// A transaction that came in parts is rolled back from the first change of the second id on.
    PartsAbort(u32, u32),
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

/// Reads a message; `within`: it is one of a part of an open transaction, where changes say whose they are.
///
/// # Errors
/// `08P01`.
pub fn read(bytes: &[u8], within: bool) -> Result<Message> {
    let mut from = Reader(bytes);
    let tag = from.u8()?;
    if !within || !matches!(tag, b'R' | b'Y' | b'I' | b'U' | b'D' | b'T' | b'M') {
        return message(tag, from);
    }
    let xid = from.u32()?;
    Ok(match message(tag, from)? {
        Message::Change(change) => Message::PartChange(xid, change),
        other => other,
    })
}

fn message(tag: u8, mut from: Reader<'_>) -> Result<Message> {
    Ok(match tag {
        b'S' => Message::Part(from.u32()?),
        b'E' => Message::PartEnd,
        b'c' => {
            let xid = from.u32()?;
            from.u8()?;
            from.u64()?;
            Message::PartsCommit(xid, from.u64()?)
        }
        b'A' => Message::PartsAbort(from.u32()?, from.u32()?),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_parts_say_whose_they_are() {
        let mut insert = vec![b'I'];
        insert.extend(7_u32.to_be_bytes());
        insert.extend(16384_u32.to_be_bytes());
        insert.extend(b"N\0\x01n");
        match read(&insert, true).unwrap() {
            Message::PartChange(7, RemoteChange::Insert(16384, cells)) => {
                assert_eq!(cells.len(), 1)
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(read(b"S\0\0\0\x07\x01", false).unwrap(), Message::Part(7)));
        assert!(matches!(
            read(b"A\0\0\0\x07\0\0\0\x08", false).unwrap(),
            Message::PartsAbort(7, 8)
        ));
        assert!(read(b"c\0\0", false).is_err());
    }
}
