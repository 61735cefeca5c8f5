//! Asks a server for its state.

use std::time::Duration;

use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, HOST, HeaderValue};
use hyper::http::uri::{Authority, Scheme};
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use sluicegate_server::status::Status;
use tokio::net::TcpStream;

use crate::terminal::escaped;

/// The port of `sluicegate serve --admin`.
const PORT: u16 = 6070;

/// The longest answer that is read, in bytes.
const LONGEST: usize = 16 << 20;

/// The admin port of a server.
pub(super) struct Server {
    authority: Authority,
    token: Option<HeaderValue>,
    timeout: Duration,
}

impl Server {
    /// Fails with a sentence if the address or the token is not valid.
    pub(super) fn new(
        address: &str,
        token: Option<&str>,
        timeout: Duration,
    ) -> Result<Self, String> {
        let authority = authority(address)
            .ok_or("--address: expected an address such as 127.0.0.1:6070, and HTTP without TLS")?;
        let token = token.map(|token| {
            let mut value = HeaderValue::from_bytes(format!("Bearer {token}").as_bytes())
                .map_err(|_| "--admin-token: it has a line break or another control character")?;
            value.set_sensitive(true);
            Ok::<_, String>(value)
        });
        Ok(Self { authority, token: token.transpose()?, timeout })
    }

    /// The state of the server, or a sentence that says why there is none.
    pub(super) async fn status(&self) -> Result<Status, String> {
        let asked = tokio::time::timeout(self.timeout, self.ask()).await;
        let asked = asked
            .unwrap_or_else(|_| Err(format!("no answer within {} ms", self.timeout.as_millis())));
        asked.map_err(|problem| format!("{}: {}", self.authority, escaped(&problem)))
    }

    async fn ask(&self) -> Result<Status, String> {
        let host = self.authority.host().trim_matches(['[', ']']);
        let port = self.authority.port_u16().unwrap_or(PORT);
        let stream = TcpStream::connect((host, port)).await;
        let stream = stream.map_err(|error| format!("cannot reach the server: {error}"))?;
        let (mut client, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(not_http)?;
        // It ends with the client.
        tokio::spawn(connection);
        let mut request = Request::get("/v1/status").header(HOST, self.authority.as_str());
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token);
        }
        let request = request.body(Empty::<Bytes>::new()).map_err(|error| error.to_string())?;
        let answer = client.send_request(request).await.map_err(not_http)?;
        match answer.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED if self.token.is_none() => {
                return Err("the admin port needs its token, --admin-token".to_owned());
            }
            StatusCode::UNAUTHORIZED => return Err("--admin-token is not its token".to_owned()),
            StatusCode::NOT_FOUND => {
                return Err("there is no /v1/status here: is this the admin port?".to_owned());
            }
            other => return Err(format!("/v1/status answers {}", other.as_u16())),
        }
        let body = Limited::new(answer.into_body(), LONGEST).collect().await;
        let body = body.map_err(|error| format!("the answer cannot be read: {error}"))?.to_bytes();
        serde_json::from_slice(&body)
            .map_err(|error| format!("the answer is not a state of sluicegate: {error}"))
    }
}

fn not_http(error: hyper::Error) -> String {
    format!("no answer in HTTP without TLS: {error}")
}

/// The host and the port of an address or a URL.
fn authority(address: &str) -> Option<Authority> {
    if !address.contains("://") {
        return authority(&format!("http://{address}"));
    }
    let parts = address.parse::<Uri>().ok()?.into_parts();
    let is_bare = parts.path_and_query.is_none_or(|path| path == "/");
    let authority = parts.authority.filter(|authority| !authority.as_str().contains('@'))?;
    let is_http = parts.scheme == Some(Scheme::HTTP);
    let is_port = authority.port_u16().is_some() || authority.as_str() == authority.host();
    (is_bare && is_http && is_port && !authority.host().is_empty()).then_some(authority)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_or_a_url_without_tls_and_path_names_the_server() {
        for (address, expected) in [
            ("127.0.0.1:6070", Some("127.0.0.1:6070")),
            ("http://edge.example:7000/", Some("edge.example:7000")),
            ("[::1]:6070", Some("[::1]:6070")),
            ("localhost", Some("localhost")),
            ("https://edge.example", None),
            ("http://user:secret@edge.example", None),
            ("edge.example:6070/v1", None),
            ("edge.example:port", None),
            ("unix:///run/x", None),
            ("", None),
            ("a b", None),
        ] {
            let found = authority(address).map(|authority| authority.to_string());
            assert_eq!(found.as_deref(), expected, "{address:?}");
        }
    }

    #[test]
    fn a_token_with_a_line_break_is_an_error() {
        let server = Server::new("localhost", Some("x\r\nhost: y"), Duration::from_secs(1));
        assert!(server.err().is_some_and(|said| said.contains("--admin-token")));
    }
}
