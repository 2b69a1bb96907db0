//! One column of many keys decoded at once: the type is looked at once for all of them.

use base::Oid;

use super::{KeyOrder, VALUE, decode};
use crate::batch::{Column, Vector};

/// Reads a column back from keys that stand in `bytes` and goes on in each: `at` says where the column
/// begins, and then where the next one does. None for bytes that are no key and for types that
/// [`decode`] does not know.
pub fn decode_column(
    ty: Oid,
    order: KeyOrder,
    bytes: &[u8],
    at: &mut [u32],
    to: &mut Column,
) -> Option<()> {
    let plain = at.iter().all(|at| bytes.get(*at as usize) == Some(&VALUE));
    // A descending value has all bits inverted.
    let turn = |mask: i64| if order.descending { !mask } else { mask };
    let rows = to.len() + at.len();
    match (&mut to.data, ty) {
        (Vector::Int4(v), _) if plain => {
            let mask = turn(i32::MIN.into()) as i32;
            fixed(bytes, at, v, |raw| i32::from_be_bytes(raw) ^ mask)?;
        }
        (Vector::Int8(v), _) if plain => {
            let mask = turn(i64::MIN);
            fixed(bytes, at, v, |raw| i64::from_be_bytes(raw) ^ mask)?;
        }
        (Vector::Int2(v), _) if plain => {
            let mask = turn(i16::MIN.into()) as i16;
            fixed(bytes, at, v, |raw| i16::from_be_bytes(raw) ^ mask)?;
        }
        _ => {
            for at in at {
                let (value, used) = decode(ty, bytes.get(*at as usize..)?, order)?;
                to.push(value).ok()?;
                *at += used as u32;
            }
            return Some(());
        }
    }
    if !to.nulls.is_empty() {
        to.nulls.resize(rows, false);
    }
    Some(())
}

/// Reads values of so many bytes, each behind a marker.
fn fixed<const N: usize, T>(
    bytes: &[u8],
    at: &mut [u32],
    to: &mut Vec<T>,
    value: impl Fn([u8; N]) -> T,
) -> Option<()> {
    to.reserve(at.len());
    for at in at {
        let raw = bytes.get(*at as usize + 1..)?.first_chunk::<N>()?;
        to.push(value(*raw));
        *at += 1 + N as u32;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::encode;
    use super::*;
    use crate::datum::Datum;
    use crate::oids;

    #[test]
    fn columns_of_keys_come_back_in_both_orders() {
        let texts = |n: i32| match n % 3 {
            0 => Datum::Null,
            _ => Datum::text(&format!("a\0{n}")),
        };
        let rows: Vec<[Datum; 4]> = [i32::MIN, -1, 0, 7, i32::MAX]
            .into_iter()
            .map(|n| [Datum::Int4(n), texts(n), Datum::Int8(-i64::from(n)), Datum::Int2(n as i16)])
            .collect();
        let types = [oids::INT4, oids::TEXT, oids::INT8, oids::INT2];
        for descending in [false, true] {
            let order = KeyOrder { descending, nulls_first: descending, ..KeyOrder::default() };
            // Something stands before the first key.
            let (mut bytes, mut at) = (vec![9; 3], Vec::new());
            for row in &rows {
                at.push(bytes.len() as u32);
                for (ty, value) in types.iter().zip(row) {
                    encode(*ty, value, order, &mut bytes).unwrap();
                }
            }
            for (n, ty) in types.iter().enumerate() {
                let mut column = Column::new(*ty);
                column.push_null();
                decode_column(*ty, order, &bytes, &mut at, &mut column).unwrap();
                for (row, values) in rows.iter().enumerate() {
                    assert_eq!(
                        format!("{:?}", column.get(row + 1, *ty)),
                        format!("{:?}", values[n])
                    );
                }
            }
            assert_eq!(at.last().map(|at| *at as usize), Some(bytes.len()));
            // Nothing is left to read.
            let mut column = Column::new(oids::INT4);
            assert!(decode_column(oids::INT4, order, &bytes, &mut at[4..], &mut column).is_none());
        }
    }
}
