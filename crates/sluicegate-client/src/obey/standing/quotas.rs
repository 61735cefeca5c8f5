use super::rules::Rules;
use crate::obey::signal::{Quota, Signal};

/// Most quotas of a server that are kept. A fifth takes the place of the one that ends first.
const MOST: usize = 4;

/// How long a quota without a reset and without a window is believed.
const UNTOLD: u64 = 1_000_000;

/// The quotas that a server has announced, and what is left of them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Quotas([KnownQuota; MOST]);

/// What the quotas allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowance {
    Free,
    /// Requests are at least this many microseconds apart.
    Gap(u64),
    /// None before this time.
    Until(u64),
}

#[derive(Debug, Clone, Copy, Default)]
struct KnownQuota {
    policy: u64,
    /// The remaining quota, without requests under way.
    remaining: u64,
    /// As the server last said, to learn what a request costs.
    told: u64,
    /// The most that was ever left: the size of the bucket, which may be less than the limit.
    capacity: u64,
    /// What a request costs: 1, or learned where the quota does not count requests.
    cost: u64,
    /// The limit, if the server has said so; else 0.
    limit: u64,
    /// Microseconds in which one unit comes back, if the server has said so; else 0.
    refill: u64,
    /// Until when no more than that may be used; 0 if there is no quota here, or its window is over.
    until: u64,
    /// Like `until`, but without jitter.
    ends: u64,
    /// When the last response came.
    heard: u64,
    /// How many requests were under way then: their responses may be older news.
    under_way: u32,
    /// It fills while it is used, unlike a window.
    is_bucket: bool,
}

impl Quotas {
    /// Records what the response says, while this many other requests are under way.
    pub(super) fn update(
        &mut self,
        now: u64,
        signal: &Signal,
        in_flight: u32,
        rules: &Rules,
        random: u32,
    ) {
        for quota in &signal.quotas {
            let place = self.place(quota.policy);
            place.update(now, quota, in_flight, rules, random);
        }
    }

    fn place(&mut self, policy: u64) -> &mut KnownQuota {
        let same = self.0.iter().position(|kept| kept.policy == policy && kept.capacity > 0);
        let at = same.unwrap_or_else(|| {
            let soonest = self.0.iter().enumerate().min_by_key(|(_, kept)| kept.until);
            soonest.map_or(0, |(at, _)| at)
        });
        if same.is_none() {
            self.0[at] = KnownQuota { policy, ..KnownQuota::default() };
        }
        &mut self.0[at]
    }

    /// Forgets the windows that are over. True if little was left in one: whether there is more again is not known.
    pub(super) fn expire(&mut self, now: u64) -> bool {
        let mut was_low = false;
        for kept in &mut self.0 {
            if kept.until != 0 && now >= kept.until {
                was_low |= kept.is_low();
                kept.until = 0;
            }
        }
        was_low
    }

    /// What the strictest quota allows. Call [`expire`](Self::expire) first, which removes windows that have ended.
    pub(super) fn allowance(&self, now: u64, in_flight: u32) -> Allowance {
        let live = self.0.iter().filter(|kept| kept.until > now);
        live.map(|kept| kept.allowance(now, in_flight)).fold(Allowance::Free, Allowance::stricter)
    }

    /// Notes that a request is sent.
    pub(super) fn spend(&mut self) {
        for kept in &mut self.0 {
            kept.remaining = kept.remaining.saturating_sub(kept.cost);
        }
    }

    pub(super) fn is_idle(&self, now: u64) -> bool {
        self.0.iter().all(|kept| kept.until <= now || !kept.is_low())
    }
}

