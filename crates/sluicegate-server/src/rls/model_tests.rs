//! An hour of calls, each answered as Envoy's service would, by a model of its published algorithm.
//!
//! The model repeats `DoLimit`, `GetResponseDescriptorStatus` and `shouldRateLimitWorker` of that service: one counter for each
//! descriptor and window, to which hits are added whatever the others say.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use axum::http::HeaderMap;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::{Code, DescriptorStatus};
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use envoy_types::pb::google::protobuf::UInt64Value;
use prost::Message as _;
use sluicegate_config::envoy::service::Unit;
use sluicegate_core::{ManualClock, Memory};

use super::Rls;
use crate::{Fields, Policies, Service};

const DOMAINS: u64 = 20;
const RULES: u64 = 25;
const CALLS: u64 = 12_000;

/// Between two calls, on average: all of them take an hour.
const PAUSE: u64 = 3_600_000_000 / CALLS;

#[tokio::test]
async fn an_hour_of_calls_is_answered_as_by_envoys_service() {
    compare(1, CALLS, Settings { shadow: false, quota: false }).await;
}

#[tokio::test]
async fn calls_are_answered_as_by_envoys_service_in_its_global_modes() {
    compare(2, 2_000, Settings { shadow: true, quota: false }).await;
    compare(3, 2_000, Settings { shadow: false, quota: true }).await;
    compare(4, 2_000, Settings { shadow: true, quota: true }).await;
}

#[derive(Clone, Copy, Default)]
struct Settings {
    shadow: bool,
    quota: bool,
}

async fn compare(seed: u64, calls: u64, settings: Settings) {
    let mut draw = Draw(seed);
    let mut rules: Vec<Vec<Rule>> =
        (0..DOMAINS).map(|_| (0..RULES).map(|at| Rule::draw(at, &mut draw)).collect()).collect();
    let folder = tempfile::tempdir().expect("a directory");
    write(folder.path(), &rules);
    // Some moment in the middle of most windows.
    let clock = ManualClock::at(Duration::from_micros(1_790_000_123_456_789));
    let policies = Policies::new().envoy(folder.path()).unwrap_or_else(|error| panic!("{error}"));
    let service = Service::builder(policies)
        .store(Memory::builder().clock(&clock).build())
        .apart(true)
        .shadow(settings.shadow)
        .quota(settings.quota)
        .fields(Fields::Three)
        .statistics(0.8)
        .build()
        .expect("a service");
    let ours = Rls::new(&service);
    let mut theirs = Model { settings, ..Model::default() };
    let (mut over, mut ok) = (0, 0);
    for call in 0..calls {
        if call == calls / 2 {
            // Counts stay, whatever the limits become.
            rules.iter_mut().flatten().for_each(|rule| rule.count = Rule::count(&mut draw));
            write(folder.path(), &rules);
            service.policies().reload().expect("valid files");
        }
        clock.advance(Duration::from_micros(draw.below(2 * PAUSE)));
        let request = request(&rules, &mut draw);
        let answer = ours.decide(&HeaderMap::new(), &request.encode_to_vec()).await;
        let answer = answer.expect("an answer");
        let answer = RateLimitResponse::decode(&answer[5..]).expect("a message");
        let expected = theirs.answer(&rules, &request, service.clock().now() / 1_000_000);
        let shown = (answer.overall_code, Model::shown(&answer.statuses), headers(&answer));
        assert_eq!(shown, expected, "call {call}: {request:?}");
        if answer.overall_code() == Code::OverLimit { over += 1 } else { ok += 1 }
    }
    assert!(ok > calls / 10 && (settings.shadow || over > calls / 100), "{ok} ok, {over} over");
    let statistics = service.statistics().expect("statistics");
    assert!(theirs.statistics.len() > 100, "{}", theirs.statistics.len());
    for (name, expected) in theirs.statistics {
        let counts = statistics.counts(&name).expect("room");
        assert_eq!(counts.totals(), expected, "{name}");
    }
}

fn write(folder: &Path, rules: &[Vec<Rule>]) {
    for (at, rules) in rules.iter().enumerate() {
        let text: String = rules.iter().map(Rule::written).collect();
        let text = format!("domain: domain{at}\ndescriptors:\n{text}");
        std::fs::write(folder.join(format!("{at}.yaml")), text).expect("a file");
    }
}

/// One descriptor of a file: its kind says what is particular about it.
struct Rule {
    key: String,
    kind: u64,
    count: u32,
    unit: Unit,
}

const KINDS: u64 = 11;

impl Rule {
    fn draw(at: u64, draw: &mut Draw) -> Self {
        let unit = Unit::ALL[draw.below(7) as usize];
        let count = Self::count(draw);
        Self { key: format!("key{at}"), kind: at % KINDS, count, unit }
    }

