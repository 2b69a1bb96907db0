//! SCRAM-SHA-256 and SCRAM-SHA-256-PLUS, the server's side (RFC 5802, RFC 7677, RFC 5929 for
//! `tls-server-end-point`).
//!
//! ```text
//!   client                                        server
//!   n,,n=,r=<nonce>                  ──────────▶
//!                                    ◀──────────  r=<nonce><more>,s=<salt>,i=<iterations>
//!   c=<binding>,r=<nonce><more>,p=<proof> ─────▶
//!                                    ◀──────────  v=<signature>
//! ```
//! The server keeps a [`Verifier`], from which the password can't be read and with which nobody can log
//! in. A role without one gets an exchange that looks the same and fails at its end ([`Verifier::mock`]),
//! so that nobody learns which roles there are.
//!
//! The user's name in the first message is ignored, as in PostgreSQL: the start-up packet has it.

use std::fmt;

use base::{Error, Result, err};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Without channel binding.
pub const PLAIN: &str = "SCRAM-SHA-256";
/// With it.
pub const PLUS: &str = "SCRAM-SHA-256-PLUS";
/// Rounds that a new verifier's key derivation takes.
pub const ITERATIONS: u32 = 4096;
/// Bytes of a new verifier's salt.
pub const SALT_BYTES: usize = 16;
/// Random bytes of the server's part of the nonce.
pub const NONCE_BYTES: usize = 18;

type Key = [u8; 32];

/// The server's record of a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    iterations: u32,
    salt: Vec<u8>,
    stored_key: Key,
    server_key: Key,
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verifier")
    }
}

fn hmac(key: &[u8], data: &[u8]) -> Key {
    // HMAC takes keys of any length.
    match Hmac::<Sha256>::new_from_slice(key) {
        Ok(mut mac) => {
            mac.update(data);
            mac.finalize().into_bytes().into()
        }
        Err(_) => [0; 32],
    }
}

/// Rounds of a key derivation between two calls of its [`Pause`]: some 100 microseconds.
const ROUNDS: u32 = 256;

/// Called now and then by a key derivation, which takes long: lets others run, or ends it.
pub type Pause<'a> = &'a mut dyn FnMut() -> Result<()>;

/// RFC 5802's `Hi`: PBKDF2 with HMAC-SHA-256 and one block of output (RFC 8018, section 5.2).
fn salted(password: &str, salt: &[u8], iterations: u32, pause: Pause<'_>) -> Result<Key> {
    let Ok(keyed) = Hmac::<Sha256>::new_from_slice(password.as_bytes()) else {
        return Err(Error::internal("a key of this length is refused"));
    };
    let round = |data: &[&[u8]]| -> Key {
        let mut mac = keyed.clone();
        data.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().into()
    };
    let mut last = round(&[salt, &1_u32.to_be_bytes()]);
    let mut sum = last;
    for n in 1..iterations {
        if n % ROUNDS == 0 {
            pause()?;
        }
        last = round(&[&last]);
        sum.iter_mut().zip(last).for_each(|(s, l)| *s ^= l);
    }
    Ok(sum)
}

/// The client's side of an exchange without channel binding.
pub struct ClientExchange {
    password: String,
    nonce: String,
}

impl ClientExchange {
    /// With a random nonce of printable letters.
    pub fn new(password: &str, nonce: &[u8]) -> ClientExchange {
        ClientExchange { password: password.to_owned(), nonce: BASE64.encode(nonce) }
    }

    /// The first message.
    pub fn first(&self) -> String {
        format!("n,,n=,r={}", self.nonce)
    }

