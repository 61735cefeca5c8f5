//! However a client spells a path, and whatever guards decide, the limit of the handler that answers is charged.

use actix_http::Request;
use actix_web::body::MessageBody;
use actix_web::dev::{Service, ServiceResponse};
use actix_web::middleware::{NormalizePath, TrailingSlash};
use actix_web::test::{self, TestRequest};
use actix_web::{App, Error, HttpResponse, guard, web};
use sluicegate_actix::adapter::RequestView;
use sluicegate_actix::condition::Not;
use sluicegate_actix::rule::{KnownLimits, Rule};
use sluicegate_actix::{Ip, Limit, Memory, RateLimit, Route};

/// Spellings of `/login` that actix-web routes to its handler.
const SPELLINGS: [&str; 7] =
    ["/login", "/%6cogin", "/%6Cogin", "/log%69n", "/%6c%6f%67%69%6e", "/login?a=1", "/%6cogin?a"];

/// Those that `NormalizePath` adds, in one of its ways.
const UNTIDY: [&str; 8] = [
    "/login",
    "//login",
    "/login/",
    "/login//",
    "//%6cogin",
    "/%6cogin/",
    "///log%69n//",
    "//login?a",
];

async fn status(
    app: &impl Service<Request, Response = ServiceResponse<impl MessageBody>, Error = Error>,
    request: TestRequest,
) -> u16 {
    let request = request.peer_addr("192.0.2.1:1".parse().unwrap()).to_request();
    test::call_service(app, request).await.status().as_u16()
}

/// The number of requests that handlers answer, of five for each path. If no handler answers, it is 404.
async fn served(
    app: &impl Service<Request, Response = ServiceResponse<impl MessageBody>, Error = Error>,
    paths: &[&str],
) -> usize {
    let mut served = 0;
    for path in paths.iter().cycle().take(5 * paths.len()) {
        match status(app, TestRequest::with_uri(path)).await {
            200 => served += 1,
            404 | 429 => {}
            other => panic!("{path} is answered with {other}"),
        }
    }
    served
}

/// Three requests for one route.
fn three(
    pattern: &'static str,
) -> RateLimit<impl Clone + KnownLimits + for<'a> Rule<RequestView<'a>>> {
    let rule = Limit::per_hour(3).by(Ip::peer()).when(Route.is(pattern));
    RateLimit::new(rule).store(Memory::builder().capacity(100).build())
}

/// Three requests for each route.
fn three_each() -> RateLimit<impl Clone + KnownLimits + for<'a> Rule<RequestView<'a>>> {
    RateLimit::new(Limit::per_hour(3).by((Route, Ip::peer())))
        .store(Memory::builder().capacity(100).build())
}

async fn ok() -> HttpResponse {
    HttpResponse::Ok().finish()
}

/// How many of `$paths` are served, with the limit around the app, around a scope and around the resource.
macro_rules! everywhere {
    ($limit:expr, $paths:expr, $expected:expr) => {{
        let login = || web::resource("/login").route(web::get().to(ok));
        let on_app = test::init_service(App::new().service(login()).wrap($limit)).await;
        assert_eq!(served(&on_app, $paths).await, $expected, "around the app");
        let scope = web::scope("").service(login()).wrap($limit);
        let on_scope = test::init_service(App::new().service(scope)).await;
        assert_eq!(served(&on_scope, $paths).await, $expected, "around a scope");
        let on_resource = test::init_service(App::new().service(login().wrap($limit))).await;
        assert_eq!(served(&on_resource, $paths).await, $expected, "around the resource");
    }};
}

#[actix_web::test]
async fn percent_encoding_is_no_way_around_a_route() {
    everywhere!(three("/login"), &SPELLINGS, 3);
    everywhere!(three_each(), &SPELLINGS, 3);
}

