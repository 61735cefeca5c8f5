//! A limit that follows a lease works wherever a limit does.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use actix_web::{App, HttpResponse, web};
use axum::Router;
use axum::body::Body;
use axum::routing::get;
use http::{Request, Response};
use sluicegate::{
    Decision, Global, Limit, Limiter, ManualClock, Memory, RateLimitLayer, Rejection,
};
use sluicegate_client::PaceLayer;
use sluicegate_client::pace::{Pacer, Patience};
use sluicegate_lease::{Amount, LeasedLimit};
use tower::{Layer, Service, ServiceExt};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

fn leased(clock: &ManualClock) -> LeasedLimit {
    LeasedLimit::rate("db").clock(clock).build().unwrap()
}

fn grant(limit: &LeasedLimit, units: f64) {
    limit.grant(Amount::from_f64(units).unwrap(), MINUTE, Amount::ZERO);
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn field<'a, B>(response: &'a Response<B>, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn the_layer_of_axum_limits_by_a_lease_and_its_fields_show_the_numbers_in_force() {
    let clock = ManualClock::new();
    let db = leased(&clock);
    let layer = sluicegate_axum::RateLimitLayer::new(db.limit().by(Global)).store(db.clone());
    let app: Router = Router::new().route("/", get(|| async { "hello" })).layer(layer);
    let ask = async || {
        let request = Request::get("/").body(Body::empty()).unwrap();
        app.clone().oneshot(request).await.unwrap()
    };

    // Without a lease, nothing goes, and nobody knows when.
    assert_eq!(ask().await.status(), 429);

    grant(&db, 2.0);
    let response = ask().await;
    assert_eq!(response.status(), 200);
    assert_eq!(field(&response, "ratelimit-policy"), "\"db\";q=2;w=1");
    assert_eq!(field(&response, "ratelimit"), "\"db\";r=1;t=1");
    assert_eq!(ask().await.status(), 200);
    let refused = ask().await;
    assert_eq!((refused.status().as_u16(), field(&refused, "retry-after")), (429, "1"));

    // The numbers change, for a layer that was made before.
    grant(&db, 36.5);
    clock.advance(SECOND);
    let response = ask().await;
    assert_eq!(field(&response, "ratelimit-policy"), "\"db\";q=73;w=2");
    // What was refused is wanted as well.
    assert_eq!(db.wants(), Amount::units(4));
}

#[actix_web::test]
async fn the_middleware_of_actix_limits_by_a_lease() {
    let clock = ManualClock::new();
    let db = leased(&clock);
    let limit = sluicegate_actix::RateLimit::new(db.limit().by(Global)).store(db.clone());
    let app = App::new().wrap(limit).default_service(web::to(HttpResponse::Ok));
    let app = actix_web::test::init_service(app).await;
    let ask = async || {
        let request = actix_web::test::TestRequest::get().to_request();
        actix_web::test::call_service(&app, request).await.status().as_u16()
    };
    assert_eq!(ask().await, 429);
    grant(&db, 2.0);
    assert_eq!([ask().await, ask().await, ask().await], [200, 200, 429]);
    db.close();
    clock.advance(SECOND);
    assert_eq!(ask().await, 429);
}

#[test]
fn a_limiter_limits_by_a_lease_and_gives_back() {
    let clock = ManualClock::new();
    let db = leased(&clock);
    let limiter = Limiter::new(db.limit()).store(db.clone());
    let take = || limiter.take("jobs").now().unwrap();
    grant(&db, 3.0);
    assert_eq!(take().remaining(), Some(2));
    // Every key is charged to the lease.
    assert_eq!(limiter.take("other").now().unwrap().remaining(), Some(1));
    assert!(take().is_admitted());
    let told: Decision = take();
    assert_eq!(told.retry_after(), Some(Duration::from_micros(333_334)));
    clock.advance(Duration::from_micros(333_334));
    assert!(take().is_admitted());
}

/// A service that a layer limits, and how many requests have reached it.
fn queued(
    db: &LeasedLimit,
    queue: Duration,
) -> impl Service<
    Request<()>,
    Response = Response<impl Sized>,
    Error = Infallible,
    Future = impl Future<Output = Result<Response<impl Sized>, Infallible>>,
> + Clone {
    let layer = RateLimitLayer::new(db.limit().by(Global))
        .store(db.clone())
        .rejection(Rejection::queue(queue));
    layer.layer(tower::service_fn(|_: Request<()>| async {
        Ok::<_, Infallible>(Response::new(String::new()))
    }))
}

#[test]
fn requests_wait_in_a_queue_for_their_turn_by_a_lease() {
    let clock = ManualClock::new();
    let db = leased(&clock);
    let mut service = queued(&db, SECOND);
    grant(&db, 2.0);
    let mut send = || Box::pin(service.call(Request::new(())));
    for _ in 0..2 {
        assert!(poll(send().as_mut()).is_ready());
    }
    let mut waiting: Vec<_> = (0..2).map(|_| send()).collect();
    assert!(waiting.iter_mut().all(|call| poll(call.as_mut()).is_pending()));
    // Longer than the queue: refused at once, and wanted all the same.
    let Poll::Ready(Ok(refused)) = poll(send().as_mut()) else { panic!("it waits") };
    assert_eq!(refused.status(), 429);
    assert_eq!(db.wants(), Amount::units(5));
    clock.advance(SECOND / 2);
    assert!(poll(waiting[0].as_mut()).is_ready());
    assert!(poll(waiting[1].as_mut()).is_pending());
    clock.advance(SECOND / 2);
    assert!(poll(waiting[1].as_mut()).is_ready());
}

#[test]
fn a_lease_that_is_lost_mid_queue_leaves_nobody_waiting_who_could_not_go() {
    let clock = ManualClock::new();
    let db = leased(&clock);
    let mut service = queued(&db, 30 * SECOND);
    // The lease lasts for two more seconds, and is not renewed.
    db.grant(Amount::units(1), 2 * SECOND, Amount::ZERO);
    let mut calls: Vec<_> = (0..6).map(|_| Box::pin(service.call(Request::new(())))).collect();
    let answers: Vec<_> = calls.iter_mut().map(|call| poll(call.as_mut())).collect();
    let statuses: Vec<_> = answers
        .iter()
        .map(|answer| match answer {
            Poll::Ready(Ok(response)) => response.status().as_u16(),
            _ => 0,
        })
        .collect();
    // One goes, two wait, and for the others there is no place within the lease.
    assert_eq!(statuses, [200, 0, 0, 429, 429, 429]);
    clock.advance(2 * SECOND);
    assert!(poll(calls[1].as_mut()).is_ready());
    assert!(poll(calls[2].as_mut()).is_ready());
    assert_eq!(db.capacity(), Amount::ZERO);
}

#[test]
fn a_gauge_holds_a_place_until_the_response_has_ended() {
    let clock = ManualClock::new();
    let workers = LeasedLimit::gauge("workers").clock(&clock).build().unwrap();
    let layer = RateLimitLayer::new(workers.limit().by(Global)).store(workers.clone());
    let mut service = layer.layer(tower::service_fn(|_: Request<()>| async {
        Ok::<_, Infallible>(Response::new(String::from("hello")))
    }));
    workers.grant(Amount::units(1), MINUTE, Amount::ZERO);
    let mut send = || match poll(Box::pin(service.call(Request::new(()))).as_mut()) {
        Poll::Ready(Ok(response)) => response,
        other => panic!("{:?}", other.is_pending()),
    };
    let first = send();
    assert_eq!((first.status().as_u16(), send().status().as_u16()), (200, 429));
    assert_eq!(workers.outstanding(), Amount::units(1));
    drop(first);
    assert_eq!(workers.outstanding(), Amount::ZERO);
    assert_eq!(send().status(), 200);
}

#[test]
fn outgoing_requests_are_paced_by_a_lease() {
    let clock = ManualClock::new();
    let api = LeasedLimit::rate("api").clock(&clock).burst(1).build().unwrap();
    let pacer = Pacer::counted_in(api.clone(), api.limit());
    // A caller waits for the first grant.
    let mut first = Box::pin(pacer.turn("api.example"));
    assert!(poll(first.as_mut()).is_pending());
    grant(&api, 10.0);
    clock.advance(SECOND / 20);
    assert!(poll(first.as_mut()).is_ready());

    let mut turns: Vec<_> = (0..5).map(|_| Box::pin(pacer.turn("api.example"))).collect();
    for turn in &mut turns {
        assert!(poll(turn.as_mut()).is_pending());
        clock.advance(SECOND / 10);
        assert!(poll(turn.as_mut()).is_ready());
    }
    // The lease is lost: who waits goes on waiting, and goes when it is back.
    clock.advance(MINUTE);
    let mut turn = Box::pin(pacer.turn("api.example"));
    assert!(poll(turn.as_mut()).is_pending());
    clock.advance(MINUTE);
    assert!(poll(turn.as_mut()).is_pending());
    grant(&api, 10.0);
    clock.advance(SECOND / 10);
    assert!(poll(turn.as_mut()).is_ready());
}

#[test]
fn the_layer_that_paces_fails_at_once_if_its_turn_is_too_far_away() {
    let clock = ManualClock::new();
    let api = LeasedLimit::rate("api").clock(&clock).build().unwrap();
    let pacer = Pacer::counted_in(api.clone(), api.limit()).patience(Patience::AtMost(SECOND / 10));
    let layer = PaceLayer::new(Global, pacer);
    let mut service = layer.layer(tower::service_fn(|_: Request<()>| async {
        Ok::<_, Infallible>(Response::new(()))
    }));
    grant(&api, 1.0);
    let mut send = || {
        let request = Request::get("http://api.example/").body(()).unwrap();
        let mut call = pin!(service.call(request));
        match poll(call.as_mut()) {
            Poll::Ready(answer) => answer.is_ok(),
            Poll::Pending => panic!("it waits"),
        }
    };
    assert_eq!([send(), send()], [true, false]);
}

#[test]
fn a_client_has_a_limit_of_its_own_beside_the_lease() {
    let clock = ManualClock::new();
    let memory = Memory::builder().clock(&clock).build();
    let db = LeasedLimit::rate("db").clock(&clock).beside(memory).build().unwrap();
    let both = [db.limit(), Limit::per_minute(2).named("each")];
    let limiter = Limiter::new(both).store(db.clone());
    grant(&db, 5.0);
    let take = |key: &str| limiter.take(key).now().unwrap().is_admitted();
    assert_eq!([take("a"), take("a"), take("a")], [true, true, false]);
    // The third was not charged to the lease.
    assert_eq!([take("b"), take("b"), take("c"), take("c")], [true, true, true, false]);
}
