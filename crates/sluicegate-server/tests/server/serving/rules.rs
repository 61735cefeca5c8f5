//! Descriptors decided by rules in TOML.

use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit;
use serde_json::{Value, json};
use sluicegate_server::Policies;

use super::http::post;
use super::server::{back, descriptor, hits, is_over, serve, start_rules, statuses};

const RULES: &str = r#"
[[rules]]
name = "login"
key = "ip"
limits = ["2/minute"]
when = { path = "/login" }

[[rules]]
name = "customer"
key = { optional = { claim = "user" } }
limits = ["5/hour"]
"#;

#[tokio::test]
async fn the_descriptors_of_a_request_are_one_request() {
    let mut server = start_rules(RULES).await;
    let login = || {
        vec![
            descriptor(&[("remote_address", "192.0.2.7"), ("path", "/login?x=1")]),
            descriptor(&[("user", "alice")]),
        ]
    };
    let first = server.ask(login()).await;
    assert_eq!(statuses(&first), [(Code::Ok, 1), (Code::Ok, 1)]);
    let limit = first.statuses[0].current_limit.as_ref().expect("a limit");
    assert_eq!(
        (limit.requests_per_unit, limit.unit(), limit.name.as_str()),
        (2, Unit::Minute, "login")
    );
    assert!(!is_over(&server.ask(login()).await));
    assert!(is_over(&server.ask(login()).await));
    // The refused request did not count for the customer.
    let customer = server.ask(vec![hits(descriptor(&[("user", "alice")]), 0)]).await;
    assert_eq!(statuses(&customer), [(Code::Ok, 3)]);
    // Another address is another client.
    assert!(!server.is_over(&[("remote_address", "192.0.2.8"), ("path", "/login")]).await);
}

#[tokio::test]
async fn hits_are_what_the_request_costs() {
    let mut server = start_rules(RULES).await;
    let user = || descriptor(&[("user", "alice")]);
    assert_eq!(statuses(&server.ask(vec![hits(user(), 4)]).await), [(Code::Ok, 1)]);
    assert!(is_over(&server.ask(vec![hits(user(), 2)]).await));
    assert!(!is_over(&server.ask(vec![hits(user(), 1)]).await));
    assert!(is_over(&server.ask(vec![hits(user(), 0)]).await));
}

#[tokio::test]
async fn what_rules_cannot_do_is_an_error_and_no_answer() {
    use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;

    let mut server = start_rules(RULES).await;
    let login = descriptor(&[("path", "/login")]);
    for (descriptor, what) in
        [(back(descriptor(&[("user", "alice")]), 1), "give back"), (login, "address")]
    {
        let domain = "edge".to_owned();
        let request = RateLimitRequest { domain, descriptors: vec![descriptor], hits_addend: 0 };
        let status = server.client.should_rate_limit(request).await.expect_err("an error");
        assert_eq!(status.code(), tonic::Code::InvalidArgument);
        assert!(status.message().contains(what), "{status}");
    }
}

#[tokio::test]
async fn a_call_that_cannot_say_when_its_request_ends_holds_no_place() {
    let places =
        "[[rules]]\nname = \"places\"\nkey = { const = \"all\" }\nlimits = [\"concurrent 2\"]\n";
    let mut server = start_rules(places).await;
    for call in 0..5 {
        assert!(!server.is_over(&[("user", "alice")]).await, "call {call}");
    }
}

#[tokio::test]
async fn rules_in_shadow_mode_count_and_refuse_nothing() {
    let read = |file: &std::path::Path| Policies::new().rules(file);
    let mut server = serve("rules.toml", RULES, read, |service| service.shadow(true)).await;
    let mut shadowed = Vec::new();
    for _ in 0..3 {
        let login = r#"{"path":"/login","ip":"192.0.2.7"}"#;
        let (status, answer) = post(&server.http, "/v1/take", login).await;
        assert_eq!(status, 200, "{answer}");
        shadowed.push(answer["limits"][0]["shadowed"] == true);
        assert!(!server.is_over(&[("remote_address", "192.0.2.8"), ("path", "/login")]).await);
    }
    assert_eq!(shadowed, [false, false, true]);
}

#[tokio::test]
async fn several_hits_are_no_cheaper_than_the_rule_says_for_each() {
    let rules =
        "[[rules]]\nname = \"all\"\nkey = { const = \"all\" }\nlimits = [\"20/hour\"]\ncost = 5\n";
    let mut server = start_rules(rules).await;
    let user = || descriptor(&[("user", "alice")]);
    assert_eq!(statuses(&server.ask(vec![user()]).await), [(Code::Ok, 15)]);
    assert_eq!(statuses(&server.ask(vec![hits(user(), 2)]).await), [(Code::Ok, 5)]);
    assert!(is_over(&server.ask(vec![hits(user(), u64::MAX)]).await));
    assert_eq!(statuses(&server.ask(vec![hits(user(), 0)]).await), [(Code::Ok, 5)]);
}

/// `/check`, `test` and `replay` serve such a request too.
#[tokio::test]
async fn a_rule_that_degrades_refuses_nobody_on_any_port() {
    let rules = |reject: &str| {
        format!(
            "[[rules]]\nname = \"api\"\nkey = {{ claim = \"user\" }}\nlimits = [\"1/hour\"]\nreject = {reject}\n"
        )
    };
    let take = |user: &str| json!({ "claims": { "user": user } });
    let mut server = start_rules(&rules("\"degrade\"")).await;
    let ask = async |what: &str, body: Value| {
        post(&server.http, &format!("/v1/{what}"), &body.to_string()).await
    };
    for degraded in [Value::Null, true.into()] {
        let (status, answer) = ask("take", take("a")).await;
        assert_eq!(
            (status, &answer["status"], &answer["admitted"]),
            (200, &200.into(), &true.into())
        );
        assert_eq!((&answer["degraded"], &answer["retry_after"]), (&degraded, &Value::Null));
    }
    let (status, answer) = ask("peek", take("a")).await;
    assert_eq!(
        (status, &answer["admitted"], &answer["degraded"]),
        (200, &true.into(), &true.into())
    );
    let (_, answers) = ask("batch", json!({ "requests": [take("b"), take("b")] })).await;
    assert_eq!(answers[1]["degraded"], true, "{answers}");
    // Nothing was charged, so nothing comes back.
    let (_, answer) = ask("take", json!({ "claims": { "user": "a" }, "reserve": true })).await;
    let settled = json!({ "ticket": answer["ticket"], "spent": 0 });
    assert_eq!(ask("settle", settled).await.0, 200);
    assert_eq!(ask("take", take("a")).await.1["degraded"], true);
    for _ in 0..3 {
        assert!(!server.is_over(&[("user", "c")]).await);
    }
    assert!(!is_over(&server.ask(vec![hits(descriptor(&[("user", "c")]), 0)]).await));

    // Nobody can be sent elsewhere here.
    let mut server = start_rules(&rules("{ redirect = \"https://busy.example.com/\" }")).await;
    for status in [200, 429] {
        let (answered, answer) = post(&server.http, "/v1/take", &take("a").to_string()).await;
        assert_eq!((answered, &answer["admitted"]), (status, &(status == 200).into()));
        assert_eq!(server.is_over(&[("user", "b")]).await, status == 429);
    }
    assert_eq!(post(&server.http, "/v1/peek", &take("a").to_string()).await.0, 429);
    assert!(is_over(&server.ask(vec![hits(descriptor(&[("user", "b")]), 0)]).await));
}
