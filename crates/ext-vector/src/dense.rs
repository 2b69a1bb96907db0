//! `vector` and `halfvec`: all numbers in order.

use std::any::Any;

use base::{Oid, Result, bail, err};
use types::oids::FLOAT4;
use types::open::{OpenType, OpenValue};
use types::{Datum, FormatContext};

use crate::half;

/// Numbers of a vector, at most.
pub const DIMENSIONS_MAX: usize = 16_000;

/// A value of either type.
#[derive(Clone, Debug)]
pub struct Dense {
    pub ty: Oid,
    /// It is a halfvec: each number is a half's.
    pub half: bool,
    pub values: Vec<f32>,
}

/// The type's name in messages.
pub fn word(half: bool) -> &'static str {
    if half { "halfvec" } else { "vector" }
}

/// A number as the type keeps it.
fn kept(number: f32, half: bool) -> f32 {
    if half { half::to_float(half::from_float(number)) } else { number }
}

impl Dense {
    /// A value of numbers that were checked or computed.
    ///
    /// # Errors
    /// `22000` for none, `22003` for what overflowed, `54000` for too many.
    pub fn new(ty: Oid, half: bool, values: Vec<f32>) -> Result<Datum> {
        let name = word(half);
        if values.is_empty() {
            bail!(DATA_EXCEPTION, "{name} must have at least 1 dimension");
        }
        if values.len() > DIMENSIONS_MAX {
            bail!(
                PROGRAM_LIMIT_EXCEEDED,
                "{name} cannot have more than {DIMENSIONS_MAX} dimensions"
            );
        }
        let values: Vec<f32> = values.into_iter().map(|n| kept(n, half)).collect();
        if values.iter().any(|n| n.is_nan()) {
            bail!(DATA_EXCEPTION, "NaN not allowed in {name}");
        }
        if values.iter().any(|n| n.is_infinite()) {
            bail!(DATA_EXCEPTION, "infinite value not allowed in {name}");
        }
        Ok(Datum::open(Dense { ty, half, values }))
    }

    /// The same of a computed value, where too great numbers are an overflow.
    ///
    /// # Errors
    /// `22003`.
    pub fn computed(&self, values: Vec<f32>) -> Result<Datum> {
        if values.iter().any(|n| !kept(*n, self.half).is_finite()) {
            bail!(NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow");
        }
        Dense::new(self.ty, self.half, values)
    }
}

impl OpenValue for Dense {
    fn ty(&self) -> Oid {
        self.ty
    }

    fn write(&self, cx: &FormatContext, out: &mut Vec<u8>) -> Result<()> {
        out.push(b'[');
        for (n, value) in self.values.iter().enumerate() {
            if n > 0 {
                out.push(b',');
            }
            types::io::output(FLOAT4, &Datum::Float4(*value), cx, out)?;
        }
        out.push(b']');
        Ok(())
    }

    fn send(&self, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&(self.values.len() as u16).to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        for value in &self.values {
            match self.half {
                true => out.extend_from_slice(&half::from_float(*value).to_be_bytes()),
                false => out.extend_from_slice(&value.to_be_bytes()),
            }
        }
        Ok(())
    }

    fn store(&self, out: &mut Vec<u8>) {
        for value in &self.values {
            match self.half {
                true => out.extend_from_slice(&half::from_float(*value).to_le_bytes()),
                false => out.extend_from_slice(&value.to_le_bytes()),
            }
        }
    }

    fn key(&self, out: &mut Vec<u8>) {
        for value in &self.values {
            let bits = (value + 0.0).to_bits();
            let bits = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
            out.extend_from_slice(&bits.to_be_bytes());
        }
    }

