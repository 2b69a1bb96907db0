//! Descriptions of rows and parameters. (DataRow is written value by value by the session, which
//! knows the types: [`begin_row`], values with their lengths, [`end_row`].)

use base::Oid;

use crate::writer::Message;

/// A column as RowDescription tells it.
#[derive(Clone, Copy, Debug)]
pub struct Field<'a> {
    /// Name.
    pub name: &'a str,
    /// The table it comes from, or 0.
    pub table: Oid,
    /// Its number there, or 0.
    pub column: i16,
    /// Type.
    pub ty: Oid,
    /// `typlen`.
    pub len: i16,
    /// Typmod.
    pub typmod: i32,
    /// Whether values come in binary.
    pub binary: bool,
}

impl Field<'_> {
    /// The bytes that follow the name, with the zero byte that ends it.
    fn fixed(&self) -> [u8; 19] {
        let mut all = [0; 19];
        all[1..5].copy_from_slice(&self.table.0.to_be_bytes());
        all[5..7].copy_from_slice(&self.column.to_be_bytes());
        all[7..11].copy_from_slice(&self.ty.0.to_be_bytes());
        all[11..13].copy_from_slice(&self.len.to_be_bytes());
        all[13..17].copy_from_slice(&self.typmod.to_be_bytes());
        all[18] = u8::from(self.binary);
        all
    }
}

/// RowDescription.
pub fn description<'a>(out: &mut Vec<u8>, fields: impl ExactSizeIterator<Item = Field<'a>>) {
    let mut message = Message::new(out, b'T');
    message.int16(fields.len() as i16);
    for f in fields {
        // No identifier of SQL has a zero byte.
        message.bytes(f.name.as_bytes()).bytes(&f.fixed());
    }
    message.end();
}

/// ParameterDescription.
pub fn parameters(out: &mut Vec<u8>, types: &[Oid]) {
    let mut message = Message::new(out, b't');
    message.int16(types.len() as i16);
    for ty in types {
        message.int32(ty.0 as i32);
    }
    message.end();
}

/// Begins a DataRow; returns where, for [`end_row`].
pub fn begin_row(out: &mut Vec<u8>, columns: usize) -> usize {
    let start = out.len();
    let count = (columns as u16).to_be_bytes();
    out.extend_from_slice(&[b'D', 0, 0, 0, 0, count[0], count[1]]);
    start
}

/// Ends the DataRow that began at `start`.
pub fn end_row(out: &mut [u8], start: usize) {
    let length = (out.len() - start - 1) as u32;
    out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
}

/// Adds a NULL.
pub fn null(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0xff; 4]);
}

/// Adds a value that is at hand.
pub fn value(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Adds a value that `write` appends; on its error nothing is added.
///
/// # Errors
/// Those of `write`.
pub fn value_with(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> base::Result<()>,
) -> base::Result<()> {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    if let Err(error) = write(out) {
        out.truncate(start);
        return Err(error);
    }
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// Adds a number as text.
pub fn decimal_value(out: &mut Vec<u8>, number: i64) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    let mut digits = [0; 20];
    if number < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(crate::response::decimal(number.unsigned_abs(), &mut digits));
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_holds_values_with_their_lengths() {
        let mut out = b"x".to_vec();
        let start = begin_row(&mut out, 4);
        null(&mut out);
        value(&mut out, b"ab");
        decimal_value(&mut out, i64::MIN);
        assert!(
            value_with(&mut out, |o| {
                o.push(1);
                Err(base::Error::internal("no"))
            })
            .is_err()
        );
        value_with(&mut out, |o| {
            o.push(b'v');
            Ok(())
        })
        .unwrap();
        end_row(&mut out, start);
        let mut want = b"xD\0\0\0\x2d\0\x04\xff\xff\xff\xff\0\0\0\x02ab\0\0\0\x14".to_vec();
        want.extend(b"-9223372036854775808\0\0\0\x01v");
        assert_eq!(out, want);
    }

    #[test]
    fn a_description_has_eighteen_bytes_a_column_besides_the_name() {
        let mut out = Vec::new();
        let f = Field {
            name: "a",
            table: Oid(7),
            column: 2,
            ty: Oid(23),
            len: 4,
            typmod: -1,
            binary: false,
        };
        description(&mut out, [f].into_iter());
        let want = b"T\0\0\0\x1a\0\x01a\0\0\0\0\x07\0\x02\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";
        assert_eq!(out, want);
    }
}
