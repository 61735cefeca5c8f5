//! What a request is charged, before a store is asked.

use std::borrow::Cow;
use std::collections::HashSet;

use sluicegate_core::Limit;
use sluicegate_core::adapter::{Charge, Debit};
use sluicegate_core::key::KeyBuf;
use sluicegate_core::limit::LimitError;

use super::domain::{Domain, Domains, MatchedRule};
use super::request::{BadRequest, Descriptor, Hits, Request};
use super::rule::{MOST_HITS, Rate, Rule};

/// How a service decides, besides its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Whether a limit that a request brings along is used instead of that of the file. The default is yes, as in
    /// the service: Envoy takes it from the metadata of a route, and not from a client.
    pub overrides: bool,
    /// Whether no request is refused, whatever its limits say.
    pub shadow: bool,
    /// Whether each descriptor is counted by itself, as in the service: a limit that refuses a request is charged, and so are
    /// all others that the request meets. The default is no: what one limit refuses is charged by none.
    pub apart: bool,
    /// Whether every limit is a quota, as in the global quota mode of the service. It is for descriptors that are counted
    /// [apart](Self::apart).
    pub quota: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { overrides: true, shadow: false, apart: false, quota: false }
    }
}

/// A request with the rules that it meets: what to ask a store for.
#[derive(Debug)]
pub struct Plan<'d> {
    domain: Option<&'d Domain>,
    pub(super) charge: Charge,
    /// What is given back: debits of nothing, with how much.
    pub(super) credits: Vec<(Debit, u64)>,
    pub(super) slots: Vec<Slot<'d>>,
    pub(super) settings: Settings,
}

/// What becomes of one descriptor.
#[derive(Debug)]
pub(super) struct Slot<'d> {
    pub(super) rule: Option<Cow<'d, Rule>>,
    pub(super) hits: Hits,
    pub(super) place: Place,
}

/// Where a descriptor is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Nowhere: no limit, or one that another limit of the request replaces.
    Free,
    /// Nowhere: the file says `unlimited`.
    Unlimited,
    /// Nowhere: the limit is 0.
    Shut,
    /// The debit of the charge at this index.
    Debit(usize),
    /// The credit at this index.
    Credit(usize),
}

/// How to ask a store about the charge of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Nothing is charged: the answer is known.
    Nothing,
    /// By [`Store::peek`](sluicegate_core::store::Store::peek): the request only looks, or is refused anyway.
    Peek,
    /// By [`Store::take`](sluicegate_core::store::Store::take).
    Take,
}

impl<'d> Plan<'d> {
    /// Finds the rules that a request meets.
    ///
    /// # Errors
    ///
    /// If the request has no domain, no descriptor, or too many. If it meets more than 16 limits, or brings two limits along
    /// for one description, the error is [of the client](BadRequest::is_client), which chooses the values.
    pub fn new(
        domains: &'d Domains,
        request: &Request<'_>,
        settings: Settings,
    ) -> Result<Self, BadRequest> {
        request.check()?;
        let domain = domains.named(request.domain);
        let top = domain.map(Domain::top);
        let mut found = Vec::with_capacity(request.descriptors.len());
        for descriptor in &request.descriptors {
            found.push(match (top, descriptor.limit) {
                (None, _) => None,
                (Some(_), Some((count, unit))) if settings.overrides => {
                    let rule = Rule::of_request(count, unit).map_err(|error| unusable(&error))?;
                    Some(MatchedRule { rule: Cow::Owned(rule), shared: Vec::new() })
                }
                (Some(top), _) => top.find(&descriptor.entries),
            });
        }
        // All rules are found first: a descriptor may replace the limit of one that comes before it.
        let replaced: HashSet<Box<str>> =
            found.iter().flatten().flat_map(|found| found.rule.replaces.iter().cloned()).collect();
        let (credits, slots) = (Vec::new(), Vec::new());
        let mut plan = Self { domain, charge: Charge::new(), credits, slots, settings };
        for (descriptor, found) in request.descriptors.iter().zip(found) {
            let is_replaced =
                |rule: &Rule| rule.name.as_ref().is_some_and(|name| replaced.contains(name));
            let found = found.filter(|found| !is_replaced(&found.rule));
            plan.add(request.domain, descriptor, found)?;
        }
        Ok(plan)
    }

    fn add(
        &mut self,
        domain: &str,
        descriptor: &Descriptor<'_>,
        found: Option<MatchedRule<'d>>,
    ) -> Result<(), BadRequest> {
        let hits = descriptor.hits;
        let place = match &found {
            None => Place::Free,
            Some(MatchedRule { rule, shared }) => match rule.rate {
                None => Place::Unlimited,
                Some(Rate { count: 0, .. }) if !self.settings.apart => Place::Shut,
                Some(rate) => {
                    let limit = if self.settings.apart { rate.counting } else { rate.limit() };
                    let limit = self.limit(rule, limit);
                    let key = key(domain, rate, &descriptor.entries, shared);
                    self.place(limit, key, hits)?
                }
            },
        };
        self.slots.push(Slot { rule: found.map(|found| found.rule), hits, place });
        Ok(())
    }

