//! Counts under the names of Envoy's rate limit service, so that dashboards and alarms that were made for it keep working.
//!
//! That service sends `ratelimit.service.rate_limit.DOMAIN.KEY_VALUE.STAT`, and its mapping for Prometheus makes labels of the
//! parts. Both are written from the same counts here.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use metrics::{
    Counter, Histogram, Label, counter, describe_counter, describe_histogram, histogram,
};
use sluicegate_config::envoy::service::{Answer, Plan, Request, Status};

use super::counters::Failure;

/// The most names of limits. With `detailed_metric`, clients choose a part of them.
const NAMES: usize = 10_000;

/// The longest name in bytes.
const LONGEST: usize = 512;

/// The method of gRPC that is counted.
const METHOD: &str = "ShouldRateLimit";

const LEFT_OUT: &str = "sluicegate_statistics_left_out_total";
const ERRORS: &str = "ratelimit_service_should_rate_limit_error";
const REQUESTS: &str = "ratelimit_service_total_requests";
const SECONDS: &str = "ratelimit_service_response_time_seconds";
const LOADED: &str = "ratelimit_service_config_load_success";
const NOT_LOADED: &str = "ratelimit_service_config_load_error";

/// The counts of a service. Clones share them.
#[derive(Clone)]
pub(crate) struct Statistics(Arc<Inner>);

struct Inner {
    /// From which share of a limit on a request is near it.
    near: f32,
    limits: RwLock<HashMap<Box<str>, Arc<Counts>>>,
    left_out: Counter,
    is_told: AtomicBool,
    store_errors: Counter,
    bad: Counter,
    requests: Counter,
    seconds: Histogram,
    loaded: Counter,
    not_loaded: Counter,
}

impl Statistics {
    /// Registers what is always there. A recorder that is installed later does not see it.
    pub(crate) fn new(near: f32) -> Self {
        let what = "Descriptors that are not in the statistics of Envoy's service, because their names are too long or too many.";
        describe_counter!(LEFT_OUT, what);
        describe_counter!(ERRORS, "Calls that were answered with an error.");
        describe_counter!(REQUESTS, "Calls.");
        describe_histogram!(SECONDS, "How long calls took.");
        describe_counter!(LOADED, "How often policies came into force.");
        describe_counter!(NOT_LOADED, "How often policies were not valid.");
        Part::ALL.iter().for_each(|part| describe_counter!(part.metric(), part.meaning()));
        Self(Arc::new(Inner {
            near,
            limits: RwLock::default(),
            left_out: counter!(LEFT_OUT),
            is_told: AtomicBool::new(false),
            store_errors: counter!(ERRORS, "err_type" => "redis_error"),
            bad: counter!(ERRORS, "err_type" => "service_error"),
            requests: counter!(REQUESTS, "grpc_method" => METHOD),
            seconds: histogram!(SECONDS, "grpc_method" => METHOD),
            loaded: counter!(LOADED),
            not_loaded: counter!(NOT_LOADED),
        }))
    }

    /// Counts the descriptors of a request.
    pub(super) fn descriptors(&self, plan: &Plan<'_>, request: &Request<'_>, answer: &Answer) {
        for (at, status) in answer.statuses.iter().enumerate() {
            let Some(name) = plan.statistic(request, at) else { continue };
            match self.counts(&name) {
                Some(counts) => counts.add(&parts(status, self.0.near)),
                None => self.0.left_out.increment(1),
            }
        }
    }

    /// Counts a call that failed.
    pub(super) fn failed(&self, failure: &Failure) {
        match failure {
            Failure::Bad(_) => &self.0.bad,
            Failure::Undecided(_) => &self.0.store_errors,
        }
        .increment(1);
    }

    /// Counts a call of gRPC.
    pub(super) fn called(&self, took: Duration) {
        self.0.requests.increment(1);
        self.0.seconds.record(took.as_secs_f64());
    }

    /// Counts whether policies came into force.
    pub(crate) fn loaded(&self, is_in_force: bool) {
        if is_in_force { &self.0.loaded } else { &self.0.not_loaded }.increment(1);
    }

    /// The counts of this name. `None` if it is too long, or one too many.
    fn counts(&self, name: &str) -> Option<Arc<Counts>> {
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
}

impl fmt::Debug for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Statistics").field("near", &self.0.near).finish_non_exhaustive()
    }
}

