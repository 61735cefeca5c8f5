//! What the operator is told. A program of its own: other tests have no subscriber, and `tracing` remembers that of the places
//! that they pass at the same moment.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use sluicegate::{Header, ManualClock};
use sluicegate_throttle::Throttle;
use tower::{Layer, Service, service_fn};

#[test]
fn what_is_shed_and_what_cannot_be_read_is_told_to_the_operator() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG);
    let subscriber = subscriber.without_time().with_ansi(false).with_writer({
        let log = log.clone();
        move || log.clone()
    });
    tracing::subscriber::with_default(subscriber.finish(), || {
        let builder = Throttle::builder().in_flight(1).queue(Duration::from_millis(4));
        let throttle = builder.clock(ManualClock::new()).named("shop").build().unwrap();
        let mut service = throttle.layer().fair_by(Header("x-customer")).layer(service_fn(
            |_: Request<String>| pending::<Result<Response<Full<Bytes>>, Infallible>>(),
        ));
        // One runs, four wait, and one is shed.
        let requests: Vec<_> = (0..6).map(|_| service.call(Request::new(String::new()))).collect();
        drop(requests);
    });
    let text = log.text();
    let shed =
        "a request is shed throttle=\"shop\" class=\"SHEDDABLE\" reason=\"full\" retry_after_ms=";
    assert!(text.contains(shed), "{text}");
    let unread = "classes, deadlines or keys of requests cannot be read: their defaults are used \
                  throttle=\"shop\" classes=0 deadlines=0 keys=1";
    assert_eq!(text.matches(unread).count(), 1, "once a second: {text}");
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