    /// The limit of a rule that refuses nothing by itself is a shadow.
    fn limit(&self, rule: &Rule, limit: Limit) -> Limit {
        let is_shadow = self.settings.shadow || rule.shadow || rule.quota;
        if is_shadow && !self.settings.apart { limit.try_shadow().unwrap_or(limit) } else { limit }
    }

    fn place(&mut self, limit: Limit, key: KeyBuf, hits: Hits) -> Result<Place, BadRequest> {
        if let Hits::GiveBack(hits) = hits {
            let nothing = Charge::of(limit, key, 0);
            self.credits.extend(nothing.debits().cloned().map(|debit| (debit, hits)));
            return Ok(Place::Credit(self.credits.len() - 1));
        }
        let id = limit.id();
        let most = if self.settings.apart { MOST_HITS } else { u64::MAX };
        self.charge
            .add(limit, key, hits.spent().min(most))
            .map_err(|missing| BadRequest::of_client(missing.to_string()))?;
        let mut debits = self.charge.debits();
        let at = debits.position(|debit| debit.limit.id() == id && debit.key == key);
        Ok(Place::Debit(at.unwrap_or_default()))
    }

    /// What to charge, if the store admits all of it.
    pub fn charge(&self) -> &Charge {
        &self.charge
    }

    /// How to ask a store about the charge.
    pub fn question(&self) -> Question {
        let only_looks = || {
            let mut debits = self.slots.iter().filter(|slot| matches!(slot.place, Place::Debit(_)));
            debits.all(|slot| slot.hits == Hits::Look)
        };
        if self.charge.is_empty() {
            Question::Nothing
        } else if self.is_shut() || only_looks() {
            Question::Peek
        } else {
            Question::Take
        }
    }

    /// What the service calls the statistics of the limit that the descriptor at this index of the request meets, such as
    /// `edge.user_alice.path`. `None` if it meets none that counts.
    ///
    /// With `detailed_metric` or `value_to_metric` in the file, clients choose parts of the name, which may have any
    /// characters.
    pub fn statistic(&self, request: &Request<'_>, at: usize) -> Option<Cow<'_, str>> {
        let (domain, slot) = (self.domain?, self.slots.get(at)?);
        let rule = slot.rule.as_deref().filter(|rule| rule.rate.is_some())?;
        let entries = &request.descriptors.get(at)?.entries;
        Some(domain.top().statistic(domain.name(), rule, entries))
    }

    /// Whether a file has the domain of the request.
    pub fn has_domain(&self) -> bool {
        self.domain.is_some()
    }

    /// What the request gives back: for each descriptor a debit of nothing, and how much. Before the store is asked about
    /// the charge, ask it to take a charge of the debit, and settle the debit with this cost to 0.
    pub fn credits(&self) -> impl Iterator<Item = (&Debit, u64)> {
        self.credits.iter().map(|(debit, hits)| (debit, *hits))
    }

    /// Whether a limit of 0 refuses the request.
    pub(super) fn is_shut(&self) -> bool {
        !self.settings.shadow && self.slots.iter().any(Slot::is_shut)
    }
}

impl Slot<'_> {
    pub(super) fn is_shut(&self) -> bool {
        let refuses = self.rule.as_ref().is_some_and(|rule| !rule.shadow && !rule.quota);
        self.place == Place::Shut && refuses && !matches!(self.hits, Hits::GiveBack(_))
    }
}

fn unusable(error: &LimitError) -> BadRequest {
    BadRequest::new(format!("the limit that the request brings along is not possible: {error}"))
}

/// The budget of a descriptor: its domain, the unit, and every key with its value, or with the pattern that shares
/// one budget.
fn key(domain: &str, rate: Rate, entries: &[(&[u8], &[u8])], shared: &[(usize, &str)]) -> KeyBuf {
    let mut written = KeyBuf::new();
    written.push(domain.as_bytes());
    written.push(&[rate.unit as u8]);
    for (at, (key, value)) in entries.iter().enumerate() {
        let pattern = shared.iter().find(|(entry, _)| *entry == at).map(|(_, pattern)| *pattern);
        written.push(key);
        written.push(pattern.map_or(value, str::as_bytes));
        // A pattern is not a value that looks the same, and a client may send `*`.
        if pattern.is_some() {
            written.push(b"*");
        }
    }
    written
}
