//! An application that speaks TLS.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use sluicegate_tests::certificates;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::support::{LONGEST, OK, Running, Upstream};

/// An authority, and what it has vouched for, in files.
struct Authority {
    directory: TempDir,
    signs: certificates::Authority,
}

impl Authority {
    fn new() -> Self {
        let signs = certificates::Authority::new("authority");
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("ca.pem"), signs.pem()).unwrap();
        Self { directory, signs }
    }

    /// The path of a file, as text of TOML.
    fn path(&self, name: &str) -> String {
        format!("{:?}", self.directory.path().join(name))
    }

    /// Vouches for a certificate with this name, in `name.pem` and `name.key`.
    fn vouch(&self, name: &str) {
        let (certificate, key) = self.signs.sign(name);
        let at = self.directory.path();
        std::fs::write(at.join(format!("{name}.pem")), certificate).unwrap();
        std::fs::write(at.join(format!("{name}.key")), key).unwrap();
    }

    fn acceptor(&self, name: &str, asks_for_certificates: bool) -> TlsAcceptor {
        self.vouch(name);
        let at = self.directory.path();
        let provider = Arc::new(ring::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let config = config.with_safe_default_protocol_versions().unwrap();
        let config = if asks_for_certificates {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_file(at.join("ca.pem")).unwrap()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            config.with_client_cert_verifier(verifier.build().unwrap())
        } else {
            config.with_no_client_auth()
        };
        let certificate = CertificateDer::from_pem_file(at.join(format!("{name}.pem"))).unwrap();
        let key = PrivateKeyDer::from_pem_file(at.join(format!("{name}.key"))).unwrap();
        let mut config = config.with_single_cert(vec![certificate], key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }
}

/// What a client of an application has agreed on by ALPN, and said in the beginning.
#[derive(Debug, Clone, PartialEq)]
struct Greeting {
    protocol: Option<Vec<u8>>,
    said: String,
}

#[derive(Clone, Default)]
struct Spoken(Arc<Mutex<Vec<Greeting>>>);

impl Spoken {
    fn first(&self) -> Option<Greeting> {
        self.0.lock().unwrap().first().cloned()
    }
}

/// An application that answers the first bytes of each connection with `answer`, and returns what follows.
async fn application(acceptor: TlsAcceptor, answer: &'static str) -> (SocketAddr, Spoken) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let spoken = Spoken::default();
    let record = spoken.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, record) = (acceptor.clone(), record.clone());
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut bytes = [0; 4096];
                let length = stream.read(&mut bytes).await.unwrap_or_default();
                let protocol = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
                let said = String::from_utf8_lossy(&bytes[..length]).into_owned();
                record.0.lock().unwrap().push(Greeting { protocol, said });
                let _ = stream.write_all(answer.as_bytes()).await;
                while let Ok(length @ 1..) = stream.read(&mut bytes).await {
                    let _ = stream.write_all(&bytes[..length]).await;
                }
            });
        }
    });
    (address, spoken)
}

const GET: &[u8] = b"GET /a HTTP/1.1\r\nhost: example.com\r\nconnection: close\r\n\r\n";

async fn proxy(upstream: SocketAddr, tls: &str, more: &str) -> Running {
    let url = format!("https://localhost:{}", upstream.port());
    Running::start_at(&url, "", &format!("tls = {{ {tls} }}\n{more}")).await
}

#[tokio::test]
async fn requests_go_to_an_application_that_its_certificate_names() {
    let authority = Authority::new();
    let (upstream, spoken) = application(authority.acceptor("localhost", false), OK).await;
    let tls = format!("authorities = {}", authority.path("ca.pem"));
    let proxy = proxy(upstream, &tls, "").await;
    let answer = proxy.answer(GET).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("ok"), "{answer}");
    let Greeting { protocol, said } = spoken.first().unwrap();
    assert_eq!(protocol, None, "one version needs no negotiation");
    assert!(
        said.starts_with("GET /a HTTP/1.1\r\n") && said.contains("host: example.com"),
        "{said}"
    );
    assert!(proxy.admin("/readyz").await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn an_application_that_nobody_vouches_for_gets_no_request() {
    let (authority, other) = (Authority::new(), Authority::new());
    for (name, tls) in [
        // Another name.
        ("example.com", format!("authorities = {}", authority.path("ca.pem"))),
        // Another authority.
        ("localhost", format!("authorities = {}", other.path("ca.pem"))),
        // A name that the file asks for, and the certificate does not have.
        ("localhost", format!("authorities = {}, server_name = \"app\"", authority.path("ca.pem"))),
    ] {
        let (upstream, spoken) = application(authority.acceptor(name, false), OK).await;
        let proxy = proxy(upstream, &tls, "").await;
        let answer = proxy.answer(GET).await;
        assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
        assert!(answer.contains("certificate of the application is not valid"), "{answer}");
        assert_eq!(spoken.first(), None, "{name} {tls}");
    }
}

#[tokio::test]
async fn the_certificate_has_the_name_that_the_file_says() {
    let authority = Authority::new();
    let (upstream, _) = application(authority.acceptor("app.internal", false), OK).await;
    let ca = authority.path("ca.pem");
    let tls = format!("authorities = {ca}, server_name = \"app.internal\"");
    let answer = proxy(upstream, &tls, "").await.answer(GET).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[tokio::test]
async fn an_application_may_ask_for_the_certificate_of_the_proxy() {
    let authority = Authority::new();
    authority.vouch("proxy");
    let (upstream, _) = application(authority.acceptor("localhost", true), OK).await;
    let [ca, certificate, key] =
        ["ca.pem", "proxy.pem", "proxy.key"].map(|name| authority.path(name));
    let tls = format!("authorities = {ca}, certificate = {certificate}, key = {key}");
    let answer = proxy(upstream, &tls, "").await.answer(GET).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let answer = proxy(upstream, &format!("authorities = {ca}"), "").await.answer(GET).await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(answer.contains("refused the TLS connection"), "{answer}");
}

#[tokio::test]
async fn an_application_that_answers_plain_http_behind_https_is_told_apart() {
    // The first bytes of a handshake have no end of a head, so the application speaks first.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
            // Closed by the other end.
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    });
    let authority = Authority::new();
    let tls = format!("authorities = {}", authority.path("ca.pem"));
    let answer = proxy(upstream, &tls, "").await.answer(GET).await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(answer.contains("the application does not answer with TLS"), "{answer}");
}

