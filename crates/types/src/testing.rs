//! Random values for tests: a small generator with a seed, and one value of any type.

use std::sync::Arc;

use base::Oid;

use crate::datum::{Bits, Bound, Datum, Inet, Multirange, Numeric, Range};
use crate::jsonb::Json;
use crate::oids;

/// Numbers that look random (splitmix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Often near zero, sometimes anywhere.
    fn int(&mut self) -> i64 {
        let v = self.next() as i64;
        v >> (self.below(8) * 8)
    }
}

/// The types that the codecs are tried with.
pub(crate) fn types() -> &'static [Oid] {
    use oids::*;
    &[
        BOOL,
        INT2,
        INT4,
        INT8,
        FLOAT4,
        FLOAT8,
        NUMERIC,
        TEXT,
        VARCHAR,
        BPCHAR,
        NAME,
        CHAR,
        BYTEA,
        DATE,
        TIME,
        TIMESTAMP,
        TIMESTAMPTZ,
        INTERVAL,
        UUID,
        OID,
        REGCLASS,
        TID,
        Oid(1007), // int4[]
        Oid(1009), // text[]
        RECORD,
        TIMETZ,
        MONEY,
        INET,
        CIDR,
        MACADDR,
        MACADDR8,
        VARBIT,
        JSONB,
        INT4RANGE,
        NUMRANGE,
        INT4MULTIRANGE,
        Oid(3807), // jsonb[]
    ]
}

/// A value of a type.
pub(crate) fn random_value(ty: Oid, r: &mut Random) -> Datum {
    match ty {
        oids::BOOL => Datum::Bool(r.below(2) == 0),
        oids::INT2 => Datum::Int2(r.int() as i16),
        oids::INT4 => Datum::Int4(r.int() as i32),
        oids::INT8 => Datum::Int8(r.int()),
        oids::FLOAT4 => Datum::Float4(random_float(r) as f32),
        oids::FLOAT8 => Datum::Float8(random_float(r)),
        oids::NUMERIC => Datum::Numeric(random_numeric(r)),
        oids::TEXT | oids::VARCHAR | oids::NAME => Datum::from(random_text(r)),
        oids::BPCHAR => Datum::Bpchar(random_text(r).into()),
        oids::CHAR => Datum::Char(r.next() as u8),
        oids::BYTEA => {
            let len = r.below(20);
            let bytes: Vec<u8> = (0..len).map(|_| (r.next() >> 9) as u8 & 3).collect();
            Datum::bytea(&bytes)
        }
        oids::DATE => Datum::Date(r.int() as i32),
        oids::TIME => Datum::Time(r.below(86_400_000_000) as i64),
        oids::TIMESTAMP => Datum::Timestamp(r.int()),
        oids::TIMESTAMPTZ => Datum::Timestamptz(r.int()),
        oids::INTERVAL => Datum::interval(r.below(5) as i32 - 2, r.below(90) as i32 - 40, r.int()),
        oids::UUID => {
            let bytes = [r.next().to_be_bytes(), r.next().to_be_bytes()].concat();
            Datum::Uuid(Arc::new(std::array::from_fn(|i| bytes[i])))
        }
        oids::OID | oids::REGCLASS => Datum::Oid(r.int() as u32),
        oids::TID => {
            Datum::Tid(base::TupleId { block: r.below(9) as u32, offset: r.below(99) as u16 })
        }
        Oid(1007) => random_array(oids::INT4, r),
        Oid(1009) => random_array(oids::TEXT, r),
        oids::RECORD => Datum::record(
            Arc::new(crate::datum::Shape::anonymous([oids::INT4, oids::TEXT].into_iter())),
            vec![random_value(oids::INT4, r), random_value(oids::TEXT, r)],
        ),
        oids::TIMETZ => {
            Datum::Timetz(r.below(86_400_000_000) as i64, (r.below(5) as i32 - 2) * 3600)
        }
        oids::MONEY => Datum::Money(r.int()),
        oids::INET | oids::CIDR => Datum::Inet(random_inet(ty == oids::CIDR, r)),
        oids::MACADDR => Datum::Macaddr(std::array::from_fn(|_| r.below(3) as u8)),
        oids::MACADDR8 => Datum::Macaddr8(std::array::from_fn(|_| r.below(3) as u8)),
        oids::VARBIT => {
            let len = r.below(20);
            let bits: Vec<bool> = (0..len).map(|_| r.below(3) == 0).collect();
            Datum::Bits(Bits::collect(bits.into_iter()).into())
        }
        oids::JSONB => Datum::jsonb(random_json(3, r)),
        Oid(3807) => random_array(oids::JSONB, r),
        oids::INT4RANGE | oids::NUMRANGE => random_range(ty, r).into(),
        oids::INT4MULTIRANGE => {
            let ranges = (0..r.below(4)).map(|_| random_range(oids::INT4RANGE, r)).collect();
            Multirange::new(ty, ranges).into()
        }
        other => panic!("no random {other}"),
    }
}

