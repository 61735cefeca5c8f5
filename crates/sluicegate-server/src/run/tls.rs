use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use sluicegate_config::proxy::UpstreamTls;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::client::danger::HandshakeSignatureValid;
use tokio_rustls::rustls::client::verify_server_name;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem};
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use tokio_rustls::rustls::{
    self, ClientConfig, DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig,
    SignatureScheme,
};

use super::connector::ClientConnector;
use super::error::ServerError;
use super::keepalive::keep_alive_to_servers;

/// The longest file that is read, in bytes. Bundles of all public authorities are shorter.
const LARGEST: u64 = 1 << 20;

/// The certificate of a server, and whose clients it accepts. The files are PEM, and are read again on a reload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    clients: Option<PathBuf>,
    client_name: Option<Box<str>>,
    name: Option<Box<str>>,
    pub(super) is_grpc_only: bool,
}

impl Tls {
    /// A certificate, followed by those that vouch for it, and its private key.
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        let (certificate, key) = (certificate.into(), key.into());
        Self { certificate, key, clients: None, client_name: None, name: None, is_grpc_only: false }
    }

    /// Accepts only clients with a certificate that one of these authorities has signed: mutual TLS.
    #[must_use]
    pub fn clients(mut self, authorities: impl Into<PathBuf>) -> Self {
        self.clients = Some(authorities.into());
        self
    }

    /// Accepts only [clients](Self::clients) whose certificate has this name, as `envoy.example`.
    #[must_use]
    pub fn client_name(mut self, name: &str) -> Self {
        self.client_name = Some(name.into());
        self
    }

    /// Leaves the HTTP port without TLS.
    #[must_use]
    pub fn grpc_only(mut self) -> Self {
        self.is_grpc_only = true;
        self
    }

    /// Expects this name in the certificates of other servers like this one, instead of the host that it calls.
    #[must_use]
    pub fn name_of_others(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The name that the certificate of another server at this host has to have.
    pub(crate) fn name_of<'a>(&'a self, host: &'a str) -> &'a str {
        self.name.as_deref().unwrap_or(host)
    }

    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        let Self { certificate, key, clients, client_name: _, name: _, is_grpc_only: _ } = self;
        [certificate, key].into_iter().chain(clients).map(PathBuf::as_path)
    }

    /// Reads the files.
    ///
    /// # Errors
    ///
    /// What is wrong with the files.
    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor, ServerError> {
        let provider = Arc::new(ring::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| ServerError::because("TLS cannot be set up", error))?;
        let config = match &self.clients {
            None if self.client_name.is_some() => {
                let what = "clients have to have a name: expected the authorities that sign it";
                return Err(ServerError::new(what));
            }
            None => config.with_no_client_auth(),
            Some(path) => {
                let roots = read_authorities(path)?;
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                let verifier = verifier
                    .map_err(|error| ServerError::file(path, "not usable for clients", error))?;
                config.with_client_cert_verifier(match &self.client_name {
                    Some(name) => Arc::new(NamedClients::new(verifier, name)?),
                    None => verifier,
                })
            }
        };
        let (certificates, key) = read_identity(&self.certificate, &self.key)?;
        let mut config = config.with_single_cert(certificates, key).map_err(|error| {
            ServerError::file(&self.key, "not the key of the certificate", error)
        })?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// How this server calls another one that has a certificate like it: it shows its own, and trusts the authorities of
    /// the system and those that it trusts for clients.
    ///
    /// # Errors
    ///
    /// What is wrong with the files.
    pub(crate) fn client(&self) -> Result<ClientConfig, ServerError> {
        let mut roots = match &self.clients {
            Some(path) => read_authorities(path)?,
            None => RootCertStore::empty(),
        };
        // Without any authority, no certificate is trusted, and the error of a call says so.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let identity = read_identity(&self.certificate, &self.key)?;
        let config = client_config(roots, Some(identity));
        let mut config =
            config.map_err(|error| ServerError::because("TLS cannot be set up", error))?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(config)
    }
}

