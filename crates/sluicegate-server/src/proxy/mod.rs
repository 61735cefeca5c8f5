//! A sidecar in front of any HTTP application: limits and a throttle by policies in a file.
//!
//! A [`Proxy`] takes HTTP/1.1 and HTTP/2, with TLS if there is a certificate, and passes requests on to one application.
//! Bodies stream in both directions. WebSockets pass, and hold their places of `concurrent` limits until they close.
//! It is no gateway: it does not authenticate, cache or rewrite.
//!
//! ```no_run
//! use sluicegate_config::{Environment, Live};
//! use sluicegate_server::proxy::Proxy;
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
//!   are removed before limits read them. So are fields that would replace the path, the method or the host that limits
//!   have read: `X-Original-URL`, `X-Rewrite-URL`, `X-HTTP-Method-Override`, `X-Host` and their like. `Via` names the
//!   proxy.
//! - Fields whose names have other characters than letters, digits and `-` are dropped, because many applications cannot
//!   tell `X_Api_Key` from `X-Api-Key`. `listen.underscores = true` keeps them, but for those that stand for a field that the
//!   proxy itself reads or writes.
//! - The application gets at most `listen.fields` fields, 200 by default. A request with more is answered with 431.
//! - A request whose `Host` is missing, doubled, invalid, or not that of its target is refused with 400, any transfer
//!   encoding but `chunked` with 501, `CONNECT` with 501 and `TRACE` with 405. In HTTP/1, the connection ends then. It also
//!   ends after trailers, after an answer to a body that was not read to its end, and after each answer once the proxy is
//!   asked to stop. The answer says `Connection: close`.
//! - A request beyond `upstream.requests` is answered at once with 503 and `Retry-After: 1`, and its limits give back what
//!   they have charged. `[throttle]` with a `queue` lets requests wait instead.
//! - The body of a request whose tokens are counted is kept until it has been read, up to `listen.body` bytes. All of them
//!   together have room for 128 MiB, or for 16 of the largest length if that is more. A client takes no more than is left, so
//!   half of it alone; clients are told apart as the key `ip` does. A request beyond that is answered with 503 and
//!   `Retry-After: 1` before its limits are asked. The client has `read_timeout` for the next piece, and has to send
//!   16 KiB a second beyond the first `read_timeout`.
//! - A response with two lengths, or with another transfer encoding than `chunked`, is answered with 502.
//! - An application that cannot be reached is answered with 502, one that takes too long with 504, as problem documents
//!   (RFC 9457). A call of gRPC gets a status of gRPC instead, here `UNAVAILABLE`. A request is tried again only if a kept
//!   connection was closed before its first byte was sent.
//!
//! The application sees the client's `Host`. If it speaks HTTP/2 (`http2 = true`), it sees its own host as `:authority`,
//! and the client's as `X-Forwarded-Host`; there are no WebSockets then. Each connection has up to eight requests under way. Beyond
//! about `idle_connections` connections, they share further requests. Interim responses such as 103
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

mod admin;
mod answer;
mod bound;
mod check;
mod connection;
mod connector;
mod forward;
mod forwarded;
mod hop;
mod pools;
mod problem;
mod record;
mod request_body;
mod response_body;
mod room;
mod stack;
mod stalls;
mod tunnel;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::admin::{Token, metrics::Metrics};
use crate::health::Health;
use crate::policies::Policies;
use crate::run::{Connections, LiveCertificate, check_admin};
use crate::status::{Dashboard, Source};
use crate::{ServerError, Tls};
use sluicegate::Memory;
use sluicegate::store::{BoxStore, Store};
use sluicegate_config::Live;
use sluicegate_core::clock::Clock;
use sluicegate_core::observe::Watch;

use self::connection::Port;
use self::connector::Connector;
use self::forward::Forward;
use self::stack::Stack;

pub use self::bound::Bound;
pub use crate::Reload;

/// The most connections to the admin port.
const ADMIN_CONNECTIONS: usize = 100;

/// How long requests may take to be answered once the proxy stops.
const DRAIN: Duration = Duration::from_secs(30);

/// A proxy in front of one application, by the policies of a file with `[listen]` and `[upstream]`. No port is open yet.
#[derive(Debug)]
#[must_use = "`bind` opens the ports"]
pub struct Proxy {
    live: Live,
    store: BoxStore,
    source: Source,
    watch: Option<Watch>,
    address: Option<SocketAddr>,
    admin: Option<SocketAddr>,
    token: Option<Token>,
    metrics: Option<Metrics>,
    delay: Duration,
    drain: Duration,
}

