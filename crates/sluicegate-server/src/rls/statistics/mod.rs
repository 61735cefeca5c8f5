//! Counts under the names of Envoy's rate limit service, so that dashboards and alarms that were made for it keep working.
//!
//! That service sends `ratelimit.service.rate_limit.DOMAIN.KEY_VALUE.STAT` to a server of StatsD, and its mapping for Prometheus
//! makes labels of the parts. Both are written from the same counts here. They are not in the recorder of the process, which
//! the dashboard reads each second: there may be tens of thousands.

mod plain;
mod statsd;

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use metrics::{Counter, Histogram, counter, describe_counter, describe_histogram, histogram};
use sluicegate_config::envoy::service::{Answer, Plan, Request, Status};

use self::plain::plain;
pub use self::statsd::StatsD;
use super::counters::Failure;

/// The most names of limits. With `detailed_metric`, clients choose a part of them.
const NAMES: usize = 10_000;

/// The most domains that no file has. They are named by the configurations of Envoys.
const UNKNOWN: usize = 100;

/// The longest name in bytes.
const LONGEST: usize = 512;

const LEFT_OUT: &str = "sluicegate_statistics_left_out_total";
const SECONDS: &str = "ratelimit_service_response_time_seconds";

/// Where the statistics of limits are in StatsD.
const LIMITS: &str = "ratelimit.service.rate_limit";

/// The last part of the name for a domain that no file has.
const NO_DOMAIN: &str = "domain_not_found";

/// Where times of calls are in StatsD.
const TIMES: &str = "ratelimit_server.ShouldRateLimit.response_time";

/// The counts of a service. Clones share them.
#[derive(Clone)]
pub(crate) struct Statistics(Arc<Inner>);

struct Inner {
    /// From which share of a limit on a request is near it.
    near: f32,
    limits: RwLock<HashMap<Box<str>, Arc<Counts>>>,
    /// How many descriptors of each domain came that no file has.
    unknown: Mutex<BTreeMap<String, Arc<Count>>>,
    others: [Count; Other::ALL.len()],
    left_out: Counter,
    is_told: AtomicBool,
    seconds: Histogram,
    /// How many calls took how many milliseconds since they were last taken. Only while somebody takes them.
    times: Mutex<Option<BTreeMap<u64, u64>>>,
}

impl Statistics {
    /// Registers what is in the recorder. A recorder that is installed later does not see it.
    pub(crate) fn new(near: f32) -> Self {
        let what = "Descriptors that are not in the statistics of Envoy's service, because their names are too long or too many.";
        describe_counter!(LEFT_OUT, what);
        describe_histogram!(SECONDS, "How long calls took.");
        Self(Arc::new(Inner {
            near,
            limits: RwLock::default(),
            unknown: Mutex::default(),
            others: Default::default(),
            left_out: counter!(LEFT_OUT),
            is_told: AtomicBool::new(false),
            seconds: histogram!(SECONDS, "grpc_method" => "ShouldRateLimit"),
            times: Mutex::default(),
        }))
    }

    /// Counts the descriptors of a request.
    pub(super) fn descriptors(&self, plan: &Plan<'_>, request: &Request<'_>, answer: &Answer) {
        if answer.would_be_over && !answer.is_over {
            self.count(Other::Shadowed);
        }
        if !plan.has_domain() {
            return self.no_domain(request);
        }
        for (at, status) in answer.statuses.iter().enumerate() {
            let Some(name) = plan.statistic(request, at) else { continue };
            match self.counts(&name) {
                Some(counts) => counts.add(&parts(status, self.0.near)),
                None => self.0.left_out.increment(1),
            }
        }
    }

    fn no_domain(&self, request: &Request<'_>) {
        match self.count_of_unknown(request.domain) {
            Some(count) => count.add(request.descriptors.len() as u64),
            None => self.0.left_out.increment(1),
        }
    }

    /// The count of a domain that no file has. `None` if its name is too long, or one too many.
    fn count_of_unknown(&self, domain: &str) -> Option<Arc<Count>> {
        if domain.len() > LONGEST {
            return None;
        }
        let domain = plain(domain);
        let mut unknown = self.unknown();
        if unknown.len() >= UNKNOWN && !unknown.contains_key(&domain) {
            return None;
        }
        Some(Arc::clone(unknown.entry(domain).or_default()))
    }

