//! Shared code of the layer's tests: a service, requests, and a store with a manual clock.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use sluicegate::adapter::{Charge, HttpView};
use sluicegate::key::{Key, KeyBuf};
use sluicegate::response::Body;
use sluicegate::store::Store;
use sluicegate::{Header, Limit, ManualClock, Memory};
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceExt};

pub(crate) const CLIENT: Header = Header("x-client");

pub(crate) type TextResponse = Response<String>;
pub(crate) type App = BoxCloneSyncService<Request<String>, TextResponse, Infallible>;

/// A store on a clock that the test turns.
pub(crate) fn store() -> (Memory, ManualClock) {
    let clock = ManualClock::new();
    (Memory::builder().capacity(1_000).clock(&clock).build(), clock)
}

/// `layer` around a handler that answers 200, or the status that the path names.
pub(crate) fn app<L, T>(layer: L) -> App
where
    T: Text,
    L: Layer<App>,
    L::Service: Service<Request<String>, Response = Response<T>, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    <L::Service as Service<Request<String>>>::Future: Send,
{
    let service = layer.layer(handler());
    BoxCloneSyncService::new(service.map_response(|response| response.map(Text::text)))
}

/// The content of a body, through any number of layers.
pub(crate) trait Text {
    fn text(self) -> String;
}

impl Text for String {
    fn text(self) -> String {
        self
    }
}

impl<B: Text> Text for Body<B> {
    fn text(self) -> String {
        let own = |bytes: Bytes| String::from_utf8(bytes.to_vec()).unwrap();
        self.into_inner().map_or_else(own, Text::text)
    }
}

/// Answers 200, or the status that the path names; the body says how the request was marked.
pub(crate) fn handler() -> App {
    BoxCloneSyncService::new(tower::service_fn(|request: Request<String>| async move {
        let status = request.uri().path().trim_start_matches('/').parse().unwrap_or(200_u16);
        let degraded = request.extensions().get::<sluicegate::response::Degraded>().is_some();
        let body = if degraded { "less" } else { "all" };
        Ok(Response::builder().status(status).body(body.to_owned()).unwrap())
    }))
}

/// A request of `client`.
pub(crate) fn get(path: &str, client: &str) -> Request<String> {
    Request::get(path).header("x-client", client).body(String::new()).unwrap()
}

/// Sends a request and waits for the response.
pub(crate) async fn send(app: &App, path: &str, client: &str) -> TextResponse {
    app.clone().oneshot(get(path, client)).await.unwrap()
}

/// What alice has left of a limit by `key`.
pub(crate) fn remaining<K>(store: &Memory, limit: Limit, key: K) -> u64
where
    K: for<'a> Key<HttpView<'a, String>>,
{
    let mut written = KeyBuf::new();
    key.write(&HttpView::new(&get("/", "alice")), &mut written).unwrap();
    let charge = Charge::of(limit, written, 1);
    store.peek(&charge).now().unwrap().decision(&charge).remaining().unwrap()
}

/// The header field `name`, as text.
pub(crate) fn header<'a, B>(response: &'a Response<B>, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The key as a rule writes it.
pub(crate) fn key(
    key: &impl for<'a> Key<HttpView<'a, String>>,
    request: &Request<String>,
) -> KeyBuf {
    let mut written = KeyBuf::new();
    key.write(&HttpView::new(request), &mut written).unwrap();
    written
}

/// The statuses that `count` requests of alice in a row are answered with.
pub(crate) async fn statuses(app: &App, path: &str, count: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..count {
        statuses.push(send(app, path, "alice").await.status().as_u16());
    }
    statuses
}

/// A request without the key that the tests limit by.
pub(crate) fn keyless() -> Request<String> {
    Request::new(String::new())
}
