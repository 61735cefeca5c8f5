//! What a request holds, until the body of its response has ended.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use super::common::{CLIENT, get, store};
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::{BodyExt, Empty, Full};
use sluicegate::adapter::{Answer, Charge, Debit, Hold, Receipt};
use sluicegate::clock::Clock;
use sluicegate::condition::InFlight;
use sluicegate::cost::{RunningCost, reply_header};
use sluicegate::response::Body;
use sluicegate::rule::By;
use sluicegate::service::InFlightLayer;
use sluicegate::store::Store;
use sluicegate::{Cost, Fields, Global, Limit, Memory, RateLimitLayer, Rejection};
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};

/// A body of ready frames, which may or may not know its end beforehand.
#[derive(Debug, Default)]
struct Parts {
    frames: VecDeque<Result<Frame<Bytes>, &'static str>>,
    knows_its_end: bool,
    cost: Option<(RunningCost, u64)>,
}

impl Parts {
    fn of(data: &[&'static str]) -> Self {
        let frames = data.iter().map(|data| Ok(Frame::data(Bytes::from(*data)))).collect();
        Self { frames, ..Self::default() }
    }

    fn then(mut self, last: Result<Frame<Bytes>, &'static str>) -> Self {
        self.frames.push_back(last);
        self
    }

    fn knowing_its_end(self) -> Self {
        Self { knows_its_end: true, ..self }
    }

    /// Reports a cost of `each` with each frame.
    fn costing(self, cost: &RunningCost, each: u64) -> Self {
        Self { cost: Some((cost.clone(), each)), ..self }
    }
}

impl http_body::Body for Parts {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        let frame = self.frames.pop_front();
        if let (Some((cost, each)), Some(Ok(_))) = (&self.cost, &frame) {
            cost.add(*each);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.knows_its_end && self.frames.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = SizeHint::new();
        hint.set_lower(self.frames.len() as u64);
        hint
    }
}

/// A store that counts settlements.
#[derive(Debug, Clone)]
struct Ledger {
    store: Memory,
    settled: Arc<AtomicUsize>,
}

impl Ledger {
    fn new() -> Self {
        Self { store: store().0, settled: Arc::default() }
    }

    fn settled(&self) -> usize {
        self.settled.load(Ordering::SeqCst)
    }

    fn remaining(&self, limit: Limit) -> u64 {
        super::common::remaining(&self.store, limit, Global)
    }
}

impl Store for Ledger {
    type Future = <Memory as Store>::Future;

    fn take(&self, charge: &Charge) -> Answer<Self::Future> {
        self.store.take(charge)
    }

    fn peek(&self, charge: &Charge) -> Answer<Self::Future> {
        self.store.peek(charge)
    }

    fn reset(&self, charge: &Charge) -> Answer<Self::Future> {
        self.store.reset(charge)
    }

    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
        self.settled.fetch_add(1, Ordering::SeqCst);
        self.store.settle(debit, receipt, spent);
    }

    fn clock(&self) -> Clock {
        self.store.clock()
    }

    fn follow(&self, debit: &Debit, charged: u64, spent: u64) {
        self.store.follow(debit, charged, spent);
    }

    fn follow_status(&self, debit: &Debit, status: &sluicegate::limit::LimitStatus) {
        self.store.follow_status(debit, status);
    }

    fn check(&self, limit: &Limit) -> Result<(), sluicegate::limit::LimitError> {
        self.store.check(limit)
    }
}

const ONE: Limit = Limit::concurrent(1);

/// A layer with one place for all clients, around a handler that returns what `answer` makes.
macro_rules! holding {
    ($ledger:expr, $answer:expr) => {
        layered!(RateLimitLayer::new(ONE.by(CLIENT)).store($ledger.clone()), $answer)
    };
}

macro_rules! layered {
    ($layer:expr, $answer:expr) => {{
        let answer = $answer;
        $layer.layer(service_fn(move |_: Request<String>| {
            std::future::ready(Ok::<_, Infallible>(answer()))
        }))
    }};
}

async fn ask<S, B>(service: &S) -> Response<B>
where
    S: Service<Request<String>, Response = Response<B>, Error = Infallible> + Clone,
{
    let Ok(response) = service.clone().oneshot(get("/", "alice")).await;
    response
}

/// Whether another request is served; its response is dropped at once.
async fn is_free<S, B>(service: &S) -> bool
where
    S: Service<Request<String>, Response = Response<B>, Error = Infallible> + Clone,
{
    ask(service).await.status() == 200
}

