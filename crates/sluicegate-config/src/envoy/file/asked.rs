//! The condition under which a request reaches a limit.

use std::collections::{BTreeSet, HashMap};

use super::descriptors::{Descriptors, Meaning, is_known};
use super::found::{Found, short};
use super::meaning::{Unclear, has_any};
use super::question::Question;
use super::rate::Rate;
use super::tree::Value;
use super::ways::{Step, Way};
use crate::document::Key;

/// The condition of each way: the service would find its limit, and no limit that replaces it.
pub(super) struct Asked {
    asked: Vec<Question>,
}

impl Asked {
    pub(super) fn new(ways: &[Way<'_>], descriptors: &Descriptors, found: &mut Found) -> Self {
        let mut reading = Reading { descriptors, found, told: BTreeSet::new(), left: COMPARED };
        let mut replacing: HashMap<&str, Vec<_>> = HashMap::new();
        for way in ways {
            for name in way.limit.replaces.iter().collect::<BTreeSet<_>>() {
                replacing.entry(name).or_default().push(way);
            }
        }
        let replacing = |way: &Way<'_>| {
            let name = way.limit.name.as_deref()?;
            replacing.get(name).map(Vec::as_slice)
        };
        let asked = ways
            .iter()
            .map(|way| match way.limit.rate {
                Rate::Unlimited => Question::Never,
                Rate::Per(..) => reading.of(way, replacing(way).unwrap_or_default()),
            })
            .collect();
        reading.unknown_names(ways);
        Self { asked }
    }

    /// The condition of the way at this index.
    pub(super) fn of(&self, at: usize) -> Question {
        self.asked.get(at).cloned().unwrap_or(Question::Never)
    }
}

struct Reading<'r> {
    descriptors: &'r Descriptors,
    found: &'r mut Found,
    /// Errors that were reported: an unknown key may occur many times.
    told: BTreeSet<Unclear>,
    /// How many more values may be compared.
    left: usize,
}

/// The most values that all rules of a file may compare. A limit for all values except those of 1,000 others
/// compares with each of them, and so does each limit below it or replaced by them.
const COMPARED: usize = 100_000;

impl Reading<'_> {
    /// `replacing` are the ways to the limits that replace this one.
    fn of(&mut self, way: &Way<'_>, replacing: &[&Way<'_>]) -> Question {
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
    fn meets(&mut self, way: &Way<'_>, whole: bool) -> Question {
        let steps: Vec<_> = way.steps.iter().map(|step| self.step(step, whole)).collect();
        Question::all(steps)
    }

    fn step(&mut self, step: &Step<'_>, whole: bool) -> Question {
        let key = &step.entry.key;
        self.warn_of_header(step);
        // One of several values is enough for this limit. For another limit, all of them must match.
        let own = has_any(self.descriptors, key, &[&step.entry.value], whole);
        let own = self.told(own, step);
        let left_to_the_key = step.entry.value == Value::Any && !whole;
        let own = if left_to_the_key { Question::Always } else { own };
        let others = has_any(self.descriptors, key, &step.but, !whole);
        Question::all([own, self.told(others, step).not()])
    }

    /// Warns of a header with a name that no header has but something else does.
    fn warn_of_header(&mut self, step: &Step<'_>) {
        let key = &step.entry.key;
        let Some(Meaning::Key(Key::Header(header))) = self.descriptors.meaning(key) else { return };
        if is_known(header) && self.told.insert(format!("header {key}")) {
            let what = format!(
                "this is the header {} of a request, which hardly any request has, so that nothing is limited: \
                 expected Key::Path, Key::Method or Key::Host, if one of them is meant",
                short(header)
            );
            self.found.warning(&step.entry.path, step.entry.location, what);
        }
    }

    fn told(&mut self, test: Result<Question, Unclear>, step: &Step<'_>) -> Question {
        test.unwrap_or_else(|unclear| {
            if self.told.insert(unclear.clone()) {
                self.found.problem(&step.entry.path, step.entry.location, unclear);
            }
            Question::Never
        })
    }

    /// Warns of replaced names that no limit has. The service ignores them.
    fn unknown_names(&mut self, ways: &[Way<'_>]) {
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
