use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use super::http1::Http1;
use super::http2::Http2;
use super::{Asked, Requests};

/// How much is read at once.
const READ: usize = 64 * 1024;

/// One connection, which never waits.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    protocol: Protocol,
    /// What has to be sent.
    out: Vec<u8>,
    /// What was received and is not yet understood.
    received: Vec<u8>,
    buffer: Box<[u8]>,
    /// When each request was due that is under way, in the order of their numbers; `None` for one that is answered.
    due: VecDeque<Option<Instant>>,
    /// The number of the first of these.
    first: u64,
    waiting: usize,
}

#[derive(Debug)]
enum Protocol {
    Http1(Http1),
    Http2(Http2),
}

impl Connection {
    /// Opens it. Connection number `at` does not begin with the same request as the others.
    pub(super) fn open(server: SocketAddr, requests: &Requests, at: usize) -> io::Result<Self> {
        let stream = TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut out = Vec::new();
        let protocol = match requests {
            Requests::Http { requests, expected } => {
                Protocol::Http1(Http1::new(requests.clone(), *expected, at))
            }
            Requests::Grpc { path, messages, expected } => {
                Protocol::Http2(Http2::new(path, messages, expected, at, &mut out))
            }
        };
        Ok(Self {
            stream,
            protocol,
            out,
            received: Vec::new(),
            buffer: vec![0; READ].into(),
            due: VecDeque::new(),
            first: 0,
            waiting: 0,
        })
    }

    pub(super) fn in_flight(&self) -> usize {
        self.waiting
    }

    /// Asks once more. It is sent by the next [`turn`](Self::turn).
    pub(super) fn ask(&mut self, due: Instant) {
        match &mut self.protocol {
            Protocol::Http1(http) => http.ask(&mut self.out),
            Protocol::Http2(http) => http.ask(&mut self.out),
        }
        self.due.push_back(Some(due));
        self.waiting += 1;
    }

    /// Sends and receives what can be without waiting.
    pub(super) fn turn(&mut self, asked: &mut Asked) -> io::Result<()> {
        if !self.out.is_empty() {
            match self.stream.write(&self.out) {
                Ok(sent) => _ = self.out.drain(..sent),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        match self.stream.read(&mut self.buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => self.received.extend_from_slice(&self.buffer[..read]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
        let now = Instant::now();
        let (due, first, waiting) = (&mut self.due, self.first, &mut self.waiting);
        let mut answered = |number: u64| {
            let due = due.get_mut((number - first) as usize).and_then(Option::take);
            if let Some(due) = due {
                asked.latencies.record(now.saturating_duration_since(due).as_nanos() as u64);
                asked.count += 1;
                *waiting -= 1;
            }
        };
        match &mut self.protocol {
            Protocol::Http1(http) => http.read(&mut self.received, &mut answered)?,
            Protocol::Http2(http) => http.read(&mut self.received, &mut self.out, &mut answered)?,
        }
        while self.due.front().is_some_and(Option::is_none) {
            self.due.pop_front();
            self.first += 1;
        }
        Ok(())
    }
}
