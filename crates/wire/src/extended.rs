//! The extended protocol: Parse, Bind, Describe, Execute, Close. (Flush and Sync have no body.)

use base::{Oid, Result};

use crate::reader::{Reader, malformed};

/// A prepared statement or a portal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementOrPortal {
    /// `S`.
    Statement,
    /// `P`.
    Portal,
}

/// Parse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parse<'a> {
    /// The statement's name; empty for the unnamed one.
    pub name: &'a [u8],
    /// Its text.
    pub text: &'a [u8],
    /// Declared types of the first parameters; 0 leaves one open.
    pub types: Vec<Oid>,
}

/// Bind. Formats and values are read on demand, so that binding allocates nothing here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind<'a> {
    /// The portal's name; empty for the unnamed one.
    pub portal: &'a [u8],
    /// The statement's name.
    pub statement: &'a [u8],
    /// Formats of the parameters.
    pub formats: Formats<'a>,
    /// Number of parameters.
    pub count: usize,
    values: &'a [u8],
    /// Formats of the result's columns.
    pub results: Formats<'a>,
}

/// Format codes as sent: none (all text), one for all, or one each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Formats<'a>(&'a [u8]);

impl<'a> Formats<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Formats<'a>> {
        let count = r.count(2)?;
        let codes = Formats(r.bytes(count * 2)?);
        match codes.iter().find(|c| !matches!(c, 0 | 1)) {
            Some(code) => Err(malformed(format!("unsupported format code: {code}"))),
            None => Ok(codes),
        }
    }

    /// Number of codes.
    pub fn len(self) -> usize {
        self.0.len() / 2
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The codes.
    pub fn iter(self) -> impl Iterator<Item = i16> + 'a {
        self.0.chunks_exact(2).map(|c| i16::from_be_bytes([c[0], c[1]]))
    }

    /// Whether the thing with this number is binary.
    pub fn binary(self, index: usize) -> bool {
        match self.len() {
            0 => false,
            1 => self.0[1] == 1,
            _ => self.0.get(index * 2 + 1) == Some(&1),
        }
    }
}

impl<'a> Bind<'a> {
    /// The parameters' bytes in order; None for NULL.
    pub fn values(&self) -> impl Iterator<Item = Result<Option<&'a [u8]>>> {
        let mut r = Reader::new(self.values);
        (0..self.count).map(move |_| r.value())
    }
}

/// Reads a Parse.
pub fn parse(body: &[u8]) -> Result<Parse<'_>> {
    let mut r = Reader::new(body);
    let (name, text) = (r.string()?, r.string()?);
    let count = r.count(4)?;
    let types = (0..count).map(|_| Ok(Oid(r.int32()? as u32))).collect::<Result<_>>()?;
    r.end()?;
    Ok(Parse { name, text, types })
}

/// Reads a Bind; checks that its values are all there.
pub fn bind(body: &[u8]) -> Result<Bind<'_>> {
    let mut r = Reader::new(body);
    let (portal, statement) = (r.string()?, r.string()?);
    let formats = Formats::read(&mut r)?;
    let count = r.count(4)?;
    if formats.len() > 1 && formats.len() != count {
        return Err(malformed(format!(
            "bind message has {} parameter formats but {count} parameters",
            formats.len()
        )));
    }
    let values = r.rest();
    let mut r = Reader::new(values);
    for _ in 0..count {
        r.value()?;
    }
    let results = Formats::read(&mut r)?;
    r.end()?;
    Ok(Bind { portal, statement, formats, count, values, results })
}

/// A function called by its oid. The arguments stand as a Bind's values do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCall<'a> {
    /// The function's oid.
    pub function: u32,
    /// Its arguments, and the format of its result.
    pub arguments: Bind<'a>,
}

/// Reads a FunctionCall.
///
/// # Errors
/// `08P01`.
pub fn function_call(body: &[u8]) -> Result<FunctionCall<'_>> {
    let mut r = Reader::new(body);
    let function = r.int32()? as u32;
    let formats = Formats::read(&mut r)?;
    let count = r.count(4)?;
    if formats.len() > 1 && formats.len() != count {
        return Err(malformed(format!(
            "function call message contains {} argument formats but {count} arguments",
            formats.len()
        )));
    }
    let values = r.rest();
    let mut r = Reader::new(values);
    for _ in 0..count {
        r.value()?;
    }
    let results = Formats(r.bytes(2)?);
    if results.0[0] != 0 || results.0[1] > 1 {
        return Err(malformed("unsupported format code"));
    }
    r.end()?;
    let arguments = Bind { portal: &[], statement: &[], formats, count, values, results };
    Ok(FunctionCall { function, arguments })
}

/// Reads the target and name of a Describe or Close.
pub fn target(body: &[u8]) -> Result<(StatementOrPortal, &[u8])> {
    let mut r = Reader::new(body);
    let target = match r.byte()? {
        b'S' => StatementOrPortal::Statement,
        b'P' => StatementOrPortal::Portal,
        other => {
            return Err(malformed(format!("invalid DESCRIBE or CLOSE message subtype {other}")));
        }
    };
    let name = r.string()?;
    r.end()?;
    Ok((target, name))
}

/// Reads an Execute: the portal's name, and the most rows wanted (0: all; a negative number too).
pub fn execute(body: &[u8]) -> Result<(&[u8], u64)> {
    let mut r = Reader::new(body);
    let portal = r.string()?;
    let rows = r.int32()?;
    r.end()?;
    Ok((portal, rows.max(0) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_carries_types() {
        let p = parse(b"s\0SELECT $1\0\0\x02\0\0\0\x17\0\0\0\0").unwrap();
        assert_eq!((p.name, p.text), (&b"s"[..], &b"SELECT $1"[..]));
        assert_eq!(p.types, [Oid(23), Oid(0)]);
        assert!(parse(b"s\0SELECT $1\0\0\x02\0\0\0\x17").is_err());
        assert!(parse(b"s\0SELECT $1\0\0\0x").is_err());
        assert!(parse(b"s\0SELECT").is_err());
    }

    #[test]
    fn bind_carries_values_and_formats() {
        let body = b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x01x\xff\xff\xff\xff\0\x02\0\0\0\x01";
        let b = bind(body).unwrap();
        let values: Vec<_> = b.values().map(Result::unwrap).collect();
        assert_eq!(values, [Some(&b"x"[..]), None]);
        assert!(b.formats.binary(0) && b.formats.binary(1));
        assert!(!b.results.binary(0) && b.results.binary(1));
        for cut in 0..body.len() {
            assert!(bind(&body[..cut]).is_err(), "{cut} bytes");
        }
        assert!(bind(b"\0\0\0\x01\0\x02\0\0\0\0").is_err(), "format 2");
        assert!(bind(b"\0\0\0\x02\0\0\0\0\0\x01\0\0\0\0\0\0").is_err(), "2 formats, 1 value");
    }

    #[test]
    fn targets_and_limits() {
        assert_eq!(target(b"Sx\0").unwrap(), (StatementOrPortal::Statement, &b"x"[..]));
        assert!(target(b"Qx\0").is_err());
        assert_eq!(execute(b"p\0\0\0\0\x05").unwrap(), (&b"p"[..], 5));
        assert_eq!(execute(b"p\0\xff\xff\xff\xff").unwrap().1, 0);
        assert!(execute(b"p\0\0\0\0").is_err());
    }
}
