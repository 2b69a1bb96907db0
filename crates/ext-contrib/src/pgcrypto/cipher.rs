//! Block ciphers by name, and the modes ECB, CBC and CFB over them.

use base::{Result, bail, err};
use cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};

/// A cipher with its key.
pub trait BlockCipher {
    /// Bytes of a block.
    fn size(&self) -> usize;
    /// Encrypts a block of that size in place.
    fn encrypt(&self, block: &mut [u8]);
    /// Decrypts one.
    fn decrypt(&self, block: &mut [u8]);
}

struct Keyed<C>(C);

impl<C: BlockCipherEncrypt + BlockCipherDecrypt> BlockCipher for Keyed<C> {
    fn size(&self) -> usize {
        C::block_size()
    }

    fn encrypt(&self, block: &mut [u8]) {
        if let Ok(block) = <&mut Array<u8, C::BlockSize>>::try_from(block) {
            self.0.encrypt_block(block);
        }
    }

    fn decrypt(&self, block: &mut [u8]) {
        if let Ok(block) = <&mut Array<u8, C::BlockSize>>::try_from(block) {
            self.0.decrypt_block(block);
        }
    }
}

/// A family of ciphers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// AES with 16, 24 or 32 bytes of key.
    Aes,
    /// Blowfish with up to 56.
    Blowfish,
    /// DES with 8.
    Des,
    /// DES three times, with 24.
    TripleDes,
    /// CAST5 with 16.
    Cast5,
}

impl Kind {
    /// Bytes of the longest key; a longer one is cut.
    fn key_bytes_max(self) -> usize {
        match self {
            Kind::Aes => 32,
            Kind::Blowfish => 56,
            Kind::Des => 8,
            Kind::TripleDes => 24,
            Kind::Cast5 => 16,
        }
    }

    /// The cipher with a key, which is filled with zeros or cut.
    ///
    /// # Errors
    /// `39000` for a key that the cipher doesn't take; `does` names the doing that failed.
    pub fn with_key(self, key: &[u8], does: &str) -> Result<Box<dyn BlockCipher>> {
        let mut key = key[..key.len().min(self.key_bytes_max())].to_vec();
        let bytes = match self {
            Kind::Aes => key.len().max(1).next_multiple_of(8).max(16),
            Kind::Blowfish => key.len(),
            other => other.key_bytes_max(),
        };
        match self {
            // A key is repeated until it is long enough: a short one twice says the same.
            Kind::Blowfish if (1..4).contains(&key.len()) => key = key.repeat(4),
            _ => key.resize(bytes, 0),
        }
        let wrong = || cipher_error(does, "Cipher cannot be initialized");
        fn keyed<C>(key: &[u8]) -> Option<Box<dyn BlockCipher>>
        where
            C: KeyInit + BlockCipherEncrypt + BlockCipherDecrypt + 'static,
        {
            Some(Box::new(Keyed(C::new_from_slice(key).ok()?)))
        }
        let cipher = match (self, bytes) {
            (Kind::Aes, 16) => keyed::<aes::Aes128>(&key),
            (Kind::Aes, 24) => keyed::<aes::Aes192>(&key),
            (Kind::Aes, _) => keyed::<aes::Aes256>(&key),
            (Kind::Blowfish, _) => keyed::<blowfish::Blowfish>(&key),
            (Kind::Des, _) => keyed::<des::Des>(&key),
            (Kind::TripleDes, _) => keyed::<des::TdesEde3>(&key),
            (Kind::Cast5, _) => keyed::<cast5::Cast5>(&key),
        };
        cipher.ok_or_else(wrong)
    }
}

fn cipher_error(does: &str, why: &str) -> base::Error {
    err!(EXTERNAL_ROUTINE_INVOCATION_EXCEPTION, "{does} error: {why}")
}

/// How blocks depend on those before them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Ecb,
    Cbc,
    Cfb,
}

/// A cipher, its mode and its padding, as `aes-cbc/pad:pkcs` and the like name them.
struct Algorithm {
    kind: Kind,
    mode: Mode,
    padded: bool,
}

