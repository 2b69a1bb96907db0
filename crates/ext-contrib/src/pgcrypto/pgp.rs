//! PGP messages with a password: `pgp_sym_encrypt` and `pgp_sym_decrypt`.
//!
//! ```text
//!   | key of a password: cipher, how a key is made of it (S2K), perhaps a session key |
//!   | encrypted: a random block, its last two bytes again, packets, a digest (MDC)     |
//!        └─ perhaps compressed ─ literal data: kind, name, date, bytes
//! ```
//!
//! Source: RFC 4880.

use std::io::{Read, Write};

use base::{Result, bail, err};
use flate2::Compression;
use flate2::read::{DeflateDecoder, ZlibDecoder};
use flate2::write::{DeflateEncoder, ZlibEncoder};
use md5::Digest;
use types::Datum;
use types::func::Body;

use super::cipher::{BlockCipher, Kind, cfb_decrypt, cfb_encrypt};
use crate::common::{Bodies, random};

/// Tags of packets.
pub(super) mod tag {
    pub const PUBLIC_KEY_KEY: u8 = 1;
    pub const SECRET: u8 = 5;
    pub const PUBLIC: u8 = 6;
    pub const SECRET_SUBKEY: u8 = 7;
    pub const PUBLIC_SUBKEY: u8 = 14;
    pub const PASSWORD_KEY: u8 = 3;
    pub const COMPRESSED: u8 = 8;
    pub const ENCRYPTED: u8 = 9;
    pub const MARKER: u8 = 10;
    pub const LITERAL: u8 = 11;
    pub const CHECKED: u8 = 18;
    pub const DIGEST: u8 = 19;
}

/// Bytes that a message may unpack to.
const BYTES_MAX: usize = 1 << 30;
/// Packets inside of each other.
const DEPTH_MAX: usize = 16;

pub(super) fn failed(message: &str) -> base::Error {
    err!(EXTERNAL_ROUTINE_INVOCATION_EXCEPTION, "{message}")
}

pub(super) fn corrupt() -> base::Error {
    failed("Wrong key or corrupt data")
}

/// Ciphers by number: name, family, bytes of the key.
const CIPHERS: [(u8, &str, Kind, usize); 7] = [
    (2, "3des", Kind::TripleDes, 24),
    (3, "cast5", Kind::Cast5, 16),
    (4, "bf", Kind::Blowfish, 16),
    (7, "aes", Kind::Aes, 16),
    (7, "aes128", Kind::Aes, 16),
    (8, "aes192", Kind::Aes, 24),
    (9, "aes256", Kind::Aes, 32),
];

fn cipher_named(name: &str) -> Result<u8> {
    let name = if name == "blowfish" { "bf" } else { name };
    let found = CIPHERS.iter().find(|c| c.1 == name);
    found.map(|c| c.0).ok_or_else(|| failed("Unsupported cipher algorithm"))
}

pub(super) fn cipher_of(number: u8, key: &[u8]) -> Result<Box<dyn BlockCipher>> {
    let found = CIPHERS.iter().find(|c| c.0 == number);
    let (_, _, kind, bytes) = found.ok_or_else(|| failed("Unsupported cipher algorithm"))?;
    kind.with_key(key.get(..*bytes).ok_or_else(corrupt)?, "encrypt")
}

pub(super) fn key_bytes(number: u8) -> Result<usize> {
    let found = CIPHERS.iter().find(|c| c.0 == number);
    found.map(|c| c.3).ok_or_else(|| failed("Unsupported cipher algorithm"))
}

/// Digests by number: name.
const DIGESTS: [(u8, &str); 6] =
    [(1, "md5"), (2, "sha1"), (8, "sha256"), (9, "sha384"), (10, "sha512"), (11, "sha224")];

/// How a key is made of a password.
#[derive(Clone)]
pub(super) struct PasswordKey {
    mode: u8,
    digest: u8,
    salt: [u8; 8],
    /// The count of bytes, as it is written.
    count: u8,
}

impl PasswordKey {
    pub(super) fn read(rest: &mut &[u8]) -> Result<PasswordKey> {
        let (mode, digest) = (byte(rest)?, byte(rest)?);
        let mut out = PasswordKey { mode, digest, salt: [0; 8], count: 0 };
        match mode {
            0 => {}
            1 | 3 => {
                out.salt.copy_from_slice(take(rest, 8)?);
                if mode == 3 {
                    out.count = byte(rest)?;
                }
            }
            _ => return Err(failed("Unsupported S2K mode")),
        }
        Ok(out)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend([self.mode, self.digest]);
        if self.mode != 0 {
            out.extend_from_slice(&self.salt);
        }
        if self.mode == 3 {
            out.push(self.count);
        }
    }

