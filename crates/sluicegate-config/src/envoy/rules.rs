//! Makes rules of a document from the ways to limits.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::limit::MAX_LIMITS;

use super::descriptors::{Descriptors, Meaning, is_known};
use super::diagnostics::Diagnostics;
use super::fields::short;
use super::limit_path::{LimitPath, Names, Step, digest, identity, spelled, ways};
use super::meaning::{Question, TranslationError, has_any};
use super::tree::{Domain, Rate, Value};
use crate::document::{Document, Key, Rule};

/// The most keys in a list of keys.
const TOGETHER: usize = 4;

/// A rule for each limit of the domain.
pub(super) fn document(
    domain: &Domain,
    descriptors: &Descriptors,
    found: &mut Diagnostics,
) -> Document {
    let ways = ways(domain);
    look_at_quotas(&ways, found);
    let conditions = conditions(&ways, descriptors, found);
    let proxies = descriptors.proxies.clone();
    let mut document = Document { proxies, ..Document::default() };
    if let Some(location) = domain.descriptors_at {
        document.source.mark_as("rules", location, "descriptors");
    }
    let mut names = Names::default();
    for (way, condition) in ways.iter().zip(conditions) {
        let Rate::Per(count, unit) = way.limit.rate else { continue };
        let Some(limit) = limit(way, count, unit.period(), descriptors, found) else { continue };
        let when = match condition {
            Question::Never => continue,
            Question::Always => None,
            Question::If(condition) => Some(*condition),
        };
        let name = names.give(&spelled(&way.steps), digest(&way.steps));
        mark(&mut document, way);
        let mut rule = Rule::new(name, key(&domain.name, &way.steps, descriptors)).limit(limit);
        if count == 0 {
            rule = rule.block();
        }
        rule.when = when;
        document.rules.push(rule);
    }
    warn_of_many(&ways, found);
    document
}

