//! A client with several connections, each with one request in flight.

use std::io;
use std::mem;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use http::header::HOST;
use http::{HeaderValue, Request};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// A server that has not answered after so long is broken.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Client {
    connections: Vec<Connection>,
    /// The expected answer, except to the very first request.
    expected: u16,
}

impl Client {
    /// Opens the connections, and asks once: who may ask once is refused from then on.
    pub(super) async fn connect(
        server: SocketAddr,
        connections: usize,
        expected: u16,
    ) -> io::Result<Self> {
        let mut client = Self { connections: Vec::with_capacity(connections), expected };
        for _ in 0..connections {
            client.connections.push(Connection::open(server).await?);
        }
        if let Some(first) = client.connections.first_mut() {
            timeout(PATIENCE, first.ask()).await?.map_err(io::Error::other)?;
        }
        Ok(client)
    }

    /// Sends requests on all connections, each as soon as the last one is answered, for this long. Returns how long
    /// it took, and the time of each request.
    pub(super) async fn ask(&mut self, time: Duration) -> io::Result<Asked> {
        let started = Instant::now();
        let mut running = JoinSet::new();
        for mut connection in mem::take(&mut self.connections) {
            let expected = self.expected;
            running.spawn(async move {
                let latencies = connection.ask_until(started + time, expected).await?;
                io::Result::Ok((connection, latencies))
            });
        }
        let mut latencies = Vec::new();
        while let Some(ended) = timeout(PATIENCE, running.join_next()).await? {
            let (connection, those) = ended??;
            self.connections.push(connection);
            latencies.extend(those);
        }
        Ok(Asked { took: started.elapsed(), latencies })
    }
}

/// The result.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) took: Duration,
    pub(super) latencies: Vec<Duration>,
}

#[derive(Debug)]
struct Connection {
    requests: SendRequest<Empty<Bytes>>,
}

impl Connection {
    async fn open(server: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(server).await?;
        stream.set_nodelay(true)?;
        let (requests, connection) =
            handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        // Its end shows in the requests.
        tokio::spawn(connection);
        Ok(Self { requests })
    }

    async fn ask_until(&mut self, end: Instant, expected: u16) -> io::Result<Vec<Duration>> {
        let mut latencies = Vec::new();
        let mut asked = Instant::now();
        loop {
            let status = self.ask().await.map_err(io::Error::other)?;
            if status != expected {
                return Err(io::Error::other(format!("{status} instead of {expected}")));
            }
            let answered = Instant::now();
            latencies.push(answered - asked);
            asked = answered;
            if answered >= end {
                return Ok(latencies);
            }
        }
    }

    async fn ask(&mut self) -> hyper::Result<u16> {
        let mut request = Request::new(Empty::new());
        request.headers_mut().insert(HOST, HeaderValue::from_static("localhost"));
        self.requests.ready().await?;
        let mut response = self.requests.send_request(request).await?;
        while let Some(frame) = response.frame().await {
            frame?;
        }
        Ok(response.status().as_u16())
    }
}
