//! Policies in words, one line for each limit.

use std::collections::BTreeMap;

use sluicegate_core::rule::KnownLimits;
use sluicegate_envoy::service::Domain;

use super::Policies;
use crate::status::PolicyStatus;

/// The most limits of a policy that are shown.
const MOST_LIMITS: usize = 10;

impl Policies {
    /// The limits in force in words, one line for each, below the name of the domain that they belong to.
    pub fn describe(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let domains = self.domains();
        let mut domains: Vec<_> = domains.iter().collect();
        domains.sort_by_key(|domain| domain.name());
        domains.into_iter().for_each(|domain| describe(domain, &mut lines));
        if let Some(rules) = self.live() {
            lines.push("rules".to_owned());
            rules.each_limit(&mut |limit| lines.push(format!("  {limit}")));
        }
        if let Some(capacities) = self.capacities() {
            lines.push("capacity".to_owned());
            lines.extend(capacities.in_force().iter().map(|capacity| format!("  {capacity}")));
        }
        lines
    }
}

impl Policies {
    /// Writes the limits of each policy beside it, and the key and the condition of its rule.
    pub(crate) fn explain(&self, counted: &mut [PolicyStatus]) {
        let Some(live) = self.live() else { return };
        let at: BTreeMap<_, _> =
            counted.iter().enumerate().map(|(at, policy)| (policy.policy.clone(), at)).collect();
        live.each_limit(&mut |limit| {
            let Some(at) = at.get(&limit.name().to_string()) else { return };
            let limits = &mut counted[*at].limits;
            let text = limit.to_string();
            if limits.len() < MOST_LIMITS && !limits.contains(&text) {
                limits.push(text);
            }
        });
        let in_force = live.policies();
        for policy in counted {
            policy.rule = in_force.rule_in_words(&policy.policy).unwrap_or_default().to_owned();
        }
    }
}

pub(super) fn describe(domain: &Domain, lines: &mut Vec<String>) {
    lines.push(format!("domain {:?}", domain.name()));
    let first = lines.len();
    domain.each_rule(&mut |rule| lines.push(format!("  {rule}")));
    lines[first..].sort();
}
