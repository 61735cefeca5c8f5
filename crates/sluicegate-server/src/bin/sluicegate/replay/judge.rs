//! Decides about the requests of a log by the rules of a file, and counts.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use jiff::tz::TimeZone;
use sluicegate::adapter::{Charge, Refusal};
use sluicegate_config::Policies;
use sluicegate_core::adapter::KnownLimit;
use sluicegate_core::adapter::peaks::Peaks;
use sluicegate_core::adapter::{ByHash, KeyHash};
use sluicegate_core::key::{KeyBuf, Missing};
use sluicegate_core::limit::Decision;

use super::alternatives::Alternatives;
use super::counts::{Counts, Unjudged, Verdict};
use super::evidence::LoggedResponse;
use super::policy::{Policy, has_queue};
use crate::check::words;
use crate::log::{Lacks, Record, RecordView};
use crate::page::Traffic;
use crate::virtual_time::{Limit, MOST_UNDER_WAY, Paid, Rules, Timeline, admit_charge, micros};

/// Most keys of a policy whose counts a page shows. Each takes about 100 bytes.
const FOLLOWED: usize = 1 << 17;

/// The rules of a file, which decide about the requests of a log one by one.
pub(super) struct Judge {
    rules: Rules,
    policies: Arc<Policies>,
    limit: Arc<Limit>,
    under_way: Timeline<Box<(Paid, LoggedResponse)>>,
    keys: usize,
    hash: KeyHash,
    /// The index of the policy of each limit, by the identity of the limit.
    by_id: ByHash<usize>,
    /// Whether each decision is looked at, because some limit does more than to serve or refuse.
    is_curious: bool,
    /// Whether other algorithms are asked beside the limits.
    has_alternatives: bool,
    /// Rules that have looked for something that the log does not have.
    suspects: Vec<bool>,
    /// How many requests each rule may have applied to.
    candidates: Vec<u64>,
    /// Rules that may apply to the present request, and the limits that it is charged to.
    found: Vec<usize>,
    /// Those of them that can be judged.
    good: Vec<usize>,
    hits: Vec<Hit>,
    pub(super) counts: Counts,
    /// The traffic, if a page shows it.
    pub(super) traffic: Option<Traffic>,
}

/// A limit that a request is charged to.
struct Hit {
    policy: usize,
    key: KeyBuf,
    hash: u64,
    cost: u64,
    /// Whether this limit refuses the request.
    is_refused: bool,
}

impl Judge {
    /// Only says what becomes of each request.
    pub(super) fn without_alternatives(self) -> Self {
        Self { has_alternatives: false, ..self }
    }

    /// Notes what a page shows, with the hours of a time zone.
    pub(super) fn with_traffic(self, zone: TimeZone) -> Self {
        Self { traffic: Some(Traffic::new(zone)), ..self }
    }

    /// The rules of a file, with room for this many keys.
    pub(super) fn new(rules: Rules, keys: usize, hash: KeyHash) -> Self {
        let policies = rules.policies();
        let limit = rules.limit(keys);
        let rules_in_all = policies.rule_names().count();
        let suspects = vec![false; rules_in_all];
        let is_curious = limit
            .enforcer()
            .known
            .iter()
            .map(KnownLimit::limit)
            .any(|limit| limit.is_shadow() || limit.is_held() || has_queue(limit));
        Self {
            under_way: Timeline::new(rules.clock()),
            rules,
            policies,
            limit,
            keys,
            hash,
            by_id: ByHash::default(),
            is_curious,
            has_alternatives: true,
            candidates: vec![0; suspects.len()],
            suspects,
            found: Vec::new(),
            good: Vec::new(),
            hits: Vec::new(),
            counts: Counts {
                is_coarse: true,
                unjudged: vec![Unjudged::default(); rules_in_all],
                ..Counts::default()
            },
            traffic: None,
        }
    }

    /// Decides about the next request.
    pub(super) fn judge(&mut self, record: &Record<'_>) -> Verdict {
        let at = u64::try_from(record.start / 1_000).unwrap_or_default();
        if self.counts.requests == 0 {
            self.begin(at);
        }
        self.counts.requests += 1;
        self.counts.refused_live += u64::from(record.status == Some(429));
        self.counts.last = self.counts.last.max(at);
        self.counts.is_coarse &= record.resolution >= 1_000_000_000;
        self.end_until(at);
        let lacks = Lacks::default();
        let mut charge = Charge::new();
        let verdict = match self.charge(&record.view_noting(&lacks), &lacks, &mut charge) {
            Ok(()) if charge.is_empty() => Verdict::of("served"),
            Ok(()) => self.ask(charge, at, record),
            Err(missing) if missing.is_client() => Verdict::of("incomplete"),
            Err(_) => Verdict::of("failed"),
        };
        self.counts.count(&verdict);
        if let Some(traffic) = &mut self.traffic {
            traffic.add(self.counts.last, verdict.is_refused());
        }
        verdict
    }

    /// The rules, for what they were asked.
    pub(super) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// How many decisions were made without a count of their own, because there was no room for the key.
    pub(super) fn uncounted(&self) -> u64 {
        let store = &self.limit.enforcer().store;
        store.turned_away() + store.counted_together()
    }

