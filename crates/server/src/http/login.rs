//! The requester's identity: HTTP Basic (RFC 7617), over loopback.
//!
//! Two get in: a role that may log in, is a superuser or has the rights of `pg_monitor`, with its
//! password; and whoever may read the token, a random word in a file that is the owner's of the data
//! directory, as the password of any user, or as a Bearer token (RFC 6750). `pg_hba.conf` has no say.
//!
//! A right password is remembered by its hash for as long as the role keeps it, since looking it over
//! takes as long as many answers. Others are compared when it is their turn ([`super::gate`]), and an answer to a wrong
//! one comes after `authentication_failure_delay` or some times that.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use catalog::Rights;
use catalog::object::ids;
use sched::SpinLock;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use wire::password::StoredPassword;
use wire::scram::Verifier;

use super::gate::{Gate, Turn};
use crate::server::Server;

/// The token's file.
const TOKEN_FILE: &str = "threadgres.http_token";
/// Remembered passwords.
const KNOWN_MAX: usize = 16;

/// Where a data directory keeps the token of its running server.
pub fn token_file(dir: &Path) -> PathBuf {
    dir.join(TOKEN_FILE)
}

/// The result of a look at a request's credentials.
#[derive(Debug, PartialEq, Eq)]
pub enum Admission {
    /// They are right.
    In,
    /// There are none.
    Unknown,
    /// They are wrong: of this user.
    Out(String),
    /// They are looked at then.
    Later(Instant),
    /// Too many wait to be looked at.
    Never,
}

/// A password that was right.
struct Known {
    /// Of user and password.
    hash: [u8; 32],
    /// The password that the catalog kept then.
    kept: String,
}

/// See the module's documentation.
pub struct Guard {
    /// The turns of those whose password is to be compared.
    pub gate: Gate,
    token: String,
    known: SpinLock<Vec<Known>>,
}

impl Guard {
    /// Makes a token, and the file in the data directory.
    ///
    /// # Errors
    /// I/O errors.
    pub fn new(dir: &Path) -> io::Result<Guard> {
        let mut random = [0; 32];
        fs::File::open("/dev/urandom")?.read_exact(&mut random)?;
        let token: String = random.iter().map(|b| format!("{b:02x}")).collect();
        let path = token_file(dir);
        let fresh = path.with_extension("new");
        let _ = fs::remove_file(&fresh);
        let mut file = fs::File::options().write(true).create_new(true).mode(0o600).open(&fresh)?;
        file.write_all(format!("{token}\n").as_bytes())?;
        fs::rename(&fresh, &path)?;
        Ok(Guard { gate: Gate::default(), token, known: SpinLock::new(Vec::new()) })
    }

    /// Looks at an `Authorization` header. `waited`: its turn has come.
    pub fn admit(&self, server: &Server, header: &str, waited: bool) -> Admission {
        let (scheme, rest) = header.split_once(' ').unwrap_or((header, ""));
        let rest = rest.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            return if self.is_token(rest) { Admission::In } else { Admission::Out(String::new()) };
        }
        if !scheme.eq_ignore_ascii_case("basic") {
            return Admission::Unknown;
        }
        let Some((user, password)) = basic(rest) else { return Admission::Out(String::new()) };
        let role = Stored::of(server, &user);
        let hash: [u8; 32] = Sha256::digest([&*user, &*password].join("\0")).into();
        if self.is_token(&password) || self.is_known(&role, &hash) {
            return Admission::In;
        }
        let turn = if waited { Turn::Now } else { self.gate.turn(Instant::now()) };
        match turn {
            Turn::Now if self.fits(role, server, &user, &password, hash) => Admission::In,
            Turn::Now => Admission::Out(user),
            Turn::At(at) => Admission::Later(at),
            Turn::Never => Admission::Never,
        }
    }

    fn is_token(&self, given: &str) -> bool {
        self.token.as_bytes().ct_eq(given.as_bytes()).into()
    }

    /// Whether they were right before.
    fn is_known(&self, role: &Stored, hash: &[u8; 32]) -> bool {
        let Stored(Some(kept)) = role else { return false };
        self.known.lock().iter().any(|k| k.kept == *kept && bool::from(k.hash.ct_eq(hash)))
    }

    fn fits(
        &self,
        Stored(kept): Stored,
        server: &Server,
        user: &str,
        password: &str,
        hash: [u8; 32],
    ) -> bool {
        let parsed = kept.as_deref().and_then(StoredPassword::parse);
        let real = parsed.is_some();
        // An unknown role takes as long to refuse.
        let parsed = parsed
            .unwrap_or_else(|| StoredPassword::Scram(Verifier::mock(&server.mock_secret, user)));
        let fits = parsed.fits(user, password, &mut || Ok(())).unwrap_or(false) && real;
        if let (true, Some(kept)) = (fits, kept) {
            let mut known = self.known.lock();
            if known.len() == KNOWN_MAX {
                known.remove(0);
            }
            known.push(Known { hash, kept });
        }
        fits
    }
}

/// The password that the catalog keeps for a role that may look at the page.
struct Stored(Option<String>);

impl Stored {
    fn of(server: &Server, user: &str) -> Stored {
        let catalog = server.engine.catalog.shared().current();
        let rights = Rights { catalog: &catalog, database: ids::POSTGRES_DB };
        let role = catalog.role_named(user).filter(|role| {
            role.login
                && role.valid_until.is_none_or(|until| until > crate::server::now())
                && rights.has_rights_of(role.oid, ids::MONITOR)
        });
        Stored(role.and_then(|role| role.password.clone()))
    }
}

/// User and password.
fn basic(text: &str) -> Option<(String, String)> {
    let text = String::from_utf8(STANDARD.decode(text).ok()?).ok()?;
    let (user, password) = text.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::basic;

    #[test]
    fn credentials_are_a_user_and_a_password() {
        let pair = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        assert_eq!(basic("QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), pair("Aladdin", "open sesame"));
        assert_eq!(basic("dTphOmI="), pair("u", "a:b"));
        for bad in ["", "dQ==", "!!!", "dTph="] {
            assert_eq!(basic(bad), None, "{bad}");
        }
    }
}
