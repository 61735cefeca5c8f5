use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::capacity::Capacity;
use super::latency::LatencyStatus;
use super::store::StoreStatus;

/// The state of a server at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct Status {
    /// The version of the server.
    pub version: String,
    /// How long the server has been running, in seconds.
    pub uptime_seconds: u64,
    /// Whether the server is about to stop.
    pub stopping: bool,
    /// Whether decisions are counted. They are if the server shows metrics.
    pub counting: bool,
    /// Requests by what became of them: `served`, `refused` and `failed`, which could not be decided about. Each is counted
    /// once, however many limits it was charged to.
    pub requests: BTreeMap<String, Rate>,
    /// The same in each of the last seconds, the latest last. 60 at most.
    pub seconds: BTreeMap<String, Vec<u64>>,
    /// The same in each of the last minutes that are over, the latest last. 180 at most.
    pub minutes: BTreeMap<String, Vec<u64>>,
    /// The policies that have decided, in the order of their first decisions. There are 64 at most, and `other`.
    pub policies: Vec<PolicyStatus>,
    /// What `who` shows of a key.
    pub keys: Keys,
    /// The keys that are refused most, for each policy.
    pub refused: Vec<RefusedBy>,
    /// How long decisions took in the last minute.
    pub latency: LatencyStatus,
    /// Calls that failed before a decision.
    pub failed_calls: FailedCalls,
    /// The store.
    pub store: StoreStatus,
    /// Leased capacity.
    pub capacity: Capacity,
    /// The limits in force in words, one a line, below the domain that they belong to. 500 lines at most.
    pub in_force: Vec<String>,
    /// How many lines of `in_force` are left out.
    pub in_force_more: u64,
    /// What would change if the files of policies were read again now.
    pub pending: Vec<PendingStatus>,
}

/// How often a policy decided.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct PolicyStatus {
    /// The name of the policy.
    pub policy: String,
    /// Its limits. Several, if it has cases or tiers. 10 at most.
    pub limits: Vec<String>,
    /// Where its limits are from, in words: the key and the condition of a rule in TOML, or the domain of a file of Envoy's. Empty
    /// if nothing in force has it.
    pub rule: String,
    /// Decisions by verdict: `admitted`, `waited`, `refused`, `banned`, `degraded`, `redirected`, `shadowed` and
    /// `uncounted`. Verdicts that never happened are left out.
    pub verdicts: BTreeMap<String, Rate>,
    /// Decisions that let a request go ahead, in each of the last seconds, the latest last. 60 at most.
    pub served: Vec<u64>,
    /// Decisions that refused, in each of the last seconds, the latest last. 60 at most.
    pub refused: Vec<u64>,
}

/// A number of decisions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct Rate {
    /// Since the server started.
    pub total: u64,
    /// For each second, over the last ten seconds.
    pub per_second: f64,
}

/// Calls that failed before there was a decision, such as those that could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct FailedCalls {
    /// Since the server started.
    pub total: u64,
    /// What the log said last about one of them.
    pub last: Option<String>,
}

/// What is shown of keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Keys {
    /// Refused keys are not noted.
    #[default]
    Unknown,
    /// A digest that tells keys apart, and means nothing without a secret that only the server has.
    Digests,
    /// The keys.
    Shown,
}

/// The keys that one policy refuses most.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct RefusedBy {
    /// The name of the policy.
    pub policy: String,
    /// All of its refusals.
    pub refusals: u64,
    /// The keys, the most refused first. 20 at most, unless the service notes fewer.
    pub keys: Vec<Refused>,
}

/// How often a key was refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct Refused {
    /// The key, or a digest of it.
    pub who: String,
    /// A lower bound of its refusals.
    pub at_least: u64,
    /// An upper bound of its refusals.
    pub at_most: u64,
}

/// What would change if files of policies were read again now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct PendingStatus {
    /// Which files: `rules`, or `files of Envoy's rate limit service`.
    pub files: String,
    /// One line for each change. 100 lines at most.
    pub changes: Vec<String>,
    /// Why they would not come into force, one line for each problem, with its file, line and column. 100 lines at most.
    pub problems: Vec<String>,
    /// How many lines are left out.
    pub more: u64,
}
