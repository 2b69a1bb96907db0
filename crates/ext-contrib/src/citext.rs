//! citext: texts that are compared without regard to upper and lower case.

use std::any::Any;
use std::cmp::Ordering;
use std::hash::Hasher;

use base::{Oid, Result, err};
use types::extension::Library;
use types::func::Body;
use types::open::{OpenType, OpenValue};
use types::{Datum, FormatContext, Text};

use crate::common::{Bodies, built_in};

/// The extension's code.
pub static LIBRARY: Library = Library {
    name: "citext",
    bodies,
    types: &[("citextin", &CiTextType)],
    silent: &["citextin", "citextout", "citextrecv"],
    ..Library::EMPTY
};

/// A value, with what it is compared by.
#[derive(Debug)]
struct CiText {
    ty: Oid,
    text: Text,
    folded: Box<str>,
}

impl CiText {
    fn new(ty: Oid, text: Text) -> CiText {
        let folded = folded(text.as_str());
        CiText { ty, text, folded }
    }
}

/// A text in lower case, letter by letter.
fn folded(text: &str) -> Box<str> {
    if text.is_ascii() {
        return text.to_ascii_lowercase().into();
    }
    let lower = |c: char| {
        let mut all = c.to_lowercase();
        match (all.next(), all.next()) {
            (Some(lower), None) => lower,
            _ => c,
        }
    };
    text.chars().map(lower).collect::<String>().into()
}

impl OpenValue for CiText {
    fn ty(&self) -> Oid {
        self.ty
    }

    fn write(&self, _cx: &FormatContext, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(self.text.as_str().as_bytes());
        Ok(())
    }

    fn send(&self, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(self.text.as_str().as_bytes());
        Ok(())
    }

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.text.as_str().as_bytes());
    }

    fn key(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.folded.as_bytes());
    }

    fn compare(&self, other: &dyn OpenValue) -> Ordering {
        match other.as_any().downcast_ref::<CiText>() {
            Some(other) => self.folded.cmp(&other.folded),
            None => Ordering::Equal,
        }
    }

    fn hash(&self, state: &mut dyn Hasher) {
        state.write(self.folded.as_bytes());
    }

    fn plain(&self) -> Option<Datum> {
        Some(Datum::Text(self.text.clone()))
    }

    fn heap_bytes(&self) -> usize {
        self.text.as_str().len() + self.folded.len() + size_of::<CiText>()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct CiTextType;

impl OpenType for CiTextType {
    fn input(&self, ty: Oid, _typmod: i32, text: &str, _cx: &FormatContext) -> Result<Datum> {
        Ok(Datum::open(CiText::new(ty, text.into())))
    }

    fn receive(&self, ty: Oid, _typmod: i32, bytes: &[u8], _cx: &FormatContext) -> Result<Datum> {
        let text = std::str::from_utf8(bytes).map_err(|_| {
            err!(CHARACTER_NOT_IN_REPERTOIRE, "invalid byte sequence for encoding \"UTF8\"")
        })?;
        Ok(Datum::open(CiText::new(ty, text.into())))
    }

    fn load(&self, ty: Oid, bytes: &[u8]) -> Option<Datum> {
        Some(Datum::open(CiText::new(ty, std::str::from_utf8(bytes).ok()?.into())))
    }

    fn plain_type(&self) -> Option<Oid> {
        Some(types::oids::TEXT)
    }

    fn from_plain(&self, ty: Oid, value: Datum) -> Datum {
        match value {
            Datum::Text(text) | Datum::Bpchar(text) => Datum::open(CiText::new(ty, text)),
            value => value,
        }
    }
}

/// The text of an argument, which may be of any kind of text.
fn text(value: &Datum) -> Datum {
    match value {
        Datum::Open(open) => open.0.plain().unwrap_or(Datum::Null),
        other => other.clone(),
    }
}

fn order(args: &[Datum]) -> Ordering {
    let folded = |d: &Datum| folded(text(d).as_str());
    match (&args[0], &args[1]) {
        (Datum::Open(a), Datum::Open(b)) => a.0.compare(&*b.0),
        (a, b) => folded(a).cmp(&folded(b)),
    }
}

fn with_texts(source: &str, args: &[Datum], cx: &FormatContext) -> Result<Datum> {
    let args: Vec<Datum> = args.iter().map(text).collect();
    built_in(source, &args, cx)
}

macro_rules! comparisons { ($($name:literal $test:ident)*) => {
    vec![$(($name, Body::Scalar(|args, _| Ok(Datum::Bool(order(args).$test()))))),*]
} }

/// Functions of the server, with texts in the places of values.
macro_rules! as_texts { ($($name:literal $source:literal)*) => {
    [$(($name, Body::Scalar(|args, cx| with_texts($source, args, cx)))),*]
} }

/// The same, whose result is a value.
macro_rules! to_values { ($($name:literal $source:literal)*) => {
    [$(($name, Body::Typed(|args, types, cx| {
        Ok(types::open::relabel(built_in($source, args, cx)?, types.result))
    }))),*]
} }

fn hash32(value: &Datum) -> u32 {
    let text = folded(text(value).as_str());
    text.bytes().fold(0x811c_9dc5_u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193))
}

fn bodies() -> Bodies {
    let mut out: Bodies = comparisons! {
        "citext_eq" is_eq "citext_ne" is_ne "citext_lt" is_lt
        "citext_le" is_le "citext_gt" is_gt "citext_ge" is_ge
        "citext_pattern_lt" is_lt "citext_pattern_le" is_le
        "citext_pattern_gt" is_gt "citext_pattern_ge" is_ge
    };
    let compared = Body::Scalar(|args, _| Ok(Datum::Int4(order(args) as i32)));
    out.push((
        "citextsend",
        Body::Scalar(|args, _| Ok(Datum::bytea(text(&args[0]).as_str().as_bytes()))),
    ));
    out.push(("citext_cmp", compared));
    out.push(("citext_pattern_cmp", compared));
    out.push(("citext_hash", Body::Scalar(|args, _| Ok(Datum::Int4(hash32(&args[0]) as i32)))));
    out.push((
        "citext_hash_extended",
        Body::Scalar(|args, _| {
            let seed = args[1].to_i64().unwrap_or_default();
            Ok(Datum::Int8(i64::from(hash32(&args[0])) ^ seed))
        }),
    ));
    out.push((
        "citext_smaller",
        Body::Scalar(|args, _| Ok(args[usize::from(order(args).is_gt())].clone())),
    ));
    out.push((
        "citext_larger",
        Body::Scalar(|args, _| Ok(args[usize::from(order(args).is_lt())].clone())),
    ));
    out.extend(as_texts! {
        "texticlike" "texticlike" "texticnlike" "texticnlike"
        "texticregexeq" "texticregexeq" "texticregexne" "texticregexne"
    });
    out.extend(
        to_values! { "rtrim1" "rtrim1" "booltext" "booltext" "network_show" "network_show" },
    );
    out
}
