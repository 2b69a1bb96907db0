//! PGP messages to owners of keys: `pgp_pub_encrypt`, `pgp_pub_decrypt`, `pgp_key_id`. RSA and Elgamal.
//!
//! The key that encrypts is a subkey. Powers are not computed in constant time, as PostgreSQL's are not: who may call
//! the functions has the key. Source: RFC 4880, chapters 5 and 13.

use base::Result;
use md5::Digest;
use num_bigint::BigUint;
use types::Datum;
use types::func::Body;

use super::cipher::cfb_decrypt;
use super::pgp::{
    Options, PasswordKey, byte, cipher_of, corrupt, failed, key_bytes, number, packet, put_packet,
    seal, tag, take, text_of, unseal,
};
use crate::common::{Bodies, random};

/// A subkey that encrypts.
struct Key {
    id: [u8; 8],
    algorithm: u8,
    /// RSA: modulus and exponent. Elgamal: prime, generator and the public value.
    public: Vec<BigUint>,
    /// Bytes of the modulus.
    bytes: usize,
    /// The rest of a secret key's packet.
    secret: Option<Vec<u8>>,
}

fn big(rest: &mut &[u8]) -> Result<BigUint> {
    let bits = number(rest, 2)?;
    Ok(BigUint::from_bytes_be(take(rest, bits.div_ceil(8))?))
}

fn put_big(value: &BigUint, out: &mut Vec<u8>) {
    out.extend_from_slice(&(value.bits() as u16).to_be_bytes());
    out.extend_from_slice(&value.to_bytes_be());
}

const RSA: u8 = 1;
const RSA_ENCRYPT: u8 = 2;
const ELGAMAL: u8 = 16;

impl Key {
    /// The subkey of a key that encrypts; None: this one doesn't.
    fn read(body: &[u8], is_secret: bool) -> Result<Option<Key>> {
        let mut rest = body;
        if byte(&mut rest)? != 4 {
            return Err(failed("Only V4 key packets are supported"));
        }
        take(&mut rest, 4)?;
        let algorithm = byte(&mut rest)?;
        let count = match algorithm {
            RSA | RSA_ENCRYPT => 2,
            ELGAMAL => 3,
            _ => return Ok(None),
        };
        let public: Vec<BigUint> = (0..count).map(|_| big(&mut rest)).collect::<Result<_>>()?;
        let own = &body[..body.len() - rest.len()];
        let mut hash = sha1::Sha1::new();
        hash.update([0x99]);
        hash.update((own.len() as u16).to_be_bytes());
        hash.update(own);
        let mut id = [0; 8];
        id.copy_from_slice(&hash.finalize()[12..]);
        let bytes = public[0].bits().div_ceil(8) as usize;
        let secret = is_secret.then(|| rest.to_vec());
        Ok(Some(Key { id, algorithm, public, bytes, secret }))
    }

    /// The one subkey that encrypts among a key's packets.
    fn find(ring: &[u8]) -> Result<Key> {
        let mut rest = ring;
        let mut found: Option<Key> = None;
        let mut mains = 0;
        while !rest.is_empty() {
            let (kind, body) = packet(&mut rest)?;
            match kind {
                tag::PUBLIC | tag::SECRET => {
                    mains += 1;
                    if mains > 1 {
                        return Err(failed(
                            "Several keys given - pgcrypto does not handle keyring",
                        ));
                    }
                }
                tag::PUBLIC_SUBKEY | tag::SECRET_SUBKEY => {
                    let Some(key) = Key::read(&body, kind == tag::SECRET_SUBKEY)? else { continue };
                    if found.replace(key).is_some() {
                        return Err(failed("Several subkeys not supported"));
                    }
                }
                // Signatures, names, trust, pictures.
                2 | 12 | 13 | 17 | 61 => {}
                _ => return Err(failed("Unexpected packet in key data")),
            }
        }
        found.ok_or_else(|| failed("No encryption key found"))
    }