#[tokio::test]
async fn a_place_is_held_until_the_last_frame() {
    for parts in [|| Parts::of(&["one", "two"]), || Parts::of(&["one", "two"]).knowing_its_end()] {
        let ledger = Ledger::new();
        let service = holding!(ledger, move || Response::new(parts()));
        let mut body = ask(&service).await.into_body();
        assert!(!is_free(&service).await, "before the first frame");
        body.frame().await.unwrap().unwrap();
        assert!(!is_free(&service).await, "between the frames");
        body.frame().await.unwrap().unwrap();
        // A body that does not know its end has to be polled once more.
        assert_eq!(is_free(&service).await, parts().knows_its_end);
        assert!(body.frame().await.is_none());
        assert!(is_free(&service).await, "although the body is still there");
        drop(body);
        assert!(is_free(&service).await);
    }
}

#[tokio::test]
async fn a_place_is_given_back_once_however_the_body_ends() {
    let trailers = || Ok(Frame::trailers(HeaderMap::new()));
    for end in [
        (|| Parts::of(&["one"])) as fn() -> Parts,
        || Parts::of(&["one"]).knowing_its_end(),
        || Parts::of(&["one"]).then(Err("broken")),
        || Parts::of(&["one"]).then(Err("broken")).then(Err("still broken")),
        || Parts::of(&[]).knowing_its_end(),
        || Parts::of(&[]),
    ] {
        let ledger = Ledger::new();
        let service = holding!(ledger, move || Response::new(end()));
        let mut body = ask(&service).await.into_body();
        while body.frame().await.is_some() {}
        assert_eq!(ledger.settled(), 1, "{:?}", end());
        drop(body);
        assert_eq!(ledger.settled(), 1, "{:?}", end());
        assert!(is_free(&service).await);
    }
    let ledger = Ledger::new();
    let service = holding!(ledger, move || Response::new(Parts::of(&["one"]).then(trailers())));
    let mut body = ask(&service).await.into_body();
    body.frame().await.unwrap().unwrap();
    assert_eq!(ledger.settled(), 0);
    assert!(body.frame().await.unwrap().unwrap().is_trailers());
    assert_eq!(ledger.settled(), 1, "nothing comes after trailers");
}

#[tokio::test]
async fn a_body_that_is_dropped_half_way_or_never_polled_gives_its_place_back() {
    let ledger = Ledger::new();
    let service = holding!(ledger, || Response::new(Parts::of(&["one", "two"])));
    let mut body = ask(&service).await.into_body();
    body.frame().await.unwrap().unwrap();
    assert!(!is_free(&service).await);
    drop(body);
    assert_eq!(ledger.settled(), 1);
    let response = ask(&service).await;
    assert!(!is_free(&service).await);
    drop(response);
    assert_eq!(ledger.settled(), 2);
    let inner = ask(&service).await.into_body().into_inner();
    assert!(inner.is_ok());
    assert!(is_free(&service).await, "whoever takes the body out has taken it over");
}

#[tokio::test]
async fn with_hold_head_a_place_is_given_back_with_the_head() {
    let ledger = Ledger::new();
    let layer = RateLimitLayer::new(ONE.by(CLIENT)).store(ledger.clone()).hold_until(Hold::Head);
    let service = layered!(layer, || Response::new(Parts::of(&["one"])));
    let bodies = [ask(&service).await, ask(&service).await];
    assert_eq!(ledger.settled(), 2);
    for response in bodies {
        assert!(!response.body().is_holding());
    }
}

#[tokio::test]
async fn a_body_is_as_long_and_as_soon_at_its_end_as_the_one_inside() {
    let ledger = Ledger::new();
    let plain = RateLimitLayer::new(Limit::per_second(9).by(CLIENT)).store(ledger.clone());
    let full = || Response::new(Full::new(Bytes::from("twelve bytes")));
    let bodies = [
        ask(&layered!(plain.clone(), full)).await.into_body(),
        ask(&holding!(ledger, full)).await.into_body(),
    ];
    for mut body in bodies {
        assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(12), false));
        body.frame().await.unwrap().unwrap();
        assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(0), true));
    }
    let empty = || Response::new(Empty::<Bytes>::new());
    assert!(ask(&layered!(plain, empty)).await.into_body().is_end_stream());
    assert!(ask(&holding!(ledger, empty)).await.into_body().is_end_stream());

    let refused = holding!(ledger, full);
    let _held = ask(&refused).await;
    let body = ask(&refused).await.into_body();
    let length = body.size_hint().exact().unwrap();
    assert!(!body.is_end_stream());
    assert_eq!(body.collect().await.unwrap().to_bytes().len() as u64, length);
    assert!(Body::<String>::default().is_end_stream());
}

