//! Clients that leave while their request waits: the layers that it has passed give their charges back.

use std::convert::Infallible;
use std::future::pending;

use super::common::{App, CLIENT, Text, get, handler, remaining, secs, store};
use http::{Request, Response};
use sluicegate::rule::By;
use sluicegate::{Header, Limit, Memory, RateLimitLayer, Rejection};
use sluicegate_tests::stores::{Manner, TestStore};
use tokio_test::{assert_pending, assert_ready, task};
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};

const DAY: Limit = Limit::fixed_window(10, secs(86_400));
const LOG: Limit = Limit::sliding_log(20, secs(3_600));

fn outer(store: &Memory) -> RateLimitLayer<By<Header>> {
    RateLimitLayer::new(DAY.by(CLIENT)).store(store.clone())
}

/// Admits one request a minute, and the next ones wait.
fn queueing(store: &Memory) -> RateLimitLayer<By<Header>> {
    RateLimitLayer::new(Limit::per_minute(1).named("queue").by(CLIENT))
        .store(store.clone())
        .rejection(Rejection::queue(secs(600)))
}

type Boxed = BoxCloneSyncService<Request<String>, Response<String>, Infallible>;

/// `inner` behind `layer`, boxed, with bodies of text again.
fn boxed<L, T>(layer: L, inner: Boxed) -> Boxed
where
    L: Layer<Boxed>,
    T: Text,
    L::Service: Service<Request<String>, Response = Response<T>, Error = Infallible, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static,
{
    let service = layer.layer(inner);
    BoxCloneSyncService::new(service.map_response(|response| response.map(Text::text)))
}

/// Takes the first turn, lets `count` requests wait and leave, and returns what is left of `limit`.
fn after_leaving<S, T>(store: &Memory, service: &S, count: usize, limit: Limit) -> u64
where
    S: Service<Request<String>, Response = Response<T>, Error = Infallible> + Clone,
    T: std::fmt::Debug,
{
    let ask = || task::spawn(service.clone().oneshot(get("/", "alice")));
    assert_eq!(assert_ready!(ask().poll()).map(|response| response.status().as_u16()), Ok(200));
    let mut waiting: Vec<_> = (0..count).map(|_| ask()).collect();
    for waiting in &mut waiting {
        assert_pending!(waiting.poll());
    }
    drop(waiting);
    remaining(store, limit, CLIENT)
}

#[tokio::test]
async fn who_leaves_the_queue_further_in_pays_nothing_further_out() {
    for extensions in [true, false] {
        let (store, _clock) = store();
        let outer = outer(&store).extensions(extensions);
        let service = ServiceBuilder::new().layer(outer).layer(queueing(&store)).service(handler());
        assert_eq!(after_leaving(&store, &service, 5, DAY), 9, "the one that was served");
    }
}

#[tokio::test]
async fn all_layers_that_it_has_passed_give_back() {
    let (store, _clock) = store();
    let several = RateLimitLayer::new((
        LOG.by(CLIENT).count_if(|status| status == 200),
        Limit::concurrent(10).by(CLIENT),
    ));
    let service = ServiceBuilder::new()
        .layer(outer(&store))
        .layer(several.store(store.clone()))
        .layer(queueing(&store))
        .service(handler());
    assert_eq!(after_leaving(&store, &service, 5, DAY), 9);
    assert_eq!(remaining(&store, LOG, CLIENT), 19);
    assert_eq!(remaining(&store, Limit::concurrent(10), CLIENT), 10);
}

#[tokio::test]
async fn boxes_and_other_layers_in_between_do_not_matter() {
    let (store, _clock) = store();
    let inner = boxed(queueing(&store), handler());
    let free = RateLimitLayer::new(LOG.by(CLIENT).when(sluicegate::key::Method.is("DELETE")));
    let between = ServiceBuilder::new()
        .map_request(|request: Request<String>| request)
        .layer(free)
        .concurrency_limit(100)
        .service(inner);
    let between = boxed(tower::layer::layer_fn(move |_| between.clone()), handler());
    let service = boxed(outer(&store), between);
    assert_eq!(after_leaving(&store, &service, 5, DAY), 9);
}

