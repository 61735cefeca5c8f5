//! TLS connections to servers with certificates that are made here.

use std::error::Error;
use std::io::Write;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sluicegate_core::adapter::Charge;
use sluicegate_core::store::Store;
use sluicegate_core::{Limit, ManualClock};
use sluicegate_redis::counts::BreakerState;
use sluicegate_redis::{Failure, FailureKind, Redis, RedisBuilder};
use sluicegate_tests::certificates::Authority;
use sluicegate_tests::servers::{Server, until};
use sluicegate_tests::{answer, key};

use super::DAY;
use super::load::attempts;
use super::store::{open, patient};

fn server_of(authority: &Authority, clients: Option<&Authority>) -> Server {
    let (certificate, key) = authority.sign("localhost");
    Server::tls(&certificate, &key, clients.map(Authority::pem))
}

fn charge() -> Charge {
    Charge::of(Limit::fixed_window(100, DAY).from_first(), key("alice"), 1)
}

/// The failure that the store reports for a decision that it cannot make.
fn told(builder: RedisBuilder) -> String {
    let store: Redis = open(builder);
    let error = answer(store.take(&charge())).expect_err("no server can be called");
    let source = error.source().expect("why");
    let failure = source.downcast_ref::<Failure>().expect("a failure of the store");
    assert_eq!(failure.kind(), FailureKind::Unreachable, "{failure}");
    assert_eq!(store.counts().unanswered, 0);
    failure.to_string()
}

#[test]
fn the_count_is_exact_over_tls() {
    let authority = Authority::new("ours");
    let server = server_of(&authority, None);
    let trusting = patient().url(&server.tls_url()).certificate_authorities(authority.pem());
    let tally = attempts(&open(trusting), &charge(), 8, 20);
    assert_eq!((tally.admitted, tally.refused, tally.failed), (100, 60, 0));
}

#[test]
fn a_server_with_another_authoritys_certificate_is_not_asked() {
    let (theirs, ours) = (Authority::new("theirs"), Authority::new("ours"));
    let server = server_of(&theirs, None);
    let told = told(patient().url(&server.tls_url()).certificate_authorities(ours.pem()));
    assert!(told.contains("certificate"), "{told}");
    assert!(told.contains("UnknownIssuer"), "{told}");
}

#[test]
fn a_server_with_another_name_is_not_asked() {
    let authority = Authority::new("ours");
    let (certificate, key) = authority.sign("elsewhere.example");
    let server = Server::tls(&certificate, &key, None);
    let told = told(patient().url(&server.tls_url()).certificate_authorities(authority.pem()));
    assert!(told.contains("certificate"), "{told}");
}

#[test]
fn a_server_that_asks_for_a_certificate_is_shown_one() {
    let authority = Authority::new("ours");
    let server = server_of(&authority, Some(&authority));
    let builder = || patient().url(&server.tls_url()).certificate_authorities(authority.pem());
    let told = told(builder());
    assert!(told.to_ascii_lowercase().contains("certificate"), "{told}");
    let (certificate, key) = authority.sign("client.example");
    let tally = attempts(&open(builder().certificate(certificate, key)), &charge(), 1, 10);
    assert_eq!((tally.admitted, tally.failed), (10, 0));
}

#[test]
fn a_server_that_does_not_speak_tls_is_not_waited_for() {
    let server = Server::start();
    let url = server.url().replace("redis://127.0.0.1", "rediss://localhost");
    let authority = Authority::new("ours");
    let builder = patient().url(&url).certificate_authorities(authority.pem());
    told(builder.connect_timeout(Duration::from_millis(200)));
}

/// How a server makes every handshake fail.
#[derive(Debug, Clone, Copy)]
enum Handshake {
    Closes,
    Answers(&'static [u8]),
    Hangs,
}

/// A server whose handshakes all fail, and how many connections it has accepted.
fn without_handshake(handshake: Handshake) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let accepted = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&accepted);
    std::thread::spawn(move || {
        let mut hanging = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            // Before the client can see what becomes of it.
            count.fetch_add(1, Ordering::SeqCst);
            match handshake {
                Handshake::Closes => drop(stream),
                Handshake::Answers(words) => drop(stream.write_all(words)),
                Handshake::Hangs => hanging.push(stream),
            }
        }
    });
    (port, accepted)
}

/// The pauses of the breaker use the manual clock. Those between two attempts are a few milliseconds.
#[test]
fn handshakes_that_fail_are_tried_once_a_pause_of_the_breaker() {
    const FIRST: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(4);
    let authority = Authority::new("ours");
    for handshake in
        [Handshake::Closes, Handshake::Answers(b"-ERR this is no TLS\r\n"), Handshake::Hangs]
    {
        let (port, accepted) = without_handshake(handshake);
        let clock = ManualClock::new();
        let builder = patient().url(&format!("rediss://localhost:{port}")).clock(&clock);
        let builder = builder.certificate_authorities(authority.pem());
        // The others fail by themselves, each as it does, also where a handshake is slow.
        let builder = match handshake {
            Handshake::Hangs => builder.connect_timeout(Duration::from_millis(20)),
            Handshake::Closes | Handshake::Answers(_) => builder,
        };
        let builder = builder.reconnect(Duration::from_millis(1), Duration::from_millis(4));
        let store = open(builder.breaker(3, FIRST, LONGEST));
        let take = || answer(store.take(&charge())).expect_err("there is no connection");
        until("the breaker to open", || {
            take();
            (store.counts().breaker == BreakerState::Open).then_some(())
        });
        let before = accepted.load(Ordering::SeqCst);
        let mut pauses = 0;
        while accepted.load(Ordering::SeqCst) < before + 10 {
            (0..100).for_each(|_| drop(take()));
            clock.advance(LONGEST);
            pauses += 1;
            #[expect(clippy::disallowed_methods, reason = "the server's end has no clock to turn")]
            std::thread::sleep(Duration::from_millis(1));
        }
        // One attempt may have begun when the breaker opened.
        assert!(pauses >= 9, "ten attempts within {pauses} pauses: {handshake:?}");
        let counts = store.counts();
        assert_eq!((counts.breaker_openings, counts.connections), (1, 0), "{handshake:?}");
        assert!(counts.failures_of(FailureKind::Unreachable) >= 3, "{handshake:?}");
        assert_eq!(counts.unanswered, 0, "{handshake:?}");
    }
}
