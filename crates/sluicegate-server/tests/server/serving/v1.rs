//! The HTTP API.

use std::time::Duration;

use serde_json::{Value, json};
use sluicegate_server::Policies;

use super::http::{post, send};
use super::server::{Running, serve, start_rules};

const RULES: &str = r#"
[[rules]]
name = "api"
key = { claim = "customer" }
limits = ["3/minute", { rate = "concurrent 2", name = "places" }]
when = { path = "/api/*" }
"#;

async fn ask(server: &Running, what: &str, body: Value) -> (u16, Value) {
    post(&server.http, &format!("/v1/{what}"), &body.to_string()).await
}

fn request() -> Value {
    json!({ "path": "/api/x", "claims": { "customer": "acme" } })
}

#[tokio::test]
async fn take_charges_and_peek_does_not() {
    let server = start_rules(RULES).await;
    for _ in 0..5 {
        let (status, answer) = ask(&server, "peek", request()).await;
        assert_eq!((status, &answer["admitted"]), (200, &json!(true)));
    }
    for left in [2, 1, 0] {
        let (status, answer) = ask(&server, "take", request()).await;
        assert_eq!((status, &answer["limits"][0]["remaining"]), (200, &json!(left)));
    }
    let (status, answer) = ask(&server, "take", request()).await;
    assert_eq!(
        (status, &answer["admitted"], &answer["retry_after"]),
        (429, &json!(false), &json!(20))
    );
    assert_eq!(
        answer["limits"][0],
        json!({
            "policy": "api", "capacity": 3, "remaining": 0, "reset": 20, "refused": true
        })
    );
    server.clock.advance(Duration::from_secs(20));
    assert_eq!(ask(&server, "take", request()).await.0, 200);
    assert_eq!(
        ask(&server, "take", json!({ "path": "/" })).await,
        (
            200,
            json!({
                "status": 200, "admitted": true
            })
        )
    );
}

