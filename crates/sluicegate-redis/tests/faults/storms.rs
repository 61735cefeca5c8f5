//! Servers that accept connections and do no work. The store does not flood them with connections or calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sluicegate_core::ManualClock;
use sluicegate_redis::counts::BreakerState;
use sluicegate_redis::{FailureKind, Redis};

use crate::fake::{Act, Fake, admitted, refused};
use crate::{DEADLINE, builder, take, until};

const FAILURES: u32 = 3;
const FIRST: Duration = Duration::from_secs(1);
/// An upper bound on any wait that is not endless.
const FOR_EVER: Duration = Duration::from_secs(20);
const LONGEST: Duration = Duration::from_secs(4);

/// What a server answers to every script while the flag is set.
fn says(words: &'static [u8]) -> (Fake, Arc<AtomicBool>) {
    let flag = Arc::new(AtomicBool::new(true));
    let sick = Arc::clone(&flag);
    let fake = Fake::new(move |name, _| {
        let says = name.starts_with("EVAL") && sick.load(Ordering::SeqCst);
        says.then(|| match words {
            b"" => Act::Close,
            words => Act::Say(words.to_vec()),
        })
    });
    (fake, flag)
}

fn store(fake: &Fake, clock: &ManualClock) -> Redis {
    builder(fake, clock).breaker(FAILURES, FIRST, LONGEST).build().expect("a good URL")
}

/// A store whose breaker never opens.
fn without_breaker(fake: &Fake, clock: &ManualClock) -> Redis {
    builder(fake, clock).breaker(0, FIRST, LONGEST).build().expect("a good URL")
}

/// Makes many calls, until the condition is true.
async fn ask_until(store: &Redis, it_has: impl Fn() -> bool) {
    let until = std::time::Instant::now() + FOR_EVER;
    while !it_has() {
        let failed = take(store).await;
        assert!(std::time::Instant::now() < until, "{failed:?}: {:?}", store.counts());
        tokio::task::yield_now().await;
    }
}

