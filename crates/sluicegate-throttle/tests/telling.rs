//! What the operator is told. A program of its own: other tests have no subscriber, and `tracing` remembers that of the places
//! that they pass at the same moment.

use std::convert::Infallible;
use std::future::pending;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::Waker;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use sluicegate::adapter::Peer;
use sluicegate::{Header, ManualClock};
use sluicegate_throttle::layer::ClassHeader;
use sluicegate_throttle::{Class, Throttle};
use tower::{Layer, Service, service_fn};
use tracing::span::{Attributes, Id};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt};

#[test]
fn what_is_shed_and_what_cannot_be_read_is_told_to_the_operator() {
    let text = told_by(|| {
        let builder = Throttle::builder().in_flight(1).queue(Duration::from_millis(4));
        let throttle = builder.clock(ManualClock::new()).named("shop").build().unwrap();
        let mut service = throttle.layer().fair_by(Header("x-customer")).layer(service_fn(
            |_: Request<String>| pending::<Result<Response<Full<Bytes>>, Infallible>>(),
        ));
        // One runs, four wait, and one is shed.
        let requests: Vec<_> = (0..6).map(|_| service.call(Request::new(String::new()))).collect();
        drop(requests);
    });
    let shed =
        "a request is shed throttle=\"shop\" class=\"SHEDDABLE\" reason=\"full\" retry_after_ms=";
    assert!(text.contains(shed), "{text}");
    let unread = "classes, deadlines or keys of requests cannot be read: their defaults are used \
                  throttle=\"shop\" classes=0 deadlines=0 keys=1";
    assert_eq!(text.matches(unread).count(), 1, "once a second: {text}");
}

#[test]
fn that_no_stated_class_is_believed_is_told_once() {
    let named =
        || ClassHeader::new("X-Class", Class::SHEDDABLE).from_peers(["10.0.0.0/8"]).unwrap();
    let unnamed = ClassHeader::new("X-Class", Class::SHEDDABLE);
    let empty = unnamed.clone().from_peers("").unwrap();
    let (known, unknown, stranger) = (Some([10, 0, 0, 1]), None, Some([192, 0, 2, 1]));
    let no_address = ["not believed: the peer address is unknown; "].as_slice();
    let no_peers = ["not believed: name the peers that may state it with `from_peers`"].as_slice();
    // The header, the peers of its requests, what the log warns of, and how many classes cannot be read.
    let cases = [
        (named(), [unknown; 3], no_address, 3),
        (named(), [known, unknown, unknown], no_address, 2),
        (named(), [known; 3], &[], 0),
        (named(), [stranger; 3], &[], 0),
        (unnamed, [known, unknown, known], no_peers, 0),
        (empty, [known; 3], no_peers, 0),
    ];
    for (class, peers, warnings, unreadable) in cases {
        let mut count = 0;
        let text = told_by(|| {
            let throttle = Throttle::builder().in_flight(100).queue_cost(1).build().unwrap();
            // All clones of a layer warn once.
            let layer = throttle.layer().criticality(class.clone());
            for peer in peers {
                let mut request = Request::new(String::new());
                request.headers_mut().insert("x-class", "CRITICAL".parse().unwrap());
                if let Some(peer) = peer {
                    request.extensions_mut().insert(Peer(IpAddr::from(peer)));
                }
                let mut service = layer.clone().layer(service_fn(|_: Request<String>| {
                    pending::<Result<Response<Full<Bytes>>, Infallible>>()
                }));
                drop(service.call(request));
            }
            count = throttle.snapshot().unreadable.classes;
        });
        assert_eq!(text.matches("not believed").count(), warnings.len(), "{peers:?}: {text}");
        assert!(warnings.iter().all(|warning| text.contains(warning)), "{peers:?}: {text}");
        assert_eq!(count, unreadable, "{peers:?}");
    }
}

/// Asks the throttle whenever it is told something, and counts that.
struct Asks {
    throttle: Throttle,
    count: Arc<AtomicUsize>,
}

impl Asks {
    fn ask(&self) {
        let _ = self.throttle.snapshot();
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

impl<S: Subscriber> tracing_subscriber::Layer<S> for Asks {
    fn on_new_span(&self, _: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        self.ask();
    }

    fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
        self.ask();
    }
}

#[test]
fn a_subscriber_may_ask_the_throttle_that_tells_it() {
    let builder = Throttle::builder().in_flight(1).queue_cost(1_000);
    let throttle = builder.clock(ManualClock::new()).build().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let asks = Asks { throttle: throttle.clone(), count: Arc::clone(&count) };
    let (done, is_done) = mpsc::channel();
    // In another thread: one that waits for itself would never come back.
    thread::spawn(move || {
        let mut service = throttle.layer().fair_by(Header("x-customer")).layer(service_fn(
            |_: Request<String>| pending::<Result<Response<Full<Bytes>>, Infallible>>(),
        ));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(asks), || {
            // One runs, one waits and one is shed.
            drop([(); 3].map(|()| service.call(Request::new(String::new()))));
        });
        done.send(()).unwrap();
    });
    is_done.recv_timeout(Duration::from_secs(20)).expect("it waits for itself");
    // The key that cannot be read, the wait and what is shed.
    assert_eq!(count.load(Ordering::Relaxed), 3);
}

/// Panics when a span is entered.
struct Panics;

impl<S: Subscriber> tracing_subscriber::Layer<S> for Panics {
    fn on_enter(&self, _: &Id, _: Context<'_, S>) {
        panic!("the subscriber panics, as told");
    }
}

#[test]
fn a_subscriber_that_panics_as_a_request_starts_gives_its_place_back() {
    let builder = Throttle::builder().in_flight(1).queue_cost(1_000);
    let throttle = builder.clock(ManualClock::new()).build().unwrap();
    let mut service = throttle.layer().layer(service_fn(|_: Request<String>| {
        pending::<Result<Response<Full<Bytes>>, Infallible>>()
    }));
    let subscriber = tracing_subscriber::registry().with(Panics);
    tracing::subscriber::with_default(subscriber, || {
        let running = service.call(Request::new(String::new()));
        let mut waits = Box::pin(service.call(Request::new(String::new())));
        let mut cx = std::task::Context::from_waker(Waker::noop());
        assert!(waits.as_mut().poll(&mut cx).is_pending());
        drop(running);
        assert_eq!(throttle.snapshot().running, 1, "it is told to start");
        let polled = catch_unwind(AssertUnwindSafe(|| waits.as_mut().poll(&mut cx).is_ready()));
        assert!(polled.is_err());
        assert_eq!(throttle.snapshot().running, 0);
    });
}

/// What `run` logs.
fn told_by(run: impl FnOnce()) -> String {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG);
    let subscriber = subscriber.without_time().with_ansi(false).with_writer({
        let log = log.clone();
        move || log.clone()
    });
    tracing::subscriber::with_default(subscriber.finish(), run);
    log.text()
}

#[derive(Clone, Default)]
struct Log(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