#[tokio::test]
async fn nothing_is_held_where_no_limit_holds() {
    let ledger = Ledger::new();
    let limits =
        [Limit::per_second(9), Limit::sliding_log(9, super::common::secs(60)).named("log")];
    for rule in [limits[0].into(), sluicegate::limit::Limits::from(limits)] {
        let layer = RateLimitLayer::new(rule.by(CLIENT)).store(ledger.clone());
        let service = layered!(layer, || Response::new(Parts::of(&["one"])));
        assert!(!ask(&service).await.body().is_holding());
    }
    // Nor if a limit on trial would have refused, or the handler serves less.
    let trial = RateLimitLayer::new(ONE.shadow().by(CLIENT)).store(ledger.clone());
    let service = layered!(trial, || Response::new(Parts::of(&["one"])));
    let held = ask(&service).await;
    assert!(held.body().is_holding());
    drop(ask(&service).await);
    drop(held);
    let degrade = RateLimitLayer::new(ONE.named("less").by(CLIENT)).store(ledger.clone());
    let service =
        layered!(degrade.rejection(Rejection::degrade()), || Response::new(Parts::of(&["one"])));
    let held = ask(&service).await;
    assert!(held.body().is_holding());
    assert!(!ask(&service).await.body().is_holding());
    drop(ask(&service).await);
    drop(held);
    assert!(ask(&service).await.body().is_holding(), "the place is there again");
}

#[tokio::test]
async fn a_refusal_further_in_holds_nothing() {
    let ledger = Ledger::new();
    let outer = RateLimitLayer::new(ONE.by(CLIENT)).store(ledger.clone());
    let inner = RateLimitLayer::new(Limit::per_hour(1).by(CLIENT)).store(ledger.clone());
    let answer = || Response::new(Parts::of(&["one"]));
    let service = layered!(ServiceBuilder::new().layer(outer).layer(inner).into_inner(), answer);
    drop(ask(&service).await);
    let refused = [ask(&service).await, ask(&service).await];
    for refused in refused {
        assert_eq!(refused.headers()["retry-after"], "3600", "not for want of a place");
    }
}

#[tokio::test]
async fn what_is_counted_by_status_is_settled_with_the_head_beside_what_is_held() {
    let ledger = Ledger::new();
    let log = Limit::sliding_log(3, super::common::secs(60));
    let rule = (Limit::concurrent(3).by(Global), log.by(Global).count_if(|status| status == 401));
    let layer = RateLimitLayer::new(rule).store(ledger.clone());
    let service = layered!(layer, || Response::new(Parts::of(&["one"])));
    let held = ask(&service).await;
    assert_eq!(ledger.remaining(log), 3, "200 does not count");
    assert_eq!(ledger.remaining(Limit::concurrent(3)), 2);
    drop(held);
    assert_eq!(ledger.remaining(log), 3);
    assert_eq!(ledger.remaining(Limit::concurrent(3)), 3);
    assert_eq!(ledger.settled(), 2);
}

#[tokio::test]
async fn a_panic_gives_the_place_back() {
    let ledger = Ledger::new();
    let layer = RateLimitLayer::new(ONE.by(CLIENT)).store(ledger.clone());
    let service = layer.layer(service_fn(|request: Request<String>| async move {
        assert_ne!(request.uri().path(), "/panic", "the handler panics");
        Ok::<_, Infallible>(Response::new(String::new()))
    }));
    let panicking = tokio::spawn(service.clone().oneshot(get("/panic", "alice")));
    assert!(panicking.await.unwrap_err().is_panic());
    assert!(is_free(&service).await);
}

const TOKENS: Limit = Limit::fixed_window(100, super::common::secs(60));

/// A layer that reserves 10 tokens of [`TOKENS`], and settles by the response.
fn settling(ledger: &Ledger) -> RateLimitLayer<By<Global>, Ledger> {
    let rule = TOKENS.by(Global).cost(10).settle_cost(|reply| reply.cost());
    RateLimitLayer::new(rule).store(ledger.clone()).fields(Fields::NONE)
}

/// A stream of five frames that cost 7 each, and 2 before the first.
fn streamed() -> Response<Parts> {
    let cost = RunningCost::of(2);
    let parts = Parts::of(&["a", "b", "c", "d", "e"]).costing(&cost, 7);
    let mut response = Response::new(parts);
    response.extensions_mut().insert(cost);
    response
}

