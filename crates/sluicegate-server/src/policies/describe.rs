//! Policies in words, one line for each limit.

use std::collections::BTreeMap;

use sluicegate_config::envoy::service::Domain;
use sluicegate_core::Limit;
use sluicegate_core::rule::KnownLimits;

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

/// The policy of limits that messages of Envoy bring along.
const OF_MESSAGES: &str = "request";

impl Policies {
    /// Writes the limits of each policy beside it, and the key and the condition of its rule.
    pub(crate) fn explain(&self, counted: &mut [PolicyStatus]) {
        let at: BTreeMap<_, _> =
            counted.iter().enumerate().map(|(at, policy)| (policy.policy.clone(), at)).collect();
        let find = |limit: &Limit| at.get(&limit.name().to_string()).copied();
        for domain in self.domains().iter() {
            domain.each_rule(&mut |rule| {
                let Some(rate) = rule.rate else { return };
                let Some(at) = find(&rate.limit()) else { return };
                let words = rule.to_string();
                let name = format!("{}: ", counted[at].policy);
                add(&mut counted[at], words.strip_prefix(&name).unwrap_or(&words).to_owned());
                counted[at].rule = format!("descriptors of domain {:?}", domain.name());
            });
        }
        if let Some(live) = self.live() {
            live.each_limit(&mut |limit| {
                if let Some(at) = find(limit) {
                    add(&mut counted[at], limit.to_string());
                }
            });
            let in_force = live.policies();
            for policy in counted.iter_mut() {
                if let Some(rule) = in_force.rule_in_words(&policy.policy) {
                    policy.rule = rule.to_owned();
                }
            }
        }
        for policy in counted {
            if policy.policy == OF_MESSAGES && policy.limits.is_empty() {
                policy.rule = "limits that messages of Envoy bring along".to_owned();
            }
        }
    }
}

fn add(policy: &mut PolicyStatus, limit: String) {
    if policy.limits.len() < MOST_LIMITS && !policy.limits.contains(&limit) {
        policy.limits.push(limit);
    }
}

pub(super) fn describe(domain: &Domain, lines: &mut Vec<String>) {
    lines.push(format!("domain {:?}", domain.name()));
    let first = lines.len();
    domain.each_rule(&mut |rule| lines.push(format!("  {rule}")));
    lines[first..].sort();
}
