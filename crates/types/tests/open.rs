//! A type that another crate defines goes all the ways that values go.

use std::any::Any;
use std::cmp::Ordering;

use base::{Oid, Result, err};
use types::func::Body;
use types::io::{self, FormatContext, TypeIo};
use types::key::{self, KeyOrder};
use types::open::{self, OpenType, OpenValue, Package};
use types::row::{self, RowLayout};
use types::{Column, Datum};

const FRACTION: Oid = Oid(9001);
const FRACTIONS: Oid = Oid(9002);

/// Parts of a thousand.
#[derive(Debug)]
struct Fraction(u16);

impl OpenValue for Fraction {
    fn ty(&self) -> Oid {
        FRACTION
    }
    fn write(&self, _cx: &FormatContext, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(format!("{}/1000", self.0).as_bytes());
        Ok(())
    }
    fn send(&self, out: &mut Vec<u8>) -> Result<()> {
        self.store(out);
        Ok(())
    }
    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_be_bytes());
    }
    fn heap_bytes(&self) -> usize {
        2
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct Fractions;

impl OpenType for Fractions {
    fn input(&self, _ty: Oid, _typmod: i32, text: &str, _cx: &FormatContext) -> Result<Datum> {
        match text.strip_suffix("/1000").and_then(|n| n.parse().ok()) {
            Some(n) => Ok(Datum::open(Fraction(n))),
            None => Err(err!(INVALID_TEXT_REPRESENTATION, "no fraction: \"{text}\"")),
        }
    }
    fn receive(&self, ty: Oid, _typmod: i32, bytes: &[u8], _cx: &FormatContext) -> Result<Datum> {
        let wrong = || err!(INVALID_BINARY_REPRESENTATION, "no fraction");
        self.load(ty, bytes).ok_or_else(wrong)
    }
    fn load(&self, _ty: Oid, bytes: &[u8]) -> Option<Datum> {
        Some(Datum::open(Fraction(u16::from_be_bytes(bytes.try_into().ok()?))))
    }
    fn delimiter(&self) -> u8 {
        b';'
    }
}

static PACKAGE: Package = Package {
    name: "fraction",
    types: "9001\tfraction\tfraction\t9002\t0\t2\tU\tf\tf\ts\n9002\t_fraction\tfraction[]\t0\t9001\t-1\tA\tf\tf\ti\n",
    functions: "fraction_add\t9003\tfraction_add\ts-i-\t9001\t9001 9001\t\t\n\
                fraction_out\t9004\tfraction_out\ts-i-\t2275\t9001\t\t\n",
    operators: "9005\t+\t9001\t9001\t9001\t9003\t9005\t0\n",
    casts: "9001\t25\ta\ti\t0\n",
    bodies: || vec![("fraction_add", Body::Scalar(add))],
    open_types: &[(FRACTION, &Fractions)],
    ..Package::EMPTY
};

fn add(a: &[Datum], _cx: &FormatContext) -> Result<Datum> {
    Ok(Datum::open(Fraction(a[0].as_open::<Fraction>().0 + a[1].as_open::<Fraction>().0)))
}

#[test]
fn a_value_of_a_package_goes_all_ways() {
    open::register(&[&PACKAGE]);
    let cx = FormatContext::default();
    let read = |text: &str| io::input(FRACTION, -1, text, &cx).unwrap();
    let (small, large) = (read("7/1000"), read("300/1000"));
    assert_eq!(io::input(FRACTION, -1, "x", &cx).unwrap_err().message(), "no fraction: \"x\"");
    assert_eq!(TypeIo::by_name("fraction").map(|t| t.array), Some(FRACTIONS));
    // Order, keys, hash by equality.
    assert_eq!(types::order::compare(&small, &large), Ordering::Less);
    let mut keys = [Vec::new(), Vec::new()];
    key::encode(FRACTION, &small, KeyOrder::default(), &mut keys[0]).unwrap();
    key::encode(FRACTION, &large, KeyOrder::default(), &mut keys[1]).unwrap();
    assert!(keys[0] < keys[1]);
    // Rows, in a column of its own and inside arrays.
    let both = io::input(FRACTIONS, -1, "{7/1000;NULL;300/1000}", &cx).unwrap();
    assert_eq!(io::to_text(FRACTIONS, &both, &cx).unwrap(), "{7/1000;NULL;300/1000}");
    let layout = RowLayout::of_types(&[FRACTION, FRACTIONS, types::oids::INT4]);
    let values = [large.clone(), both, Datum::Int4(3)];
    let (mut bytes, mut back) = (Vec::new(), Vec::new());
    row::encode(&layout, &values, &mut bytes).unwrap();
    row::decode(&layout, &bytes, &[0, 1, 2], &mut back).unwrap();
    assert_eq!(back, values);
    let mut column = Column::new(FRACTION);
    column.push(large.clone()).unwrap();
    assert_eq!(column.get(0, FRACTION), large);
    // Binary.
    let mut sent = Vec::new();
    io::send(FRACTION, &large, &mut sent).unwrap();
    assert_eq!(io::receive(FRACTION, -1, &sent, &cx).unwrap(), large);
    assert!(io::receive(FRACTION, -1, &[1], &cx).is_err());
    // Functions, operators and casts are found as the own ones are.
    let plus = types::func::operators_named("+").iter().find(|o| o.left == FRACTION).unwrap();
    let sum = open::call(types::func::function(plus.function).unwrap(), &[small, large], &cx);
    assert_eq!(io::to_text(FRACTION, &sum.unwrap(), &cx).unwrap(), "307/1000");
    assert!(types::func::cast(FRACTION, types::oids::TEXT).is_some());
    assert!(types::func::functions_named("fraction_out")[0].oid == Oid(9004));
}
