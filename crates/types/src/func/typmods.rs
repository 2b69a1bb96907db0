//! Typmods as `format_type` appends them: the length, precision or fields that a column's type has.

use super::{NamedBody, S};
use crate::datum::Datum;

/// Above a length or precision in a typmod, by tradition.
const HEADER: i32 = 4;

fn length(typmod: i32) -> String {
    if typmod > HEADER { format!("({})", typmod - HEADER) } else { String::new() }
}

fn bits(typmod: i32) -> String {
    if typmod >= 0 { format!("({typmod})") } else { String::new() }
}

fn numeric(typmod: i32) -> String {
    if typmod < HEADER {
        return String::new();
    }
    let packed = typmod - HEADER;
    let scale = ((packed & 0x7ff) ^ 1024) - 1024;
    format!("({},{scale})", packed >> 16 & 0xffff)
}

fn zoned(typmod: i32, with: bool) -> String {
    format!("{} {} time zone", bits(typmod), if with { "with" } else { "without" })
}

/// The bodies of this family.
pub(super) fn bodies() -> Vec<NamedBody> {
    vec![
        ("bpchartypmodout", S(|a, _| Ok(Datum::text(&length(a[0].as_int4()))))),
        ("varchartypmodout", S(|a, _| Ok(Datum::text(&length(a[0].as_int4()))))),
        ("bittypmodout", S(|a, _| Ok(Datum::text(&bits(a[0].as_int4()))))),
        ("varbittypmodout", S(|a, _| Ok(Datum::text(&bits(a[0].as_int4()))))),
        ("numerictypmodout", S(|a, _| Ok(Datum::text(&numeric(a[0].as_int4()))))),
        ("timetypmodout", S(|a, _| Ok(Datum::text(&zoned(a[0].as_int4(), false))))),
        ("timetztypmodout", S(|a, _| Ok(Datum::text(&zoned(a[0].as_int4(), true))))),
        ("timestamptypmodout", S(|a, _| Ok(Datum::text(&zoned(a[0].as_int4(), false))))),
        ("timestamptztypmodout", S(|a, _| Ok(Datum::text(&zoned(a[0].as_int4(), true))))),
    ]
}