#[tokio::test]
async fn who_leaves_before_a_store_further_in_has_answered_pays_nothing() {
    let (store, _clock) = store();
    let inner = RateLimitLayer::new(Limit::per_minute(9).by(CLIENT))
        .store(TestStore::new(Memory::with_capacity(1), Manner::Never));
    let service = ServiceBuilder::new().layer(outer(&store)).layer(inner).service(handler());
    let mut waiting = task::spawn(service.oneshot(get("/", "alice")));
    assert_pending!(waiting.poll());
    assert_eq!(remaining(&store, DAY, CLIENT), 9);
    drop(waiting);
    assert_eq!(remaining(&store, DAY, CLIENT), 10);
}

#[tokio::test]
async fn who_leaves_while_a_handler_runs_keeps_the_charge() {
    let (store, _clock) = store();
    let handler =
        service_fn(|_: Request<String>| pending::<Result<Response<String>, Infallible>>());
    let service =
        ServiceBuilder::new().layer(outer(&store)).layer(queueing(&store)).service(handler);
    let mut served = task::spawn(service.oneshot(get("/", "alice")));
    assert_pending!(served.poll());
    drop(served);
    assert_eq!(remaining(&store, DAY, CLIENT), 9);
}

#[tokio::test]
async fn a_handler_that_waits_for_its_own_turn_as_a_client_was_running() {
    let (store, _clock) = store();
    // An exhausted limit on the handler's own calls to another service.
    let outgoing = boxed(queueing(&store), handler());
    assert!(outgoing.clone().oneshot(get("/", "alice")).await.is_ok());
    let handler = service_fn(move |_: Request<String>| outgoing.clone().oneshot(get("/", "alice")));
    for layers in 1..=2 {
        let service: App = match layers {
            1 => boxed(outer(&store), BoxCloneSyncService::new(handler.clone())),
            _ => {
                let inner = RateLimitLayer::new(LOG.by(CLIENT)).store(store.clone());
                boxed(outer(&store), boxed(inner, BoxCloneSyncService::new(handler.clone())))
            }
        };
        let mut served = task::spawn(service.oneshot(get("/", "alice")));
        assert_pending!(served.poll());
        drop(served);
        assert_eq!(remaining(&store, DAY, CLIENT), 10 - layers);
    }
    assert_eq!(remaining(&store, LOG, CLIENT), 19);
}

#[tokio::test]
async fn a_time_out_in_between_ends_a_wait_without_a_charge() {
    let (store, _clock) = store();
    let service = ServiceBuilder::new()
        .layer(outer(&store))
        .timeout(secs(0))
        .layer(queueing(&store))
        .service(handler());
    assert!(service.clone().oneshot(get("/", "alice")).await.is_ok());
    assert!(service.clone().oneshot(get("/", "alice")).await.is_err());
    assert_eq!(remaining(&store, DAY, CLIENT), 9);
}

#[tokio::test]
async fn a_buffer_in_between_hands_the_wait_back_to_the_client() {
    let (store, _clock) = store();
    let inner = tower::buffer::Buffer::new(queueing(&store).layer(handler()), 8);
    let service = outer(&store).layer(inner);
    assert!(service.clone().oneshot(get("/", "alice")).await.is_ok());
    let mut waiting = task::spawn(service.oneshot(get("/", "alice")));
    assert_pending!(waiting.poll());
    while !waiting.is_woken() {
        tokio::task::yield_now().await;
    }
    assert_pending!(waiting.poll());
    drop(waiting);
    assert_eq!(remaining(&store, DAY, CLIENT), 9);
}

#[tokio::test]
async fn a_task_in_between_keeps_the_charge_as_documented() {
    let (store, _clock) = store();
    let inner = boxed(queueing(&store), handler());
    let spawning = service_fn(move |request: Request<String>| {
        let task = tokio::spawn(inner.clone().oneshot(request));
        async { task.await.unwrap() }
    });
    let service = outer(&store).layer(spawning);
    assert!(service.clone().oneshot(get("/", "alice")).await.is_ok());
    let mut waiting = task::spawn(service.oneshot(get("/", "alice")));
    assert_pending!(waiting.poll());
    tokio::task::yield_now().await;
    drop(waiting);
    assert_eq!(remaining(&store, DAY, CLIENT), 8);
}
