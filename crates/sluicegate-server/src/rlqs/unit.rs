//! A bucket of one Envoy: a client of the pool.

use std::sync::Arc;
use std::time::Duration;

use sluicegate_lease::pool::{Answer, Ask};
use sluicegate_lease::{Amount, Demand, Pool, message};

use super::assignment::Assignment;
use super::outstanding::OutstandingParts;
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
    /// The stream that it began on, and its own number.
    number: (u64, u64),
    /// Its name in the pool, from its first part on. It has the fence in it: a unit of another server with the same
    /// numbers is not the one that this server has learned of.
    client: Box<str>,
    sequence: u64,
    /// What it wants each second.
    wants: Amount,
    /// What it certainly had, by its own account.
    had: Amount,
    /// When that may have ended, and be another's.
    had_until: u64,
    outstanding: OutstandingParts,
    /// What was sent last: as it follows from its part, and as it was told.
    assigned: Option<(Assignment, Assignment)>,
    /// When that ends at the Envoy at the earliest.
    assigned_until: u64,
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
    pub(super) fn of((capacity, draw): Source<'_>, bucket: &BucketId) -> Self {
        Self {
            resource: capacity.resource(draw, bucket),
            capacity: capacity.per_second,
            burst: capacity.burst,
            weight: draw.weight,
            band: draw.band,
            lease: millis(capacity.lease),
        }
    }
}

