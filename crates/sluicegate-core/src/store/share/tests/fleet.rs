//! Fleets of real shares by one manual clock. Each admission is checked against the whole limit, which one state counts: whoever
//! is admitted beyond it fails the test.

use super::*;
use crate::limit::State;
use crate::store::{Want, fair_parts};

const MILLISECOND: Duration = Duration::from_millis(1);

struct Simulation {
    clock: ManualClock,
    limit: Limit,
    /// The whole limit, and what all members together have spent of it.
    whole: (Limit, State),
    members: Vec<Member>,
    admitted: u64,
}

struct Member {
    store: Share,
    fleet: Fleet,
    /// What it had wanted at the end of the last round, and what it wants a round.
    wanted: u64,
    wants: u64,
}

impl Simulation {
    fn new(limit: Limit, burst: u64) -> Self {
        let whole = limit.burst(burst);
        Self {
            clock: ManualClock::new(),
            limit,
            whole: (whole, whole.fresh()),
            members: Vec::new(),
            admitted: 0,
        }
    }

    fn of(limit: Limit, count: u64) -> Self {
        let mut fleet = Self::new(limit, limit.capacity().max(count));
        (0..count).for_each(|_| fleet.join().open());
        fleet.all_see(count);
        fleet
    }

    fn join(&mut self) -> &Fleet {
        let fleet = Fleet::by_clock(2 * SECOND, &self.clock);
        let memory = Memory::builder().capacity(16).clock(&self.clock).build();
        let store = Share::new(memory, &fleet).count_wanted();
        self.members.push(Member { store, fleet, wanted: 0, wants: 0 });
        &self.members.last().expect("it has just joined").fleet
    }

    fn all_see(&self, count: u64) {
        self.members.iter().for_each(|member| member.fleet.see(count));
    }

    fn take(&mut self, member: usize, cost: u64) -> bool {
        if !take(&self.members[member].store, self.limit, cost).is_admitted() {
            return false;
        }
        let (whole, state) = &mut self.whole;
        assert!(
            whole.take(state, self.clock.now(), cost).is_admitted(),
            "more than {whole} by {member}"
        );
        self.admitted += cost;
        true
    }

    /// Everyone spends all that there is, each `step`.
    fn spend_all(&mut self, time: Duration, step: Duration, cost: u64) {
        for _ in 0..time.as_micros() / step.as_micros() {
            self.clock.advance(step);
            for member in 0..self.members.len() {
                while self.take(member, cost) {}
            }
        }
    }

    /// The part of the limit that was used in `time`.
    fn use_of(&mut self, time: Duration, run: impl FnOnce(&mut Self)) -> f64 {
        let before = self.admitted;
        run(self);
        let rate = self.limit.count() as f64 / self.limit.period().expect("a rate").as_secs_f64();
        (self.admitted - before) as f64 / (rate * time.as_secs_f64())
    }
}

#[test]
fn ninety_six_members_use_all_of_the_limit_and_never_more() {
    for (rate, cost, time, step) in [
        (10, 1, 480 * SECOND, 400 * MILLISECOND),
        (1_000, 1, 10 * SECOND, 32 * MILLISECOND),
        (300_000, 100, 2 * SECOND, 32 * MILLISECOND),
        (2_000_000, 1_000, 2 * SECOND, 24 * MILLISECOND),
    ] {
        let mut fleet = Simulation::of(Limit::per_second(rate), 96);
        // What the buckets hold at first is no part of the rate.
        fleet.spend_all(step, step, cost);
        let used = fleet.use_of(time, |fleet| fleet.spend_all(time, step, cost));
        // What the buckets held at the beginning of that time may be a request each.
        let held = (96 * cost) as f64 / (rate as f64 * time.as_secs_f64());
        assert!((0.99..=1.0 + held).contains(&used), "{rate} a second: {used}");
    }
}