#[actix_web::test]
async fn percent_encoding_is_no_way_around_a_route_in_scopes_with_parameters() {
    let paths = ["/v1/acme/login", "/v1/%61cme/login", "/%761/acme/%6cogin", "/v1/other/log%69n"];
    let pattern = "/v{version}/{tenant}/login";
    for level in 0..4 {
        let login = web::resource("/login").route(web::get().to(ok));
        let limit = || three(pattern);
        let app = match level {
            0 => {
                let scope = web::scope("/{tenant}").service(login);
                let app = App::new().service(web::scope("/v{version}").service(scope));
                served(&test::init_service(app.wrap(limit())).await, &paths).await
            }
            1 => {
                let scope = web::scope("/{tenant}").service(login);
                let scope = web::scope("/v{version}").service(scope).wrap(limit());
                served(&test::init_service(App::new().service(scope)).await, &paths).await
            }
            2 => {
                let scope = web::scope("/{tenant}").service(login).wrap(limit());
                let scope = web::scope("/v{version}").service(scope);
                served(&test::init_service(App::new().service(scope)).await, &paths).await
            }
            _ => {
                let scope = web::scope("/{tenant}").service(login.wrap(limit()));
                let scope = web::scope("/v{version}").service(scope);
                served(&test::init_service(App::new().service(scope)).await, &paths).await
            }
        };
        assert_eq!(app, 3, "at level {level}");
    }
}

#[actix_web::test]
async fn slashes_that_are_normalized_behind_the_limit_are_no_way_around_a_route() {
    for (how, path) in [
        (TrailingSlash::Trim, "/login"),
        (TrailingSlash::MergeOnly, "/login"),
        (TrailingSlash::Always, "/login/"),
    ] {
        let app = || App::new().service(web::resource(path).to(ok)).wrap(NormalizePath::new(how));
        let by_condition = test::init_service(app().wrap(three(path))).await;
        let by_key = test::init_service(app().wrap(three_each())).await;
        // A spelling that no handler answers may be charged too, so fewer pass.
        for passed in [served(&by_condition, &UNTIDY).await, served(&by_key, &UNTIDY).await] {
            assert!((1..=3).contains(&passed), "{passed} passed with {how:?}");
        }
        for path in UNTIDY {
            assert_ne!(status(&by_condition, TestRequest::with_uri(path)).await, 200, "{path}");
            assert_ne!(status(&by_key, TestRequest::with_uri(path)).await, 200, "{path}");
        }
    }
}

#[actix_web::test]
async fn a_guard_is_no_way_around_the_route_that_answers_instead() {
    let paths = ["/users/me", "/users/7", "/users/%6de"];
    let me = || web::resource("/users/me").guard(guard::Post()).to(ok);
    let other = || web::resource("/users/{id}").guard(guard::Get()).to(ok);
    let app = App::new().service(me()).service(other()).wrap(three("/users/{id}"));
    assert_eq!(served(&test::init_service(app).await, &paths).await, 3, "around the app");
    let scope = web::scope("").service(me()).service(other()).wrap(three("/users/{id}"));
    let app = test::init_service(App::new().service(scope)).await;
    assert_eq!(served(&app, &paths).await, 3, "around a scope");
    let app = App::new().service(me()).service(other().wrap(three("/users/{id}")));
    assert_eq!(served(&test::init_service(app).await, &paths).await, 3, "around the resource");
    // The key is that of the resource around which the limit is, even if another one matches first.
    let app = App::new().service(me()).service(other().wrap(three_each()));
    assert_eq!(served(&test::init_service(app).await, &paths).await, 3, "by the route");
}

#[actix_web::test]
async fn a_route_of_an_app_is_limited_where_its_method_makes_it_answer() {
    let app = App::new()
        .route("/users/me", web::post().to(ok))
        .route("/users/{id}", web::get().to(ok))
        .wrap(three("/users/{id}"));
    assert_eq!(served(&test::init_service(app).await, &["/users/me"]).await, 3);
}

#[actix_web::test]
async fn a_guard_of_a_scope_is_no_way_around_the_routes_of_the_next() {
    let closed =
        web::scope("/api").guard(guard::Header("x-internal", "yes")).route("/a", web::to(ok));
    let open = web::scope("/api").route("/login", web::get().to(ok));
    let app = App::new().service(closed).service(open).wrap(three("/api/login"));
    assert_eq!(served(&test::init_service(app).await, &["/api/login", "/api/%6cogin"]).await, 3);
}