/// What is counted for each limit.
#[derive(Debug, Clone, Copy)]
enum Part {
    TotalHits,
    OverLimit,
    NearLimit,
    WithinLimit,
    ShadowMode,
}

impl Part {
    const ALL: [Self; 5] =
        [Self::TotalHits, Self::OverLimit, Self::NearLimit, Self::WithinLimit, Self::ShadowMode];

    const fn metric(self) -> &'static str {
        match self {
            Self::TotalHits => "ratelimit_service_rate_limit_total_hits",
            Self::OverLimit => "ratelimit_service_rate_limit_over_limit",
            Self::NearLimit => "ratelimit_service_rate_limit_near_limit",
            Self::WithinLimit => "ratelimit_service_rate_limit_within_limit",
            Self::ShadowMode => "ratelimit_service_rate_limit_shadow_mode",
        }
    }

    const fn meaning(self) -> &'static str {
        match self {
            Self::TotalHits => "Hits.",
            Self::OverLimit => "Hits over the limit.",
            Self::NearLimit => "Hits within the limit and near it.",
            Self::WithinLimit => "Hits of requests within the limit.",
            Self::ShadowMode => "Hits over a limit that is a shadow.",
        }
    }
}

/// An amount for each part.
type Parts = [u64; Part::ALL.len()];

/// The counts of a limit.
struct Counts([Counter; Part::ALL.len()]);

impl Counts {
    fn new(name: &str) -> Self {
        let name = plain(name);
        // As the mapping of the service has it, further parts of the name are left out. A dot in a domain or a value also
        // divides.
        let labels = ["domain", "key1", "key2"].into_iter().zip(name.split('.'));
        let labels: Vec<_> = labels.map(|(key, part)| Label::new(key, part.to_owned())).collect();
        Self(Part::ALL.map(|part| counter!(part.metric(), labels.clone())))
    }

    fn add(&self, parts: &Parts) {
        for (counter, amount) in self.0.iter().zip(parts) {
            if *amount > 0 {
                counter.increment(*amount);
            }
        }
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

/// A name without the characters that divide one line from the next, and a name from its value. The dots of addresses do not
/// divide either.
fn plain(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let length = address(rest);
        if length > 0 {
            plain.push_str(&rest[..length].replace('.', "_"));
            rest = &rest[length..];
            continue;
        }
        let divides = matches!(first, ':' | '|') || first.is_control();
        plain.push(if divides { '_' } else { first });
        rest = &rest[first.len_utf8()..];
    }
    plain
}

/// The length of what looks like an address of IPv4 at the begin of a text, or 0: four times one to three digits.
fn address(text: &str) -> usize {
    let mut length = 0;
    for part in 0..4 {
        if part > 0 {
            if !text[length..].starts_with('.') {
                return 0;
            }
            length += 1;
        }
        let digits = text[length..].bytes().take_while(u8::is_ascii_digit).count().min(3);
        if digits == 0 {
            return 0;
        }
        length += digits;
    }
    length
}

#[cfg(test)]
mod tests {
    use sluicegate_config::envoy::service::{CurrentLimit, Unit};

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
    fn no_name_divides_lines_and_addresses_do_not_divide_names() {
        for (name, expected) in [
            ("edge.user_alice", "edge.user_alice"),
            ("edge.remote_address_10.0.0.7", "edge.remote_address_10_0_0_7"),
            ("edge.a_b:c|d\ne", "edge.a_b_c_d_e"),
            ("edge.v_1.2.3", "edge.v_1.2.3"),
            ("1.2.3.4.5.6.7.8", "1_2_3_4.5_6_7_8"),
            ("1234.5.6.7890", "1234_5_6_7890"),
            ("ż.1.2.3.", "ż.1.2.3."),
            ("", ""),
        ] {
            assert_eq!(plain(name), expected);
        }
    }

    #[test]
    fn names_are_bounded_in_number_and_in_length() {
        let statistics = Statistics::new(0.8);
        for name in 0..NAMES {
            assert!(statistics.counts(&format!("edge.user_{name}")).is_some());
        }
        assert!(statistics.counts("edge.one_more").is_none());
        assert!(statistics.counts("edge.user_7").is_some());
        assert!(Statistics::new(0.8).counts(&"x".repeat(LONGEST + 1)).is_none());
    }
}
