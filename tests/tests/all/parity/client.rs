//! A small HTTP client for the scenarios: one request for each connection.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// A response as it came over the wire.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

/// Sends a request with the header lines `headers`, and reads the response to its end.
pub(crate) fn get(server: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Response {
    let mut connection = Connection::get(server, path, headers);
    connection.read_to_end();
    let (head, body) = connection.received.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Response { status, head: head.to_owned(), body: body.to_owned() }
}

/// A connection on which a request was sent. Dropped, it is closed: the client has left.
pub(crate) struct Connection {
    stream: TcpStream,
    received: String,
}

impl Connection {
    pub(crate) fn get(server: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Self {
        let mut stream = TcpStream::connect(server).unwrap();
        let mut request = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n");
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        stream.write_all((request + "\r\n").as_bytes()).unwrap();
        Self { stream, received: String::new() }
    }

    /// Reads until `part` was received.
    pub(crate) fn read_until(&mut self, part: &str) {
        while !self.received.contains(part) {
            let mut buffer = [0; 1_024];
            let read = self.stream.read(&mut buffer).unwrap();
            assert!(read > 0, "the response ended before {part:?}: {}", self.received);
            self.received += std::str::from_utf8(&buffer[..read]).unwrap();
        }
    }

    pub(crate) fn read_to_end(&mut self) {
        self.stream.read_to_string(&mut self.received).unwrap();
    }
}

impl Response {
    /// All lines of a header field, joined with commas.
    pub(crate) fn header(&self, name: &str) -> String {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let values =
            lines.filter(|(line, _)| line.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        values.collect::<Vec<_>>().join(", ")
    }
}
