//! A bucket of one Envoy: a client of the pool.

use std::sync::Arc;
use std::time::Duration;

use sluicegate_lease::pool::{Answer, Ask};
use sluicegate_lease::{Amount, Demand, Pool, message};

use crate::capacity::{BucketId, Source};

/// How much a bucket was used since it was last reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BucketUsage {
    /// Requests that passed.
    pub allowed: u64,
    /// Requests that did not.
    pub denied: u64,
    /// For how long that was counted; nothing for a bucket that is new.
    pub elapsed: Duration,
}

/// By the file of capacities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Terms {
    pub(super) resource: Box<str>,
    capacity: Amount,
    burst: u64,
    weight: u32,
    band: u8,
    /// In milliseconds.
    lease: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Unit {
    /// None once the stream is lost.
    pub(super) stream: Option<u64>,
    pub(super) bucket: Arc<BucketId>,
    pub(super) terms: Terms,
    /// Its name in the pool.
    client: Box<str>,
    sequence: u64,
    /// What it wants each second.
    wants: Amount,
    /// What it certainly had, by its own account.
    had: Amount,
    held: Held,
    /// What was sent last: as it follows from its part, and as it was told.
    told: Option<(Assignment, Assignment)>,
    /// When that was sent, again or for the first time.
    told_at: u64,
    reported: u64,
    /// Counts since this moment are not in `wants` yet.
    since: u64,
    counted: u64,
    /// When it was last used.
    used: u64,
    /// It was told to be forgotten.
    is_abandoned: bool,
}

/// Assignments end this much earlier at the Envoy than here: for the time that they are on their way, and so that a bucket
/// that begins anew with all its tokens has not been spent in the same second.
const MARGIN: u64 = 2_000;
/// Counts of a shorter time say little about the rate.
const ENOUGH: u64 = 2_000;
/// Without a report for so long, nothing more is assigned. Envoy reports every 5 seconds.
const SILENT: u64 = 12_000;
/// A bucket that is not used for this many leases is forgotten.
const IDLE_LEASES: u64 = 6;
/// The band for what is left over.
const LEFT_OVER: u8 = u8::MAX;