    /// The secret numbers: RSA's exponent, or Elgamal's.
    fn secret(&self, password: &[u8]) -> Result<BigUint> {
        let Some(secret) = &self.secret else {
            return Err(failed("Cannot decrypt with public key"));
        };
        let mut rest = &secret[..];
        let usage = byte(&mut rest)?;
        let plain = match usage {
            0 => rest.to_vec(),
            254 | 255 => {
                if password.is_empty() {
                    return Err(failed("Need password for secret key"));
                }
                let cipher = byte(&mut rest)?;
                let own = PasswordKey::read(&mut rest)?.key(password, key_bytes(cipher)?)?;
                let cipher = cipher_of(cipher, &own)?;
                let mut vector = take(&mut rest, cipher.size())?.to_vec();
                let mut sealed = rest.to_vec();
                cfb_decrypt(&*cipher, &mut vector, &mut sealed);
                sealed
            }
            _ => return Err(corrupt()),
        };
        let wrong = || failed("Wrong key or corrupt data");
        let check = if usage == 254 { 20 } else { 2 };
        let numbers = plain.len().checked_sub(check).ok_or_else(wrong)?;
        let (numbers, sum) = plain.split_at(numbers);
        let fits = match usage {
            254 => sha1::Sha1::digest(numbers)[..] == *sum,
            _ => checksum(numbers) == *sum,
        };
        if !fits {
            return Err(wrong());
        }
        big(&mut &numbers[..])
    }
}

fn checksum(bytes: &[u8]) -> [u8; 2] {
    bytes.iter().fold(0u16, |sum, b| sum.wrapping_add(u16::from(*b))).to_be_bytes()
}

fn pub_encrypt(data: &[u8], ring: &[u8], options: &str, is_text: bool) -> Result<Datum> {
    let options = Options::parse(options)?;
    let key = Key::find(ring)?;
    if key.secret.is_some() {
        return Err(failed("Refusing to encrypt with secret key"));
    }
    let mut session = vec![0; key_bytes(options.cipher)?];
    random(&mut session)?;
    let sum = checksum(&session);
    let message = [&[options.cipher], &session[..], &sum].concat();
    let padding = key.bytes.checked_sub(message.len() + 3).filter(|n| *n >= 8);
    let padding = padding.ok_or_else(|| failed("Key is too short"))?;
    let mut block = vec![2];
    while block.len() <= padding {
        let mut one = [0];
        random(&mut one)?;
        block.extend(one.iter().filter(|b| **b != 0));
    }
    block.push(0);
    block.extend_from_slice(&message);
    let block = BigUint::from_bytes_be(&block);
    let mut body = vec![3];
    body.extend_from_slice(&key.id);
    body.push(key.algorithm);
    match &key.public[..] {
        [n, e] => put_big(&block.modpow(e, n), &mut body),
        [p, g, y] => {
            let mut bytes = vec![0; key.bytes];
            random(&mut bytes)?;
            let k = BigUint::from_bytes_be(&bytes) % (p - 2u8) + 1u8;
            put_big(&g.modpow(&k, p), &mut body);
            put_big(&(block * y.modpow(&k, p) % p), &mut body);
        }
        _ => return Err(corrupt()),
    }
    let mut out = Vec::new();
    put_packet(tag::PUBLIC_KEY_KEY, &body, &mut out);
    seal(data, &session, &options, is_text, &mut out)?;
    Ok(Datum::bytea(&out))
}

/// The cipher and the session key in a packet for an owner of a key.
fn session_key(key: &Key, secret: &BigUint, body: &[u8]) -> Result<Option<(u8, Vec<u8>)>> {
    let mut rest = body;
    if byte(&mut rest)? != 3 {
        return Err(corrupt());
    }
    let id = take(&mut rest, 8)?;
    if *id != key.id && id.iter().any(|b| *b != 0) {
        return Ok(None);
    }
    let algorithm = byte(&mut rest)?;
    let modulus = &key.public[0];
    let block = match (algorithm, key.algorithm) {
        (RSA | RSA_ENCRYPT, RSA | RSA_ENCRYPT) => big(&mut rest)?.modpow(secret, modulus),
        (ELGAMAL, ELGAMAL) => {
            let (c1, c2) = (big(&mut rest)?, big(&mut rest)?);
            // The inverse of c1 ^ x, by Fermat's little theorem.
            let inverse = c1.modpow(secret, modulus).modpow(&(modulus - 2u8), modulus);
            c2 * inverse % modulus
        }
        _ => return Ok(None),
    };
    let block = block.to_bytes_be();
    let [2, padded @ ..] = &block[..] else { return Err(corrupt()) };
    let end = padded.iter().position(|b| *b == 0).ok_or_else(corrupt)?;
    let [cipher, message @ ..] = &padded[end + 1..] else { return Err(corrupt()) };
    let (session, sum) =
        message.split_at_checked(message.len().saturating_sub(2)).ok_or_else(corrupt)?;
    if *sum != checksum(session) || key_bytes(*cipher)? != session.len() {
        return Err(corrupt());
    }
    Ok(Some((*cipher, session.to_vec())))
}

