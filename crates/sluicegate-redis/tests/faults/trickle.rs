//! Servers whose answers arrive byte by byte.

use std::time::Duration;

use sluicegate_core::ManualClock;
use sluicegate_redis::FailureKind;

use crate::fake::{Act, Fake, admitted};
use crate::{DEADLINE, builder, kind, later, until};

const SECOND: Duration = Duration::from_secs(1);

/// How long an answer is awaited in the background; the whole answer takes four times as long.
const GRACE: Duration = Duration::from_secs(10);

fn trickling() -> Fake {
    Fake::new(|name, _| name.starts_with("EVAL").then(|| Act::Hold(admitted())))
}

/// Single bytes are not an answer: the deadline holds, and the connection is replaced.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_answers_one_byte_a_second_is_too_slow_and_loses_its_connection() {
    let (fake, clock) = (trickling(), ManualClock::new());
    let store = builder(&fake, &clock).breaker(0, SECOND, SECOND).background(100, GRACE).build();
    let store = store.expect("a good URL");
    let asked = tokio::spawn(later(&store));
    fake.wait_for("EVALSHA", 1);
    clock.advance(DEADLINE);
    assert_eq!(kind(asked.await.expect("no panic")), FailureKind::TooSlow);
    let mut seconds = 0;
    until(&store, |counts| {
        fake.drip();
        clock.advance(SECOND);
        seconds += 1;
        counts.connections == 2
    })
    .await;
    assert!(seconds >= 10, "closed after {seconds} s");
    fake.wait_until_open_are(1).await;
    store.flush().await;
    assert_eq!((store.counts().unanswered, store.counts().given_back), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_answers_one_byte_a_second_opens_the_breaker() {
    let (fake, clock) = (trickling(), ManualClock::new());
    let store = builder(&fake, &clock).breaker(3, GRACE, GRACE).build().expect("a good URL");
    for asked in 1..=3 {
        let answer = tokio::spawn(later(&store));
        fake.wait_for("EVALSHA", asked);
        fake.drip();
        clock.advance(DEADLINE);
        assert_eq!(kind(answer.await.expect("no panic")), FailureKind::TooSlow);
    }
    for _ in 0..100 {
        assert_eq!(kind(crate::take(&store).await), FailureKind::BreakerOpen);
    }
    assert_eq!((fake.seen("EVALSHA"), store.counts().breaker_openings), (3, 1));
}
