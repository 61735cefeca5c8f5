//! What is done with a refused request.

use sluicegate_core::{Decision, Rejection};

use crate::compile::{BLOCKED, Policies};

/// What the policies say of the limit that refuses; of several, what is least generous, so that none is
/// let off because another would only be on trial. What they do not know is blocked.
pub(super) fn rejection(policies: &Policies, decision: &Decision) -> Rejection {
    let refusing = decision.statuses().filter(|status| status.refused);
    let said = refusing.map(|status| {
        let name = status.limit.own_name();
        name.and_then(|name| policies.refused_by(name)).unwrap_or(&BLOCKED)
    });
    let strictest = said.max_by_key(|refused| refused.strictness).unwrap_or(&BLOCKED);
    strictest.rejection.clone()
}