    /// The answer to the server's first message, and the signature that the server must give.
    ///
    /// # Errors
    /// `08P01` for a message that is none.
    pub fn answer(&self, message: &str, pause: Pause<'_>) -> Result<(String, String)> {
        let part =
            |name: &str| message.split(',').find_map(|p| p.strip_prefix(name)).unwrap_or_default();
        let (nonce, salt, count) = (part("r="), part("s="), part("i="));
        let broken = || crate::violation("malformed SCRAM message".to_owned());
        let salt = BASE64.decode(salt).map_err(|_| broken())?;
        let count: u32 = count.parse().map_err(|_| broken())?;
        if !nonce.starts_with(&self.nonce) || count == 0 {
            return Err(broken());
        }
        let prepared = stringprep::saslprep(&self.password);
        let password = prepared.as_deref().unwrap_or(&self.password);
        let salted = salted(password, &salt, count, pause)?;
        let without = format!("c=biws,r={nonce}");
        let auth = format!("n=,r={},{message},{without}", self.nonce);
        let client_key = hmac(&salted, b"Client Key");
        let stored: Key = Sha256::digest(client_key).into();
        let signature = hmac(&stored, auth.as_bytes());
        let mut proof = client_key;
        proof.iter_mut().zip(signature).for_each(|(p, s)| *p ^= s);
        let server = hmac(&hmac(&salted, b"Server Key"), auth.as_bytes());
        Ok((
            format!("{without},p={}", BASE64.encode(proof)),
            format!("v={}", BASE64.encode(server)),
        ))
    }
}

impl Verifier {
    /// For a new password.
    ///
    /// # Errors
    /// Those of `pause`.
    pub fn new(password: &str, salt: &[u8], iterations: u32, pause: Pause<'_>) -> Result<Verifier> {
        // A password that can't be prepared is taken as it is, as PostgreSQL does.
        let prepared = stringprep::saslprep(password);
        let password = prepared.as_deref().unwrap_or(password);
        let salted = salted(password, salt, iterations, pause)?;
        Ok(Verifier {
            iterations,
            salt: salt.to_vec(),
            stored_key: Sha256::digest(hmac(&salted, b"Client Key")).into(),
            server_key: hmac(&salted, b"Server Key"),
        })
    }

    /// One that no password fits, always the same for a name as long as the secret is.
    pub fn mock(secret: &[u8], user: &str) -> Verifier {
        let salt = hmac(secret, user.as_bytes())[..SALT_BYTES].to_vec();
        Verifier { iterations: ITERATIONS, salt, stored_key: [0; 32], server_key: [0; 32] }
    }

    /// Reads `SCRAM-SHA-256$4096:salt$stored key:server key`; None when it isn't one.
    pub fn parse(text: &str) -> Option<Verifier> {
        let rest = text.strip_prefix("SCRAM-SHA-256$")?;
        let (head, keys) = rest.split_once('$')?;
        let (iterations, salt) = head.split_once(':')?;
        let (stored, server) = keys.split_once(':')?;
        let key = |text: &str| Key::try_from(BASE64.decode(text).ok()?).ok();
        Some(Verifier {
            iterations: iterations.parse().ok().filter(|n| *n > 0)?,
            salt: BASE64.decode(salt).ok()?,
            stored_key: key(stored)?,
            server_key: key(server)?,
        })
    }

    /// Whether it was made of this password.
    ///
    /// # Errors
    /// Those of `pause`.
    pub fn fits(&self, password: &str, pause: Pause<'_>) -> Result<bool> {
        let other = Verifier::new(password, &self.salt, self.iterations, pause)?;
        Ok(other.server_key.ct_eq(&self.server_key).into())
    }
}

impl fmt::Display for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "SCRAM-SHA-256${}:{}${}:{}",
            self.iterations,
            BASE64.encode(&self.salt),
            BASE64.encode(self.stored_key),
            BASE64.encode(self.server_key)
        )
    }
}

/// One exchange, between its first and its last message.
pub struct Exchange {
    verifier: Verifier,
    /// The value that `c=` must have, decoded: the header, and with channel binding the certificate's hash.
    binding: Vec<u8>,
    /// Both nonces together.
    nonce: String,
    client_first_bare: String,
    server_first: String,
}

