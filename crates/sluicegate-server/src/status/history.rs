//! The counters of the last minute, from which rates are made. Time is passed in.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::document::{PolicyStatus, Rate};
use super::latency::{BUCKETS, LatencyStatus, REQUESTS};
use super::numbers::{ByVerdict, Numbers, SERVED, VERDICTS};

/// One reading a second for a minute, and one before them.
const READINGS: usize = 61;

/// Rates are over ten seconds.
const RECENT: usize = 10;

/// Policies have a bound in the metrics, which is 64 and one for all others. This one is larger so that it never
/// matters.
const MOST_POLICIES: usize = 100;

/// How many minutes are kept, beside the last one.
const MINUTES: usize = 180;

/// Requests by what became of them.
type Requests = [u64; REQUESTS.len()];

/// The last readings of the counters.
#[derive(Debug, Default)]
pub(super) struct History {
    names: Vec<String>,
    readings: VecDeque<Reading>,
    errors: BTreeMap<String, u64>,
    /// The requests of each of the last minutes, the latest last.
    minutes: VecDeque<Requests>,
    /// When the minute began that is not over, and the counts then.
    minute: Option<(Duration, Requests)>,
}

#[derive(Debug)]
struct Reading {
    at: Duration,
    /// In the order of the names. Policies that were not there yet are missing.
    decisions: Vec<ByVerdict>,
    requests: Requests,
    latency: Box<[u64; BUCKETS]>,
}

impl History {
    /// Adds a reading. `at` is the time since the server started.
    pub(super) fn add(
        &mut self,
        at: Duration,
        numbers: Numbers,
        requests: Requests,
        latency: [u64; BUCKETS],
    ) {
        self.add_minute(at, requests);
        for name in numbers.policies.keys() {
            if !self.names.contains(name) && self.names.len() < MOST_POLICIES {
                self.names.push(name.clone());
            }
        }
        let decisions = self.names.iter();
        let decisions =
            decisions.map(|name| numbers.policies.get(name).copied().unwrap_or_default()).collect();
        self.errors = numbers.store_errors;
        if self.readings.len() == READINGS {
            self.readings.pop_front();
        }
        self.readings.push_back(Reading { at, decisions, requests, latency: Box::new(latency) });
    }

    fn add_minute(&mut self, at: Duration, requests: Requests) {
        let (began, before) = *self.minute.get_or_insert((at, requests));
        if at.saturating_sub(began) < Duration::from_secs(60) {
            return;
        }
        if self.minutes.len() == MINUTES {
            self.minutes.pop_front();
        }
        self.minutes
            .push_back(std::array::from_fn(|which| requests[which].saturating_sub(before[which])));
        self.minute = Some((at, requests));
    }

    /// Requests by what became of them, each once.
    pub(super) fn requests(&self) -> BTreeMap<String, Rate> {
        by_outcome(|at| self.rate(|reading| reading.requests[at]))
    }

    /// Requests of each of the last seconds, by what became of them.
    pub(super) fn seconds(&self) -> BTreeMap<String, Vec<u64>> {
        by_outcome(|at| {
            let changes = self.readings.iter().zip(self.readings.iter().skip(1));
            let change = |(before, after): (&Reading, &Reading)| {
                after.requests[at].saturating_sub(before.requests[at])
            };
            Some(changes.map(change).collect())
        })
    }

    /// Requests of each of the last minutes, by what became of them.
    pub(super) fn minutes(&self) -> BTreeMap<String, Vec<u64>> {
        by_outcome(|at| Some(self.minutes.iter().map(|minute| minute[at]).collect()))
    }

    /// The state of each policy.
    pub(super) fn policies(&self) -> Vec<PolicyStatus> {
        self.names.iter().enumerate().map(|(at, name)| self.policy(at, name)).collect()
    }

    /// How long decisions took in the last minute.
    pub(super) fn latency(&self) -> LatencyStatus {
        match (self.readings.front(), self.readings.back()) {
            (Some(first), Some(last)) => LatencyStatus::between(&first.latency, &last.latency),
            _ => LatencyStatus::default(),
        }
    }

    /// Errors of the store by kind, since the server started.
    pub(super) fn store_errors(&self) -> BTreeMap<String, u64> {
        self.errors.clone()
    }

