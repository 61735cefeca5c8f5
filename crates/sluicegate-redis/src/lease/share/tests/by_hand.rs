use tokio::sync::oneshot;

use super::*;

const NOW: u64 = 1_000_000_000_000;
const SECOND: u64 = 1_000_000;
const TEN: Limit = Limit::per_second(1).burst(10);

/// One share, and the server whose tokens it leases.
struct Pair {
    server: Server,
    share: Share,
    totals: LeaseCounts,
    batch: RangeInclusive<u64>,
}

impl Pair {
    fn new(limit: Limit, batch: RangeInclusive<u64>) -> Self {
        let share = share(limit, &batch);
        Self { server: Server::new(limit), share, totals: LeaseCounts::default(), batch }
    }

    /// Asks for a lease at `now`, which is granted or refused at once.
    fn lease(&mut self, now: u64) -> bool {
        let (answer, mut told) = oneshot::channel();
        self.share.expire(super::at(now), &mut self.totals);
        self.share.wait(Waiter { cost: 1, answer });
        let wanted = self.share.request(now, &self.batch).expect("nothing is under way");
        let lease = self.server.lease(wanted, now);
        let asked = (now, wanted);
        let (granted, _) = self.share.grant(&lease, asked, now, &mut self.totals);
        for WaiterAnswer { waiter, outcome } in granted {
            waiter.answer.send(Ok(outcome)).expect("somebody waits");
        }
        told.try_recv().expect("it is told").expect("it is decided").is_admitted()
    }

    fn take(&mut self, now: u64, cost: u64) -> Option<Outcome> {
        self.share.expire(super::at(now), &mut self.totals);
        match self.share.step(now, cost, &mut self.totals) {
            Step::Decide(outcome, _) => Some(outcome),
            Step::Wait | Step::PassOn => None,
        }
    }

    fn unspent(&mut self, now: u64) -> u64 {
        self.share.expire(super::at(now), &mut self.totals);
        self.share.unspent()
    }
}

fn receipt(outcome: &Outcome) -> [u64; 2] {
    outcome.receipts().next().expect("one limit").words()
}

#[test]
fn tokens_expire_as_their_debt_drains() {
    let mut pair = Pair::new(TEN, 5..=5);
    assert!(pair.lease(NOW));
    assert_eq!(pair.unspent(NOW), 4);
    assert_eq!(pair.unspent(NOW + 1), 4, "the spent token drains first");
    assert_eq!(pair.unspent(NOW + SECOND), 3, "clocks differ");
    assert_eq!(pair.unspent(NOW + 3 * SECOND), 1);
    assert_eq!(pair.unspent(NOW + 4 * SECOND), 0);
    assert_eq!(pair.totals.expired, 4);
    assert_eq!(
        pair.server.limit.peek(&pair.server.state, NOW + 5 * SECOND, 1).remaining(),
        Some(10)
    );
}

/// Another process spent five before. They drain first, so giving them back is no longer possible.
#[test]
fn older_charges_drain_first() {
    let mut pair = Pair::new(TEN, 5..=5);
    let other = pair.server.limit.take(&mut pair.server.state, NOW, 5);
    assert!(pair.lease(NOW));
    let receipt = other.statuses().next().expect("one limit").receipt;
    pair.server.settle(&receipt, (5, 0), NOW);
    assert_eq!(pair.unspent(NOW + 4 * SECOND), 4);
    let left = pair.server.limit.peek(&pair.server.state, NOW + 4 * SECOND, 1).remaining();
    assert_eq!(left, Some(4));
    assert_eq!(pair.unspent(NOW + 8 * SECOND), 1);
    assert_eq!(pair.unspent(NOW + 10 * SECOND), 0);
    let all = pair.server.limit.take(&mut pair.server.state, NOW + 10 * SECOND, 10);
    assert!(all.is_admitted());
}

/// If drained tokens counted, spending late and giving back would mint tokens.
#[test]
fn what_was_spent_late_is_not_given_back_twice() {
    let mut pair = Pair::new(TEN, 10..=10);
    assert!(pair.lease(NOW));
    let late = NOW + 4 * SECOND;
    let good = pair.unspent(late);
    assert!(pair.take(late, good).is_some_and(|outcome| outcome.is_admitted()));
    assert_eq!(pair.share.hand_over().count(), 0);
    let left = pair.server.limit.peek(&pair.server.state, late, 1).remaining();
    assert_eq!(left, Some(4), "burst and rate allow for 14");
}

#[test]
fn a_charge_goes_back_into_the_share() {
    let mut pair = Pair::new(TEN, 10..=10);
    assert!(pair.lease(NOW));
    let outcome = pair.take(NOW, 4).expect("there are tokens in hand");
    assert_eq!(pair.unspent(NOW), 5);
    let back = |pair: &mut Pair, now| {
        pair.share.take_back(receipt(&outcome), 4, super::at(now), &mut pair.totals);
        pair.unspent(now)
    };
    assert_eq!(back(&mut pair, NOW), 9);
    // Given back twice: no more comes back than was leased.
    assert_eq!(back(&mut pair, NOW), 10);
    assert_eq!(back(&mut pair, NOW), 10);
}

