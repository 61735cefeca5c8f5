use sluicegate::adapter::KeyTag;
use tonic::transport::server::{TcpConnectInfo, TlsConnectInfo};

use super::{Key, KeyBuf, Missing, View};

/// The certificate that the client has shown in the TLS handshake with tonic's own server.
///
/// The key is the certificate itself, so a client with a new one has a fresh budget. If certificates are renewed often,
/// read the name of the client from them in a layer of your own, and use [`Extension`](super::Extension).
///
/// A client without a certificate is refused with `INVALID_ARGUMENT`; [`First`](super::First) has an alternative for it.
/// A connection without TLS is a mistake in the server's set-up: `INTERNAL`.
#[derive(Debug, Clone, Copy)]
pub struct PeerCertificate;

impl<V: View> Key<V> for PeerCertificate {
    fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing> {
        let found = view.extension(|info: &TlsConnectInfo<TcpConnectInfo>| info.peer_certs());
        let Some(certificates) = found else {
            return Err(Missing::server(
                "the TLS connection of the client",
                "serve with `tonic::transport::Server::builder().tls_config(..)` and a client CA",
            ));
        };
        let certificate = certificates.as_ref().and_then(|certificates| certificates.first());
        let certificate = certificate.ok_or_else(|| Missing::client("a client certificate"))?;
        KeyTag::Certificate.push(key, certificate);
        Ok(())
    }
}
