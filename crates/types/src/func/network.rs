//! Functions and operators of inet, cidr, macaddr and macaddr8.

use base::{Result, err};

use super::{Body, NamedBody, S};
use crate::datum::{Datum, Inet};
use crate::io::{clear_host, host, widen, width};

fn inet(i: Inet) -> Datum {
    Datum::Inet(i)
}

/// The address with its network's bits only.
fn network(i: &Inet) -> Inet {
    let mut out = Inet { cidr: true, ..*i };
    clear_host(&mut out);
    out
}

/// Bits 1 to the left of the mask.
fn netmask(i: &Inet) -> Inet {
    let mut out = Inet { addr: [0xff; 16], cidr: false, ..*i };
    clear_host(&mut out);
    cut(&mut out);
    Inet { bits: width(i.v6), ..out }
}

/// Version 4 has four bytes.
fn cut(i: &mut Inet) {
    if !i.v6 {
        i.addr[4..].fill(0);
    }
}

fn map(a: &Inet, b: &Inet, f: fn(u8, u8) -> u8) -> Inet {
    let mut out = *a;
    for (byte, (x, y)) in out.addr.iter_mut().zip(a.addr.iter().zip(&b.addr)) {
        *byte = f(*x, *y);
    }
    cut(&mut out);
    out
}

fn combine(a: &[Datum], what: &str, f: fn(u8, u8) -> u8) -> Result<Datum> {
    let (x, y) = (a[0].as_inet(), a[1].as_inet());
    if x.v6 != y.v6 {
        return Err(err!(INVALID_PARAMETER_VALUE, "cannot {what} inet values of different sizes"));
    }
    Ok(inet(Inet { bits: x.bits.max(y.bits), cidr: false, ..map(x, y, f) }))
}

/// Whether `a` lies in the network of `b`; `proper`: and is smaller.
fn within(a: &Datum, b: &Datum, proper: bool) -> bool {
    let (a, b) = (a.as_inet(), b.as_inet());
    let fits = if proper { a.bits > b.bits } else { a.bits >= b.bits };
    a.v6 == b.v6 && fits && network(&Inet { bits: b.bits, ..*a }).addr == network(b).addr
}

fn overlap(a: &Inet, b: &Inet) -> bool {
    let bits = a.bits.min(b.bits);
    let cut = |i: &Inet| network(&Inet { bits, ..*i }).addr;
    a.v6 == b.v6 && cut(a) == cut(b)
}

fn to_number(i: &Inet) -> u128 {
    let number = u128::from_be_bytes(i.addr);
    if i.v6 { number } else { number >> 96 }
}

fn of_number(i: &Inet, number: u128) -> Inet {
    let bits = if i.v6 { number } else { number << 96 };
    Inet { addr: bits.to_be_bytes(), cidr: false, ..*i }
}

fn plus(i: &Inet, by: i64) -> Result<Datum> {
    let limit = if i.v6 { u128::MAX } else { u128::from(u32::MAX) };
    let sum = to_number(i).checked_add_signed(by.into()).filter(|n| *n <= limit);
    sum.map(|n| inet(of_number(i, n)))
        .ok_or_else(|| err!(NUMERIC_VALUE_OUT_OF_RANGE, "result is out of range"))
}

fn minus(a: &Inet, b: &Inet) -> Result<Datum> {
    if a.v6 != b.v6 {
        return Err(err!(
            INVALID_PARAMETER_VALUE,
            "cannot subtract inet values of different sizes"
        ));
    }
    let (x, y) = (to_number(a), to_number(b));
    let (big, negative) = if x >= y { (x - y, false) } else { (y - x, true) };
    let value = i64::try_from(big).ok().map(|v| if negative { -v } else { v });
    value.map(Into::into).ok_or_else(|| err!(NUMERIC_VALUE_OUT_OF_RANGE, "result is out of range"))
}

fn set_masklen(i: &Inet, bits: i32) -> Result<Datum> {
    let bits = if bits == -1 { i32::from(width(i.v6)) } else { bits };
    if !(0..=i32::from(width(i.v6))).contains(&bits) {
        return Err(err!(INVALID_PARAMETER_VALUE, "invalid mask length: {bits}"));
    }
    let out = Inet { bits: bits as u8, ..*i };
    Ok(inet(if i.cidr { network(&out) } else { out }))
}

/// The smallest network with both.
fn merge(a: &Inet, b: &Inet) -> Result<Datum> {
    if a.v6 != b.v6 {
        return Err(err!(
            INVALID_PARAMETER_VALUE,
            "cannot merge addresses from different families"
        ));
    }
    let differing = u128::from_be_bytes(a.addr) ^ u128::from_be_bytes(b.addr);
    let bits = (differing.leading_zeros() as u8).min(a.bits).min(b.bits);
    Ok(inet(network(&Inet { bits, ..*a })))
}

/// A network without the octets that are all its mask's right side.
fn abbreviate(i: &Inet) -> String {
    if !i.cidr {
        let mask = if i.bits == width(i.v6) { String::new() } else { format!("/{}", i.bits) };
        return format!("{}{mask}", host(i));
    }
    if i.v6 {
        return format!("{}/{}", host(i), i.bits);
    }
    let count = usize::from(i.bits).div_ceil(8).max(1);
    let octets: Vec<String> = i.addr[..count].iter().map(u8::to_string).collect();
    format!("{}/{}", octets.join("."), i.bits)
}

fn shown(i: &Inet) -> String {
    format!("{}/{}", host(i), i.bits)
}

macro_rules! bytewise {
    ($getter:ident, $variant:ident, $f:expr) => {
        S(|a, _| {
            let (x, y) = (a[0].$getter(), a[1].$getter());
            Ok(Datum::$variant(std::array::from_fn(|i| $f(x[i], y[i]))))
        })
    };
}

