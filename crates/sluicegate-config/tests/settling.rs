//! What becomes of a charge when the response is known, and of a request that is refused.

use std::convert::Infallible;

use http::{Request, Response};
use sluicegate::adapter::Peer;
use sluicegate::{Cost, Decision, ManualClock, Memory, RateLimitLayer};
use sluicegate_config::{Environment, Policies, read_toml};
use sluicegate_core::Rejection;
use tower::{Layer, ServiceExt, service_fn};

fn policies(rule: &str) -> Policies {
    let text = format!("[[rules]]\nname = \"a\"\nkey = \"ip\"\n{rule}");
    Policies::new(&read_toml(&text).expect("a document"), &Environment::new()).expect("policies")
}

/// What is left after each request, to which the response says a status and a cost in a header and as an
/// extension.
async fn left(rule: &str, responses: &[(u16, &str, u64)]) -> Vec<Option<u64>> {
    let store = Memory::builder().capacity(100).clock(ManualClock::new()).build();
    let layer = RateLimitLayer::new(policies(rule)).store(store);
    let mut left = Vec::new();
    for &(status, header, cost) in responses {
        let handler = service_fn(move |_: Request<()>| async move {
            let response =
                Response::builder().status(status).header("x-used", header).extension(Cost(cost));
            Ok::<_, Infallible>(response.body(String::new()).expect("a response"))
        });
        let mut request = Request::new(());
        request.extensions_mut().insert(Peer("192.0.2.7".parse().expect("an address")));
        let served = layer.layer(handler).oneshot(request).await.expect("a response");
        left.push(served.extensions().get::<Decision>().and_then(Decision::remaining));
    }
    left
}

const LIMIT: &str = "limits = [\"log 1000/day\"]\ncost = 10\n";

#[tokio::test]
async fn without_a_word_the_charge_stands() {
    let left = left(LIMIT, &[(200, "3", 5), (500, "3", 5), (200, "3", 5)]).await;
    assert_eq!(left, [Some(990), Some(980), Some(970)]);
}

#[tokio::test]
async fn a_charge_is_settled_by_a_header_or_by_the_response() {
    let responses = [(200, "3", 5), (200, "0.251", 5), (200, "", 5), (200, "3", 5)];
    let by_header = format!("{LIMIT}settle = {{ header = \"x-used\" }}");
    assert_eq!(left(&by_header, &responses).await, [Some(990), Some(987), Some(977), Some(967)]);
    let scaled = format!("{LIMIT}settle = {{ header = \"x-used\", scale = 100 }}");
    assert_eq!(left(&scaled, &responses).await, [Some(990), Some(690), Some(664), Some(654)]);
    let by_response = format!("{LIMIT}settle = \"response\"");
    assert_eq!(left(&by_response, &responses).await, [Some(990), Some(985), Some(980), Some(975)]);
}

#[tokio::test]
async fn only_some_statuses_are_counted() {
    let responses = [(200, "3", 5), (401, "3", 5), (403, "3", 5), (404, "3", 5), (200, "3", 5)];
    let counted = format!("{LIMIT}count_if = [401, 403]");
    assert_eq!(
        left(&counted, &responses).await,
        [Some(990), Some(990), Some(980), Some(970), Some(970)]
    );
    let settled = format!("{LIMIT}count_if = [401, 403]\nsettle = \"response\"");
    assert_eq!(
        left(&settled, &responses).await,
        [Some(990), Some(990), Some(985), Some(980), Some(980)]
    );
}

#[test]
fn each_rule_has_its_own_rejection() {
    let limits = "limits = [\"1/second\", \"5/day named daily\"]\n";
    let shown = |rule: &str, limit: &str| {
        policies(&format!("{limits}{rule}"))
            .rejection_of(limit)
            .map(|rejection| format!("{rejection:?}"))
    };
    let some = |rejection: Rejection| Some(format!("{rejection:?}"));
    assert_eq!(shown("", "a"), some(Rejection::block()));
    assert_eq!(shown("reject = \"block\"", "daily"), some(Rejection::block()));
    assert_eq!(shown("reject = \"shadow\"", "daily"), some(Rejection::shadow()));
    assert_eq!(shown("reject = \"degrade\"", "daily"), some(Rejection::degrade()));
    let redirect = "reject = { redirect = \"https://busy.example.com/\" }";
    assert_eq!(shown(redirect, "daily"), some(Rejection::redirect("https://busy.example.com/")));
    let redirect = "reject = { redirect = \"/busy\", status = 303 }";
    assert_eq!(shown(redirect, "daily"), some(Rejection::redirect("/busy").status(303)));
    assert_eq!(shown("", "another"), None);
}
