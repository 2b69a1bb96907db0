//! Passwords as the catalog keeps them, and the old MD5 challenge.

use base::Result;
use md5::{Digest, Md5};
use subtle::ConstantTimeEq;

use crate::scram::{Pause, Verifier};

/// The stored form of a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredPassword {
    /// For SCRAM.
    Scram(Verifier),
    /// `md5` and 32 hexadecimal digits.
    Md5(String),
}

fn hex(bytes: &[u8]) -> String {
    let pair = |b: &u8| format!("{b:02x}");
    bytes.iter().map(pair).collect()
}

fn md5_hex(first: &[u8], second: &[u8]) -> String {
    let mut hash = Md5::new();
    hash.update(first);
    hash.update(second);
    hex(&hash.finalize())
}

/// `md5` and the hash of password and user.
pub fn md5(user: &str, password: &str) -> String {
    format!("md5{}", md5_hex(password.as_bytes(), user.as_bytes()))
}

impl StoredPassword {
    /// Reads what the catalog has; None when it is a password in clear text.
    pub fn parse(text: &str) -> Option<StoredPassword> {
        if let Some(verifier) = Verifier::parse(text) {
            return Some(StoredPassword::Scram(verifier));
        }
        let digits = text.strip_prefix("md5")?;
        let is_hash = digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_hexdigit());
        is_hash.then(|| StoredPassword::Md5(text.to_owned()))
    }

    /// Whether it was made of this password.
    ///
    /// # Errors
    /// Those of `pause`.
    pub fn fits(&self, user: &str, password: &str, pause: Pause<'_>) -> Result<bool> {
        match self {
            StoredPassword::Scram(verifier) => verifier.fits(password, pause),
            StoredPassword::Md5(hash) => {
                Ok(hash.as_bytes().ct_eq(md5(user, password).as_bytes()).into())
            }
        }
    }
}

/// A client's answer to an MD5 challenge.
pub fn md5_answer(user: &str, password: &str, salt: [u8; 4]) -> String {
    let kept = md5(user, password);
    format!("md5{}", md5_hex(kept.trim_start_matches("md5").as_bytes(), &salt))
}

/// Whether a client's answer to an MD5 challenge shows that it knows the password.
pub fn md5_answer_fits(kept: &str, salt: [u8; 4], answer: &[u8]) -> bool {
    let digits = kept.strip_prefix("md5").unwrap_or(kept);
    let expected = format!("md5{}", md5_hex(digits.as_bytes(), &salt));
    expected.as_bytes().ct_eq(answer).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn md5_hashes_are_postgresqls() {
        let kept = md5("alice", "secret");
        assert_eq!(md5_hex(b"", b""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(StoredPassword::parse(&kept), Some(StoredPassword::Md5(kept.clone())));
        let known = StoredPassword::Md5(kept.clone());
        let fits = |user| known.fits(user, "secret", &mut || Ok(())).unwrap();
        assert!(fits("alice") && !fits("bob"));
        let answer = format!("md5{}", md5_hex(&kept.as_bytes()[3..], &[1, 2, 3, 4]));
        assert!(md5_answer_fits(&kept, [1, 2, 3, 4], answer.as_bytes()));
        assert!(!md5_answer_fits(&kept, [1, 2, 3, 5], answer.as_bytes()));
    }

    #[test]
    fn clear_text_is_told_from_what_is_kept() {
        assert_eq!(StoredPassword::parse("secret"), None);
        assert_eq!(StoredPassword::parse("md5secret"), None);
    }
}
