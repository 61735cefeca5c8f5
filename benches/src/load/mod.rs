//! A client for servers of small answers: prepared bytes, one thread that never sleeps, and no parser of fields.
//!
//! A client made of a library costs about as much as the server that is measured, so it would set the pace. This one
//! writes requests that were encoded before, and reads no more of an answer than whether it is the expected one.

mod connection;
mod http1;
mod http2;

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use self::connection::Connection;
pub use self::http1::request;
use crate::Histogram;

/// What is asked, and what is the right answer.
#[derive(Debug, Clone)]
pub enum Requests {
    /// gRPC calls of one method.
    Grpc {
        /// The path of the method.
        path: String,
        /// The messages, in turn.
        messages: Vec<Vec<u8>>,
        /// How the message of each right answer begins.
        expected: Vec<u8>,
    },
    /// HTTP/1 requests with a head, in turn. See [`request`].
    Http {
        /// Head and body of each.
        requests: Vec<Vec<u8>>,
        /// The status of each right answer.
        expected: u16,
    },
}

/// An answer that takes longer means that the server is broken.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connections to one server.
#[derive(Debug)]
pub struct Load {
    connections: Vec<Connection>,
    /// The most requests under way on one connection.
    in_flight: usize,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Asked {
    /// Right answers.
    pub count: u64,
    /// How long it took.
    pub took: Duration,
    /// From when each request was due, in nanoseconds.
    pub latencies: Histogram,
}

impl Load {
    /// Opens the connections.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached.
    pub fn connect(
        server: SocketAddr,
        requests: &Requests,
        connections: usize,
        in_flight: usize,
    ) -> io::Result<Self> {
        let open = |at| Connection::open(server, requests, at);
        Ok(Self { connections: (0..connections).map(open).collect::<Result<_, _>>()?, in_flight })
    }

    /// Keeps all requests that may be under way under way, for this long, and then waits for the last answer.
    ///
    /// # Errors
    ///
    /// If an answer is wrong or missing.
    pub fn flood(&mut self, time: Duration) -> io::Result<Asked> {
        let began = Instant::now();
        let mut asked = Asked::default();
        loop {
            let now = Instant::now();
            let is_over = now - began >= time;
            for connection in &mut self.connections {
                while !is_over && connection.in_flight() < self.in_flight {
                    connection.ask(now);
                }
                connection.turn(&mut asked)?;
            }
            if is_over && self.is_idle() {
                asked.took = began.elapsed();
                return Ok(asked);
            }
            patient(now - began, time)?;
        }
    }

    /// Asks once on each connection, and waits for the answers.
    ///
    /// # Errors
    ///
    /// If an answer is wrong or missing.
    pub fn once(&mut self) -> io::Result<()> {
        let began = Instant::now();
        let mut asked = Asked::default();
        self.connections.iter_mut().for_each(|connection| connection.ask(began));
        while !self.is_idle() {
            self.connections.iter_mut().try_for_each(|connection| connection.turn(&mut asked))?;
            patient(began.elapsed(), Duration::ZERO)?;
        }
        Ok(())
    }

    /// Sends requests at this rate a second for this long, whether the server answers or not. The latency of each counts
    /// from the moment when it was due.
    ///
    /// # Errors
    ///
    /// If an answer is wrong or missing.
    pub fn pace(&mut self, rate: f64, time: Duration) -> io::Result<Asked> {
        let began = Instant::now();
        let mut asked = Asked::default();
        let total = (rate * time.as_secs_f64()) as u64;
        let mut sent = 0;
        loop {
            let now = Instant::now();
            let due = total.min(((now - began).as_secs_f64() * rate) as u64);
            let count = self.connections.len();
            for tried in 0..count as u64 {
                let connection = &mut self.connections[((sent + tried) % count as u64) as usize];
                if sent < due && connection.in_flight() < self.in_flight {
                    connection.ask(began + Duration::from_secs_f64(sent as f64 / rate));
                    sent += 1;
                }
            }
            for connection in &mut self.connections {
                connection.turn(&mut asked)?;
            }
            if sent == total && self.is_idle() {
                asked.took = began.elapsed();
                return Ok(asked);
            }
            patient(now - began, time)?;
        }
    }

    fn is_idle(&self) -> bool {
        self.connections.iter().all(|connection| connection.in_flight() == 0)
    }
}

fn patient(waited: Duration, time: Duration) -> io::Result<()> {
    if waited > time + PATIENCE {
        return Err(io::Error::other("a server does not answer"));
    }
    Ok(())
}