fn malformed(detail: impl Into<String>) -> Error {
    err!(PROTOCOL_VIOLATION, "malformed SCRAM message").detail(detail.into()).fatal()
}

fn text(message: &[u8]) -> Result<&str> {
    let text = std::str::from_utf8(message);
    text.map_err(|_| malformed("The message is not valid UTF-8."))
}

/// The next attribute, which must be this one.
fn attribute<'a>(rest: &mut std::str::Split<'a, char>, name: char) -> Result<&'a str> {
    let next = rest.next().unwrap_or_default();
    match next.strip_prefix(name).and_then(|n| n.strip_prefix('=')) {
        Some(value) => Ok(value),
        None => Err(malformed(format!("Expected attribute \"{name}\" but found something else."))),
    }
}

impl Exchange {
    /// Answers the client's first message: the exchange and what to send. `nonce` is the server's part
    /// (printable, no comma); `certificate` the hash of the server's certificate when the connection is
    /// encrypted.
    ///
    /// # Errors
    /// `08P01` malformed; `28000` a mechanism or a channel binding that doesn't fit; fatal.
    pub fn begin(
        mechanism: &[u8],
        message: &[u8],
        verifier: Verifier,
        nonce: &str,
        certificate: Option<&[u8]>,
    ) -> Result<(Exchange, String)> {
        let plus = match (mechanism, certificate) {
            (m, _) if m == PLAIN.as_bytes() => false,
            (m, Some(_)) if m == PLUS.as_bytes() => true,
            _ => {
                let message = "client selected an invalid SASL authentication mechanism";
                return Err(err!(PROTOCOL_VIOLATION, "{message}").fatal());
            }
        };
        let message = text(message)?;
        let (flag, rest) = message
            .split_once(',')
            .ok_or_else(|| malformed("The message has no channel binding flag."))?;
        let binding = binding(flag, plus, certificate)?;
        let bare = rest
            .strip_prefix(',')
            .ok_or_else(|| malformed("Authorization identities are not supported."))?;
        let mut attributes = bare.split(',');
        if bare.starts_with("m=") {
            let message = "client requires an unsupported SCRAM extension";
            return Err(err!(FEATURE_NOT_SUPPORTED, "{message}").fatal());
        }
        attribute(&mut attributes, 'n')?;
        let client_nonce = attribute(&mut attributes, 'r')?;
        if client_nonce.is_empty() || !client_nonce.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(malformed("The nonce has characters that are not printable."));
        }
        let nonce = format!("{client_nonce}{nonce}");
        let salt = BASE64.encode(&verifier.salt);
        let server_first = format!("r={nonce},s={salt},i={}", verifier.iterations);
        let exchange = Exchange {
            verifier,
            binding,
            nonce,
            client_first_bare: bare.to_owned(),
            server_first: server_first.clone(),
        };
        Ok((exchange, server_first))
    }

    /// Checks the client's last message: the proof that the server knows the password, too, or None when
    /// the client doesn't.
    ///
    /// # Errors
    /// `08P01` malformed; `28000` when the channel is another than the client sees; fatal.
    pub fn finish(&self, message: &[u8]) -> Result<Option<String>> {
        let message = text(message)?;
        let (without_proof, proof) =
            message.rsplit_once(",p=").ok_or_else(|| malformed("The message has no proof."))?;
        let mut attributes = without_proof.split(',');
        let binding = attribute(&mut attributes, 'c')?;
        if BASE64.decode(binding).ok().as_deref() != Some(&self.binding[..]) {
            let message = "SCRAM channel binding check failed";
            return Err(err!(INVALID_AUTHORIZATION_SPECIFICATION, "{message}").fatal());
        }
        if attribute(&mut attributes, 'r')? != self.nonce {
            let detail = "Nonce does not match.";
            return Err(err!(PROTOCOL_VIOLATION, "invalid SCRAM response").detail(detail).fatal());
        }
        let proof = BASE64.decode(proof).ok().and_then(|p| Key::try_from(p).ok());
        let proof = proof.ok_or_else(|| malformed("The proof is malformed."))?;
        let auth_message =
            format!("{},{},{without_proof}", self.client_first_bare, self.server_first);
        let signature = hmac(&self.verifier.stored_key, auth_message.as_bytes());
        let mut client_key = proof;
        client_key.iter_mut().zip(signature).for_each(|(k, s)| *k ^= s);
        let stored: Key = Sha256::digest(client_key).into();
        if !bool::from(stored.ct_eq(&self.verifier.stored_key)) {
            return Ok(None);
        }
        let signature = hmac(&self.verifier.server_key, auth_message.as_bytes());
        Ok(Some(format!("v={}", BASE64.encode(signature))))
    }
}

