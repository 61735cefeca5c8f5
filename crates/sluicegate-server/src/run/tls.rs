use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::error::ServerError;

/// The longest file that is read, in bytes. Bundles of all public authorities are shorter.
const LARGEST: u64 = 1 << 20;

/// The certificate of a server, and whose clients it accepts. The files are PEM, and are read again on a reload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    clients: Option<PathBuf>,
}

impl Tls {
    /// A certificate, followed by those that vouch for it, and its private key.
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self { certificate: certificate.into(), key: key.into(), clients: None }
    }

    /// Accepts only clients with a certificate that one of these authorities has signed: mutual TLS.
    #[must_use]
    pub fn clients(mut self, authorities: impl Into<PathBuf>) -> Self {
        self.clients = Some(authorities.into());
        self
    }

    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        let Self { certificate, key, clients } = self;
        [certificate, key].into_iter().chain(clients).map(PathBuf::as_path)
    }

    /// Reads the files.
    ///
    /// # Errors
    ///
    /// What is wrong with the files.
    pub fn acceptor(&self) -> Result<TlsAcceptor, ServerError> {
        let provider = Arc::new(ring::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| ServerError::because("TLS cannot be set up", error))?;
        let config = match &self.clients {
            None => config.with_no_client_auth(),
            Some(path) => {
                let roots = read_authorities(path)?;
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                let verifier = verifier
                    .map_err(|error| ServerError::file(path, "not usable for clients", error))?;
                config.with_client_cert_verifier(verifier)
            }
        };
        let (certificates, key) = read_identity(&self.certificate, &self.key)?;
        let mut config = config.with_single_cert(certificates, key).map_err(|error| {
            ServerError::file(&self.key, "not the key of the certificate", error)
        })?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// Reads the authorities in a PEM file.
///
/// # Errors
///
/// What is wrong with the file.
pub fn read_authorities(path: &Path) -> Result<RootCertStore, ServerError> {
    let mut roots = RootCertStore::empty();
    for authority in certificates(path)? {
        let added = roots.add(authority);
        added.map_err(|error| ServerError::file(path, "not an authority", error))?;
    }
    Ok(roots)
}

/// Reads a certificate, followed by those that vouch for it, and its private key, from two PEM files.
///
/// # Errors
///
/// What is wrong with the files.
pub fn read_identity(
    certificate: &Path,
    key: &Path,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), ServerError> {
    let certificates = certificates(certificate)?;
    let private = PrivateKeyDer::from_pem_slice(&text(key)?)
        .map_err(|error| not_pem(key, "private key", error))?;
    Ok((certificates, private))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ServerError> {
    let text = text(path)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let certificates = certificates.map_err(|error| not_pem(path, "certificate", error))?;
    if certificates.is_empty() {
        return Err(not_pem(path, "certificate", pem::Error::NoItemsFound));
    }
    Ok(certificates)
}

fn text(path: &Path) -> Result<Vec<u8>, ServerError> {
    // Reading from a pipe or a device may never end.
    let read = match fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(unreadable(path, "it is a directory")),
        Ok(found) if !found.is_file() => return Err(unreadable(path, "it is not a regular file")),
        Ok(found) if found.len() > LARGEST => {
            return Err(unreadable(path, format!("it is longer than {LARGEST} bytes")));
        }
        Ok(_) => fs::read(path),
        Err(error) => Err(error),
    };
    read.map_err(|error| unreadable(path, error))
}

fn unreadable(path: &Path, why: impl Into<Box<dyn Error + Send + Sync>>) -> ServerError {
    ServerError::file(path, "the file cannot be read", why)
}

/// `what` is a private key or a certificate, and the file has none.
fn not_pem(path: &Path, what: &str, error: pem::Error) -> ServerError {
    match error {
        pem::Error::NoItemsFound => {
            let shown = path.display();
            ServerError::new(format!(
                "{shown}: there is no {what} in PEM, expected `-----BEGIN ..`"
            ))
        }
        error => ServerError::file(path, &format!("not a {what} in PEM"), error),
    }
}
