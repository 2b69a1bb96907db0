//! Client authentication: who may come in, and how. Read at the start and at each reload; a connection looks at
//! it once, so what changes holds for those that come later.
//!
//! * [`hba`] says which clients must show what (`pg_hba.conf`);
//! * [`ident`] which roles a user of the system, or the owner of a certificate, may be (`pg_ident.conf`);
//! * [`tls`] encrypts;
//! * [`failures`] makes those who guess wait.
//!
//! The conversation itself is the session's ([`crate::session`]).

pub mod failures;
pub mod hba;
pub mod ident;
pub mod tls;
pub mod x509;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::settings::{Settings, setting};
use base::{Error, Result};

use hba::Hba;
use ident::Ident;
use tls::Tls;

/// The file that says who may come in.
pub const HBA_FILE: &str = "pg_hba.conf";
/// The file that maps names.
pub const IDENT_FILE: &str = "pg_ident.conf";

/// See the module's documentation.
pub struct ClientAuth {
    /// The rules.
    pub hba: Hba,
    /// The maps of names that rules refer to.
    pub ident: Ident,
    /// Certificate and key, if clients may encrypt.
    pub tls: Option<Arc<Tls>>,
}

impl ClientAuth {
    /// Reads the rules and the certificates.
    ///
    /// # Errors
    /// One clear line: a file that can't be read, a line that means nothing.
    pub fn load(dir: &Path, settings: &Settings) -> Result<ClientAuth> {
        let hba = hba(&hba_path(dir, settings))?;
        if let Some(error) = hba.first_error() {
            return Err(error);
        }
        // Without a file nobody is mapped; lines without meaning are passed over, as the log says.
        let ident = ident(&ident_path(dir, settings)).unwrap_or_default();
        for error in ident.errors() {
            crate::log::error(0, &error, None);
        }
        Ok(ClientAuth { hba, ident, tls: tls::load(dir, settings)?.map(Arc::new) })
    }
}

/// Where the rules are.
pub fn hba_path(dir: &Path, settings: &Settings) -> PathBuf {
    path_of(dir, settings.str(setting::HBA_FILE), HBA_FILE)
}

/// Where the maps of names are.
pub fn ident_path(dir: &Path, settings: &Settings) -> PathBuf {
    path_of(dir, settings.str(setting::IDENT_FILE), IDENT_FILE)
}

fn path_of(dir: &Path, given: &str, name: &str) -> PathBuf {
    if given.is_empty() { dir.join(name) } else { PathBuf::from(given) }
}

fn text(path: &Path) -> Result<String> {
    let failed = |e| Error::io(format_args!("read file \"{}\"", path.display()), &e);
    std::fs::read_to_string(path).map_err(failed)
}

/// The file of rules as it is now, with what is wrong in it.
///
/// # Errors
/// When it can't be read.
pub fn hba(path: &Path) -> Result<Hba> {
    Ok(Hba::parse(&text(path)?))
}

/// The file of maps as it is now, with what is wrong in it.
///
/// # Errors
/// When it can't be read.
pub fn ident(path: &Path) -> Result<Ident> {
    Ok(Ident::parse(&text(path)?))
}

/// Writes the rules of a new data directory: everybody on this machine by this method, nobody else. By
/// `peer`, which asks the system, who comes over TCP needs a password.
///
/// # Errors
/// I/O errors.
pub fn write_rules(dir: &Path, method: &str) -> Result<()> {
    let path = dir.join(HBA_FILE);
    let failed = |e| Error::io(format_args!("write file \"{}\"", path.display()), &e);
    std::fs::write(&path, rules(method)).map_err(failed)?;
    let path = dir.join(IDENT_FILE);
    let failed = |e| Error::io(format_args!("write file \"{}\"", path.display()), &e);
    std::fs::write(&path, ident::DEFAULT).map_err(failed)
}

fn rules(method: &str) -> String {
    let over_tcp = if method == "peer" { "scram-sha-256" } else { method };
    let mut rules = DEFAULT.to_owned();
    for database in ["all", "replication"] {
        let mut line = |kind: &str, address: &str, method: &str| {
            rules += &format!("{kind:<8}{database:<12}  all   {address:<15}{method}\n");
        };
        line("local", "", method);
        line("host", "127.0.0.1/32", over_tcp);
        line("host", "::1/128", over_tcp);
    }
    rules
}

const DEFAULT: &str = "\
# Who may connect, and how. The first line that fits decides; if none does, the client is refused.
# Changes take effect with: threadgres reload, SIGHUP, or SELECT pg_reload_conf().
#
# TYPE     local, host, hostssl (only encrypted), hostnossl (only not encrypted)
# DATABASE all, sameuser, samerole, replication (backups, which \"all\" does not mean), or names with commas between them
# USER     all, names, or +name for all members of a role
# ADDRESS  all, samehost, samenet, or a network: 10.0.0.0/8, fd00::/8
# METHOD   trust, reject, scram-sha-256, md5, password, peer (local), cert (hostssl)
#
# TYPE  DATABASE      USER  ADDRESS        METHOD
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_of_a_new_directory_are_sound() {
        for method in ["trust", "scram-sha-256", "peer"] {
            let hba = Hba::parse(&rules(method));
            assert!(hba.first_error().is_none());
            assert_eq!(hba.rules().count(), 6);
        }
    }
}
