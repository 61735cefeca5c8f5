//! Connections to the application, with or without TLS.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::ServerError;
use arc_swap::ArcSwap;
use http::Uri;
use sluicegate_config::proxy::Upstream;
use tokio_rustls::rustls;
use tower_service::Service;

use crate::run::{ClientConnector, causes, client_connector};

/// Opens connections to the application, each within the time that one may take. Clones share the files of
/// `upstream.tls`.
#[derive(Clone)]
pub(crate) struct Connector {
    inner: Arc<ArcSwap<ClientConnector>>,
    upstream: Upstream,
}

impl Connector {
    /// A connector for this application.
    ///
    /// # Errors
    ///
    /// If a file of `upstream.tls` cannot be read, or the system names no authorities.
    pub(crate) fn new(upstream: &Upstream) -> Result<Self, ServerError> {
        let inner = Arc::new(ArcSwap::from_pointee(connector(upstream)?));
        Ok(Self { inner, upstream: upstream.clone() })
    }

    /// Reads the files of `upstream.tls` again, for further connections. If one is not valid, nothing changes.
    ///
    /// # Errors
    ///
    /// Like [`Connector::new`].
    pub(crate) fn reload(&self) -> Result<(), ServerError> {
        if self.upstream.tls.is_some() {
            self.inner.store(Arc::new(connector(&self.upstream)?));
        }
        Ok(())
    }

    /// The files of `upstream.tls`.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.upstream.tls.iter().flat_map(|tls| {
            let identity = tls.identity.iter().flat_map(|(certificate, key)| [certificate, key]);
            tls.authorities.iter().chain(identity).map(PathBuf::as_path)
        })
    }
}

impl Service<Uri> for Connector {
    type Response = <ClientConnector as Service<Uri>>::Response;
    type Error = <ClientConnector as Service<Uri>>::Error;
    type Future = <ClientConnector as Service<Uri>>::Future;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        ClientConnector::clone(&self.inner.load()).call(uri)
    }
}

fn connector(upstream: &Upstream) -> Result<ClientConnector, ServerError> {
    let Upstream { tls, http2, connect_timeout, .. } = upstream;
    client_connector(tls.as_ref(), (*http2, *connect_timeout))
        .map_err(|error| ServerError::because("upstream.tls", error))
}

/// Whether a connection was not there in time.
pub(crate) fn is_timeout(error: &(dyn Error + 'static)) -> bool {
    let timed_out = |error: &io::Error| error.kind() == io::ErrorKind::TimedOut;
    causes(error).any(|error| error.downcast_ref().is_some_and(timed_out))
}

/// Why the proxy and the application do not speak TLS with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TlsFailure {
    /// The certificate of the application is not valid, has another name, or is by another authority.
    Certificate,
    /// The application answers something else than TLS, such as plain HTTP.
    NotTls,
    /// The application has ended TLS, for example because it does not accept the certificate of the proxy.
    Ended,
    /// Anything else.
    Handshake,
}

impl TlsFailure {
    /// The failure of TLS among the causes of `error`.
    pub(crate) fn among(error: &(dyn Error + 'static)) -> Option<Self> {
        let failure = causes(error).find_map(|error| tls_error(error.downcast_ref()?))?;
        Some(match failure {
            rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented => {
                Self::Certificate
            }
            rustls::Error::InvalidMessage(_) => Self::NotTls,
            rustls::Error::AlertReceived(_) => Self::Ended,
            _ => Self::Handshake,
        })
    }

    /// What has happened, as a sentence for the client.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Certificate => "the certificate of the application is not valid for it",
            Self::NotTls => "the application does not answer with TLS",
            Self::Ended => "the application refused the TLS connection of the proxy",
            Self::Handshake => "TLS with the application failed",
        }
    }
}

/// An error of input and output has another one inside of it that is not its source.
fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    let inner = error.get_ref()?;
    inner.downcast_ref().or_else(|| tls_error(inner.downcast_ref()?))
}
