//! A client with random grants never admits more than it held.

use proptest::prelude::*;

use super::*;

/// What happens, and after how many microseconds.
#[derive(Debug, Clone)]
enum Event {
    Grant {
        millionths: u64,
        ttl: u64,
        then: u64,
    },
    Take {
        cost: u64,
        patience: u64,
    },
    /// Gives back what an earlier request was charged.
    GiveBack {
        which: usize,
        spent: u64,
    },
}

fn capacity() -> impl Strategy<Value = u64> {
    prop_oneof![
        1 => Just(0_u64),
        4 => 1..40_000_000_u64,
        2 => (0..30_u64).prop_map(|units| units * 1_000_000),
        1 => Just(33_333_333_u64),
    ]
}

fn events(patience: u64) -> impl Strategy<Value = Vec<(u64, Event)>> {
    let event = prop_oneof![
        2 => (capacity(), 0..3_000_000_u64, capacity())
            .prop_map(|(millionths, ttl, then)| Event::Grant { millionths, ttl, then }),
        12 => (1..4_u64, 0..=patience).prop_map(|(cost, patience)| Event::Take { cost, patience }),
        1 => (0..50_usize, 0..3_u64)
            .prop_map(|(which, spent)| Event::GiveBack { which, spent }),
    ];
    let gap = prop_oneof![3 => 0..2_000_u64, 3 => 0..80_000_u64, 1 => 0..1_500_000_u64];
    prop::collection::vec((gap, event), 1..150)
}

/// What was admitted and when it left, and what could be used meanwhile.
#[derive(Default)]
struct Run {
    /// Time, parts that were admitted, and the burst of the capacity in force or, without any, of the one before.
    left: Vec<(u64, u128)>,
    /// Times, with the capacity or what was outstanding from then on, and the burst.
    held: Vec<(u64, u128, u128)>,
    longest_wait: u64,
}

/// What flows in a microsecond, at most, to which the moments at which requests leave a queue are rounded up.
const MICROSECOND: i128 = 40_000_000;

/// Parts in a request.
const TOKEN: u128 = 1_000_000_000_000;

fn run(events: &[(u64, Event)], burst: Option<u64>) -> Run {
    let clock = ManualClock::at(Duration::from_secs(1_000));
    let builder = LeasedLimit::rate("db").clock(&clock);
    let limit = match burst {
        Some(burst) => builder.burst(burst).build(),
        None => builder.build(),
    };
    let limit = limit.expect("a limit");
    let mut run = Run::default();
    let mut charged = Vec::new();
    let mut last_burst = None;
    let mut now = clock.now();
    let mut ends = u64::MAX;
    for (gap, event) in events {
        // Looks at what is held whenever it may have changed: when a lease ends and when a place is left.
        let until = now + gap;
        let mut moments: Vec<u64> = run.left.iter().map(|(at, _)| *at).chain([ends]).collect();
        moments.retain(|at| (now..until).contains(at));
        moments.extend([now, until]);
        moments.sort_unstable();
        moments.dedup();
        for moment in moments {
            clock.set(Duration::from_micros(moment));
            look(&limit, moment, burst, &mut last_burst, &mut run);
        }
        now = until;
        match event {
            Event::Grant { millionths, ttl, then } => {
                ends = now + ttl;
                let (capacity, then) = (*millionths, *then);
                let of = Amount::from_millionths;
                limit.grant(of(capacity), Duration::from_micros(*ttl), of(then));
            }
            Event::Take { cost, patience } => {
                let outcome = wait_for(&limit, *cost, Duration::from_micros(*patience));
                if outcome.is_admitted() {
                    let wait = outcome.wait().as_micros() as u64;
                    assert!(wait <= *patience);
                    run.longest_wait = run.longest_wait.max(wait);
                    charged.push((outcome, *cost, run.left.len()));
                    run.left.push((now + wait, u128::from(*cost) * TOKEN));
                }
            }
            Event::GiveBack { which, spent } if !charged.is_empty() => {
                let (outcome, cost, at) = charged.remove(which % charged.len());
                let spent = (*spent).min(cost);
                // A request that waits leaves the queue, or never happened.
                settle(&limit, &outcome, cost, spent);
                run.left[at].1 = u128::from(spent) * TOKEN;
            }
            Event::GiveBack { .. } => {}
        }
        look(&limit, now, burst, &mut last_burst, &mut run);
    }
    run
}

