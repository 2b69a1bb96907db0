//! pgcrypto: digests, hashes of passwords, ciphers, random bytes, and PGP's messages.

mod armor;
pub mod cipher;
mod crypt;
mod des;
mod pgp;
mod pgp_keys;

use base::{Result, err};
use hmac::{EagerHash, Hmac, KeyInit, Mac};
use md5::Digest;
use types::Datum;
use types::extension::Library;
use types::func::Body;

use crate::common::{Bodies, random};

/// The extension's code.
pub static LIBRARY: Library = Library { name: "pgcrypto", bodies, ..Library::EMPTY };

/// The bytes of a text or bytea.
fn bytes(value: &Datum) -> &[u8] {
    match value {
        Datum::Bytea(_) => value.as_bytea(),
        _ => value.as_str().as_bytes(),
    }
}

/// Runs `$then::<D>()` with the digest of a name.
macro_rules! with_digest { ($name:expr, $then:ident $args:tt) => {
    match $name.to_ascii_lowercase().as_str() {
        "md5" => $then::<md5::Md5> $args,
        "sha1" | "sha-1" => $then::<sha1::Sha1> $args,
        "sha224" | "sha-224" | "sha2-224" => $then::<sha2::Sha224> $args,
        "sha256" | "sha-256" | "sha2-256" => $then::<sha2::Sha256> $args,
        "sha384" | "sha-384" | "sha2-384" => $then::<sha2::Sha384> $args,
        "sha512" | "sha-512" | "sha2-512" => $then::<sha2::Sha512> $args,
        "sha512-224" | "sha-512/224" => $then::<sha2::Sha512_224> $args,
        "sha512-256" | "sha-512/256" => $then::<sha2::Sha512_256> $args,
        other => {
            return Err(err!(
                INVALID_PARAMETER_VALUE,
                "Cannot use \"{other}\": No such hash algorithm"
            ));
        }
    }
} }

fn digest(data: &[u8], name: &str) -> Result<Vec<u8>> {
    fn of<D: Digest>(data: &[u8]) -> Vec<u8> {
        D::digest(data).to_vec()
    }
    Ok(with_digest!(name, of(data)))
}

fn hmac(data: &[u8], key: &[u8], name: &str) -> Result<Vec<u8>> {
    fn of<D: EagerHash>(data: &[u8], key: &[u8]) -> Result<Vec<u8>> {
        let mut mac = Hmac::<D>::new_from_slice(key)
            .map_err(|e| base::Error::internal(format!("a key of HMAC: {e}")))?;
        mac.update(data);
        Ok(mac.finalize().into_bytes().to_vec())
    }
    with_digest!(name, of(data, key))
}

fn random_bytes(count: &Datum) -> Result<Datum> {
    let count = count.to_i64().and_then(|n| usize::try_from(n).ok());
    let count = count.filter(|n| (1..=1024).contains(n));
    let count =
        count.ok_or_else(|| err!(EXTERNAL_ROUTINE_INVOCATION_EXCEPTION, "Length not in range"))?;
    let mut out = vec![0; count];
    random(&mut out)?;
    Ok(Datum::bytea(&out))
}

fn random_uuid() -> Result<Datum> {
    let mut uuid = [0; 16];
    random(&mut uuid)?;
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    Ok(Datum::Uuid(uuid.into()))
}

fn salt(scheme: &Datum, rounds: Option<&Datum>) -> Result<Datum> {
    let rounds = rounds.and_then(Datum::to_i64).unwrap_or(0);
    let scheme = scheme.as_str().to_ascii_lowercase();
    Ok(Datum::text(&crypt::gen_salt(&scheme, rounds as i32)?))
}

fn bodies() -> Bodies {
    let mut out: Bodies = vec![
        ("pg_digest", Body::Scalar(|a, _| Ok(Datum::bytea(&digest(bytes(&a[0]), a[1].as_str())?)))),
        (
            "pg_hmac",
            Body::Scalar(|a, _| {
                Ok(Datum::bytea(&hmac(bytes(&a[0]), bytes(&a[1]), a[2].as_str())?))
            }),
        ),
        (
            "pg_crypt",
            Body::Scalar(|a, _| Ok(Datum::text(&crypt::crypt(a[0].as_str(), a[1].as_str())?))),
        ),
        ("pg_gen_salt", Body::Scalar(|a, _| salt(&a[0], None))),
        ("pg_gen_salt_rounds", Body::Scalar(|a, _| salt(&a[0], Some(&a[1])))),
        (
            "pg_encrypt",
            Body::Scalar(|a, _| {
                Ok(Datum::bytea(&cipher::encrypt(bytes(&a[0]), bytes(&a[1]), &[], a[2].as_str())?))
            }),
        ),
        (
            "pg_decrypt",
            Body::Scalar(|a, _| {
                Ok(Datum::bytea(&cipher::decrypt(bytes(&a[0]), bytes(&a[1]), &[], a[2].as_str())?))
            }),
        ),
        (
            "pg_encrypt_iv",
            Body::Scalar(|a, _| {
                let [data, key, iv] = [0, 1, 2].map(|n| bytes(&a[n]));
                Ok(Datum::bytea(&cipher::encrypt(data, key, iv, a[3].as_str())?))
            }),
        ),
        (
            "pg_decrypt_iv",
            Body::Scalar(|a, _| {
                let [data, key, iv] = [0, 1, 2].map(|n| bytes(&a[n]));
                Ok(Datum::bytea(&cipher::decrypt(data, key, iv, a[3].as_str())?))
            }),
        ),
        ("pg_random_bytes", Body::Scalar(|a, _| random_bytes(&a[0]))),
        ("pg_random_uuid", Body::Scalar(|_, _| random_uuid())),
    ];
    out.extend(armor::bodies());
    out.extend(pgp::bodies());
    out.extend(pgp_keys::bodies());
    out
}
