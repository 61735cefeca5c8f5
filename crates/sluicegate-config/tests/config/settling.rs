//! What happens to a charge when the response is known, and to a refused request.

use std::convert::Infallible;

use http::{Request, Response};
use http_body_util::BodyExt;
use sluicegate::adapter::{Hold, HttpView, Peer, Plain};
use sluicegate::cost::reply_header;
use sluicegate::response::LazyDecision;
use sluicegate::rule::Rule;
use sluicegate::{Cost, Ip, Limit, ManualClock, Memory, RateLimitLayer};
use sluicegate_config::{Environment, Live, Policies, read_toml};
use sluicegate_core::Rejection;
use sluicegate_llm::Dialect;
use tower::{Layer, ServiceExt, service_fn};

fn policies(rule: &str) -> Policies {
    let text = format!("[[rules]]\nname = \"a\"\nkey = \"ip\"\n{rule}");
    Policies::new(&read_toml(&text).expect("a document"), &Environment::new()).expect("policies")
}

/// What is left after each request. Its response has a status, and a cost in a header and in an extension.
async fn left(rule: &str, responses: &[(u16, &str, u64)]) -> Vec<Option<u64>> {
    left_by(policies(rule), responses).await
}

/// Like [`left`], for any rule. The responses are kept until the last one has come, so that no body ends before.
async fn left_by(
    rule: impl for<'a> Rule<HttpView<'a, (), Plain>> + Clone + Send + Sync + 'static,
    responses: &[(u16, &str, u64)],
) -> Vec<Option<u64>> {
    let store = Memory::builder().capacity(100).clock(ManualClock::new()).build();
    let layer = RateLimitLayer::new(rule).store(store).extensions(true);
    let (mut left, mut kept) = (Vec::new(), Vec::new());
    for &(status, header, cost) in responses {
        let handler = service_fn(move |_: Request<()>| async move {
            let response =
                Response::builder().status(status).header("x-used", header).extension(Cost(cost));
            Ok::<_, Infallible>(response.body(String::new()).expect("a response"))
        });
        let mut request = Request::new(());
        request.extensions_mut().insert(Peer("192.0.2.7".parse().expect("an address")));
        let served = layer.layer(handler).oneshot(request).await.expect("a response");
        left.push(
            served.extensions().get::<LazyDecision>().and_then(|lazy| lazy.decision().remaining()),
        );
        kept.push(served);
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

#[tokio::test]
async fn a_charge_is_settled_to_a_bound_as_in_code() {
    let responses = [(200, "3000", 3_000), (200, "3", 3), (200, "40", 40)];
    let settled = format!("{LIMIT}settle = \"response\"\nsettle_at_most = 20");
    let code = limit().by(Ip::peer()).cost(10).settle_cost(|reply| reply.cost()).settle_at_most(20);
    let in_file = left(&settled, &responses).await;
    assert_eq!(in_file, [Some(990), Some(970), Some(967)]);
    assert_eq!(in_file, left_by(code, &responses).await);
}

#[tokio::test]
async fn a_charge_is_settled_at_the_end_of_the_body_as_in_code() {
    // The bodies do not end before the last response is there, so nothing is settled until then.
    let responses = [(200, "3", 5), (401, "3", 5), (200, "3", 5)];
    let charged = [Some(990), Some(980), Some(970)];
    let settled = format!("{LIMIT}settle = {{ header = \"x-used\" }}\n");
    let code = || limit().by(Ip::peer()).cost(10);
    assert_eq!(left(&settled, &responses).await, [Some(990), Some(987), Some(984)]);
    assert_eq!(left(&format!("{settled}settle_at_end = true"), &responses).await, charged);
    let code_settled = code().settle_cost(reply_header("x-used"));
    assert_eq!(left_by(code_settled.clone().settle_at_end(), &responses).await, charged);

    let counted = format!("{LIMIT}count_if = [401]\n");
    let code_counted = code().count_if(|status| status == 401);
    assert_eq!(left(&counted, &responses).await, left_by(code_counted.clone(), &responses).await);
    assert_eq!(left(&format!("{counted}settle_at_end = true"), &responses).await, charged);
    assert_eq!(left_by(code_counted.settle_at_end(), &responses).await, charged);
}

fn limit() -> Limit {
    "log 1000/day".parse::<Limit>().expect("a limit")
}

#[tokio::test]
async fn places_are_held_until_the_head_or_the_end_as_in_code() {
    for (text, hold, status) in [
        ("", Hold::End, 429),
        ("hold_until = \"end\"\n", Hold::End, 429),
        ("hold_until = \"head\"\n", Hold::Head, 200),
    ] {
        let rule = "[[rules]]\nname = \"a\"\nkey = \"global\"\nlimits = [\"concurrent 1\"]";
        let document = read_toml(&format!("{text}{rule}")).expect("a document");
        let policies = Policies::new(&document, &Environment::new()).expect("policies");
        assert_eq!(policies.hold_until(), hold);
        let in_code = RateLimitLayer::new(Limit::concurrent(1).by(sluicegate::Global));
        let in_file = RateLimitLayer::new(policies.clone()).hold_until(policies.hold_until());
        assert_eq!(second(in_file).await, status, "{text}");
        assert_eq!(second(in_code.hold_until(hold)).await, status, "{text}");
    }
}

/// The status of a second request, while the body of the first response has not ended.
async fn second<R>(layer: RateLimitLayer<R>) -> u16
where
    R: for<'a> Rule<HttpView<'a, (), Plain>> + Clone + Send + Sync + 'static,
{
    let handler = service_fn(|_: Request<()>| async {
        Ok::<_, Infallible>(Response::new(String::from("hello")))
    });
    let service = layer.layer(handler);
    let first = service.clone().oneshot(Request::new(())).await.expect("a response");
    assert_eq!(first.status(), 200);
    let second = service.oneshot(Request::new(())).await.expect("a response");
    drop(first);
    second.status().as_u16()
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

#[tokio::test]
async fn tokens_are_reserved_by_an_estimate_and_settled_by_what_was_used() {
    use sluicegate_llm::{EstimatedTokens, TokenUsage, Usage};
    const RULE: &str = "limits = [\"1000/day\"]\n\
                        cost = { tokens = \"output\", default = 7, most = 500 }\n\
                        settle = { tokens = \"uncached\" }";
    let store = Memory::builder().capacity(100).clock(ManualClock::new()).build();
    let layer = RateLimitLayer::new(policies(RULE)).store(store).extensions(true);
    let service = layer.layer(service_fn(|_: Request<()>| async {
        let usage = TokenUsage::new();
        usage.report(Usage::new(30, 20).cached(25));
        usage.finish();
        let mut response = Response::new(String::new());
        response.extensions_mut().insert(usage.running_cost());
        Ok::<_, Infallible>(response)
    }));
    let mut left = Vec::new();
    for output in [Some(100), Some(900), None] {
        let mut request = Request::new(());
        request.extensions_mut().insert(Peer([192, 0, 2, 1].into()));
        if let Some(output) = output {
            request.extensions_mut().insert(EstimatedTokens::new(3, output));
        }
        let response = service.clone().oneshot(request).await.unwrap();
        left.push(
            response.extensions().get::<LazyDecision>().unwrap().decision().remaining().unwrap(),
        );
    }
    // Each is charged 25 in the end.
    assert_eq!(left, [1_000 - 100, 1_000 - 25 - 500, 1_000 - 50 - 7]);
}

#[tokio::test]
async fn the_dialect_of_a_file_writes_what_the_same_dialect_writes_in_code() {
    let rule = "[[rules]]\nname = \"a\"\nkey = \"global\"\nlimits = [\"1/minute\", \"9/day\"]\n";
    let text = format!("{rule}[dialect]\napi = \"openai\"\nrequests = [\"a\"]\n");
    let live = Live::of(
        Policies::new(&read_toml(&text).expect("a document"), &Environment::new())
            .expect("policies"),
    );
    let in_code = Dialect::openai().requests("a");
    assert_eq!(live.dialect(), Some(in_code.clone()));
    let mut answers = Vec::new();
    for dialect in [live.dialect(), Some(in_code)] {
        let store = Memory::builder().clock(ManualClock::new()).build();
        let layer = RateLimitLayer::new(live.clone())
            .store(store)
            .dialect(dialect.clone())
            .respond(dialect);
        let service = layer.layer(service_fn(|_: Request<()>| async {
            Ok::<_, Infallible>(Response::new(String::new()))
        }));
        service.clone().oneshot(Request::new(())).await.expect("a response");
        let (head, body) = service.oneshot(Request::new(())).await.expect("it").into_parts();
        assert_eq!(head.status, 429);
        assert_eq!(head.headers["x-ratelimit-remaining-requests"], "0");
        let body = body.collect().await.expect("a body").to_bytes();
        answers.push((head.headers, body));
    }
    assert_eq!(answers[0], answers[1]);
    assert!(answers[0].1.starts_with(b"{\"error\":"));
}

#[test]
fn a_dialect_that_makes_no_sense_is_an_error_with_its_place() {
    let rule = "[[rules]]\nname = \"a\"\nkey = \"global\"\nlimits = [\"1/minute\", \"9/day\"]\n";
    for (dialect, problem) in [
        (
            "api = \"openai\"",
            "5:1: dialect: it names no rule, expected the name of a rule in `requests` or `tokens`",
        ),
        (
            "api = \"openai\"\nrequests = []",
            "5:1: dialect: it names no rule, expected the name of a rule in `requests` or `tokens`",
        ),
        (
            "api = \"openai\"\ntokens = \"b\"",
            "7:10: dialect.tokens: no rule and no limit is named `b`",
        ),
        (
            "api = \"anthropic\"\ntokens = [\"a/min\"]",
            "7:10: dialect.tokens: no rule and no limit is named `a/min`",
        ),
        (
            "api = \"openai\"\noutput_tokens = \"a\"",
            "7:17: dialect.output_tokens: OpenAI's API has no fields for output tokens, expected `tokens`",
        ),
        (
            "api = \"anthropic\"\nrequests = \"a\"\ninput_tokens = [\"a\"]",
            "8:16: dialect.input_tokens: `a` counts requests already, expected either requests or input tokens",
        ),
        (
            "api = \"gemini\"\nrequests = \"a\"",
            "6:7: dialect.api: `gemini` is not known here, expected `openai` or `anthropic`",
        ),
        ("requests = \"a\"", "5:1: dialect: `api` is missing"),
    ] {
        let document = read_toml(&format!("{rule}[dialect]\n{dialect}\n"));
        let read = document.and_then(|document| Policies::new(&document, &Environment::new()));
        let problems = read.expect_err(dialect).to_string();
        assert_eq!(problems.lines().next(), Some(problem), "{dialect}");
    }
}

/// The API is required, and no stand-in fits where it is wrong or missing.
#[test]
fn a_dialect_whose_api_is_wrong_or_missing_hides_no_other_error() {
    for (dialect, path) in
        [("api = \"gemini\"\nrequests = \"a\"", "dialect.api:"), ("requests = \"a\"", "dialect:")]
    {
        let rule = "[[rules]]\nname = \"a\"\nkey = \"global\"\nlimits = [\"0/minute\"]\n";
        let problems =
            read_toml(&format!("{rule}[dialect]\n{dialect}\n")).expect_err(dialect).to_string();
        let paths: Vec<_> = problems.lines().map(|line| line.split(' ').nth(1).unwrap()).collect();
        assert_eq!(paths, ["rules[0].limits[0]:", path], "{problems}");
    }
}

#[test]
fn a_reload_that_settles_later_than_the_running_layer_is_refused() {
    let read = |above: &str, below: &str| {
        let text = format!(
            "{above}\n[[rules]]\nname = \"a\"\nkey = \"ip\"\nlimits = [\"9/day\"]\n{below}"
        );
        Policies::new(&read_toml(&text).expect("a document"), &Environment::new()).expect("valid")
    };
    let tokens = || read("", "settle = { tokens = \"all\" }");
    let head = || read("hold_until = \"head\"", "");
    // No layer has asked yet.
    let live = Live::of(head());
    live.replace(tokens()).expect("no layer settles early");
    assert_eq!(live.hold_until(), Hold::End);
    live.replace(head()).expect("no tokens");
    live.replace(tokens()).expect("the layer settles at the end");

    let live = Live::of(head());
    assert_eq!(live.hold_until(), Hold::Head);
    live.replace(read("", "")).expect("no tokens");
    let refused = live.replace(tokens()).expect_err("the layer settles at the head").to_string();
    assert!(refused.starts_with("rules[0].settle: the tokens of an answer are known"), "{refused}");
}
