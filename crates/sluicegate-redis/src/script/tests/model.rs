//! The Rust step beside the scripts. Both get the same calls, and must give the same answers and keep the same
//! states.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::remote::{self, Algorithm, LimitParameters, StateFields};
use sluicegate_core::adapter::{Charge, Debit, Outcome, Receipt, State, decide, preview};

use super::super::lease::{Lease, LeaseRequest};
use super::super::{Call, Caller, Row};
use super::compare::{assert_equal, has_begun, outcome, records, rows, with_attempts};
use super::redis::Redis;
use super::rows::{dropped, held, in_any_order, slack};
use crate::rows::{Naming, row_key};

/// How long places stay taken after the last sign of life of their holder, in milliseconds.
const HELD: u64 = 3_600_000;

/// Dropped stamps that a refusal may leave in place.
const LEFT: usize = 64;

/// Whether a row is written without a change, except for stamps that have left the window.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Write {
    Must,
    May,
    MustNot,
}

/// Both sides, and what the Rust side remembers.
pub(super) struct Pair {
    pub(super) redis: Redis,
    naming: Naming,
    states: BTreeMap<Vec<u8>, State>,
    /// The limit that has written a row last, among those that share it. It determines when the row expires.
    writers: BTreeMap<Vec<u8>, Limit>,
    /// Rows whose expiry was set by a script that got its time from the test.
    told: BTreeSet<Vec<u8>>,
    /// The turn in which the one holder took the first of what it holds.
    since: BTreeMap<Vec<u8>, u64>,
    turn: u64,
    pub(super) now: u64,
    /// Whether the scripts get the time from the test, or ask for it.
    pub(super) tells_time: bool,
}

impl Pair {
    pub(super) fn new() -> Self {
        let naming = Naming::new("t:").unwrap();
        Self {
            redis: Redis::new(),
            naming,
            states: BTreeMap::new(),
            writers: BTreeMap::new(),
            told: BTreeSet::new(),
            since: BTreeMap::new(),
            turn: 0,
            now: 0,
            tells_time: false,
        }
    }

    pub(super) fn clear(&mut self) {
        self.redis.clear();
        self.states.clear();
        self.writers.clear();
        self.since.clear();
    }

    pub(super) fn turn_to(&mut self, now: u64) {
        self.now = now;
        self.redis.turn_to(now);
    }

    /// A single process. Its lease ends when a row that it holds expires.
    fn by(&mut self) -> Caller {
        self.turn += 1;
        Caller { turn: self.turn, ..Caller::from(self.tells_time.then_some(self.now)) }
    }

    /// The outcome as the Rust step knows it. It counts what is held, but not since when.
    fn plain(&mut self, given: &Outcome, charge: &Charge, keys: &[Vec<u8>]) -> Outcome {
        if !charge.debits().any(|debit| debit.limit.is_held()) {
            return given.clone();
        }
        let decision = given.decision(charge);
        let statuses =
            decision.statuses().zip(charge.debits()).zip(keys).map(|((told, debit), key)| {
                let mut status = told.clone();
                if debit.limit.is_held() && !status.receipt.is_void() {
                    let (words, gap, banned) = remote::receipt_words(&status.receipt);
                    if status.charged > 0 && words[0] == status.charged {
                        self.since.insert(key.clone(), self.turn);
                    }
                    if status.charged > 0 {
                        let since = self.since.get(key);
                        assert_eq!(
                            Some(&words[1]),
                            since,
                            "its receipt has the turn in which it began"
                        );
                    }
                    let carried = remote::carried(&status.receipt);
                    let receipt = remote::receipt([words[0], 0], gap, banned);
                    status.receipt = remote::receipt_carried(receipt, carried);
                }
                status
            });
        Outcome::from_parts(given.verdict(), statuses.collect::<Vec<_>>())
    }

    fn key(&self, debit: &Debit) -> Vec<u8> {
        row_key(&self.naming, &debit.key, &debit.limit)
    }

