//! `sparsevec`: the numbers that are not zero, by their places.

use std::any::Any;
use std::cmp::Ordering;

use base::{Oid, Result, bail, err};
use types::oids::FLOAT4;
use types::open::{OpenType, OpenValue};
use types::{Datum, FormatContext};

use crate::dense;

/// Dimensions, at most.
const DIMENSIONS_MAX: usize = 1_000_000_000;
/// Numbers that are not zero, at most.
const NUMBERS_MAX: usize = 16_000;

/// A value.
#[derive(Clone, Debug)]
pub struct Sparse {
    pub ty: Oid,
    pub dims: usize,
    /// Places from 0, in order, with their numbers.
    pub items: Vec<(u32, f32)>,
}

impl Sparse {
    /// A value of numbers at places, in any order; zeros are left out.
    ///
    /// # Errors
    /// `22000`, `54000`.
    pub fn new(ty: Oid, dims: usize, mut items: Vec<(u32, f32)>) -> Result<Datum> {
        if dims < 1 {
            bail!(DATA_EXCEPTION, "sparsevec must have at least 1 dimension");
        }
        if dims > DIMENSIONS_MAX {
            bail!(
                PROGRAM_LIMIT_EXCEEDED,
                "sparsevec cannot have more than {DIMENSIONS_MAX} dimensions"
            );
        }
        items.sort_by_key(|item| item.0);
        if items.windows(2).any(|two| two[0].0 == two[1].0) {
            bail!(DATA_EXCEPTION, "sparsevec indices must not contain duplicates");
        }
        if items.iter().any(|item| item.0 as usize >= dims) {
            bail!(DATA_EXCEPTION, "sparsevec indices must be less than or equal to dimensions");
        }
        items.retain(|item| item.1 != 0.0);
        if items.len() > NUMBERS_MAX {
            bail!(
                PROGRAM_LIMIT_EXCEEDED,
                "sparsevec cannot have more than {NUMBERS_MAX} non-zero elements"
            );
        }
        if items.iter().any(|item| item.1.is_nan()) {
            bail!(DATA_EXCEPTION, "NaN not allowed in sparsevec");
        }
        if items.iter().any(|item| item.1.is_infinite()) {
            bail!(DATA_EXCEPTION, "infinite value not allowed in sparsevec");
        }
        Ok(Datum::open(Sparse { ty, dims, items }))
    }
}

impl OpenValue for Sparse {
    fn ty(&self) -> Oid {
        self.ty
    }

    fn write(&self, cx: &FormatContext, out: &mut Vec<u8>) -> Result<()> {
        out.push(b'{');
        for (n, (at, value)) in self.items.iter().enumerate() {
            if n > 0 {
                out.push(b',');
            }
            out.extend_from_slice(format!("{}:", at + 1).as_bytes());
            types::io::output(FLOAT4, &Datum::Float4(*value), cx, out)?;
        }
        out.extend_from_slice(format!("}}/{}", self.dims).as_bytes());
        Ok(())
    }