#[tokio::test]
async fn a_streamed_answer_is_charged_what_it_used_when_it_has_ended() {
    let ledger = Ledger::new();
    let service = layered!(settling(&ledger), streamed);
    let mut body = ask(&service).await.into_body();
    for _ in 0..5 {
        body.frame().await.unwrap().unwrap();
        assert_eq!((ledger.remaining(TOKENS), ledger.settled()), (90, 0), "what was reserved");
    }
    assert!(body.frame().await.is_none());
    assert_eq!((ledger.remaining(TOKENS), ledger.settled()), (63, 1));
    drop(body);
    assert_eq!((ledger.remaining(TOKENS), ledger.settled()), (63, 1));
}

#[tokio::test]
async fn a_streamed_answer_is_charged_what_it_used_when_the_client_leaves_or_it_fails() {
    let ledger = Ledger::new();
    let service = layered!(settling(&ledger), streamed);
    let mut body = ask(&service).await.into_body();
    body.frame().await.unwrap().unwrap();
    drop(body);
    assert_eq!((ledger.remaining(TOKENS), ledger.settled()), (91, 1), "2 and 7");
    drop(ask(&service).await);
    assert_eq!((ledger.remaining(TOKENS), ledger.settled()), (89, 2), "2 before the first frame");
    let failing = layered!(settling(&ledger), || streamed().map(|parts| parts.then(Err("broken"))));
    let mut body = ask(&failing).await.into_body();
    while body.frame().await.is_some_and(|frame| frame.is_ok()) {}
    assert_eq!((ledger.remaining(TOKENS), ledger.settled()), (52, 3), "37 before it failed");
    drop(body);
    assert_eq!(ledger.settled(), 3);
}

#[tokio::test]
async fn a_cost_that_is_known_with_the_head_is_settled_with_the_head() {
    let ledger = Ledger::new();
    let service = layered!(settling(&ledger), || {
        let mut response = Response::new(Parts::of(&["one"]));
        response.extensions_mut().insert(Cost(30));
        response
    });
    let response = ask(&service).await;
    assert!(!response.body().is_holding());
    assert_eq!(ledger.remaining(TOKENS), 70);
    let head = settling(&ledger).hold_until(Hold::Head);
    let response = ask(&layered!(head, streamed)).await;
    assert!(!response.body().is_holding());
    assert_eq!(ledger.remaining(TOKENS), 68, "what it cost by then");
}

#[tokio::test]
async fn what_is_settled_at_the_end_sees_headers_and_trailers() {
    for (name, expected) in [("x-used", 60), ("x-head", 95), ("x-nowhere", 90)] {
        let ledger = Ledger::new();
        let rule = TOKENS.by(Global).cost(10).settle_cost(reply_header(name)).settle_at_end();
        let layer = RateLimitLayer::new(rule).store(ledger.clone());
        let service = layered!(layer, || {
            let trailers =
                HeaderMap::from_iter([("x-used".parse().unwrap(), "40".parse().unwrap())]);
            let parts = Parts::of(&["one"]).then(Ok(Frame::trailers(trailers)));
            Response::builder().header("x-head", "5").body(parts).unwrap()
        });
        let body = ask(&service).await.into_body();
        assert_eq!(ledger.remaining(TOKENS), 90);
        assert!(body.collect().await.unwrap().trailers().is_some());
        assert_eq!(ledger.remaining(TOKENS), expected, "{name}");
    }
}

#[test]
#[should_panic(expected = "`settle_at_end` follows `count_if` or `settle_cost`")]
fn what_is_not_settled_cannot_be_settled_at_the_end() {
    let _ = TOKENS.by(Global).settle_at_end();
}

#[tokio::test]
async fn what_is_under_way_counts_until_the_last_frame() {
    let load = InFlight::below(9);
    let service =
        layered!(InFlightLayer::new(load.clone()), || Response::new(Parts::of(&["a", "b"])));
    let mut body = ask(&service).await.into_body();
    body.frame().await.unwrap().unwrap();
    assert_eq!(load.count(), 1);
    let another = ask(&service).await;
    assert_eq!(load.count(), 2);
    while body.frame().await.is_some() {}
    assert_eq!(load.count(), 1);
    drop(another);
    assert_eq!(load.count(), 0);
    let until_head = InFlightLayer::new(load.clone()).until_head();
    let service = layered!(until_head, || Response::new(Parts::of(&["a", "b"])));
    let _body = ask(&service).await;
    assert_eq!(load.count(), 0);
}
