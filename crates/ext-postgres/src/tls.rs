//! TLS to another server, as libpq's `sslmode` asks for it.
//!
//! | sslmode | encrypted | the server's certificate |
//! |---|---|---|
//! | `disable` | never | |
//! | `allow` | if the server refuses to go without | any |
//! | `prefer` (when none is given) | if the server can | any |
//! | `require` | always | any; with `sslrootcert` as `verify-ca` |
//! | `verify-ca` | always | one that a root of `sslrootcert` vouches for |
//! | `verify-full` | always | the same, and it names the host |
//!
//! Names are taken from the certificate's alternative names, not from its common name. `channel_binding`, `sslcrl` and
//! passwords of keys are left out.
//!
//! The state of a connection is shared by who reads and who writes ([`Stream::try_clone`]); nobody holds it while they
//! wait for the other side to send something.

use std::fmt::Display;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use logical::conninfo::Conninfo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{WebPkiSupportedAlgorithms, ring};
use rustls::server::ParsedCertificate;
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

/// Bytes that are encrypted before they are sent.
const CHUNK: usize = 16 * 1024;

/// How an attempt to connect goes about encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// Without.
    Plain,
    /// If the server can.
    IfOffered,
    /// Or not at all.
    Always,
}

/// The attempts that `sslmode` asks for, one after the other.
///
/// # Errors
/// libpq's words for a mode that is none.
pub(crate) fn attempts(info: &Conninfo) -> Result<&'static [Attempt], String> {
    let host = info.get("hostaddr").or(info.get("host")).unwrap_or("localhost");
    if info.get("channel_binding") == Some("require") {
        return Err("channel binding required, but it is not supported by this client".to_owned());
    }
    let local = host.starts_with('/');
    match info.get("sslmode").unwrap_or("prefer") {
        "disable" | "allow" | "prefer" if local => Ok(&[Attempt::Plain]),
        // Sockets of the same machine have no TLS, as libpq has it.
        "require" | "verify-ca" | "verify-full" if local => Ok(&[Attempt::Plain]),
        "disable" => Ok(&[Attempt::Plain]),
        "allow" => Ok(&[Attempt::Plain, Attempt::Always]),
        "prefer" => Ok(&[Attempt::IfOffered, Attempt::Plain]),
        "require" | "verify-ca" | "verify-full" => Ok(&[Attempt::Always]),
        other => Err(format!("invalid sslmode value: \"{other}\"")),
    }
}

