//! A sidecar in front of any HTTP application: limits and a throttle by policies in a file.
//!
//! A [`Proxy`] takes HTTP/1.1 and HTTP/2, with TLS if there is a certificate, and passes requests on to one application.
//! Bodies stream in both directions. WebSockets pass, and hold their places of `concurrent` limits until they close.
//! It is no gateway: it does not authenticate, cache or rewrite.
//!
//! ```no_run
//! use sluicegate_config::{Environment, Live};
//! use sluicegate_proxy::Proxy;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let live = Live::open("proxy.toml", Environment::new())?;
//!     let proxy = Proxy::new(live).admin("127.0.0.1:6070".parse()?);
//!     proxy.bind().await?.run(std::future::pending()).await;
//!     Ok(())
//! }
//! ```
//!
//! # What is passed on
//!
//! Each message is read and written anew, so the application never sees bytes that another server could divide into
//! requests differently. Beyond that:
//!
//! - Fields for one connection end here (RFC 9110, section 7.6.1): `Connection` and what it names, `Keep-Alive`, `TE`
//!   except for `trailers`, `Upgrade`, `Proxy-..`. So do trailers of requests that an application could take for such
//!   fields, for `Host`, or for who the client is.
//! - `X-Forwarded-For`, `-Proto` and `-Host` are written anew. If the peer is one of `proxies.trusted`, what it has
//!   written is extended. Otherwise `Forwarded`, `X-Real-IP`, `True-Client-IP` and other fields that say who the client is
//!   are removed before limits read them. `Via` names the proxy.
//! - Fields whose names have other characters than letters, digits and `-` are dropped, because many applications cannot
//!   tell `X_Api_Key` from `X-Api-Key`. `listen.underscores = true` keeps them, but for those that stand for a field that the
//!   proxy itself reads or writes.
//! - The application gets at most `listen.fields` fields, 200 by default. A request with more is answered with 431.
//! - A request whose `Host` is missing, doubled, invalid, or not that of its target is refused with 400, any transfer
//!   encoding but `chunked` with 501, `CONNECT` with 501 and `TRACE` with 405. In HTTP/1, the connection ends then. It also
//!   ends after trailers, and after an answer to a body that was not read to its end. The answer says `Connection: close`.
//! - A request beyond `upstream.requests` is answered at once with 503 and `Retry-After: 1`, and its limits give back what
//!   they have charged. `[throttle]` with a `queue` lets requests wait instead.
//! - A response with two lengths, or with another transfer encoding than `chunked`, is answered with 502.
//! - An application that cannot be reached is answered with 502, one that takes too long with 504, as problem documents
//!   (RFC 9457). A call of gRPC gets a status of gRPC instead, here `UNAVAILABLE`. A request is tried again only if a kept
//!   connection was closed before its first byte was sent.
//!
//! The application sees the client's `Host`. If it speaks HTTP/2 (`http2 = true`), it sees its own host as `:authority`,
//! and the client's as `X-Forwarded-Host`; there are no WebSockets then. Interim responses such as 103
//! Early Hints reach clients of HTTP/1.1 from an application that speaks HTTP/1.1. hyper has no way to send or to receive
//! them in HTTP/2, so they end here.
//!
//! # Metrics
//!
//! Besides the metrics of the store, of decisions and of the throttle:
//!
//! | metric | labels | |
//! | --- | --- | --- |
//! | `sluicegate_proxy_requests_total` | `status` | counter: answers, from `1xx` to `5xx` |
//! | `sluicegate_proxy_request_seconds` | | histogram: from the head of a request to the end of its response |
//! | `sluicegate_proxy_upstream_failures_total` | `kind` | counter: `connect`, `connect_timeout`, `tls`, `response`, `response_timeout` |
//! | `sluicegate_proxy_full_total` | | counter: requests refused because the application had as many as `requests` |
//! | `sluicegate_proxy_malformed_total` | | counter: connections that ended because a client sent something that is not HTTP |
//! | `sluicegate_proxy_upgraded_connections` | | gauge: open WebSockets |

#![cfg_attr(docsrs, feature(doc_cfg))]

mod activity;
mod admin;
mod answer;
mod bound;
mod causes;
mod check;
mod connection;
mod connector;
mod forward;
mod forwarded;
mod grpc;
mod hop;
mod interim;
mod problem;
mod proxy;
mod record;
mod request_body;
mod response_body;
mod response_length;
mod stack;
mod stalls;
mod tunnel;
mod upgrade;

pub use sluicegate_server::ServerError;

pub use self::bound::{Bound, Reload};
pub use self::proxy::Proxy;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
