//! Text and binary forms of inet, cidr, macaddr and macaddr8.

use std::net::{Ipv4Addr, Ipv6Addr};

use base::{Result, err};

use super::invalid_syntax;
use crate::datum::Inet;

/// The addresses of a network have all bits to the right of its mask clear.
pub(crate) fn is_network(i: &Inet) -> bool {
    let mut masked = *i;
    clear_host(&mut masked);
    masked.addr == i.addr
}

/// Clears the bits to the right of the mask.
pub(crate) fn clear_host(i: &mut Inet) {
    for (n, byte) in i.addr.iter_mut().enumerate() {
        let kept = usize::from(i.bits).saturating_sub(n * 8).min(8);
        *byte &= !(0xff_u16 >> kept) as u8;
    }
}

/// Bits of an address of its family.
pub(crate) fn width(v6: bool) -> u8 {
    if v6 { 128 } else { 32 }
}

/// Up to four decimal octets, and how many there were.
fn octets(text: &str) -> Option<([u8; 16], usize)> {
    let mut addr = [0; 16];
    let mut count = 0;
    for part in text.strip_suffix('.').unwrap_or(text).split('.') {
        let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits || count == 4 {
            return None;
        }
        addr[count] = part.parse().ok()?;
        count += 1;
    }
    Some((addr, count))
}

/// Bits of a network whose mask isn't given: by class, but no fewer than were written.
fn class_bits(first: u8, count: usize) -> u8 {
    let by_class = match first {
        240.. => 32,
        224.. => 8,
        192.. => 24,
        128.. => 16,
        _ => 8,
    };
    let bits = by_class.max(count as u8 * 8);
    if bits == 8 && first == 224 { 4 } else { bits }
}

/// Reads inet or cidr.
///
/// # Errors
/// `22P02`, for a cidr with host bits, too.
pub(super) fn parse_inet(text: &str, cidr: bool) -> Result<Inet> {
    let kind = if cidr { "cidr" } else { "inet" };
    let fail = || invalid_syntax(kind, text);
    let (host, mask) = match text.split_once('/') {
        Some((host, mask)) => (host, Some(mask)),
        None => (text, None),
    };
    let number = |m: &str| {
        let digits = !m.is_empty() && m.len() <= 3 && m.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| m.parse::<u16>().ok()).flatten()
    };
    let bits = mask.map(|m| number(m).ok_or_else(fail)).transpose()?;
    let v6 = host.contains(':');
    let inet = if v6 {
        let addr: Ipv6Addr = host.parse().map_err(|_| fail())?;
        let bits = bits.unwrap_or(128);
        if bits > 128 {
            return Err(fail());
        }
        Inet { addr: addr.octets(), bits: bits as u8, v6, cidr }
    } else {
        let (addr, count) = octets(host).ok_or_else(fail)?;
        let bits = match bits {
            Some(bits) if bits > 32 => return Err(fail()),
            Some(bits) if !cidr && usize::from(bits / 8) > count => return Err(fail()),
            Some(bits) => bits as u8,
            None if cidr => class_bits(addr[0], count),
            None if count == 4 => 32,
            None => return Err(fail()),
        };
        Inet { addr, bits, v6, cidr }
    };
    if cidr && !is_network(&inet) {
        return Err(err!(INVALID_TEXT_REPRESENTATION, "invalid cidr value: \"{text}\"")
            .detail("Value has bits set to right of mask."));
    }
    Ok(inet)
}

/// An address without its mask.
pub(crate) fn host(i: &Inet) -> String {
    if !i.v6 {
        let [a, b, c, d, ..] = i.addr;
        return Ipv4Addr::new(a, b, c, d).to_string();
    }
    let words: Vec<u16> = i.addr.chunks(2).map(|w| u16::from_be_bytes([w[0], w[1]])).collect();
    // The longest run of at least two zeros is left out, the first one of equals.
    let (mut best, mut best_len, mut at) = (8, 1, 0);
    while at < 8 {
        let len = words[at..].iter().take_while(|w| **w == 0).count();
        if len > best_len {
            (best, best_len) = (at, len);
        }
        at += len.max(1);
    }
    if best_len < 2 {
        best = 8;
    }
    let tail = |i: &Inet| Ipv4Addr::new(i.addr[12], i.addr[13], i.addr[14], i.addr[15]);
    if best == 0 && (best_len == 6 || (best_len == 5 && words[5] == 0xffff)) {
        let middle = if best_len == 5 { "ffff:" } else { "" };
        return format!("::{middle}{}", tail(i));
    }
    let hex = |words: &[u16]| words.iter().map(|w| format!("{w:x}")).collect::<Vec<_>>().join(":");
    if best == 8 {
        return hex(&words);
    }
    format!("{}::{}", hex(&words[..best]), hex(&words[best + best_len..]))
}

/// Appends inet or cidr: the mask is left out where an inet's is full.
pub(super) fn write_inet(i: &Inet, out: &mut Vec<u8>) {
    out.extend_from_slice(host(i).as_bytes());
    if i.cidr || i.bits != width(i.v6) {
        out.extend_from_slice(format!("/{}", i.bits).as_bytes());
    }
}

/// Appends the binary form: family, bits, whether cidr, length, address.
pub(super) fn send_inet(i: &Inet, out: &mut Vec<u8>) {
    let len = usize::from(width(i.v6) / 8);
    out.extend_from_slice(&[if i.v6 { 3 } else { 2 }, i.bits, u8::from(i.cidr), len as u8]);
    out.extend_from_slice(&i.addr[..len]);
}

