//! What is expected of requests, and what became of them.

use std::collections::BTreeMap;
use std::time::Duration;

use http::HeaderMap;
use sluicegate_core::limit::{Decision, LimitStatus};

use super::file::{Expect, ExpectTable, Outcome};
use super::plan::Reading;
use crate::virtual_time::in_words;

/// What is expected of requests.
pub(super) struct Expectation {
    /// The file, line and column.
    pub(super) place: String,
    table: ExpectTable,
    by: Option<Vec<String>>,
    wait: Option<Duration>,
    wait_at_most: Option<Duration>,
}

/// What became of a request.
pub(super) struct Observation {
    pub(super) outcome: Outcome,
    /// The status that the client gets.
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) wait: Duration,
    /// What the limits said, if they were asked.
    pub(super) decision: Option<Decision>,
    /// What the request lacks.
    pub(super) lacks: Option<String>,
}

impl Observation {
    /// The limits that refused the request.
    fn refused_by(&self) -> impl Iterator<Item = String> {
        self.named(|status| status.refused)
    }

    /// The limits that would have refused it, if they were not on trial.
    fn shadowed_by(&self) -> impl Iterator<Item = String> {
        self.named(|status| status.shadowed)
    }

    fn named(&self, is_meant: fn(&LimitStatus) -> bool) -> impl Iterator<Item = String> {
        let statuses = self.decision.iter().flat_map(Decision::statuses);
        statuses
            .filter(move |status| is_meant(status))
            .map(|status| status.limit.name().to_string())
    }

    fn retry_after(&self) -> Option<&str> {
        self.headers.get("retry-after").and_then(|value| value.to_str().ok())
    }

    /// In words: `refused by login with 429, retry after 60 s`.
    pub(super) fn in_words(&self) -> String {
        let mut words = self.outcome.in_words().to_owned();
        let by: Vec<_> = self.refused_by().collect();
        if !by.is_empty() {
            words += &format!(" by {}", by.join(" and "));
        }
        words += &format!(" with {}", self.status);
        if let Some(seconds) = self.retry_after() {
            words += &format!(", retry after {seconds} s");
        }
        if !self.wait.is_zero() {
            words += &format!(", after a wait of {}", in_words(self.wait));
        }
        if let Some(lacks) = &self.lacks {
            words += &format!(": {lacks}");
        }
        words
    }
}

impl Expectation {
    pub(super) fn new(expect: &Expect, path: &str, reading: &mut Reading<'_>) -> Self {
        let place = reading.place(path);
        let table = match expect {
            Expect::Outcome(outcome) => {
                ExpectTable { outcome: Some(*outcome), ..ExpectTable::default() }
            }
            Expect::Table(table) => (**table).clone(),
        };
        if table.is_empty() {
            reading.report(path, "nothing is expected, so this cannot fail");
        }
        let by = table.by.as_ref().map(|names| {
            names.as_slice().iter().for_each(|name| reading.limit(name, &format!("{path}.by")));
            let mut names = names.as_slice().to_vec();
            names.sort();
            names
        });
        for (field, limits) in
            [("refused_by", &table.refused_by), ("shadowed_by", &table.shadowed_by)]
        {
            limits.keys().for_each(|name| reading.limit(name, &format!("{path}.{field}")));
        }
        let wait = reading.time(table.wait.as_deref(), &format!("{path}.wait"));
        let wait_at_most =
            reading.time(table.wait_at_most.as_deref(), &format!("{path}.wait_at_most"));
        Self { place, table, by, wait, wait_at_most }
    }

    /// What is not as expected about a request, in words: what was expected.
    pub(super) fn differs(&self, found: &Observation) -> Option<String> {
        let table = &self.table;
        if let Some(outcome) = table.outcome.filter(|outcome| *outcome != found.outcome) {
            return Some(outcome.in_words().to_owned());
        }
        if let Some(by) = &self.by {
            let mut found: Vec<_> = found.refused_by().collect();
            found.sort();
            if *by != found {
                return Some(match by.as_slice() {
                    [] => "not to be refused by a limit".to_owned(),
                    by => format!("refused by {}", by.join(" and ")),
                });
            }
        }
        if let Some(status) = table.status.filter(|status| *status != found.status) {
            return Some(format!("the status {status}"));
        }
        if let Some(seconds) = table.retry_after
            && found.retry_after() != Some(&*seconds.to_string())
        {
            return Some(format!("retry after {seconds} s"));
        }
        let is_served = matches!(found.outcome, Outcome::Served | Outcome::Degraded);
        if let Some(wait) = self.wait.filter(|wait| is_served && *wait != found.wait) {
            return Some(format!("a wait of {}", in_words(wait)));
        }
        if let Some(most) = self.wait_at_most.filter(|most| is_served && found.wait > *most) {
            return Some(format!("a wait of at most {}", in_words(most)));
        }
        table.fields.iter().find_map(|(name, value)| {
            let mut lines = found.headers.get_all(name.as_str()).iter();
            let is_there = lines.any(|line| line.as_bytes() == value.as_bytes());
            let lines = found.headers.get_all(name.as_str()).iter();
            let lines: Vec<_> =
                lines.map(|line| String::from_utf8_lossy(line.as_bytes())).collect();
            let instead = if lines.is_empty() { "none".to_owned() } else { lines.join(", ") };
            (!is_there).then(|| format!("the field `{name}: {value}`, and not {instead}"))
        })
    }

