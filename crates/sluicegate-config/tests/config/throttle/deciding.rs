use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use http::{Request, Response};
use sluicegate::adapter::Peer;
use tower::{Layer, Service};

use super::*;

/// A request that was sent, and its status once it is there.
pub(super) struct Sent {
    response: Pin<Box<dyn Future<Output = u16>>>,
    status: Option<u16>,
}

/// Sends requests to handlers that never end, through a layer of the throttle of a file. Returns what waits.
pub(super) fn send(throttle: &FileThrottle, requests: Vec<Request<String>>) -> Vec<Sent> {
    let service = tower::service_fn(|_: Request<String>| {
        std::future::pending::<Result<Response<String>, Infallible>>()
    });
    let mut service = throttle.layer().layer(service);
    let send = |request| -> Sent {
        let response = service.call(request);
        let response = Box::pin(async { response.await.unwrap().status().as_u16() });
        let mut sent = Sent { response, status: None };
        let _ = poll(&mut sent);
        sent
    };
    requests.into_iter().map(send).collect()
}

pub(super) fn poll(sent: &mut Sent) -> Poll<u16> {
    if sent.status.is_none() {
        match sent.response.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(status) => sent.status = Some(status),
            Poll::Pending => return Poll::Pending,
        }
    }
    sent.status.map_or(Poll::Pending, Poll::Ready)
}

pub(super) fn get(path: &str) -> Request<String> {
    Request::get(path).body(String::new()).unwrap()
}

pub(super) fn with(path: &str, header: &'static str, value: &str, peer: &str) -> Request<String> {
    let mut request = get(path);
    request.headers_mut().insert(header, value.parse().unwrap());
    request.extensions_mut().insert(Peer(peer.parse().unwrap()));
    request
}

fn waiting(throttle: &FileThrottle) -> Vec<usize> {
    throttle.throttle().snapshot().classes.iter().map(|class| class.requests).collect()
}

const ONE: &str = "capacity = { in_flight = 1 }\nqueue = '1 second'\n";

#[test]
fn the_class_is_that_of_the_header_of_a_named_peer_else_of_the_first_condition_that_holds() {
    let throttle = throttle(&format!(
        "{ONE}class_header = {{ header = 'x-class', trusted = ['10.0.0.0/8'] }}
         class = [{{ name = 'CRITICAL_PLUS', when = {{ path = '/checkout' }} }},
                  {{ name = 'CRITICAL', when = {{ path = ['/checkout', '/cart'] }} }}]
         default_class = 'SHEDDABLE_PLUS'"
    ));
    let requests = vec![
        get("/running"),
        get("/checkout"),
        get("/cart"),
        get("/other"),
        with("/checkout", "x-class", "SHEDDABLE", "10.0.0.1"),
        with("/other", "x-class", "CRITICAL_PLUS", "192.0.2.1"),
        with("/cart", "x-class", "highest", "10.0.0.1"),
    ];
    let _sent = send(&throttle, requests);
    assert_eq!(waiting(&throttle), [1, 2, 2, 1]);
    // `highest` is no class, and nobody knows the peer of the first four requests.
    assert_eq!(throttle.throttle().snapshot().unreadable.classes, 5);
}

