//! The few fields of a certificate that the server itself looks at (RFC 5280, section 4.1). Whether it is
//! good is rustls's business; what is read here has been found good, or is the server's own.
//!
//! ```text
//!   SEQUENCE { SEQUENCE { [0] version, INTEGER serial, SEQUENCE algorithm, SEQUENCE issuer,
//!                         SEQUENCE validity, SEQUENCE subject, … },
//!              SEQUENCE { OID algorithm, … }, BIT STRING signature }
//! ```

/// The fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// The algorithm of its signature: the object identifier's bytes.
    pub algorithm: Vec<u8>,
    /// Serial number, in decimal.
    pub serial: String,
    /// `/C=CH/CN=alice`.
    pub issuer: String,
    /// The same of the subject.
    pub subject: String,
    /// The subject's common name, of several the first.
    pub common_name: String,
    /// The certificate's version: 1 to 3.
    pub version: u8,
}

const INTEGER: u8 = 0x02;
const OID: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;

/// An element's tag, its content, and what follows it.
fn element(input: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = input.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match usize::from(first) {
        short @ ..=0x7f => (short, rest),
        long @ 0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(long - 0x80)?;
            (bytes.iter().fold(0, |n, b| n << 8 | usize::from(*b)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// An element that must have this tag.
fn expect(input: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    let (tag, content, rest) = element(input)?;
    (tag == wanted).then_some((content, rest))
}

/// Reads a certificate; None when it isn't one.
pub fn parse(der: &[u8]) -> Option<Fields> {
    let (certificate, _) = expect(der, SEQUENCE)?;
    let (body, rest) = expect(certificate, SEQUENCE)?;
    let (algorithm, _) = expect(rest, SEQUENCE)?;
    let (algorithm, _) = expect(algorithm, OID)?;
    let (version, body) = match element(body)? {
        (VERSION, number, rest) => (expect(number, INTEGER)?.0.last()?.saturating_add(1), rest),
        _ => (1, body),
    };
    let (serial, body) = expect(body, INTEGER)?;
    let (_, body) = expect(body, SEQUENCE)?;
    let (issuer, body) = expect(body, SEQUENCE)?;
    let (_, body) = expect(body, SEQUENCE)?;
    let (subject, _) = expect(body, SEQUENCE)?;
    let (issuer, _) = name(issuer)?;
    let (subject, common_name) = name(subject)?;
    let (algorithm, serial) = (algorithm.to_vec(), decimal(serial));
    Some(Fields { algorithm, serial, issuer, subject, common_name, version })
}

/// A name on one line, and its common name, of several the first: empty when there is none, or when it has
/// a zero byte inside, by which it would pretend to be another.
fn name(mut input: &[u8]) -> Option<(String, String)> {
    let (mut line, mut common) = (String::new(), None);
    while !input.is_empty() {
        let (_, set, rest) = element(input)?;
        input = rest;
        let mut set = set;
        while !set.is_empty() {
            let (pair, rest) = expect(set, SEQUENCE)?;
            set = rest;
            let (oid, value) = expect(pair, OID)?;
            let (_, value, _) = element(value)?;
            let value = String::from_utf8_lossy(value);
            let short = short_name(oid);
            if short == "CN" && common.is_none() {
                let whole = !value.contains('\0');
                common = Some(if whole { value.to_string() } else { String::new() });
            }
            line += &format!("/{short}={value}");
        }
    }
    Some((line, common.unwrap_or_default()))
}

fn short_name(oid: &[u8]) -> &'static str {
    match oid {
        [0x55, 4, 3] => "CN",
        [0x55, 4, 5] => "serialNumber",
        [0x55, 4, 6] => "C",
        [0x55, 4, 7] => "L",
        [0x55, 4, 8] => "ST",
        [0x55, 4, 10] => "O",
        [0x55, 4, 11] => "OU",
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1] => "emailAddress",
        [0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25] => "DC",
        [0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1] => "UID",
        _ => "?",
    }
}

/// A positive number of any length in decimal.
fn decimal(bytes: &[u8]) -> String {
    // Least significant digit first.
    let mut digits = vec![0u8];
    for byte in bytes {
        let mut carry = u32::from(*byte);
        for digit in &mut digits {
            carry += u32::from(*digit) * 256;
            *digit = (carry % 10) as u8;
            carry /= 10;
        }
        while carry > 0 {
            digits.push((carry % 10) as u8);
            carry /= 10;
        }
    }
    digits.iter().rev().map(|d| char::from(b'0' + d)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn der(tag: u8, content: &[&[u8]]) -> Vec<u8> {
        let content = content.concat();
        let mut out = vec![tag];
        match content.len() {
            short @ ..=0x7f => out.push(short as u8),
            long => out.extend([0x82, (long >> 8) as u8, long as u8]),
        }
        out.extend(content);
        out
    }

    fn attribute(oid: &[u8], value: &[u8]) -> Vec<u8> {
        der(0x31, &[&der(SEQUENCE, &[&der(OID, &[oid]), &der(0x0c, &[value])])])
    }

    #[test]
    fn the_fields_are_found() {
        let country = attribute(&[0x55, 4, 6], b"CH");
        let common = attribute(&[0x55, 4, 3], b"alice");
        let fake = attribute(&[0x55, 4, 3], b"postgres\0.example");
        let algorithm = der(SEQUENCE, &[&der(OID, &[&[1, 2, 3]])]);
        let body = der(
            SEQUENCE,
            &[
                &der(VERSION, &[&der(INTEGER, &[&[2]])]),
                &der(INTEGER, &[&[1, 0, 0, 0, 0, 0, 0, 0, 0]]),
                &algorithm,
                &der(SEQUENCE, &[&common, &fake]),
                &der(SEQUENCE, &[]),
                &der(SEQUENCE, &[&country, &common]),
                &der(0x04, &[&[0; 300]]),
            ],
        );
        let whole = der(SEQUENCE, &[&body, &algorithm, &der(0x03, &[&[0; 8]])]);
        let fields = parse(&whole).unwrap();
        assert_eq!(fields.algorithm, [1, 2, 3]);
        assert_eq!(fields.serial, "18446744073709551616");
        assert_eq!((&*fields.subject, &*fields.common_name), ("/C=CH/CN=alice", "alice"));
        assert_eq!(fields.version, 3);
        assert_eq!(fields.issuer, "/CN=alice/CN=postgres\0.example");
        // Of several names the first counts, as in PostgreSQL, also when it is none.
        let set = |names: &[&[u8]]| {
            let all: Vec<Vec<u8>> = names.iter().map(|n| attribute(&[0x55, 4, 3], n)).collect();
            name(&all.concat()).unwrap().1
        };
        assert_eq!(set(&[b"alice", b"postgres"]), "alice");
        assert_eq!(set(&[b"x\0y", b"postgres"]), "");
        for cut in 0..whole.len() {
            assert!(parse(&whole[..cut]).is_none(), "{cut}");
        }
    }
}
