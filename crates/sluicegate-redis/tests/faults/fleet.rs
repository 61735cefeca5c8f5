use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sluicegate_core::ManualClock;

use crate::fake::{Fake, evaluates};
use crate::store;

/// The place of what a member wants in the argument of its heartbeat. One that leaves has −1 there, for no number.
const WANTS: std::ops::Range<usize> = 40..48;

#[tokio::test(flavor = "multi_thread")]
async fn a_membership_that_is_dropped_with_its_store_sends_a_last_heartbeat() {
    let clock = ManualClock::new();
    let has_left = Arc::new(AtomicBool::new(false));
    let saw = Arc::clone(&has_left);
    let fake = Fake::new(move |name, command| {
        let wants = command.last().and_then(|argument| argument.get(WANTS));
        if evaluates(name) && wants == Some((-1.0_f64).to_le_bytes().as_slice()) {
            saw.store(true, Ordering::SeqCst);
        }
        None
    });
    let membership = store(&fake, &clock).fleet("fleet").join().expect("good settings");
    fake.wait_for("EVALSHA", 1);
    assert!(!has_left.load(Ordering::SeqCst));
    drop(membership);
    for _ in 0..20_000 {
        if has_left.load(Ordering::SeqCst) {
            break;
        }
        clock.advance(Duration::from_millis(10));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(has_left.load(Ordering::SeqCst));
    // Nothing keeps the store after that.
    fake.wait_until_open_are(0).await;
}