/// A network whose bits to the right of the mask are clear, so that it suits cidr, too.
fn random_inet(cidr: bool, r: &mut Random) -> Inet {
    let v6 = r.below(3) == 0;
    let mut inet = Inet { addr: [0; 16], bits: 0, v6, cidr };
    let width = crate::io::width(v6);
    inet.addr[..usize::from(width / 8)].fill_with(|| r.below(3) as u8 * 85);
    inet.bits = r.below(u64::from(width) + 1) as u8;
    if cidr {
        crate::io::clear_host(&mut inet);
    }
    inet
}

fn random_json(depth: u32, r: &mut Random) -> Json {
    let kinds = if depth == 0 { 4 } else { 6 };
    match r.below(kinds) {
        0 => Json::Null,
        1 => Json::Bool(r.below(2) == 0),
        2 => match random_numeric(r) {
            n if n.is_finite() => Json::Number(n),
            _ => Json::Number(Numeric::ONE),
        },
        3 => Json::string(&random_text(r)),
        4 => Json::array((0..r.below(3)).map(|_| random_json(depth - 1, r)).collect()),
        _ => {
            let member = |r: &mut Random| (random_text(r).into(), random_json(depth - 1, r));
            Json::object((0..r.below(3)).map(|_| member(r)).collect())
        }
    }
}

fn random_range(ty: Oid, r: &mut Random) -> Range {
    let bound = |r: &mut Random| {
        let value = match r.below(5) {
            0 => Datum::Null,
            _ if ty == oids::INT4RANGE => Datum::Int4(r.below(20) as i32),
            _ => Datum::Numeric(Numeric::new(r.below(20) as i64, r.below(2) as u16)),
        };
        Bound::new(value, r.below(2) == 0)
    };
    Range::new(ty, bound(r), bound(r)).unwrap_or_else(|_| Range::empty(ty))
}

fn random_array(element: Oid, r: &mut Random) -> Datum {
    let len = r.below(4);
    let item = |r: &mut Random| match r.below(4) {
        0 => Datum::Null,
        1 => match element {
            oids::INT4 => Datum::Int4(1),
            oids::JSONB => Datum::jsonb(Json::string("a")),
            _ => Datum::text("a"),
        },
        _ => random_value(element, r),
    };
    Datum::array(element, (0..len).map(|_| item(r)).collect())
}

fn random_float(r: &mut Random) -> f64 {
    match r.below(12) {
        0 => f64::NAN,
        1 => f64::INFINITY,
        2 => f64::NEG_INFINITY,
        3 => 0.0,
        4 => f64::from_bits(r.next()),
        _ => r.int() as f64 / 1024.0,
    }
}

fn random_text(r: &mut Random) -> String {
    const LETTERS: [char; 8] = ['a', 'b', 'c', ' ', 'z', 'ä', '日', '\u{1}'];
    let len = if r.below(6) == 0 { 150 } else { r.below(8) };
    (0..len).map(|_| LETTERS[r.below(8) as usize]).collect()
}

pub(crate) fn random_numeric(r: &mut Random) -> Numeric {
    match r.below(16) {
        0 => Numeric::NaN,
        1 => Numeric::Infinity,
        2 => Numeric::NegInfinity,
        3 => Numeric::ZERO,
        4..8 => {
            let digits: String =
                (0..1 + r.below(40)).map(|_| (b'0' + r.below(10) as u8) as char).collect();
            let sign = if r.below(2) == 0 { "-" } else { "" };
            Numeric::parse(&format!("{sign}{digits}e-{}", r.below(30))).unwrap()
        }
        _ => Numeric::new(r.int(), r.below(12) as u16),
    }
}