    fn policy(&self, at: usize, name: &str) -> PolicyStatus {
        let of = |reading: &Reading| reading.decisions.get(at).copied().unwrap_or_default();
        let sum = |counts: &[u64]| counts.iter().sum::<u64>();
        let changes = self.readings.iter().zip(self.readings.iter().skip(1));
        let changes = changes.map(|(before, after)| (of(before), of(after)));
        let (mut served, mut refused) = (Vec::new(), Vec::new());
        for (before, after) in changes {
            let ahead = sum(&after[..SERVED]).saturating_sub(sum(&before[..SERVED]));
            let back = sum(&after[SERVED..]).saturating_sub(sum(&before[SERVED..]));
            served.push(ahead);
            refused.push(back);
        }
        let rates = VERDICTS.iter().enumerate().filter_map(|(verdict, called)| {
            let rate = self.rate(|reading| of(reading)[verdict])?;
            (rate.total > 0).then(|| ((*called).to_owned(), rate))
        });
        PolicyStatus {
            policy: name.to_owned(),
            verdicts: rates.collect(),
            served,
            refused,
            ..PolicyStatus::default()
        }
    }

    fn rate(&self, count: impl Fn(&Reading) -> u64) -> Option<Rate> {
        let last = self.readings.back()?;
        let before = self.readings.get(self.readings.len().saturating_sub(RECENT + 1))?;
        let (total, took) = (count(last), (last.at.saturating_sub(before.at)).as_secs_f64());
        let came = total.saturating_sub(count(before)) as f64;
        Some(Rate { total, per_second: if took > 0.0 { came / took } else { 0.0 } })
    }
}

/// What there is of the requests that became each of these, by its place.
fn by_outcome<T>(of: impl Fn(usize) -> Option<T>) -> BTreeMap<String, T> {
    let names = REQUESTS.iter().enumerate();
    names.filter_map(|(at, name)| Some(((*name).to_owned(), of(at)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(policy: &str, admitted: u64, refused: u64) -> Numbers {
        let mut numbers = Numbers::default();
        numbers.policies.insert(policy.to_owned(), [admitted, 0, 0, 0, 0, 0, refused, 0]);
        numbers
    }

    fn add(history: &mut History, second: u64, numbers: Numbers) {
        history.add(Duration::from_secs(second), numbers, [second, 0, 2 * second], [0; BUCKETS]);
    }

    #[test]
    fn rates_are_over_the_last_ten_seconds_and_lines_over_the_last_minute() {
        let mut history = History::default();
        for second in 0_u64..=200 {
            // 5 a second, and 50 a second in the last ten seconds.
            let admitted = 5 * second + 45 * second.saturating_sub(190);
            add(&mut history, second, numbers("api", admitted, second));
        }
        let api = &history.policies()[0];
        assert_eq!(api.verdicts["admitted"], Rate { total: 1450, per_second: 50.0 });
        assert_eq!(api.verdicts["refused"], Rate { total: 200, per_second: 1.0 });
        assert_eq!(api.verdicts.len(), 2);
        assert_eq!((api.served.len(), api.refused.len()), (60, 60));
        assert_eq!((api.served[0], api.served[59]), (5, 50));
        assert_eq!(history.requests()["served"], Rate { total: 200, per_second: 1.0 });
        assert_eq!(history.requests()["failed"], Rate { total: 400, per_second: 2.0 });
        assert_eq!(history.seconds()["failed"], [2; 60]);
        assert_eq!(history.minutes()["served"], [60, 60, 60]);
        assert_eq!(history.minutes()["failed"], [120, 120, 120]);
    }

    #[test]
    fn three_hours_are_kept_by_the_minute() {
        let mut history = History::default();
        for second in 0..=60 * 200 {
            add(&mut history, second, Numbers::default());
        }
        assert_eq!(history.minutes()["served"], [60; MINUTES]);
    }

    #[test]
    fn a_policy_that_is_new_starts_from_zero_and_a_late_reading_is_no_higher_rate() {
        let mut history = History::default();
        add(&mut history, 0, Numbers::default());
        add(&mut history, 4, numbers("new", 8, 0));
        let new = &history.policies()[0];
        assert_eq!(new.verdicts["admitted"], Rate { total: 8, per_second: 2.0 });
        assert_eq!(new.served, [8]);
    }

    #[test]
    fn the_number_of_policies_is_bounded() {
        let mut history = History::default();
        for number in 0..1_000 {
            add(&mut history, number, numbers(&format!("policy {number}"), 1, 0));
        }
        assert_eq!(history.policies().len(), MOST_POLICIES);
    }
}
