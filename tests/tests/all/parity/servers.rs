//! A server for each adapter, all with the same handler. It answers with the status named in the path. Its body says
//! whether the request is degraded, and reports what `/cost/7` cost.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, ready};
use std::thread;

use actix_web::{App, HttpMessage, HttpResponse, HttpServer, web};
use axum::body::Body;
use http::{Request, Response};
use sluicegate_core::adapter::Sleep;
use sluicegate_core::response::Degraded;
use sluicegate_core::rule::Rule;
use sluicegate_core::store::OnStoreError;
use sluicegate_core::{Cost, Fields, Global, Limit, ManualClock, Memory, Rejection};

use super::stores::{Keep, Kept};

/// What a scenario sets up besides its rule.
#[derive(Clone)]
pub(crate) struct Setup<S> {
    pub(crate) store: S,
    pub(crate) rejection: Rejection,
    pub(crate) fields: Fields,
    pub(crate) on_store_error: OnStoreError,
    /// A limit for all clients together, within the other one, and what happens to requests that exceed it.
    pub(crate) inner: (Limit, Rejection),
    /// The clock that `/slow` waits by.
    pub(crate) clock: ManualClock,
    /// Tells how many requests wait at the inner limit, once the server has started.
    pub(crate) waiting: Waiting,
}

pub(crate) type Waiting = Arc<Mutex<Box<dyn Fn() -> usize + Send>>>;

impl<S> Setup<S> {
    fn inner_memory(&self) -> Memory {
        Memory::builder().capacity(10).clock(&self.clock).build()
    }
}

/// A rule that every adapter can use.
pub(crate) trait Anywhere:
    for<'a> Rule<
        sluicegate::adapter::HttpView<'a, hyper::body::Incoming, sluicegate::adapter::Plain>,
    > + for<'a> Rule<sluicegate::adapter::HttpView<'a, Body, sluicegate_axum::adapter::Axum>>
    + for<'a> Rule<sluicegate_actix::adapter::RequestView<'a>>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<R> Anywhere for R where
    R: for<'a> Rule<
            sluicegate::adapter::HttpView<'a, hyper::body::Incoming, sluicegate::adapter::Plain>,
        > + for<'a> Rule<sluicegate::adapter::HttpView<'a, Body, sluicegate_axum::adapter::Axum>>
        + for<'a> Rule<sluicegate_actix::adapter::RequestView<'a>>
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// Starts a server on a free port. It runs until the test's process ends.
pub(crate) trait Server {
    /// Where it keeps its counts.
    type Store: Kept;

    fn store(&self, clock: &ManualClock) -> Self::Store;

    fn start(&self, rule: impl Anywhere, setup: Setup<Self::Store>) -> SocketAddr;
}

pub(crate) struct Tower<K>(pub(crate) K);
pub(crate) struct Axum<K>(pub(crate) K);
pub(crate) struct Actix<K>(pub(crate) K);

/// Runs `serve` on its own thread, and waits until it has sent its address.
fn started<F>(serve: impl FnOnce(mpsc::Sender<SocketAddr>) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()>,
{
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(serve(send));
    });
    receive.recv().unwrap()
}

async fn listen(send: mpsc::Sender<SocketAddr>) -> tokio::net::TcpListener {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    send.send(listener.local_addr().unwrap()).unwrap();
    listener
}

/// The adapters have different types with the same methods.
macro_rules! set_up {
    ($limit:expr, $setup:ident) => {
        $limit
            .store($setup.store)
            .rejection($setup.rejection)
            .fields($setup.fields)
            .on_store_error($setup.on_store_error)
    };
}

/// The limit within the other one.
macro_rules! set_up_inner {
    ($limit:path, $setup:ident) => {{
        let memory = $setup.inner_memory();
        let (limit, rejection) = $setup.inner.clone();
        let inner =
            $limit(limit.by(Global)).store(memory).rejection(rejection).fields(Fields::NONE);
        let same = inner.clone();
        *$setup.waiting.lock().unwrap() = Box::new(move || same.waiting());
        inner
    }};
}

/// A body that sends a part at once, and the rest a second later by the clock.
struct SlowBody {
    sleep: Sleep<std::future::Ready<()>>,
    sent: usize,
}

impl SlowBody {
    fn new(clock: &ManualClock) -> Self {
        let time = std::time::Duration::from_secs(1);
        Self { sleep: Sleep::new(&clock.into(), time, |_| std::future::ready(())), sent: 0 }
    }

    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<web::Bytes>> {
        if self.sent == 1 {
            ready!(Pin::new(&mut self.sleep).poll(cx));
        }
        self.sent += 1;
        let parts = ["the first part", ", and the rest"];
        Poll::Ready(parts.get(self.sent - 1).map(|part| web::Bytes::from_static(part.as_bytes())))
    }
}

impl http_body::Body for SlowBody {
    type Data = web::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<web::Bytes>, Self::Error>>> {
        self.poll_part(cx).map(|part| part.map(|part| Ok(http_body::Frame::data(part))))
    }
}

impl actix_web::body::MessageBody for SlowBody {
    type Error = std::convert::Infallible;

