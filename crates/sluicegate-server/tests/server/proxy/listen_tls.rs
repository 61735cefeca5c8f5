//! The certificate of the proxy itself.

use std::path::Path;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

use super::support::{LONGEST, OK, Running, Upstream, upload};

/// Writes a certificate for `localhost` and its key, and returns the certificate.
fn write(directory: &Path) -> CertificateDer<'static> {
    let key = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(directory.join("cert.pem"), key.cert.pem()).unwrap();
    std::fs::write(directory.join("key.pem"), key.signing_key.serialize_pem()).unwrap();
    key.cert.der().clone()
}

/// A connection of a client that believes both certificates, with the one that it was shown.
async fn connect(
    proxy: &Running,
    believed: &[CertificateDer<'static>],
) -> (TlsStream<TcpStream>, CertificateDer<'static>) {
    let mut roots = RootCertStore::empty();
    for certificate in believed {
        roots.add(certificate.clone()).unwrap();
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let stream = TcpStream::connect(proxy.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    let shown = stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned();
    (stream, shown)
}

async fn answer(client: &mut TlsStream<TcpStream>) -> String {
    client.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut bytes = Vec::new();
    let read = async {
        while !bytes.ends_with(b"\r\n\r\nok") {
            bytes.push(client.read_u8().await.expect("an answer"));
        }
    };
    timeout(LONGEST, read).await.expect("an answer in time");
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn a_new_certificate_is_for_new_connections_and_open_ones_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let first = write(at);
    let upstream = Upstream::start(OK).await;
    let [certificate, key] = ["cert.pem", "key.pem"].map(|name| at.join(name));
    let tls = format!("tls = {{ certificate = {certificate:?}, key = {key:?} }}");
    let url = format!("http://{}", upstream.address);
    let proxy = Running::start_by(&at.join("proxy.toml"), &url, &tls, "").await;
    let (mut open, shown) = connect(&proxy, std::slice::from_ref(&first)).await;
    assert_eq!(shown, first);
    assert!(answer(&mut open).await.starts_with("HTTP/1.1 200 "));

    let believed = [first.clone(), write(at)];
    proxy.reload.now().unwrap();
    let (mut new, shown) = connect(&proxy, &believed).await;
    assert_eq!(shown, believed[1]);
    assert!(answer(&mut new).await.starts_with("HTTP/1.1 200 "));
    assert!(answer(&mut open).await.starts_with("HTTP/1.1 200 "));

    // A certificate that cannot be read changes nothing.
    std::fs::remove_file(&certificate).unwrap();
    let problem = proxy.reload.now().unwrap_err().to_string();
    assert!(problem.contains("cert.pem: the file cannot be read: "), "{problem}");
    let (mut last, shown) = connect(&proxy, &believed).await;
    assert_eq!(shown, believed[1]);
    assert!(answer(&mut last).await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn a_client_that_sends_all_of_a_refused_body_with_tls_reads_why() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let believed = write(at);
    let upstream = Upstream::start(OK).await;
    let [certificate, key] = ["cert.pem", "key.pem"].map(|name| at.join(name));
    let tls = format!("tls = {{ certificate = {certificate:?}, key = {key:?} }}");
    let proxy = Running::start(upstream.address, &tls, "").await;
    let (mut client, _) = connect(&proxy, &[believed]).await;
    let request = upload("POST / HTTP/1.1\r\nhost: a b\r\n");
    client.write_all(&request).await.expect("a connection that takes all of it");
    let mut answer = String::new();
    timeout(LONGEST, client.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
}
