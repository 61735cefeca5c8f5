//! A client of HTTP/2 that sends any frame it likes.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RESET: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GO_AWAY: u8 = 7;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

pub(crate) struct Raw(TcpStream);

#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Raw {
    /// A connection, with these settings of the client.
    pub(crate) async fn connect(address: &str, settings: &[(u16, u32)]) -> Self {
        let address = address.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.expect("a preface");
        let mut raw = Self(stream);
        let settings = settings.iter().flat_map(|(name, value)| {
            let (name, value) = (name.to_be_bytes(), value.to_be_bytes());
            name.into_iter().chain(value)
        });
        raw.send(&frame(SETTINGS, 0, 0, &settings.collect::<Vec<_>>())).await.expect("settings");
        raw
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.write_all(bytes).await
    }

    /// The next frame, if there is one before the connection ends. Pings are answered.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        loop {
            let mut head = [0; 9];
            self.0.read_exact(&mut head).await.ok()?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            self.0.read_exact(&mut payload).await.ok()?;
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            let frame = Frame { kind: head[3], flags: head[4], stream, payload };
            if frame.kind != PING || frame.flags & ACK > 0 {
                return Some(frame);
            }
            self.send(&self::frame(PING, ACK, 0, &frame.payload)).await.ok()?;
        }
    }

    /// The next frame of this kind, if there is one before the connection ends.
    pub(crate) async fn next_of(&mut self, kind: u8) -> Option<Frame> {
        loop {
            let frame = self.next().await?;
            if frame.kind == kind {
                return Some(frame);
            }
        }
    }

    /// Sends this again and again and reads nothing, until the server has ended the connection.
    pub(crate) async fn flood(mut self, bytes: &[u8]) {
        let flood = async { while self.send(bytes).await.is_ok() {} };
        tokio::time::timeout(Duration::from_secs(3_600), flood).await.expect("an end");
    }
}

impl Frame {
    /// The error code of a reset or a farewell.
    pub(crate) fn error(&self) -> u32 {
        let at = if self.kind == GO_AWAY { 4 } else { 0 };
        let code = self.payload[at..at + 4].try_into().expect("four bytes");
        u32::from_be_bytes(code)
    }
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short payload").to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// The head of a call, as a block of header fields.
pub(crate) fn head(method: &str, path: &str) -> Vec<u8> {
    let fields = [(":method", method), (":scheme", "http"), (":authority", "x"), (":path", path)];
    fields.into_iter().flat_map(|(name, value)| field(name, value)).collect()
}

/// A field that no table keeps.
pub(crate) fn field(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| {
        let length = u8::try_from(text.len()).expect("a short text");
        assert!(length < 127, "a long text");
        [&[length], text.as_bytes()].concat()
    };
    [vec![0], text(name), text(value)].concat()
}