impl KnownQuota {
    fn update(&mut self, now: u64, quota: &Quota, in_flight: u32, rules: &Rules, random: u32) {
        if !quota.counts_requests && self.until > now && quota.remaining < self.told {
            // A quarter of the news: what requests cost differs.
            let cost = self.told - quota.remaining;
            self.cost = self.cost.saturating_mul(3).saturating_add(cost).div_ceil(4);
        }
        self.cost = self.cost.max(1);
        self.is_bucket |= self.fills(now, quota, in_flight);
        let more = quota.remaining.saturating_sub(self.told);
        // Responses of requests that were under way together may come in another order.
        let may_be_older = !self.is_bucket && more <= u64::from(self.under_way);
        let goes_on = self.until > now && (more == 0 || may_be_older);
        self.told = quota.remaining;
        (self.heard, self.under_way) = (now, in_flight);
        // The server may not have counted those when it wrote the response. To count one twice is the smaller mistake.
        let under_way = u64::from(in_flight).saturating_mul(self.cost);
        self.remaining = quota.remaining.saturating_sub(under_way);
        self.capacity = self.capacity.max(quota.remaining).max(1);
        self.limit = quota.limit.unwrap_or(0);
        self.refill = match (quota.window, quota.limit) {
            (Some(window), Some(limit)) => rules.capped(window) / limit.max(1),
            _ => 0,
        };
        let reset = quota.reset.or(quota.window).map_or(UNTOLD, |reset| rules.capped(reset));
        let ends = now.saturating_add(reset.max(1));
        // A reset is told in whole seconds, so of one window the first response says best when it ends.
        self.ends = if goes_on { self.ends.min(ends) } else { ends };
        // Only clients that have nothing left all wait for this moment.
        let jitter = if quota.remaining == 0 { Rules::jitter(reset, random) } else { 0 };
        self.until = self.ends.saturating_add(jitter);
    }

    /// Whether a little has come back, as in a bucket that fills, and not all at once. Responses of requests that were
    /// under way together may also come in another order.
    fn fills(&self, now: u64, quota: &Quota, in_flight: u32) -> bool {
        let filled = now.saturating_sub(self.heard).checked_div(self.refill).unwrap_or(0);
        let more = quota.remaining.saturating_sub(self.told);
        self.until > now
            && more > 2 * u64::from(in_flight.max(self.under_way))
            && more <= (filled + 1).min(self.capacity / 4)
    }

    /// Whether the reset may be the time until the next unit comes back. Where the window is no longer than two seconds,
    /// a reset in whole seconds does not tell. What never has much of its limit, or fills, is a bucket.
    const fn may_be_bucket(&self) -> bool {
        const SHORT: u64 = 2_000_000;
        self.is_bucket
            || self.refill.saturating_mul(self.limit) > SHORT
            || self.capacity.saturating_mul(2) <= self.limit
    }

    /// Below a quarter, requests are spread.
    const fn is_low(&self) -> bool {
        self.remaining.saturating_mul(4) < self.capacity
    }

    fn allowance(&self, now: u64, in_flight: u32) -> Allowance {
        // By what the server has said, and not by what is left after requests under way: those may cost less.
        let (refilled, requests) = (self.refilled(now), self.remaining / self.cost);
        // Requests under way may have used it up. The next response will tell.
        let is_used_up = self.told < self.cost || (requests == 0 && in_flight > 0);
        if is_used_up && refilled > now {
            return Allowance::Until(refilled);
        }
        if !self.is_low() {
            return Allowance::Free;
        }
        Allowance::Gap((self.horizon(now) / requests.max(1)).max(1))
    }

    /// When there is something again: at the reset, or when the bucket is full.
    fn refilled(&self, now: u64) -> u64 {
        let full = self.fill_time(now).map(|time| self.heard.saturating_add(time));
        full.map_or(self.until, |full| full.min(self.until))
    }

    /// The time over which what is left is spread: that to the reset, or in which the bucket fills. Clients
    /// that share it then meet at the level at which, together, they use what comes back.
    fn horizon(&self, now: u64) -> u64 {
        self.fill_time(now).unwrap_or(self.until - now)
    }

    /// The time in which the bucket fills, if it is one: the reset is but the time until the next unit comes back, told in
    /// whole seconds.
    fn fill_time(&self, now: u64) -> Option<u64> {
        const SECOND: u64 = 1_000_000;
        let is_bucket = self.refill > 0
            && self.may_be_bucket()
            && self.ends.saturating_sub(now) <= self.refill.saturating_add(SECOND);
        is_bucket.then(|| self.refill.saturating_mul(self.capacity))
    }
}

impl Allowance {
    fn stricter(self, other: Self) -> Self {
        match (self, other) {
            (Self::Until(one), Self::Until(other)) => Self::Until(one.max(other)),
            (until @ Self::Until(_), _) | (_, until @ Self::Until(_)) => until,
            (Self::Gap(one), Self::Gap(other)) => Self::Gap(one.max(other)),
            (gap @ Self::Gap(_), Self::Free) | (Self::Free, gap) => gap,
        }
    }
}