    pub(super) fn key(&self, password: &[u8], bytes: usize) -> Result<Vec<u8>> {
        fn of<D: Digest>(own: &PasswordKey, password: &[u8], bytes: usize) -> Result<Vec<u8>> {
            let salt: &[u8] = if own.mode == 0 { &[] } else { &own.salt };
            let whole = [salt, password].concat();
            let mut left = match own.mode {
                3 => (16 + usize::from(own.count & 15)) << ((own.count >> 4) + 6),
                _ => whole.len(),
            };
            left = left.max(whole.len());
            let mut out = Vec::new();
            let mut round = 0;
            while out.len() < bytes {
                let mut digest = D::new();
                digest.update(vec![0; round]);
                let mut rest = left;
                while rest > 0 && !whole.is_empty() {
                    sched::check_interrupts_now()?;
                    // In pieces, so that a short password doesn't cost a call for every few bytes.
                    let times = (65_536 / whole.len()).max(1);
                    let piece = whole.repeat(times.min(rest / whole.len() + 1));
                    let part = &piece[..piece.len().min(rest)];
                    digest.update(part);
                    rest -= part.len();
                }
                out.extend_from_slice(&digest.finalize());
                round += 1;
            }
            out.truncate(bytes);
            Ok(out)
        }
        match self.digest {
            1 => of::<md5::Md5>(self, password, bytes),
            2 => of::<sha1::Sha1>(self, password, bytes),
            8 => of::<sha2::Sha256>(self, password, bytes),
            9 => of::<sha2::Sha384>(self, password, bytes),
            10 => of::<sha2::Sha512>(self, password, bytes),
            11 => of::<sha2::Sha224>(self, password, bytes),
            _ => Err(failed("Unsupported digest algorithm")),
        }
    }
}

pub(super) fn byte(rest: &mut &[u8]) -> Result<u8> {
    take(rest, 1).map(|b| b[0])
}

pub(super) fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8]> {
    let (head, tail) = rest.split_at_checked(count).ok_or_else(corrupt)?;
    *rest = tail;
    Ok(head)
}

/// The next packet: its tag and its bytes.
pub(super) fn packet(rest: &mut &[u8]) -> Result<(u8, Vec<u8>)> {
    let head = byte(rest)?;
    if head & 0x80 == 0 {
        return Err(corrupt());
    }
    if head & 0x40 == 0 {
        let count = match head & 3 {
            0 => usize::from(byte(rest)?),
            1 => number(rest, 2)?,
            2 => number(rest, 4)?,
            _ => rest.len(),
        };
        return Ok((head >> 2 & 15, take(rest, count)?.to_vec()));
    }
    let mut out = Vec::new();
    loop {
        let first = byte(rest)?;
        let (count, is_last) = match first {
            0..=191 => (usize::from(first), true),
            192..=223 => ((usize::from(first) - 192 << 8) + usize::from(byte(rest)?) + 192, true),
            224..=254 => (1 << (first & 31), false),
            255 => (number(rest, 4)?, true),
        };
        out.extend_from_slice(take(rest, count)?);
        if is_last {
            return Ok((head & 63, out));
        }
    }
}

pub(super) fn number(rest: &mut &[u8], bytes: usize) -> Result<usize> {
    Ok(take(rest, bytes)?.iter().fold(0, |n, b| n << 8 | usize::from(*b)))
}

pub(super) fn put_packet(tag: u8, body: &[u8], out: &mut Vec<u8>) {
    out.push(0xc0 | tag);
    match body.len() {
        len @ 0..=191 => out.push(len as u8),
        len @ 192..=8383 => {
            out.extend([((len - 192) >> 8) as u8 + 192, (len - 192) as u8]);
        }
        len => {
            out.push(255);
            out.extend_from_slice(&(len as u32).to_be_bytes());
        }
    }
    out.extend_from_slice(body);
}

/// The options of a call.
pub(super) struct Options {
    pub(super) cipher: u8,
    s2k_cipher: Option<u8>,
    s2k: PasswordKey,
    s2k_count: Option<u64>,
    compression: u8,
    level: u32,
    crlf: bool,
    digest: bool,
    session_key: bool,
    unicode: bool,
}

