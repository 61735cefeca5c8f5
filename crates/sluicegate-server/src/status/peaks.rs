//! Whom another limit would refuse.

use serde::{Deserialize, Serialize};
use sluicegate_core::observe::LimitPeaks;
use utoipa::ToSchema;

/// The keys of a limit by the most that each has asked for in a window of the clock.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct PeaksStatus {
    /// The name of the policy.
    pub policy: String,
    /// The limit in words.
    pub limit: String,
    /// How much the limit admits in its period.
    pub count: u64,
    /// The window in seconds, which is the period of the limit.
    pub window: f64,
    /// How many keys a key that is followed stands for. 1: all keys are followed.
    pub one_in: u64,
    /// How many keys are followed.
    pub followed: u64,
    /// Requests that were not counted, because threads met.
    pub missed: u64,
    /// Levels, with the keys and the requests of each: keys whose highest count is at most the level and above the one before,
    /// and requests whose number in their window is so. A limit of a fixed window refuses the requests, and touches the keys,
    /// of the levels above it.
    pub steps: Vec<[u64; 3]>,
}

impl From<LimitPeaks> for PeaksStatus {
    fn from(peaks: LimitPeaks) -> Self {
        let LimitPeaks { limit, window, one_in, followed, missed, steps, .. } = peaks;
        Self {
            policy: limit.name().to_string(),
            limit: limit.to_string(),
            count: limit.count(),
            window: window.as_secs_f64(),
            one_in,
            followed: followed as u64,
            missed,
            steps: steps.iter().map(|step| [step.level, step.keys, step.requests]).collect(),
        }
    }
}