    /// The first request comes.
    fn begin(&mut self, at: u64) {
        self.counts.first = at;
        self.rules.clock().set(std::time::Duration::from_micros(at));
        // A store begins at the time at which it is made.
        self.limit = self.rules.limit(self.keys);
        let known: Vec<_> =
            self.limit.enforcer().known.iter().map(|known| *known.limit()).collect();
        let mut by_name = HashMap::new();
        for limit in known {
            let name = limit.name().to_string();
            let policies = &mut self.counts.policies;
            let index = *by_name.entry(name).or_insert_with_key(|name| {
                let rule = self.policies.rule_in_words(name).unwrap_or_default().to_owned();
                let mut policy = Policy::new(&limit, words(&limit), rule, at);
                policy.alternatives =
                    (self.has_alternatives).then(|| Alternatives::new(&limit)).flatten();
                policy.peaks = limit
                    .period()
                    .filter(|_| self.traffic.is_some())
                    .map(|period| Peaks::new(period, FOLLOWED));
                policies.push(policy);
                policies.len() - 1
            });
            let policy = &mut self.counts.policies[index];
            let words = words(&limit);
            if !policy.words.split(" or ").any(|known| known == words) {
                // The tiers and cases of a rule have limits of one name.
                policy.words = format!("{} or {words}", policy.words);
                policy.alternatives = None;
                policy.peaks = None;
            }
            self.by_id.insert(limit.id(), index);
        }
    }

    /// Ends the responses that end by `at`, and moves the clock there.
    fn end_until(&mut self, at: u64) {
        while let Some((_, ended)) = self.under_way.next_until(at) {
            let (paid, response) = *ended;
            self.end(paid, &response);
        }
    }

    /// The log is over: all responses end.
    pub(super) fn finish(&mut self) {
        while let Some((_, ended)) = self.under_way.next() {
            let (paid, response) = *ended;
            self.end(paid, &response);
        }
    }

    fn end(&mut self, mut paid: Paid, response: &LoggedResponse) {
        paid.close(response);
        drop(paid.take_rest());
        for what in response.lacks().take() {
            *self.counts.responses_lack.entry(what).or_default() += 1;
        }
    }

    /// Writes down what the request is charged, by all rules that can be judged. A rule that looks for something that the log
    /// does not have charges nothing, whatever it makes of that, because it may be there in truth.
    fn charge(
        &mut self,
        view: &RecordView<'_>,
        lacks: &Lacks,
        charge: &mut Charge,
    ) -> Result<(), Missing> {
        let policies = Arc::clone(&self.policies);
        let mut found = mem::take(&mut self.found);
        found.clear();
        found.extend(policies.candidates(view));
        // Without the host, rules for a host are not among them.
        let is_complete = lacks.take().is_empty();
        if !is_complete {
            found.clear();
            found.extend(0..self.suspects.len());
        }
        // What a suspect lacks for this request is found out beside the charge.
        let mut unjudged: Vec<(usize, Vec<String>)> = Vec::new();
        let mut good = mem::take(&mut self.good);
        good.clear();
        let try_out = |rule: usize| {
            let _ = policies.charge_by(rule, view, &mut Charge::new());
            lacks.take()
        };
        for rule in found.iter().copied() {
            let lacking = if self.suspects[rule] { try_out(rule) } else { Vec::new() };
            match lacking.is_empty() {
                true => good.push(rule),
                false => unjudged.push((rule, lacking)),
            }
        }
        let mut charged = good.iter().try_for_each(|rule| policies.charge_by(*rule, view, charge));
        if !lacks.is_empty() {
            // There are new suspects. All are found out now, so that this begins again once at most.
            lacks.take();
            good.retain(|rule| {
                let lacking = try_out(*rule);
                let is_good = lacking.is_empty();
                if !is_good {
                    self.suspects[*rule] = true;
                    unjudged.push((*rule, lacking));
                }
                is_good
            });
            *charge = Charge::new();
            charged = good.iter().try_for_each(|rule| policies.charge_by(*rule, view, charge));
        }
        (self.found, self.good) = (found, good);
        charged?;
        self.found.iter().for_each(|rule| self.candidates[*rule] += 1);
        for (rule, lacks) in unjudged {
            let unjudged = &mut self.counts.unjudged[rule];
            unjudged.requests += 1;
            let new = lacks.into_iter().filter(|what| !unjudged.lacks.contains(what));
            let new: Vec<_> = new.collect();
            unjudged.lacks.extend(new);
        }
        Ok(())
    }

    /// The rules that could not judge some requests: their names, what was counted, and how many requests they may have applied to.
    pub(super) fn unjudged(&self) -> impl Iterator<Item = (&str, &Unjudged, u64)> {
        let names = self.policies.rule_names();
        let counted = self.counts.unjudged.iter().zip(&self.candidates);
        let rules = names.zip(counted).map(|(name, (unjudged, of))| (name, unjudged, *of));
        rules.filter(|(_, unjudged, _)| unjudged.requests > 0)
    }

