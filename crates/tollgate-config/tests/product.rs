//! A whole product, in a file and in code: both answer alike, request after request.

use std::convert::Infallible;
use std::time::Duration;

use http::{HeaderMap, Request, Response, StatusCode};
use tollgate::{Decision, HttpView, ManualClock, Memory, Peer, RateLimitLayer};
use tollgate_config::{Environment, Policies, read_toml};
use tollgate_core::{
    Claim, Claims, Either, First, Global, Header, Hours, Ip, Limit, Method, Path, Rule, Tiers,
    cost_from, reply_header, when,
};
use tower::{Layer, Service, ServiceExt, service_fn};

const REQUESTS: usize = 6_000;

fn in_a_file(clock: &ManualClock) -> Policies {
    let document = read_toml(include_str!("documents/product.toml")).expect("a document");
    Policies::new(&document, &Environment::new().clock(clock)).expect("policies")
}

fn in_code(
    clock: &ManualClock,
) -> impl for<'a> Rule<HttpView<'a, ()>> + Clone + Send + Sync + 'static {
    let month = Duration::from_secs(30 * 86_400);
    let monthly = |count| Limit::per(count, month).named("api/30 days").carried();
    let secondly = |limit: Limit| limit.named("api/second").carried();
    let tiers = Tiers::new("api")
        .tier("free", [secondly(Limit::per_second(5).burst(10).soft(8)), monthly(300)])
        .tier("paid", [secondly(Limit::per_second(50).burst(100).soft(80)), monthly(100_000)])
        .unlimited("partner")
        .otherwise("free");
    let ip = || Ip::behind(["10.0.0.0/8"]);
    let customer = || First((Claim("customer"), ip()));
    let day = Duration::from_secs(86_400);
    let minutes = |count: u64| Duration::from_secs(60 * count);
    let nights =
        Hours::in_zone("Europe/Berlin").expect("a zone").between("22:00", "06:00").expect("times");
    (
        tiers
            .by_tier(Claim("plan"))
            .by(customer())
            .when(Either(Path.matches("/v1/*"), Path.matches("/v2/*"))),
        Limit::fixed_window(100_000, day)
            .over_percent(10)
            .named("tokens")
            .carried()
            .by(customer())
            .cost(cost_from(Header("x-tokens")).default(500).at_most(10_000))
            .settle_cost(reply_header("x-tokens-used"))
            .when((Method.is("POST"), Path.matches("/v1/complete"))),
        Limit::sliding_log(5, minutes(15))
            .ban(minutes(60))
            .ban_after(3, minutes(10))
            .named("login")
            .carried()
            .by(ip())
            .count_if(|status| status == 401 || status == 403)
            .when((Method.is("POST"), Path.matches("/login"))),
        when(nights.clock(clock), Limit::per_second(40).burst(60).named("everybody").carried())
            .otherwise(Limit::per_second(20).burst(30).named("everybody").carried())
            .by(Global),
    )
}

/// Numbers that are the same in every run, of no pattern.
struct Dice(u64);

impl Dice {
    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        of[(self.0 >> 33) as usize % of.len()]
    }
}

/// What somebody asks, as often as not the same again.
fn request(dice: &mut Dice) -> Request<()> {
    let (method, path) = dice.one_of(&[
        ("GET", "/v1/items"),
        ("GET", "/v2/items/7"),
        ("POST", "/v1/complete"),
        ("POST", "/login"),
        ("GET", "/"),
    ]);
    let mut request = Request::builder().method(method).uri(path);
    for (name, values) in [
        ("x-tokens", &["", "100", "9999", "10001"][..]),
        ("x-forwarded-for", &["192.0.2.1", "192.0.2.2, 198.51.100.7"]),
        // What the handler below answers.
        ("x-status", &["200", "401", "500"]),
        ("x-used", &["", "50", "20000"]),
    ] {
        match dice.one_of(values) {
            "" => {}
            value => request = request.header(name, value),
        }
    }
    let extensions = request.extensions_mut().expect("a request");
    extensions.insert(Peer(
        dice.one_of(&["10.0.0.1", "11.0.0.1", "203.0.113.9"]).parse().expect("an address"),
    ));
    extensions.insert(match dice.one_of(&["", "free", "paid", "partner"]) {
        "" => Claims::new(),
        plan => Claims::new().with("customer", format!("a {plan} one")).with("plan", plan),
    });
    request.body(()).expect("a request")
}

/// A service on a store of its own, by the clock.
fn service<R>(
    rule: R,
    clock: &ManualClock,
) -> impl Service<Request<()>, Response = Response<String>, Error = Infallible> + Clone
where
    R: for<'a> Rule<HttpView<'a, ()>> + Clone + Send + Sync + 'static,
{
    let store = Memory::builder().capacity(1_000).clock(clock).build();
    RateLimitLayer::new(rule).store(store).layer(service_fn(|request: Request<()>| async move {
        let text = |name: &str| {
            request.headers().get(name).map_or("", |value| value.to_str().expect("text"))
        };
        let response =
            Response::builder().status(text("x-status")).header("x-tokens-used", text("x-used"));
        Ok(response.body(String::new()).expect("a response"))
    }))
}

/// With the decision, for what no header says.
type Answer = (StatusCode, HeaderMap, String, String);

async fn answer(
    service: &(impl Service<Request<()>, Response = Response<String>, Error = Infallible> + Clone),
    request: &Request<()>,
) -> Answer {
    let response = service.clone().oneshot(request.clone()).await.expect("a response");
    let (parts, body) = response.into_parts();
    let decision = format!("{:?}", parts.extensions.get::<Decision>());
    (parts.status, parts.headers, body, decision)
}

#[tokio::test]
async fn a_file_and_code_answer_alike_on_a_long_run() {
    // A Friday in January, before the night in Berlin.
    let clock = ManualClock::at(Duration::from_secs(1_767_990_000));
    let (file, code) = (service(in_a_file(&clock), &clock), service(in_code(&clock), &clock));
    let mut dice = Dice(5);
    let mut statuses = std::collections::BTreeMap::<_, usize>::new();
    for i in 0..REQUESTS {
        let request = request(&mut dice);
        let answered = answer(&file, &request).await;
        assert_eq!(answered, answer(&code, &request).await, "request {i}: {request:?}");
        *statuses.entry(answered.0.as_u16()).or_default() += 1;
        clock.advance(Duration::from_millis(dice.one_of(&[0, 0, 1, 10, 100, 1_000])));
        if i % 100 == 0 {
            clock.advance(Duration::from_secs(dice.one_of(&[60, 600, 3_600, 20_000])));
        }
    }
    // All of it has happened, often.
    for status in [200, 401, 400, 429, 500] {
        assert!(statuses.get(&status).is_some_and(|count| *count > 100), "{statuses:?}");
    }
}