async fn many_ask(store: &Redis) {
    for _ in 0..500 {
        let _ = take(store).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_refuses_every_script_gets_one_connection_and_one_call_a_pause() {
    for words in [
        &b"-READONLY You can't write against a read only replica.\r\n"[..],
        b"-NOREPLICAS Not enough good replicas to write.\r\n",
        b"-MISCONF Redis is configured to save RDB snapshots\r\n",
        b"-MASTERDOWN Link with MASTER is down\r\n",
        b"-NOPERM this user has no permissions to run the 'evalsha' command\r\n",
        b"-NOAUTH Authentication required.\r\n",
        b"-ERR The user executing the script can't run this command or subcommand\r\n",
        b"-OOM command not allowed when used memory > 'maxmemory'.\r\n",
        b"-LOADING Redis is loading the dataset in memory\r\n",
        b"-BUSY Redis is busy running a script.\r\n",
        b"+OK\r\n",
        b"what?\r\n",
        b"",
    ] {
        let said = String::from_utf8_lossy(words);
        let ((fake, is_sick), clock) = (says(words), ManualClock::new());
        let store = store(&fake, &clock);
        ask_until(&store, || store.counts().breaker == BreakerState::Open).await;
        many_ask(&store).await;
        let (connected, asked) = (fake.seen("HELLO"), fake.seen("EVALSHA"));
        assert!(connected <= FAILURES as usize + 1, "{connected} connections: {said}");
        assert!(asked <= FAILURES as usize, "{asked} questions: {said}");
        for pause in 1..=5 {
            clock.advance(LONGEST);
            ask_until(&store, || fake.seen("EVALSHA") == asked + pause).await;
            many_ask(&store).await;
            let now = fake.seen("HELLO");
            // One attempt may have begun when the breaker opened.
            assert!(now <= connected + pause + 1, "{now} connections after {pause} pauses: {said}");
            assert_eq!(fake.seen("EVALSHA"), asked + pause, "{said}");
        }
        assert_eq!(store.counts().breaker_openings, 1, "{said}");
        is_sick.store(false, Ordering::SeqCst);
        clock.advance(LONGEST);
        ask_until(&store, || store.counts().decisions > 0).await;
        assert_eq!(store.counts().breaker, BreakerState::Closed, "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_down_costs_no_connection() {
    let ((fake, _), clock) = (says(b"-CLUSTERDOWN The cluster is down\r\n"), ManualClock::new());
    let store = store(&fake, &clock);
    many_ask(&store).await;
    assert_eq!(store.counts().connections, 1);
}

/// `ERR max number of clients reached`, a password that is not accepted, and similar errors.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_rejects_connections_gets_one_attempt_a_pause() {
    for words in [
        &b"-ERR max number of clients reached\r\n"[..],
        b"-NOAUTH HELLO must be called with the client already authenticated\r\n",
        b"-WRONGPASS invalid username-password pair or user is disabled.\r\n",
        b"-DENIED Redis is running in protected mode\r\n",
        b"",
    ] {
        let said = String::from_utf8_lossy(words);
        let fake = Fake::new(move |name, _| match (name, words) {
            ("HELLO", b"") => Some(Act::Close),
            ("HELLO", words) => Some(Act::Say(words.to_vec())),
            _ => None,
        });
        let clock = ManualClock::new();
        let store = store(&fake, &clock);
        ask_until(&store, || store.counts().breaker == BreakerState::Open).await;
        let called = fake.seen("HELLO");
        let mut pauses = 0;
        while fake.seen("HELLO") < called + 10 {
            many_ask(&store).await;
            clock.advance(LONGEST);
            pauses += 1;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // One attempt may have begun when the breaker opened.
        assert!(pauses >= 9, "ten calls within {pauses} pauses: {said}");
        assert_eq!(store.counts().breaker_openings, 1, "{said}");
        assert_eq!(store.counts().connections, 0, "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_up_after_each_answer_decides_in_between() {
    let fake = Fake::new(|name, _| name.starts_with("EVAL").then_some(Act::Last));
    let store = without_breaker(&fake, &ManualClock::new());
    ask_until(&store, || store.counts().decisions == 10).await;
    assert!(fake.seen("HELLO") <= 12, "{} connections", fake.seen("HELLO"));
}

/// The server accepts connections and greets, and swallows every script. A new connection is made for each probe, and
/// old ones are not kept for long.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_swallows_every_script_costs_three_connections_at_a_time() {
    let is_sick = Arc::new(AtomicBool::new(true));
    let flag = Arc::clone(&is_sick);
    let fake = Fake::new(move |name, _| {
        (name.starts_with("EVAL") && flag.load(Ordering::SeqCst)).then_some(Act::Nothing)
    });
    let clock = ManualClock::new();
    let store = store(&fake, &clock);
    let mut asked = 0;
    for _ in 0..20 {
        let opened = store.counts().breaker == BreakerState::Open;
        for _ in 0..if opened { 1 } else { FAILURES } {
            asked += 1;
            let asks = tokio::spawn(crate::later(&store));
            fake.wait_for("EVALSHA", asked);
            clock.advance(DEADLINE);
            assert!(asks.await.expect("no panic").is_err());
        }
        let connections = store.counts().connections;
        clock.advance(LONGEST);
        until(&store, |counts| counts.connections > connections).await;
        fake.wait_until_open_are(3).await;
    }
    is_sick.store(false, Ordering::SeqCst);
    take(&store).await.expect("it is there again");
    assert_eq!(store.counts().breaker_openings, 1);
    assert!(store.counts().unanswered <= asked as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_never_answered_ends_with_its_connection() {
    let fake = Fake::new(|name, _| name.starts_with("EVAL").then_some(Act::Nothing));
    let (clock, grace) = (ManualClock::new(), DEADLINE * 4);
    let store = builder(&fake, &clock).breaker(0, FIRST, LONGEST).background(100, grace).build();
    let store = store.expect("a good URL");
    // So that no deadline passes before there is a connection.
    until(&store, |counts| counts.connections == 1).await;
    // One after the other, so that each is sent before the clock moves.
    let ask = |number| {
        let asks = tokio::spawn(crate::later(&store));
        fake.wait_for("EVALSHA", number);
        asks
    };
    let asks: Vec<_> = (1..=20).map(ask).collect();
    while !asks.iter().all(|asks| asks.is_finished()) {
        clock.advance(DEADLINE);
        tokio::task::yield_now().await;
    }
    until(&store, |counts| {
        clock.advance(grace);
        counts.connections == 2
    })
    .await;
    fake.wait_until_open_are(1).await;
    store.flush().await;
    assert_eq!(store.counts().unanswered, 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_an_end_is_not_kept() {
    for words in [&b"$9999999999\r\n"[..], b"*1000000000\r\n", b"+", b"*1000000000000000000\r\n"] {
        let fake = Fake::new(move |name, _| {
            name.starts_with("EVAL").then(|| Act::Say([words, &[b'1'; 5 << 20]].concat()))
        });
        let store = without_breaker(&fake, &ManualClock::new());
        let failed = crate::kind(take(&store).await);
        // An array of what is no value is found to be none as soon as it begins.
        let is_array = words.starts_with(b"*");
        let expected = if is_array { FailureKind::Protocol } else { FailureKind::Unreachable };
        assert_eq!(failed, expected, "{}", String::from_utf8_lossy(words));
        until(&store, |counts| counts.connections == 2).await;
    }
}

/// A server that answers this to the first script.
fn says_once(words: Vec<u8>) -> Fake {
    let mut said = false;
    Fake::new(move |name, _| {
        let says = name.starts_with("EVAL") && !std::mem::replace(&mut said, true);
        says.then(|| Act::Say(words.clone()))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_a_call_is_nobodys() {
    let fake = says_once([admitted(), refused(), refused()].concat());
    let store = store(&fake, &ManualClock::new());
    for _ in 0..3 {
        assert!(take(&store).await.expect("a decision").is_admitted());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_without_end_end_the_connection() {
    let fake = says_once(b">2\r\n+invalidate\r\n:1\r\n".repeat(200_000));
    let store = store(&fake, &ManualClock::new());
    assert_eq!(crate::kind(take(&store).await), FailureKind::Unreachable);
    until(&store, |counts| counts.connections == 2).await;
    take(&store).await.expect("a decision");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_something_else_ends_the_connection() {
    let fake = says_once(b"$5\r\nshort\r\n".to_vec());
    let store = store(&fake, &ManualClock::new());
    assert_eq!(crate::kind(take(&store).await), FailureKind::Script);
    until(&store, |counts| counts.connections == 2).await;
    take(&store).await.expect("a decision");
}