    fn count(draw: &mut Draw) -> u32 {
        [0, 1, 2, 5, 10, 30, 100, 1_000][draw.below(8) as usize]
    }

    fn name(&self) -> &'static str {
        if self.kind == 8 { "replaced" } else { "" }
    }

    fn written(&self) -> String {
        let Self { key, kind, count, unit } = self;
        let limit = format!("unit: {}, requests_per_unit: {count}", unit.name().to_lowercase());
        let plain = format!("rate_limit: {{ {limit} }}");
        match kind {
            1 => format!("- {{ key: {key}, value: v0, {plain} }}\n"),
            2 => format!(
                "- key: {key}\n  descriptors:\n  - {{ key: sub, value_to_metric: true, {plain} }}\n"
            ),
            3 => format!("- {{ key: {key}, value: 'v*', share_threshold: true, {plain} }}\n"),
            4 => format!("- {{ key: {key}, rate_limit: {{ unlimited: true }} }}\n"),
            5 => format!("- {{ key: {key}, shadow_mode: true, {plain} }}\n"),
            6 | 7 => format!("- {{ key: {key}, quota_mode: true, {plain} }}\n"),
            8 => format!("- {{ key: {key}, rate_limit: {{ {limit}, name: replaced }} }}\n"),
            9 => format!(
                "- {{ key: {key}, rate_limit: {{ {limit}, replaces: [{{ name: replaced }}] }} }}\n"
            ),
            10 => format!("- {{ key: {key}, detailed_metric: true, {plain} }}\n"),
            _ => format!("- {{ key: {key}, {plain} }}\n"),
        }
    }
}

fn request(rules: &[Vec<Rule>], draw: &mut Draw) -> RateLimitRequest {
    let domain = draw.zipf(DOMAINS);
    let descriptors = (0..=draw.below(4)).map(|_| {
        let rule = &rules[domain as usize][draw.zipf(RULES) as usize];
        let mut entries =
            vec![Entry { key: rule.key.clone(), value: format!("v{}", draw.zipf(50)) }];
        if rule.kind == 2 {
            entries.push(Entry { key: "sub".to_owned(), value: format!("s{}", draw.zipf(5)) });
        }
        let own = draw.below(8) == 0;
        let hits_addend = own.then(|| UInt64Value { value: draw.below(6) });
        RateLimitDescriptor { entries, hits_addend, ..RateLimitDescriptor::default() }
    });
    let descriptors: Vec<_> = descriptors.collect();
    let hits_addend = if draw.below(5) == 0 { draw.below(20) as u32 } else { 0 };
    RateLimitRequest { domain: format!("domain{domain}"), descriptors, hits_addend }
}

/// What is compared of a status: the code, the limit with its unit and its name, what is left, and until when.
type Shown = (i32, Option<(u32, i32, String)>, u32, Option<i64>);

type Headers = Vec<(String, String)>;

fn headers(answer: &RateLimitResponse) -> Headers {
    let fields = &answer.response_headers_to_add;
    fields.iter().map(|field| (field.key.clone(), field.value.clone())).collect()
}

#[derive(Default)]
struct Model {
    settings: Settings,
    /// By what the service writes into Redis.
    counters: HashMap<String, u64>,
    statistics: HashMap<String, [u64; 5]>,
}

impl Model {
    fn shown(statuses: &[DescriptorStatus]) -> Vec<Shown> {
        let statuses = statuses.iter().map(|status| {
            let limit = status.current_limit.as_ref();
            let limit =
                limit.map(|limit| (limit.requests_per_unit, limit.unit, limit.name.clone()));
            let reset = status.duration_until_reset.as_ref().map(|time| time.seconds);
            (status.code, limit, status.limit_remaining, reset)
        });
        statuses.collect()
    }

