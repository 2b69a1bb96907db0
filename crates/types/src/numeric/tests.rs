use super::*;
use crate::testing::{Random, random_numeric};

/// A number as an integer over 10^40, for checking against plain arithmetic.
fn exact(n: &Numeric) -> Option<BigInt> {
    n.parts().map(|(v, s)| v * pow10(40 - s))
}

#[test]
fn sums_and_products_are_exact() {
    let mut r = Random::new(11);
    for _ in 0..3000 {
        let (a, b) = (random_numeric(&mut r), random_numeric(&mut r));
        let (Some(x), Some(y)) = (exact(&a), exact(&b)) else { continue };
        let sum = a.add(&b).unwrap();
        assert_eq!(exact(&sum).unwrap(), &x + &y, "{a} + {b}");
        assert_eq!(sum.scale(), a.scale().max(b.scale()));
        assert_eq!(exact(&a.sub(&b).unwrap()).unwrap(), &x - &y, "{a} - {b}");
        let product = a.mul(&b).unwrap();
        let (v, s) = product.parts().unwrap();
        assert_eq!(v * pow10(80 - s), &x * &y, "{a} * {b}");
        assert_eq!(a.compare(&b), x.cmp(&y), "{a} <> {b}");
    }
}

#[test]
fn quotients_are_rounded_once() {
    let mut r = Random::new(12);
    for _ in 0..2000 {
        let (a, b) = (random_numeric(&mut r), random_numeric(&mut r));
        if !a.is_finite() || !b.is_finite() || b.is_zero() {
            continue;
        }
        let q = a.div(&b).unwrap();
        // |a - q * b| is at most half of the last digit times |b|.
        let rest = a.sub(&q.mul(&b).unwrap()).unwrap().abs();
        let half = Numeric::new(5, q.scale().unwrap() as u16 + 1).mul(&b).unwrap().abs();
        assert!(rest.compare(&half).is_le(), "{a} / {b} = {q}");
        let rem = a.rem(&b).unwrap();
        let back = a.div_trunc(&b).unwrap().mul(&b).unwrap().add(&rem).unwrap();
        assert!(back.compare(&a).is_eq(), "{a} % {b} = {rem}");
    }
}

#[test]
fn every_form_reads_back() {
    let mut r = Random::new(13);
    for _ in 0..2000 {
        let n = random_numeric(&mut r);
        assert_eq!(Numeric::parse(&n.to_string()).unwrap(), n);
        let (mut wire, mut row) = (Vec::new(), Vec::new());
        n.send(&mut wire);
        assert_eq!(Numeric::receive(&wire).unwrap(), n);
        n.store(&mut row);
        assert_eq!(Numeric::load(&row).unwrap(), n);
    }
}

#[test]
fn the_binary_form_is_postgresqls() {
    // select encode(numeric_send(…), 'hex')
    for (text, hex) in [
        ("0", "0000000000000000"),
        ("1", "0001000000000000 0001"),
        ("-1.5", "0002000040000001 0001 1388"),
        ("10000", "0001000100000000 0001"),
        ("0.0001", "0001ffff00000004 0001"),
        ("12345.678", "0003000100000003 0001 0929 1a7c"),
        ("NaN", "00000000c0000000"),
        ("0.00", "0000000000000002"),
        ("100000000.00", "0001000200000002 0001"),
    ] {
        let mut out = Vec::new();
        Numeric::parse(text).unwrap().send(&mut out);
        let shown: String = out.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(shown, hex.replace(' ', ""), "{text}");
    }
}

#[test]
fn small_and_big_meet_without_a_seam() {
    let n = |s: &str| Numeric::parse(s).unwrap();
    let edge = n("9223372036854775807");
    assert!(matches!(edge, Numeric::Small { .. }));
    let over = edge.add(&Numeric::ONE).unwrap();
    assert!(matches!(over, Numeric::Big(_)));
    assert_eq!(over.sub(&Numeric::ONE).unwrap(), edge);
    assert_eq!(over.neg(), n("-9223372036854775808"));
    assert!(matches!(over.neg(), Numeric::Small { .. }));
    assert_eq!(over.neg().neg(), over);
    assert_eq!(over.neg().rem(&n("-1")).unwrap(), n("0"));
}
