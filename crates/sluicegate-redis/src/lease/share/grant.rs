//! Requests for more tokens of a share, and what is done with them.
//!
//! A bucket that is leased from is kept half full. In an empty bucket, the place of a leased token drains at the whole rate
//! at once, while one process spends at a fraction of the rate. When each lease was charged by itself, three of four
//! tokens drained unspent, and four processes at 82 % of the limit had one request in eleven refused. So a lease takes the
//! tokens that the process is likely to need until half of the bucket has drained, judged by the last such time. If the
//! bucket is less than half full, the lease also fills it to half. That part drains unused, and takes nothing from other
//! processes, because it is more than all of them spend. More tokens are requested when those in hand last for a quarter of
//! that time. Beyond what waiting requests need, at most half of the rest is taken.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::time::Duration;

use sluicegate_core::adapter::{Charge, Debit};

use super::answer::{REMEMBERED, Refusal, admitted, refusal};
use super::{OF_WINDOW, PendingRequest, Share, Waiter, WaiterAnswer};
use crate::lease::counts::LeaseCounts;
use crate::lease::validity::{LeasedTokens, SOME};
use crate::script::lease::{Lease, LeaseRequest};

/// While a bucket is empty, the server is asked once for so many requests.
const PACED: u64 = 32;

/// A process with fewer requests in a span asks whenever the server may have something again.
const FEW: u64 = 8;

/// The first leases of a bucket are for so many tokens, so that little of it is filled for them.
const BEGIN: u64 = 16;

/// In a smaller bucket, half of it is no more than a process needs to begin with.
const LARGE: u64 = 128;

/// Within this part of the first span, it is not known how many tokens are needed.
const KNOWN_AFTER: u64 = 16;

/// After so many spans, half of a bucket is filled.
const GROWN_AFTER: u128 = 16;

impl Share {
    /// The next lease: for all requests that wait, and some tokens ahead. `None` while a lease is under way.
    pub(in crate::lease) fn request(
        &mut self,
        now: u64,
        batch: &RangeInclusive<u64>,
    ) -> Option<LeaseRequest> {
        if self.under_way.is_some() {
            return None;
        }
        let costs = || self.waiting.iter().map(|waiter| waiter.cost);
        // Bounded so that sums with it stay exact in the script.
        let waited = costs().fold(0_u64, u64::saturating_add).min(1 << 52);
        let (least, served) = (costs().min().unwrap_or(1), self.waiting.len());
        let wanted = match self.validity.span() {
            Some(span) => self.of_bucket(now, span, (least, waited), batch),
            None => self.of_window(now, (least, waited), batch),
        };
        self.asked = now;
        self.under_way = Some(PendingRequest { served, ..PendingRequest::default() });
        Some(wanted)
    }

    /// The tokens that this process will need before a half-full bucket has drained. If the bucket is less full, they
    /// would drain before they are spent. So the server also fills the bucket to half, which takes nothing from others,
    /// because that part drains meanwhile.
    fn of_bucket(
        &mut self,
        now: u64,
        span: u64,
        (least, waited): (u64, u64),
        batch: &RangeInclusive<u64>,
    ) -> LeaseRequest {
        let age = now.saturating_sub(self.since);
        let is_large = self.validity.most() >= LARGE;
        // In the first moments, one request more or less would change the estimate many times over.
        let is_known = !is_large || age > span / KNOWN_AFTER;
        let expected = match age {
            _ if !is_large || !is_known || age >= span => self.demand.expected(now, span),
            _ => {
                (u128::from(self.demand.seen(now, span)) * u128::from(span) / u128::from(age))
                    as u64
            }
        };
        // Requests that wait are served whatever the configured size of a batch is. They were let in for that.
        let largest = waited.max(*batch.end());
        if self.short > 0 {
            // Nothing drains unused where more is wanted than there is.
            let requests = self.requests.expected(now, span).max(1);
            // Enough for the requests that come until the server is asked again, and no more: others are short as well.
            let until_next = expected.saturating_mul(PACED.min(requests)) / requests;
            self.size = until_next.clamp(*batch.start(), *batch.end());
            let ahead = self.size.saturating_sub(self.unspent());
            let most = waited.saturating_add(ahead).min(largest);
            return LeaseRequest { least, most, waited, fill: 0, largest };
        }
        let (spent_in_time, fill) = self.filling(now, span, expected);
        self.size = spent_in_time.clamp(*batch.start(), *batch.end());
        // A smallest batch that was configured is always taken.
        let some = if *batch.start() > 1 { SOME } else { self.validity.some() };
        let is_known = is_known || *batch.start() > 1;
        let pays_off = is_known && expected >= some && *batch.end() > 1;
        let ahead = match pays_off {
            true => self.size.saturating_sub(self.unspent() / 2).max(1),
            // Few tokens are needed: one in hand would drain before it is spent.
            false => batch.start().saturating_sub(waited),
        };
        let most = waited.saturating_add(ahead).min(largest);
        let fill = if pays_off { fill } else { 0 };
        LeaseRequest { least, most, waited, fill, largest }
    }

