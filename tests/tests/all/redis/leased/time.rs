use super::*;

const MILLI: Duration = Duration::from_millis(1);

/// Stores on one server that use one clock.
fn stores<const N: usize>(clock: &ManualClock, batch: &RangeInclusive<u64>) -> [Leased; N] {
    let prefix = own_prefix();
    std::array::from_fn(|_| {
        let store = open(by_hand(clock).url(&shared().url()).prefix(&prefix));
        Leased::new(store, batch.clone())
    })
}

fn admits(store: &Leased, charge: &Charge) -> bool {
    answer(store.take(charge)).expect("the store answers").is_admitted()
}

/// In any interval.
#[test]
fn never_more_than_burst_and_rate() {
    let clock = ManualClock::new();
    let stores: [_; 3] = stores(&clock, &(1..=16));
    // One attempt each millisecond.
    let charge = charge(Limit::per_second(1_000).burst(40));
    let mut random = 1_u64;
    let mut admitted = Vec::new();
    for _ in 0..6_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let chance = random >> 33;
        match chance % 64 {
            // Rarely so long that the bucket is full again.
            0 => clock.advance(MILLI * 30),
            1..24 => clock.advance(Duration::from_micros(chance % 1_500)),
            _ => {}
        }
        if admits(&stores[(chance / 64 % 3) as usize], &charge) {
            admitted.push(clock.now());
        }
    }
    assert!(admitted.len() > 1_000, "{}", admitted.len());
    for (at, from) in admitted.iter().enumerate() {
        for (count, to) in (1..).zip(&admitted[at..]) {
            assert!(count <= 40 + (to - from) / 1_000, "{count} in {} µs", to - from);
        }
    }
}

/// Tokens that a process has taken and not spent are available to others when they have expired.
#[test]
fn nothing_is_lost_once_a_lease_has_expired() {
    let clock = ManualClock::new();
    let minute = Duration::from_secs(60);
    for limit in [Limit::per_minute(60), Limit::fixed_window(60, minute)] {
        let [one, other] = stores(&clock, &(40..=40));
        assert!(admits(&one, &charge(limit)));
        let meanwhile = (0..60).filter(|_| admits(&other, &charge(limit))).count();
        assert_eq!(meanwhile, 20, "{limit}: the rest has been taken out");
        clock.advance(minute);
        let rest = (0..100).filter(|_| admits(&other, &charge(limit))).count();
        assert_eq!(rest, 60, "{limit}");
        assert_eq!(one.counts().expired, 39, "{limit}");
        assert!(!admits(&one, &charge(limit)), "{limit}: it has expired");
        clock.advance(minute);
    }
}

/// One tick earlier it is refused, by either store.
#[test]
fn a_client_that_waits_retry_after_is_admitted() {
    let clock = ManualClock::new();
    let [store] = stores(&clock, &(1..=8));
    let charge = charge(Limit::per_second(3).burst(5));
    while admits(&store, &charge) {}
    for _ in 0..10 {
        let refused = answer(store.take(&charge)).expect("the store answers");
        let wait = refused.retry_after().expect("it refills");
        clock.advance(wait - Duration::from_micros(1));
        assert!(!admits(&store, &charge));
        clock.advance(Duration::from_micros(1));
        assert!(admits(&store, &charge));
    }
    assert!(store.counts().refused_here > 10);
}
