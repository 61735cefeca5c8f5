//! What is counted while a log goes through rules.

use std::collections::BTreeMap;

use sluicegate_core::key::KeyBuf;

use super::policy::Policy;

/// What was counted.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) requests: u64,
    /// Requests that were answered with 429, as the log has it.
    pub(super) refused_live: u64,
    pub(super) served: u64,
    /// All other outcomes.
    pub(super) not_served: BTreeMap<&'static str, u64>,
    pub(super) policies: Vec<Policy>,
    /// Of each rule.
    pub(super) unjudged: Vec<Unjudged>,
    /// What the responses of the log lack, and how often it was looked for.
    pub(super) responses_lack: BTreeMap<String, u64>,
    /// Requests that held places for no time, because the log does not say for how long.
    pub(super) without_duration: u64,
    /// Responses that ended early, because too many were under way.
    pub(super) too_many: u64,
    pub(super) first: u64,
    pub(super) last: u64,
    /// Whether every time so far had whole seconds.
    pub(super) is_coarse: bool,
}

/// The outcomes of requests that are refused without a limit, such as those without the key of a rule.
pub(super) const UNCHARGED: [&str; 2] = ["incomplete", "failed"];

/// What a rule could not judge.
#[derive(Clone, Default)]
pub(super) struct Unjudged {
    pub(super) requests: u64,
    pub(super) lacks: Vec<String>,
}

/// What becomes of a request.
pub(super) struct Verdict {
    pub(super) outcome: &'static str,
    /// The key at the first limit that refuses it, and the hash of it.
    pub(super) key: Option<(KeyBuf, u64)>,
}

impl Counts {
    pub(super) fn count(&mut self, verdict: &Verdict) {
        match verdict.outcome {
            // Most are.
            "served" => self.served += 1,
            other => *self.not_served.entry(other).or_default() += 1,
        }
    }

    /// How many requests had each outcome.
    pub(super) fn outcomes(&self) -> BTreeMap<&'static str, u64> {
        let served = (self.served > 0).then_some(("served", self.served));
        self.not_served.iter().map(|(outcome, count)| (*outcome, *count)).chain(served).collect()
    }
}

impl Verdict {
    pub(super) const fn of(outcome: &'static str) -> Self {
        Self { outcome, key: None }
    }

    pub(super) fn is_refused(&self) -> bool {
        matches!(self.outcome, "refused" | "redirected")
    }

    /// Whether the request does not get its answer, because a limit refuses it or because no rule can charge it.
    pub(super) fn is_turned_away(&self) -> bool {
        self.is_refused() || UNCHARGED.contains(&self.outcome)
    }
}
