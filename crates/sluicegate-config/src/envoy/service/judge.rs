//! What a store's answer means for a request.

use std::time::Duration;

use sluicegate_core::Decision;
use sluicegate_core::adapter::{Charge, Debit};
use sluicegate_core::limit::LimitStatus;

use super::plan::{Place, Plan, Slot};
use super::request::Hits;
use super::rule::{Rule, Unit};

/// The answer to a request, and what the store has to be told.
#[derive(Debug)]
pub struct Judgement {
    /// The answer.
    pub answer: Answer,
    /// The debits of the charge, by index, that were charged though the request is refused. Settle them to 0.
    pub give_back: Vec<usize>,
    /// Uses that were not charged because the request is refused. Take each of them by itself.
    pub reports: Vec<Charge>,
}

impl Plan<'_> {
    /// The answer, given the decision of a store about [`charge`](Self::charge) at this moment, in microseconds since
    /// the Unix epoch. `given` is the status of each credit after it was given back, which comes before the decision;
    /// `None` where the store failed.
    pub fn judge(&self, decision: Decision, given: &[Option<LimitStatus>], now: u64) -> Judgement {
        let statuses: Vec<_> = decision.statuses().collect();
        let given = self.after(given, &statuses);
        let status = |slot: &Slot<'_>| slot.status(&statuses, &given, now);
        let mut statuses: Vec<_> = self.slots.iter().map(status).collect();
        let quotas: Vec<_> = self.quotas().collect();
        let spent: Vec<_> =
            quotas.iter().copied().filter(|at| statuses[*at].would_be_over).collect();
        // A quota alone refuses nothing: a request may go on while one of its quotas has something left.
        let quotas_are_spent = !quotas.is_empty() && spent.len() == quotas.len();
        for (slot, status) in self.slots.iter().zip(&mut statuses) {
            let refuses = |rule: &Rule| !rule.shadow && (!rule.quota || quotas_are_spent);
            status.is_over = status.would_be_over && slot.rule.as_deref().is_some_and(refuses);
        }
        let is_over = !self.settings.shadow && statuses.iter().any(|status| status.is_over);
        let give_back = if is_over { self.charged_in_vain(&decision) } else { Vec::new() };
        let reports = self.uncounted_reports(&decision);
        let spent_quotas = (!quotas.is_empty()).then_some(spent);
        let answer = Answer { is_over, statuses, spent_quotas, decision };
        Judgement { answer, give_back, reports }
    }

    /// The status of each credit after the request: what was given back may have been spent by the request itself.
    fn after<'s>(
        &self,
        given: &'s [Option<LimitStatus>],
        statuses: &[&'s LimitStatus],
    ) -> Vec<Option<&'s LimitStatus>> {
        let credits = self.credits.iter().zip(given);
        let after = credits.map(|((credit, _), given)| {
            let is_same =
                |debit: &Debit| debit.limit.id() == credit.limit.id() && debit.key == credit.key;
            let spent = self.charge.debits().position(is_same);
            spent.and_then(|at| statuses.get(at).copied()).or(given.as_ref())
        });
        after.collect()
    }

    fn quotas(&self) -> impl Iterator<Item = usize> {
        let slots = self.slots.iter().enumerate();
        slots.filter(|(_, slot)| slot.is_quota()).map(|(at, _)| at)
    }

    /// What to give back of a refused request.
    fn charged_in_vain(&self, decision: &Decision) -> Vec<usize> {
        let debits = decision.statuses().enumerate();
        let in_vain = debits.filter(|(at, status)| is_charged(status) && !self.is_report(*at));
        in_vain.map(|(at, _)| at).collect()
    }

    /// What to charge though it did not fit, or though another limit refuses.
    fn uncounted_reports(&self, decision: &Decision) -> Vec<Charge> {
        let debits = self.charge.debits().zip(decision.statuses()).enumerate();
        let missing = debits.filter(|(at, (_, status))| {
            self.is_report(*at) && !is_charged(status) && status.remaining > 0
        });
        let fits = missing.map(|(_, (debit, status))| {
            Charge::of(debit.limit, debit.key, debit.cost.min(status.remaining))
        });
        fits.collect()
    }

    fn is_report(&self, debit: usize) -> bool {
        let mut slots = self.slots.iter().filter(|slot| slot.place == Place::Debit(debit));
        slots.any(|slot| matches!(slot.hits, Hits::Report(_)))
    }
}

