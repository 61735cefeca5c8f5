//! What is done with a refused request.

use tollgate_core::{Decision, Gate, Rejection, Step};

use crate::compile::Policies;

/// What the policies say of the limit that refuses; of several, what is least generous, so that none is
/// let off because another would only be on trial.
pub(super) fn rejection(policies: &Policies, decision: &Decision) -> Rejection {
    let refusing = decision.standings().filter(|standing| standing.refused);
    let rejections = refusing.map(|standing| {
        let said = policies.rejection_of(&standing.limit.name().to_string());
        said.cloned().unwrap_or_default()
    });
    rejections.max_by_key(|rejection| strictness(rejection, decision)).unwrap_or_default()
}

fn strictness(rejection: &Rejection, decision: &Decision) -> u8 {
    match Gate::new(rejection.clone()).refuse(decision) {
        Step::Shadow => 0,
        Step::Degrade => 1,
        Step::Redirect(_) => 2,
        Step::Reject => 3,
    }
}
