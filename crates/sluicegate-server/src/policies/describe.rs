//! Policies in words, one line for each limit.

use sluicegate_core::rule::KnownLimits;
use sluicegate_envoy::service::Domain;

use super::Policies;

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

pub(super) fn describe(domain: &Domain, lines: &mut Vec<String>) {
    lines.push(format!("domain {:?}", domain.name()));
    let first = lines.len();
    domain.each_rule(&mut |rule| lines.push(format!("  {rule}")));
    lines[first..].sort();
}