    fn unknown(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Count>>> {
        self.0.unknown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call that failed.
    pub(super) fn failed(&self, failure: &Failure) {
        self.count(match failure {
            Failure::Bad(_) => Other::Bad,
            Failure::Undecided(_) => Other::StoreError,
        });
    }

    /// Counts a call of gRPC.
    pub(super) fn called(&self, took: Duration) {
        self.count(Other::Requests);
        self.0.seconds.record(took.as_secs_f64());
        if let Some(times) = self.times().as_mut() {
            *times.entry(rounded(took)).or_default() += 1;
        }
    }

    /// Counts whether policies came into force.
    pub(crate) fn loaded(&self, is_in_force: bool) {
        self.count(if is_in_force { Other::Loaded } else { Other::NotLoaded });
    }

    fn count(&self, other: Other) {
        self.0.others[other as usize].add(1);
    }

    /// The counts of this name. `None` if it is too long, or one too many.
    pub(super) fn counts(&self, name: &str) -> Option<Arc<Counts>> {
        let known = self.0.limits.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if known.is_some() || name.len() > LONGEST {
            return known;
        }
        let mut limits = self.0.limits.write().unwrap_or_else(PoisonError::into_inner);
        if limits.len() >= NAMES && !limits.contains_key(name) {
            if !self.0.is_told.swap(true, Ordering::Relaxed) {
                tracing::warn!("statistics have {NAMES} names: further ones are left out");
            }
            return None;
        }
        let counts = limits.entry(name.into()).or_insert_with(|| Arc::new(Counts::new(name)));
        Some(Arc::clone(counts))
    }

    /// All counts of limits at this moment.
    fn limits(&self) -> Vec<Arc<Counts>> {
        let limits = self.0.limits.read().unwrap_or_else(PoisonError::into_inner);
        limits.values().cloned().collect()
    }

    fn times(&self) -> MutexGuard<'_, Option<BTreeMap<u64, u64>>> {
        self.0.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All counts under their names in StatsD, a line for each that is not 0.
    pub(crate) fn text(&self) -> String {
        let mut lines = Vec::new();
        for limit in self.limits() {
            for ((part, _), count) in PARTS.iter().zip(&limit.counts) {
                lines.push((format!("{LIMITS}.{}.{part}", limit.name), count.total()));
            }
        }
        for (other, count) in Other::ALL.into_iter().zip(&self.0.others) {
            lines.push((other.texts()[3].to_owned(), count.total()));
        }
        for (domain, count) in &*self.unknown() {
            lines.push((format!("{LIMITS}.{domain}.{NO_DOMAIN}"), count.total()));
        }
        lines.retain(|(_, total)| *total > 0);
        lines.sort();
        lines.into_iter().map(|(name, total)| format!("{name}: {total}\n")).collect()
    }

    /// All counts as Prometheus reads them.
    pub(crate) fn prometheus(&self) -> String {
        let mut found: BTreeMap<(String, String), (&str, u64)> = BTreeMap::new();
        let mut add = |metric, meaning, labels, count: &Count| {
            // Names with the same labels are one.
            found.entry((metric, labels)).or_insert((meaning, 0)).1 += count.total();
        };
        for counts in self.limits() {
            for ((part, meaning), count) in PARTS.iter().zip(&counts.counts) {
                let metric = format!("ratelimit_service_rate_limit_{part}");
                add(metric, meaning, counts.labels.clone(), count);
            }
        }
        for (other, count) in Other::ALL.into_iter().zip(&self.0.others) {
            let [metric, labels, meaning, _] = other.texts();
            add(metric.to_owned(), meaning, labels.to_owned(), count);
        }
        for (domain, count) in &*self.unknown() {
            // The mapping of the service has no rule for this name, so the domain is a part of it.
            let domain = domain.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
            let metric = format!("ratelimit_service_rate_limit_{domain}_{NO_DOMAIN}");
            add(metric, "Descriptors of a domain that no file has.", String::new(), count);
        }
        let (mut text, mut last) = (String::new(), String::new());
        for ((metric, labels), (meaning, total)) in found {
            if metric != last {
                // A text never fails to be written to.
                let _ = writeln!(text, "# HELP {metric} {meaning}\n# TYPE {metric} counter");
            }
            let _ = writeln!(text, "{metric}{labels} {total}");
            last = metric;
        }
        text
    }
}

/// The longest time in whole milliseconds that is told exactly, and the step and the end of longer ones: so there are few.
const EXACT: u64 = 1_000;
const STEP: u64 = 100;
const SLOWEST: u64 = 60_000;

fn rounded(took: Duration) -> u64 {
    let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).min(SLOWEST);
    if millis < EXACT { millis } else { millis / STEP * STEP }
}

impl fmt::Debug for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Statistics").field("near", &self.0.near).finish_non_exhaustive()
    }
}