    /// What the Rust side remembers. Nothing, if the row has expired.
    fn state(&mut self, key: &[u8], limit: &Limit) -> State {
        if self.redis.row(key).is_some() {
            return self.states.get(key).cloned().unwrap_or_default();
        }
        let state = self.states.remove(key).unwrap_or_default();
        // A dead holder does not hold for ever.
        let limit = self.writers.get(key).unwrap_or(limit);
        let fresh = limit.fresh_in(&state, self.now);
        assert!(
            fresh.is_none_or(|fresh| fresh.is_zero()),
            "the row of {limit} has expired, {fresh:?} too early"
        );
        State::default()
    }

    fn states(&mut self, charge: &Charge) -> (Vec<Vec<u8>>, Vec<State>) {
        let keys: Vec<_> = charge.debits().map(|debit| self.key(debit)).collect();
        let states =
            keys.iter().zip(charge.debits()).map(|(key, debit)| self.state(key, &debit.limit));
        let states = states.collect();
        (keys, states)
    }

    pub(super) fn take(&mut self, charge: &Charge) -> Outcome {
        let (keys, before) = self.states(charge);
        let mut after = before.clone();
        let (now, patience) = (self.now, charge.patience());
        let expected = with_attempts(&mut after, charge, |attempts| {
            decide(attempts, now, patience, charge.keys())
        });
        let rows = rows(&keys, charge);
        let by = self.by();
        let answer = self.redis.run(&Call::take(&rows, patience, charge.keys(), by));
        let given = outcome(charge.debits(), &answer.unwrap()).unwrap();
        assert_equal(&self.plain(&given, charge, &keys), &expected, charge);
        let decision = expected.decision(charge);
        for (i, (debit, status)) in charge.debits().zip(decision.statuses()).enumerate() {
            let is_refused = status.refused || status.shadowed;
            // A cost that can never be admitted is no attempt to go faster.
            let is_never = expected.never_fits() || debit.limit.never_fits(debit.cost);
            let records = is_refused && !is_never && records(&debit.limit)
                || has_begun(&before[i], &after[i]);
            let charged = decision.is_admitted() && !status.shadowed;
            let write = if charged || records { Write::Must } else { Write::MustNot };
            self.keep(&keys[i], &debit.limit, &before[i], &after[i], write);
        }
        given
    }

    pub(super) fn peek(&mut self, charge: &Charge) {
        let (keys, mut states) = self.states(charge);
        let rows = rows(&keys, charge);
        let by = self.by();
        let answer = self.redis.run(&Call::peek(&rows, charge.patience(), charge.keys(), by));
        assert!(!self.redis.has_written_any(), "a peek writes nothing");
        let given = outcome(charge.debits(), &answer.unwrap()).unwrap();
        self.assert_previewed(&given, &mut states, charge);
    }

    pub(super) fn reset(&mut self, charge: &Charge) {
        let (keys, mut states) = self.states(charge);
        for (state, debit) in states.iter_mut().zip(charge.debits()) {
            if !debit.limit.is_held() {
                *state = State::default();
            }
        }
        let rows = rows(&keys, charge);
        let by = self.by();
        let answer = self.redis.run(&Call::reset(&rows, charge.patience(), charge.keys(), by));
        let given = outcome(charge.debits(), &answer.unwrap()).unwrap();
        self.assert_previewed(&given, &mut states, charge);
        for ((key, debit), state) in keys.iter().zip(charge.debits()).zip(states) {
            assert!(debit.limit.is_held() || self.redis.row(key).is_none(), "a row was not reset");
            self.states.insert(key.clone(), state);
        }
    }

    fn assert_previewed(&self, given: &Outcome, states: &mut [State], charge: &Charge) {
        let now = self.now;
        let expected = with_attempts(states, charge, |attempts| {
            preview(attempts, now, charge.patience(), charge.keys())
        });
        assert_equal(given, &expected, charge);
    }

    pub(super) fn settle(&mut self, debit: &Debit, receipt: &Receipt, spent: u64) {
        let key = self.key(debit);
        let before = self.state(&key, &debit.limit);
        let mut after = before.clone();
        // A forgotten key has nothing to give back.
        let is_held = debit.limit.is_held();
        let (words, ..) = remote::receipt_words(receipt);
        let is_lost = is_held && self.since.get(&key) != Some(&words[1]);
        if self.redis.row(&key).is_some() || spent > debit.cost {
            // What is no longer held is not given back.
            let cost = if is_lost { debit.cost.min(spent) } else { debit.cost };
            debit.limit.settle(&mut after, self.now, receipt, cost, spent);
            let is_carried = LimitParameters::of(&debit.limit).carried;
            if spent < cost && !is_carried {
                self.keep_leased(&key, &debit.limit, &before, &mut after, words);
            }
            if is_carried
                && spent <= cost
                && self.is_kept(&key, &debit.limit, &before, words, cost - spent)
            {
                after = before.clone();
            }
        }
        let row = Row { key: &key, debit };
        let by = self.by();
        self.redis.run(&Call::settle(&row, receipt, spent, by)).unwrap();
        self.keep(&key, &debit.limit, &before, &after, Write::May);
    }

