//! What a limit's way asks of a request.

use std::collections::BTreeSet;

use super::descriptors::Descriptors;
use super::found::{Found, short};
use super::meaning::{Unclear, has_any};
use super::rate::Rate;
use super::test::Test;
use super::tree::Value;
use super::ways::{Step, Way};

/// What each way asks: that the service would find its limit, and none that replaces it.
pub(super) struct Asked {
    asked: Vec<Test>,
}

impl Asked {
    pub(super) fn new(ways: &[Way<'_>], descriptors: &Descriptors, found: &mut Found) -> Self {
        let mut reading = Reading { descriptors, found, told: BTreeSet::new() };
        let asked = ways
            .iter()
            .map(|way| match way.limit.rate {
                Rate::Unlimited => Test::Never,
                Rate::Per(..) => reading.of(way, ways),
            })
            .collect();
        reading.unknown_names(ways);
        Self { asked }
    }

    /// What the way at this place asks.
    pub(super) fn of(&self, at: usize) -> Test {
        self.asked.get(at).cloned().unwrap_or(Test::Never)
    }
}

struct Reading<'r> {
    descriptors: &'r Descriptors,
    found: &'r mut Found,
    /// What was told already: a key that is not known is so in many places.
    told: BTreeSet<Unclear>,
}

impl Reading<'_> {
    fn of(&mut self, way: &Way<'_>, ways: &[Way<'_>]) -> Test {
        let own = self.meets(way, false);
        let replaced = |other: &&Way<'_>| match &way.limit.name {
            Some(name) => other.limit.replaces.contains(name),
            None => false,
        };
        let others: Vec<_> = ways.iter().filter(replaced).collect();
        let replacing: Vec<_> =
            others.into_iter().map(|other| self.meets(other, true).not()).collect();
        Test::all(std::iter::once(own).chain(replacing))
    }

    /// Whether a request meets the limit of a way. That it has a key whose values are not told is left
    /// to the key of the rule, unless the question is `whole`.
    fn meets(&mut self, way: &Way<'_>, whole: bool) -> Test {
        let steps: Vec<_> = way.steps.iter().map(|step| self.step(step, whole)).collect();
        Test::all(steps)
    }

    fn step(&mut self, step: &Step<'_>, whole: bool) -> Test {
        let key = &step.entry.key;
        // One of several values is enough to be charged, and not enough to be charged elsewhere.
        let own = has_any(self.descriptors, key, &[&step.entry.value], whole);
        let own = self.told(own, step);
        let left_to_the_key = step.entry.value == Value::Any && !whole;
        let own = if left_to_the_key { Test::Always } else { own };
        let others = has_any(self.descriptors, key, &step.but, !whole);
        Test::all([own, self.told(others, step).not()])
    }

    fn told(&mut self, test: Result<Test, Unclear>, step: &Step<'_>) -> Test {
        test.unwrap_or_else(|unclear| {
            if self.told.insert(unclear.clone()) {
                self.found.problem(&step.entry.path, step.entry.place, unclear);
            }
            Test::Never
        })
    }

    /// The service says nothing of a name that is nobody's.
    fn unknown_names(&mut self, ways: &[Way<'_>]) {
        let names: BTreeSet<_> = ways.iter().filter_map(|way| way.limit.name.as_ref()).collect();
        for way in ways {
            for name in way.limit.replaces.iter().filter(|name| !names.contains(name)) {
                let what = format!("this replaces nothing: no limit has the name {}", short(name));
                let path = way.steps.last().map_or("", |step| &step.entry.path);
                self.found.warning(&format!("{path}.rate_limit.replaces"), way.limit.place, what);
            }
        }
    }
}
