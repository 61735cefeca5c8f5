//! Handles of the recorder, requested once and kept.

use std::sync::OnceLock;

use metrics::{Counter, Histogram, Unit, counter, describe_counter, describe_histogram, histogram};

use super::VerdictLabel;
use crate::limit::Limit;
use crate::observe::by_policy::{ByPolicy, Names};
use crate::store::StoreError;

/// The labels of this process.
static NAMES: Names = Names::new();

pub(super) struct All {
    policies: ByPolicy<OfPolicy>,
    /// Requests without a key: by the client's mistake, then by the server's.
    keyless: OnceLock<[Counter; 2]>,
    failures: OnceLock<[Counter; StoreError::KINDS.len()]>,
    unread: OnceLock<Counter>,
}

/// The metrics of one policy.
pub(super) struct OfPolicy {
    verdicts: [Counter; VerdictLabel::ALL.len()],
    pub(super) remaining: Histogram,
    pub(super) wait: Histogram,
}

impl VerdictLabel {
    pub(super) const ALL: [Self; 8] = [
        Self::Admitted,
        Self::Waited,
        Self::Refused,
        Self::Banned,
        Self::Degraded,
        Self::Redirected,
        Self::Shadowed,
        Self::Uncounted,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Admitted => "admitted",
            Self::Waited => "waited",
            Self::Refused => "refused",
            Self::Banned => "banned",
            Self::Degraded => "degraded",
            Self::Redirected => "redirected",
            Self::Shadowed => "shadowed",
            Self::Uncounted => "uncounted",
        }
    }
}

impl Default for All {
    fn default() -> Self {
        Self {
            policies: ByPolicy::within(&NAMES),
            keyless: OnceLock::new(),
            failures: OnceLock::new(),
            unread: OnceLock::new(),
        }
    }
}

impl All {
    #[inline]
    pub(super) fn of(&self, limit: &Limit) -> &OfPolicy {
        &self.policies.of(limit, |name| self.registered(name)).kept
    }

    /// Rare metrics are registered with the first policy, so that their zeros are visible.
    fn registered(&self, name: &str) -> OfPolicy {
        self.keyless_of(0);
        self.failures_of(0);
        self.unread();
        OfPolicy::registered(name)
    }

    pub(super) fn keyless_of(&self, whose: usize) -> &Counter {
        let registered = || {
            describe_counter!(
                "sluicegate_keyless_total",
                Unit::Count,
                "Requests without a key, by whether the client left it out or the server lacks something."
            );
            ["client", "server"].map(|whose| counter!("sluicegate_keyless_total", "whose" => whose))
        };
        &self.keyless.get_or_init(registered)[whose]
    }

    pub(super) fn failures_of(&self, kind: usize) -> &Counter {
        let registered = || {
            describe_counter!(
                "sluicegate_store_errors_total",
                Unit::Count,
                "Decisions that the store did not make, by what was wrong with it."
            );
            StoreError::KINDS.map(|kind| counter!("sluicegate_store_errors_total", "kind" => kind))
        };
        &self.failures.get_or_init(registered)[kind]
    }

    pub(super) fn unread(&self) -> &Counter {
        self.unread.get_or_init(|| {
            describe_counter!(
                "sluicegate_unread_answers_total",
                Unit::Count,
                "Answers charged what was reserved, because nobody has read what they cost."
            );
            counter!("sluicegate_unread_answers_total")
        })
    }
}

impl OfPolicy {
    fn registered(name: &str) -> Self {
        describe();
        let policy = || name.to_owned();
        let verdict = |told: VerdictLabel| counter!("sluicegate_decisions_total", "policy" => policy(), "verdict" => told.name());
        Self {
            verdicts: VerdictLabel::ALL.map(verdict),
            remaining: histogram!("sluicegate_remaining_share", "policy" => policy()),
            wait: histogram!("sluicegate_wait_seconds", "policy" => policy()),
        }
    }

    #[inline]
    pub(super) fn count(&self, told: VerdictLabel) {
        self.verdicts[told as usize].increment(1);
    }
}

fn describe() {
    describe_counter!(
        "sluicegate_decisions_total",
        Unit::Count,
        "Decisions by policy and verdict: once for each limit that admits, or each that refuses."
    );
    describe_histogram!(
        "sluicegate_remaining_share",
        "What remains of the tightest limit once a request is decided, as a share: from 0, nothing, to 1, all."
    );
    describe_histogram!(
        "sluicegate_wait_seconds",
        Unit::Seconds,
        "How long requests are made to wait for their turn, those that need not wait left out."
    );
}
