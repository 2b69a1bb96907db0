use super::*;
use crate::testing::{Random, random_value, types};

#[test]
fn rows_decode_to_what_was_encoded() {
    let mut random = Random::new(1);
    for round in 0..300 {
        let columns: Vec<Oid> = (0..1 + round % 9)
            .map(|_| types()[random.below(types().len() as u64) as usize])
            .collect();
        let values: Vec<Datum> =
            columns
                .iter()
                .map(|ty| {
                    if random.below(5) == 0 { Datum::Null } else { random_value(*ty, &mut random) }
                })
                .collect();
        let layout = RowLayout::of_types(&columns);
        let mut bytes = Vec::new();
        encode(&layout, &values, &mut bytes).unwrap();
        let wanted: Vec<u16> = (0..columns.len() as u16).filter(|_| random.below(3) > 0).collect();
        let mut out = Vec::new();
        decode(&layout, &bytes, &wanted, &mut out).unwrap();
        let expected: Vec<Datum> = wanted.iter().map(|i| values[usize::from(*i)].clone()).collect();
        // NaN is not equal to itself in Rust.
        assert_eq!(format!("{out:?}"), format!("{expected:?}"));

        let mut batch: Vec<Column> =
            wanted.iter().map(|i| Column::new(columns[usize::from(*i)])).collect();
        decode_into(&layout, &bytes, &wanted, &mut batch).unwrap();
        decode_into(&layout, &bytes, &wanted, &mut batch).unwrap();
        for ((column, i), value) in batch.iter().zip(&wanted).zip(&expected) {
            assert_eq!(column.len(), 2);
            let back = column.get(1, columns[usize::from(*i)]);
            assert_eq!(format!("{back:?}"), format!("{value:?}"));
        }
    }
}

#[test]
fn columns_added_later_read_their_default() {
    let old = RowLayout::of_types(&[oids::INT4]);
    let mut bytes = Vec::new();
    encode(&old, &[Datum::Int4(7)], &mut bytes).unwrap();
    let new = RowLayout::new(vec![
        RowColumn { ty: oids::INT4, missing: Datum::Null },
        RowColumn { ty: oids::TEXT, missing: Datum::text("later") },
        RowColumn { ty: oids::INT4, missing: Datum::Null },
    ]);
    let mut out = Vec::new();
    decode(&new, &bytes, &[0, 1, 2], &mut out).unwrap();
    assert_eq!(out, [Datum::Int4(7), Datum::text("later"), Datum::Null]);
}

#[test]
fn damaged_rows_are_errors_and_no_panics() {
    let columns = [oids::INT4, oids::TEXT, oids::NUMERIC, oids::INT4 /* after varying ones */];
    let layout = RowLayout::of_types(&columns);
    let values = [Datum::Int4(1), Datum::text("abc"), Numeric::from(12).into(), Datum::Int4(2)];
    let mut bytes = Vec::new();
    encode(&layout, &values, &mut bytes).unwrap();
    for len in 0..bytes.len() {
        let cut = decode(&layout, &bytes[..len], &[0, 1, 2, 3], &mut Vec::new());
        assert_eq!(cut.unwrap_err().code(), base::sqlstate::DATA_CORRUPTED, "{len} bytes");
    }
    let mut random = Random::new(3);
    for _ in 0..2000 {
        let mut broken = bytes.clone();
        let at = random.below(broken.len() as u64) as usize;
        broken[at] = random.next() as u8;
        let _ = decode(&layout, &broken, &[0, 1, 2, 3], &mut Vec::new());
    }
}

#[test]
fn an_account_row_is_small() {
    let layout = RowLayout::of_types(&[oids::INT4, oids::INT4, oids::INT4, oids::BPCHAR]);
    let values =
        [Datum::Int4(1), Datum::Int4(1), Datum::Int4(0), Datum::Bpchar(" ".repeat(84).into())];
    let mut bytes = Vec::new();
    encode(&layout, &values, &mut bytes).unwrap();
    assert_eq!(bytes.len(), 2 + 12 + 1 + 84);
}
