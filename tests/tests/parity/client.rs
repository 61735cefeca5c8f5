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
    let mut stream = TcpStream::connect(server).unwrap();
    let mut request = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n");
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    stream.write_all((request + "\r\n").as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Response { status, head: head.to_owned(), body: body.to_owned() }
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
