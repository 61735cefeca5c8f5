//! Charges that are settled when the response is known.

mod common;

use std::cell::Cell;
use std::rc::Rc;

use actix_web::dev::Service;
use actix_web::error::{ErrorNotFound, ErrorUnauthorized};
use actix_web::test;
use actix_web::{App, HttpMessage, HttpRequest, HttpResponse, web};
use common::{app, get, handler, secs, send, statuses, store};
use sluicegate_actix::response::LazyDecision;
use sluicegate_actix::{Cost, Header, Limit, RateLimit};
use tokio_test::{assert_pending, task};

const CLIENT: Header = Header("x-client");

#[actix_web::test]
async fn only_failures_are_counted_if_told_so() {
    let (store, _clock) = store();
    let rule = Limit::per_hour(2).by(CLIENT).count_if(|status| status == 401);
    let app = app(RateLimit::new(rule).store(store)).await;
    assert_eq!(statuses(&app, "/200", 9).await, [200; 9]);
    assert_eq!(statuses(&app, "/401", 3).await, [401, 401, 429]);
    assert_eq!(statuses(&app, "/200", 1).await, [429]);
}

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
async fn parallel_guesses_cannot_slip_through() {
    let (store, _clock) = store();
    let rule = Limit::per_hour(3).by(CLIENT).count_if(|status| status == 401);
    let reached = Rc::new(Cell::new(0));
    let counted = Rc::clone(&reached);
    let app = test::init_service(
        App::new().wrap(RateLimit::new(rule).store(store)).default_service(web::to(move || {
            counted.set(counted.get() + 1);
            // No request is answered before all have arrived.
            std::future::pending::<HttpResponse>()
        })),
    )
    .await;
    let mut guesses: Vec<_> = (0..20).map(|_| task::spawn(app.call(get("/", "mallory")))).collect();
    for guess in &mut guesses {
        let _ = guess.poll();
    }
    assert_eq!(reached.get(), 3);
}

#[actix_web::test]
async fn a_charge_is_settled_to_what_the_handler_says_it_cost() {
    async fn in_the_response(request: HttpRequest) -> HttpResponse {
        let mut response = HttpResponse::Ok().finish();
        response.extensions_mut().insert(Cost(cost(&request)));
        response
    }
    async fn in_the_request(request: HttpRequest) -> &'static str {
        let cost = cost(&request);
        request.extensions_mut().insert(Cost(cost));
        ""
    }
    fn cost(request: &HttpRequest) -> u64 {
        request.match_info().get("cost").unwrap().parse().unwrap()
    }
    let (store, clock) = store();
    let rule =
        Limit::fixed_window(100, secs(60)).by(CLIENT).cost(10).settle_cost(|reply| reply.cost());
    let app = test::init_service(
        App::new()
            .wrap(RateLimit::new(rule).store(store).extensions(true))
            .route("/response/{cost}", web::to(in_the_response))
            .route("/request/{cost}", web::to(in_the_request)),
    )
    .await;
    assert_eq!(statuses(&app, "/response/1", 1).await, [200]);
    assert_eq!(statuses(&app, "/request/0", 1).await, [200]);
    // 1 is spent; an estimate of 10 turns out as 150: beyond the limit.
    assert_eq!(statuses(&app, "/request/150", 1).await, [200]);
    assert_eq!(statuses(&app, "/response/1", 1).await, [429]);
    clock.advance(secs(60));
    // 51 were spent on this window's account.
    let served = send(&app, "/response/10", "alice").await;
    assert_eq!(
        served.response().extensions().get::<LazyDecision>().unwrap().decision().remaining(),
        Some(39)
    );
}

#[actix_web::test]
async fn a_request_whose_client_disconnects_keeps_its_charge() {
    let (store, _clock) = store();
    let rule = Limit::per_hour(1).by(CLIENT).count_if(|_| false);
    let app = test::init_service(
        App::new()
            .wrap(RateLimit::new(rule).store(store))
            .default_service(web::to(std::future::pending::<HttpResponse>)),
    )
    .await;
    let mut gone = task::spawn(app.call(get("/", "alice")));
    assert_pending!(gone.poll());
    drop(gone);
    assert_eq!(statuses(&app, "/", 1).await, [429]);
}

#[actix_web::test]
async fn what_is_held_is_given_back_on_response_error_and_drop() {
    let (store, _clock) = store();
    let app = test::init_service(
        App::new()
            .wrap_fn(|request, service| {
                let fails = request.path() == "/fail";
                let answer = service.call(request);
                async move { if fails { Err(ErrorNotFound("failed")) } else { answer.await } }
            })
            .wrap(RateLimit::new(Limit::concurrent(1).by(CLIENT)).store(store))
            .route("/hang", web::to(std::future::pending::<HttpResponse>))
            .default_service(web::to(handler)),
    )
    .await;
    assert_eq!(statuses(&app, "/", 2).await, [200, 200]);
    assert!(test::try_call_service(&app, get("/fail", "alice")).await.is_err());
    let mut held = task::spawn(app.call(get("/hang", "alice")));
    assert_pending!(held.poll());
    assert_eq!(statuses(&app, "/", 1).await, [429]);
    drop(held);
    assert_eq!(statuses(&app, "/", 1).await, [200]);
}
