//! What rules see of an actix-web request.

use super::common::{handler, statuses};
use actix_web::dev::Service;
use actix_web::test::{self, TestRequest};
use actix_web::{App, HttpMessage, HttpRequest, web};
use sluicegate_actix::adapter::RequestView;
use sluicegate_actix::cost::cost_fn;
use sluicegate_actix::key::{Extension, KeyBuf, Part, Query, View, from_fn};
use sluicegate_actix::rule::choose;
use sluicegate_actix::{Limit, RateLimit, Route};

#[derive(Clone, Copy)]
struct User(u64);

impl Part for User {
    fn write(&self, key: &mut KeyBuf) {
        self.0.write(key);
    }
}

#[test]
fn a_view_shows_what_the_client_wrote() {
    let request = TestRequest::with_uri("/a%20b?q=1&q=%32")
        .insert_header(("host", "Example.com:8080"))
        .append_header(("x-forwarded-for", "192.0.2.1, 192.0.2.2"))
        .append_header(("x-forwarded-for", "192.0.2.3"))
        .peer_addr("[::ffff:198.51.100.7]:5000".parse().unwrap())
        .to_http_request();
    let view = RequestView::new(&request);
    assert_eq!(view.method(), "GET");
    assert_eq!(view.path(), "/a%20b");
    assert_eq!(view.query(), Some("q=1&q=%32"));
    assert_eq!(view.host(), Some("Example.com:8080"));
    assert_eq!(view.peer(), Some("::ffff:198.51.100.7".parse().unwrap()));
    let lines: Vec<_> = view.header_lines("x-forwarded-for").collect();
    assert_eq!(lines, [&b"192.0.2.1, 192.0.2.2"[..], b"192.0.2.3"]);
    assert_eq!(view.header_lines("not a name").count(), 0);
}

#[actix_web::test]
async fn the_route_is_the_pattern_wherever_the_limit_is_wrapped() {
    let limit = || RateLimit::new(Limit::per_minute(2).by(Route));
    let users = || web::resource("/users/{id}").to(handler);
    let on_app = test::init_service(App::new().wrap(limit()).service(users())).await;
    let on_scope =
        test::init_service(App::new().service(web::scope("").wrap(limit()).service(users()))).await;
    let on_resource = test::init_service(App::new().service(users().wrap(limit()))).await;

    assert_eq!(statuses(&on_app, "/users/200", 1).await, [200]);
    assert_eq!(statuses(&on_app, "/users/201", 1).await, [200]);
    // Made by one function under one `System`, the three are one limiter: the budget is spent.
    assert_eq!(statuses(&on_app, "/users/202", 1).await, [429]);
    assert_eq!(statuses(&on_scope, "/users/203", 1).await, [429]);
    assert_eq!(statuses(&on_resource, "/users/204", 1).await, [429]);
}

#[actix_web::test]
async fn what_an_earlier_middleware_left_is_a_key() {
    let limit = RateLimit::new(Limit::per_minute(1).by((
        Extension::<User>::new(),
        // The extensions are not borrowed any more when this runs: it may write to them.
        from_fn(|request: &HttpRequest| Some(request.connection_info().scheme().len())),
    )));
    let app = test::init_service(
        App::new()
            .wrap(limit)
            .wrap_fn(|request, service| {
                let user = request.headers().get("x-client").map(|client| client.len() as u64);
                request.extensions_mut().insert(User(user.unwrap_or_default()));
                service.call(request)
            })
            .default_service(web::to(handler)),
    )
    .await;
    assert_eq!(super::common::send(&app, "/", "alice").await.status(), 200);
    assert_eq!(super::common::send(&app, "/", "malcolm").await.status(), 200);
    assert_eq!(super::common::send(&app, "/", "carol").await.status(), 429);
}

#[actix_web::test]
async fn closures_are_shown_the_http_request() {
    let dear = |request: &HttpRequest| request.path().starts_with("/dear");
    let rule = choose(
        move |request: &HttpRequest| {
            if dear(request) { Limit::per_minute(4) } else { Limit::per_minute(2) }
        },
    )
    .by(from_fn(|request: &HttpRequest| Some(request.path().len())))
    .cost(cost_fn(|request: &HttpRequest| request.query_string().len().max(1) as u64))
    .when(|request: &HttpRequest| request.method() != "OPTIONS");
    let app = super::common::app(RateLimit::new(rule)).await;

    assert_eq!(statuses(&app, "/dear", 5).await, [200, 200, 200, 200, 429]);
    assert_eq!(statuses(&app, "/cheap?xx", 2).await, [200, 429]);
    for _ in 0..9 {
        let preflight = TestRequest::with_uri("/dear").method("OPTIONS".parse().unwrap());
        assert_eq!(test::call_service(&app, preflight.to_request()).await.status(), 200);
    }
}

#[actix_web::test]
async fn app_data_is_a_key_through_a_function() {
    let rule = Limit::per_minute(1)
        .by((from_fn(|request: &HttpRequest| request.app_data::<User>().copied()), Query("q")));
    let app = test::init_service(
        App::new().app_data(User(7)).wrap(RateLimit::new(rule)).default_service(web::to(handler)),
    )
    .await;
    assert_eq!(statuses(&app, "/?q=1", 2).await, [200, 429]);
    assert_eq!(statuses(&app, "/?q=2", 2).await, [200, 429]);
}
