//! An upgraded connection: bytes in both directions, until both ends have closed.

use std::io;

use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderValue, Request, StatusCode, Version};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use metrics::gauge;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::sync::OwnedSemaphorePermit;

use crate::proxy::check::Bad;

/// How many bytes each direction holds. Ten thousand idle connections have two of these each.
const BUFFER: usize = 4 * 1024;

/// The two ends of an upgraded connection.
pub(crate) struct Tunnel {
    pub(crate) client: OnUpgrade,
    pub(crate) upstream: Upgraded,
    /// The place among the requests of the application.
    pub(crate) place: OwnedSemaphorePermit,
}

impl Tunnel {
    /// Passes bytes on until both ends have closed, or one of them fails.
    pub(crate) async fn run(self) -> io::Result<()> {
        let Self { client, upstream, place } = self;
        // Ready once hyper has written the 101 and let go of the connection. It cannot hang: this runs after the
        // connection's future has ended.
        let client = client.await.map_err(io::Error::other)?;
        let _open = Open::new();
        let (mut client, mut upstream) = (TokioIo::new(client), TokioIo::new(upstream));
        let done = copy_bidirectional_with_sizes(&mut client, &mut upstream, BUFFER, BUFFER).await;
        drop(place);
        done.map(|_| ())
    }
}

/// Counts open tunnels.
struct Open;

impl Open {
    fn new() -> Self {
        gauge!("sluicegate_proxy_upgraded_connections").increment(1);
        Self
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        gauge!("sluicegate_proxy_upgraded_connections").decrement(1);
    }
}

// Upgrades: which are passed on.

/// The protocol to which a request asks to upgrade, if it is one of `allowed`. Any other wish is ignored, as a server may
/// (RFC 9110, section 7.8). `h2c` is never passed on, because the limits could not count its requests.
///
/// # Errors
///
/// If the request has a body: servers disagree about whether it comes before the new protocol.
pub(crate) fn wanted_upgrade<B>(
    request: &Request<B>,
    allowed: &[String],
) -> Result<Option<HeaderValue>, Bad> {
    let headers = request.headers();
    if request.version() != Version::HTTP_11 || !headers.contains_key(UPGRADE) || !asks(headers) {
        return Ok(None);
    }
    let mut protocols = headers.get_all(UPGRADE).iter();
    let (Some(protocol), None) = (protocols.next(), protocols.next()) else { return Ok(None) };
    let is_allowed = allowed
        .iter()
        .any(|name| protocol.as_bytes().trim_ascii().eq_ignore_ascii_case(name.as_bytes()));
    if !is_allowed {
        return Ok(None);
    }
    let is_empty = |value: &HeaderValue| value.as_bytes() == b"0";
    if headers.contains_key(TRANSFER_ENCODING)
        || headers.get(CONTENT_LENGTH).is_some_and(|length| !is_empty(length))
    {
        return Err((StatusCode::BAD_REQUEST, "a request to upgrade has no body"));
    }
    Ok(Some(protocol.clone()))
}

/// Whether a response agrees to upgrade to `protocol`.
pub(crate) fn is_agreed(headers: &HeaderMap, protocol: &HeaderValue) -> bool {
    let mut agreed = headers.get_all(UPGRADE).iter();
    agreed.next().is_some_and(|agreed| {
        agreed.as_bytes().trim_ascii().eq_ignore_ascii_case(protocol.as_bytes().trim_ascii())
    }) && agreed.next().is_none()
}

/// Says that the connection is upgraded.
pub(crate) fn write_upgrade(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, protocol);
}

/// Whether `Connection` has the option `upgrade`.
fn asks(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(CONNECTION).iter();
    let mut options = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"upgrade"))
}

#[cfg(test)]
mod upgrade_tests {
    use super::*;

    fn wants(fields: &[(&'static str, &str)]) -> Result<bool, u16> {
        let mut request = Request::builder().header("connection", "keep-alive, Upgrade");
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let request = request.body(()).unwrap();
        let wanted = wanted_upgrade(&request, &["websocket".to_owned()]);
        wanted.map(|wanted| wanted.is_some()).map_err(|(status, _)| status.as_u16())
    }

    #[test]
    fn only_what_is_allowed_is_passed_on() {
        assert_eq!(wants(&[("upgrade", "WebSocket")]), Ok(true));
        assert_eq!(wants(&[("upgrade", "h2c")]), Ok(false));
        assert_eq!(wants(&[("upgrade", "websocket, h2c")]), Ok(false));
        assert_eq!(wants(&[("upgrade", "websocket"), ("upgrade", "h2c")]), Ok(false));
    }

    #[test]
    fn a_request_to_upgrade_has_no_body() {
        let length = |length| wants(&[("upgrade", "websocket"), ("content-length", length)]);
        assert_eq!(length("0"), Ok(true));
        assert_eq!(length("5"), Err(400));
        let chunked = wants(&[("upgrade", "websocket"), ("transfer-encoding", "chunked")]);
        assert_eq!(chunked, Err(400));
    }
}
