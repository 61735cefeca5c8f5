//! What a store's answer means for a request.

use std::time::Duration;

use sluicegate_core::Decision;
use sluicegate_core::adapter::{Charge, Debit, Outcome};
use sluicegate_core::limit::{LimitStatus, Verdict};

use super::plan::{Place, Plan, Slot};
use super::request::Hits;
use super::rule::{Rate, Rule, Unit};

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
        if self.settings.apart {
            return self.judge_apart(&decision, given, now);
        }
        let statuses: Vec<_> = decision.statuses().collect();
        let given = self.after(given, &statuses);
        let status = |slot: &Slot<'_>| slot.status(&statuses, &given, now);
        let mut statuses: Vec<_> = self.slots.iter().map(status).collect();
        let quotas: Vec<_> = self.quotas().collect();
        // One in shadow mode always has something left, as in the service.
        let is_spent = |at: &usize| statuses[*at].would_be_over && !self.slots[*at].is_shadow();
        let spent: Vec<_> = quotas.iter().copied().filter(is_spent).collect();
        // A quota alone refuses nothing: a request may go on while one of its quotas has something left.
        let quotas_are_spent = !quotas.is_empty() && spent.len() == quotas.len();
        for (slot, status) in self.slots.iter().zip(&mut statuses) {
            let refuses = |rule: &Rule| !rule.shadow && (!rule.quota || quotas_are_spent);
            status.is_over = status.would_be_over && slot.rule.as_deref().is_some_and(refuses);
        }
        let would_be_over = statuses.iter().any(|status| status.is_over);
        let is_over = would_be_over && !self.settings.shadow;
        let give_back = if is_over { self.charged_in_vain(&decision) } else { Vec::new() };
        let reports = self.uncounted_reports(&decision);
        let spent_quotas = (!quotas.is_empty()).then_some(spent);
        let answer = Answer { is_over, would_be_over, statuses, spent_quotas, decision };
        Judgement { answer, give_back, reports }
    }

    /// The answer where each descriptor is counted by itself. The service adds the hits of one descriptor after the other, also
    /// over the limit, and then compares.
    fn judge_apart(
        &self,
        decision: &Decision,
        given: &[Option<LimitStatus>],
        now: u64,
    ) -> Judgement {
        let mut counted: Vec<_> = decision.statuses().cloned().collect();
        let given = self.after(given, &decision.statuses().collect::<Vec<_>>());
        // What was spent before the next descriptor that meets the same limit.
        let before = |(debit, status): (&Debit, &LimitStatus)| {
            spent(status).saturating_sub(if status.charged > 0 { debit.cost } else { 0 })
        };
        let mut counts: Vec<_> = self.charge.debits().zip(&counted).map(before).collect();
        let statuses: Vec<_> = self
            .slots
            .iter()
            .map(|slot| {
                let (limit, reset) = (slot.limit(), slot.window_ends(now));
                let Some((rule, rate)) = slot.rate() else {
                    return slot.status(&[], &[], now);
                };
                let hits = slot.hits.spent();
                let mut none = 0;
                let before = match slot.place {
                    Place::Debit(at) => counts.get_mut(at).unwrap_or(&mut none),
                    Place::Credit(at) => {
                        none = given.get(at).copied().flatten().map_or(0, spent);
                        &mut none
                    }
                    _ => &mut none,
                };
                let after = before.saturating_add(hits);
                let before = std::mem::replace(before, after);
                let count = u64::from(rate.count);
                let remaining = u32::try_from(count.saturating_sub(after)).unwrap_or(u32::MAX);
                let would_be_over = after > count && !matches!(slot.place, Place::Credit(_));
                let is_over = would_be_over && !rule.shadow;
                if let Place::Debit(at) = slot.place {
                    counted[at].refused |= is_over;
                }
                Status {
                    is_over,
                    would_be_over,
                    limit,
                    remaining,
                    until_reset: reset,
                    hits,
                    before,
                }
            })
            .collect();
        let is_quota = |slot: &Slot<'_>| {
            let is_quota = slot.rule.as_ref().is_some_and(|rule| rule.quota);
            slot.place != Place::Unlimited && (self.settings.quota || is_quota)
        };
        let quotas: Vec<_> =
            (0..self.slots.len()).filter(|at| is_quota(&self.slots[*at])).collect();
        let spent: Vec<_> = quotas.iter().copied().filter(|at| statuses[*at].is_over).collect();
        let over = statuses.iter().filter(|status| status.is_over).count();
        // A request may go on while one of its quotas has something left, and so it may if it meets no other limit.
        let would_be_over = over > spent.len() || !quotas.is_empty() && spent.len() == quotas.len();
        let is_over = would_be_over && !self.settings.shadow;
        let meets_one = quotas.iter().any(|at| self.slots[*at].rule.is_some());
        let spent_quotas = meets_one.then_some(spent);
        let decision = self.decision(counted, is_over);
        let answer = Answer { is_over, would_be_over, statuses, spent_quotas, decision };
        Judgement { answer, give_back: Vec::new(), reports: Vec::new() }
    }

    /// The decision by the rules, where limits only count.
    fn decision(&self, mut counted: Vec<LimitStatus>, is_over: bool) -> Decision {
        for slot in &self.slots {
            let (Place::Debit(at), Some((rule, rate))) = (slot.place, slot.rate()) else {
                continue;
            };
            let Some(status) = counted.get_mut(at).filter(|status| status.limit == rate.counting)
            else {
                continue;
            };
            let spent = spent(status);
            let is_shadow =
                rule.shadow || rule.quota || self.settings.shadow || self.settings.quota;
            let limit =
                if is_shadow { rate.limit.try_shadow().unwrap_or(rate.limit) } else { rate.limit };
            status.remaining = u64::from(rate.count).saturating_sub(spent);
            status.shadowed = is_shadow && (status.refused || spent > u64::from(rate.count));
            status.refused &= !is_shadow;
            if status.refused {
                (status.charged, status.retry) = (0, status.reset);
            }
            status.limit = limit;
        }
        let retry_after =
            counted.iter().filter(|status| status.refused).filter_map(|status| status.retry).max();
        let verdict = match is_over {
            true => Verdict::Refuse { retry_after },
            false => Verdict::Admit { wait: Duration::ZERO },
        };
        let debits = self.charge.debits().map(|debit| (&debit.limit, debit.cost));
        Outcome::from_parts(verdict, counted).decision(debits)
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

fn spent(status: &LimitStatus) -> u64 {
    status.limit.capacity().saturating_sub(status.remaining)
}

fn is_charged(status: &LimitStatus) -> bool {
    status.charged > 0 && !status.receipt.is_void()
}

impl Slot<'_> {
    /// The rule and its rate, if it has one.
    fn rate(&self) -> Option<(&Rule, Rate)> {
        let rule = self.rule.as_deref()?;
        Some((rule, rule.rate?))
    }

    fn limit(&self) -> Option<CurrentLimit> {
        self.rule.as_deref().and_then(current)
    }

    fn is_quota(&self) -> bool {
        let is_counted = matches!(self.place, Place::Debit(_) | Place::Shut);
        is_counted && self.rule.as_ref().is_some_and(|rule| rule.quota)
    }

    fn is_shadow(&self) -> bool {
        self.rule.as_ref().is_some_and(|rule| rule.shadow)
    }

    /// The status of the descriptor by itself.
    fn status(
        &self,
        statuses: &[&LimitStatus],
        given: &[Option<&LimitStatus>],
        now: u64,
    ) -> Status {
        let limit = self.limit();
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
                let after = spent(status);
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
    /// Whether it would, in a service that does not only watch.
    pub would_be_over: bool,
    /// The status of each descriptor, in order.
    pub statuses: Vec<Status>,
    /// Which descriptors meet a quota that is spent. `None` if none meets a quota.
    pub spent_quotas: Option<Vec<usize>>,
    /// The decision, from which header fields are made.
    pub decision: Decision,
}

impl Answer {
    /// The status of the limit with the least left, of the last one that refuses by itself if there is one.
    pub fn tightest(&self) -> Option<&Status> {
        let quotas = self.spent_quotas.as_deref().unwrap_or_default();
        let limited = || {
            let statuses = self.statuses.iter().enumerate();
            statuses.filter(|(_, status)| status.limit.is_some())
        };
        let refuses = |(at, status): &(usize, &Status)| status.is_over && !quotas.contains(at);
        let tightest = limited().rfind(refuses);
        let tightest = tightest.or_else(|| limited().min_by_key(|(_, status)| status.remaining));
        tightest.map(|(_, status)| status)
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
