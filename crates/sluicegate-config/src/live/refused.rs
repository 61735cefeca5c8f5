//! The rejection of a refused request.

use sluicegate_core::{Decision, Rejection};

use crate::compile::{BLOCKED, Policies};

/// The rejection of the limit that refused; if several refused, the strictest. A limit that the policies do not
/// know blocks.
pub(super) fn rejection(policies: &Policies, decision: &Decision) -> Rejection {
    let refusing = decision.statuses().filter(|status| status.refused);
    let said = refusing.map(|status| {
        let name = status.limit.own_name();
        name.and_then(|name| policies.refused_by(name)).unwrap_or(&BLOCKED)
    });
    let strictest = said.max_by_key(|refused| refused.strictness).unwrap_or(&BLOCKED);
    strictest.rejection.clone()
}