#[tokio::test]
async fn the_header_fields_say_the_same() {
    let server = start_rules(RULES).await;
    let body = request().to_string();
    let send = async |body: &str| {
        let length = body.len();
        send(&server.http, &format!(
            "POST /v1/take HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        )).await
    };
    let (_, head, _) = send(&body).await;
    assert!(head.contains("ratelimit: \"api\";r=2;t=20"), "{head}");
    assert!(head.contains("cache-control: no-store"), "{head}");
    for _ in 0..3 {
        send(&body).await;
    }
    let (status, head, _) = send(&body).await;
    assert_eq!(status, 429);
    assert!(head.contains("retry-after: 20"), "{head}");
}

#[tokio::test]
async fn a_reservation_holds_its_place_until_it_is_settled_by_what_it_cost() {
    let server = start_rules(RULES).await;
    let mut reserved = request();
    reserved["reserve"] = json!(true);
    let (_, first) = ask(&server, "take", reserved.clone()).await;
    let (_, second) = ask(&server, "take", reserved.clone()).await;
    let (status, third) = ask(&server, "take", reserved.clone()).await;
    assert_eq!((status, &third["limits"][1]["refused"]), (429, &json!(true)));
    assert_eq!(third.get("ticket"), None);

    let settle = |ticket: &Value, spent: u64| {
        ask(&server, "settle", json!({ "ticket": ticket, "spent": spent }))
    };
    assert_eq!(settle(&first["ticket"], 0).await, (200, json!({ "done": true })));
    assert_eq!(settle(&first["ticket"], 0).await, (404, json!({ "done": false })));
    let (_, left) = ask(&server, "peek", request()).await;
    assert_eq!(left["limits"][0]["remaining"], json!(2));
    assert_eq!(left["limits"][1]["remaining"], json!(1));

    // All of it is owed.
    assert_eq!(settle(&second["ticket"], 60).await.0, 200);
    let (_, left) = ask(&server, "peek", request()).await;
    assert_eq!(left["limits"][1]["remaining"], json!(2));
    let after = left["retry_after"].as_u64().expect("seconds");
    assert!((1_100..=1_200).contains(&after), "{after}");
}

#[tokio::test]
async fn a_reservation_is_settled_within_the_bound_of_its_rule() {
    for settle in ["\"response\"", "{ header = \"x-used\" }", "{ tokens = \"all\" }"] {
        let server = start_rules(&format!(
            "[[rules]]\nname = \"api\"\nkey = \"global\"\nlimits = [\"1000/day\"]\ncost = 10\n\
             settle = {settle}\nsettle_at_most = 50\n"
        ))
        .await;
        let mut left = Vec::new();
        for spent in [900, 50, 7, 0] {
            let (_, taken) = ask(&server, "take", json!({ "reserve": true })).await;
            let settled = json!({ "ticket": taken["ticket"], "spent": spent });
            assert_eq!(ask(&server, "settle", settled).await.0, 200);
            let (_, peeked) = ask(&server, "peek", json!({})).await;
            left.push(peeked["limits"][0]["remaining"].as_u64().expect("a number"));
        }
        assert_eq!(left, [950, 900, 893, 893], "{settle}");
    }
}

#[tokio::test]
async fn a_reservation_with_a_cost_of_its_own_is_settled_as_its_rule_says() {
    let bounded = "limits = [\"1000/day\"]\ncost = 10\nsettle = \"response\"\nsettle_at_most = 50";
    let tokens = "limits = [\"1000/day\"]\ncost = { tokens = \"all\", default = 300 }\n\
                  settle = { tokens = \"uncached\" }";
    let used = json!({ "tokens": { "input": 10, "output": 20 } });
    for (rule, spent, left) in [(bounded, json!({ "spent": 900 }), 950), (tokens, used, 970)] {
        let rules = format!("[[rules]]\nname = \"api\"\nkey = \"global\"\n{rule}\n");
        let server = start_rules(&rules).await;
        let (_, taken) = ask(&server, "take", json!({ "reserve": true, "cost": 500 })).await;
        assert_eq!(taken["limits"][0]["remaining"], json!(500));
        let mut settled = spent;
        settled["ticket"] = taken["ticket"].clone();
        assert_eq!(ask(&server, "settle", settled).await.0, 200);
        let (_, peeked) = ask(&server, "peek", json!({})).await;
        assert_eq!(peeked["limits"][0]["remaining"], json!(left), "{rule}");
    }
}

#[tokio::test]
async fn requests_and_tokens_are_reserved_and_settled_each_in_their_own_unit() {
    let server = start_rules(
        "[[rules]]\nname = \"requests\"\nkey = { claim = \"customer\" }\nlimits = [\"10/minute\"]\n\
         [[rules]]\nname = \"tokens\"\nkey = { claim = \"customer\" }\nlimits = [\"1000/minute\"]\n\
         cost = { tokens = \"all\", default = 300 }\nsettle = { tokens = \"uncached\" }\n",
    )
    .await;
    let request =
        |tokens: Value| json!({ "claims": { "customer": "a" }, "tokens": tokens, "reserve": true });
    let left = |answer: &Value| {
        [0, 1].map(|at: usize| answer["limits"][at]["remaining"].as_u64().expect("a number"))
    };
    let (status, taken) =
        ask(&server, "take", request(json!({ "input": 100, "output": 500 }))).await;
    assert_eq!((status, left(&taken)), (200, [9, 400]));
    let (status, refused) =
        ask(&server, "take", request(json!({ "input": 1, "output": 400 }))).await;
    assert_eq!((status, &refused["limits"][1]["refused"]), (429, &json!(true)));

    let ticket = &taken["ticket"];
    let used = json!({ "input": 100, "output": 20, "cached": 90 });
    for unclear in
        [json!({ "ticket": ticket }), json!({ "ticket": ticket, "spent": 1, "tokens": used })]
    {
        assert_eq!(ask(&server, "settle", unclear).await.0, 400);
    }
    let settled = ask(&server, "settle", json!({ "ticket": ticket, "tokens": used })).await;
    assert_eq!(settled, (200, json!({ "done": true })));
    let (_, now) = ask(&server, "take", request(Value::Null)).await;
    assert_eq!(left(&now), [8, 1_000 - 30 - 300]);
}

#[tokio::test]
async fn a_request_without_tokens_is_told_to_describe_them() {
    let server = start_rules(
        "[[rules]]\nname = \"tokens\"\nkey = \"global\"\nlimits = [\"1000/minute\"]\ncost = { tokens = \"all\" }\n",
    )
    .await;
    let (status, answer) = ask(&server, "take", json!({})).await;
    let said = answer["error"].as_str().expect("a sentence");
    assert_eq!(status, 400, "{said}");
    assert!(said.contains("`tokens`") && said.contains("`default`"), "{said}");
    // What a client of this API can do comes first.
    assert!(said.find("`tokens`") < said.find("in code"), "{said}");
    let described = json!({ "tokens": { "input": 10, "output": 20 } });
    assert_eq!(ask(&server, "take", described).await.0, 200);
}

#[tokio::test]
async fn a_forgotten_reservation_gives_its_place_back_and_keeps_its_charge() {
    let server = start_rules(RULES).await;
    let mut reserved = request();
    reserved["reserve"] = json!(true);
    reserved["cost"] = json!(2);
    let (status, _) = ask(&server, "take", reserved.clone()).await;
    assert_eq!(status, 200);
    server.clock.advance(Duration::from_secs(599));
    assert_eq!(ask(&server, "peek", request()).await.1["limits"][1]["remaining"], json!(0));
    server.clock.advance(Duration::from_secs(1));
    assert_eq!(ask(&server, "peek", request()).await.1["limits"][1]["remaining"], json!(2));
}

#[tokio::test]
async fn a_forgotten_reservation_gives_its_place_back_although_nobody_else_reserves() {
    let one = "[[rules]]\nname = \"one\"\nkey = \"global\"\nlimits = [\"concurrent 1\"]\n";
    let server = start_rules(one).await;
    for _ in 0..2 {
        let (status, _) = ask(&server, "take", json!({ "reserve": true })).await;
        assert_eq!(status, 200);
        assert_eq!(ask(&server, "take", json!({})).await.0, 429);
        server.clock.advance(Duration::from_secs(600));
        assert_eq!(ask(&server, "take", json!({})).await.0, 200);
    }
    // One that was settled does not keep the next from being closed.
    let (_, taken) = ask(&server, "take", json!({ "reserve": true })).await;
    server.clock.advance(Duration::from_secs(300));
    let settled = json!({ "ticket": taken["ticket"], "spent": 1 });
    assert_eq!(ask(&server, "settle", settled).await.0, 200);
    assert_eq!(ask(&server, "take", json!({ "reserve": true })).await.0, 200);
    server.clock.advance(Duration::from_secs(599));
    assert_eq!(ask(&server, "take", json!({})).await.0, 429);
    server.clock.advance(Duration::from_secs(1));
    assert_eq!(ask(&server, "take", json!({})).await.0, 200);
}

#[tokio::test]
async fn each_request_of_a_batch_is_decided_by_itself() {
    let server = start_rules(RULES).await;
    let mut requests = vec![request(); 4];
    requests.push(json!({ "path": "/api/x", "claims": { "customer": "other" } }));
    let (status, answers) = ask(&server, "batch", json!({ "requests": requests })).await;
    assert_eq!(status, 200);
    let statuses: Vec<_> =
        answers.as_array().expect("a list").iter().map(|one| &one["status"]).collect();
    assert_eq!(statuses, [&json!(200), &json!(200), &json!(200), &json!(429), &json!(200)]);
    let many = json!({ "requests": vec![request(); 101] });
    assert_eq!(ask(&server, "batch", many).await.0, 400);
}

#[tokio::test]
async fn a_reset_needs_the_servers_leave() {
    let server = start_rules(RULES).await;
    assert_eq!(ask(&server, "reset", request()).await.0, 404);
    let read = |file: &std::path::Path| Policies::new().rules(file);
    let server = serve("rules.toml", RULES, read, |service| service.allow_resets(true)).await;
    for _ in 0..4 {
        ask(&server, "take", request()).await;
    }
    assert_eq!(ask(&server, "reset", request()).await, (200, json!({ "done": true })));
    assert_eq!(ask(&server, "take", request()).await.0, 200);
}

#[tokio::test]
async fn a_page_in_a_browser_cannot_send_requests_of_its_own() {
    let server = start_rules(RULES).await;
    let body = request().to_string();
    let length = body.len();
    let head =
        "POST /v1/take HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: text/plain\r\n";
    let sent = send(&server.http, &format!("{head}content-length: {length}\r\n\r\n{body}")).await;
    assert_eq!(sent.0, 415);
    assert_eq!(ask(&server, "peek", request()).await.1["limits"][0]["remaining"], json!(3));
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_said() {
    let server = start_rules(RULES).await;
    for (body, status, what) in [
        (json!({ "path": "/api/x" }), 400, "customer"),
        (json!({ "pth": "/api/x" }), 400, "pth"),
        (json!({ "ip": "nobody" }), 400, "IP address"),
        (json!({ "path": "/api/x", "claims": { "customer": "acme" }, "cost": 9 }), 422, ""),
        (json!([]), 400, ""),
    ] {
        let (got, answer) = ask(&server, "take", body.clone()).await;
        assert_eq!(got, status, "{body}: {answer}");
        assert!(answer.to_string().contains(what), "{body}: {answer}");
    }
    for ticket in ["", "x", "+0000000000000000000000000000000", &"0".repeat(33)] {
        let settled = ask(&server, "settle", json!({ "ticket": ticket, "spent": 1 })).await;
        assert_eq!(settled, (404, json!({ "done": false })), "{ticket}");
    }
}

#[test]
fn the_description_of_the_api_names_every_call() {
    let description = sluicegate_server::api::v1::openapi();
    let paths: Vec<_> = description.paths.paths.keys().map(String::as_str).collect();
    assert_eq!(paths, ["/v1/batch", "/v1/peek", "/v1/reset", "/v1/settle", "/v1/take"]);
}

#[tokio::test]
async fn a_query_at_the_end_of_the_path_does_not_evade_a_rule() {
    let server = start_rules(
        "[[rules]]\nname = \"login\"\nkey = { query = \"user\" }\nlimits = [\"1/minute\"]\nwhen = { path = \"/login\" }\n",
    )
    .await;
    let ask = async |body| ask(&server, "take", body).await.0;
    assert_eq!(ask(json!({ "path": "/login", "query": "user=a" })).await, 200);
    assert_eq!(ask(json!({ "path": "/login?user=a" })).await, 429);
    assert_eq!(ask(json!({ "path": "/login?user=b" })).await, 200);
    // Which of the two is meant?
    assert_eq!(ask(json!({ "path": "/login?user=c", "query": "user=d" })).await, 400);
}

#[tokio::test]
async fn a_name_that_is_there_twice_is_an_error() {
    let server = start_rules(RULES).await;
    for (body, said) in [
        (r#"{"claims":{"customer":"a","customer":"b"}}"#, "`customer` is there twice"),
        (r#"{"headers":{"x-key":"a","X-Key":"b"}}"#, "`x-key` is there twice"),
    ] {
        let (status, answer) = post(&server.http, "/v1/take", body).await;
        assert_eq!(status, 400, "{body}");
        assert!(answer["error"].to_string().contains(said), "{answer}");
    }
    // Names of claims differ by case.
    let both = r#"{"path":"/api/x","claims":{"customer":"a","Customer":"b"}}"#;
    assert_eq!(post(&server.http, "/v1/take", both).await.0, 200);
}

/// Node, among others, hands its programs the target as it came: with a fragment, or with a scheme and a host.
#[tokio::test]
async fn a_target_in_any_form_is_the_path_that_a_framework_routes() {
    let server = start_rules(RULES).await;
    let take = async |path: &str| {
        let asked = json!({ "path": path, "claims": { "customer": "acme" } });
        ask(&server, "take", asked).await.0
    };
    for path in ["http://host/api/x", "/api/x#a", "HTTP://host:80/api/x?a#b"] {
        assert_eq!(take(path).await, 200, "{path}");
    }
    assert_eq!(take("/api/x#b").await, 429);
    assert_eq!(take("http://host/other").await, 200);
}