    /// How many tokens can be spent before they drain, and the debt that this takes.
    ///
    /// A token drains once all of the debt before it has drained, at the whole rate. The debt that is added for that is lost
    /// where the bucket would otherwise have filled up: above the limit. So it is small at first, and grows to half of the
    /// bucket.
    fn filling(&self, now: u64, span: u64, expected: u64) -> (u64, u64) {
        let (half, tokens) = (self.validity.half(), self.validity.most() / 2);
        // What others are expected to spend while half of the bucket drains.
        // With `x` tokens ahead of it, a token drains after `x` of everybody's spending. While our `expected` are
        // spent, `others` are, so a share of `expected / others` of the added debt is ours to spend in time.
        let others = tokens.saturating_sub(expected);
        if others == 0 || expected == 0 || self.validity.most() < LARGE {
            return (expected, half);
        }
        let begin = BEGIN.saturating_mul(others) / expected;
        let grown = u128::from(tokens) * u128::from(now.saturating_sub(self.since))
            / (u128::from(span) * GROWN_AFTER);
        let target = begin.saturating_add(grown as u64).min(tokens);
        let spent_in_time = (target.saturating_mul(expected) / others).min(expected);
        (spent_in_time, (u128::from(half) * u128::from(target) / u128::from(tokens)) as u64)
    }

    /// Half of the tokens that this process will need before the window ends. Tokens that it does not spend are lost then,
    /// so leases become smaller towards the end.
    fn of_window(
        &mut self,
        now: u64,
        (least, waited): (u64, u64),
        batch: &RangeInclusive<u64>,
    ) -> LeaseRequest {
        // Tokens are lost with the window, and nobody else can spend them before.
        let needed = self.demand.until(now, self.validity.pace(), self.ends);
        self.size = (needed / OF_WINDOW).clamp(*batch.start(), *batch.end());
        // At most half of what others may need.
        // Halves of what is left, again and again: nobody takes the end of a window away from the others.
        let spare = self.size.min((self.left / 2).max(1));
        LeaseRequest { least, most: waited.max(spare), waited, ..LeaseRequest::default() }
    }

    /// Adds the tokens of a lease, and answers the requests that waited. Returns tokens that are to be given back: there is
    /// no room for them, or other numbers decide now.
    pub(in crate::lease) fn grant(
        &mut self,
        lease: &Lease,
        (asked, wanted): (u64, LeaseRequest),
        now: u64,
        totals: &mut LeaseCounts,
    ) -> (Vec<WaiterAnswer>, Option<LeasedTokens>) {
        let PendingRequest { served, is_old, is_void } = self.under_way.take().unwrap_or_default();
        let mut part = LeasedTokens::new(lease, asked);
        totals.leases += 1;
        totals.leased += lease.taken;
        self.left = self.validity.left(lease.words);
        self.ends = self.validity.ends(&part);
        // A refusal from before something was given back would hide what came free.
        self.refused = self.refusal(lease, (asked, now), wanted).filter(|_| !is_old);
        let mut told = Vec::with_capacity(served);
        for waiter in self.waiting.drain(..served.min(self.waiting.len())) {
            // Straight from this lease and not from older tokens: the requests were counted in what it asked for.
            let outcome = if waiter.cost <= part.unspent {
                part.unspent -= waiter.cost;
                totals.spent += waiter.cost;
                let debit = (&self.debit.limit, waiter.cost);
                admitted(debit, (&part, &self.validity), lease.now)
            } else {
                // The server granted less than was requested, so it has no more.
                let retry = retry_after(&self.debit, waiter.cost, lease);
                refusal(lease.words, lease.now, retry)
            };
            told.push(WaiterAnswer { waiter, outcome });
        }
        // A reset came in between. The server may have written these tokens before it or after it, so nobody spends
        // them.
        if is_void {
            totals.expired += part.unspent;
            return (told, None);
        }
        (told, self.add(part))
    }

