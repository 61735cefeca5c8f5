//! What a request holds, until the body of its response has ended; and clients that leave.

use std::collections::VecDeque;
use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use super::common::{CLIENT, get, secs, send, store};
use actix_http::Request;
use actix_web::body::{BodySize, MessageBody};
use actix_web::dev::{Service, ServiceResponse};
use actix_web::web::Bytes;
use actix_web::{App, Error, HttpRequest, HttpResponse, test, web};
use sluicegate_actix::adapter::{Charge, Hold, RequestView};
use sluicegate_actix::condition::InFlight;
use sluicegate_actix::cost::RunningCost;
use sluicegate_actix::key::{Key, KeyBuf};
use sluicegate_actix::rule::By;
use sluicegate_actix::service::InFlightMiddleware;
use sluicegate_actix::store::Store;
use sluicegate_actix::{Global, Header, Limit, Memory, RateLimit, Rejection};
use tokio_test::{assert_pending, task};

const ONE: Limit = Limit::concurrent(1);

/// A body of chunks that are there; each costs 7.
struct Chunks {
    chunks: VecDeque<Result<Bytes, &'static str>>,
    size: BodySize,
    cost: RunningCost,
}

impl MessageBody for Chunks {
    type Error = &'static str;

    fn size(&self) -> BodySize {
        self.size
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, &'static str>>> {
        let chunk = self.chunks.pop_front();
        if let Some(Ok(_)) = &chunk {
            self.cost.add(7);
        }
        Poll::Ready(chunk)
    }
}

/// Two chunks, after which `/broken` fails. `/text` knows its end, and `/sized` its length.
async fn handler(request: HttpRequest) -> HttpResponse {
    let cost = RunningCost::of(2);
    let mut chunks = VecDeque::from([Ok(Bytes::from("one")), Ok(Bytes::from("two"))]);
    let mut size = BodySize::Stream;
    match request.path() {
        "/text" => return HttpResponse::Ok().body("text"),
        "/empty" => return HttpResponse::NoContent().finish(),
        "/wait" => pending().await,
        "/broken" => chunks.push_back(Err("broken")),
        "/sized" => size = BodySize::Sized(6),
        _ => {}
    }
    let mut response = HttpResponse::Ok().body(Chunks { chunks, size, cost: cost.clone() });
    response.extensions_mut().insert(cost);
    response
}

async fn app<R, S>(
    limit: RateLimit<R, S>,
) -> impl Service<Request, Response = super::common::Answer, Error = Error>
where
    R: for<'a> sluicegate_actix::rule::Rule<RequestView<'a>> + Clone + 'static,
    S: Store + Clone + 'static,
{
    test::init_service(App::new().wrap(limit).default_service(web::to(handler))).await
}

async fn next<B: MessageBody>(body: Pin<&mut B>) -> Option<Result<Bytes, B::Error>> {
    let mut body = body;
    poll_fn(|cx| body.as_mut().poll_next(cx)).await
}

/// Whether another request is served; its response is dropped at once.
async fn is_free<A, B>(app: &A) -> bool
where
    A: Service<Request, Response = ServiceResponse<B>, Error = Error>,
{
    send(app, "/", "alice").await.status() == 200
}

fn remaining(store: &Memory, limit: Limit, key: impl for<'a> Key<RequestView<'a>>) -> u64 {
    let request = test::TestRequest::get().insert_header(("x-client", "alice")).to_http_request();
    let mut written = KeyBuf::new();
    key.write(&RequestView::new(&request), &mut written).unwrap();
    let charge = Charge::of(limit, written, 1);
    store.peek(&charge).now().unwrap().decision(&charge).remaining().unwrap()
}

fn one_place(store: &Memory) -> RateLimit<By<Header>> {
    RateLimit::new(ONE.by(CLIENT)).store(store.clone())
}

#[actix_web::test]
async fn a_place_is_held_until_the_body_has_ended_failed_or_been_dropped() {
    let (store, _clock) = store();
    let app = app(one_place(&store)).await;
    for path in ["/", "/sized", "/broken", "/text"] {
        let mut body = pin!(send(&app, path, "alice").await.into_body());
        assert!(!is_free(&app).await, "{path}");
        let size = body.size();
        assert_eq!(matches!(size, BodySize::Stream), !matches!(path, "/sized" | "/text"));
        let mut chunks = 0;
        while let Some(Ok(_)) = next(body.as_mut()).await {
            chunks += 1;
            assert!(path == "/text" || !is_free(&app).await, "{path}");
        }
        assert_eq!(chunks, if path == "/text" { 1 } else { 2 });
        assert!(is_free(&app).await, "{path}: although the body is still there");
    }
    for taken in 0..2 {
        {
            let mut body = pin!(send(&app, "/", "alice").await.into_body());
            for _ in 0..taken {
                next(body.as_mut()).await.unwrap().unwrap();
            }
            assert!(!is_free(&app).await);
        }
        assert!(is_free(&app).await, "dropped after {taken}");
    }
    drop(send(&app, "/empty", "alice").await);
    assert!(is_free(&app).await);
}

#[actix_web::test]
async fn a_body_that_is_made_into_bytes_or_another_one_lets_go_when_that_ends() {
    let (store, _clock) = store();
    let app = app(one_place(&store)).await;
    let body = send(&app, "/text", "alice").await.into_body();
    assert!(matches!(body.size(), BodySize::Sized(4)));
    assert_eq!(body.try_into_bytes().ok().as_deref(), Some(b"text".as_slice()));
    assert!(is_free(&app).await);
    let boxed = send(&app, "/", "alice").await.map_into_boxed_body();
    assert!(!is_free(&app).await);
    drop(boxed);
    assert!(is_free(&app).await);
}