/// The time to live of an assignment, in seconds. The lease is in milliseconds.
fn time_to_live(lease: u64) -> u64 {
    lease.saturating_sub(MARGIN) / 1_000
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
            // Its count spans a stream that this server has not seen, so it says both what it wants and, from below,
            // what it has: Envoy cuts the time to whole seconds, and may have spent its burst.
            let burst = terms.burst as f64 / terms.capacity.as_f64();
            let had = rate(used.allowed, seconds + 1.0 + burst);
            (rate(count, seconds), had)
        } else {
            // Half of an equal part, until it has told what it needs.
            (terms.capacity.share(1, 2 * (others as u64 + 1)), Amount::ZERO)
        };
        // It was assigned no later than with the report before this one.
        let elapsed = millis(used.elapsed);
        let had_until =
            now.saturating_add((time_to_live(terms.lease) * 1_000).saturating_sub(elapsed));
        Self {
            stream: Some(stream),
            number: (stream, number),
            client: Box::default(),
            bucket,
            terms,
            sequence: 0,
            wants,
            had,
            had_until,
            outstanding: OutstandingParts::default(),
            assigned: None,
            assigned_until: now,
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
        // Small changes are mostly chance. Each change divides the capacity anew among all buckets and sends every one
        // of them a message, so what is within an eighth is only followed by a quarter.
        let (old, new) = (self.wants.millionths(), wants.millionths());
        self.wants = match old.abs_diff(new) <= old / 8 {
            true => Amount::from_millionths(old - old / 4 + new / 4),
            false => wants,
        };
    }

    /// A message came on its stream. Returns whether others may have more now.
    pub(super) fn message_came(&mut self, now: u64) -> bool {
        self.outstanding.reported(now)
    }

    /// Its stream is lost. It may go on with what it has.
    pub(super) fn lose(&mut self) {
        self.stream = None;
        self.outstanding.lost();
    }

    /// Its Envoy is back, on another stream.
    pub(super) fn adopt(&mut self, now: u64, stream: u64) {
        self.stream = Some(stream);
        (self.reported, self.since, self.counted) = (now, now, 0);
    }

    /// Puts other terms in force, from the next assignment on: what was sent lasts as long as it was told. Returns false
    /// if the bucket draws on something else now.
    pub(super) fn set_terms(&mut self, terms: Option<Terms>) -> bool {
        match terms {
            Some(terms) if terms.resource == self.terms.resource => {
                self.terms = terms;
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
        self.outstanding.last().is_none_or(|part| part < self.wants && !is_close(part, self.wants))
    }

    /// Whether its Envoy has nothing any more, even if that got its assignment late.
    pub(super) fn is_over(&self, now: u64) -> bool {
        match self.assigned {
            Some(_) => now >= self.outstanding.until(),
            None => now >= self.reported.saturating_add(self.terms.lease),
        }
    }

    /// Whether it still reports.
    pub(super) fn is_alive(&self, now: u64) -> bool {
        self.stream.is_some() && !self.is_abandoned && now < self.reported.saturating_add(SILENT)
    }

    /// Asks for a part. Returns what its Envoy has to be told, and the time to live of that in seconds; always, to `renew`
    /// what it has.
    pub(super) fn divide(
        &mut self,
        now: u64,
        renew: bool,
        pool: &mut Pool,
    ) -> Option<(Assignment, u64)> {
        if !self.is_alive(now) || (self.assigned.is_some() && now >= self.assigned_until) {
            // Behind its end, Envoy has dropped the bucket, and a new assignment begins with all tokens. A burst within
            // the old assignment and another within the new one would be two in one time. So nothing is said until
            // `is_over`, which is later than the end in the Envoy by the margin.
            return None;
        }
        // The pool takes what a client says to have as spent. That is the largest of what may still be in force, and
        // not the last: otherwise others get what this Envoy is spending until its smaller part has arrived.
        let (mut part, mut lease) = self.ask(now, self.outstanding.most(), pool)?;
        if pool.is_learning(&self.terms.resource) && self.assigned.is_none() {
            // It keeps what it has shown to have, as far as others have not shown more.
            let free = self.terms.capacity.saturating_sub(pool.outstanding(&self.terms.resource));
            let had = if now < self.had_until { self.had } else { Amount::ZERO };
            (part, lease) = self.ask(now, had.min(free), pool)?;
            if part.is_zero() {
                return None;
            }
        }
        // Rounding of shares changes by a little whenever anything changes. The same part again costs no message and
        // keeps the list of outstanding parts short.
        let part = self.outstanding.last().filter(|last| is_close(*last, part)).unwrap_or(part);
        let plain = Assignment::of(part, self.terms.capacity, self.terms.burst);
        let assigned = match self.assigned {
            Some((before, _)) if before == plain && !renew => return None,
            Some((before, assigned)) if before == plain => assigned,
            Some((_, assigned)) => plain.after(assigned),
            None => plain,
        };
        // As long as the pool holds it, which may have had another file for a moment than this.
        let time_to_live = time_to_live(lease);
        self.outstanding.sent(now, part, now.saturating_add(lease));
        self.assigned_until = now.saturating_add(time_to_live * 1_000);
        self.assigned = Some((plain, assigned));
        Some((assigned, time_to_live))
    }

    /// Returns the part, and how long the pool holds it, in milliseconds.
    fn ask(&mut self, now: u64, has: Amount, pool: &mut Pool) -> Option<(Amount, u64)> {
        let fence = pool.fence()?;
        if self.client.is_empty() {
            let (stream, number) = self.number;
            self.client = format!("envoy/{fence}/{stream}/{number}").into();
        }
        self.sequence += 1;
        let Terms { capacity, weight, band, .. } = self.terms;
        let more =
            Amount::from_millionths(self.wants.millionths() / 4 + capacity.millionths() / 32);
        let demands = [
            // What it used is all that is known of what it wants. A bucket at its limit shows what it was given plus
            // what was denied, which Envoy counts too.
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
            Ok(Answer::Grant(grant)) => Some((grant.capacity, millis(grant.ttl))),
            _ => None,
        }
    }

    /// Gives back what it had.
    pub(super) fn release(&mut self, now: u64, pool: &mut Pool) {
        self.sequence += 1;
        (self.outstanding, self.assigned) = (OutstandingParts::default(), None);
        self.had = Amount::ZERO;
        let Some(fence) = pool.fence().filter(|_| !self.client.is_empty()) else { return };
        let (client, sequence) = (self.client.clone(), self.sequence);
        let resources = vec![self.terms.resource.clone()];
        let instance = 0;
        pool.release(now, &message::Release { client, instance, sequence, fence, resources });
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn rate(count: u64, seconds: f64) -> Amount {
    Amount::from_f64(count as f64 / seconds).unwrap_or(Amount::MAX)
}

/// Whether the difference is not worth a change.
fn is_close(one: Amount, other: Amount) -> bool {
    one.millionths().abs_diff(other.millionths()) <= one.millionths() / 128
}
