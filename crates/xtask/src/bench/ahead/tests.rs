use super::super::table::printed_in;
use super::*;

fn told(title: &str, rows: &str) -> Option<String> {
    let rivals = ["governor", "tower_governor", "rate-net", "tower-resilience-ratelimiter"];
    let printed = format!("### {title}\n\n{}", rows.trim().replace("\n        ", "\n"));
    sentence(&printed_in(&printed)[0], &rivals.map(str::to_owned))
}

#[test]
fn a_rival_that_is_ahead_is_named_with_the_figures() {
    let rows = "
        | keys | floor | sluicegate | governor | rate-net |
        | --- | ---: | ---: | ---: | ---: |
        | 1 × `u64` | 5 | 12.0 (11.0–13.0) | 9.0 (8.0–9.5) | 11.5 (11–12) |
        | 1000 × `u64` | 15 | 20 (19–21) | 30 (29–31) | 25 (24–26) |";
    let expected = "Ahead of sluicegate here: **governor** (1 × `u64`: 9.0 against 12.0); \
                    **rate-net** (1 × `u64`: 11.5 against 12.0, within the spread).";
    assert_eq!(told("The table, ns", rows).as_deref(), Some(expected));
}

#[test]
fn without_a_rival_ahead_the_sentence_says_so() {
    let rows = "
        | keys | floor | sluicegate | governor |
        | --- | ---: | ---: | ---: |
        | 1 | 5 | 12 | 12 |
        | 2 | 5 | – | 9 |";
    let told = told("The table, ns", rows);
    assert_eq!(told.as_deref(), Some("No rival is ahead of sluicegate here."));
}

#[test]
fn many_cases_are_told_by_their_number() {
    let rows = "
        | limiter | a | b | c | d | e | f |
        | --- | ---: | ---: | ---: | ---: | ---: | ---: |
        | sluicegate | 10 | 10 | 10 | 10 | 10 | 10 |
        | governor | 9 | 9 | 5 | 9 | 9 | 11 |
        | rate-net | 9 | 9 | 9 | 9 | 9 | 1 |";
    let expected = "Ahead of sluicegate here: **governor** in 5 of 6 (most in c: 5 against 10); \
                    **rate-net** everywhere (most in f: 1 against 10).";
    assert_eq!(told("The rivals, ns", rows).as_deref(), Some(expected));
}

#[test]
fn the_one_of_ours_that_is_behind_is_named() {
    let rows = "
        | keys | sluicegate `Limiter` | sluicegate `Store` | governor |
        | --- | ---: | ---: | ---: |
        | 1 | 10 | 8 | 9 |
        | 2 | 10 | 8 | 12 |";
    let expected =
        "Ahead of sluicegate here: **governor** (1 of *sluicegate `Limiter`*: 9 against 10).";
    assert_eq!(told("The table, ns", rows).as_deref(), Some(expected));
}

#[test]
fn like_is_compared_with_like() {
    let rows = "
        | service | request | beyond the baseline |
        | --- | ---: | ---: |
        | axum, no layer | 380 | -70 |
        | sluicegate, no fields | 500 | +50 |
        | sluicegate, `X-RateLimit` | 800 | +350 |
        | sluicegate, draft fields | 850 | +400 |
        | sluicegate, as it comes | 900 | +450 |
        | tower_governor | 600 | +150 |
        | tower_governor, `X-RateLimit` | 700 | +250 |
        | rate-net, all its fields | 870 | +420 |
        | tower-resilience, one limit for all | 490 | +40 |";
    let expected = "Ahead of sluicegate here: \
                    **tower_governor, `X-RateLimit`** (700 against 800); \
                    **rate-net, all its fields** (of *sluicegate, as it comes*: 870 against 900); \
                    **tower-resilience, one limit for all** (490 against 500). \
                    Without fields, these are ahead of *sluicegate, as it comes*: \
                    **tower_governor** (600 against 900), \
                    **tower-resilience, one limit for all** (490 against 900).";
    assert_eq!(told("The layer, ns", rows).as_deref(), Some(expected));
}

#[test]
fn refused_requests_are_compared_with_refused_requests() {
    let rows = "
        | keys | floor, refused | sluicegate, admitted | sluicegate, refused | governor, refused |
        | --- | ---: | ---: | ---: | ---: |
        | 1 | 5 | 20 | 10 | 15 |";
    let told = told("Refused, 1 thread, ns", rows);
    assert_eq!(told.as_deref(), Some("No rival is ahead of sluicegate here."));
}

#[test]
fn more_is_better_where_requests_are_counted() {
    let rows = "
        | server | requests a second | p50, µs | server busy, % |
        | --- | ---: | ---: | ---: |
        | sluicegate | 1000 | 10 | 90 |
        | tower_governor | 1100 | 11 | 80 |";
    let expected = "Ahead of sluicegate here: \
                    **tower_governor** (requests a second: 1100 against 1000).";
    assert_eq!(told("Over the wire", rows).as_deref(), Some(expected));
}

#[test]
fn a_contender_that_breaks_its_promise_is_named() {
    let rows = "
        | limiter | admitted | beyond its promise | by at most | short of its promise |
        | --- | ---: | ---: | ---: | ---: |
        | sluicegate, token bucket | 10 | 0 | 0 | 0 |
        | governor | 20 | 1,000 | 58 | 0 |
        | rate-net, sliding log | 5 | 1 | 1 | 3 |";
    let expected = "Break their own promise: \
                    **governor** (beyond its promise: 1,000, by at most: 58); \
                    **rate-net, sliding log** (beyond its promise: 1, by at most: 1, \
                    short of its promise: 3).";
    assert_eq!(told("Accuracy, steady", rows).as_deref(), Some(expected));
    let kept =
        rows.lines().take(4).collect::<Vec<_>>().join("\n") + "\n| governor | 20 | 0 | 0 | 0 |";
    let expected = "All of them keep their own promise here.";
    assert_eq!(told("Accuracy, steady", &kept).as_deref(), Some(expected));
}

#[test]
fn a_table_without_rivals_or_without_better_and_worse_needs_no_sentence() {
    let alone = "
        | limit | admitted |
        | --- | ---: |
        | token bucket | 37 |
        | leaky bucket | 37 |";
    assert_eq!(told("The step, ns", alone), None);
    let both = "
        | keys | sluicegate | governor |
        | --- | ---: | ---: |
        | 1 | 3.0 | 2.0 |";
    assert_eq!(told("The table, ratios", both), None);
    assert_eq!(told("The flood, decisions", both), None);
    assert!(told("Resident bytes per key", both).is_some());
}
