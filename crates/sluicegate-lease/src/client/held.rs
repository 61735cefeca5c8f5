use crate::amount::Amount;
use crate::demand::Demand;
use crate::millis::millis;
use crate::pool::Grant;

/// What may be used of a resource when its lease has ended and was not renewed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnLoss {
    /// Nothing. The sum of what all clients use stays within the capacity.
    #[default]
    Stop,
    /// As much as before. For clients that serve people, of a resource that is protected otherwise.
    Keep,
    /// The safe capacity that came with the last grant.
    Safe,
}

/// No template has longer leases.
pub(super) const LONGEST_LEASE: u64 = 24 * 60 * 60 * 1_000;

/// What a client knows of one resource.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) demands: Vec<Demand>,
    pub(super) outstanding: Amount,
    pub(super) learning: bool,
    pub(super) on_loss: OnLoss,
    pub(super) granted: Amount,
    pub(super) expires: u64,
    pub(super) safe: Amount,
    /// What it has reported to have, and what the server is known to have heard.
    reported: Amount,
    heard: Amount,
}

impl Held {
    pub(super) fn new() -> Self {
        Self {
            demands: vec![Demand::of(Amount::ZERO)],
            outstanding: Amount::ZERO,
            learning: false,
            on_loss: OnLoss::Stop,
            granted: Amount::ZERO,
            expires: 0,
            safe: Amount::ZERO,
            reported: Amount::ZERO,
            heard: Amount::ZERO,
        }
    }

    pub(super) fn capacity(&self, now: u64) -> Amount {
        match self.on_loss {
            _ if now < self.expires => self.granted,
            OnLoss::Stop => Amount::ZERO,
            OnLoss::Keep => self.granted,
            OnLoss::Safe => self.safe,
        }
    }

    /// What to report.
    pub(super) fn tell(&mut self, now: u64) -> Amount {
        self.reported = self.capacity(now);
        self.reported
    }

    pub(super) fn has_returned(&self, now: u64) -> bool {
        now >= self.expires || (self.granted.is_zero() && self.heard.is_zero())
    }

    /// Takes a grant that was asked for at `sent`.
    pub(super) fn grant(&mut self, sent: u64, grant: &Grant) {
        self.heard = self.reported;
        self.granted = grant.capacity;
        self.expires = sent.saturating_add(millis(grant.ttl).min(LONGEST_LEASE));
        self.safe = grant.safe;
    }
}