#[tokio::test]
async fn files_for_the_application_are_read_again() {
    const LAST: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok";
    let (authority, other) = (Authority::new(), Authority::new());
    let (upstream, _) = application(authority.acceptor("localhost", false), LAST).await;
    let ca = other.directory.path().join("ca.pem");
    let file = other.directory.path().join("proxy.toml");
    let url = format!("https://localhost:{}", upstream.port());
    let tls = format!("tls = {{ authorities = {ca:?} }}");
    let proxy = Running::start_by(&file, &url, "", &tls).await;
    assert!(proxy.answer(GET).await.starts_with("HTTP/1.1 502 "));
    std::fs::copy(authority.directory.path().join("ca.pem"), &ca).unwrap();
    proxy.reload.now().unwrap();
    assert!(proxy.answer(GET).await.starts_with("HTTP/1.1 200 "));
    // A file that cannot be read changes nothing.
    std::fs::write(&ca, "").unwrap();
    let problem = proxy.reload.now().unwrap_err().to_string();
    assert!(problem.contains("there is no certificate"), "{problem}");
    assert!(proxy.answer(GET).await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn files_for_the_application_are_followed() {
    const LAST: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok";
    let (authority, other) = (Authority::new(), Authority::new());
    let (upstream, _) = application(authority.acceptor("localhost", false), LAST).await;
    let tls = format!("tls = {{ authorities = {} }}", other.path("ca.pem"));
    let url = format!("https://localhost:{}", upstream.port());
    let proxy = Running::start_at(&url, "", &tls).await;
    let _watching = proxy.reload.watch().unwrap().expect("files to watch");
    assert!(proxy.answer(GET).await.starts_with("HTTP/1.1 502 "));
    std::fs::write(other.directory.path().join("ca.pem"), authority.signs.pem()).unwrap();
    let renewed = async { while !proxy.answer(GET).await.starts_with("HTTP/1.1 200 ") {} };
    timeout(LONGEST, renewed).await.expect("a connection by the new file");
}

#[tokio::test]
async fn http_2_is_agreed_on_if_the_file_says_so() {
    let authority = Authority::new();
    let (upstream, spoken) = application(authority.acceptor("localhost", false), "").await;
    let tls = format!("authorities = {}", authority.path("ca.pem"));
    let proxy = proxy(upstream, &tls, "http2 = true").await;
    let mut client = proxy.connect().await;
    client.send(GET).await;
    let greeting = loop {
        match spoken.first() {
            Some(greeting) => break greeting,
            None => tokio::task::yield_now().await,
        }
    };
    assert_eq!(greeting.protocol.as_deref(), Some(&b"h2"[..]));
    assert!(greeting.said.starts_with("PRI * HTTP/2.0\r\n"));
}

#[tokio::test]
async fn a_websocket_passes_over_tls() {
    const SWITCHED: &str =
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
    let authority = Authority::new();
    let (upstream, _) = application(authority.acceptor("localhost", false), SWITCHED).await;
    let tls = format!("authorities = {}", authority.path("ca.pem"));
    let proxy = proxy(upstream, &tls, "").await;
    let mut client = proxy.connect().await;
    client
        .send("GET /ws HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-key: k\r\n\r\n")
        .await;
    assert!(client.until("\r\n\r\n").await.starts_with("HTTP/1.1 101 "));
    client.send("said through TLS").await;
    assert_eq!(client.until("TLS").await, "said through TLS");
}

#[tokio::test]
async fn a_handshake_that_never_ends_is_given_up_in_time() {
    let authority = Authority::new();
    let upstream = Upstream::start("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
    let tls = format!("authorities = {}", authority.path("ca.pem"));
    // The first bytes of a handshake have no end of a head, so the application would wait for ever.
    let proxy = proxy(upstream.address, &tls, "connect_timeout = \"100 ms\"").await;
    let answer = proxy.answer(GET).await;
    assert!(answer.starts_with("HTTP/1.1 504 ") && answer.contains("in time"), "{answer}");
}

#[tokio::test]
async fn files_that_cannot_be_read_are_said_at_the_start() {
    let authority = Authority::new();
    std::fs::write(authority.directory.path().join("empty.pem"), "").unwrap();
    for (tls, said) in [
        (
            format!("authorities = {}", authority.path("absent.pem")),
            "absent.pem: the file cannot be read: No such file",
        ),
        (
            format!("authorities = {}", authority.path("empty.pem")),
            "there is no certificate in PEM",
        ),
        (
            format!(
                "certificate = {}, key = {}",
                authority.path("ca.pem"),
                authority.path("absent.key")
            ),
            "absent.key: the file cannot be read: No such file",
        ),
        (
            format!(
                "authorities = {ca}, certificate = {ca}, key = {ca}",
                ca = authority.path("ca.pem")
            ),
            "there is no private key in PEM",
        ),
    ] {
        let problem = Running::problem("https://localhost", &format!("tls = {{ {tls} }}")).await;
        assert!(problem.contains(said), "{problem}");
    }
}