/// One number that grows.
#[derive(Debug, Default)]
struct Count {
    total: AtomicU64,
    /// How much of it StatsD has.
    sent: AtomicU64,
}

impl Count {
    fn add(&self, amount: u64) {
        if amount > 0 {
            self.total.fetch_add(amount, Ordering::Relaxed);
        }
    }

    fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }
}

/// What is counted besides limits.
#[derive(Debug, Clone, Copy)]
enum Other {
    StoreError,
    Bad,
    Requests,
    Loaded,
    NotLoaded,
    Shadowed,
}

impl Other {
    const ALL: [Self; 6] = [
        Self::StoreError,
        Self::Bad,
        Self::Requests,
        Self::Loaded,
        Self::NotLoaded,
        Self::Shadowed,
    ];

    /// The name and the labels at Prometheus, the meaning, and the name in StatsD.
    const fn texts(self) -> [&'static str; 4] {
        const ERRORS: &str = "ratelimit_service_should_rate_limit_error";
        const FAILED: &str = "Calls that were answered with an error.";
        match self {
            Self::StoreError => [
                ERRORS,
                "{err_type=\"redis_error\"}",
                FAILED,
                "ratelimit.service.call.should_rate_limit.redis_error",
            ],
            Self::Bad => [
                ERRORS,
                "{err_type=\"service_error\"}",
                FAILED,
                "ratelimit.service.call.should_rate_limit.service_error",
            ],
            Self::Requests => [
                "ratelimit_service_total_requests",
                "{grpc_method=\"ShouldRateLimit\"}",
                "Calls.",
                "ratelimit_server.ShouldRateLimit.total_requests",
            ],
            Self::Loaded => [
                "ratelimit_service_config_load_success",
                "",
                "How often policies came into force.",
                "ratelimit.service.config_load_success",
            ],
            Self::NotLoaded => [
                "ratelimit_service_config_load_error",
                "",
                "How often policies were not valid.",
                "ratelimit.service.config_load_error",
            ],
            Self::Shadowed => [
                "ratelimit_service_global_shadow_mode",
                "",
                "Calls over a limit that were answered OK because the whole service is a shadow.",
                "ratelimit.service.global_shadow_mode",
            ],
        }
    }
}

/// What is counted for each limit: the last part of the name in both, and the meaning.
const PARTS: [(&str, &str); 5] = [
    ("total_hits", "Hits."),
    ("over_limit", "Hits over the limit."),
    ("near_limit", "Hits within the limit and near it."),
    ("within_limit", "Hits of requests within the limit."),
    ("shadow_mode", "Hits over a limit that is a shadow."),
];

/// An amount for each of [`PARTS`].
pub(super) type Parts = [u64; PARTS.len()];

/// The counts of a limit.
pub(super) struct Counts {
    /// As StatsD has it.
    name: String,
    /// As Prometheus has them.
    labels: String,
    counts: [Count; PARTS.len()],
}

impl Counts {
    fn new(name: &str) -> Self {
        let name = plain(name);
        // As the mapping of the service has it, further parts of the name are left out. A dot in a domain or a value also
        // divides.
        let labels =
            ["domain", "key1", "key2"].into_iter().zip(name.split('.')).map(|(key, part)| {
                let part = part.replace('\\', "\\\\").replace('"', "\\\"");
                format!("{key}=\"{part}\"")
            });
        let labels = format!("{{{}}}", labels.collect::<Vec<_>>().join(","));
        Self { name, labels, counts: Default::default() }
    }

    #[cfg(test)]
    pub(super) fn totals(&self) -> Parts {
        self.counts.each_ref().map(Count::total)
    }

    fn add(&self, parts: &Parts) {
        self.counts.iter().zip(parts).for_each(|(count, amount)| count.add(*amount));
    }
}

/// What of the hits of a descriptor belongs to which part, as the service divides them.
fn parts(status: &Status, near: f32) -> Parts {
    let Status { hits, before, .. } = *status;
    let count = status.limit.as_ref().map_or(0, |limit| limit.count);
    let near = near_from(count, near);
    let (count, after) = (u64::from(count), before.saturating_add(hits));
    let (mut over, mut within) = (0, 0);
    // Those that end in the part between both borders.
    let is_near = after.min(count).saturating_sub(near.max(before));
    if after > count {
        over = hits.min(after - count);
    } else {
        within = hits;
    }
    let shadow = if status.would_be_over && !status.is_over { over } else { 0 };
    [hits, over, is_near, within, shadow]
}

