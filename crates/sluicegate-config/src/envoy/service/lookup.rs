//! A domain as nested maps, so that a value is looked up and not compared with thousands of others.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::document::Wildcard;

use super::Map;
use super::rule::{Rate, Rule};
use super::unit::Unit;
use crate::envoy::file::name::{digested, name};
use crate::envoy::file::rate;
use crate::envoy::file::tree::{Descriptor, Domain, Value};
use crate::envoy::file::ways::Step;

/// One level of a domain: what each key leads to.
#[derive(Debug, Default)]
pub(super) struct Level(Map<[u8], Values>);

/// The entries for the values of one key.
#[derive(Debug, Default)]
struct Values {
    exact: Map<[u8], Entry>,
    /// In the order of the file.
    like: Vec<(Box<str>, Entry)>,
    any: Option<Entry>,
}

/// One entry of a file.
#[derive(Debug)]
pub(super) struct Entry {
    rule: Option<Rule>,
    /// The pattern whose matches share one budget.
    shared: Option<Box<str>>,
    below: Level,
}

/// The rule of a descriptor, and the values that share budgets: for each entry, the pattern instead of the value.
#[derive(Debug, Clone)]
pub(super) struct Found<'d> {
    pub(super) rule: Cow<'d, Rule>,
    /// The index of an entry, and the pattern that stands for its value.
    pub(super) shared: Vec<(usize, &'d str)>,
}

impl Level {
    /// The top level of a domain that was read without errors.
    pub(super) fn of(domain: &Domain) -> Self {
        let mut names = BTreeSet::new();
        Self::new(&domain.descriptors, &mut Vec::new(), &mut names)
    }

    fn new<'d>(
        descriptors: &'d [Descriptor],
        steps: &mut Vec<Step<'d>>,
        names: &mut BTreeSet<String>,
    ) -> Self {
        let mut level: Map<[u8], Values> = Map::default();
        for descriptor in descriptors {
            steps.push(Step { entry: descriptor, but: [].into() });
            let rule = rule(descriptor, steps, names);
            let below = Self::new(&descriptor.descriptors, steps, names);
            steps.pop();
            let pattern = descriptor.value.text().filter(|_| descriptor.shared);
            let entry = Entry { rule, shared: pattern.map(Into::into), below };
            let values = level.entry(descriptor.key.as_bytes().into()).or_default();
            match &descriptor.value {
                Value::Any => values.any = Some(entry),
                Value::Exactly(value) => {
                    values.exact.insert(value.as_bytes().into(), entry);
                }
                Value::Like(pattern) => values.like.push((pattern.as_str().into(), entry)),
            }
        }
        Self(level)
    }

    /// The rule that a descriptor with these entries meets, as the service looks it up: an exact value first, then
    /// patterns in the order of the file, then the key alone; without going back. A rule counts only for a descriptor
    /// with as many entries as lead to it.
    pub(super) fn rule<T: AsRef<[u8]>>(&self, entries: &[(T, T)]) -> Option<&Rule> {
        self.walk(entries, |_, _| {})
    }

    /// Like [`rule`](Self::rule), with the values that share budgets.
    pub(super) fn find<'d>(&'d self, entries: &[(&[u8], &[u8])]) -> Option<Found<'d>> {
        let mut shared = Vec::new();
        let rule = self.walk(entries, |at, pattern| shared.push((at, pattern)))?;
        Some(Found { rule: Cow::Borrowed(rule), shared })
    }

    /// Calls `shared` with each entry whose value shares its budget with all that match its pattern.
    fn walk<'d, T: AsRef<[u8]>>(
        &'d self,
        entries: &[(T, T)],
        mut shared: impl FnMut(usize, &'d str),
    ) -> Option<&'d Rule> {
        let mut level = self;
        for (at, (key, value)) in entries.iter().enumerate() {
            let entry = level.0.get(key.as_ref())?.find(value.as_ref())?;
            if let Some(pattern) = &entry.shared {
                shared(at, pattern);
            }
            if at + 1 == entries.len() {
                return entry.rule.as_ref();
            }
            level = &entry.below;
        }
        None
    }

    /// Calls `each` with every rule.
    pub(super) fn each_rule(&self, each: &mut dyn FnMut(&Rule)) {
        for values in self.0.values() {
            let like = values.like.iter().map(|(_, entry)| entry);
            for entry in values.exact.values().chain(like).chain(&values.any) {
                entry.rule.iter().for_each(&mut *each);
                entry.below.each_rule(each);
            }
        }
    }
}

impl Values {
    fn find(&self, value: &[u8]) -> Option<&Entry> {
        let like = || self.like.iter().find(|(pattern, _)| Wildcard::matches(pattern, value));
        self.exact.get(value).or_else(|| like().map(|(_, entry)| entry)).or(self.any.as_ref())
    }
}

fn rule(descriptor: &Descriptor, steps: &[Step<'_>], names: &mut BTreeSet<String>) -> Option<Rule> {
    let said = descriptor.limit.as_ref()?;
    let rate = match said.rate {
        rate::Rate::Unlimited => None,
        rate::Rate::Per(count, period) => {
            let usual = name(steps);
            let name = if names.contains(&usual) { digested(steps) } else { usual };
            // Every count below 2^32 in one of the units is a limit, and every name is one.
            let rate = Rate::new(count, Unit::of(period)?, &name).ok()?;
            names.insert(name);
            Some(rate)
        }
    };
    Some(Rule {
        rate,
        name: said.name.as_deref().map(Into::into),
        replaces: said.replaces.iter().map(|name| name.as_str().into()).collect(),
        shadow: descriptor.shadow,
        quota: descriptor.quota.is_some(),
    })
}
