//! The policies of a whole product from a file decide on a server as they do in memory.

use std::convert::Infallible;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use http::{Request, Response};
use sluicegate::adapter::Peer;
use sluicegate::key::Claims;
use sluicegate::store::Store;
use sluicegate::{ManualClock, Memory, RateLimitLayer};
use sluicegate_config::{Environment, Policies, read_toml};
use tower::{Layer, ServiceExt, service_fn};

use super::store::{by_hand, open, runtime, shared};

const PRODUCT: &str = include_str!("../../../../examples/policies/product.toml");

#[test]
fn a_file_decides_on_a_server_as_in_memory() {
    let (far, near) = (ManualClock::new(), ManualClock::new());
    let redis = open(by_hand(&far).url(&shared().url()));
    let memory = Memory::builder().clock(&near).build();
    let (far, near) = runtime().block_on(async {
        // What is settled after an answer has to arrive before the next request.
        let far = answers(redis.clone(), &far, async || redis.flush().await).await;
        (far, answers(memory, &near, async || {}).await)
    });
    for (far, near) in far.iter().zip(&near) {
        assert_eq!(far, near);
    }
    for seen in ["200", "400", "401", "429", "sluicegate-soft", "abnormal-usage-detected"] {
        assert!(far.iter().any(|answer| answer.contains(seen)), "no answer contains {seen}");
    }
}

/// What clients of the product see on `store`, request by request.
async fn answers(
    store: impl Store<Future: Send> + Clone + Send + Sync + 'static,
    clock: &ManualClock,
    settled: impl AsyncFn(),
) -> Vec<String> {
    let document = read_toml(PRODUCT).expect("a document");
    let environment = Environment::new().clock(clock);
    let policies = Policies::new(&document, &environment).expect("policies");
    let service = RateLimitLayer::new(policies).store(store).layer(service_fn(answer));
    let (mut dice, mut answers) = (Dice(7), Vec::new());
    for _ in 0..1_500 {
        clock.advance(dice.pause());
        let request = dice.request();
        let mut said = format!("{} {:?}", request.uri(), request.headers());
        let response = service.clone().oneshot(request).await.expect("no error");
        let (head, body) = response.into_parts();
        let body = body.into_inner().map_err(|own| String::from_utf8(own.to_vec()));
        let body = body.unwrap_or_else(|own| own.expect("a problem is text"));
        settled().await;
        write!(said, ": {} {:?} {body}", head.status, head.headers)
            .expect("a String takes everything");
        answers.push(said);
    }
    answers
}

async fn answer(request: Request<String>) -> Result<Response<String>, Infallible> {
    let status = if request.uri().path() == "/login" { 401 } else { 200 };
    let response = Response::builder().status(status).header("x-tokens-used", "900");
    Ok(response.body(String::new()).expect("a response"))
}

/// Pseudo-random numbers, the same in every run: SplitMix64 (Steele, Lea, Flood 2014).
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.roll() as usize % of.len()]
    }

    /// Mostly a short time, now and then an hour.
    fn pause(&mut self) -> Duration {
        let millis = self.one_of(&[0, 0, 3, 50, 200]);
        Duration::from_millis(if self.roll().is_multiple_of(400) { 3_600_000 } else { millis })
    }

    fn request(&mut self) -> Request<String> {
        let paths = ["/v1/items", "/v1/completions", "/v1/completions", "/v1/export", "/login"];
        let mut request = Request::post(self.one_of(&paths));
        if let Some(tokens) = self.one_of(&[None, Some("4000"), Some("4001"), Some("x")]) {
            request = request.header("x-expected-tokens", tokens);
        }
        let claims = match self.one_of(&[None, Some("acme"), Some("initech"), Some("other")]) {
            Some(customer) => Claims::new().with("customer", customer),
            None => Claims::new(),
        };
        let address = IpAddr::V4(Ipv4Addr::new(192, 0, 2, self.one_of(&[1, 2])));
        let request = request.extension(claims).extension(Peer(address));
        request.body(String::new()).expect("a request")
    }
}