    /// Asks the limits.
    fn ask(&mut self, charge: Charge, at: u64, record: &Record<'_>) -> Verdict {
        let mut hits = mem::take(&mut self.hits);
        hits.clear();
        let is_alone = charge.len() == 1;
        let is_coarse = self.counts.is_coarse;
        for debit in charge.debits() {
            let Some(policy) = self.by_id.get(&debit.limit.id()).copied() else { continue };
            let hash = self.hash.of(policy as u64, &debit.key);
            let (key, cost) = (debit.key, debit.cost);
            hits.push(Hit { policy, key, hash, cost, is_refused: false });
        }
        let verdict = match admit_charge(&self.limit, charge) {
            Ok(paid) => self.admitted(paid, &mut hits, at, record),
            Err(refusal) => self.refused(&refusal, &mut hits, at, record),
        };
        let refusing = hits.iter().filter(|hit| hit.is_refused).count();
        for hit in &hits {
            // What another limit refuses is charged to none, so the alternatives of this one do not see it.
            let by_another = refusing > usize::from(hit.is_refused);
            let counted = &mut self.counts.policies[hit.policy];
            let may_be_new = match &mut counted.alternatives {
                Some(alternatives) if by_another => {
                    alternatives.not_alone();
                    true
                }
                Some(alternatives) => alternatives.ask(hit.hash, hit.cost, at, is_alone, is_coarse),
                None => true,
            };
            counted.charged(hit.hash, may_be_new, at, hit.cost);
        }
        self.hits = hits;
        verdict
    }

    fn admitted(&mut self, paid: Paid, hits: &mut [Hit], at: u64, record: &Record<'_>) -> Verdict {
        let mut starts = at;
        if self.is_curious || paid.is_degraded() || paid.enforcer().is_none() {
            let decision = paid.decision();
            starts = at.saturating_add(micros(decision.wait()));
            self.look(&decision, hits);
            if paid.is_degraded() {
                self.blame(&decision, hits, at, record);
                return Verdict::of("degraded");
            }
            if !decision.is_admitted() {
                // The rule is on trial as a whole.
                for (status, hit) in decision.statuses().zip(&mut *hits) {
                    let policy = &mut self.counts.policies[hit.policy];
                    policy.shadowed += u64::from(status.refused);
                    hit.is_refused = status.refused;
                }
            }
        }
        if paid.is_settled_by_response() {
            for hit in &*hits {
                let policy = &mut self.counts.policies[hit.policy];
                policy.peaks = None;
                if let Some(alternatives) = &mut policy.alternatives {
                    alternatives.give_up();
                }
            }
            self.settle_later(paid, hits, starts, record);
        }
        Verdict::of("served")
    }

    fn settle_later(&mut self, paid: Paid, hits: &[Hit], starts: u64, record: &Record<'_>) {
        let response = LoggedResponse::new(record);
        let is_held = hits.iter().any(|hit| self.counts.policies[hit.policy].is_held);
        if record.duration.is_none() && is_held {
            self.counts.without_duration += 1;
        }
        let ends = starts.saturating_add(record.duration.unwrap_or_default() / 1_000);
        if self.under_way.len() >= MOST_UNDER_WAY {
            self.counts.too_many += 1;
            return self.end(paid, &response);
        }
        self.under_way.end(ends, Box::new((paid, response)));
    }

    /// Notes what a decision says besides.
    fn look(&mut self, decision: &Decision, hits: &[Hit]) {
        let wait = decision.wait();
        for (status, hit) in decision.statuses().zip(hits) {
            let policy = &mut self.counts.policies[hit.policy];
            policy.shadowed += u64::from(status.shadowed);
            let in_use = policy.capacity.saturating_sub(status.remaining);
            if policy.is_held {
                policy.most_in_use = policy.most_in_use.max(in_use);
            }
            if !wait.is_zero() && policy.has_queue {
                policy.waits.add(wait);
            }
        }
    }

    fn refused(
        &mut self,
        refusal: &Refusal,
        hits: &mut [Hit],
        at: u64,
        record: &Record<'_>,
    ) -> Verdict {
        let key = refusal.decision().and_then(|decision| {
            self.look(decision, hits);
            self.blame(decision, hits, at, record)
        });
        let outcome = match refusal {
            Refusal::Elsewhere(..) => "redirected",
            Refusal::TooMany(_) | Refusal::NeverFits(..) => "refused",
            _ => "failed",
        };
        Verdict { outcome, key }
    }

    /// Counts a refusal at the limits that refused. Returns the key at the first of them.
    fn blame(
        &mut self,
        decision: &Decision,
        hits: &mut [Hit],
        at: u64,
        record: &Record<'_>,
    ) -> Option<(KeyBuf, u64)> {
        let mut first = None;
        for (status, hit) in decision.statuses().zip(hits).filter(|(status, _)| status.refused) {
            hit.is_refused = true;
            let Hit { policy, key, hash, .. } = hit;
            self.counts.policies[*policy].refuse(status, key, *hash, at, record);
            first = first.or(Some((*key, *hash)));
        }
        first
    }
}