    fn send(&self, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&(self.dims as i32).to_be_bytes());
        out.extend_from_slice(&(self.items.len() as i32).to_be_bytes());
        out.extend_from_slice(&[0; 4]);
        self.items.iter().for_each(|item| out.extend_from_slice(&item.0.to_be_bytes()));
        self.items.iter().for_each(|item| out.extend_from_slice(&item.1.to_be_bytes()));
        Ok(())
    }

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.dims as u32).to_le_bytes());
        for (at, value) in &self.items {
            out.extend_from_slice(&at.to_le_bytes());
            out.extend_from_slice(&value.to_le_bytes());
        }
    }

    /// As the dense vector's: a place that isn't there is a zero, which stands between negative and positive numbers.
    fn key(&self, out: &mut Vec<u8>) {
        for (at, value) in &self.items {
            let bits = value.to_bits();
            match *value < 0.0 {
                true => {
                    out.push(0);
                    out.extend_from_slice(&at.to_be_bytes());
                    out.extend_from_slice(&(!bits).to_be_bytes());
                }
                false => {
                    out.push(2);
                    out.extend_from_slice(&(!at).to_be_bytes());
                    out.extend_from_slice(&bits.to_be_bytes());
                }
            }
        }
        out.push(1);
        out.extend_from_slice(&(self.dims as u32).to_be_bytes());
    }

    fn compare(&self, other: &dyn OpenValue) -> Ordering {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        self.key(&mut a);
        other.key(&mut b);
        a.cmp(&b)
    }

    fn heap_bytes(&self) -> usize {
        size_of::<Sparse>() + 8 * self.items.len()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The maker of values.
pub struct SparseType;

impl OpenType for SparseType {
    fn input(&self, ty: Oid, typmod: i32, text: &str, _cx: &FormatContext) -> Result<Datum> {
        let wrong = || {
            err!(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type sparsevec: \"{text}\"")
        };
        let inner = text
            .trim()
            .strip_prefix('{')
            .ok_or_else(|| wrong().detail("Vector contents must start with \"{\"."))?;
        let (inner, dims) = inner.split_once('}').ok_or_else(wrong)?;
        let dims = dims
            .trim_start()
            .strip_prefix('/')
            .ok_or_else(|| wrong().detail("Unexpected end of input."))?;
        let dims: i64 = dims.trim().parse().map_err(|_| wrong())?;
        let dims = usize::try_from(dims).unwrap_or(0);
        let mut items = Vec::new();
        if !inner.trim().is_empty() {
            for part in inner.split(',') {
                let (at, value) = part.split_once(':').ok_or_else(wrong)?;
                let at: i64 = at.trim().parse().map_err(|_| wrong())?;
                if at < 1 {
                    bail!(DATA_EXCEPTION, "sparsevec indices must be greater than zero");
                }
                let at = u32::try_from(at - 1).map_err(|_| wrong())?;
                items.push((at, dense::number(value, text, "sparsevec", false)?));
            }
        }
        dense::expect(typmod, dims)?;
        Sparse::new(ty, dims, items)
    }

    fn receive(&self, ty: Oid, typmod: i32, bytes: &[u8], _cx: &FormatContext) -> Result<Datum> {
        let wrong = || err!(INVALID_BINARY_REPRESENTATION, "insufficient data left in message");
        let (words, _) = bytes.as_chunks::<4>();
        let [dims, count, _, rest @ ..] = words else { return Err(wrong()) };
        let (dims, count) = (u32::from_be_bytes(*dims), u32::from_be_bytes(*count) as usize);
        let (places, numbers) = rest.split_at_checked(count).ok_or_else(wrong)?;
        if numbers.len() != count {
            return Err(wrong());
        }
        let item = |(at, value): (&[u8; 4], &[u8; 4])| {
            (u32::from_be_bytes(*at), f32::from_be_bytes(*value))
        };
        dense::expect(typmod, dims as usize)?;
        Sparse::new(ty, dims as usize, places.iter().zip(numbers).map(item).collect())
    }

    fn load(&self, ty: Oid, bytes: &[u8]) -> Option<Datum> {
        let (words, _) = bytes.as_chunks::<4>();
        let (dims, rest) = words.split_first()?;
        let (pairs, _) = rest.as_chunks::<2>();
        let item =
            |[at, value]: &[[u8; 4]; 2]| (u32::from_le_bytes(*at), f32::from_le_bytes(*value));
        let items = pairs.iter().map(item).collect();
        Some(Datum::open(Sparse { ty, dims: u32::from_le_bytes(*dims) as usize, items }))
    }

    fn fit(&self, _ty: Oid, typmod: i32, value: Datum, _explicit: bool) -> Result<Datum> {
        if let Datum::Open(open) = &value
            && let Some(own) = open.get::<Sparse>()
        {
            dense::expect(typmod, own.dims)?;
        }
        Ok(value)
    }

    fn typmod(&self, values: &[i32]) -> Option<Result<i32>> {
        Some(dense::typmod(values, "sparsevec", DIMENSIONS_MAX))
    }
}