fn is_charged(status: &LimitStatus) -> bool {
    status.charged > 0 && !status.receipt.is_void()
}

impl Slot<'_> {
    fn is_quota(&self) -> bool {
        let is_counted = matches!(self.place, Place::Debit(_) | Place::Shut);
        is_counted && self.rule.as_ref().is_some_and(|rule| rule.quota && !rule.shadow)
    }

    /// The status of the descriptor by itself.
    fn status(
        &self,
        statuses: &[&LimitStatus],
        given: &[Option<&LimitStatus>],
        now: u64,
    ) -> Status {
        let limit = self.rule.as_ref().and_then(|rule| current(rule));
        match self.place {
            Place::Free => Status::default(),
            Place::Unlimited => Status { remaining: u32::MAX, ..Status::default() },
            Place::Shut => Status {
                would_be_over: !matches!(self.hits, Hits::GiveBack(_)),
                until_reset: self.window_ends(now),
                limit,
                hits: self.hits.spent(),
                ..Status::default()
            },
            Place::Debit(at) => {
                let Some(status) = statuses.get(at) else { return Status::default() };
                let is_spent = self.hits == Hits::Look && status.remaining == 0;
                let hits = self.hits.spent();
                let after = status.limit.capacity().saturating_sub(status.remaining);
                let is_charged = status.charged > 0;
                Status {
                    would_be_over: status.refused || status.shadowed || is_spent,
                    hits,
                    before: if is_charged { after.saturating_sub(hits) } else { after },
                    ..self.counted(status, limit, now)
                }
            }
            Place::Credit(at) => match given.get(at) {
                Some(Some(status)) => self.counted(status, limit, now),
                _ => Status { limit, ..Status::default() },
            },
        }
    }

    fn counted(&self, status: &LimitStatus, limit: Option<CurrentLimit>, now: u64) -> Status {
        let remaining = if status.refused || status.shadowed { 0 } else { status.remaining };
        let reset = status.reset.filter(|left| !left.is_zero());
        Status {
            limit,
            remaining: u32::try_from(remaining).unwrap_or(u32::MAX),
            until_reset: reset.or_else(|| self.window_ends(now)),
            ..Status::default()
        }
    }

    /// How long until the present window ends.
    fn window_ends(&self, now: u64) -> Option<Duration> {
        let rate = self.rule.as_ref()?.rate?;
        let period = u64::try_from(rate.unit.period().as_micros()).ok()?;
        Some(Duration::from_micros(period - now % period))
    }
}

fn current(rule: &Rule) -> Option<CurrentLimit> {
    let rate = rule.rate?;
    let name = rule.name.clone().unwrap_or_default();
    Some(CurrentLimit { count: rate.count, unit: rate.unit, name })
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Whether the request exceeds a limit.
    pub is_over: bool,
    /// The status of each descriptor, in order.
    pub statuses: Vec<Status>,
    /// Which descriptors meet a quota that is spent. `None` if none meets a quota.
    pub spent_quotas: Option<Vec<usize>>,
    /// The decision, from which header fields are made.
    pub decision: Decision,
}

impl Answer {
    /// The status of the limit with the least left, of one that refuses if there is one.
    pub fn tightest(&self) -> Option<&Status> {
        let limited = self.statuses.iter().filter(|status| status.limit.is_some());
        limited.min_by_key(|status| (!status.is_over, status.remaining))
    }
}

/// The status of one descriptor. The default is that of a descriptor without a limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Whether it refuses the request.
    pub is_over: bool,
    /// Whether the limit would refuse the request, though it is a shadow, a quota, or in a service that only watches.
    pub would_be_over: bool,
    /// The limit. `None` if the descriptor meets none.
    pub limit: Option<CurrentLimit>,
    /// What is left in this window; `u32::MAX` where the file says `unlimited`, and 0 without a limit.
    pub remaining: u32,
    /// How long until the window ends.
    pub until_reset: Option<Duration>,
    /// How much the descriptor uses.
    pub hits: u64,
    /// What was spent before it in this window. Where it is refused, what was spent may be more.
    pub before: u64,
}

/// The limit that a descriptor meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentLimit {
    /// How much it allows.
    pub count: u32,
    /// In which unit.
    pub unit: Unit,
    /// Its name in the file, or nothing.
    pub name: Box<str>,
}