    fn heap_bytes(&self) -> usize {
        size_of::<Dense>() + 4 * self.values.len()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The maker of values.
pub struct DenseType {
    pub half: bool,
}

/// Checks a value's dimensions against a column's.
///
/// # Errors
/// `22000`.
pub fn expect(typmod: i32, dimensions: usize) -> Result<()> {
    if typmod >= 0 && dimensions != typmod as usize {
        bail!(DATA_EXCEPTION, "expected {typmod} dimensions, not {dimensions}");
    }
    Ok(())
}

/// The typmod of dimensions that were written behind a type's name.
///
/// # Errors
/// `22023`.
pub fn typmod(values: &[i32], name: &str, most: usize) -> Result<i32> {
    match values {
        [n] if *n < 1 => {
            bail!(INVALID_PARAMETER_VALUE, "dimensions for type {name} must be at least 1")
        }
        [n] if *n as usize > most => {
            bail!(INVALID_PARAMETER_VALUE, "dimensions for type {name} cannot exceed {most}")
        }
        [n] => Ok(*n),
        _ => bail!(INVALID_PARAMETER_VALUE, "invalid type modifier"),
    }
}

/// A number of a text, with what messages call the type.
///
/// # Errors
/// `22P02`, `22003`, `22000`.
pub fn number(text: &str, whole: &str, name: &str, half: bool) -> Result<f32> {
    let wrong =
        || err!(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type {name}: \"{whole}\"");
    let text = text.trim();
    let first = text.trim_start_matches(['+', '-']).chars().next();
    let named = first.is_some_and(|c| c.is_ascii_alphabetic());
    let number: f32 = text.parse().map_err(|_| wrong())?;
    let number = kept(number, half);
    if number.is_nan() {
        bail!(DATA_EXCEPTION, "NaN not allowed in {name}");
    }
    if number.is_infinite() {
        if named {
            bail!(DATA_EXCEPTION, "infinite value not allowed in {name}");
        }
        bail!(NUMERIC_VALUE_OUT_OF_RANGE, "\"{text}\" is out of range for type {name}");
    }
    Ok(number)
}

impl OpenType for DenseType {
    fn input(&self, ty: Oid, typmod: i32, text: &str, _cx: &FormatContext) -> Result<Datum> {
        let name = word(self.half);
        let wrong = |detail: &str| {
            let error = err!(
                INVALID_TEXT_REPRESENTATION,
                "invalid input syntax for type {name}: \"{text}\""
            );
            if detail.is_empty() { error } else { error.detail(detail) }
        };
        let inner = text.trim();
        let inner = inner
            .strip_prefix('[')
            .ok_or_else(|| wrong("Vector contents must start with \"[\"."))?;
        let (inner, rest) = inner.split_once(']').ok_or_else(|| wrong(""))?;
        if !rest.trim().is_empty() {
            return Err(wrong("Junk after closing right brace."));
        }
        let mut values = Vec::new();
        if !inner.trim().is_empty() {
            for part in inner.split(',') {
                if values.len() == DIMENSIONS_MAX {
                    bail!(
                        PROGRAM_LIMIT_EXCEEDED,
                        "{name} cannot have more than {DIMENSIONS_MAX} dimensions"
                    );
                }
                values.push(number(part, text, name, self.half)?);
            }
        }
        expect(typmod, values.len())?;
        Dense::new(ty, self.half, values)
    }

    fn receive(&self, ty: Oid, typmod: i32, bytes: &[u8], _cx: &FormatContext) -> Result<Datum> {
        let wrong = || err!(INVALID_BINARY_REPRESENTATION, "insufficient data left in message");
        let (head, rest) = bytes.split_first_chunk::<4>().ok_or_else(wrong)?;
        let count = usize::from(u16::from_be_bytes([head[0], head[1]]));
        let values: Vec<f32> = match self.half {
            true => {
                let numbers = rest.as_chunks::<2>().0.iter();
                numbers.map(|b| half::to_float(u16::from_be_bytes(*b))).collect()
            }
            false => rest.as_chunks::<4>().0.iter().map(|b| f32::from_be_bytes(*b)).collect(),
        };
        if values.len() != count {
            return Err(wrong());
        }
        expect(typmod, count)?;
        Dense::new(ty, self.half, values)
    }

    fn load(&self, ty: Oid, bytes: &[u8]) -> Option<Datum> {
        let values: Vec<f32> = match self.half {
            true => {
                let numbers = bytes.as_chunks::<2>().0.iter();
                numbers.map(|b| half::to_float(u16::from_le_bytes(*b))).collect()
            }
            false => bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
        };
        (!values.is_empty()).then(|| Datum::open(Dense { ty, half: self.half, values }))
    }

    fn fit(&self, _ty: Oid, typmod: i32, value: Datum, _explicit: bool) -> Result<Datum> {
        if let Datum::Open(open) = &value
            && let Some(own) = open.get::<Dense>()
        {
            expect(typmod, own.values.len())?;
        }
        Ok(value)
    }

    fn typmod(&self, values: &[i32]) -> Option<Result<i32>> {
        Some(typmod(values, word(self.half), DIMENSIONS_MAX))
    }
}