    /// The refusal that a lease stands for, if it was not granted or left nothing.
    fn refusal(
        &mut self,
        lease: &Lease,
        (asked, now): (u64, u64),
        wanted: LeaseRequest,
    ) -> Option<Refusal> {
        let is_refused = lease.taken == 0;
        let pace = self.question_pace(now);
        if pace == 0 {
            self.short = 0;
        // It moves by one, up and down: a single refusal, or a single lease that was served in full, is chance.
        } else if lease.taken < wanted.most || self.left == 0 {
            self.short = (self.short + 1).min(PACED.ilog2() + 1);
        } else if self.left >= self.size {
            self.short = self.short.saturating_sub(1);
        }
        if !is_refused && (self.left > 0 || pace == 0) {
            return None;
        }
        let (cost, retry) = match is_refused {
            true => (wanted.least, lease.retry_after?),
            false => (1, retry_after(&self.debit, 1, lease)?),
        };
        Some(Refusal::of(lease, (asked, now), (cost, retry), pace))
    }

    /// How long the server is not asked again after it had nothing left: until twice as many requests have come as the last
    /// time, up to [`PACED`]. Those that find no token in hand are refused here. A bucket is half full again after the longest pace, so nothing is lost.
    fn question_pace(&self, now: u64) -> u64 {
        let Some(span) = self.validity.span() else { return 0 };
        let requests = self.requests.expected(now, span);
        if requests < FEW || self.validity.most() < LARGE {
            return 0;
        }
        let paced = 1_u64 << self.short.min(PACED.ilog2());
        (span / requests).saturating_mul(paced).min(span).min(REMEMBERED)
    }

    /// Adds tokens. Returns those that are to be given back.
    pub(in crate::lease) fn add(&mut self, part: LeasedTokens) -> Option<LeasedTokens> {
        self.shift();
        match &mut self.parts {
            _ if part.taken == 0 => return None,
            // Other numbers decide for this key now. Its tokens go back, so that the new numbers can have them.
            _ if self.is_left => return Some(part),
            [older, _] if older.unspent == 0 => *older = part,
            [_, newer] if newer.taken == 0 => *newer = part,
            // A cost exceeded both leases. The oldest tokens drain first, so they are returned.
            [older, newer] => {
                let oldest = std::mem::replace(older, std::mem::replace(newer, part));
                return Some(oldest);
            }
        }
        None
    }

    /// Answers requests that came while the lease was under way, as far as tokens are left.
    pub(in crate::lease) fn serve_late(
        &mut self,
        now: u64,
        totals: &mut LeaseCounts,
    ) -> Vec<WaiterAnswer> {
        let mut told = Vec::new();
        while let Some(cost) = self.waiting.front().map(|waiter| waiter.cost) {
            let Some(outcome) = self.spend(now, cost) else { break };
            totals.spent += cost;
            told.extend(self.waiting.pop_front().map(|waiter| WaiterAnswer { waiter, outcome }));
        }
        told
    }

    /// The lease failed: removes and returns all waiting requests. Also returns whether its tokens are discarded if it
    /// arrives late.
    pub(in crate::lease) fn fail(&mut self) -> (VecDeque<Waiter>, bool) {
        let is_void = self.under_way.take().is_some_and(|under_way| under_way.is_void);
        (std::mem::take(&mut self.waiting), is_void)
    }

    /// Whether requests wait for which no lease was requested.
    pub(in crate::lease) fn is_wanted(&self) -> bool {
        self.under_way.is_none() && !self.waiting.is_empty()
    }
}

/// When the server would admit this cost.
fn retry_after(debit: &Debit, cost: u64, lease: &Lease) -> Option<Duration> {
    let charge = Charge::of(debit.limit, debit.key, cost);
    let decision = refusal(lease.words, lease.now, None).decision(&charge);
    decision.statuses().next()?.retry
}