fn look(
    limit: &LeasedLimit,
    now: u64,
    burst: Option<u64>,
    last_burst: &mut Option<u128>,
    run: &mut Run,
) {
    let capacity = u128::from(limit.capacity().millionths());
    let outstanding = u128::from(limit.outstanding().millionths());
    if capacity > 0 {
        let flows = capacity * 1_000_000;
        let most = burst.map_or(u128::MAX, |burst| u128::from(burst) * TOKEN);
        let own = flows.min(most).max(TOKEN);
        // The largest that was in force at this very moment.
        *last_burst = Some(own);
    }
    run.held.push((now, capacity.max(outstanding), last_burst.unwrap_or(TOKEN * 40)));
}

impl Run {
    /// The most that any interval admitted beyond what was held during it and the burst, in parts.
    fn excess(&self, before: u64) -> i128 {
        let mut worst = i128::MIN;
        let mut left: Vec<_> = self.left.iter().filter(|(_, parts)| *parts > 0).collect();
        left.sort_unstable();
        for (from, (start, _)) in left.iter().enumerate() {
            let start = start.saturating_sub(before);
            let burst = self.burst_at(start);
            let mut admitted = 0;
            for (end, parts) in &left[from..] {
                admitted += *parts as i128;
                worst = worst.max(admitted - burst - self.flows(start, *end));
            }
        }
        worst
    }

    /// The burst at a moment: the largest of those in force in the same microsecond or, if there is none, the one before.
    fn burst_at(&self, at: u64) -> i128 {
        let same = self.held.iter().filter(|(when, ..)| *when == at).map(|(.., burst)| *burst);
        let before = self.held.iter().rev().find(|(when, ..)| *when <= at);
        let before = before.or(self.held.first()).map(|(.., burst)| *burst);
        same.chain(before).max().unwrap_or(0) as i128
    }

    fn flows(&self, from: u64, to: u64) -> i128 {
        let ends = self.held.iter().skip(1).map(|(at, ..)| *at).chain([u64::MAX]);
        let spans = self.held.iter().zip(ends);
        spans
            .map(|((begin, capacity, _), end)| {
                let time = end.min(to).saturating_sub((*begin).max(from));
                (*capacity * u128::from(time)) as i128
            })
            .sum()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn no_interval_admits_more_than_was_held_during_it_and_the_burst(
        events in events(0), burst in prop::option::of(1..20_u64)
    ) {
        let run = run(&events, burst);
        let excess = run.excess(0);
        prop_assert!(excess <= 0, "{} requests too many", excess as f64 / TOKEN as f64);
    }

    /// Requests that wait count from when their place is booked, and what they were booked under is outstanding.
    #[test]
    fn with_a_queue_no_interval_admits_more_than_was_held_or_outstanding_since_the_longest_wait(
        events in events(900_000), burst in prop::option::of(1..20_u64)
    ) {
        let run = run(&events, burst);
        let excess = run.excess(run.longest_wait);
        prop_assert!(excess <= MICROSECOND, "{} requests too many", excess as f64 / TOKEN as f64);
    }

    /// Without changes, what leaves the queue is spread like what needs no queue.
    #[test]
    fn under_one_grant_a_queue_admits_no_more_in_any_interval_than_without(
        capacity in 1..40_000_000_u64,
        burst in prop::option::of(1..20_u64),
        gaps in prop::collection::vec((0..80_000_u64, 0..900_000_u64), 1..100),
    ) {
        let start = Event::Grant { millionths: capacity, ttl: 3_600_000_000, then: 0 };
        let takes = gaps.iter().map(|(gap, patience)| (*gap, Event::Take { cost: 1, patience: *patience }));
        let run = run(&Vec::from_iter([(0, start)].into_iter().chain(takes)), burst);
        let excess = run.excess(0);
        prop_assert!(excess <= MICROSECOND, "{} requests too many", excess as f64 / TOKEN as f64);
    }
}