impl Algorithm {
    fn parse(name: &str) -> Result<Algorithm> {
        let name = name.to_ascii_lowercase();
        let wrong = |why: &str| err!(INVALID_PARAMETER_VALUE, "Cannot use \"{name}\": {why}");
        let mut parts = name.split('/');
        let cipher = parts.next().unwrap_or_default();
        let mut padded = true;
        for option in parts.filter(|p| !p.is_empty()) {
            match option.split_once(':') {
                None => return Err(wrong("Badly formatted type")),
                Some(("pad", "pkcs")) => padded = true,
                Some(("pad", "none")) => padded = false,
                Some(("pad", _)) => return Err(wrong("No such cipher algorithm")),
                Some(_) => return Err(wrong("Unknown option")),
            }
        }
        let (family, mode) = cipher.split_once('-').unwrap_or((cipher, "cbc"));
        let kind = match family {
            "aes" | "rijndael" => Kind::Aes,
            "bf" | "blowfish" => Kind::Blowfish,
            "des" => Kind::Des,
            "3des" => Kind::TripleDes,
            "des3" if cipher != "des3" => Kind::TripleDes,
            "cast5" => Kind::Cast5,
            _ => return Err(wrong("No such cipher algorithm")),
        };
        let mode = match mode {
            "ecb" => Mode::Ecb,
            "cbc" => Mode::Cbc,
            "cfb" if kind == Kind::Blowfish => Mode::Cfb,
            _ => return Err(wrong("No such cipher algorithm")),
        };
        Ok(Algorithm { kind, mode, padded })
    }
}

/// The initial vector, filled with zeros or cut to a block.
fn vector(iv: &[u8], size: usize) -> Vec<u8> {
    let mut out = iv[..iv.len().min(size)].to_vec();
    out.resize(size, 0);
    out
}

/// Encrypts data by an algorithm's name.
///
/// # Errors
/// `22023` for a name that is none; `39000` for data or keys that don't fit.
pub fn encrypt(data: &[u8], key: &[u8], iv: &[u8], name: &str) -> Result<Vec<u8>> {
    let algorithm = Algorithm::parse(name)?;
    let cipher = algorithm.kind.with_key(key, "encrypt")?;
    let size = cipher.size();
    let mut out = data.to_vec();
    let mut last = vector(iv, size);
    if algorithm.mode == Mode::Cfb {
        cfb_encrypt(&*cipher, &mut last, &mut out);
        return Ok(out);
    }
    if algorithm.padded {
        let pad = size - out.len() % size;
        out.resize(out.len() + pad, pad as u8);
    } else if out.len() % size != 0 {
        return Err(cipher_error("encrypt", "Encryption failed"));
    }
    for block in out.chunks_exact_mut(size) {
        if algorithm.mode == Mode::Cbc {
            mix(block, &last);
        }
        cipher.encrypt(block);
        last.copy_from_slice(block);
    }
    Ok(out)
}

/// The reverse of [`encrypt`].
///
/// # Errors
/// As it, and `39000` for data that the key doesn't fit.
pub fn decrypt(data: &[u8], key: &[u8], iv: &[u8], name: &str) -> Result<Vec<u8>> {
    let algorithm = Algorithm::parse(name)?;
    let cipher = algorithm.kind.with_key(key, "decrypt")?;
    let size = cipher.size();
    let mut out = data.to_vec();
    let mut last = vector(iv, size);
    if algorithm.mode == Mode::Cfb {
        cfb_decrypt(&*cipher, &mut last, &mut out);
        return Ok(out);
    }
    let failed = || cipher_error("decrypt", "Decryption failed");
    if out.len() % size != 0 {
        return Err(failed());
    }
    for block in out.chunks_exact_mut(size) {
        let before = block.to_vec();
        cipher.decrypt(block);
        if algorithm.mode == Mode::Cbc {
            mix(block, &last);
        }
        last = before;
    }
    if algorithm.padded {
        let pad = usize::from(out.last().copied().ok_or_else(failed)?);
        if pad == 0 || pad > size || !out.ends_with(&vec![pad as u8; pad]) {
            bail!(EXTERNAL_ROUTINE_INVOCATION_EXCEPTION, "decrypt error: Decryption failed");
        }
        out.truncate(out.len() - pad);
    }
    Ok(out)
}

fn mix(block: &mut [u8], with: &[u8]) {
    block.iter_mut().zip(with).for_each(|(a, b)| *a ^= b);
}

/// Encrypts in CFB mode; `last` is the block before, and then the last one.
pub fn cfb_encrypt(cipher: &dyn BlockCipher, last: &mut [u8], data: &mut [u8]) {
    for block in data.chunks_mut(cipher.size()) {
        cipher.encrypt(last);
        mix(block, last);
        last[..block.len()].copy_from_slice(block);
    }
}

/// The reverse of [`cfb_encrypt`].
pub fn cfb_decrypt(cipher: &dyn BlockCipher, last: &mut [u8], data: &mut [u8]) {
    for block in data.chunks_mut(cipher.size()) {
        cipher.encrypt(last);
        let before = block.to_vec();
        mix(block, last);
        last[..before.len()].copy_from_slice(&before);
    }
}