    /// What was leased from a bucket drains as announced. Only the debt above it is given back, except by the last
    /// lease.
    fn keep_leased(
        &self,
        key: &[u8],
        limit: &Limit,
        before: &State,
        after: &mut State,
        receipt: [u64; 2],
    ) {
        let numbers = LimitParameters::of(limit);
        let Algorithm::TokenBucket { drain, tick, .. } = numbers.algorithm else { return };
        let leased = self.redis.row(&[key, b":leased"].concat());
        let Some(leased) = leased.map(|row| held(limit, &row).words) else { return };
        let debt = |[at, debt]: [u64; 2]| {
            debt.saturating_sub((self.now / tick).saturating_sub(at).saturating_mul(drain))
        };
        let (was, is) = (StateFields::from(before).words, StateFields::from(&*after).words);
        if leased != receipt {
            let given = (was[1] - is[1]).min(debt(was).saturating_sub(debt(leased)));
            *after = remote::state([is[0], was[1] - given]);
        }
    }

    /// Nothing of a charge to a carried bucket is given back if any of it may be below leased tokens, except by the last
    /// lease. Other accounts may be leased from as well.
    fn is_kept(
        &self,
        key: &[u8],
        limit: &Limit,
        before: &State,
        receipt: [u64; 2],
        back: u64,
    ) -> bool {
        let numbers = LimitParameters::of(limit);
        let Algorithm::TokenBucket { unit, drain, tick, .. } = numbers.algorithm else {
            return false;
        };
        let Some(leased) = self.redis.row(&[key, b":leased"].concat()) else { return false };
        let double = |at: usize| f64::from_le_bytes(leased[at..at + 8].try_into().unwrap()) as u64;
        assert_eq!(leased.len(), 48, "a lease of a carried bucket has the numbers of its account");
        let fields = StateFields::from(before);
        let accounts = &fields.accounts;
        if accounts.len() != 1
            || fields.shut[1] > 0
            || accounts[0].parameters != [16, 24, 32, 40].map(double)
        {
            return true;
        }
        let debt = |[at, debt]: [u64; 2]| {
            debt.saturating_sub((self.now / tick).saturating_sub(at).saturating_mul(drain))
        };
        let (last, is) = ([double(0), double(8)], debt(fields.words));
        let own = debt(receipt).min(back.saturating_mul(unit)).min(is);
        last != receipt && own > is.saturating_sub(debt(last))
    }

    /// Takes a lease. Returns how much, and its receipt.
    pub(super) fn lease(&mut self, debit: &Debit, least: u64, most: u64) -> (u64, Receipt) {
        let key = self.key(debit);
        let before = self.state(&key, &debit.limit);
        let mut after = before.clone();
        let row = Row { key: &key, debit };
        let by = self.by();
        let wanted = LeaseRequest { least, most, ..LeaseRequest::default() };
        let answer = self.redis.run(&Call::lease(&row, wanted, by)).unwrap();
        let given = Lease::parse(&answer).unwrap();
        let left = debit.limit.peek(&before, self.now, 0).remaining().unwrap();
        let taken = if left >= least { left.min(most) } else { 0 };
        assert_eq!(given.taken, taken, "of {left} that {} has left", debit.limit);
        let cost = if taken > 0 { taken } else { least };
        let expected = debit.limit.take(&mut after, self.now, cost);
        assert_eq!(expected.is_admitted(), taken > 0);
        let retry = if taken > 0 { Some(Duration::ZERO) } else { expected.retry_after() };
        assert_eq!(given.retry_after, retry);
        assert_eq!((given.now, given.words), (self.now, StateFields::from(&after).words));
        let begins = has_begun(&before, &after);
        let write = if taken > 0 || begins { Write::Must } else { Write::MustNot };
        self.keep(&key, &debit.limit, &before, &after, write);
        // Limits with a gap are not leased.
        let receipt = remote::receipt(given.words, [0; 2], given.banned);
        let receipt = remote::receipt_carried(receipt, given.carried);
        if taken > 0 && LimitParameters::of(&debit.limit).carried {
            let (words, _, banned) =
                remote::receipt_words(&expected.statuses().next().unwrap().receipt);
            let carried = remote::carried(&expected.statuses().next().unwrap().receipt);
            assert_eq!((words, banned, carried), (given.words, given.banned, given.carried));
        }
        (taken, receipt)
    }