/// The part about the channel that the client's last message must repeat.
fn binding(flag: &str, plus: bool, certificate: Option<&[u8]>) -> Result<Vec<u8>> {
    match (flag, plus, certificate) {
        ("n", false, _) | ("y", false, None) => Ok(format!("{flag},,").into_bytes()),
        // Somebody in between has taken the better mechanism out of the list.
        ("y", false, Some(_)) => Err(err!(
            INVALID_AUTHORIZATION_SPECIFICATION,
            "SCRAM channel binding negotiation error"
        )
        .detail(
            "The client supports SCRAM channel binding but thinks the server does not.  \
                     However, this server does support channel binding.",
        )
        .fatal()),
        ("p=tls-server-end-point", true, Some(hash)) => {
            let mut all = b"p=tls-server-end-point,,".to_vec();
            all.extend_from_slice(hash);
            Ok(all)
        }
        ("n" | "y", true, _) => Err(malformed(
            "The client selected SCRAM-SHA-256-PLUS, but the SCRAM message does not include channel \
             binding data.",
        )),
        (other, true, _) if other.starts_with("p=") => {
            let kind = &other[2..];
            let message = format!("unsupported SCRAM channel-binding type \"{kind}\"");
            Err(Error::new(base::sqlstate::PROTOCOL_VIOLATION, message).fatal())
        }
        (other, false, _) if other.starts_with("p=") => Err(malformed(
            "The client selected SCRAM-SHA-256 without channel binding, but the SCRAM message includes \
             channel binding data.",
        )),
        _ => Err(malformed("Unexpected channel-binding flag.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER_NONCE: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";

    /// The example of RFC 7677, section 3.
    fn rfc7677() -> Verifier {
        let salt = BASE64.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        derived("pencil", &salt, 4096)
    }

    fn derived(password: &str, salt: &[u8], iterations: u32) -> Verifier {
        Verifier::new(password, salt, iterations, &mut || Ok(())).unwrap()
    }

    fn fits(verifier: &Verifier, password: &str) -> bool {
        verifier.fits(password, &mut || Ok(())).unwrap()
    }

    #[test]
    fn a_derivation_pauses_often_and_can_be_ended() {
        let mut pauses = 0;
        let mut count = || {
            pauses += 1;
            Ok(())
        };
        rfc7677().fits("pencil", &mut count).unwrap();
        assert_eq!(pauses, ITERATIONS / ROUNDS - 1);
        let mut end = || Err(err!(QUERY_CANCELED, "enough"));
        assert!(Verifier::new("x", b"salt", u32::MAX, &mut end).is_err());
    }

    fn begin(first: &str) -> Result<(Exchange, String)> {
        Exchange::begin(PLAIN.as_bytes(), first.as_bytes(), rfc7677(), SERVER_NONCE, None)
    }

    #[test]
    fn the_example_of_rfc_7677() {
        let (exchange, first) = begin("n,,n=user,r=rOprNGfwEbeRWgbNEkqO").unwrap();
        assert_eq!(
            first,
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
        );
        let last = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                    p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        let end = exchange.finish(last.as_bytes()).unwrap();
        assert_eq!(end.as_deref(), Some("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="));
    }

    #[test]
    fn a_wrong_proof_is_no_error_and_no_success() {
        let (exchange, _) = begin("n,,n=user,r=rOprNGfwEbeRWgbNEkqO").unwrap();
        let nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let last = |binding: &str, nonce: &str, proof: &str| {
            exchange.finish(format!("c={binding},r={nonce},p={proof}").as_bytes())
        };
        let wrong = BASE64.encode([7; 32]);
        assert_eq!(last("biws", nonce, &wrong).unwrap(), None);
        assert_eq!(last("eSws", nonce, &wrong).unwrap_err().code().as_str(), "28000");
        assert_eq!(last("biws", "other", &wrong).unwrap_err().code().as_str(), "08P01");
        assert_eq!(last("biws", nonce, "short").unwrap_err().code().as_str(), "08P01");
        let mock = Verifier::mock(b"secret", "nobody");
        assert_eq!(mock, Verifier::mock(b"secret", "nobody"));
        let (exchange, _) =
            Exchange::begin(PLAIN.as_bytes(), b"n,,n=,r=abc", mock, "def", None).unwrap();
        let last = format!("c=biws,r=abcdef,p={wrong}");
        assert_eq!(exchange.finish(last.as_bytes()).unwrap(), None);
    }

    #[test]
    fn the_channel_is_bound_or_the_client_could_not_know_better() {
        let hash = [9; 32];
        let with = |mechanism: &str, first: &str, certificate: Option<&[u8]>| {
            let (m, f) = (mechanism.as_bytes(), first.as_bytes());
            Exchange::begin(m, f, rfc7677(), "x", certificate).map(|(e, _)| e.binding)
        };
        let bound = with(PLUS, "p=tls-server-end-point,,n=,r=a", Some(&hash)).unwrap();
        assert!(bound.ends_with(&hash) && bound.starts_with(b"p=tls-server-end-point,,"));
        assert_eq!(with(PLAIN, "n,,n=,r=a", Some(&hash)).unwrap(), b"n,,");
        assert_eq!(with(PLAIN, "y,,n=,r=a", None).unwrap(), b"y,,");
        for (mechanism, first, certificate) in [
            (PLAIN, "y,,n=,r=a", Some(&hash[..])),
            (PLUS, "n,,n=,r=a", Some(&hash)),
            (PLUS, "p=tls-unique,,n=,r=a", Some(&hash)),
            (PLUS, "p=tls-server-end-point,,n=,r=a", None),
            (PLAIN, "p=tls-server-end-point,,n=,r=a", Some(&hash)),
            (PLAIN, "n,a=me,n=,r=a", None),
            (PLAIN, "n,,m=x,n=,r=a", None),
            (PLAIN, "n,,r=a", None),
            (PLAIN, "n,,n=,r=", None),
            (PLAIN, "", None),
            ("SCRAM-SHA-1", "n,,n=,r=a", None),
        ] {
            assert!(with(mechanism, first, certificate).is_err(), "{mechanism} {first}");
        }
    }

    #[test]
    fn verifiers_are_kept_as_postgresql_keeps_them() {
        let verifier = rfc7677();
        let text = verifier.to_string();
        assert!(text.starts_with("SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$"), "{text}");
        assert_eq!(Verifier::parse(&text), Some(verifier.clone()));
        assert!(fits(&verifier, "pencil") && !fits(&verifier, "Pencil"));
        for bad in ["", "md5abc", "SCRAM-SHA-256$0:AA==$AA==:AA==", "SCRAM-SHA-256$1:$x:y"] {
            assert_eq!(Verifier::parse(bad), None, "{bad}");
        }
        // SASLprep: a soft hyphen is nothing, and a wide letter is the letter.
        let salt = [1; 16];
        assert!(fits(&derived("I\u{ad}X", &salt, 2), "IX"));
        assert!(fits(&derived("\u{ff21}", &salt, 2), "A"));
    }
}
