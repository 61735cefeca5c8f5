//! TLS, as configured.

use std::sync::Arc;
use std::{fmt, io};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::Certificates;

/// The configuration, made once for all connections.
#[derive(Clone)]
pub(crate) struct Tls(TlsConnector);

impl Tls {
    pub(crate) fn new(certificates: &Certificates) -> Result<Self, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let algorithms = provider.signature_verification_algorithms;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let roots = roots(certificates)?;
        let config = if certificates.any_host {
            let verifier = Arc::new(AnyHost { roots, algorithms });
            config.dangerous().with_custom_certificate_verifier(verifier)
        } else {
            config.with_root_certificates(roots)
        };
        let config = match &certificates.own {
            None => config.with_no_client_auth(),
            Some((chain, key)) => {
                let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| error.to_string())?;
                let made = config.with_client_auth_cert(read(chain)?, key);
                made.map_err(|error| error.to_string())?
            }
        };
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    pub(crate) async fn connect<S>(&self, host: &str, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        self.0.connect(name, stream).await
    }
}

/// Checks who has signed a certificate, and not for which host.
#[derive(Debug)]
struct AnyHost {
    roots: RootCertStore,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for AnyHost {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = ParsedCertificate::try_from(certificate)?;
        let (roots, algorithms) = (&self.roots, self.algorithms.all);
        verify_server_cert_signed_by_trust_anchor(
            &certificate,
            roots,
            intermediates,
            now,
            algorithms,
        )?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn roots(certificates: &Certificates) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let trusted = match &certificates.authorities {
        Some(pem) => read(pem)?,
        None => {
            let found = rustls_native_certs::load_native_certs();
            match found.errors.first() {
                Some(error) if found.certs.is_empty() => return Err(error.to_string()),
                _ => found.certs,
            }
        }
    };
    for certificate in trusted {
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    Ok(roots)
}

fn read(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    certificates.map_err(|error| error.to_string())
}

/// Hides the key.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}