fn limit(
    way: &LimitPath<'_>,
    count: u32,
    period: Duration,
    descriptors: &Descriptors,
    found: &mut Diagnostics,
) -> Option<Limit> {
    let count = u64::from(count.max(1));
    let limit = if descriptors.token_buckets {
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
fn mark(document: &mut Document, way: &LimitPath<'_>) {
    let Some(Step { entry, .. }) = way.steps.last() else { return };
    let rule = format!("rules[{}]", document.rules.len());
    document.source.mark_as(format!("{rule}.limits"), way.limit.location, rate_path(way));
    document.source.mark_as(rule, entry.location, entry.path.clone());
}

fn rate_path(way: &LimitPath<'_>) -> String {
    let path = way.steps.last().map_or("", |step| &step.entry.path);
    format!("{path}.rate_limit")
}

/// The service refuses a request when all quotas that it meets are spent. A request meets one quota of those with the
/// same keys on their way. That quota refuses like any other limit.
fn look_at_quotas(ways: &[LimitPath<'_>], found: &mut Diagnostics) {
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

fn keys<'w>(way: &'w LimitPath<'_>) -> impl Iterator<Item = &'w String> {
    way.steps.iter().map(|step| &step.entry.key)
}

/// A request mostly meets one of the limits with the same keys on their way: more only where two values are spellings of one path
/// or method.
fn warn_of_many(ways: &[LimitPath<'_>], found: &mut Diagnostics) {
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

/// The condition of each way: the service would find its limit, and no limit that replaces it.
fn conditions(
    ways: &[LimitPath<'_>],
    descriptors: &Descriptors,
    found: &mut Diagnostics,
) -> Vec<Question> {
    let mut translation =
        Translation { descriptors, found, reported: BTreeSet::new(), left: COMPARED };
    let mut replacing: HashMap<&str, Vec<_>> = HashMap::new();
    for way in ways {
        for name in way.limit.replaces.iter().collect::<BTreeSet<_>>() {
            replacing.entry(name).or_default().push(way);
        }
    }
    let replacing = |way: &LimitPath<'_>| {
        let name = way.limit.name.as_deref()?;
        replacing.get(name).map(Vec::as_slice)
    };
    let of_ways = ways.iter().map(|way| match way.limit.rate {
        Rate::Unlimited => Question::Never,
        Rate::Per(..) => translation.of(way, replacing(way).unwrap_or_default()),
    });
    let of_ways = of_ways.collect();
    translation.unknown_names(ways);
    of_ways
}

struct Translation<'r> {
    descriptors: &'r Descriptors,
    found: &'r mut Diagnostics,
    /// Errors that were reported: an unknown key may occur many times.
    reported: BTreeSet<TranslationError>,
    /// How many more values may be compared.
    left: usize,
}

/// The most values that all rules of a file may compare. A limit for all values except those of 1,000 others
/// compares with each of them, and so does each limit below it or replaced by them.
const COMPARED: usize = 100_000;

impl Translation<'_> {
    /// `replacing` are the ways to the limits that replace this one.
    fn of(&mut self, way: &LimitPath<'_>, replacing: &[&LimitPath<'_>]) -> Question {
        if self.left == 0 {
            // The error was reported.
            return Question::Never;
        }
        let asked = std::iter::once(&way).chain(replacing);
        let compared: usize = asked.flat_map(|way| &way.steps).map(|step| 1 + step.but.len()).sum();
        let Some(left) = self.left.checked_sub(compared) else {
            let what = format!(
                "with this limit, the rules of the file compare more than {COMPARED} values: expected fewer \
                 values beside each other, or fewer limits that replace others"
            );
            let path = way.steps.last().map_or("", |step| &step.entry.path);
            self.found.problem(&path, way.limit.location, what);
            self.left = 0;
            return Question::Never;
        };
        self.left = left;
        let own = self.meets(way, false);
        let replacing: Vec<_> =
            replacing.iter().map(|other| self.meets(other, true).not()).collect();
        Question::all(std::iter::once(own).chain(replacing))
    }

    /// Whether a request meets the limit of a way. The key of the rule checks that entries without a value are
    /// present, unless the question is `whole`.
    fn meets(&mut self, way: &LimitPath<'_>, whole: bool) -> Question {
        let steps: Vec<_> = way.steps.iter().map(|step| self.step(step, whole)).collect();
        Question::all(steps)
    }

    fn step(&mut self, step: &Step<'_>, whole: bool) -> Question {
        let key = &step.entry.key;
        self.warn_of_header(step);
        // One of several values is enough for this limit. For another limit, all of them must match.
        let own = has_any(self.descriptors, key, &[&step.entry.value], whole);
        let own = self.or_report(own, step);
        let left_to_the_key = step.entry.value == Value::Any && !whole;
        let own = if left_to_the_key { Question::Always } else { own };
        let others = has_any(self.descriptors, key, &step.but, !whole);
        Question::all([own, self.or_report(others, step).not()])
    }

    /// Warns of a header with a name that no header has but something else does.
    fn warn_of_header(&mut self, step: &Step<'_>) {
        let key = &step.entry.key;
        let Some(Meaning::Key(Key::Header(header))) = self.descriptors.meaning(key) else { return };
        if is_known(header) && self.reported.insert(format!("header {key}")) {
            let what = format!(
                "this is the header {} of a request, which hardly any request has, so that nothing is limited: \
                 expected Key::Path, Key::Method or Key::Host, if one of them is meant",
                short(header)
            );
            self.found.warning(&step.entry.path, step.entry.location, what);
        }
    }

    fn or_report(&mut self, test: Result<Question, TranslationError>, step: &Step<'_>) -> Question {
        test.unwrap_or_else(|unclear| {
            if self.reported.insert(unclear.clone()) {
                self.found.problem(&step.entry.path, step.entry.location, unclear);
            }
            Question::Never
        })
    }

    /// Warns of replaced names that no limit has. The service ignores them.
    fn unknown_names(&mut self, ways: &[LimitPath<'_>]) {
        let names: BTreeSet<_> = ways.iter().filter_map(|way| way.limit.name.as_ref()).collect();
        for way in ways {
            for name in way.limit.replaces.iter().filter(|name| !names.contains(name)) {
                let what = format!("this replaces nothing: no limit has the name {}", short(name));
                let path = way.steps.last().map_or("", |step| &step.entry.path);
                self.found.warning(
                    &format!("{path}.rate_limit.replaces"),
                    way.limit.location,
                    what,
                );
            }
        }
    }
}
