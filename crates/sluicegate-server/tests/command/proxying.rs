//! `sluicegate proxy`, as a program.
#![cfg(unix)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use sluicegate_server::status::{Keys, PeaksStatus, Status};
use sluicegate_tests::certificates::Authority;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore};

/// A proxy on free ports. It ends with this.
struct Proxied {
    child: Child,
    log: BufReader<ChildStderr>,
}

impl Proxied {
    fn start(config: &Path, more: &[&str]) -> Self {
        Self::start_and_watch(config, &[&["--no-watch"], more].concat())
    }

    /// Like `start`, but reads files again when they change.
    fn start_and_watch(config: &Path, more: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate"));
        command.args(["proxy", "--log", "json", "--admin", "127.0.0.1:0", "--config"]);
        command.arg(config).args(more);
        command.env_remove("SLUICEGATE_REDIS").env_remove("SLUICEGATE_ADMIN_TOKEN");
        command.env_remove("SLUICEGATE_STATE");
        command.env_remove("NOTIFY_SOCKET").env_remove("SLUICEGATE_LOG").stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        Self { child, log }
    }

    /// The next line of the log that contains `text`.
    fn line(&mut self, text: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.log.read_line(&mut line).unwrap(), 0, "the proxy ended");
            if line.contains(text) {
                return line;
            }
        }
    }

    fn address(&mut self, port: &str) -> String {
        let line = self.line(&format!("\"port\":\"{port}\""));
        let (_, rest) = line.split_once("\"address\":\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }
}

impl Drop for Proxied {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The answer to a request for `path`.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn config(upstream: &str, limit: &str) -> String {
    format!(
        "[listen]\naddress = \"127.0.0.1:0\"\n[upstream]\nurl = \"http://{upstream}\"\n\
         [[rules]]\nname = \"api\"\nkey = \"ip\"\nlimits = [\"{limit}\"]\n"
    )
}

#[test]
fn a_proxy_limits_reloads_logs_and_answers_its_last_request() {
    let application = TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = application.local_addr().unwrap().to_string();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("proxy.toml");
    std::fs::write(&file, config(&upstream, "1/hour")).unwrap();
    let mut proxy = Proxied::start(&file, &[]);
    let address = proxy.address("proxied");
    let admin = proxy.address("admin");
    // The application answers when it is told to.
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (arrive, arrived) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        for stream in application.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            // `/readyz` only connects.
            if stream.read(&mut head).unwrap_or(0) == 0 {
                continue;
            }
            arrive.send(()).unwrap();
            released.recv().unwrap();
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok");
        }
    });
    release.send(()).unwrap();
    assert!(get(&address, "/secret?token=1").ends_with("ok"));
    let line = proxy.line("sluicegate_proxy::access");
    assert!(line.contains("\"path\":\"/secret\"") && line.contains("\"status\":200"), "{line}");
    assert!(!line.contains("token"), "{line}");
    assert!(get(&address, "/").starts_with("HTTP/1.1 429 "));
    assert!(get(&admin, "/readyz").starts_with("HTTP/1.1 200 "));
    let metrics = get(&admin, "/metrics");
    assert!(metrics.contains("sluicegate_proxy_requests_total{status=\"4xx\"} 1"), "{metrics}");

    // What is not HTTP is counted and logged, although there is no request.
    let mut broken = TcpStream::connect(&address).unwrap();
    broken.write_all(b"GET / HTTP/1.1\r\nbad field: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    broken.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(proxy.line("no valid request").contains("sluicegate_proxy::access"));
    assert!(get(&admin, "/metrics").contains("sluicegate_proxy_malformed_total 1"));

    std::fs::write(&file, config(&upstream, "1000/hour")).unwrap();
    proxy.signal("-HUP");
    proxy.line("files read again");
    arrived.recv().unwrap();
    let asked = std::thread::spawn(move || get(&address, "/"));
    arrived.recv().unwrap();
    proxy.signal("-TERM");
    proxy.line("stopping");
    assert!(get(&admin, "/readyz").starts_with("HTTP/1.1 503 "));
    release.send(()).unwrap();
    assert!(asked.join().unwrap().ends_with("ok"));
    assert!(proxy.child.wait().unwrap().success());
}

#[test]
fn a_proxy_that_is_stopped_and_started_goes_on_counting() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("proxy.toml");
    std::fs::write(&file, config("127.0.0.1:1", "2/day burst 2")).unwrap();
    let counts = directory.path().join("counts");
    // Nobody answers there: an admitted request gets 502.
    for expected in ["502", "502", "429"] {
        let mut proxy = Proxied::start(&file, &["--state", counts.to_str().unwrap()]);
        let address = proxy.address("proxied");
        let answer = get(&address, "/");
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected} ")), "{answer}");
        proxy.signal("-TERM");
        assert!(proxy.child.wait().unwrap().success());
    }
}

/// Whether the proxy shows a certificate that this authority has signed.
fn is_by(authority: &Authority, address: &str) -> bool {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_root_certificates(roots).with_no_client_auth());
    let name = ServerName::try_from("localhost").unwrap();
    let mut client = ClientConnection::new(config, name).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    while client.is_handshaking() {
        if client.complete_io(&mut stream).is_err() {
            return false;
        }
    }
    true
}

