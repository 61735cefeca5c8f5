//! Random trees of scopes and resources, with guards, defaults and `NormalizePath` anywhere: however a path is
//! written, a handler answers no more requests than the limit on its route allows.

use actix_web::middleware::{NormalizePath, TrailingSlash};
use actix_web::test::{self, TestRequest};
use actix_web::{App, HttpResponse, Resource, Scope, guard, web};
use sluicegate_actix::adapter::RequestView;
use sluicegate_actix::rule::{KnownLimits, Rule};
use sluicegate_actix::{Global, Limit, Memory, RateLimit, Route};

/// The limit is around the app, not around one of its parts.
const APP: usize = usize::MAX;

const PREFIXES: [&str; 8] = ["", "/a", "/{x}", "/login", "/a/{y}", "/{z:[a-z]+}", "/a/", "b"];

const PATTERNS: [&str; 20] = [
    "",
    "/",
    "/login",
    "/login/",
    "/{id}",
    "/{id}/",
    "/{tail:.*}",
    "/{tail}*",
    "/l{id}n",
    "a",
    "/a/login",
    "/{p}/{q}",
    r"/{n:\d+}",
    "/{n:[a-z]{5}}",
    "{odd}",
    "/a//login",
    "/./login",
    "/é",
    "/{f}.{g}",
    "/{n:(a|login)}",
];

const SEGMENTS: [&str; 21] = [
    "login",
    "a",
    "%6cogin",
    "lo%67in",
    "",
    ".",
    "..",
    "%61",
    "b",
    "lo%2Fgin",
    "%2F",
    "Login",
    "7",
    "login.",
    "login;a",
    "%256cogin",
    "%C3%A9",
    "%C3%A9.b",
    "%ff",
    "%00",
    "a.b",
];

/// Chooses by a number that is turned by xorshift: the same in each run.
struct Choice(u64);

impl Choice {
    fn below(&mut self, most: usize) -> usize {
        for (left, by) in [(true, 13), (false, 7), (true, 17)] {
            self.0 ^= if left { self.0 << by } else { self.0 >> by };
        }
        (self.0 >> 11) as usize % most
    }

    fn of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len())]
    }

    fn path(&mut self) -> String {
        let mut path: String =
            (0..=self.below(3)).map(|_| format!("/{}", self.of(&SEGMENTS))).collect();
        if self.below(3) == 0 {
            path.push('/');
        }
        path
    }
}

/// A scope with what is in it, or a resource.
#[derive(Debug)]
struct Part {
    text: &'static str,
    guard: usize,
    normalized: usize,
    inside: Option<Vec<Self>>,
}

fn parts(choice: &mut Choice, depth: usize) -> Vec<Part> {
    (0..=choice.below(3))
        .map(|_| {
            let is_scope = depth > 0 && choice.below(2) == 0;
            Part {
                text: choice.of(if is_scope { &PREFIXES } else { &PATTERNS }),
                // Mostly none.
                guard: choice.below(6),
                normalized: choice.below(6),
                inside: is_scope.then(|| parts(choice, depth - 1)),
            }
        })
        .collect()
}

/// The pattern of each resource, and whether the part at `limited` is around it.
fn routes(
    parts: &[Part],
    before: (&str, bool),
    at: &mut usize,
    limited: usize,
) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    for part in parts {
        let slash = if part.text.is_empty() || part.text.starts_with('/') { "" } else { "/" };
        let pattern = format!("{}{slash}{}", before.0, part.text);
        let is_limited = before.1 || *at == limited;
        *at += 1;
        match &part.inside {
            Some(inside) => found.extend(routes(inside, (&pattern, is_limited), at, limited)),
            None => found.push((pattern, is_limited)),
        }
    }
    found
}

fn normalize(how: usize) -> NormalizePath {
    NormalizePath::new(match how {
        0 => TrailingSlash::Trim,
        1 => TrailingSlash::Always,
        _ => TrailingSlash::MergeOnly,
    })
}

fn guarded(scope: Scope, guard: usize) -> Scope {
    match guard {
        0 => scope.guard(guard::Header("x-internal", "1")),
        1 => scope.guard(guard::Post()),
        _ => scope,
    }
}

fn guarded_resource(resource: Resource, guard: usize) -> Resource {
    match guard {
        0 => resource.guard(guard::Header("x-internal", "1")),
        1 => resource.guard(guard::Post()),
        _ => resource,
    }
}

/// Registers the parts. Each handler answers with its number.
fn register<R>(
    config: &mut web::ServiceConfig,
    parts: &[Part],
    (at, handler): (&mut usize, &mut usize),
    limited: usize,
    limit: &RateLimit<R>,
) where
    R: for<'a> Rule<RequestView<'a>> + KnownLimits + Clone + 'static,
{
    for part in parts {
        let here = *at == limited;
        *at += 1;
        let Some(inside) = &part.inside else {
            let number = *handler;
            *handler += 1;
            let resource = guarded_resource(web::resource(part.text), part.guard)
                .to(move || async move { HttpResponse::Ok().body(number.to_string()) });
            if here {
                config.service(resource.wrap(limit.clone()))
            } else {
                config.service(resource)
            };
            continue;
        };
        let scope = guarded(web::scope(part.text), part.guard)
            .configure(|config| register(config, inside, (at, handler), limited, limit));
        match (here, part.normalized) {
            (true, how @ 0..3) => config.service(scope.wrap(normalize(how)).wrap(limit.clone())),
            (true, _) => config.service(scope.wrap(limit.clone())),
            (false, how @ 0..3) => config.service(scope.wrap(normalize(how))),
            (false, _) => config.service(scope),
        };
    }
}

#[actix_web::test]
async fn no_spelling_and_no_guard_is_a_way_around_a_route_in_any_tree() {
    let (mut limited_handlers, mut refused) = (0, 0);
    for seed in 1..=150_u64 {
        let mut choice = Choice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let parts = parts(&mut choice, 3);
        let mut count = 0;
        routes(&parts, ("", false), &mut count, APP);
        let limited = if choice.below(3) == 0 { APP } else { choice.below(count) };
        let paths: Vec<_> = (0..40).map(|_| choice.path()).collect();
        let routes = routes(&parts, ("", limited == APP), &mut 0, limited);
        for (number, (pattern, _)) in routes.iter().enumerate().filter(|(_, route)| route.1) {
            let rule = Limit::per_hour(3).by(Global).when(Route.is(pattern.clone()));
            let limit = RateLimit::new(rule).store(Memory::builder().capacity(10).build());
            let app = App::new().configure(|config| {
                register(config, &parts, (&mut 0, &mut 0), limited, &limit);
            });
            let app =
                app.wrap(actix_web::middleware::Condition::new(limited == APP, limit.clone()));
            let app = test::init_service(app).await;
            let mut served = 0;
            for path in paths.iter().flat_map(|path| [path; 2]) {
                let response =
                    test::call_service(&app, TestRequest::with_uri(path).to_request()).await;
                refused += usize::from(response.status() == 429);
                let is_served = response.status() == 200;
                let body = test::read_body(response).await;
                served += usize::from(is_served && body == number.to_string());
            }
            assert!(
                served <= 3,
                "{served} by {pattern} of {parts:?}, limit around {limited}, {paths:?}"
            );
            limited_handlers += usize::from(served > 0);
        }
    }
    assert!(limited_handlers > 20 && refused > 100, "{limited_handlers} {refused}");
}
