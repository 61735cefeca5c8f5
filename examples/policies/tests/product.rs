//! The file and the code decide alike, over long random runs.

use std::convert::Infallible;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use proptest::prelude::*;
use sluicegate::adapter::{HttpView, Peer, Plain};
use sluicegate::key::Claims;
use sluicegate::response::LazyDecision;
use sluicegate::rule::Rule;
use sluicegate::{Fields, ManualClock, Memory, RateLimitLayer};
use sluicegate_config::{Environment, Policies, read_toml};
use tower::{Layer, ServiceExt, service_fn};

/// A request, and the answer of the service.
#[derive(Debug, Clone)]
struct Asked {
    after: Duration,
    path: &'static str,
    customer: Option<&'static str>,
    address: u8,
    expected: Option<u32>,
    used: Option<u32>,
    fails: bool,
}

fn asked() -> impl Strategy<Value = Asked> {
    let after = prop_oneof![
        100 => Just(0),
        100 => 0..200_000_u64,
        4 => 0..60_000_000_u64,
        1 => 0..40_000_000_000_u64,
    ];
    let path = prop_oneof![
        2 => Just("/v1/items/7"),
        2 => Just("/v1/completions"),
        1 => Just("/v1/export"),
        2 => Just("/login"),
        1 => Just("/about"),
    ];
    let customer =
        prop_oneof![Just(None), Just(Some("acme")), Just(Some("initech")), Just(Some("x"))];
    let expected = proptest::option::of(0..4_500_u32);
    let used = proptest::option::of(0..6_000_u32);
    (after, path, customer, 0..3_u8, expected, used, any::<bool>()).prop_map(
        |(after, path, customer, address, expected, used, fails)| {
            let after = Duration::from_micros(after);
            Asked { after, path, customer, address, expected, used, fails }
        },
    )
}

impl Asked {
    fn request(&self) -> Request<String> {
        let method = if self.path.ends_with('7') { "GET" } else { "POST" };
        let mut request = Request::builder().method(method).uri(self.path);
        if let Some(expected) = self.expected {
            request = request.header("x-expected-tokens", expected);
        }
        let mut request = request.body(String::new()).unwrap();
        let claims = Claims::new();
        let claims = match self.customer {
            Some(customer) => claims.with("customer", customer),
            None => claims,
        };
        let address = Ipv4Addr::new(192, 0, 2, self.address);
        request.extensions_mut().insert(claims);
        request.extensions_mut().insert(Peer(IpAddr::V4(address)));
        request
    }

    fn response(&self) -> Response<String> {
        let response = Response::builder().status(if self.fails { 401 } else { 200 });
        let response = match self.used {
            Some(used) => response.header("x-tokens-used", used),
            None => response,
        };
        response.body(String::new()).unwrap()
    }
}

/// Everything that clients see of the answers, for one rule with its own store.
async fn answers<R>(rule: R, clock: &ManualClock, asked: &[Asked]) -> Vec<String>
where
    R: for<'a> Rule<HttpView<'a, String, Plain>> + Send + Sync + 'static,
{
    let layer = RateLimitLayer::new(Arc::new(rule))
        .store(Memory::builder().clock(clock).build())
        .extensions(true)
        .fields(Fields::DRAFT.and(Fields::X_RATE_LIMIT));
    let inner = service_fn(|request: Request<String>| async move {
        let asked = request.extensions().get::<Asked>().expect("it was put there");
        Ok::<_, Infallible>(asked.response())
    });
    let service = layer.layer(inner);
    let mut answers = Vec::new();
    for asked in asked {
        clock.advance(asked.after);
        let mut request = asked.request();
        request.extensions_mut().insert(asked.clone());
        let response =
            service.clone().oneshot(request).await.unwrap_or_else(|never| match never {});
        let mut answer = format!("{asked:?}: {}", response.status());
        write!(answer, "\n  {:?}", response.extensions().get().map(LazyDecision::decision))
            .unwrap();
        for (name, value) in response.headers() {
            write!(answer, "\n  {name}: {}", value.to_str().unwrap()).unwrap();
        }
        answers.push(answer);
    }
    answers
}

fn run(asked: &[Asked]) -> (Vec<String>, Vec<String>) {
    let document =
        read_toml(include_str!("../product.toml")).unwrap_or_else(|error| panic!("{error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let clock = ManualClock::new();
        let environment = Environment::new().clock(clock.clone());
        let policies =
            Policies::new(&document, &environment).unwrap_or_else(|error| panic!("{error}"));
        let from_file = answers(policies, &clock, asked).await;
        let clock = ManualClock::new();
        let in_code =
            answers(sluicegate_examples_policies::in_code(clock.clone()), &clock, asked).await;
        (from_file, in_code)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn the_file_and_the_code_decide_alike(asked in prop::collection::vec(asked(), 1_000)) {
        let (from_file, in_code) = run(&asked);
        for (from_file, in_code) in from_file.iter().zip(&in_code) {
            prop_assert_eq!(from_file, in_code);
        }
    }
}

#[test]
fn all_that_the_product_promises_is_seen_on_a_long_run() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let asked = prop::collection::vec(asked(), 10_000);
    let asked = proptest::strategy::Strategy::new_tree(&asked, &mut runner).unwrap();
    let (from_file, in_code) = run(&proptest::strategy::ValueTree::current(&asked));
    assert_eq!(from_file, in_code);
    for seen in [
        "200 OK",
        "400 Bad Request",
        "401 Unauthorized",
        "429 Too Many Requests",
        "\"api/second\";r=",
        "\"api/30 days\";r=",
        "\"tokens\";r=",
        ";sluicegate-soft",
        "\"login\";r=0",
        "\"export\";q=2;",
        "\"export\";q=20;",
        "banned: true",
    ] {
        assert!(from_file.iter().any(|answer| answer.contains(seen)), "nobody saw {seen}");
    }
}