/// Accepts clients whose certificate is signed by an authority and has a name.
#[derive(Debug)]
struct NamedClients {
    signed: Arc<dyn ClientCertVerifier>,
    name: ServerName<'static>,
}

impl NamedClients {
    fn new(signed: Arc<dyn ClientCertVerifier>, name: &str) -> Result<Self, ServerError> {
        let name = ServerName::try_from(name.to_owned())
            .map_err(|error| ServerError::because("not the name of a client", error))?;
        Ok(Self { signed, name })
    }
}

impl ClientCertVerifier for NamedClients {
    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let verified = self.signed.verify_client_cert(certificate, others, now)?;
        // The same names are in the certificates of clients and of servers.
        verify_server_name(&ParsedCertificate::try_from(certificate)?, &self.name)?;
        Ok(verified)
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.signed.root_hint_subjects()
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
}

/// A certificate, followed by those that vouch for it, and its private key.
type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// How a client connects that trusts these authorities, and shows its certificate if it has one.
fn client_config(
    authorities: RootCertStore,
    identity: Option<Identity>,
) -> Result<ClientConfig, rustls::Error> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(authorities);
    match identity {
        None => Ok(config.with_no_client_auth()),
        Some((certificates, key)) => config.with_client_auth_cert(certificates, key),
    }
}

/// Opens connections to a server, with TLS if `tls` says how: in HTTP/2 if it speaks that, and each within this time.
///
/// # Errors
///
/// If a file cannot be read, or the system names no authorities.
pub(crate) fn client_connector(
    tls: Option<&UpstreamTls>,
    (http2, connect_timeout): (bool, Duration),
) -> Result<ClientConnector, ServerError> {
    let mut tcp = HttpConnector::new();
    tcp.set_connect_timeout(Some(connect_timeout));
    tcp.set_nodelay(true);
    tcp.enforce_http(false);
    keep_alive_to_servers(&mut tcp);
    let config = |authorities, identity| {
        client_config(authorities, identity)
            .map_err(|error| ServerError::because("TLS cannot be set up", error))
    };
    let Some(tls) = tls else {
        let plain = HttpsConnector::from((tcp, config(RootCertStore::empty(), None)?));
        return Ok(ClientConnector::new(plain, connect_timeout));
    };
    let identity = tls.identity.as_ref().map(|(certificate, key)| read_identity(certificate, key));
    let roots = match &tls.authorities {
        Some(path) => read_authorities(path)?,
        None => authorities_of_system()?,
    };
    let builder = HttpsConnectorBuilder::new()
        .with_tls_config(config(roots, identity.transpose()?)?)
        .https_only();
    let builder = match &tls.server_name {
        None => builder,
        Some(name) => {
            let name = ServerName::try_from(name.clone())
                .map_err(|_| ServerError::new("server_name: not a host name"))?;
            builder.with_server_name_resolver(FixedServerNameResolver::new(name))
        }
    };
    // The client offers only the version that it is going to speak.
    let connector = match http2 {
        true => builder.enable_http2().wrap_connector(tcp),
        false => builder.enable_http1().wrap_connector(tcp),
    };
    Ok(ClientConnector::new(connector, connect_timeout))
}

fn authorities_of_system() -> Result<RootCertStore, ServerError> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    // Some systems have a few certificates that nothing can read. The others are good.
    let (added, _) = roots.add_parsable_certificates(found.certs);
    let why = found.errors.first();
    if added > 0 {
        if let Some(error) = why {
            tracing::warn!(%error, "some authorities of the system cannot be read");
        }
        return Ok(roots);
    }
    let why = why.map_or_else(|| "it has none".to_owned(), ToString::to_string);
    Err(ServerError::new(format!(
        "no authority of this system that vouches for certificates can be read ({why}), expected a file of `authorities`"
    )))
}

/// Reads the authorities in a PEM file.
///
/// # Errors
///
/// What is wrong with the file.
fn read_authorities(path: &Path) -> Result<RootCertStore, ServerError> {
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
fn read_identity(certificate: &Path, key: &Path) -> Result<Identity, ServerError> {
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
