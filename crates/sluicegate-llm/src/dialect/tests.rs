use std::collections::BTreeMap;

use sluicegate_core::adapter::{Charge, Dialect as _};
use sluicegate_core::key::KeyBuf;
use sluicegate_core::store::Store;
use sluicegate_core::{ManualClock, Memory};

use super::*;

/// Header fields by name.
#[derive(Debug, Default)]
struct Map(BTreeMap<&'static str, String>);

impl Headers for Map {
    fn contains_any(&self, fields: &[Field]) -> bool {
        fields.iter().any(|field| self.0.contains_key(field.name()))
    }

    fn append(&mut self, field: Field, value: Value<'_>) {
        self.insert(field, value);
    }

    fn insert(&mut self, field: Field, value: Value<'_>) {
        let text = match value {
            Value::Static(text) => text.to_owned(),
            Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
            Value::Number(number) => number.to_string(),
        };
        self.0.insert(field.name(), text);
    }

    fn each_line(&self, field: Field, see: &mut dyn FnMut(&[u8])) {
        self.0.get(field.name()).into_iter().for_each(|line| see(line.as_bytes()));
    }
}

/// 2026-11-22, 20:00 in UTC.
const NOW: u64 = 1_795_377_600_000_000;

/// What is told when each cost is spent on fresh keys, and spent again.
fn written(dialect: &Dialect, costs: &[(Limit, u64)], times: usize) -> Map {
    let store = Memory::builder().clock(ManualClock::new()).build();
    let mut charge = Charge::new();
    for (limit, cost) in costs {
        charge.add(*limit, KeyBuf::new(), *cost).expect("room");
    }
    let take = || store.take(&charge).now().expect("a decision").decision(&charge);
    for _ in 1..times {
        take();
    }
    let decision = take();
    let mut map = Map::default();
    dialect.write(&decision, NOW, &mut map);
    dialect.write_retry(&decision, &mut map);
    map
}

fn rpm() -> Limit {
    Limit::per_minute(500).named("rpm")
}

fn tpm() -> Limit {
    Limit::per_minute(200_000).named("tpm")
}

fn tpd() -> Limit {
    Limit::per_day(2_000_000).named("tpd")
}

fn openai() -> Dialect {
    Dialect::openai().requests("rpm").tokens("tpm").tokens("tpd")
}

fn lines(map: &Map) -> Vec<String> {
    map.0.iter().map(|(name, value)| format!("{name}: {value}")).collect()
}

#[test]
fn openai_tells_limits_what_remains_and_when_all_is_back() {
    let map = written(&openai(), &[(rpm(), 1), (tpm(), 20_000), (tpd(), 20_000)], 1);
    assert_eq!(
        lines(&map),
        [
            "x-ratelimit-limit-requests: 500",
            "x-ratelimit-limit-tokens: 200000",
            "x-ratelimit-remaining-requests: 499",
            "x-ratelimit-remaining-tokens: 180000",
            "x-ratelimit-reset-requests: 120ms",
            "x-ratelimit-reset-tokens: 6s",
        ]
    );
}

#[test]
fn anthropic_tells_points_in_time_and_both_kinds_of_tokens() {
    let dialect = Dialect::anthropic().requests("rpm").input_tokens("tpm").output_tokens("tpd");
    let map = written(&dialect, &[(rpm(), 1), (tpm(), 50_000), (tpd(), 1_000)], 1);
    assert_eq!(
        lines(&map),
        [
            "anthropic-ratelimit-input-tokens-limit: 200000",
            "anthropic-ratelimit-input-tokens-remaining: 150000",
            "anthropic-ratelimit-input-tokens-reset: 2026-11-22T20:00:15Z",
            "anthropic-ratelimit-output-tokens-limit: 2000000",
            "anthropic-ratelimit-output-tokens-remaining: 1999000",
            "anthropic-ratelimit-output-tokens-reset: 2026-11-22T20:00:44Z",
            "anthropic-ratelimit-requests-limit: 500",
            "anthropic-ratelimit-requests-remaining: 499",
            "anthropic-ratelimit-requests-reset: 2026-11-22T20:00:01Z",
        ]
    );
}

#[test]
fn of_several_policies_the_one_with_the_least_left_is_told() {
    let small = Limit::per_day(100_000).named("tpd");
    let map = written(&openai(), &[(tpm(), 20_000), (small, 20_000)], 1);
    assert_eq!(map.0["x-ratelimit-limit-tokens"], "100000");
    assert_eq!(map.0["x-ratelimit-remaining-tokens"], "80000");
}

#[test]
fn a_refusal_tells_of_the_policy_that_refuses_the_longest() {
    let small = Limit::per_day(150_000).named("tpd");
    let map = written(&openai(), &[(rpm(), 1), (tpm(), 120_000), (small, 120_000)], 2);
    // The minute has 80,000 left, the day 30,000; both refuse.
    assert_eq!(map.0["x-ratelimit-limit-tokens"], "150000");
    assert_eq!(map.0["x-ratelimit-remaining-tokens"], "30000");
    // 90,000 more come back in 0.6 of a day.
    assert_eq!(map.0["retry-after-ms"], "51840000");
    assert_eq!(map.0["x-ratelimit-remaining-requests"], "499");
}

#[test]
fn clients_are_not_told_of_shadows_and_of_policies_without_a_unit() {
    let map = written(&openai(), &[(rpm().shadow(), 1), (Limit::per_hour(5).named("other"), 1)], 1);
    assert_eq!(lines(&map), [""; 0]);
}

#[test]
#[should_panic(expected = "OpenAI's dialect has no fields for input tokens: call `tokens(\"x\")`")]
fn openai_has_no_fields_for_tokens_of_input() {
    let _ = Dialect::openai().input_tokens("x");
}

#[test]
#[should_panic(expected = "the policy `x` counts either requests or tokens")]
fn a_policy_has_one_unit() {
    let _ = Dialect::openai().requests("x").tokens("x");
}
