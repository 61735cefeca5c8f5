//! What a replay has found. It serializes as programs read it, and `text` writes it for people.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use sluicegate_core::key::KeyBuf;
use sluicegate_core::observe::ShowKeys;

use super::counts::{Counts, UNCHARGED};
use super::judge::Judge;
use super::policy::Policy;
use crate::virtual_time::{MOST_UNDER_WAY, in_words};

/// How many clients and paths are shown.
const SHOWN: usize = 5;

/// What the rules of a file would have done.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) rules: String,
    pub(super) requests: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last: Option<String>,
    /// How many requests had each outcome.
    pub(super) outcomes: BTreeMap<&'static str, u64>,
    /// The share of requests that are refused or sent elsewhere, from 0 to 1.
    pub(super) refused_share: f64,
    pub(super) policies: Vec<PolicyReport>,
    /// Rules that look for what the log does not have.
    pub(super) unjudged: Vec<UnjudgedReport>,
    pub(super) notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) against: Option<Changes>,
}

#[derive(Debug, Serialize)]
pub(super) struct PolicyReport {
    pub(super) name: String,
    pub(super) limit: String,
    pub(super) rule: String,
    pub(super) requests: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) clients: Option<u64>,
    pub(super) refused: u64,
    pub(super) refused_share: f64,
    pub(super) first_refusals: u64,
    pub(super) repeated_refusals: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) refused_by_ban: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) refused_on_trial: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bounds: Option<Bounds>,
    pub(super) clients_refused: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) more_clients_refused: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) clients_refused_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) worst_minute: Option<WorstMinute>,
    /// Refusals over time.
    pub(super) over_time: OverTime,
    pub(super) paths: Vec<(String, u64)>,
    pub(super) who: Vec<(String, u64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) would_wait: Option<Times>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) waited: Option<Times>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) places_in_use: Option<(u64, u64)>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) otherwise_refused: BTreeMap<&'static str, u64>,
}

