//! A proxy, a client that writes raw bytes, and an application that records raw bytes.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sluicegate_config::{Environment, Live, Policies, read_toml};
use sluicegate_server::proxy::{Bound, Proxy, Reload};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long a test waits for what has to happen.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);

pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A request with a body that is longer than what sockets hold. `head` is its head without the last line.
pub(crate) fn upload(head: &str) -> Vec<u8> {
    let body = "a".repeat(1024 * 1024);
    format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// A proxy that runs until this is dropped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) reload: Reload,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Running {
    /// A proxy for the application at `upstream`. `more` is added to the tables of a file.
    pub(crate) async fn start(upstream: SocketAddr, listen: &str, more: &str) -> Self {
        Self::start_at(&format!("http://{upstream}"), listen, more).await
    }

    /// Like `start`, for the application at this URL.
    pub(crate) async fn start_at(url: &str, listen: &str, more: &str) -> Self {
        Self::run(proxy(url, listen, more)).await
    }

    /// Like `start_at`, by a file, which is read again on a reload.
    pub(crate) async fn start_by(file: &Path, url: &str, listen: &str, more: &str) -> Self {
        let text = format!("rules = []\n{}", text(url, listen, more));
        std::fs::write(file, text).expect("a file");
        Self::run(of(Live::open(file, Environment::new()).expect("policies"))).await
    }

    /// Why a proxy does not start.
    pub(crate) async fn problem(url: &str, more: &str) -> String {
        proxy(url, "", more).bind().await.expect_err("an error").to_string()
    }

    pub(crate) async fn run(proxy: Proxy) -> Self {
        let admin = "127.0.0.1:0".parse().expect("an address");
        let bound: Bound = proxy.admin(admin).bind().await.expect("a proxy");
        let (address, admin) = (bound.address(), bound.admin().expect("an admin port"));
        let reload = bound.reload();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(bound.run(async {
            let _ = stopped.await;
        }));
        Self { address, admin, reload, stop: Some(stop), task }
    }

    /// The head of the answer to these bytes, whether or not the connection stays open.
    pub(crate) async fn connect_and(&self, bytes: &[u8]) -> String {
        let mut client = self.connect().await;
        client.send(bytes).await;
        client.until("\r\n\r\n").await
    }

    pub(crate) fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    pub(crate) async fn stopped(mut self) {
        self.stop();
        timeout(LONGEST, self.task).await.expect("an end").expect("no panic");
    }

    pub(crate) async fn connect(&self) -> Client {
        Client(TcpStream::connect(self.address).await.expect("a connection"))
    }

    /// What the proxy answers to these bytes, until it closes the connection.
    pub(crate) async fn answer(&self, bytes: &[u8]) -> String {
        let mut client = self.connect().await;
        client.send(bytes).await;
        client.rest().await
    }

    /// What the admin port answers.
    pub(crate) async fn admin(&self, path: &str) -> String {
        let mut client = Client(TcpStream::connect(self.admin).await.expect("a connection"));
        client.send(format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")).await;
        client.rest().await
    }
}

pub(crate) fn proxy(url: &str, listen: &str, more: &str) -> Proxy {
    let document = read_toml(&text(url, listen, more)).expect("a document");
    let policies = Policies::new(&document, &Environment::new()).expect("policies");
    of(Live::of(policies))
}

fn text(url: &str, listen: &str, more: &str) -> String {
    format!("[listen]\naddress = \"127.0.0.1:0\"\n{listen}\n[upstream]\nurl = \"{url}\"\n{more}\n")
}

/// A proxy by these policies, which gives up soon on what does not end.
fn of(live: Live) -> Proxy {
    Proxy::new(live).drain(Duration::from_millis(500))
}

pub(crate) struct Client(pub(crate) TcpStream);

impl Client {
    /// Sends bytes. The proxy may close the connection before it has read all of them.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.0.write_all(bytes.as_ref()).await;
    }

    /// Everything until the connection is closed.
    pub(crate) async fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        // A connection that is reset has an end too.
        let read = timeout(LONGEST, self.0.read_to_end(&mut bytes)).await;
        let _ = read.expect("the connection is closed");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Everything until `end` comes.
    pub(crate) async fn until(&mut self, end: &str) -> String {
        let mut bytes = Vec::new();
        let read = async {
            while !String::from_utf8_lossy(&bytes).contains(end) {
                let mut piece = [0; 4096];
                match self.0.read(&mut piece).await {
                    Ok(length) if length > 0 => bytes.extend_from_slice(&piece[..length]),
                    _ => break,
                }
            }
        };
        timeout(LONGEST, read).await.expect("an answer");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// An application that records the bytes of each connection, and answers each head of a request.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Vec<u8>>>>,
    later: watch::Sender<&'static str>,
}

impl Upstream {
    /// Answers each request with `answer`, once its head has come.
    pub(crate) async fn start(answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let seen: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let record = Arc::clone(&seen);
        let (later, answers) = watch::channel("");
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&record), answer, answers.clone()));
            }
        });
        Self { address, seen, later }
    }

    /// Answers requests that have come and were not answered.
    pub(crate) fn answer(&self, answer: &'static str) {
        self.later.send_replace(answer);
    }

    /// The bytes of all connections.
    pub(crate) fn seen(&self) -> Vec<String> {
        let seen = self.seen.lock().expect("no panic");
        seen.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
    }

    /// The head of the only request.
    pub(crate) fn head(&self) -> String {
        let seen = self.seen();
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen[0].split_inclusive("\r\n\r\n").next().unwrap_or_default().to_owned()
    }
}

/// How many heads have come, unless the first of them announces a body that has not come.
fn complete(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |length| length.parse().expect("a length"));
    if body.len() < length { 0 } else { text.matches("\r\n\r\n").count() }
}

async fn serve(
    mut stream: TcpStream,
    record: Arc<Mutex<Vec<Vec<u8>>>>,
    answer: &'static str,
    mut answers: watch::Receiver<&'static str>,
) {
    let at = {
        let mut record = record.lock().expect("no panic");
        record.push(Vec::new());
        record.len() - 1
    };
    let mut piece = [0; 4096];
    let mut is_answered = false;
    loop {
        let length = tokio::select! {
            length = stream.read(&mut piece) => length.unwrap_or_default(),
            Ok(()) = answers.changed() => {
                let later = *answers.borrow();
                let _ = stream.write_all(later.as_bytes()).await;
                continue;
            }
        };
        if length == 0 {
            return;
        }
        let heads = {
            let mut record = record.lock().expect("no panic");
            record[at].extend_from_slice(&piece[..length]);
            complete(&record[at])
        };
        // The end of a chunked body looks like that of a head, and is not answered.
        if heads > 0 && (!is_answered || piece[..length].starts_with(b"GET")) {
            is_answered = true;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    }
}