    /// Compares the row with the result of the Rust step. If the row was not to be written, only stamps that have
    /// left the window may have changed.
    fn keep(&mut self, key: &[u8], limit: &Limit, before: &State, after: &State, write: Write) {
        let (was, is) =
            (in_any_order(StateFields::from(before)), in_any_order(StateFields::from(after)));
        let gone = dropped(&was, &is);
        if !self.redis.has_written(key) {
            let fresh = limit.fresh_in(after, self.now).is_some_and(|fresh| fresh.is_zero());
            assert!(
                write != Write::Must || fresh,
                "the row of {limit} was not written: {was:?}, {is:?}"
            );
            assert!(fresh || gone.is_some_and(|gone| gone <= LEFT), "{limit}: {was:?}, {is:?}");
            if self.redis.row(key).is_some() {
                // It looks fresh, and will soon be forgotten.
                self.states.insert(key.to_vec(), before.clone());
            } else {
                self.states.remove(key);
            }
            return;
        }
        let needless = write == Write::MustNot && gone.is_some_and(|gone| gone <= LEFT);
        assert!(!needless, "a refusal wrote the row of {limit}");
        self.writers.insert(key.to_vec(), *limit);
        let fresh_in = limit.fresh_in(after, self.now);
        let millis = |time: Duration| time.as_micros().div_ceil(1_000) as u64;
        match self.redis.row(key) {
            Some(row) => {
                assert_eq!(
                    in_any_order(held(limit, &row)),
                    is,
                    "the state of {limit}, which was {was:?}"
                );
                // The gap and the ban may last longer than a dead holder's lease.
                let left = |[since, length]: [u64; 2]| {
                    length.saturating_sub(self.now.saturating_sub(since))
                };
                let strikes = if is.strikes[1] > 0 {
                    left([is.strikes[0], LimitParameters::of(limit).within])
                } else {
                    0
                };
                let held = || HELD.max(left(is.gap).max(left(is.ban)).max(strikes).div_ceil(1_000));
                // If the script gets the time from the test, rows must not expire by the server's clock.
                let soonest = if self.tells_time { HELD } else { 1 };
                let at = |millis: u64| self.now / 1_000 + millis.max(soonest);
                let expiry = self.redis.expiry(key).unwrap();
                let least = at(fresh_in.map_or_else(held, millis));
                let fresh_micros = fresh_in.unwrap_or_default().as_micros() as u64;
                // A row that was left as it was may have been rounded differently, but not to an earlier moment: in
                // the millisecond of its expiry a row still exists.
                let rounding = u64::from(!self.redis.has_timed(key));
                assert!(expiry + rounding >= least, "{limit} expires early");
                assert!(1_000 * (expiry + 1) >= self.now + fresh_micros, "{limit} expires early");
                match (self.redis.has_timed(key), self.tells_time) {
                    (true, true) => self.told.insert(key.to_vec()),
                    (true, false) => self.told.remove(key),
                    (false, _) => true,
                };
                // A row written with a test's clock lasts as long as the test wants.
                if self.tells_time || !self.told.contains(key) {
                    let most =
                        fresh_in.map_or_else(held, |fresh| millis(fresh + slack(limit, after)));
                    assert!(expiry <= at(most) + rounding, "{limit} expires late");
                }
                self.states.insert(key.to_vec(), after.clone());
            }
            None => {
                assert_eq!(fresh_in, Some(Duration::ZERO), "the row of {limit} is gone: {is:?}");
                self.states.remove(key);
            }
        }
    }
}