/// The least and the most refusals that the times of the log allow.
#[derive(Debug, Serialize)]
pub(super) struct Bounds {
    pub(super) at_least: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) at_most: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(super) struct WorstMinute {
    pub(super) begins: String,
    pub(super) refused: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct OverTime {
    pub(super) seconds: f64,
    pub(super) refused: Vec<u64>,
    #[serde(skip)]
    pub(super) marks: String,
    #[serde(skip)]
    pub(super) width: String,
}

/// Durations in seconds, each up to an eighth more.
#[derive(Debug, Serialize)]
pub(super) struct Times {
    pub(super) count: u64,
    pub(super) half: f64,
    pub(super) nine_of_ten: f64,
    pub(super) longest: f64,
    #[serde(skip)]
    pub(super) words: String,
}

#[derive(Debug, Serialize)]
pub(super) struct UnjudgedReport {
    pub(super) rule: String,
    pub(super) lacks: Vec<String>,
    pub(super) requests: u64,
    pub(super) of: u64,
}

/// What changes from the rules of another file.
#[derive(Debug, Serialize)]
pub(super) struct Changes {
    pub(super) against: String,
    pub(super) refused_before: u64,
    pub(super) newly_refused: u64,
    pub(super) no_longer_refused: u64,
    pub(super) who_is_newly_refused: Vec<(String, u64)>,
}

/// What was counted of changes.
#[derive(Default)]
pub(super) struct Differences {
    pub(super) refused_before: u64,
    pub(super) newly: u64,
    pub(super) no_longer: u64,
    pub(super) who: HashMap<u64, (KeyBuf, u64)>,
}

impl Report {
    pub(super) fn new(rules: &str, judge: &Judge, keys: &ShowKeys) -> Self {
        let Counts { requests, policies, .. } = &judge.counts;
        let outcomes = judge.counts.outcomes();
        let of = |name: &str| outcomes.get(name).copied().unwrap_or_default();
        let unjudged = judge.unjudged().map(|(rule, unjudged, of)| UnjudgedReport {
            rule: rule.to_owned(),
            lacks: unjudged.lacks.clone(),
            requests: unjudged.requests,
            of,
        });
        let mut unjudged: Vec<_> = unjudged.collect();
        unjudged.sort_by(|one, other| one.rule.cmp(&other.rule));
        let last = judge.counts.last;
        let is_any = *requests > 0;
        Self {
            rules: rules.to_owned(),
            requests: *requests,
            first: is_any.then(|| time(judge.counts.first)),
            last: is_any.then(|| time(last)),
            refused_share: share(of("refused") + of("redirected"), *requests),
            outcomes,
            policies: policies.iter().map(|policy| PolicyReport::new(policy, last, keys)).collect(),
            unjudged,
            notes: notes(judge),
            against: None,
        }
    }

    /// Whether more than a share of the requests is refused, for want of a key too, or beyond what a rule could judge.
    pub(super) fn is_above(&self, most: f64) -> bool {
        let unjudged = self.unjudged.iter().map(|it| it.requests);
        let turned_away = ["refused", "redirected"].iter().chain(&UNCHARGED);
        let turned_away = turned_away.filter_map(|name| self.outcomes.get(name)).sum();
        unjudged.chain([turned_away]).any(|count| share(count, self.requests) > most)
    }

    /// Adds what changes from the rules in the file `against`.
    pub(super) fn compare(&mut self, against: &str, differences: &Differences, keys: &ShowKeys) {
        let who = differences.who.values().map(|(key, count)| (show(keys, key), *count));
        self.against = Some(Changes {
            against: against.to_owned(),
            refused_before: differences.refused_before,
            newly_refused: differences.newly,
            no_longer_refused: differences.no_longer,
            who_is_newly_refused: most(who),
        });
    }
}

/// What has to be known besides.
fn notes(judge: &Judge) -> Vec<String> {
    let counts = &judge.counts;
    let mut notes = Vec::new();
    if judge.rules().has_throttle() {
        notes.push("the [throttle] of the file is not asked".to_owned());
    }
    let span = Duration::from_micros(counts.last - counts.first);
    for Policy { name, period, .. } in counts.policies.iter().filter(|it| it.period > span) {
        notes.push(format!(
            "{name} counts over {}, and the log has {} only: it refuses less than it will",
            rounded(*period),
            rounded(span)
        ));
    }
    for policy in &counts.policies {
        let Some(what) = policy.alternatives.as_ref().and_then(|it| it.too_many()) else {
            continue;
        };
        notes.push(format!(
            "what other algorithms would have refused is not known for {}: {what}",
            policy.name
        ));
    }
    for (what, count) in &counts.responses_lack {
        notes.push(format!(
            "{count} responses were settled without {what}, which the log does not have"
        ));
    }
    let mut say = |count: u64, what: &str| match count {
        0 => {}
        count => notes.push(format!("{count} {what}")),
    };
    say(
        counts.without_duration,
        "requests held their place for no time, because the log does not say how long they took",
    );
    say(
        counts.refused_live,
        "requests of the log were answered with 429: limits were in force, and clients acted by them",
    );
    say(
        judge.rules().loads(),
        "times a case asked for the load of the processors, which count as idle here",
    );
    let what = format!("responses ended early, because {MOST_UNDER_WAY} were under way");
    say(counts.too_many, &what);
    say(
        judge.uncounted(),
        "decisions were made without a count of their own, because there was no room for the keys: say --keys",
    );
    notes
}

impl PolicyReport {
    fn new(policy: &Policy, last: u64, keys: &ShowKeys) -> Self {
        let Policy { requests, refused, repeated, touched, .. } = policy;
        let compared = policy.alternatives.as_ref().and_then(|it| it.compared());
        let bounds = compared.as_ref().and_then(|compared| compared.bounds);
        let clients = policy.clients();
        let clients_refused = touched.len() as u64;
        let series = policy.series.clone().until(last);
        let (worst, in_worst) = policy.peak.highest();
        let who = touched.values().map(|touched| (touched.key, touched.refused));
        let who = most_by(who).into_iter().map(|(key, count)| (show(keys, &key), count));
        Self {
            name: policy.name.clone(),
            limit: policy.words.clone(),
            rule: policy.rule.clone(),
            requests: *requests,
            clients,
            refused: *refused,
            refused_share: share(*refused, *requests),
            first_refusals: refused - repeated,
            repeated_refusals: *repeated,
            refused_by_ban: policy.banned,
            refused_on_trial: policy.shadowed,
            bounds: bounds.map(|(at_least, at_most)| Bounds { at_least, at_most }),
            clients_refused,
            more_clients_refused: policy.is_touched_full(),
            clients_refused_share: clients.map(|clients| share(clients_refused, clients)),
            worst_minute: (in_worst > 0).then(|| WorstMinute {
                begins: time(worst.saturating_mul(60_000_000)),
                refused: in_worst,
            }),
            over_time: OverTime {
                seconds: series.width().as_secs_f64(),
                marks: series.sparkline(),
                width: in_words(series.width()),
                refused: series.counts().to_vec(),
            },
            paths: most(policy.paths.iter().map(|(path, count)| (path.clone(), *count))),
            who: who.collect(),
            would_wait: Times::new(&policy.retries),
            waited: Times::new(&policy.waits),
            places_in_use: policy.is_held.then_some((policy.most_in_use, policy.capacity)),
            otherwise_refused: compared
                .map(|compared| compared.algorithms.into_iter().collect())
                .unwrap_or_default(),
        }
    }
}

impl Times {
    fn new(times: &super::durations::Durations) -> Option<Self> {
        let longest = times.longest()?;
        let (half, nine) = (times.quantile(0.5), times.quantile(0.9));
        let words = format!(
            "half {} or less, nine of ten {}, the longest {}",
            rounded(half),
            rounded(nine),
            rounded(longest)
        );
        let (half, nine_of_ten) = (half.as_secs_f64(), nine.as_secs_f64());
        Some(Self {
            count: times.count(),
            half,
            nine_of_ten,
            longest: longest.as_secs_f64(),
            words,
        })
    }
}

/// A duration to three digits or so.
fn rounded(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        seconds if seconds < 100.0 => format!("{seconds:.1} s"),
        seconds if seconds < 6_000.0 => format!("{:.0} min", seconds / 60.0),
        seconds if seconds < 360_000.0 => format!("{:.1} h", seconds / 3_600.0),
        seconds => format!("{:.1} days", seconds / 86_400.0),
    }
}

/// The largest counts first.
fn most<T: Ord + Clone>(counts: impl Iterator<Item = (T, u64)>) -> Vec<(T, u64)> {
    let mut all: Vec<_> = counts.collect();
    all.sort_by(|(one, first), (other, second)| second.cmp(first).then_with(|| one.cmp(other)));
    all.truncate(SHOWN);
    all
}

fn most_by<T>(counts: impl Iterator<Item = (T, u64)>) -> Vec<(T, u64)> {
    let mut all: Vec<_> = counts.collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    all.truncate(SHOWN);
    all
}

fn show(keys: &ShowKeys, key: &KeyBuf) -> String {
    /// A digest of this length tells the clients of a log apart.
    const DIGITS: usize = 12;
    let shown = keys.show(key).unwrap_or_default();
    match keys {
        ShowKeys::Digest(_) => shown.chars().take(1 + DIGITS).collect(),
        _ => shown,
    }
}

pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A time in microseconds since the epoch, to the second.
fn time(micros: u64) -> String {
    let seconds = i64::try_from(micros / 1_000_000).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).map(|time| time.to_string()).unwrap_or_default()
}
