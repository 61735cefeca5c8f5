//! The connections to the application, which requests share.
//!
//! hyper's pool keeps one connection of HTTP/2, and opens no second one where the application lets no further stream on the first.
//! Responses that never end, as many as it allows there, would keep every other request waiting. So HTTP/2 has several pools.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::client::legacy::{Builder, Client, Error};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use sluicegate_config::proxy::Upstream;
use tokio::time::Instant;

use crate::proxy::connector::Connector;
use crate::proxy::request_body::{ClientError, RequestBody};

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

/// How many requests a connection of HTTP/2 has before another one is opened. Servers allow at least as many: lighttpd 8, others 100
/// or more, as RFC 9113 recommends.
const REQUESTS: usize = 8;

/// How long a connection of HTTP/2 may leave every request unanswered before further ones get another connection. Otherwise one whose
/// other end has vanished would get all of them. Pings would find out too, but servers of gRPC end a connection whose client sends
/// them more often than every five minutes, and long calls with it. An application that is slow gets a few more connections.
const SILENCE: Duration = Duration::from_secs(20);

pub(crate) type Pool = Client<Connector, RequestBody>;

/// The pools of one application.
pub(crate) enum Pools {
    /// For HTTP/1. It opens as many connections as there are requests.
    One(Arc<Pool>),
    /// For HTTP/2, as many as requests need.
    Several(Box<Several>),
}

pub(crate) struct Several {
    builder: Builder,
    connector: Connector,
    most: usize,
    pools: Mutex<Vec<Arc<SharedPool>>>,
}

#[derive(Debug)]
pub(crate) struct SharedPool {
    pool: Pool,
    requests: AtomicUsize,
    /// The first request since the last answer.
    asked: Mutex<Option<Instant>>,
}

impl Pools {
    /// The pools of the application that `upstream` names. They open connections with `connector` when requests need them.
    pub(crate) fn new(connector: Connector, upstream: &Upstream) -> Self {
        let mut builder = Client::builder(TokioExecutor::new());
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
            .http2_max_send_buf_size(WINDOW as usize);
        if !upstream.http2 {
            return Self::One(Arc::new(builder.build(connector)));
        }
        // Each pool may keep a connection that is idle.
        let most = upstream.idle_connections.max(1);
        Self::Several(Box::new(Several { builder, connector, most, pools: Mutex::default() }))
    }

    /// Chooses the pool of one more request.
    pub(crate) fn begin(&self) -> UnderWay {
        match self {
            Self::One(pool) => UnderWay::InOne(Arc::clone(pool)),
            Self::Several(pools) => pools.begin(),
        }
    }
}

impl Several {
    /// Counts one more request, and chooses its pool.
    ///
    /// It is the first one with room, so that connections that are not needed become idle and are closed. If none has room, it is
    /// the one with the fewest requests.
    fn begin(&self) -> UnderWay {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let requests = |at: usize| pools[at].requests.load(Ordering::Relaxed);
        let with_room = (0..pools.len()).find(|at| requests(*at) < REQUESTS);
        let fewest = (0..pools.len()).min_by_key(|at| requests(*at)).unwrap_or_default();
        let at = match with_room {
            Some(at) => at,
            None if pools.len() < self.most => {
                pools.push(self.open());
                pools.len() - 1
            }
            None => fewest,
        };
        if pools[at].is_silent() {
            // What is under way on the connection of the other one goes on.
            pools[at] = self.open();
        }
        pools[at].begin()
    }

    /// A pool without connections.
    fn open(&self) -> Arc<SharedPool> {
        Arc::new(SharedPool {
            pool: self.builder.build(self.connector.clone()),
            requests: AtomicUsize::new(0),
            asked: Mutex::default(),
        })
    }
}

impl SharedPool {
    fn begin(self: &Arc<Self>) -> UnderWay {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.asked().get_or_insert_with(Instant::now);
        UnderWay::InShared(Arc::clone(self))
    }

    fn is_silent(&self) -> bool {
        self.asked().is_some_and(|asked| asked.elapsed() > SILENCE)
    }

    fn asked(&self) -> MutexGuard<'_, Option<Instant>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that has a place in a pool until this is dropped: see [`Pools::begin`].
#[derive(Debug)]
pub(crate) enum UnderWay {
    InOne(Arc<Pool>),
    InShared(Arc<SharedPool>),
}

impl UnderWay {
    /// Sends the request.
    pub(crate) async fn send(
        &self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, Error> {
        let shared = match self {
            Self::InOne(pool) => return pool.request(request).await,
            Self::InShared(shared) => shared,
        };
        let answered = shared.pool.request(request).await;
        // Errors too: a connection that has failed gets no further requests. An upload that its client ends says nothing about it.
        let is_clients = |error| ClientError::among(error).is_some();
        if !answered.as_ref().is_err_and(|error| is_clients(error)) {
            *shared.asked() = None;
        }
        answered
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Self::InShared(shared) = self {
            shared.requests.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
