use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::error::ServerError;

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

    /// Reads the files.
    pub(super) fn acceptor(&self) -> Result<TlsAcceptor, ServerError> {
        let provider = Arc::new(ring::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| ServerError::because("TLS cannot be set up", error))?;
        let config = match &self.clients {
            None => config.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for authority in certificates(path)? {
                    let added = roots.add(authority);
                    added.map_err(|error| ServerError::file(path, "not an authority", error))?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                let verifier = verifier
                    .map_err(|error| ServerError::file(path, "not usable for clients", error))?;
                config.with_client_cert_verifier(verifier)
            }
        };
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|error| ServerError::file(&self.key, "not a private key", error))?;
        let mut config =
            config.with_single_cert(certificates(&self.certificate)?, key).map_err(|error| {
                ServerError::file(&self.key, "not the key of the certificate", error)
            })?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ServerError> {
    let certificates = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let certificates: Vec<_> =
        certificates.map_err(|error| ServerError::file(path, "not a certificate", error))?;
    if certificates.is_empty() {
        return Err(ServerError::new(format!("{}: there is no certificate", path.display())));
    }
    Ok(certificates)
}
