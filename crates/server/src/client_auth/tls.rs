//! TLS by rustls: certificates from files, and a socket's encryption as a machine without a socket of its
//! own. The session feeds it bytes and takes bytes from it, so a handshake waits as everything else does.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::settings::{Settings, setting};
use base::{Error, Result, err};
use rustls::crypto::ring;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256, Sha384, Sha512};

use super::x509;

/// Certificate and key.
pub struct Tls {
    config: Arc<ServerConfig>,
    /// The hash of the certificate that channel binding uses (`tls-server-end-point`).
    pub certificate_hash: Vec<u8>,
}

fn unreadable(what: &str, path: &Path, why: impl std::fmt::Display) -> Error {
    err!(CONFIG_FILE_ERROR, "could not load {what} file \"{}\": {why}", path.display())
        .hint("see ssl_cert_file, ssl_key_file and ssl_ca_file")
}

/// The configuration that the settings ask for; None without `ssl`.
///
/// # Errors
/// `F0000`: a file that can't be read, or isn't what it should be; a key that others may read.
pub fn load(dir: &Path, settings: &Settings) -> Result<Option<Tls>> {
    if !settings.bool(setting::SSL) {
        return Ok(None);
    }
    let file = |id| dir.join(settings.str(id));
    let (cert_file, key_file) = (file(setting::SSL_CERT_FILE), file(setting::SSL_KEY_FILE));
    let chain = certificates("server certificate", &cert_file)?;
    let key = private_key(&key_file)?;
    let provider = Arc::new(ring::default_provider());
    let versions: &[&rustls::SupportedProtocolVersion] =
        match settings.str(setting::SSL_MIN_PROTOCOL_VERSION) {
            "TLSv1.3" => &[&rustls::version::TLS13],
            _ => &[&rustls::version::TLS12, &rustls::version::TLS13],
        };
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions)
        .map_err(|e| err!(CONFIG_FILE_ERROR, "could not set up TLS: {e}"))?;
    let builder = match settings.str(setting::SSL_CA_FILE) {
        "" => builder.with_no_client_auth(),
        name => {
            let path = dir.join(name);
            let mut roots = RootCertStore::empty();
            for root in certificates("root certificate", &path)? {
                roots.add(root).map_err(|e| unreadable("root certificate", &path, e))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build();
            let failed = |e| unreadable("root certificate", &path, e);
            builder.with_client_cert_verifier(verifier.map_err(failed)?)
        }
    };
    let leaf =
        chain.first().ok_or_else(|| unreadable("server certificate", &cert_file, "empty"))?;
    let certificate_hash = end_point_hash(leaf);
    let config = builder
        .with_single_cert(chain, key)
        .map_err(|e| unreadable("private key", &key_file, e))?;
    Ok(Some(Tls { config: Arc::new(config), certificate_hash }))
}

fn certificates(what: &str, path: &PathBuf) -> Result<Vec<CertificateDer<'static>>> {
    let failed = |e: &dyn std::fmt::Display| unreadable(what, path, e);
    let pem = fs::read(path).map_err(|e| failed(&e))?;
    let all: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let all = all.map_err(|e| failed(&e))?;
    if all.is_empty() {
        return Err(failed(&"no certificate in it"));
    }
    let old = |der: &CertificateDer<'_>| x509::parse(der).map_or(3, |f| f.version) < 3;
    if all.iter().any(old) {
        return Err(failed(&"it is an X.509 certificate of version 1")
            .hint("Certificates of version 3 are taken: make it with extensions."));
    }
    Ok(all)
}

fn private_key(path: &PathBuf) -> Result<PrivateKeyDer<'static>> {
    let failed = |e: &dyn std::fmt::Display| unreadable("private key", path, e);
    let about = fs::metadata(path).map_err(|e| failed(&e))?;
    let name = path.display();
    if !about.is_file() {
        base::bail!(CONFIG_FILE_ERROR, "private key file \"{name}\" is not a regular file");
    }
    let me = nix::unistd::geteuid().as_raw();
    if about.uid() != me && about.uid() != 0 {
        base::bail!(
            CONFIG_FILE_ERROR,
            "private key file \"{name}\" must be owned by the database user or root"
        );
    }
    // Root may own it for several servers, and then its group may read it.
    let forbidden = if about.uid() == me { 0o077 } else { 0o037 };
    if about.mode() & forbidden != 0 {
        return Err(err!(
            CONFIG_FILE_ERROR,
            "private key file \"{name}\" has group or world access"
        )
        .detail(
            "File must have permissions u=rw (0600) or less if owned by the database user, or \
             permissions u=rw,g=r (0640) or less if owned by root.",
        ));
    }
    let pem = fs::read(path).map_err(|e| failed(&e))?;
    PrivateKeyDer::from_pem_slice(&pem).map_err(|e| failed(&e))
}