#[test]
fn from_ten_to_a_hundred_members_in_a_minute_nothing_is_over_and_nine_tenths_are_used() {
    let mut fleet = Simulation::new(Limit::per_second(1_000).burst(100), 101);
    (0..10).for_each(|_| fleet.join().open());
    fleet.all_see(10);
    fleet.spend_all(SECOND, 20 * MILLISECOND, 1);
    let used = fleet.use_of(MINUTE, |fleet| {
        let (step, begun) = (20 * MILLISECOND, fleet.clock.now());
        while fleet.clock.now() < begun + MINUTE.as_micros() as u64 {
            let passed = fleet.clock.now() - begun;
            let listed = 10 + 90 * passed / MINUTE.as_micros() as u64;
            while (fleet.members.len() as u64) < listed {
                fleet.join().see(listed);
            }
            // Fleet look every 900 ms, each at a time of its own.
            for (at, member) in fleet.members.iter().enumerate() {
                if (passed / 20_000 + at as u64) % 45 == 0 {
                    member.fleet.see(listed);
                }
            }
            fleet.spend_all(step, step, 1);
        }
    });
    assert_eq!(fleet.members.len(), 99);
    assert!(used >= 0.90, "{used}");
    println!("from 10 to 100 members: {used:.3} used");
}

#[test]
fn a_fifth_that_crashes_is_made_up_for_after_detection_and_the_bound() {
    let mut fleet = Simulation::of(Limit::per_second(1_000).burst(200), 100);
    let step = 20 * MILLISECOND;
    fleet.spend_all(SECOND, step, 1);
    fleet.members.truncate(80);
    let alone = fleet.use_of(3 * SECOND, |fleet| fleet.spend_all(3 * SECOND, step, 1));
    assert!((0.79..0.81).contains(&alone), "{alone}");
    // Three seconds after the crash the source no longer counts them; the bound is two, and a tick.
    fleet.all_see(80);
    fleet.spend_all(2 * SECOND + 140 * MILLISECOND, step, 1);
    let again = fleet.use_of(4 * SECOND, |fleet| fleet.spend_all(4 * SECOND, step, 1));
    assert!((0.99..1.0001).contains(&again), "{again}");
}

/// 96 members of which few want most. Together they want a tenth more than there is.
fn use_when_skewed(by_demand: bool) -> f64 {
    const RATE: u64 = 10_000;
    let mut fleet = Simulation::of(Limit::per_second(RATE).burst(1_000), 96);
    let weights: Vec<f64> = (1..=96).map(|rank| 1.0 / f64::from(rank).powf(1.2)).collect();
    let sum: f64 = weights.iter().sum();
    for (member, weight) in fleet.members.iter_mut().zip(weights) {
        member.wants = (1.1 * RATE as f64 * weight / sum) as u64;
    }
    let round = |fleet: &mut Simulation| {
        for turn in 1..=50 {
            fleet.clock.advance(20 * MILLISECOND);
            for member in 0..96 {
                let wants = fleet.members[member].wants;
                for _ in wants * (turn - 1) / 50..wants * turn / 50 {
                    fleet.take(member, 1);
                }
            }
        }
        if by_demand {
            let wants = fleet.members.iter_mut().map(|member| {
                let wanted = member.fleet.wanted();
                let wants = wanted - std::mem::replace(&mut member.wanted, wanted);
                Want { wants, weight: 1 }
            });
            let wants: Vec<_> = wants.collect();
            for (member, part) in fleet.members.iter().zip(fair_parts(RATE, &wants)) {
                member.fleet.see_part(part);
            }
        }
    };
    (0..5).for_each(|_| round(&mut fleet));
    fleet.use_of(5 * SECOND, |fleet| (0..5).for_each(|_| round(fleet)))
}

#[test]
fn shares_by_demand_use_what_equal_shares_leave() {
    let (equal, by_demand) = (use_when_skewed(false), use_when_skewed(true));
    println!("skewed: {equal:.3} used by equal shares, {by_demand:.3} by demand");
    assert!((0.40..0.50).contains(&equal), "{equal}");
    assert!((0.95..1.0001).contains(&by_demand), "{by_demand}");
}