/// The bodies of this family.
pub(super) fn bodies() -> Vec<NamedBody> {
    let mut all = parts();
    all.extend(operators());
    all.extend(hardware());
    all
}

fn parts() -> Vec<NamedBody> {
    const SET_MASK: Body = S(|a, _| set_masklen(a[0].as_inet(), a[1].as_int4()));
    const ABBREV: Body = S(|a, _| Ok(abbreviate(a[0].as_inet()).into()));
    vec![
        ("inet_abbrev", ABBREV),
        ("cidr_abbrev", ABBREV),
        ("network_host", S(|a, _| Ok(host(a[0].as_inet()).into()))),
        ("network_show", S(|a, _| Ok(shown(a[0].as_inet()).into()))),
        ("network_family", S(|a, _| Ok(if a[0].as_inet().v6 { 6 } else { 4 }.into()))),
        ("network_masklen", S(|a, _| Ok(i32::from(a[0].as_inet().bits).into()))),
        ("network_netmask", S(|a, _| Ok(inet(netmask(a[0].as_inet()))))),
        (
            "network_hostmask",
            S(|a, _| {
                let mask = netmask(a[0].as_inet());
                Ok(inet(map(&mask, &mask, |x, _| !x)))
            }),
        ),
        ("network_network", S(|a, _| Ok(inet(network(a[0].as_inet()))))),
        (
            "network_broadcast",
            S(|a, _| {
                let i = a[0].as_inet();
                Ok(inet(Inet { cidr: false, ..map(i, &netmask(i), |x, mask| x | !mask) }))
            }),
        ),
        ("inet_set_masklen", SET_MASK),
        ("cidr_set_masklen", SET_MASK),
        ("inet_to_cidr", S(|a, _| Ok(inet(network(a[0].as_inet()))))),
        ("inet_merge", S(|a, _| merge(a[0].as_inet(), a[1].as_inet()))),
        ("inet_same_family", S(|a, _| Ok((a[0].as_inet().v6 == a[1].as_inet().v6).into()))),
    ]
}

fn operators() -> Vec<NamedBody> {
    vec![
        ("network_sub", S(|a, _| Ok(within(&a[0], &a[1], true).into()))),
        ("network_subeq", S(|a, _| Ok(within(&a[0], &a[1], false).into()))),
        ("network_sup", S(|a, _| Ok(within(&a[1], &a[0], true).into()))),
        ("network_supeq", S(|a, _| Ok(within(&a[1], &a[0], false).into()))),
        ("network_overlap", S(|a, _| Ok(overlap(a[0].as_inet(), a[1].as_inet()).into()))),
        ("inetand", S(|a, _| combine(a, "AND", |x, y| x & y))),
        ("inetor", S(|a, _| combine(a, "OR", |x, y| x | y))),
        (
            "inetnot",
            S(|a, _| {
                let i = a[0].as_inet();
                Ok(inet(Inet { cidr: false, ..map(i, i, |x, _| !x) }))
            }),
        ),
        ("inetpl", S(|a, _| plus(a[0].as_inet(), a[1].as_int8()))),
        ("sql_int8pl_inet", S(|a, _| plus(a[1].as_inet(), a[0].as_int8()))),
        ("inetmi_int8", S(|a, _| plus(a[0].as_inet(), a[1].as_int8().wrapping_neg()))),
        ("inetmi", S(|a, _| minus(a[0].as_inet(), a[1].as_inet()))),
    ]
}

fn hardware() -> Vec<NamedBody> {
    vec![
        ("macaddr_and", bytewise!(as_macaddr, Macaddr, |x: u8, y: u8| x & y)),
        ("macaddr_or", bytewise!(as_macaddr, Macaddr, |x: u8, y: u8| x | y)),
        ("macaddr_not", S(|a, _| Ok(Datum::Macaddr(a[0].as_macaddr().map(|x| !x))))),
        (
            "macaddr_trunc",
            S(|a, _| {
                let [x, y, z, ..] = a[0].as_macaddr();
                Ok(Datum::Macaddr([x, y, z, 0, 0, 0]))
            }),
        ),
        ("macaddr8_and", bytewise!(as_macaddr8, Macaddr8, |x: u8, y: u8| x & y)),
        ("macaddr8_or", bytewise!(as_macaddr8, Macaddr8, |x: u8, y: u8| x | y)),
        ("macaddr8_not", S(|a, _| Ok(Datum::Macaddr8(a[0].as_macaddr8().map(|x| !x))))),
        (
            "macaddr8_trunc",
            S(|a, _| {
                let [x, y, z, ..] = a[0].as_macaddr8();
                Ok(Datum::Macaddr8([x, y, z, 0, 0, 0, 0, 0]))
            }),
        ),
        (
            "macaddr8_set7bit",
            S(|a, _| {
                let mut m = a[0].as_macaddr8();
                m[0] |= 2;
                Ok(Datum::Macaddr8(m))
            }),
        ),
        ("macaddrtomacaddr8", S(|a, _| Ok(Datum::Macaddr8(widen(a[0].as_macaddr()))))),
        (
            "macaddr8tomacaddr",
            S(|a, _| {
                let [x, y, z, 0xff, 0xfe, u, v, w] = a[0].as_macaddr8() else {
                    return Err(err!(
                        NUMERIC_VALUE_OUT_OF_RANGE,
                        "macaddr8 data out of range to convert to macaddr"
                    )
                    .hint("Only addresses that have FF and FE as values in the 4th and 5th bytes from the left, for example xx:xx:xx:ff:fe:xx:xx:xx, are eligible to be converted from macaddr8 to macaddr."));
                };
                Ok(Datum::Macaddr([x, y, z, u, v, w]))
            }),
        ),
    ]
}