#[actix_web::test]
async fn around_a_resource_no_other_route_is_meant() {
    let app = App::new()
        .service(web::resource("/users/me").to(ok).wrap(three("/users/{id}")))
        .service(web::resource("/users/{id}").to(ok));
    assert_eq!(served(&test::init_service(app).await, &["/users/me"]).await, 5);
}

#[actix_web::test]
async fn every_pattern_of_a_resource_is_its_route() {
    let both = || web::resource(["/in", "/login"]).to(ok);
    for pattern in ["/in", "/login"] {
        let app = App::new().service(both()).wrap(three(pattern));
        let served = served(&test::init_service(app).await, &["/login"]).await;
        assert_eq!(served, 3, "{pattern}");
    }
    let app = App::new().service(both().wrap(three_each()));
    assert_eq!(served(&test::init_service(app).await, &["/in", "/login"]).await, 3);
}

#[actix_web::test]
async fn slashes_are_no_way_around_the_other_patterns_of_a_resource() {
    let both = web::resource(["/in", "/login"]).to(ok);
    let app = App::new().service(both).wrap(NormalizePath::trim()).wrap(three("/in"));
    let app = test::init_service(app).await;
    assert_eq!(served(&app, &["/login", "//login", "/login/"]).await, 3);
}

#[actix_web::test]
async fn a_slash_that_is_added_behind_a_limit_around_a_scope_is_no_way_around_a_route() {
    for pattern in ["/login/", "/login/{tail}*"] {
        let behind = pattern.strip_prefix("/login").unwrap();
        let scope = web::scope("/login")
            .service(web::resource(behind).to(ok))
            .wrap(NormalizePath::new(TrailingSlash::Always))
            .wrap(three(pattern));
        let app = test::init_service(App::new().service(scope)).await;
        assert_eq!(served(&app, &["/login", "/login/"]).await, 3, "{pattern}");
    }
}

#[actix_web::test]
async fn a_pattern_that_is_not_ascii_is_a_route_like_others() {
    for pattern in ["/überblick", "/é", "/a/é{id}"] {
        let app = App::new().service(web::resource(pattern).to(ok)).wrap(three(pattern));
        let app = test::init_service(app).await;
        let paths = ["/%C3%BCberblick", "/%C3%A9", "/a/%C3%A9x", "/%c3%a9"];
        assert_eq!(served(&app, &paths).await, 3, "{pattern}");
    }
}

/// The first resource does not answer, so that the route of the second one is found by its pattern.
#[actix_web::test]
async fn a_path_that_is_not_ascii_is_no_way_around_a_route_of_several_parameters() {
    for pattern in ["/{file}.{ext}", "/{a}{b}.{ext}"] {
        let app = App::new()
            .service(web::resource("/{id}").guard(guard::Post()).to(ok))
            .service(web::resource(pattern).guard(guard::Get()).to(ok))
            .wrap(three(pattern));
        let served = served(&test::init_service(app).await, &["/%C3%A9%C3%A9.b"]).await;
        assert_eq!(served, 3, "{pattern}");
    }
}

#[actix_web::test]
async fn an_exception_for_a_route_is_none_for_what_may_be_another() {
    let rule = || {
        let rule = Limit::per_hour(3).by(Ip::peer()).when(Not(Route.is("/health")));
        RateLimit::new(rule).store(Memory::builder().capacity(100).build())
    };
    let app = App::new().service(web::resource("/health").to(ok)).default_service(web::to(ok));
    let app = test::init_service(app.wrap(rule())).await;
    assert_eq!(served(&app, &["/health", "/he%61lth"]).await, 10, "as the exception says");
    assert_eq!(served(&app, &["//health", "/health/", "/other"]).await, 3);
}

#[actix_web::test]
async fn a_path_that_is_too_long_for_its_routes_is_refused() {
    let long = format!("/{}", "a".repeat(20_000));
    let app = App::new().service(web::resource("/{any}").to(ok)).wrap(three("/login"));
    let app = test::init_service(app).await;
    assert_eq!(status(&app, TestRequest::with_uri(&long)).await, 400);
    assert_eq!(served(&app, &["/short"]).await, 5);
}