/// The response came when another lease was in hand already.
#[test]
fn a_charge_of_a_spent_lease_goes_back_into_the_next() {
    let mut pair = Pair::new(TEN, 5..=5);
    assert!(pair.lease(NOW));
    let outcome = pair.take(NOW, 4).expect("there are tokens in hand");
    assert!(pair.lease(NOW));
    assert!(pair.take(NOW, 2).is_some_and(|outcome| outcome.is_admitted()));
    assert_eq!(pair.unspent(NOW), 0);
    assert!(pair.share.take_back(receipt(&outcome), 2, super::at(NOW), &mut pair.totals));
    assert_eq!(pair.unspent(NOW), 2);
    // The tokens of the spent lease have drained by then.
    let late = NOW + 5 * SECOND;
    assert!(!pair.share.take_back(receipt(&outcome), 2, super::at(late), &mut pair.totals));
}

#[test]
fn only_what_has_not_drained_goes_back() {
    let mut pair = Pair::new(TEN, 10..=10);
    assert!(pair.lease(NOW));
    let outcome = pair.take(NOW, 4).expect("there are tokens in hand");
    let now = NOW + 3 * SECOND - 10_000;
    // The first of ten was spent by the request that asked, the next four by this charge, and three have drained.
    assert!(pair.share.take_back(receipt(&outcome), 4, super::at(now), &mut pair.totals));
    assert_eq!(pair.unspent(now), 7);
}

/// Those that drained before it was given back are lost, though others of the lease are still there.
#[test]
fn drained_tokens_do_not_go_back_beside_later_charges() {
    let mut pair = Pair::new(TEN, 10..=10);
    assert!(pair.lease(NOW));
    let first = pair.take(NOW, 4).expect("there are tokens in hand");
    assert!(pair.take(NOW, 3).is_some());
    let now = NOW + 3 * SECOND - 10_000;
    assert_eq!(pair.unspent(now), 2);
    assert!(pair.share.take_back(receipt(&first), 4, super::at(now), &mut pair.totals));
    assert_eq!(pair.unspent(now), 4, "three of the first five have drained");
}

#[test]
fn of_a_charge_of_an_earlier_lease_only_what_has_not_drained_goes_back() {
    let mut pair = Pair::new(TEN, 5..=5);
    assert!(pair.lease(NOW));
    let first = pair.take(NOW, 4).expect("there are tokens in hand");
    let now = NOW + 3 * SECOND - 10_000;
    assert!(pair.lease(now));
    let in_hand = pair.unspent(now);
    assert!(in_hand > 2 && pair.take(now, in_hand).is_some());
    assert_eq!(pair.unspent(now), 0);
    assert!(pair.share.take_back(receipt(&first), 4, super::at(now), &mut pair.totals));
    assert_eq!(pair.unspent(now), 2);
}

#[test]
fn more_is_charged_out_of_the_tokens_in_hand_or_not_at_all() {
    let mut pair = Pair::new(TEN, 5..=5);
    assert!(pair.lease(NOW));
    assert!(!pair.share.charge_more(5, &mut pair.totals));
    assert_eq!((pair.unspent(NOW), pair.totals.spent), (4, 1));
    assert!(pair.share.charge_more(3, &mut pair.totals));
    assert_eq!((pair.unspent(NOW), pair.totals.spent), (1, 4));
}

#[test]
fn a_reset_discards_the_tokens_in_hand_and_those_on_their_way() {
    let mut pair = Pair::new(TEN, 3..=3);
    assert!(pair.lease(NOW));
    let wanted = pair.share.request(NOW, &pair.batch).expect("nothing is under way");
    pair.share.reset(&mut pair.totals);
    assert_eq!((pair.unspent(NOW), pair.totals.expired), (0, 2));
    let lease = pair.server.lease(wanted, NOW);
    let (_, surplus) = pair.share.grant(&lease, (NOW, wanted), NOW, &mut pair.totals);
    assert!(surplus.is_none() && lease.taken > 0);
    assert_eq!((pair.unspent(NOW), pair.totals.expired), (0, 2 + lease.taken));
}

/// What was given back meanwhile may admit the next request.
#[test]
fn a_refusal_from_before_something_was_given_back_is_not_remembered() {
    let mut pair = Pair::new(TEN, 1..=5);
    assert!(pair.server.limit.take(&mut pair.server.state, NOW, 10).is_admitted());
    let wanted = pair.share.request(NOW, &pair.batch).expect("nothing is under way");
    pair.share.forget_refusal();
    let lease = pair.server.lease(wanted, NOW);
    assert_eq!(lease.taken, 0);
    pair.share.grant(&lease, (NOW, wanted), NOW, &mut pair.totals);
    assert!(pair.take(NOW, 1).is_none(), "the server is asked");
}