impl Options {
    pub(super) fn parse(text: &str) -> Result<Options> {
        let mut salt = [0; 8];
        random(&mut salt)?;
        let s2k = PasswordKey { mode: 3, digest: 2, salt, count: 0x60 };
        let mut out = Options {
            cipher: 7,
            s2k_cipher: None,
            s2k,
            s2k_count: None,
            compression: 0,
            level: 6,
            crlf: false,
            digest: true,
            session_key: false,
            unicode: false,
        };
        let illegal = || failed("Illegal argument to function");
        for pair in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or_else(illegal)?;
            let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
            let number = || value.parse::<u64>().map_err(|_| illegal());
            let within = |least: u64, most: u64| {
                number()
                    .and_then(|n| if (least..=most).contains(&n) { Ok(n) } else { Err(illegal()) })
            };
            let flag = || number().map(|n| n != 0);
            match name.as_str() {
                "cipher-algo" => out.cipher = cipher_named(&value.to_ascii_lowercase())?,
                "s2k-cipher-algo" => {
                    out.s2k_cipher = Some(cipher_named(&value.to_ascii_lowercase())?);
                }
                "compress-algo" => out.compression = within(0, 2)? as u8,
                "compress-level" => out.level = within(0, 9)? as u32,
                "convert-crlf" => out.crlf = flag()?,
                "disable-mdc" => out.digest = !flag()?,
                "sess-key" => out.session_key = flag()?,
                "unicode-mode" => out.unicode = flag()?,
                "s2k-mode" => match number()? {
                    mode @ (0 | 1 | 3) => out.s2k.mode = mode as u8,
                    _ => return Err(illegal()),
                },
                "s2k-count" => out.s2k_count = Some(within(1024, 65_011_712)?),
                "s2k-digest-algo" => {
                    let name = value.to_ascii_lowercase();
                    let found = DIGESTS.iter().find(|d| d.1 == name);
                    out.s2k.digest = found.ok_or_else(|| failed("Unsupported digest algorithm"))?.0;
                }
                // All ciphers are built in: none has ever failed and left a message unencrypted.
                "ignore-cipher-failure" => drop(flag()?),
                "debug" => {}
                name if name.starts_with("expect-") => {}
                _ => return Err(illegal()),
            }
        }
        if let Some(count) = out.s2k_count {
            let of = |c: u8| (16 + u64::from(c & 15)) << ((c >> 4) + 6);
            out.s2k.count = (0..=255).find(|c| of(*c) >= count).unwrap_or(255);
        }
        Ok(out)
    }
}

/// The bytes of a text whose lines end as the other side has them.
fn with_line_ends(data: &[u8], crlf: bool, to_message: bool) -> Vec<u8> {
    if !crlf {
        return data.to_vec();
    }
    let text = String::from_utf8_lossy(data);
    match to_message {
        true => text.replace('\n', "\r\n").into_bytes(),
        false => text.replace("\r\n", "\n").into_bytes(),
    }
}

fn compressed(options: &Options, data: &[u8]) -> Result<Vec<u8>> {
    let level = Compression::new(options.level);
    let wrong = |e: std::io::Error| failed(&format!("compression error: {e}"));
    let mut out = vec![options.compression];
    match options.compression {
        1 => {
            let mut encoder = DeflateEncoder::new(&mut out, level);
            encoder.write_all(data).and_then(|()| encoder.try_finish()).map_err(wrong)?;
        }
        _ => {
            let mut encoder = ZlibEncoder::new(&mut out, level);
            encoder.write_all(data).and_then(|()| encoder.try_finish()).map_err(wrong)?;
        }
    }
    Ok(out)
}

fn inflated(data: &[u8]) -> Result<Vec<u8>> {
    let mut rest = data;
    let algorithm = byte(&mut rest)?;
    let mut reader: Box<dyn Read + '_> = match algorithm {
        0 => return Ok(rest.to_vec()),
        1 => Box::new(DeflateDecoder::new(rest)),
        2 => Box::new(ZlibDecoder::new(rest)),
        _ => return Err(failed("Unsupported compression algorithm")),
    };
    let mut out = Vec::new();
    let mut piece = vec![0; 65_536];
    loop {
        sched::check_interrupts_now()?;
        let count = reader.read(&mut piece).map_err(|_| corrupt())?;
        if count == 0 {
            return Ok(out);
        }
        out.extend_from_slice(&piece[..count]);
        if out.len() > BYTES_MAX {
            bail!(PROGRAM_LIMIT_EXCEEDED, "a PGP message of more than {BYTES_MAX} bytes");
        }
    }
}