#[actix_web::test]
async fn with_hold_head_or_without_a_place_nothing_is_held() {
    let (store, _clock) = store();
    for limit in [
        one_place(&store).hold_until(Hold::Head),
        RateLimit::new(Limit::per_hour(9).by(CLIENT)).store(store.clone()),
    ] {
        let app = app(limit).await;
        let responses = [send(&app, "/", "alice").await, send(&app, "/", "alice").await];
        for response in responses {
            assert_eq!(response.status(), 200);
            let actix_web::body::EitherBody::Left { body } = response.into_body() else { panic!() };
            assert!(!body.is_holding());
        }
    }
}

#[actix_web::test]
async fn an_error_of_the_service_inside_holds_nothing() {
    let (store, _clock) = store();
    let failing = web::to(async || Err::<String, _>(actix_web::error::ErrorBadGateway("failed")));
    let app = App::new()
        .wrap(actix_web::middleware::from_fn(async |_, _| {
            Err::<ServiceResponse, _>(actix_web::error::ErrorBadGateway("failed"))
        }))
        .wrap(one_place(&store))
        .default_service(failing);
    let app = test::init_service(app).await;
    for _ in 0..3 {
        let failed = test::try_call_service(&app, get("/", "alice")).await;
        assert_eq!(failed.unwrap_err().error_response().status(), 502);
    }
}

const TOKENS: Limit = Limit::fixed_window(100, secs(60));

#[actix_web::test]
async fn a_streamed_answer_is_charged_what_it_used_once() {
    let (store, _clock) = store();
    let rule = TOKENS.by(Global).cost(10).settle_cost(|reply| reply.cost());
    let app = app(RateLimit::new(rule).store(store.clone())).await;
    let left = || remaining(&store, TOKENS, Global);
    {
        let mut body = pin!(send(&app, "/", "alice").await.into_body());
        next(body.as_mut()).await.unwrap().unwrap();
        assert_eq!(left(), 90, "what was reserved");
        while next(body.as_mut()).await.is_some() {}
        assert_eq!(left(), 84);
    }
    assert_eq!(left(), 84);
    drop(send(&app, "/", "alice").await);
    assert_eq!(left(), 82, "2 before the first chunk");
    {
        let mut body = pin!(send(&app, "/broken", "alice").await.into_body());
        while let Some(Ok(_)) = next(body.as_mut()).await {}
        assert_eq!(left(), 66);
    }
    assert_eq!(left(), 66);
}

#[actix_web::test]
async fn what_is_under_way_counts_until_the_body_has_ended() {
    let load = InFlight::below(9);
    for (hold, counted) in [(Hold::End, 1), (Hold::Head, 0)] {
        let app = App::new()
            .wrap(InFlightMiddleware::new(load.clone()).hold_until(hold))
            .default_service(web::to(handler));
        let app = test::init_service(app).await;
        let mut waiting = task::spawn(app.call(get("/wait", "alice")));
        assert_pending!(waiting.poll());
        assert_eq!(load.count(), 1);
        drop(waiting);
        assert_eq!(load.count(), 0);
        let mut body = pin!(send(&app, "/", "alice").await.into_body());
        next(body.as_mut()).await.unwrap().unwrap();
        assert_eq!(load.count(), counted);
        while next(body.as_mut()).await.is_some() {}
        assert_eq!(load.count(), 0);
    }
}

const DAY: Limit = Limit::fixed_window(10, secs(86_400));

#[actix_web::test]
async fn who_leaves_the_queue_further_in_pays_nothing_further_out() {
    for extensions in [true, false] {
        let (store, _clock) = store();
        let queue = RateLimit::new(Limit::per_minute(1).named("queue").by(CLIENT))
            .store(store.clone())
            .rejection(Rejection::queue(secs(600)));
        let between = RateLimit::new((Limit::concurrent(9).by(CLIENT), DAY.named("b").by(CLIENT)));
        let app = App::new().service(
            web::scope("")
                .wrap(queue)
                .wrap(between.store(store.clone()))
                .default_service(web::to(handler)),
        );
        let outer = RateLimit::new(DAY.by(CLIENT)).store(store.clone()).extensions(extensions);
        let app = test::init_service(app.wrap(outer)).await;
        let mut served = task::spawn(app.call(get("/wait", "alice")));
        assert_pending!(served.poll());
        let mut waiting: Vec<_> =
            (0..5).map(|_| task::spawn(app.call(get("/", "alice")))).collect();
        for waiting in &mut waiting {
            assert_pending!(waiting.poll());
        }
        assert_eq!(remaining(&store, DAY, CLIENT), 4);
        drop(waiting);
        assert_eq!(remaining(&store, DAY, CLIENT), 9);
        assert_eq!(remaining(&store, DAY.named("b"), CLIENT), 9);
        assert_eq!(remaining(&store, Limit::concurrent(9), CLIENT), 8);
        drop(served);
        assert_eq!(remaining(&store, DAY, CLIENT), 9, "its handler was running");
        assert_eq!(remaining(&store, Limit::concurrent(9), CLIENT), 9);
    }
}