#[test]
fn a_window_s_tokens_are_good_until_it_ends() {
    let window = Limit::fixed_window(10, Duration::from_secs(1));
    let mut pair = Pair::new(window, 5..=5);
    assert!(pair.lease(NOW));
    assert_eq!(pair.unspent(NOW + SECOND - 2_000), 4);
    assert_eq!(pair.unspent(NOW + SECOND - 1), 0, "clocks differ");
    assert_eq!(pair.totals.expired, 4);
}

#[test]
fn a_clock_that_is_set_back_makes_tokens_void() {
    let mut pair = Pair::new(TEN, 5..=5);
    assert!(pair.lease(NOW));
    assert_eq!(pair.unspent(NOW + SECOND / 2), 4);
    assert_eq!(pair.unspent(NOW + SECOND / 4), 0);
}

#[test]
fn a_refusal_is_remembered_until_it_ends() {
    let mut pair = Pair::new(TEN, 1..=5);
    assert!(pair.server.limit.take(&mut pair.server.state, NOW, 10).is_admitted());
    assert!(!pair.lease(NOW));
    let refused = pair.take(NOW + SECOND - 1, 1).expect("it is known");
    assert_eq!(refused.retry_after(), Some(Duration::from_micros(1)));
    assert!(pair.take(NOW + SECOND - 1, 2).is_none(), "another cost is another question");
    assert!(pair.take(NOW + SECOND, 1).is_none());
    assert!(pair.lease(NOW + SECOND));
}

#[test]
fn batches_grow_with_demand_and_shrink_without() {
    let mut pair = Pair::new(Limit::per_second(1_000), 1..=64);
    let mut now = NOW;
    for _ in 0..2_000 {
        now += 2_000;
        if pair.take(now, 1).is_none() {
            assert!(pair.lease(now));
        }
    }
    assert_eq!(pair.share.size, 64);
    assert!(pair.totals.leases < 300, "half of what is allowed: {:?}", pair.totals);
    for _ in 0..8 {
        now += SECOND;
        assert!(pair.take(now, 1).is_none());
        assert!(pair.lease(now));
    }
    assert_eq!(pair.share.size, 1);
}

#[test]
fn no_more_than_half_of_what_is_left_is_taken_ahead() {
    let mut pair = Pair::new(Limit::fixed_window(100, Duration::from_secs(3_600)), 64..=64);
    let mut batches = Vec::new();
    for at in 0..100 {
        if pair.take(NOW + at, 1).is_none() {
            let before = pair.totals.leased;
            assert!(pair.lease(NOW + at));
            batches.push(pair.totals.leased - before);
        }
    }
    assert_eq!(batches, [64, 18, 9, 4, 2, 1, 1, 1]);
    assert!(!pair.lease(NOW + 100));
}

/// Another thread may have used a later time while this one waited for the lock.
#[test]
fn a_time_that_was_read_too_early_makes_nothing_void() {
    let mut pair = Pair::new(TEN, 5..=5);
    assert!(pair.lease(NOW));
    let at = |now| Moment { now, slack: 20, is_manual: false };
    pair.share.expire(at(NOW + SECOND / 2), &mut pair.totals);
    pair.share.expire(at(NOW), &mut pair.totals);
    assert_eq!(pair.share.unspent(), 4);
}

/// They would keep the new numbers from admitting anything until they have drained.
#[test]
fn a_lease_that_arrives_after_the_numbers_have_changed_is_given_back() {
    let mut pair = Pair::new(TEN, 3..=3);
    assert!(pair.lease(NOW));
    let wanted = pair.share.request(NOW, &pair.batch).expect("nothing is under way");
    assert_eq!(pair.share.leave().map(|tokens| tokens.unspent).sum::<u64>(), 2);
    let lease = pair.server.lease(wanted, NOW);
    let (told, surplus) = pair.share.grant(&lease, (NOW, wanted), NOW, &mut pair.totals);
    assert!(told.is_empty());
    assert_eq!(surplus.map(|tokens| tokens.unspent), Some(lease.taken));
    assert_eq!(pair.unspent(NOW), 0);
    // Once these numbers decide again, the next one is kept.
    assert!(pair.take(NOW, 1).is_none());
    assert!(pair.lease(NOW));
    assert!(pair.unspent(NOW) > 0);
}

#[test]
fn a_lease_that_arrives_late_after_the_numbers_have_changed_is_given_back() {
    let mut pair = Pair::new(TEN, 3..=3);
    let wanted = pair.share.request(NOW, &pair.batch).expect("nothing is under way");
    assert_eq!(pair.share.leave().count(), 0);
    let lease = pair.server.lease(wanted, NOW);
    pair.share.fail();
    let surplus = pair.share.add(LeasedTokens::new(&lease, NOW));
    assert_eq!(surplus.map(|tokens| tokens.unspent), Some(lease.taken));
    assert_eq!(pair.unspent(NOW), 0);
}