    /// What is not as expected about all requests together.
    pub(super) fn sums(&self, found: &Tally) -> Vec<String> {
        let table = &self.table;
        let outcomes = [
            (Outcome::Served, table.served),
            (Outcome::Degraded, table.degraded),
            (Outcome::Refused, table.refused),
            (Outcome::Redirected, table.redirected),
            (Outcome::Incomplete, table.incomplete),
            (Outcome::Failed, table.failed),
        ];
        let outcomes = outcomes.into_iter().filter_map(|(outcome, expected)| {
            let counted = found.outcomes.get(&outcome).copied().unwrap_or_default();
            let expected = expected.filter(|expected| *expected != counted)?;
            Some(format!("{counted} {}, expected {expected}", outcome.in_words()))
        });
        let named = |expected: &BTreeMap<String, u64>, found: &BTreeMap<String, u64>, what| {
            let of = |name: &String| found.get(name).copied().unwrap_or_default();
            let wrong = expected.iter().filter(|(name, expected)| of(name) != **expected);
            wrong
                .map(|(name, expected)| format!("{} {what} {name}, expected {expected}", of(name)))
                .collect::<Vec<_>>()
        };
        outcomes
            .chain(named(&table.refused_by, &found.refused_by, "refused by"))
            .chain(named(&table.shadowed_by, &found.shadowed_by, "refused on trial by"))
            .collect()
    }

    /// Whether it holds of requests that no limit charges.
    pub(super) fn is_plainly_served(&self) -> bool {
        let Self { table, .. } = self;
        let names_none = |counts: &BTreeMap<String, u64>| counts.values().all(|count| *count == 0);
        table.outcome == Some(Outcome::Served)
            || table.served.is_some_and(|served| served > 0)
            || table.refused == Some(0)
            || !table.refused_by.is_empty() && names_none(&table.refused_by)
    }

    /// Whether a wait is expected, which only those that are served have.
    pub(super) fn is_of_waits(&self) -> bool {
        self.wait.or(self.wait_at_most).is_some()
    }
}

/// What became of several requests.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) requests: u64,
    /// How many of them a limit was charged for, or refused.
    pub(super) limited: u64,
    outcomes: BTreeMap<Outcome, u64>,
    refused_by: BTreeMap<String, u64>,
    shadowed_by: BTreeMap<String, u64>,
}

impl Tally {
    pub(super) fn has_served(&self) -> bool {
        [Outcome::Served, Outcome::Degraded].iter().any(|it| self.outcomes.contains_key(it))
    }

    pub(super) fn add(&mut self, found: &Observation) {
        self.requests += 1;
        let is_limited = found.decision.as_ref().is_none_or(|it| it.statuses().next().is_some());
        self.limited += u64::from(is_limited);
        *self.outcomes.entry(found.outcome).or_default() += 1;
        found.refused_by().for_each(|name| *self.refused_by.entry(name).or_default() += 1);
        found.shadowed_by().for_each(|name| *self.shadowed_by.entry(name).or_default() += 1);
    }

    pub(super) fn add_all(&mut self, other: &Self) {
        fn sum<K: Clone + Ord>(into: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
            from.iter().for_each(|(key, count)| *into.entry(key.clone()).or_default() += count);
        }
        self.requests += other.requests;
        self.limited += other.limited;
        sum(&mut self.outcomes, &other.outcomes);
        sum(&mut self.refused_by, &other.refused_by);
        sum(&mut self.shadowed_by, &other.shadowed_by);
    }
}

impl Outcome {
    pub(super) const fn in_words(self) -> &'static str {
        match self {
            Self::Served => "served",
            Self::Degraded => "degraded",
            Self::Refused => "refused",
            Self::Redirected => "redirected",
            Self::Incomplete => "incomplete",
            Self::Failed => "failed",
        }
    }
}

impl ExpectTable {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
