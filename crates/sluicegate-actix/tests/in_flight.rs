//! A limit that gives way while little is under way.

mod common;

use actix_http::Request;
use actix_web::dev::{Service, ServiceResponse};
use actix_web::{App, Error, HttpRequest, HttpResponse, test, web};
use common::{get, secs, statuses, store};
use sluicegate_actix::condition::{InFlight, Not};
use sluicegate_actix::service::InFlightMiddleware;
use sluicegate_actix::{Header, Limit, Memory, RateLimit};
use tokio_test::task;

const CLIENT: Header = Header("x-client");

/// As the documentation of the crate says it, around a handler that does not answer `/wait`.
async fn app(
    load: &InFlight,
    store: Memory,
) -> impl Service<Request, Response = ServiceResponse<impl actix_web::body::MessageBody>, Error = Error>
{
    let elastic = (
        Limit::fixed_window(5, secs(60)).named("ceiling").by(CLIENT).when(load.clone()),
        Limit::fixed_window(1, secs(60)).named("limit").by(CLIENT).when(Not(load.clone())),
    );
    let app = App::new()
        .default_service(web::to(async |request: HttpRequest| match request.path() {
            "/wait" => std::future::pending().await,
            _ => HttpResponse::Ok().finish(),
        }))
        .wrap(InFlightMiddleware::new(load.clone()))
        .wrap(RateLimit::new(elastic).store(store));
    test::init_service(app).await
}

#[actix_web::test]
async fn an_elastic_limit_reaches_its_ceiling_while_there_is_room() {
    let (store, clock) = store();
    let load = InFlight::below(2);
    let app = app(&load, store).await;

    assert_eq!(statuses(&app, "/", 6).await, [200, 200, 200, 200, 200, 429]);
    assert_eq!(load.count(), 0);
    let mut slow =
        [task::spawn(app.call(get("/wait", "bob"))), task::spawn(app.call(get("/wait", "bob")))];
    for slow in &mut slow {
        assert!(slow.poll().is_pending());
    }
    assert_eq!(load.count(), 2);
    assert_eq!(statuses(&app, "/", 2).await, [200, 429]);
    drop(slow);
    assert_eq!(load.count(), 0, "whose client has gone counts no more");
    clock.advance(secs(60));
    assert_eq!(statuses(&app, "/", 6).await, [200, 200, 200, 200, 200, 429]);
}
