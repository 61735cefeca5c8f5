//! Clients and strangers that want a limit to look elsewhere.

use sluicegate_core::key::Proxies;

use super::RULES;
use super::server::{forwarded, start, start_with};

#[tokio::test]
async fn nobody_but_a_named_proxy_is_believed() {
    let others = Proxies::try_from(["192.0.2.0/24"]).expect("a network");
    let mut server = start_with(RULES, |service| service.proxies(others)).await;
    for path in ["/check", "/check/nginx", "/check/envoy/"] {
        let answer = server.ask(path, &forwarded("GET", "/", "192.0.2.7")).await;
        assert_eq!((answer.status, answer.field("sluicegate-status")), (403, ""), "{path}");
        assert!(answer.body.contains("--proxies"), "{}", answer.body);
    }
    let refused = server.grpc.check(super::envoy::question("/", "192.0.2.7")).await;
    assert_eq!(refused.expect_err("a refusal").code(), tonic::Code::PermissionDenied);
}

#[tokio::test]
async fn what_a_client_adds_to_the_forwarding_field_changes_nothing() {
    let server = start(RULES).await;
    let mut refused = 0;
    for attempt in 0..10 {
        let address = format!("203.0.113.{attempt}, unknown,, 192.0.2.7");
        refused += usize::from(server.forwarded("/", &address).await.status == 429);
    }
    assert_eq!(refused, 8);
    // A line of the client's, before that of the proxy.
    let mut fields = forwarded("GET", "/", "203.0.113.77").to_vec();
    fields.push(("x-forwarded-for", "192.0.2.7:4711"));
    assert_eq!(server.ask("/check", &fields).await.status, 429);
}

#[tokio::test]
async fn further_proxies_are_believed_if_the_rules_name_them() {
    let rules = format!("proxies = {{ trusted = [\"10.0.0.0/8\"] }}\n{RULES}");
    let server = start(&rules).await;
    // A load balancer in front of the proxy that asks.
    for status in [200, 200, 429] {
        let answer = server.forwarded("/", "203.0.113.1, 198.51.100.9, 10.0.0.1").await;
        assert_eq!(answer.status, status);
    }
    assert_eq!(server.forwarded("/", "203.0.113.1, 198.51.100.8, 10.0.0.1").await.status, 200);
}

#[tokio::test]
async fn fields_of_other_proxies_are_not_read() {
    let rules =
        format!("{RULES}when = {{ path = \"/limited\" }}\n").replace("2/minute", "1/minute");
    let server = start(&rules).await;
    let disguise = [
        ("x-original-uri", "/free"),
        ("x-original-url", "http://other.example/free"),
        ("x-original-method", "OPTIONS"),
        ("x-rewrite-url", "/free"),
        ("forwarded", "for=203.0.113.9"),
        ("x-real-ip", "203.0.113.9"),
    ];
    let mut fields = forwarded("GET", "/limited", "192.0.2.7").to_vec();
    fields.extend(disguise);
    let statuses =
        [server.ask("/check", &fields).await.status, server.ask("/check", &fields).await.status];
    assert_eq!(statuses, [200, 429]);
}

#[tokio::test]
async fn a_question_that_does_not_say_what_it_is_about_is_400() {
    let server = start(RULES).await;
    let whole = forwarded("GET", "/", "192.0.2.7");
    for (name, _) in whole {
        let part: Vec<_> = whole.into_iter().filter(|(other, _)| *other != name).collect();
        let answer = server.ask("/check", &part).await;
        assert_eq!(answer.status, 400, "{name}");
        assert_eq!(answer.body, format!("there is no field `{name}`: let the proxy send it\n"));
        if name != "x-forwarded-for" {
            let mut twice = whole.to_vec();
            twice.push((name, "GET"));
            let answer = server.ask("/check", &twice).await;
            let text = format!("there are two fields `{name}`, expected one\n");
            assert_eq!((answer.status, answer.body), (400, text));
        }
    }
    for (method, uri, address, text) in [
        ("G T", "/", "192.0.2.7", "`G T` is not a method\n"),
        ("GET", "users", "192.0.2.7", "`users` is not a path\n"),
        ("GET", "", "192.0.2.7", "`` is not a path\n"),
        ("GET", "/", "_hidden", "`x-forwarded-for` ends with `_hidden`, which is not an address\n"),
        ("GET", "/", "192.0.2.7,", "`x-forwarded-for` ends with ``, which is not an address\n"),
    ] {
        let answer = server.ask("/check", &forwarded(method, uri, address)).await;
        assert_eq!((answer.status, answer.body.as_str()), (400, text));
    }
    let address = [("x-forwarded-for", "192.0.2.7")];
    assert_eq!(server.ask("/check/envoy", &address).await.status, 404);
}

#[tokio::test]
async fn a_host_that_contradicts_the_target_is_400() {
    let rules = RULES.replace("\"ip\"", "\"host\"");
    let server = start(&rules).await;
    let answer = server.forwarded("http://other.example/", "192.0.2.7").await;
    assert_eq!(answer.status, 400, "{}", answer.body);
}

#[tokio::test]
async fn ipv6_addresses_are_read_in_every_spelling() {
    let server = start(RULES).await;
    for (address, status) in [
        ("2001:db8::7", 200),
        ("[2001:db8::7]", 200),
        ("[2001:db8::7]:50123", 429),
        ("::ffff:192.0.2.7", 200),
        ("192.0.2.7", 200),
        ("192.0.2.7:80", 429),
        ("fe80::1%eth0", 200),
        ("[fe80::1%eth1]", 200),
        ("[fe80::1%2]:443", 429),
        ("fe80::1%", 400),
        ("192.0.2.8%eth0", 400),
        ("[2001:db8::8]443", 400),
        ("[2001:db8::8]:70000", 400),
    ] {
        assert_eq!(server.forwarded("/", address).await.status, status, "{address}");
    }
}
