use http::Method;
use sluicegate::key::Path;
use sluicegate_client::outgoing::Context as Origins;

use super::*;

#[tokio::test]
async fn a_request_that_is_late_has_a_copy_and_the_first_response_is_taken() {
    let (server, service) = warm(|settings| settings).await;
    server.plan(&[after(1_000), after(10)]);
    let begun = server.clock.now();
    assert_eq!(server.until(send(&service, get())).await, (200, 2));
    let took = (server.clock.now() - begun) / 1_000;
    assert!((20..=25).contains(&took), "{took}");
    assert_eq!(server.running(), 0, "the late one is cancelled");

    server.plan(&[after(15), after(1_000)]);
    assert_eq!(server.until(send(&service, get())).await, (200, 3));
    assert_eq!((server.seen(), server.running()), (4, 0), "the copy is cancelled");
}

#[tokio::test]
async fn a_request_that_is_not_late_has_no_copy() {
    let (server, service) = warm(|settings| settings).await;
    for _ in 0..50 {
        server.until(send(&service, get())).await;
    }
    assert_eq!(server.seen(), 50);
}

#[tokio::test]
async fn what_may_do_harm_when_it_arrives_twice_has_no_copy() {
    let (server, service) = warm(|settings| settings.repeat_when(Path.matches("/search"))).await;
    let request = |method: Method, path: &str| {
        let uri = format!("https://api.example{path}");
        Request::builder().method(method).uri(uri).body(String::new()).unwrap()
    };
    let mut keyed = request(Method::POST, "/pay");
    keyed.headers_mut().insert("idempotency-key", "8e03978e".parse().unwrap());
    for (request, expected) in [
        (request(Method::POST, "/pay"), 1),
        (request(Method::PATCH, "/pay"), 1),
        (keyed, 2),
        (request(Method::POST, "/search"), 2),
        (request(Method::DELETE, "/pay"), 2),
    ] {
        server.plan(&[after(100), after(100)]);
        let before = server.seen();
        server.until(send(&service, request)).await;
        assert_eq!(server.seen() - before, expected);
        server.state.lock().unwrap().plan.clear();
    }
}

#[tokio::test]
async fn a_copy_that_fails_changes_nothing() {
    for status in [0, 429, 503] {
        let (server, service) = warm(|settings| settings).await;
        server.plan(&[after(200), Answer { millis: 1, status }]);
        assert_eq!(server.until(send(&service, get())).await, (200, 1), "{status}");
        assert_eq!(server.seen(), 2);
    }
}

#[tokio::test]
async fn a_request_that_fails_while_its_copy_is_under_way_waits_for_the_copy() {
    for status in [0, 429, 503] {
        let failing = Answer { millis: 20, status };
        let (server, service) = warm(|settings| settings).await;
        server.plan(&[failing, after(15)]);
        assert_eq!(server.until(send(&service, get())).await, (200, 2), "{status}");
        // If both fail, the first one's failure is told.
        server.plan(&[failing, Answer { millis: 15, status: 504 }]);
        assert_eq!(server.until(send(&service, get())).await.0, status);
        // Without a copy under way it is told at once.
        server.plan(&[Answer { millis: 5, status }]);
        assert_eq!(server.until(send(&service, get())).await.0, status);
        assert_eq!(server.seen(), 5);
    }
}

#[tokio::test]
async fn a_server_that_fails_and_stalls_the_copy_does_not_hide_the_failure() {
    let (server, service) = warm(|settings| settings).await;
    server.plan(&[Answer { millis: 20, status: 503 }, after(1_000_000)]);
    let begun = server.clock.now();
    assert_eq!(server.until(send(&service, get())).await, (503, 1));
    let took = (server.clock.now() - begun) / 1_000;
    assert!((30..=35).contains(&took), "{took}");
    assert_eq!(server.running(), 0);
}

#[tokio::test]
async fn an_answer_that_no_other_attempt_makes_better_is_taken() {
    let (server, service) = warm(|settings| settings).await;
    server.plan(&[after(200), Answer { millis: 1, status: 404 }]);
    assert_eq!(server.until(send(&service, get())).await, (404, 2));
}

#[tokio::test]
async fn a_caller_that_leaves_cancels_both() {
    for left_after in [5, 15, 50] {
        let (server, service) = warm(|settings| settings).await;
        server.plan(&[after(1_000), after(1_000)]);
        let sent = send(&service, get());
        server.pass(left_after).await;
        let seen = server.seen();
        assert_eq!(seen, if left_after < 10 { 1 } else { 2 });
        assert_eq!(server.running(), seen);
        sent.abort();
        server.pass(1_000).await;
        assert_eq!((server.seen(), server.running()), (seen, 0));
    }
}

#[tokio::test]
async fn a_copy_that_would_come_after_the_deadline_is_not_sent() {
    let (server, service) = warm(|settings| settings).await;
    let mut request = get();
    // By the clock of the machine, which contexts go by.
    request.extensions_mut().insert(Origins::new().timeout(5 * MS));
    server.plan(&[after(100)]);
    server.until(send(&service, request)).await;
    assert_eq!(server.seen(), 1);
}

#[tokio::test]
async fn layers_that_hedge_do_not_multiply() {
    let server = Server::new();
    let layer = || HedgeLayer::builder().clock(&server.clock).build().unwrap();
    // A task in between.
    let inner = tower::buffer::Buffer::new(layer().layer(server.clone()), 8);
    let service = layer().layer(inner);
    warm_up(&server, &service).await;
    server.plan(&[after(1_000); 4]);
    server.until(send(&service, get())).await;
    assert_eq!(server.seen(), 2);
}

#[tokio::test]
async fn each_key_has_latencies_of_its_own() {
    let (server, service) = warm(|settings| settings.by(Path)).await;
    let slow = || Request::get("https://api.example/slow").body(String::new()).unwrap();
    server.plan(&[after(100); 20]);
    for _ in 0..20 {
        server.until(send(&service, slow())).await;
    }
    assert_eq!(server.seen(), 20);
}

#[test]
fn settings_that_make_no_sense_fail_when_the_layer_is_made() {
    for part in [0.0, 0.49, 1.0, 95.0, f64::NAN, 1e-320, f64::MAX] {
        let sentence = HedgeLayer::builder().percentile(part).build().unwrap_err().to_string();
        assert!(sentence.contains(&format!("{part:?} was given")), "{sentence}");
    }
    for keys in [0, usize::MAX] {
        let sentence = HedgeLayer::builder().keys(keys).build().unwrap_err().to_string();
        assert!(sentence.contains("keys are measured"), "{sentence}");
    }
}
