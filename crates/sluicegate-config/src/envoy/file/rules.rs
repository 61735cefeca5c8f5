//! Makes rules of a document from the ways to limits.

use std::collections::BTreeSet;
use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::limit::MAX_LIMITS;

use super::asked::Asked;
use super::descriptors::{Descriptors, Meaning};
use super::found::Found;
use super::name::{digested, identity, name};
use super::question::Question;
use super::rate::Rate;
use super::tree::{Domain, Value};
use super::ways::{Step, Way, ways};
use crate::document::{Document, Key, Rule};

/// The most keys in a list of keys.
const TOGETHER: usize = 4;

/// A rule for each limit of the domain.
pub(super) fn document(domain: &Domain, descriptors: &Descriptors, found: &mut Found) -> Document {
    let ways = ways(domain);
    look_at_quotas(&ways, found);
    let asked = Asked::new(&ways, descriptors, found);
    let mut document = Document::default();
    document.proxies = descriptors.proxies().cloned();
    if let Some(location) = domain.said {
        document.source.mark_as("rules", location, "descriptors");
    }
    let mut names = BTreeSet::new();
    for (at, way) in ways.iter().enumerate() {
        let Rate::Per(count, period) = way.limit.rate else { continue };
        let Some(limit) = limit(way, count, period, descriptors, found) else { continue };
        let when = match asked.of(at) {
            Question::Never => continue,
            Question::Always => None,
            Question::If(condition) => Some(*condition),
        };
        let usual = name(&way.steps);
        let name = if names.contains(&usual) { digested(&way.steps) } else { usual };
        names.insert(name.clone());
        mark(&mut document, way);
        let mut rule = Rule::new(name, key(&domain.name, &way.steps, descriptors)).limit(limit);
        if count == 0 {
            // A limit of 0 is not possible, but a limit of 1 refuses every request that costs 2.
            rule = rule.cost(2);
        }
        rule.when = when;
        document.rules.push(rule);
    }
    warn_of_many(&ways, found);
    document
}

fn limit(
    way: &Way<'_>,
    count: u32,
    period: Duration,
    descriptors: &Descriptors,
    found: &mut Found,
) -> Option<Limit> {
    let count = u64::from(count.max(1));
    let limit = if descriptors.are_token_buckets() {
        Limit::try_per(count, period)
    } else {
        Limit::try_fixed_window(count, period)
    };
    match limit {
        Ok(limit) if way.shadow => Some(limit.shadow()),
        Ok(limit) => Some(limit),
        Err(error) => {
            found.problem(&rate_path(way), way.limit.location, error.to_string());
            None
        }
    }
}

/// A key with one budget for each value that the file does not name.
fn key(domain: &str, steps: &[Step<'_>], descriptors: &Descriptors) -> Key {
    let own = Key::Const(identity(domain, steps));
    let values = steps.iter().filter(|step| match step.entry.value {
        Value::Any => true,
        Value::Exactly(_) => false,
        Value::Like(_) => !step.entry.shared,
    });
    let mut keys: Vec<_> = values
        .filter_map(|step| match descriptors.meaning(&step.entry.key) {
            Some(Meaning::Key(Key::Const(_) | Key::Global)) => None,
            Some(Meaning::Key(key)) => Some(key.clone()),
            Some(Meaning::Named | Meaning::Network) | None => None,
        })
        .collect();
    if keys.is_empty() {
        return own;
    }
    keys.insert(0, own);
    while keys.len() > TOGETHER {
        let last = keys.split_off(keys.len() - TOGETHER);
        keys.push(Key::All(last));
    }
    // If an entry is missing, Envoy sends no descriptor.
    Key::Optional(Box::new(Key::All(keys)))
}

/// Errors in the rule are reported at the descriptor.
fn mark(document: &mut Document, way: &Way<'_>) {
    let Some(Step { entry, .. }) = way.steps.last() else { return };
    let rule = format!("rules[{}]", document.rules.len());
    document.source.mark_as(format!("{rule}.limits"), way.limit.location, rate_path(way));
    document.source.mark_as(rule, entry.location, entry.path.clone());
}

fn rate_path(way: &Way<'_>) -> String {
    let path = way.steps.last().map_or("", |step| &step.entry.path);
    format!("{path}.rate_limit")
}

/// The service refuses a request when all quotas that it meets are spent. A request meets one quota of those with the
/// same keys on their way. That quota refuses like any other limit.
fn look_at_quotas(ways: &[Way<'_>], found: &mut Found) {
    let quotas = ways.iter().filter(|way| way.limit.rate != Rate::Unlimited);
    let quotas = quotas.filter_map(|way| {
        let entry = way.steps.last()?.entry;
        entry.quota.map(|location| (way, entry, location))
    });
    let quotas: Vec<_> = quotas.collect();
    let lists: BTreeSet<Vec<_>> = quotas.iter().map(|(way, ..)| keys(way).collect()).collect();
    for (_, entry, location) in &quotas {
        let path = format!("{}.quota_mode", entry.path);
        if lists.len() > 1 {
            let what = "a quota refuses only once all quotas of a request are spent, which limits here cannot \
                        do: expected quotas for one list of keys, or `quota_mode: false`";
            found.problem(&path, *location, what);
        } else {
            let what = "this changes nothing here: a request meets no other quota, so this one refuses once it \
                        is spent, as any limit does";
            found.warning(&path, *location, what);
        }
    }
}

fn keys<'w>(way: &'w Way<'_>) -> impl Iterator<Item = &'w String> {
    way.steps.iter().map(|step| &step.entry.key)
}

/// A request meets at most one of the limits with the same keys on their way.
fn warn_of_many(ways: &[Way<'_>], found: &mut Found) {
    let mut several = BTreeSet::new();
    for way in ways.iter().filter(|way| way.limit.rate != Rate::Unlimited) {
        several.insert(keys(way).collect::<Vec<_>>());
        if several.len() == MAX_LIMITS + 1 {
            let what = format!(
                "a request that has all these keys meets more than {MAX_LIMITS} limits, and is \
                 answered with an error: let no request have all of them"
            );
            found.warning(&rate_path(way), way.limit.location, what);
        }
    }
}