    fn size(&self) -> actix_web::body::BodySize {
        actix_web::body::BodySize::Stream
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<web::Bytes, Self::Error>>> {
        self.poll_part(cx).map(|part| part.map(Ok))
    }
}

fn answer(path: &str, degraded: bool) -> (u16, String, Option<Cost>) {
    let last = path.rsplit('/').next().and_then(|last| last.parse().ok());
    let body = if degraded { "less" } else { "all" }.to_owned();
    match last {
        Some(cost) if path.starts_with("/cost/") => (200, body, Some(Cost(cost))),
        Some(status) => (status as u16, body, None),
        None => (200, body, None),
    }
}

/// The `Cache-Control` field of the answer to this path.
fn caching(path: &str) -> Option<&'static str> {
    match path {
        "/public" => Some("public, max-age=60"),
        "/private" => Some("private, max-age=60"),
        _ => None,
    }
}

fn respond<B>(request: &Request<B>, clock: &ManualClock) -> Response<Body> {
    if request.uri().path() == "/slow" {
        return Response::new(Body::new(SlowBody::new(clock)));
    }
    let degraded = request.extensions().get::<Degraded>().is_some();
    let (status, body, cost) = answer(request.uri().path(), degraded);
    let mut response = Response::builder().status(status).body(Body::from(body)).unwrap();
    if let Some(caching) = caching(request.uri().path()) {
        response.headers_mut().insert("cache-control", caching.parse().unwrap());
    }
    if let Some(cost) = cost {
        response.extensions_mut().insert(cost);
    }
    response
}

impl<K: Keep> Server for Tower<K> {
    type Store = K::Store;

    fn store(&self, clock: &ManualClock) -> K::Store {
        self.0.store(clock)
    }

    fn start(&self, rule: impl Anywhere, setup: Setup<K::Store>) -> SocketAddr {
        use hyper_util::rt::TokioIo;
        use hyper_util::service::TowerToHyperService;
        use tower::Layer;

        let inner = set_up_inner!(sluicegate::RateLimitLayer::new, setup);
        let clock = setup.clock.clone();
        let layer = set_up!(sluicegate::RateLimitLayer::new(rule), setup);
        started(async move |send| {
            let listener = listen(send).await;
            loop {
                let (stream, peer) = listener.accept().await.unwrap();
                let clock = clock.clone();
                let handler = tower::service_fn(move |request: Request<hyper::body::Incoming>| {
                    std::future::ready(Ok::<_, std::convert::Infallible>(respond(&request, &clock)))
                });
                let limited = layer.layer(inner.layer(handler));
                let service = tower::ServiceBuilder::new()
                    .map_request(move |mut request: Request<_>| {
                        request.extensions_mut().insert(sluicegate::adapter::Peer(peer.ip()));
                        request
                            .extensions_mut()
                            .insert(sluicegate::adapter::MatchedRoute("/{any}".into()));
                        request
                    })
                    .service(limited);
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service)),
                );
            }
        })
    }
}

impl<K: Keep> Server for Axum<K> {
    type Store = K::Store;

    fn store(&self, clock: &ManualClock) -> K::Store {
        self.0.store(clock)
    }

    fn start(&self, rule: impl Anywhere, setup: Setup<K::Store>) -> SocketAddr {
        let inner = set_up_inner!(sluicegate_axum::RateLimitLayer::new, setup);
        let clock = setup.clock.clone();
        let layer = set_up!(sluicegate_axum::RateLimitLayer::new(rule), setup);
        let handler = axum::routing::get(async move |request: axum::extract::Request| {
            respond(&request, &clock)
        });
        let app = axum::Router::new()
            .route("/", handler.clone())
            .route("/{any}", handler.clone())
            .route("/cost/{any}", handler)
            .layer(inner)
            .layer(layer);
        started(async move |send| {
            let listener = listen(send).await;
            let app = app.into_make_service_with_connect_info::<SocketAddr>();
            axum::serve(listener, app).await.unwrap();
        })
    }
}

impl<K: Keep> Server for Actix<K> {
    type Store = K::Store;

    fn store(&self, clock: &ManualClock) -> K::Store {
        self.0.store(clock)
    }

    fn start(&self, rule: impl Anywhere, setup: Setup<K::Store>) -> SocketAddr {
        let inner = set_up_inner!(sluicegate_actix::RateLimit::new, setup);
        let clock = setup.clock.clone();
        let limit = set_up!(sluicegate_actix::RateLimit::new(rule), setup);
        started(async move |send| {
            let handler = async |request: actix_web::HttpRequest, clock: web::Data<ManualClock>| {
                if request.path() == "/slow" {
                    return HttpResponse::Ok().body(SlowBody::new(&clock));
                }
                let degraded = request.extensions().get::<Degraded>().is_some();
                let (status, body, cost) = answer(request.path(), degraded);
                let status = actix_web::http::StatusCode::from_u16(status).unwrap();
                let mut response = HttpResponse::build(status);
                if let Some(caching) = caching(request.path()) {
                    response.insert_header(("cache-control", caching));
                }
                let mut response = response.body(body);
                if let Some(cost) = cost {
                    response.extensions_mut().insert(cost);
                }
                response
            };
            let server = HttpServer::new(move || {
                App::new()
                    .app_data(web::Data::new(clock.clone()))
                    .route("/", web::get().to(handler))
                    .route("/{any}", web::get().to(handler))
                    .route("/cost/{any}", web::get().to(handler))
                    .wrap(inner.clone())
                    .wrap(limit.clone())
            })
            // A client that closes its side has left, as everywhere else.
            .h1_allow_half_closed(false)
            .workers(4)
            .disable_signals()
            .bind("127.0.0.1:0")
            .unwrap();
            send.send(server.addrs()[0]).unwrap();
            server.run().await.unwrap();
        })
    }
}