/// RFC 5929, section 4: by the hash of the certificate's signature, SHA-256 instead of the weak ones.
fn end_point_hash(certificate: &CertificateDer<'_>) -> Vec<u8> {
    let algorithm = x509::parse(certificate).unwrap_or_default().algorithm;
    match algorithm[..] {
        // sha384WithRSAEncryption (1.2.840.113549.1.1.12), ecdsa-with-SHA384 (1.2.840.10045.4.3.3).
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 12]
        | [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3] => Sha384::digest(certificate).to_vec(),
        // The same with SHA-512.
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 13]
        | [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4] => Sha512::digest(certificate).to_vec(),
        _ => Sha256::digest(certificate).to_vec(),
    }
}

/// Why a handshake failed. What rustls calls an unsupported version is that of the client's certificate.
fn in_words(error: rustls::Error) -> Box<dyn std::error::Error + Send + Sync> {
    match error.to_string() {
        text if text.contains("UnsupportedCertVersion") => {
            "the client's certificate is an X.509 certificate of version 1; version 3 is taken"
                .into()
        }
        _ => error.into(),
    }
}

/// The row of `pg_stat_ssl` for a connection.
#[derive(Clone, Debug)]
pub struct TlsInfo {
    /// `TLSv1.3`.
    pub version: &'static str,
    /// As OpenSSL names it.
    pub cipher: String,
    /// Bits of its key.
    pub bits: i32,
    /// The client's certificate.
    pub client: Option<x509::Fields>,
    /// The server certificate's hash, for channel binding.
    pub certificate_hash: Vec<u8>,
}

/// A connection's encryption.
pub struct TlsStream(ServerConnection);

/// Most bytes that are encrypted before they are sent.
const CHUNK: usize = 16 * 1024;

impl TlsStream {
    /// Before the handshake.
    ///
    /// # Errors
    /// When the library refuses.
    pub fn new(tls: &Tls) -> Result<TlsStream> {
        let connection = ServerConnection::new(tls.config.clone());
        let connection =
            connection.map_err(|e| err!(CONNECTION_FAILURE, "could not begin TLS: {e}"))?;
        Ok(TlsStream(connection))
    }

    /// Reads what the client sent; on the way does what the handshake wants.
    pub fn read(&mut self, raw: &mut (impl Read + Write), out: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.reader().read(out) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            if self.0.read_tls(raw)? == 0 {
                return Ok(0);
            }
            let processed = self.0.process_new_packets();
            // Answers of the handshake, or why it failed. What can't leave now leaves later.
            let flushed = self.flush(raw);
            processed.map_err(|e| io::Error::new(io::ErrorKind::InvalidData, in_words(e)))?;
            match flushed {
                Err(e) if e.kind() != io::ErrorKind::WouldBlock => return Err(e),
                _ => {}
            }
        }
    }

    /// Takes some bytes, when everything before them has left.
    pub fn write(&mut self, raw: &mut impl Write, bytes: &[u8]) -> io::Result<usize> {
        self.flush(raw)?;
        let taken = self.0.writer().write(&bytes[..bytes.len().min(CHUNK)])?;
        match self.flush(raw) {
            Err(e) if e.kind() != io::ErrorKind::WouldBlock => Err(e),
            _ => Ok(taken),
        }
    }

    /// Whether something waits to leave.
    pub fn is_pending(&self) -> bool {
        self.0.wants_write()
    }

    /// Sends what waits to leave.
    pub fn flush(&mut self, raw: &mut impl Write) -> io::Result<()> {
        while self.0.wants_write() {
            self.0.write_tls(raw)?;
        }
        Ok(())
    }

    /// Says goodbye; what can't leave at once does not.
    pub fn close(&mut self, raw: &mut impl Write) {
        self.0.send_close_notify();
        let _ = self.flush(raw);
    }

    /// The result of the handshake.
    pub fn info(&self, tls: &Tls) -> TlsInfo {
        let version = match self.0.protocol_version() {
            Some(rustls::ProtocolVersion::TLSv1_3) => "TLSv1.3",
            _ => "TLSv1.2",
        };
        let suite = self.0.negotiated_cipher_suite().and_then(|s| s.suite().as_str());
        let suite = suite.unwrap_or_default();
        let client = self.0.peer_certificates().and_then(|c| c.first());
        TlsInfo {
            version,
            cipher: openssl_name(suite),
            bits: if suite.contains("128") { 128 } else { 256 },
            client: client.and_then(|der| x509::parse(der)),
            certificate_hash: tls.certificate_hash.clone(),
        }
    }
}

/// A cipher suite under the name that OpenSSL, and so PostgreSQL, gives it.
fn openssl_name(suite: &str) -> String {
    match suite.strip_prefix("TLS13_") {
        Some(rest) => format!("TLS_{rest}"),
        None => suite
            .trim_start_matches("TLS_")
            .replace("_WITH_", "_")
            .replace("AES_", "AES")
            .trim_end_matches("_SHA256")
            .replace("CHACHA20_POLY1305", "CHACHA20-POLY1305")
            .replace('_', "-")
            .replace("AES128-GCM", "AES128-GCM-SHA256"),
    }
}

#[cfg(test)]
mod tests {
    use super::openssl_name;

    #[test]
    fn ciphers_have_openssls_names() {
        for (suite, name) in [
            ("TLS13_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384"),
            ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"),
            ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
            ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ] {
            assert_eq!(openssl_name(suite), name);
        }
    }
}