/// Reads the binary form.
///
/// # Errors
/// `22P03`.
pub(super) fn receive_inet(bytes: &[u8], cidr: bool) -> Result<Inet> {
    let kind = if cidr { "cidr" } else { "inet" };
    let fail = |what: &str| {
        err!(INVALID_BINARY_REPRESENTATION, "invalid {what} in external \"{kind}\" value")
    };
    let Some(([family, bits, _, len], addr)) = bytes.split_first_chunk::<4>() else {
        return Err(err!(INVALID_BINARY_REPRESENTATION, "insufficient data left in message"));
    };
    let v6 = match family {
        2 => false,
        3 => true,
        _ => return Err(fail("address family")),
    };
    if *bits > width(v6) {
        return Err(fail("bits"));
    }
    if *len != width(v6) / 8 || addr.len() != usize::from(*len) {
        return Err(fail("length"));
    }
    let mut inet = Inet { addr: [0; 16], bits: *bits, v6, cidr };
    inet.addr[..addr.len()].copy_from_slice(addr);
    if cidr && !is_network(&inet) {
        return Err(err!(INVALID_BINARY_REPRESENTATION, "invalid external \"cidr\" value")
            .detail("Value has bits set to right of mask."));
    }
    Ok(inet)
}

/// Digits in pairs with one kind of separator, of which `groups` says where it may stand.
fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_matches(|c: char| c.is_ascii_whitespace());
    let separator = text.chars().find(|c| matches!(c, ':' | '-' | '.'));
    let parts: Vec<&str> = match separator {
        None => vec![text],
        Some(c) => text.split(c).collect(),
    };
    let lens: Vec<usize> = parts.iter().map(|p| p.len()).collect();
    let mut out = Vec::new();
    let pairs =
        parts.len() >= 6 && separator != Some('.') && lens.iter().all(|l| (1..=2).contains(l));
    for part in &parts {
        if !part.bytes().all(|b| b.is_ascii_hexdigit()) || part.is_empty() {
            return None;
        }
        if pairs {
            out.push(u8::from_str_radix(part, 16).ok()?);
            continue;
        }
        if part.len() % 2 != 0 {
            return None;
        }
        for at in (0..part.len()).step_by(2) {
            out.push(u8::from_str_radix(&part[at..at + 2], 16).ok()?);
        }
    }
    let even = match (separator, parts.len()) {
        (None, 1) => true,
        (Some(':' | '-'), 2) => lens[0] == 6 && matches!(lens[1], 6 | 10),
        (Some('.' | '-' | ':'), 3 | 4) => lens.iter().all(|l| *l == 4),
        _ => pairs,
    };
    even.then_some(out)
}

/// Reads a macaddr.
///
/// # Errors
/// `22P02`.
pub(super) fn parse_macaddr(text: &str) -> Result<[u8; 6]> {
    hex_bytes(text).and_then(|b| b.try_into().ok()).ok_or_else(|| invalid_syntax("macaddr", text))
}

/// Reads a macaddr8; six bytes get `ff:fe` in the middle.
///
/// # Errors
/// `22P02`.
pub(super) fn parse_macaddr8(text: &str) -> Result<[u8; 8]> {
    let bytes = hex_bytes(text).ok_or_else(|| invalid_syntax("macaddr8", text))?;
    match <[u8; 6]>::try_from(bytes.as_slice()) {
        Ok(six) => Ok(widen(six)),
        Err(_) => bytes.try_into().map_err(|_| invalid_syntax("macaddr8", text)),
    }
}

/// A macaddr as macaddr8.
pub(crate) fn widen([a, b, c, d, e, f]: [u8; 6]) -> [u8; 8] {
    [a, b, c, 0xff, 0xfe, d, e, f]
}

/// Appends `08:00:2b:01:02:03`.
pub(super) fn write_mac(bytes: &[u8], out: &mut Vec<u8>) {
    for (i, b) in bytes.iter().enumerate() {
        if i > 0 {
            out.push(b':');
        }
        out.extend_from_slice(format!("{b:02x}").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, cidr: bool) -> String {
        let mut out = Vec::new();
        match parse_inet(text, cidr) {
            Ok(i) => write_inet(&i, &mut out),
            Err(e) => return e.code().as_str().to_owned(),
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn addresses_print_as_on_postgresql() {
        for (text, wanted) in [
            ("192.168.1.5/24", "192.168.1.5/24"),
            ("192.168.1.5/32", "192.168.1.5"),
            ("10/8", "10.0.0.0/8"),
            ("10.1", "22P02"),
            ("::1", "::1"),
            ("::ffff:1.2.3.4", "::ffff:1.2.3.4"),
            ("2001:db8:0:0:1:0:0:1/64", "2001:db8::1:0:0:1/64"),
            ("1.2.3.256", "22P02"),
        ] {
            assert_eq!(shown(text, false), wanted, "{text}");
        }
        for (text, wanted) in [
            ("10", "10.0.0.0/8"),
            ("192.168", "192.168.0.0/24"),
            ("10.1.2", "10.1.2.0/24"),
            ("192.168.1.5/24", "22P02"),
        ] {
            assert_eq!(shown(text, true), wanted, "{text}");
        }
    }
}