fn sym_encrypt(data: &[u8], password: &[u8], options: &str, is_text: bool) -> Result<Datum> {
    let mut options = Options::parse(options)?;
    if password.is_empty() {
        return Err(failed("Illegal argument to function"));
    }
    if options.s2k.mode == 0 {
        options.s2k.salt = [0; 8];
    }
    let s2k_cipher = match options.session_key {
        true => options.s2k_cipher.unwrap_or(options.cipher),
        false => options.cipher,
    };
    let own_key = options.s2k.key(password, key_bytes(s2k_cipher)?)?;
    let mut head = vec![4, s2k_cipher];
    options.s2k.write(&mut head);
    let key = if options.session_key {
        let mut key = vec![0; key_bytes(options.cipher)?];
        random(&mut key)?;
        let mut sealed = [&[options.cipher], &key[..]].concat();
        let cipher = cipher_of(s2k_cipher, &own_key)?;
        cfb_encrypt(&*cipher, &mut vec![0; cipher.size()], &mut sealed);
        head.extend_from_slice(&sealed);
        key
    } else {
        own_key
    };
    let mut out = Vec::new();
    put_packet(tag::PASSWORD_KEY, &head, &mut out);

    seal(data, &key, &options, is_text, &mut out)?;
    Ok(Datum::bytea(&out))
}

/// Appends the packet of encrypted data.
pub(super) fn seal(
    data: &[u8],
    key: &[u8],
    options: &Options,
    is_text: bool,
    out: &mut Vec<u8>,
) -> Result<()> {
    let kind = match (is_text, options.unicode) {
        (false, _) => b'b',
        (true, true) => b'u',
        (true, false) => b't',
    };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map_or(0, |d| d.as_secs() as u32);
    let mut literal = vec![kind, 0];
    literal.extend_from_slice(&now.to_be_bytes());
    literal.extend_from_slice(&with_line_ends(data, options.crlf && is_text, true));
    let mut inner = Vec::new();
    put_packet(tag::LITERAL, &literal, &mut inner);
    if options.compression != 0 {
        let packed = compressed(options, &inner)?;
        inner.clear();
        put_packet(tag::COMPRESSED, &packed, &mut inner);
    }
    let cipher = cipher_of(options.cipher, key)?;
    let size = cipher.size();
    let mut plain = vec![0; size];
    random(&mut plain)?;
    plain.extend_from_within(size - 2..);
    if options.digest {
        plain.extend_from_slice(&inner);
        plain.extend([0xc0 | tag::DIGEST, 20]);
        let digest = sha1::Sha1::digest(&plain);
        plain.extend_from_slice(&digest);
        cfb_encrypt(&*cipher, &mut vec![0; size], &mut plain);
        put_packet(tag::CHECKED, &[&[1], &plain[..]].concat(), out);
    } else {
        cfb_encrypt(&*cipher, &mut vec![0; size], &mut plain);
        let mut last = plain[2..size + 2].to_vec();
        cfb_encrypt(&*cipher, &mut last, &mut inner);
        plain.extend_from_slice(&inner);
        put_packet(tag::ENCRYPTED, &plain, out);
    }
    Ok(())
}

/// The packets in an encrypted one.
fn opened(cipher: &dyn BlockCipher, body: &[u8], checked: bool) -> Result<Vec<u8>> {
    let size = cipher.size();
    if !checked {
        let head = body.get(..size + 2).ok_or_else(corrupt)?;
        let mut plain = head.to_vec();
        cfb_decrypt(cipher, &mut vec![0; size], &mut plain);
        if plain[size - 2..size] != plain[size..] {
            return Err(corrupt());
        }
        let mut out = body[size + 2..].to_vec();
        cfb_decrypt(cipher, &mut head[2..].to_vec(), &mut out);
        return Ok(out);
    }
    let (version, sealed) = body.split_first().ok_or_else(corrupt)?;
    let mut plain = sealed.to_vec();
    if *version != 1 || plain.len() < size + 2 + 22 {
        return Err(corrupt());
    }
    cfb_decrypt(cipher, &mut vec![0; size], &mut plain);
    if plain[size - 2..size] != plain[size..size + 2] {
        return Err(corrupt());
    }
    let (before, digest) = plain.split_at(plain.len() - 20);
    if before[before.len() - 2..] != [0xc0 | tag::DIGEST, 20]
        || sha1::Sha1::digest(before)[..] != *digest
    {
        return Err(corrupt());
    }
    Ok(before[size + 2..before.len() - 2].to_vec())
}