fn pub_decrypt(args: &[Datum], as_text: bool) -> Result<Vec<u8>> {
    let (message, ring) = (super::bytes(&args[0]), super::bytes(&args[1]));
    let password = args.get(2).map_or(&[][..], super::bytes);
    let options = Options::parse(args.get(3).map_or("", Datum::as_str))?;
    let key = Key::find(ring)?;
    let secret = key.secret(password)?;
    let mut rest = message;
    let mut session = None;
    while !rest.is_empty() {
        match packet(&mut rest)? {
            (tag::PUBLIC_KEY_KEY, body) if session.is_none() => {
                session = session_key(&key, &secret, &body)?;
            }
            (tag::PUBLIC_KEY_KEY | tag::PASSWORD_KEY | tag::MARKER, _) => {}
            (kind @ (tag::CHECKED | tag::ENCRYPTED), body) => {
                let (cipher, session) = session.as_ref().ok_or_else(|| failed("Wrong key"))?;
                return unseal((*cipher, session), (kind, &body), &options, as_text);
            }
            _ => return Err(corrupt()),
        }
    }
    Err(corrupt())
}

/// For whom a message is, or which subkey of a key encrypts.
fn key_id(bytes: &[u8]) -> Result<Datum> {
    let shown = |id: &[u8]| {
        let hex: String = id.iter().map(|b| format!("{b:02X}")).collect();
        Datum::text(&hex)
    };
    let mut rest = bytes;
    let mut found = None;
    while !rest.is_empty() {
        match packet(&mut rest)? {
            (tag::PUBLIC_KEY_KEY, body) => {
                let id = body.get(1..9).ok_or_else(corrupt)?;
                let any = id.iter().all(|b| *b == 0);
                found.get_or_insert(if any { Datum::text("ANYKEY") } else { shown(id) });
            }
            (tag::PASSWORD_KEY, _) => {
                found.get_or_insert(Datum::text("SYMKEY"));
            }
            (tag::CHECKED | tag::ENCRYPTED, _) => break,
            (tag::PUBLIC_SUBKEY | tag::SECRET_SUBKEY, _) => {
                return Ok(shown(&Key::find(bytes)?.id));
            }
            _ => {}
        }
    }
    found.ok_or_else(|| failed("No encryption key found"))
}

pub(super) fn bodies() -> Bodies {
    fn options(args: &[Datum]) -> &str {
        args.get(2).map_or("", Datum::as_str)
    }
    vec![
        (
            "pgp_pub_encrypt_text",
            Body::Scalar(|a, _| {
                pub_encrypt(super::bytes(&a[0]), super::bytes(&a[1]), options(a), true)
            }),
        ),
        (
            "pgp_pub_encrypt_bytea",
            Body::Scalar(|a, _| {
                pub_encrypt(super::bytes(&a[0]), super::bytes(&a[1]), options(a), false)
            }),
        ),
        ("pgp_pub_decrypt_text", Body::Scalar(|a, _| text_of(pub_decrypt(a, true)?))),
        ("pgp_pub_decrypt_bytea", Body::Scalar(|a, _| Ok(Datum::bytea(&pub_decrypt(a, false)?)))),
        ("pgp_key_id_w", Body::Scalar(|a, _| key_id(a[0].as_bytea()))),
    ]
}