#[test]
fn partitions_exemptions_and_deadlines_are_those_of_the_file() {
    let throttle = throttle(&format!(
        "{ONE}partitions = [{{ name = 'checkout', share = '100%', when = {{ path = '/checkout' }} }}]
         exempt = {{ path = '/health' }}
         deadline = {{ header = 'x-deadline-ms', otherwise = '1 hour' }}
         when_shed = {{ redirect = 'https://busy.example.com/', status = 302 }}"
    ));
    let mut sent = send(
        &throttle,
        vec![
            get("/running"),
            get("/checkout"),
            get("/health"),
            get("/waits"),
            with("/late", "x-deadline-ms", "0", "10.0.0.1"),
        ],
    );
    let snapshot = throttle.throttle().snapshot();
    assert_eq!((snapshot.running, snapshot.partitions[0].running), (2, 1));
    assert_eq!(snapshot.queued, 1 + usize::from(poll(&mut sent[4]).is_pending()));
    let service = tower::service_fn(|_: Request<String>| async {
        Ok::<_, Infallible>(Response::new(String::new()))
    });
    let throttle = super::throttle(
        "capacity = { requests_per_second = 1 }\nqueue = { cost = 1 }\nannounce = true
         when_shed = { redirect = 'https://busy.example.com/', status = 302 }",
    );
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut service = throttle.layer().layer(service);
        let first = service.call(get("/")).await.unwrap();
        assert!(first.headers().contains_key("sluicegate-admission"));
        let _waits = service.call(get("/"));
        let shed = service.call(get("/")).await.unwrap();
        assert_eq!(
            (shed.status().as_u16(), &shed.headers()["location"]),
            (302, &"https://busy.example.com/".parse().unwrap())
        );
    });
}

#[test]
fn no_spelling_of_a_path_makes_a_request_more_critical() {
    let asked = |settings: &str, path: &str| {
        let throttle = throttle(&format!("{ONE}{settings}"));
        let _sent = send(&throttle, vec![get("/running"), get(path)]);
        waiting(&throttle).iter().position(|count| *count > 0).unwrap()
    };
    let batch = "class = [{ name = 'SHEDDABLE', when = { path = '/batch/*' } }]
                 default_class = 'CRITICAL'";
    for path in ["/batch/export", "/batch%2Fexport", "//batch/export", "/x/../batch/export"] {
        assert_eq!(asked(batch, path), 3, "{path}");
    }
    assert_eq!(asked(batch, "/other"), 1);
    assert_eq!(asked(batch, &format!("/batch/{}", "x".repeat(8_000))), 3, "no pattern reads it");
    let query = "class = [{ name = 'SHEDDABLE', when = { query = { batch = '1' } } }]
                 default_class = 'CRITICAL'";
    assert_eq!(asked(query, &format!("/?batch=1&{}", "a=b&".repeat(1_001))), 3);
    assert_eq!(asked(query, "/?a=b"), 1);
    // An uncertain match reaches no higher class, not even through a later one.
    let checkout = "class = [{ name = 'CRITICAL_PLUS', when = { path = '/checkout/*' } },
                             { name = 'SHEDDABLE', when = { path = '/checkout/{id}/slow' } },
                             { name = 'CRITICAL', when = { not = { header = { x-slow = true } } } }]
                    default_class = 'SHEDDABLE_PLUS'";
    assert_eq!(asked(checkout, "/checkout/1"), 0);
    assert_eq!(asked(checkout, "/checkout%2F1"), 1);
    assert_eq!(asked(checkout, "/checkout%2F1/slow"), 3);
}

/// A proxy knows no routes, so by method and route all requests would be one kind.
#[test]
fn a_proxy_tells_requests_apart_without_routes() {
    let unread = |more: &str| {
        let throttle = throttle(&format!("{ONE}{more}"));
        let _sent = send(&throttle, vec![get("/")]);
        throttle.throttle().snapshot().unreadable.keys
    };
    let proxy = "[listen]\naddress = '127.0.0.1:0'\n[upstream]\nurl = 'http://127.0.0.1:1'";
    assert_eq!((unread(""), unread(proxy)), (1, 0));
}

#[test]
fn flows_are_those_of_the_file() {
    let throttle = throttle(&format!("{ONE}fair_by = {{ header = 'x-customer' }}"));
    let ask = |customer: &str| with("/", "x-customer", customer, "10.0.0.1");
    let _sent = send(&throttle, vec![ask("a"), ask("a"), ask("a"), ask("b")]);
    let flows: Vec<_> =
        throttle.throttle().snapshot().classes[3].flows.iter().map(|flow| flow.requests).collect();
    assert_eq!(flows, [2, 1]);
}