/// The number of hits from which on a request is near its limit. The service calculates it in these types.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the rounding of the service is meant"
)]
fn near_from(count: u32, share: f32) -> u64 {
    f64::from(count as f32 * share).floor() as u64
}

#[cfg(test)]
mod tests {
    use sluicegate_config::envoy::service::{CurrentLimit, Descriptor, Unit};
    use sluicegate_core::adapter::steps;

    use super::*;

    fn of(count: u32, before: u64, hits: u64) -> Status {
        let limit = CurrentLimit { count, unit: Unit::Day, name: "".into() };
        let is_over = before + hits > u64::from(count);
        Status {
            limit: Some(limit),
            hits,
            before,
            is_over,
            would_be_over: is_over,
            ..Status::default()
        }
    }

    #[test]
    fn hits_are_divided_as_the_service_divides_them() {
        // Total, over, near, within, shadow: the branches of `GetResponseDescriptorStatus`.
        for (count, before, hits, expected) in [
            (10, 0, 1, [1, 0, 0, 1, 0]),
            (10, 7, 1, [1, 0, 0, 1, 0]),
            (10, 8, 1, [1, 0, 1, 1, 0]),
            (10, 9, 1, [1, 0, 1, 1, 0]),
            (10, 10, 1, [1, 1, 0, 0, 0]),
            (10, 10, 5, [5, 5, 0, 0, 0]),
            (10, 6, 3, [3, 0, 1, 3, 0]),
            (10, 6, 6, [6, 2, 2, 0, 0]),
            (10, 9, 6, [6, 5, 1, 0, 0]),
            (10, 12, 2, [2, 2, 0, 0, 0]),
            (10, 3, 0, [0, 0, 0, 0, 0]),
            (0, 0, 2, [2, 2, 0, 0, 0]),
            (1, 0, 1, [1, 0, 1, 1, 0]),
        ] {
            assert_eq!(
                parts(&of(count, before, hits), 0.8),
                expected,
                "{before} + {hits} of {count}"
            );
        }
        let shadow = Status { is_over: false, ..of(10, 9, 6) };
        assert_eq!(parts(&shadow, 0.8), [6, 5, 1, 0, 5]);
        assert_eq!(parts(&Status::default(), 0.8), [0; 5]);
    }

    #[test]
    fn the_border_of_near_is_rounded_as_in_the_service() {
        for (count, share, from) in [
            (10, 0.8, 8),
            (1, 0.8, 0),
            (9, 0.8, 7),
            // In binary, 0.8 is a little more in 32 bits, and the product is rounded to them.
            (5, 0.8, 4),
            (u32::MAX, 1.0, 1 << 32),
            (100, 0.0, 0),
            (100, -1.0, 0),
        ] {
            assert_eq!(near_from(count, share), from, "{share} of {count}");
        }
    }

    #[test]
    fn a_domain_that_is_too_long_for_a_name_is_not_read() {
        let statistics = Statistics::new(0.8);
        let domain = "1".repeat(LONGEST + 1);
        let before = steps();
        statistics.no_domain(&Request { domain: &domain, descriptors: Vec::new() });
        assert_eq!(steps() - before, 0);
        assert_eq!(statistics.text(), "");
    }

    #[test]
    fn names_are_bounded_in_number_and_in_length() {
        let statistics = Statistics::new(0.8);
        for domain in 0..2 * UNKNOWN {
            let domain = format!("10.0.0.{domain}");
            let descriptors = vec![Descriptor::of([("a", "b")]); 2];
            statistics.no_domain(&Request { domain: &domain, descriptors });
        }
        let lines = statistics.text();
        assert_eq!(lines.lines().count(), UNKNOWN);
        let name = "ratelimit.service.rate_limit.10_0_0_7.domain_not_found: 2\n";
        assert!(lines.contains(name), "{lines}");
        let shown = statistics.prometheus();
        let name = "ratelimit_service_rate_limit_10_0_0_7_domain_not_found 2\n";
        assert!(shown.contains(name), "{shown}");
        for name in 0..NAMES {
            assert!(statistics.counts(&format!("edge.user_{name}")).is_some());
        }
        assert!(statistics.counts("edge.one_more").is_none());
        assert!(statistics.counts("edge.user_7").is_some());
        assert!(Statistics::new(0.8).counts(&"x".repeat(LONGEST + 1)).is_none());
    }
}