/// Takes any certificate, or any that a root vouches for, whatever it names.
#[derive(Debug)]
struct Chain {
    roots: Option<Arc<RootCertStore>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Chain {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if let Some(roots) = &self.roots {
            let parsed = ParsedCertificate::try_from(end_entity)?;
            let algorithms = self.algorithms.all;
            verify_server_cert_signed_by_trust_anchor(
                &parsed,
                roots,
                intermediates,
                now,
                algorithms,
            )?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// The bytes of a file that a connection string names.
fn read_pem(path: &str) -> io::Result<Vec<u8>> {
    /// Of a system's certificates there are some hundred kilobytes.
    const PEM_MAX_BYTES: u64 = 8 << 20;
    let mut pem = Vec::new();
    exec::server_file::open(Path::new(path))?.take(PEM_MAX_BYTES).read_to_end(&mut pem)?;
    Ok(pem)
}

fn roots(path: &str) -> Result<RootCertStore, String> {
    let failed = |e: &dyn Display| format!("could not read root certificate file \"{path}\": {e}");
    let pem = read_pem(path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => format!(
            "root certificate file \"{path}\" does not exist\nEither provide the file or change sslmode to disable server certificate verification."
        ),
        _ => failed(&e),
    })?;
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(&pem) {
        roots.add(root.map_err(|e| failed(&e))?).map_err(|e| failed(&e))?;
    }
    Ok(roots)
}

/// The client's certificate and its key.
fn own(
    cert: &str,
    key: &str,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
    let read = |what: &str, path: &str| {
        read_pem(path).map_err(|e| format!("could not read {what} file \"{path}\": {e}"))
    };
    let pem = read("certificate", cert)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let chain = chain.map_err(|e| format!("could not read certificate file \"{cert}\": {e}"))?;
    let pem = read("private key", key)?;
    let key = PrivateKeyDer::from_pem_slice(&pem)
        .map_err(|e| format!("could not load private key file \"{key}\": {e}"))?;
    Ok((chain, key))
}

fn config(info: &Conninfo) -> Result<ClientConfig, String> {
    let failed = |e: &dyn Display| format!("could not set up TLS: {e}");
    let provider = Arc::new(ring::default_provider());
    let algorithms = provider.signature_verification_algorithms;
    let mode = info.get("sslmode").unwrap_or("prefer");
    let file = info.get("sslrootcert").filter(|file| !file.is_empty());
    let roots = match (mode, file) {
        ("verify-ca" | "verify-full", None) => {
            return Err(format!("sslmode \"{mode}\" needs a root certificate: sslrootcert"));
        }
        ("require" | "verify-ca" | "verify-full", Some(file)) => Some(Arc::new(roots(file)?)),
        _ => None,
    };
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|e| failed(&e))?
        .dangerous();
    let builder = match (mode, roots) {
        ("verify-full", Some(roots)) => {
            let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
            builder.with_custom_certificate_verifier(verifier.map_err(|e| failed(&e))?)
        }
        (_, roots) => {
            builder.with_custom_certificate_verifier(Arc::new(Chain { roots, algorithms }))
        }
    };
    match (info.get("sslcert"), info.get("sslkey")) {
        (Some(cert), Some(key)) => {
            let (chain, key) = own(cert, key)?;
            builder.with_client_auth_cert(chain, key).map_err(|e| failed(&e))
        }
        (None, _) => Ok(builder.with_no_client_auth()),
        (Some(_), None) => Err("certificate present, but not private key file: sslkey".to_owned()),
    }
}

/// A connection's encryption.
pub(crate) struct Stream {
    socket: TcpStream,
    machine: Arc<Mutex<ClientConnection>>,
    /// Bytes that came and have not been decrypted, from `used` on. The one who reads has them.
    raw: Vec<u8>,
    used: usize,
}

fn lock(machine: &Mutex<ClientConnection>) -> MutexGuard<'_, ClientConnection> {
    machine.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stream {
    /// The handshake, with a server that has agreed to it.
    ///
    /// # Errors
    /// Why it failed.
    pub(crate) fn begin(
        mut socket: TcpStream,
        info: &Conninfo,
        patience: Duration,
    ) -> Result<Stream, String> {
        let host = info.get("host").or(info.get("hostaddr")).unwrap_or("localhost");
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| format!("\"{host}\" is no name of a host"))?;
        let failed = |e: &dyn Display| format!("SSL error: {e}");
        let mut machine =
            ClientConnection::new(Arc::new(config(info)?), name).map_err(|e| failed(&e))?;
        socket.set_read_timeout(Some(patience)).map_err(|e| failed(&e))?;
        while machine.is_handshaking() {
            machine.complete_io(&mut socket).map_err(|e| failed(&e))?;
        }
        let machine = Arc::new(Mutex::new(machine));
        Ok(Stream { socket, machine, raw: Vec::new(), used: 0 })
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// For a thread that writes while another one reads.
    pub(crate) fn try_clone(&self) -> io::Result<Stream> {
        let machine = self.machine.clone();
        Ok(Stream { socket: self.socket.try_clone()?, machine, raw: Vec::new(), used: 0 })
    }

    pub(crate) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            {
                let mut machine = lock(&self.machine);
                match machine.reader().read(into) {
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                    // Without a word of farewell, as programs that are killed end.
                    Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                    done => return done,
                }
            }
            if self.used == self.raw.len() {
                self.raw.resize(CHUNK, 0);
                self.used = CHUNK;
                let count = self.socket.read(&mut self.raw)?;
                self.raw.truncate(count);
                self.used = 0;
            }
            let mut machine = lock(&self.machine);
            let mut rest = &self.raw[self.used..];
            let ended = rest.is_empty();
            machine.read_tls(&mut rest)?;
            self.used = self.raw.len() - rest.len();
            machine
                .process_new_packets()
                .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
            while machine.wants_write() {
                machine.write_tls(&mut self.socket)?;
            }
            if ended {
                return Ok(0);
            }
        }
    }

    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        for chunk in bytes.chunks(CHUNK) {
            let mut machine = lock(&self.machine);
            machine.writer().write_all(chunk)?;
            while machine.wants_write() {
                machine.write_tls(&mut self.socket)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<&'static [Attempt], String> {
        attempts(&Conninfo::parse(text).unwrap())
    }

    #[test]
    fn modes_say_what_is_tried() {
        assert_eq!(of("host=a").unwrap(), [Attempt::IfOffered, Attempt::Plain]);
        assert_eq!(of("host=a sslmode=disable").unwrap(), [Attempt::Plain]);
        assert_eq!(of("host=a sslmode=verify-full").unwrap(), [Attempt::Always]);
        assert_eq!(of("host=/tmp sslmode=require").unwrap(), [Attempt::Plain]);
        assert!(of("host=a sslmode=maybe").unwrap_err().contains("invalid sslmode"));
    }

    #[test]
    fn a_mode_that_verifies_needs_roots() {
        let info = |text| Conninfo::parse(text).unwrap();
        let error = config(&info("host=a sslmode=verify-full")).unwrap_err();
        assert!(error.contains("sslrootcert"), "{error}");
        let error = config(&info("host=a sslmode=verify-ca sslrootcert=/nowhere")).unwrap_err();
        assert!(error.contains("does not exist"), "{error}");
        assert!(config(&info("host=a sslmode=require")).is_ok());
    }
}