#[test]
fn a_proxy_follows_a_certificate_that_kubernetes_replaces_without_a_signal() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    for (version, authority) in [("..old", &old), ("..new", &new)] {
        let (certificate, key) = authority.sign("localhost");
        std::fs::create_dir(at(version)).unwrap();
        std::fs::write(at(version).join("tls.crt"), certificate).unwrap();
        std::fs::write(at(version).join("tls.key"), key).unwrap();
    }
    symlink("..old", at("..data")).unwrap();
    for file in ["tls.crt", "tls.key"] {
        symlink(format!("..data/{file}"), at(file)).unwrap();
    }
    let [certificate, key] = ["tls.crt", "tls.key"].map(at);
    let tls = format!("[listen]\ntls = {{ certificate = {certificate:?}, key = {key:?} }}");
    // Elsewhere, so that nothing else changes beside it.
    let policies = tempfile::tempdir().unwrap();
    let file = policies.path().join("proxy.toml");
    std::fs::write(&file, config("127.0.0.1:1", "1/hour").replace("[listen]", &tls)).unwrap();
    let mut proxy = Proxied::start_and_watch(&file, &[]);
    let address = proxy.address("proxied");
    assert!(is_by(&old, &address));

    symlink("..new", at("..data_tmp")).unwrap();
    std::fs::rename(at("..data_tmp"), at("..data")).unwrap();
    let started = Instant::now();
    while !is_by(&new, &address) {
        assert!(started.elapsed().as_secs() < 60, "the old certificate is still shown");
        std::thread::yield_now();
    }
}

#[test]
fn a_system_whose_authorities_cannot_be_read_is_an_error_that_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("proxy.toml");
    let text = "rules = []\n[listen]\naddress = \"127.0.0.1:0\"\n[upstream]\nurl = \"https://localhost:1\"\n";
    std::fs::write(&file, text).unwrap();
    let absent = directory.path().join("absent.pem");
    let output = Command::new(env!("CARGO_BIN_EXE_sluicegate"))
        .args(["proxy", "--admin", "off", "--config"])
        .arg(&file)
        .env("SSL_CERT_FILE", &absent)
        .env_remove("SSL_CERT_DIR")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("upstream.tls: no authority of this system"), "{said}");
    assert!(said.contains("absent.pem") && said.contains("No such file"), "{said}");
}

#[test]
fn a_file_without_an_application_is_an_error_that_says_what_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("proxy.toml");
    std::fs::write(&file, "rules = []\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_sluicegate"))
        .args(["proxy", "--admin", "off", "--config"])
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("[listen]") && said.contains("[upstream]"), "{said}");
}

#[test]
fn the_admin_port_of_a_proxy_shows_whom_its_limits_refuse() {
    let application = TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = application.local_addr().unwrap().to_string();
    // It refuses everything, which is none of the proxy's refusals.
    std::thread::spawn(move || {
        for stream in application.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(
                b"HTTP/1.1 429 Too Many Requests\r\nconnection: close\r\ncontent-length: 2\r\n\r\nno",
            );
        }
    });
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("proxy.toml");
    std::fs::write(&file, config(&upstream, "2/day burst 2")).unwrap();
    let mut proxy = Proxied::start(&file, &[]);
    let (address, admin) = (proxy.address("proxied"), proxy.address("admin"));
    assert!(get(&admin, "/").starts_with("HTTP/1.1 200 "));
    let asked: Vec<_> = (0..3).map(|_| get(&address, "/")).collect();
    assert!(asked.iter().all(|answer| answer.starts_with("HTTP/1.1 429 ")), "{asked:?}");
    assert_eq!(asked.iter().filter(|answer| answer.ends_with("\r\n\r\nno")).count(), 2);
    // The proxy itself refuses this one, before any limit.
    let mut traced = TcpStream::connect(&address).unwrap();
    write!(traced, "TRACE / HTTP/1.1\r\nhost: {address}\r\n\r\n").unwrap();
    traced.read_to_string(&mut String::new()).unwrap();

    let body = |path: &str| get(&admin, path).split_once("\r\n\r\n").unwrap().1.to_owned();
    // The counters are read once a second.
    let started = Instant::now();
    let status = loop {
        let status: Status = serde_json::from_str(&body("/v1/status")).unwrap();
        if status.requests.values().map(|rate| rate.total).sum::<u64>() == 4 {
            break status;
        }
        assert!(started.elapsed().as_secs() < 30, "the counters are not read: {status:?}");
        std::thread::yield_now();
    };
    let totals = ["served", "refused", "failed"].map(|what| status.requests[what].total);
    assert_eq!(totals, [2, 1, 1]);
    let policy = status.policies.iter().find(|policy| policy.policy == "api").unwrap();
    assert_eq!((policy.verdicts["admitted"].total, policy.verdicts["refused"].total), (2, 1));
    assert_eq!((status.store.kind.as_str(), status.store.keys), ("memory", Some(1)));
    assert_eq!((status.keys, status.refused[0].refusals), (Keys::Digests, 1));
    assert_eq!(status.in_force.len(), 2, "{:?}", status.in_force);
    let peaks: Vec<PeaksStatus> = serde_json::from_str(&body("/v1/peaks")).unwrap();
    assert_eq!((peaks.len(), peaks[0].policy.as_str(), peaks[0].count), (1, "api", 2));
    assert_eq!(peaks[0].steps, [[1, 0, 1], [2, 0, 1], [3, 1, 1]]);
    assert!(get(&admin, "/stats").starts_with("HTTP/1.1 404 "));
}