impl Terms {
    pub(super) fn of(source: &Source<'_>, bucket: &BucketId) -> Self {
        Self {
            resource: source.resource(bucket),
            capacity: source.capacity.per_second,
            burst: source.capacity.burst,
            weight: source.draw.weight,
            band: source.draw.band,
            lease: u64::try_from(source.capacity.lease.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// The time to live of assignments, in seconds.
    pub(super) fn time_to_live(&self) -> u64 {
        self.lease.saturating_sub(MARGIN) / 1_000
    }
}

impl Unit {
    /// A bucket that is reported for the first time. `others` have the same capacity.
    pub(super) fn new(
        now: u64,
        (stream, number): (u64, u64),
        (bucket, terms): (Arc<BucketId>, Terms),
        used: BucketUsage,
        others: usize,
    ) -> Self {
        let count = used.allowed.saturating_add(used.denied);
        let seconds = used.elapsed.as_secs_f64();
        let (wants, had) = if seconds > 0.0 {
            // Envoy cuts the time to whole seconds, and may have spent its burst.
            let burst = terms.burst as f64 / terms.capacity.as_f64();
            (rate(count, seconds), rate(used.allowed, seconds + 1.0 + burst))
        } else {
            // Half of an equal part, until it has told what it needs.
            (terms.capacity.share(1, 2 * (others as u64 + 1)), Amount::ZERO)
        };
        Self {
            stream: Some(stream),
            client: format!("envoy/{stream}/{number}").into(),
            bucket,
            terms,
            sequence: 0,
            wants,
            had,
            held: Held::default(),
            told: None,
            told_at: now,
            reported: now,
            since: now,
            counted: 0,
            used: now,
            is_abandoned: false,
        }
    }

    /// The bucket is reported again.
    pub(super) fn count(&mut self, now: u64, used: BucketUsage) {
        let count = used.allowed.saturating_add(used.denied);
        self.reported = now;
        if count > 0 {
            self.used = now;
            self.is_abandoned = false;
        }
        self.counted = self.counted.saturating_add(count);
        let elapsed = now.saturating_sub(self.since);
        if elapsed < ENOUGH {
            return;
        }
        let wants = rate(self.counted, elapsed as f64 / 1_000.0);
        (self.counted, self.since) = (0, now);
        // Small changes are mostly chance.
        let (old, new) = (self.wants.millionths(), wants.millionths());
        self.wants = match old.abs_diff(new) <= old / 8 {
            true => Amount::from_millionths(old - old / 4 + new / 4),
            false => wants,
        };
    }

    /// A message came on its stream. Returns whether others may have more now.
    pub(super) fn heard(&mut self, now: u64) -> bool {
        self.held.reported(now)
    }

    /// Its stream is lost. It may go on with what it has.
    pub(super) fn lose(&mut self) {
        self.stream = None;
        self.held.lost();
    }

    /// Its Envoy is back, on another stream.
    pub(super) fn adopt(&mut self, now: u64, stream: u64) {
        self.stream = Some(stream);
        (self.reported, self.since, self.counted) = (now, now, 0);
    }

    /// Puts other terms in force. Returns false if the bucket draws on something else now.
    pub(super) fn set_terms(&mut self, terms: Option<Terms>) -> bool {
        match terms {
            Some(terms) if terms.resource == self.terms.resource => {
                // What it holds may last as long as before.
                let lease = terms.lease.max(self.terms.lease);
                self.terms = Terms { lease, ..terms };
                true
            }
            _ => false,
        }
    }

    pub(super) fn abandon(&mut self) {
        self.is_abandoned = true;
    }

    pub(super) fn is_idle(&self, now: u64) -> bool {
        !self.is_abandoned && now >= self.used.saturating_add(IDLE_LEASES * self.terms.lease)
    }

    /// Whether it has less than it wants.
    pub(super) fn lacks(&self) -> bool {
        self.held.last().is_none_or(|part| part < self.wants && !is_close(part, self.wants))
    }

    /// Whether its Envoy has nothing any more, even if that got its assignment late.
    pub(super) fn is_over(&self, now: u64) -> bool {
        now >= self.told_at.max(self.reported_if_untold()).saturating_add(self.terms.lease)
    }

    /// Whether it still reports.
    pub(super) fn is_alive(&self, now: u64) -> bool {
        self.stream.is_some() && !self.is_abandoned && now < self.reported.saturating_add(SILENT)
    }

    fn reported_if_untold(&self) -> u64 {
        if self.told.is_none() { self.reported } else { 0 }
    }

    /// Asks for a part. Returns what its Envoy has to be told; always, to `renew` what it has.
    pub(super) fn divide(&mut self, now: u64, renew: bool, pool: &mut Pool) -> Option<Assignment> {
        let ends = self.told_at.saturating_add(self.terms.time_to_live() * 1_000);
        if !self.is_alive(now) || (self.told.is_some() && now >= ends) {
            // At the end, what is assigned anew begins with all tokens: only after the old has ended for certain.
            return None;
        }
        let mut part = self.ask(now, self.held.most(), pool)?;
        if pool.is_learning(&self.terms.resource) && self.told.is_none() {
            // It keeps what it has shown to have, as far as others have not shown more.
            let free = self.terms.capacity.saturating_sub(pool.outstanding(&self.terms.resource));
            part = self.ask(now, self.had.min(free), pool)?;
            if part.is_zero() {
                return None;
            }
        }
        let part = self.held.last().filter(|last| is_close(*last, part)).unwrap_or(part);
        let plain = Assignment::of(part, self.terms.capacity, self.terms.burst);
        let told = match self.told {
            Some((before, _)) if before == plain && !renew => return None,
            Some((before, told)) if before == plain => told,
            Some((_, told)) => plain.after(told),
            None => plain,
        };
        self.held.sent(now, part);
        (self.told, self.told_at) = (Some((plain, told)), now);
        Some(told)
    }

    fn ask(&mut self, now: u64, has: Amount, pool: &mut Pool) -> Option<Amount> {
        let fence = pool.fence()?;
        self.sequence += 1;
        let Terms { capacity, weight, band, .. } = self.terms;
        let more =
            Amount::from_millionths(self.wants.millionths() / 4 + capacity.millionths() / 32);
        let demands = [
            Demand::of(self.wants).weight(weight).band(band),
            // So that it can grow before it has reported.
            Demand::of(more).weight(weight).band(LEFT_OVER),
        ];
        let resource = &self.terms.resource;
        // What an Envoy was told may be a little more than what was granted since.
        let outstanding = has;
        let ask = Ask {
            has,
            outstanding,
            ..Ask::new(&self.client, resource, self.sequence, fence, &demands)
        };
        match pool.ask(now, &ask) {
            Ok(Answer::Grant(grant)) => Some(grant.capacity),
            _ => None,
        }
    }

    /// Gives back what it had.
    pub(super) fn release(&mut self, now: u64, pool: &mut Pool) {
        self.sequence += 1;
        (self.held, self.told) = (Held::default(), None);
        self.had = Amount::ZERO;
        let Some(fence) = pool.fence() else { return };
        let (client, sequence) = (self.client.clone(), self.sequence);
        let resources = vec![self.terms.resource.clone()];
        let instance = 0;
        pool.release(now, &message::Release { client, instance, sequence, fence, resources });
    }
}

fn rate(count: u64, seconds: f64) -> Amount {
    Amount::from_f64(count as f64 / seconds).unwrap_or(Amount::MAX)
}

/// Whether the difference is not worth a change.
fn is_close(one: Amount, other: Amount) -> bool {
    one.millionths().abs_diff(other.millionths()) <= one.millionths() / 128
}

// What an Envoy is told about a bucket.

/// A token bucket, or none at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assignment {
    /// Nothing passes.
    Nothing,
    /// This much passes.
    Tokens {
        /// The most tokens at once.
        most: u32,
        /// Tokens for each interval.
        fill: u32,
        /// The interval in seconds. Envoy knows whole seconds only.
        seconds: u32,
    },
}

/// Intervals in seconds. A longer one tells a small rate more exactly.
const INTERVALS: [u32; 8] = [1, 2, 5, 10, 30, 60, 300, 3_600];
/// With as many tokens for each interval, what is cut off is at most a hundredth.
const EXACT: u64 = 100;

impl Assignment {
    /// The token bucket for a part of a capacity, with the same part of its burst. Nothing is rounded up, except that a
    /// bucket has room for one token.
    pub fn of(part: Amount, capacity: Amount, burst: u64) -> Self {
        let fill = |seconds: u32| {
            let tokens = u128::from(part.millionths()) * u128::from(seconds) / 1_000_000;
            u64::try_from(tokens).unwrap_or(u64::MAX)
        };
        let exact = INTERVALS.into_iter().find(|seconds| fill(*seconds) >= EXACT);
        let seconds = exact.unwrap_or(INTERVALS[INTERVALS.len() - 1]);
        let (fill, whole) = (fill(seconds), capacity.millionths().max(part.millionths()).max(1));
        if fill == 0 {
            return Self::Nothing;
        }
        let most = u128::from(burst) * u128::from(part.millionths()) / u128::from(whole);
        let most = u32::try_from(most).unwrap_or(u32::MAX).max(1);
        Self::Tokens { most, fill: u32::try_from(fill).unwrap_or(u32::MAX), seconds }
    }

    /// This assignment in a form that replaces `before`: Envoy ignores a change of the interval alone.
    #[must_use]
    pub fn after(self, before: Self) -> Self {
        match (self, before) {
            (
                Self::Tokens { most, fill, seconds },
                Self::Tokens { most: most_before, fill: fill_before, seconds: seconds_before },
            ) if (most, fill) == (most_before, fill_before) && seconds != seconds_before => {
                // An exact number of tokens is at least 100; others have the longest interval both times.
                Self::Tokens { most, fill: fill.saturating_sub(1).max(1), seconds }
            }
            _ => self,
        }
    }
}

#[cfg(test)]
mod assignment_tests {
    use sluicegate_lease::Amount;

    use super::Assignment;

    fn of(part: f64) -> Assignment {
        let part = Amount::from_f64(part).expect("an amount");
        Assignment::of(part, Amount::units(1_000), 100)
    }

    #[test]
    fn a_part_of_the_capacity_has_that_part_of_the_burst() {
        assert_eq!(of(600.9), Assignment::Tokens { most: 60, fill: 600, seconds: 1 });
        assert_eq!(of(25.5), Assignment::Tokens { most: 2, fill: 127, seconds: 5 });
        assert_eq!(of(0.01), Assignment::Tokens { most: 1, fill: 36, seconds: 3_600 });
        assert_eq!(of(0.0001), Assignment::Nothing);
        assert_eq!(of(0.0), Assignment::Nothing);
    }

    #[test]
    fn nothing_is_rounded_up_and_little_is_lost() {
        for millionths in (300_000..2_000_000_000_u64).step_by(9_999_991) {
            let part = Amount::from_millionths(millionths);
            let Assignment::Tokens { fill, seconds, .. } = of(part.as_f64()) else { panic!() };
            let rate = f64::from(fill) / f64::from(seconds);
            assert!(rate <= part.as_f64() && rate >= part.as_f64() * 0.99, "{part}: {rate}");
        }
    }

    #[test]
    fn a_change_of_the_interval_alone_changes_another_number_too() {
        let (slow, fast) = (of(50.0), of(100.0));
        assert_eq!(slow, Assignment::Tokens { most: 5, fill: 100, seconds: 2 });
        assert_eq!(fast.after(slow), fast);
        let other = Assignment::Tokens { most: 5, fill: 100, seconds: 1 };
        assert_eq!(slow.after(other), Assignment::Tokens { most: 5, fill: 99, seconds: 2 });
    }

    #[test]
    fn the_largest_amounts_fit() {
        let all = Assignment::of(Amount::MAX, Amount::MAX, u64::MAX);
        assert_eq!(all, Assignment::Tokens { most: u32::MAX, fill: 1_000_000_000, seconds: 1 });
    }
}

// What an Envoy may be spending.

/// The assignments of a bucket that its Envoy may still keep to.
///
/// Envoy acknowledges nothing. So the largest of them counts until a report comes that was sent after a newer one had
/// arrived, or until the time to live has passed.
#[derive(Debug, Clone, Default)]
pub(super) struct Held(Vec<Sent>);

#[derive(Debug, Clone, Copy)]
struct Sent {
    part: Amount,
    at: u64,
}

/// How long an assignment may be on its way, in milliseconds. A report that comes later was sent after it had arrived.
pub(super) const ON_ITS_WAY: u64 = 1_000;
/// More than this count as one.
const MOST: usize = 8;

impl Held {
    /// The most that the Envoy may be spending.
    pub(super) fn most(&self) -> Amount {
        self.0.iter().map(|sent| sent.part).max().unwrap_or_default()
    }

    /// What was sent last.
    pub(super) fn last(&self) -> Option<Amount> {
        self.0.last().map(|sent| sent.part)
    }

    /// A new part was sent. The same again only renews the last.
    pub(super) fn sent(&mut self, now: u64, part: Amount) {
        if self.last() == Some(part) {
            return;
        }
        if self.0.len() >= MOST {
            let first = self.0.remove(0);
            self.0[0].part = self.0[0].part.max(first.part);
        }
        self.0.push(Sent { part, at: now });
    }

    /// A report has come: what is on its way no longer has arrived.
    ///
    /// Returns whether less counts than before.
    pub(super) fn reported(&mut self, now: u64) -> bool {
        let before = self.most();
        let arrived = self.0.iter().rposition(|sent| sent.at.saturating_add(ON_ITS_WAY) <= now);
        if let Some(arrived) = arrived {
            self.0.drain(..arrived);
        }
        self.most() < before
    }

    /// The stream was lost. Nobody knows what had arrived.
    pub(super) fn lost(&mut self) {
        let (most, last) = (self.most(), self.0.last().copied());
        self.0 = last.map(|last| Sent { part: most, ..last }).into_iter().collect();
    }
}

#[cfg(test)]
mod held_tests {
    use sluicegate_lease::Amount;

    use super::{Held, MOST};

    fn held(sent: &[(u64, u64)]) -> Held {
        let mut held = Held::default();
        sent.iter().for_each(|&(now, part)| held.sent(now, Amount::units(part)));
        held
    }

    #[test]
    fn a_smaller_part_counts_once_a_report_proves_that_it_has_arrived() {
        let mut held = held(&[(0, 600), (5_000, 300)]);
        assert!(!held.reported(5_900));
        assert_eq!(held.most(), Amount::units(600));
        assert!(held.reported(6_000));
        assert_eq!(held.most(), Amount::units(300));
    }

    #[test]
    fn a_part_on_its_way_is_not_forgotten_for_one_that_has_arrived() {
        let mut held = held(&[(0, 600), (1_000, 100), (1_900, 400)]);
        held.reported(2_000);
        assert_eq!(held.most(), Amount::units(400));
        held.sent(2_100, Amount::units(50));
        held.reported(2_900);
        assert_eq!(held.most(), Amount::units(400));
    }

    #[test]
    fn many_changes_take_no_more_room_and_count_no_less() {
        let mut held = held(&[(0, 600)]);
        for now in 1..100 {
            held.sent(now, Amount::units(now));
        }
        assert_eq!(held.most(), Amount::units(600));
        assert_eq!(held.0.len(), MOST);
    }

    #[test]
    fn after_a_loss_the_largest_counts() {
        let mut held = held(&[(0, 600), (5_000, 300)]);
        held.lost();
        assert!(!held.reported(60_000));
        assert_eq!(held.most(), Amount::units(600));
        assert_eq!(held.last(), Some(Amount::units(600)));
    }
}