    fn limit<'r>(
        rules: &'r [Vec<Rule>],
        domain: &str,
        descriptor: &RateLimitDescriptor,
    ) -> Option<&'r Rule> {
        let domain: usize = domain.strip_prefix("domain")?.parse().ok()?;
        let entry = &descriptor.entries[0];
        let rule = rules[domain].iter().find(|rule| rule.key == entry.key)?;
        (rule.kind != 1 || entry.value == "v0").then_some(rule)
    }

    fn answer(
        &mut self,
        rules: &[Vec<Rule>],
        request: &RateLimitRequest,
        now: u64,
    ) -> (i32, Vec<Shown>, Headers) {
        let (ok, over) = (i32::from(Code::Ok), i32::from(Code::OverLimit));
        let limits = request.descriptors.iter().map(|one| Self::limit(rules, &request.domain, one));
        let limits: Vec<_> = limits
            .map(|rule| rule.map(|rule| (rule.kind, rule.count, rule.unit, rule.name())))
            .collect();
        let replaces = limits.iter().flatten().any(|(kind, ..)| *kind == 9);
        let mut statuses: Vec<Shown> = Vec::new();
        let (mut failed, mut failed_quotas, mut quotas) = (0, 0, 0);
        let (mut minimum, mut least) = (None, u32::MAX);
        for (at, (descriptor, found)) in request.descriptors.iter().zip(limits).enumerate() {
            let is_unlimited = found.is_some_and(|(kind, ..)| kind == 4);
            let found = found.filter(|(kind, ..)| !(is_unlimited || *kind == 8 && replaces));
            let status = match found {
                None if is_unlimited => (ok, None, u32::MAX, None),
                None => (ok, None, 0, None),
                Some((kind, count, unit, name)) => {
                    self.count(request, descriptor, (kind, count, unit, name), now)
                }
            };
            if status.1.is_some() && status.2 < least {
                (minimum, least) = (Some(at), status.2);
            }
            if !is_unlimited {
                let is_quota =
                    self.settings.quota || found.is_some_and(|(kind, ..)| kind == 6 || kind == 7);
                if status.0 == over && is_quota {
                    failed_quotas += 1;
                } else if status.0 == over {
                    failed += 1;
                    (minimum, least) = (Some(at), 0);
                }
                quotas += u32::from(is_quota);
            }
            statuses.push(status);
        }
        let is_over = failed > 0 || quotas > 0 && quotas == failed_quotas;
        let code = if is_over && !self.settings.shadow { over } else { ok };
        let headers = minimum.map(|at| {
            let (_, limit, remaining, reset) = &statuses[at];
            let limit = limit.as_ref().map_or(0, |limit| limit.0);
            [
                ("RateLimit-Limit", limit.to_string()),
                ("RateLimit-Remaining", remaining.to_string()),
                ("RateLimit-Reset", reset.unwrap_or_default().to_string()),
            ]
        });
        let headers = headers.into_iter().flatten();
        let headers = headers.map(|(key, value)| (key.to_owned(), value)).collect();
        (code, statuses, headers)
    }

    fn count(
        &mut self,
        request: &RateLimitRequest,
        descriptor: &RateLimitDescriptor,
        (kind, count, unit, name): (u64, u32, Unit, &str),
        now: u64,
    ) -> Shown {
        let hits = match &descriptor.hits_addend {
            Some(hits) => hits.value,
            None => u64::from(request.hits_addend.max(1)),
        };
        let divider = unit.period().as_secs();
        let mut key = request.domain.clone() + "_";
        for Entry { key: name, value } in &descriptor.entries {
            key += &format!("{name}_{}_", if kind == 3 { "v*" } else { value });
        }
        key += &(now / divider * divider).to_string();
        let counter = self.counters.entry(key).or_default();
        let before = *counter;
        *counter += hits;
        let (after, limit) = (*counter, u64::from(count));

        let statistics = self.statistics.entry(statistic(request, descriptor, kind)).or_default();
        let near = f64::from(count as f32 * 0.8_f32).floor() as u64;
        let is_over = after > limit;
        statistics[0] += hits;
        if is_over && before >= limit {
            statistics[1] += hits;
        } else if is_over {
            statistics[1] += after - limit;
            statistics[2] += limit - near.max(before);
        } else {
            if after > near {
                statistics[2] += if before >= near { hits } else { after - near };
            }
            statistics[3] += hits;
        }
        if is_over && kind == 5 {
            statistics[4] += if before >= limit { hits } else { after - limit };
        }

        let code = if is_over && kind != 5 { Code::OverLimit } else { Code::Ok };
        let number = Unit::ALL.iter().position(|one| *one == unit).unwrap_or_default();
        // In the protocol, a week comes after a year.
        let number = [1, 2, 3, 4, 7, 5, 6][number];
        let remaining = if is_over { 0 } else { (limit - after) as u32 };
        let reset = (divider - now % divider) as i64;
        (code.into(), Some((count, number, name.to_owned())), remaining, Some(reset))
    }
}

fn statistic(request: &RateLimitRequest, descriptor: &RateLimitDescriptor, kind: u64) -> String {
    let Entry { key, value } = &descriptor.entries[0];
    let domain = &request.domain;
    match kind {
        1 | 10 => format!("{domain}.{key}_{value}"),
        2 => format!("{domain}.{key}.sub_{}", descriptor.entries[1].value),
        3 => format!("{domain}.{key}_v*"),
        _ => format!("{domain}.{key}"),
    }
}

/// Numbers that are the same in each run (SplitMix64).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// One of so many, the first ones most often.
    fn zipf(&mut self, end: u64) -> u64 {
        let share = self.next() as f64 / u64::MAX as f64;
        // The inverse of the sum of 1 / n.
        let at = ((end as f64 + 1.0).ln() * share).exp() - 1.0;
        (at as u64).min(end - 1)
    }
}
