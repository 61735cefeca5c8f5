//! Clients that are polled by hand, and so can leave at any point.

use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

/// Sends requests to a server.
pub(crate) struct Client(Box<dyn Fn(Asked) -> Answering>);

pub(crate) type Answering = Pin<Box<dyn Future<Output = Answer>>>;

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) path: &'static str,
    pub(crate) peer: IpAddr,
    pub(crate) headers: Vec<(&'static str, Vec<u8>)>,
}

pub(crate) fn get(path: &'static str) -> Asked {
    Asked { path, peer: [192, 0, 2, 1].into(), headers: Vec::new() }
}

impl Asked {
    pub(crate) fn from(self, peer: &str) -> Self {
        Self { peer: peer.parse().unwrap(), ..self }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name, value.as_ref().to_vec()));
        self
    }
}

/// A response, whose body has not been read.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    /// Whether it says that the request was refused.
    pub(crate) is_refused: bool,
    /// Polls the body.
    pub(crate) body: Box<dyn FnMut() -> Option<Bytes>>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Reads the body to its end.
    pub(crate) fn read(mut self) -> String {
        let frames = std::iter::from_fn(|| (self.body)());
        frames.map(|frame| String::from_utf8(frame.to_vec()).unwrap()).collect()
    }
}

/// A request that was sent. Dropped, its client has left.
pub(crate) struct Sent {
    answering: Answering,
    answer: Option<Answer>,
}

impl Client {
    pub(crate) fn new(send: impl Fn(Asked) -> Answering + 'static) -> Self {
        Self(Box::new(send))
    }

    /// Sends a request, and polls its future once.
    pub(crate) fn send(&self, asked: Asked) -> Sent {
        let mut sent = Sent { answering: (self.0)(asked), answer: None };
        sent.poll();
        sent
    }

    /// The answer to a request that is answered at once.
    pub(crate) fn ask(&self, asked: Asked) -> Answer {
        self.send(asked).answer()
    }
}

impl Sent {
    /// Whether there is no answer yet.
    pub(crate) fn waits(&mut self) -> bool {
        self.poll();
        self.answer.is_none()
    }

    pub(crate) fn answer(mut self) -> Answer {
        self.poll();
        self.answer.expect("there is no answer yet")
    }

    pub(crate) fn poll(&mut self) {
        if self.answer.is_none() {
            let mut cx = Context::from_waker(Waker::noop());
            if let Poll::Ready(answer) = self.answering.as_mut().poll(&mut cx) {
                self.answer = Some(answer);
            }
        }
    }
}
