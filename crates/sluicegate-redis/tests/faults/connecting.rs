use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sluicegate_core::ManualClock;
use sluicegate_core::adapter::Answer;
use sluicegate_core::store::Store;
use sluicegate_redis::{FailureKind, Redis};

use crate::fake::{Act, Fake};
use crate::{DEADLINE, builder, charge, kind, later, store, take, until};

/// A server that closes every new connection while the flag is set.
fn away() -> (Fake, Arc<AtomicBool>) {
    let flag = Arc::new(AtomicBool::new(true));
    let away = Arc::clone(&flag);
    let fake = Fake::new(move |_, _| away.load(Ordering::SeqCst).then_some(Act::Close));
    (fake, flag)
}

#[tokio::test(flavor = "multi_thread")]
async fn it_starts_without_a_server_and_connects_when_there_is_one() {
    let (fake, away) = away();
    let store =
        builder(&fake, &ManualClock::new()).breaker(0, DEADLINE, DEADLINE).build().expect("a URL");
    assert_eq!(kind(take(&store).await), FailureKind::Unreachable);
    away.store(false, Ordering::SeqCst);
    until(&store, |counts| counts.connections == 1).await;
    take(&store).await.expect("a decision");
}

/// The clock stands still, so a request that waited would wait for ever.
#[tokio::test(flavor = "multi_thread")]
async fn no_request_waits_for_a_server_that_cannot_be_reached() {
    let (fake, _away) = away();
    let store = builder(&fake, &ManualClock::new())
        .reconnect(Duration::from_secs(3_600), Duration::from_secs(3_600))
        .build()
        .expect("a good URL");
    for _ in 0..3 {
        assert_eq!(kind(take(&store).await), FailureKind::Unreachable);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_greet_costs_no_more_than_the_deadline() {
    let fake = Fake::new(|_, _| Some(Act::Nothing));
    let clock = ManualClock::new();
    let store = store(&fake, &clock);
    let asks = tokio::spawn(later(&store));
    fake.wait_for("HELLO", 1);
    while !asks.is_finished() {
        // The task may not have begun to wait when the clock is moved.
        clock.advance(DEADLINE);
        tokio::task::yield_now().await;
    }
    assert_eq!(kind(asks.await.expect("no panic")), FailureKind::Unreachable);
    assert_eq!(fake.seen("EVALSHA"), 0);
    store.flush().await;
    assert_eq!(store.counts().unanswered, 0, "nothing was sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_hangs_is_replaced_by_another() {
    let mut greeted = 0;
    let fake = Fake::new(move |name, _| {
        greeted += usize::from(name == "HELLO");
        (greeted < 3).then_some(Act::Nothing)
    });
    let store = builder(&fake, &ManualClock::new())
        .connect_timeout(Duration::from_millis(5))
        .build()
        .expect("a good URL");
    until(&store, |counts| counts.connections == 1).await;
    take(&store).await.expect("a decision");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_knows_no_resp3_is_spoken_to_in_the_older_protocol() {
    let fake = Fake::new(|name, _| {
        (name == "HELLO").then(|| Act::Say(b"-ERR unknown command 'HELLO'\r\n".to_vec()))
    });
    let store = store(&fake, &ManualClock::new());
    take(&store).await.expect("a decision");
    assert_eq!(fake.seen("HELLO"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_can_ask_for_the_older_protocol() {
    let fake = Fake::well();
    let url = format!("{}/?protocol=resp2", fake.url());
    let store = builder(&fake, &ManualClock::new()).url(&url).build().expect("a good URL");
    take(&store).await.expect("a decision");
    assert_eq!(fake.seen("HELLO"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_ends_is_replaced_before_the_next_call_in_both_protocols() {
    for protocol in ["", "/?protocol=resp2"] {
        let fake = Fake::well();
        let url = format!("{}{protocol}", fake.url());
        let store = builder(&fake, &ManualClock::new()).url(&url).build().expect("a good URL");
        take(&store).await.expect("a decision");
        fake.hang_up();
        until(&store, |counts| counts.connections == 2).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_have_the_configured_name() {
    let names = Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = Arc::clone(&names);
    let fake = Fake::new(move |name, command| {
        if name == "CLIENT" && command[1] == b"SETNAME" {
            heard.lock().unwrap().push(String::from_utf8_lossy(&command[2]).into_owned());
        }
        None
    });
    let clock = ManualClock::new();
    let store = builder(&fake, &clock).client_name("limiter-7").build().expect("a good name");
    take(&store).await.expect("a decision");
    assert_eq!(*names.lock().unwrap(), ["limiter-7"]);
}

#[test]
fn without_a_runtime_it_says_what_to_do() {
    let store = Redis::connect("redis://127.0.0.1:1").expect("a good URL");
    let Answer::Now(outcome) = store.take(&charge()) else { panic!("there is no runtime") };
    let error = outcome.expect_err("no decision");
    let source = std::error::Error::source(&error).expect("a reason").to_string();
    assert!(source.contains("inside a tokio runtime"), "{source}");
}

#[test]
fn a_bad_setting_is_named() {
    let error = |builder: sluicegate_redis::RedisBuilder| {
        builder.build().map(drop).expect_err("it cannot be made").to_string()
    };
    let url = || Redis::builder().url("redis://127.0.0.1:1");
    let second = Duration::from_secs(1);
    for (builder, part) in [
        (Redis::builder(), "`url`"),
        (url().prefix("limits{"), "`{`"),
        (url().deadline(Duration::ZERO), "deadline"),
        (url().connect_timeout(Duration::ZERO), "connect timeout"),
        (url().breaker(5, second, second / 2), "breaker"),
        (url().reconnect(second, second / 2), "reconnecting"),
        (url().client_name("two words"), "two words"),
    ] {
        let error = error(builder);
        assert!(error.contains(part), "{part}: {error}");
    }
}

/// The system may believe in such a connection for minutes, and nobody leads meanwhile.
#[cfg(feature = "mastership")]
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_on_which_a_campaign_is_not_answered_is_replaced() {
    let fake = Fake::new(|name, _| (name == "EVALSHA").then_some(Act::Nothing));
    let clock = ManualClock::new();
    let store = store(&fake, &clock);
    let lease = Duration::from_millis(100);
    let mastership = store.mastership("quota", "http://10.0.0.7:8083").lease(lease).stand();
    let _mastership = mastership.expect("a candidate");
    // The first call waits for the connection. A quarter of the lease is the time for an answer.
    for calls in [1, 2] {
        fake.wait_for("EVALSHA", calls);
        clock.advance(lease / 4);
    }
    fake.wait_for("HELLO", 2);
}