impl Proxy {
    /// A proxy by these policies, which counts in the memory of the process.
    pub fn new(live: Live) -> Self {
        let memory = Memory::new();
        Self {
            live,
            store: BoxStore::new(memory.clone()),
            source: Source::Memory(memory),
            watch: None,
            address: None,
            admin: None,
            token: None,
            metrics: None,
            delay: Duration::ZERO,
            drain: DRAIN,
        }
    }

    /// Counts in this store.
    pub fn store<S>(mut self, store: S) -> Self
    where
        S: Store<Future: Send + 'static> + Send + Sync + 'static,
    {
        self.source = Source::of(&store);
        self.store = BoxStore::new(store);
        self
    }

    /// Notes the keys that are refused most, for the dashboard. It shows them as they are unless the watch is
    /// [redacted](Watch::redacted), and whom another limit would refuse if the watch notes [peaks](Watch::with_peaks).
    pub fn watch(mut self, watch: &Watch) -> Self {
        self.watch = Some(watch.clone());
        self
    }

    /// Listens here, and not at the address in `[listen]`.
    pub fn address(mut self, address: SocketAddr) -> Self {
        self.address = Some(address);
        self
    }

    /// Serves health, metrics and the dashboard here, without TLS. They are never on the proxied port, where every path is the
    /// application's.
    pub fn admin(mut self, address: SocketAddr) -> Self {
        self.admin = Some(address);
        self
    }

    /// Asks clients of the admin port for this token. An admin port that is not on the loopback address needs one. Health is
    /// open to all who reach the port.
    pub fn token(mut self, token: Token) -> Self {
        self.token = Some(token);
        self
    }

    /// Shows these metrics on the admin port.
    pub fn metrics(mut self, metrics: &Metrics) -> Self {
        self.metrics = Some(metrics.clone());
        self
    }

    /// How long to go on as before once it is asked to stop, while `/readyz` says that it is not ready. Give load
    /// balancers as long as they need to notice. The default is no time.
    pub fn drain_delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// How long requests may take to be answered, and upgraded connections to be closed, after that. The default is 30
    /// seconds.
    pub fn drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// Opens the ports. Connections wait until [`Bound::run`] serves them.
    ///
    /// # Errors
    ///
    /// If the file has no `[listen]` or no `[upstream]`, the store cannot keep a limit, a port cannot be opened, a
    /// certificate cannot be read, no authority of the system can be read for an application with TLS, or the admin port is
    /// open to the world without a token.
    pub async fn bind(self) -> Result<Bound, ServerError> {
        self.live.proxied();
        let policies = self.live.policies();
        let (Some(listen), Some(upstream)) = (policies.listen(), policies.upstream()) else {
            return Err(ServerError::new(
                "the file does not say where to listen, or which application gets the requests: expected `[listen]` \
                 with an `address`, and `[upstream]` with a `url`",
            ));
        };
        let (mut listen, upstream) = (listen.clone(), upstream.clone());
        listen.address = self.address.unwrap_or(listen.address);
        // Now and later.
        let kept = self.live.kept_by(self.store.clone());
        kept.map_err(|error| ServerError::new(error.to_string()))?;
        if let Some(address) = self.admin {
            check_admin(address, self.token.as_ref())?;
        }
        let tls = listen.tls.clone().map(|(certificate, key, clients)| {
            let tls = Tls::new(certificate, key);
            match clients {
                Some(authorities) => tls.clients(authorities),
                None => tls,
            }
        });
        let tls = tls.as_ref().map(LiveCertificate::read).transpose()?;
        let certificate = tls.as_ref().map(LiveCertificate::in_force);
        let connector = Connector::new(&upstream)?;
        let health = Arc::new(Health::new(Clock::default()));
        let (policies, watch) = (Policies::of(self.live.clone()), self.watch.as_ref());
        let dashboard = Dashboard::new(&policies, self.source, watch, &health);
        let latency = dashboard.latency().clone();
        let forward =
            Forward::new(connector.clone(), upstream.clone(), listen.clone(), latency.clone())?;
        let stack = Stack::new(&self.live, self.store, watch, &listen, forward);
        let (address, most) = (listen.address, listen.connections);
        let live = self.live.clone();
        let port = Port::new(stack, listen, certificate, live, latency, &health);
        let proxied = port.listen(address, most).await?;
        let admin = match self.admin {
            Some(address) => {
                let routes = admin::routes(
                    &upstream,
                    &health,
                    self.metrics.as_ref(),
                    &dashboard,
                    self.token,
                );
                let port = Connections::new(&health, routes, None);
                Some(port.listen("admin", address, ADMIN_CONNECTIONS).await?)
            }
            None => None,
        };
        Ok(Bound {
            live: self.live,
            proxied,
            admin,
            tls,
            connector,
            metrics: self.metrics,
            dashboard,
            health,
            delay: self.delay,
            drain: self.drain,
        })
    }
}
