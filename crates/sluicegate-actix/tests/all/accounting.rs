//! Charges that are settled when the response is known, and the bound on requests that wait.

use super::common::{CLIENT, app, get, handler, secs, send, statuses, store};
use actix_web::dev::Service;
use actix_web::error::{ErrorNotFound, ErrorUnauthorized};
use actix_web::test;
use actix_web::{App, HttpMessage, HttpRequest, web};
use sluicegate_actix::response::LazyDecision;
use sluicegate_actix::{Cost, Limit, RateLimit, Rejection};
use tokio_test::{assert_pending, assert_ready, task};

#[actix_web::test]
async fn an_error_counts_by_the_status_that_it_is_answered_with() {
    let (store, _clock) = store();
    let rule = Limit::per_hour(2).by(CLIENT).count_if(|status| status == 401);
    let app = test::init_service(
        App::new()
            .wrap_fn(|request, _| {
                let found = request.path() == "/login";
                let error = if found { ErrorUnauthorized("who?") } else { ErrorNotFound("where?") };
                std::future::ready(Err::<actix_web::dev::ServiceResponse, _>(error))
            })
            .wrap(RateLimit::new(rule).store(store))
            .default_service(web::to(handler)),
    )
    .await;
    let status = async |path| match test::try_call_service(&app, get(path, "alice")).await {
        Ok(response) => response.status().as_u16(),
        Err(error) => error.as_response_error().status_code().as_u16(),
    };
    for _ in 0..9 {
        assert_eq!(status("/").await, 404, "the error is the inner service's own");
    }
    assert_eq!([status("/login").await, status("/login").await], [401, 401]);
    assert_eq!(status("/login").await, 429);
}

#[actix_web::test]
async fn a_charge_is_settled_to_the_cost_in_the_extensions_of_the_request() {
    async fn handler(request: HttpRequest) -> &'static str {
        let cost = request.match_info().get("cost").unwrap().parse().unwrap();
        request.extensions_mut().insert(Cost(cost));
        ""
    }
    let (store, _clock) = store();
    let rule =
        Limit::fixed_window(100, secs(60)).by(CLIENT).cost(10).settle_cost(|reply| reply.cost());
    let app = test::init_service(
        App::new()
            .wrap(RateLimit::new(rule).store(store).extensions(true))
            .route("/{cost}", web::to(handler)),
    )
    .await;
    assert_eq!(statuses(&app, "/0", 1).await, [200]);
    assert_eq!(statuses(&app, "/60", 1).await, [200]);
    let served = send(&app, "/10", "alice").await;
    let decision = served.response().extensions().get::<LazyDecision>().unwrap().decision().clone();
    assert_eq!(decision.remaining(), Some(30));
}

#[actix_web::test]
async fn workers_share_the_bound_on_how_many_wait() {
    let (store, _clock) = store();
    // Does what the closure given to `HttpServer::new` does for each worker.
    let worker = || {
        app(RateLimit::new(Limit::per_second(10).burst(1).by(CLIENT))
            .store(store.clone())
            .rejection(Rejection::queue(secs(60)).at_most(2)))
    };
    let (a, b) = (worker().await, worker().await);
    assert_eq!(send(&a, "/", "alice").await.status(), 200);
    let mut first = task::spawn(a.call(get("/", "alice")));
    assert_pending!(first.poll());
    let mut second = task::spawn(b.call(get("/", "alice")));
    assert_pending!(second.poll());
    let mut third = task::spawn(a.call(get("/", "alice")));
    assert_eq!(assert_ready!(third.poll()).unwrap().status(), 429);
}