/// The kind and the bytes of the literal data among packets.
fn literal(packets: &[u8], depth: usize) -> Result<(u8, Vec<u8>)> {
    let mut rest = packets;
    while !rest.is_empty() {
        match packet(&mut rest)? {
            (tag::LITERAL, body) => {
                let mut inside = &body[..];
                let kind = byte(&mut inside)?;
                let name = usize::from(byte(&mut inside)?);
                take(&mut inside, name)?;
                take(&mut inside, 4)?;
                return Ok((kind, inside.to_vec()));
            }
            (tag::COMPRESSED, body) if depth < DEPTH_MAX => {
                return literal(&inflated(&body)?, depth + 1);
            }
            (tag::MARKER, _) => {}
            _ => return Err(corrupt()),
        }
    }
    Err(corrupt())
}

/// The data in an encrypted packet.
pub(super) fn unseal(
    (number, key): (u8, &[u8]),
    (kind, body): (u8, &[u8]),
    options: &Options,
    as_text: bool,
) -> Result<Vec<u8>> {
    let cipher = cipher_of(number, key)?;
    let inner = opened(&*cipher, body, kind == tag::CHECKED)?;
    let (kind, data) = literal(&inner, 0)?;
    let is_text = matches!(kind, b't' | b'u');
    if as_text && !is_text {
        return Err(failed("Not text data"));
    }
    Ok(with_line_ends(&data, options.crlf && is_text, false))
}

fn sym_decrypt(message: &[u8], password: &[u8], options: &str, as_text: bool) -> Result<Vec<u8>> {
    let options = Options::parse(options)?;
    let mut rest = message;
    let mut keys: Vec<(u8, Vec<u8>)> = Vec::new();
    while !rest.is_empty() {
        match packet(&mut rest)? {
            (tag::PASSWORD_KEY, body) => {
                let mut inside = &body[..];
                let (version, cipher) = (byte(&mut inside)?, byte(&mut inside)?);
                if version != 4 {
                    return Err(corrupt());
                }
                let own = PasswordKey::read(&mut inside)?.key(password, key_bytes(cipher)?)?;
                keys.push(if inside.is_empty() {
                    (cipher, own)
                } else {
                    let mut sealed = inside.to_vec();
                    let with = cipher_of(cipher, &own)?;
                    cfb_decrypt(&*with, &mut vec![0; with.size()], &mut sealed);
                    let (cipher, key) = sealed.split_first().ok_or_else(corrupt)?;
                    if key_bytes(*cipher).map_or(true, |bytes| bytes != key.len()) {
                        return Err(corrupt());
                    }
                    (*cipher, key.to_vec())
                });
            }
            (kind @ (tag::CHECKED | tag::ENCRYPTED), body) => {
                let (number, key) = keys.first().ok_or_else(corrupt)?;
                return unseal((*number, key), (kind, &body), &options, as_text);
            }
            (tag::MARKER, _) => {}
            _ => return Err(corrupt()),
        }
    }
    Err(corrupt())
}

fn bytes(value: &Datum) -> &[u8] {
    super::bytes(value)
}

/// A decrypted text.
pub(super) fn text_of(bytes: Vec<u8>) -> Result<Datum> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Datum::text(&text)),
        Err(e) => Err(types::io::invalid_utf8(e.as_bytes(), e.utf8_error().valid_up_to())),
    }
}

fn options(args: &[Datum]) -> &str {
    args.get(2).map_or("", Datum::as_str)
}

pub(super) fn bodies() -> Bodies {
    vec![
        (
            "pgp_sym_encrypt_text",
            Body::Scalar(|a, _| sym_encrypt(bytes(&a[0]), bytes(&a[1]), options(a), true)),
        ),
        (
            "pgp_sym_encrypt_bytea",
            Body::Scalar(|a, _| sym_encrypt(bytes(&a[0]), bytes(&a[1]), options(a), false)),
        ),
        (
            "pgp_sym_decrypt_text",
            Body::Scalar(|a, _| {
                text_of(sym_decrypt(bytes(&a[0]), bytes(&a[1]), options(a), true)?)
            }),
        ),
        (
            "pgp_sym_decrypt_bytea",
            Body::Scalar(|a, _| {
                Ok(Datum::bytea(&sym_decrypt(bytes(&a[0]), bytes(&a[1]), options(a), false)?))
            }),
        ),
    ]
}
