//! The connections to the application, which requests share.
//!
//! hyper's pool keeps one connection of HTTP/2, and opens no second one where the application lets no further stream on the first.
//! Responses that never end, as many as it allows there, would keep every other request waiting. So HTTP/2 has several pools.

use std::iter::once;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use sluicegate_config::proxy::Upstream;

use crate::proxy::connector::Connector;
use crate::proxy::request_body::RequestBody;

/// The largest head of a response, in bytes.
const HEAD: u32 = 64 * 1024;

/// The most fields of a response in HTTP/1. `listen.fields` is about requests, and what the application answers is its own matter. In
/// HTTP/2, the size of the head alone counts.
const FIELDS: usize = 1_000;

/// How many bytes of the body of a stream of HTTP/2 wait on either side.
const WINDOW: u32 = 64 * 1024;

/// How many bytes wait in all streams of a connection of HTTP/2: the most that HTTP/2 has. Clients share the connection, so the
/// responses that one of them does not read must not use up the window of the others. What waits is bounded by the requests under
/// way, each with its `WINDOW`. h2 also allows short frames that nobody has read by this window.
const CONNECTION_WINDOW: u32 = (1 << 31) - 1;

/// How often an application of HTTP/2 that sends nothing is asked whether it is there, and how long it may take to say so. Otherwise
/// a connection whose other end has vanished would get further requests until the system gives it up.
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(20);

/// How many requests a connection of HTTP/2 has before another one is opened. Servers allow at least as many: lighttpd 8, others 100
/// or more, as RFC 9113 recommends.
const REQUESTS: usize = 8;

/// A pool of connections.
pub(crate) type Pool = Client<Connector, RequestBody>;

/// The pools of one application: one for HTTP/1, and as many for HTTP/2 as it has connections.
#[derive(Debug)]
pub(crate) struct Pools {
    first: SharedPool,
    more: Box<[SharedPool]>,
}

#[derive(Debug)]
struct SharedPool {
    pool: Pool,
    requests: Arc<AtomicUsize>,
}

impl Pools {
    /// The pools of the application that `upstream` names. They open connections with `connector` when requests need them.
    pub(crate) fn new(connector: &Connector, upstream: &Upstream) -> Self {
        let mut builder = Pool::builder(TokioExecutor::new());
        builder
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .pool_idle_timeout(upstream.idle_timeout)
            .pool_max_idle_per_host(upstream.idle_connections)
            .http1_max_buf_size(HEAD as usize)
            .http1_max_headers(FIELDS)
            .http2_only(upstream.http2)
            .http2_max_header_list_size(HEAD)
            .http2_initial_stream_window_size(WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .http2_max_send_buf_size(WINDOW as usize)
            .http2_keep_alive_interval(PING)
            .http2_keep_alive_timeout(PONG)
            .http2_keep_alive_while_idle(true);
        let pool =
            || SharedPool { pool: builder.build(connector.clone()), requests: Arc::default() };
        // Each pool may keep a connection that is idle.
        let most = match upstream.http2 {
            true => upstream.requests.div_ceil(REQUESTS).min(upstream.idle_connections),
            false => 1,
        };
        Self { first: pool(), more: (1..most).map(|_| pool()).collect() }
    }

    /// The pool for the next request, which is under way there until the guard is dropped.
    ///
    /// The first pool with room is taken, so that connections that are not needed become idle and are closed. If no pool has room,
    /// it is the one with the fewest requests.
    pub(crate) fn choose(&self) -> (&Pool, UnderWay) {
        let pools = || once(&self.first).chain(&self.more);
        let chosen = pools().find(|shared| shared.has_room()).unwrap_or_else(|| {
            let fewest = pools().min_by_key(|shared| shared.requests.load(Ordering::Relaxed));
            let fewest = fewest.unwrap_or(&self.first);
            fewest.requests.fetch_add(1, Ordering::Relaxed);
            fewest
        });
        (&chosen.pool, UnderWay(Arc::clone(&chosen.requests)))
    }
}

impl SharedPool {
    /// Whether one more request was counted here.
    fn has_room(&self) -> bool {
        let one_more = |requests| (requests < REQUESTS).then_some(requests + 1);
        self.requests.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }
}

/// A request under way: see [`Pools::choose`].
#[derive(Debug)]
pub(crate) struct UnderWay(Arc<AtomicUsize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
