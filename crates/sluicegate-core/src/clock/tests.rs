use std::sync::atomic::AtomicUsize;
use std::task::Wake;

use super::*;

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_manual_clock_stands_still_until_it_is_turned() {
    let clock = ManualClock::new();
    let hands = clock.clone();
    assert_eq!(clock.now(), 946_684_800_000_000);
    hands.advance(Duration::from_nanos(1_999));
    assert_eq!(clock.now(), 946_684_800_000_001);
    hands.set(SECOND);
    assert_eq!(clock.now(), 1_000_000);
    assert_eq!(Clock::from(&clock).now(), 1_000_000);
    assert_eq!(ManualClock::at(SECOND * 2).now(), 2_000_000);
    assert!(Clock::from(clock).as_manual().is_some());
}

#[test]
fn turning_the_clock_wakes_those_whose_time_has_come() {
    let clock = ManualClock::at(SECOND);
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut cx = Context::from_waker(&waker);
    let when = 3_000_000;

    assert!(clock.poll_reached(when, &mut cx).is_pending());
    assert!(clock.poll_reached(when, &mut cx).is_pending());
    assert_eq!(clock.sleepers(), 1);
    clock.advance(SECOND);
    assert_eq!((woken.0.load(Ordering::SeqCst), clock.sleepers()), (0, 1));
    clock.set(SECOND * 3);
    assert_eq!((woken.0.load(Ordering::SeqCst), clock.sleepers()), (1, 0));
    assert!(clock.poll_reached(when, &mut cx).is_ready());
    // Set back, it wakes nobody.
    clock.set(SECOND);
    assert!(clock.poll_reached(when, &mut cx).is_pending());
    clock.set(Duration::ZERO);
    assert_eq!((woken.0.load(Ordering::SeqCst), clock.sleepers()), (1, 1));
    clock.set(SECOND * 3);
    assert_eq!((woken.0.load(Ordering::SeqCst), clock.sleepers()), (2, 0));

    let other = Waker::from(Arc::new(Woken::default()));
    assert!(clock.poll_reached(when + 1, &mut cx).is_pending());
    assert!(clock.poll_reached(when + 1, &mut Context::from_waker(&other)).is_pending());
    assert_eq!(clock.sleepers(), 2);
}

#[test]
fn the_machine_s_clock_shows_the_time_and_steps_back_by_microseconds_at_most() {
    let clock = Clock::default();
    assert!(clock.as_manual().is_none());
    let year_2026 = 1_767_225_600_000_000;
    let mut before = year_2026;
    for _ in 0..10_000 {
        let now = clock.now();
        // A correction by the system's clock, on another thread too, may take microseconds back.
        assert!(now + 10 >= before);
        before = before.max(now);
    }
}
