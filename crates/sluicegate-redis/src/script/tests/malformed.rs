//! A row that sluicegate did not write is never used for a decision.

use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::{Charge, Keys, Receipt};
use sluicegate_core::key::KeyBuf;

use super::super::lease::{Lease, LeaseRequest, can_lease};
use super::super::{Call, Row};
use super::compare::{charge, outcome};
use super::redis::{Content, Redis};

const NOW: Option<u64> = Some(1_767_225_600_000_000);
const KEY: &[u8] = b"t:{alice}0";

/// One limit for each kind of row.
fn limits() -> [Limit; 7] {
    let second = Duration::from_secs(1);
    [
        Limit::per_second(2),
        Limit::sliding_window(2, second),
        Limit::per_second(2).min_gap(second),
        Limit::sliding_window(2, second).ban(second),
        Limit::sliding_log(2, second),
        Limit::per_second(2).ban(second).ban_after(3, second),
        Limit::sliding_window(2, second).named("a").carried(),
    ]
}

/// Every call that reads a row of `limit`.
fn answers(redis: &mut Redis, limit: Limit) -> Vec<Result<Vec<u8>, String>> {
    let charge = charge(limit, "alice", 1);
    let debit = charge.debits().next().unwrap();
    let row = Row { key: KEY, debit };
    let rows = &[row];
    let mut calls = vec![
        Call::take(rows, None, Keys::One, NOW),
        Call::take(rows, Some(Duration::ZERO), Keys::One, NOW),
        Call::peek(rows, None, Keys::One, NOW),
        Call::settle(&row, &Receipt::default(), 0, NOW),
    ];
    if can_lease(&limit) {
        calls.push(Call::lease(
            &row,
            LeaseRequest { least: 1, most: 2, ..LeaseRequest::default() },
            NOW,
        ));
    }
    calls.iter().map(|call| redis.run(call)).collect()
}

fn assert_named(redis: &mut Redis, limit: Limit, content: &[u8]) {
    redis.put(KEY, Content::Bytes(content.to_vec()));
    for answer in answers(redis, limit) {
        let error = answer.expect_err("it is no row");
        assert!(error.starts_with("BADROW t:{alice}0 holds "), "{limit}: {error}");
    }
    assert_eq!(redis.row(KEY).as_deref(), Some(content), "it was not touched");
}

#[test]
fn a_row_of_another_length_is_an_error_that_names_it() {
    let mut redis = Redis::new();
    for limit in limits() {
        for content in [&b"hello"[..], b"", &[0; 15], &[0; 17], &[0; 57], &[0; 71], &[0; 79]] {
            let is_absent_log = content.is_empty() && limit == limits()[4];
            if !is_absent_log {
                assert_named(&mut redis, limit, content);
            }
        }
    }
}

#[test]
fn a_row_with_impossible_numbers_is_an_error_that_names_it() {
    let mut redis = Redis::new();
    let words = |len: usize, at: usize, number: f64| {
        let mut words = vec![1.0; len];
        words[at] = number;
        words.iter().flat_map(|word: &f64| word.to_le_bytes()).collect::<Vec<_>>()
    };
    for number in [0.5, -1.0, f64::NAN, f64::INFINITY, 1e300, 2_f64.powi(54)] {
        for (limit, len) in limits().into_iter().zip([2, 2, 7, 7, 9, 9, 14]) {
            for at in 0..len {
                // The second word of a sliding window is two counts, so any bytes are valid.
                let is_counts = at == 1 && [1, 3, 6].map(|at| limits()[at]).contains(&limit);
                if !is_counts {
                    assert_named(&mut redis, limit, &words(len, at, number));
                }
            }
        }
    }
    assert_named(&mut redis, limits()[0], b"0123456789abcdef");
}

#[test]
fn a_log_whose_stamps_are_missing_is_an_error_that_names_it() {
    let mut redis = Redis::new();
    let head = [1.0, 3.0, 0.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    let mut row: Vec<u8> = head.iter().flat_map(|word: &f64| word.to_le_bytes()).collect();
    row.resize(72 + 2 * 16, 0);
    assert_named(&mut redis, limits()[4], &row);
}

#[test]
fn another_type_is_the_servers_own_error() {
    let mut redis = Redis::new();
    for limit in limits() {
        redis.put(KEY, Content::List);
        for answer in answers(&mut redis, limit) {
            let error = answer.expect_err("it is no row");
            assert!(error.contains("WRONGTYPE"), "{limit}: {error}");
        }
    }
}

#[test]
fn a_reset_deletes_foreign_rows() {
    let mut redis = Redis::new();
    for limit in limits() {
        redis.put(KEY, Content::List);
        let charge = charge(limit, "alice", 1);
        let rows = &[Row { key: KEY, debit: charge.debits().next().unwrap() }];
        let answer = redis.run(&Call::reset(rows, None, Keys::One, NOW)).unwrap();
        assert!(outcome(charge.debits(), &answer).unwrap().is_admitted());
        assert_eq!(redis.row(KEY), None);
    }
}

/// Charges a limit for every kind of answer.
fn all_kinds() -> Charge {
    let mut charge = Charge::new();
    for limit in limits() {
        charge.add(limit, KeyBuf::of("alice"), 1).unwrap();
    }
    charge
}

#[test]
fn an_answer_that_is_cut_short_or_goes_on_is_an_error() {
    let mut redis = Redis::new();
    let charge = all_kinds();
    let keys: Vec<_> = (0..charge.len()).map(|i| format!("t:{{alice}}{i}").into_bytes()).collect();
    let rows: Vec<_> =
        keys.iter().zip(charge.debits()).map(|(key, debit)| Row { key, debit }).collect();
    let answer = redis.run(&Call::take(&rows, None, Keys::One, NOW)).unwrap();
    assert!(outcome(charge.debits(), &answer).unwrap().is_admitted());
    for len in 0..answer.len() {
        assert!(outcome(charge.debits(), &answer[..len]).is_err(), "{len} bytes");
    }
    let error = outcome(charge.debits(), &[&answer[..], &[0]].concat()).unwrap_err();
    assert_eq!(error.to_string(), "the script's answer goes on after its end");
}

#[test]
fn an_answer_with_impossible_numbers_is_an_error() {
    let charge = charge(Limit::per_second(2), "alice", 1);
    let answer = |verdict: u8, micros: f64, now: f64, role: u8, word: f64| {
        let mut bytes = vec![verdict];
        bytes.extend([micros, now].iter().flat_map(|number| number.to_le_bytes()));
        bytes.push(role);
        bytes.extend([word, 1.0].iter().flat_map(|number| number.to_le_bytes()));
        outcome(charge.debits(), &bytes)
    };
    assert!(answer(1, 0.0, 5.0, 1, 5.0).is_ok());
    assert!(answer(0, -1.0, 5.0, 3, 5.0).is_ok_and(|outcome| outcome.retry_after().is_none()));
    assert!(answer(1, -1.0, 5.0, 1, 5.0).is_err());
    assert!(answer(2, 0.0, 5.0, 1, 5.0).is_err());
    assert!(answer(1, 0.0, 5.0, 5, 5.0).is_err());
    assert!(answer(0, -2.0, 5.0, 3, 5.0).is_ok_and(|outcome| outcome.never_fits()));
    assert!(answer(1, -2.0, 5.0, 1, 5.0).is_err());
    for number in [0.5, -3.0, f64::NAN, f64::INFINITY, 2_f64.powi(53)] {
        assert!(answer(0, number, 5.0, 3, 5.0).is_err(), "{number}");
        assert!(answer(0, 1.0, number, 3, 5.0).is_err(), "{number}");
        assert!(answer(0, 1.0, 5.0, 3, number).is_err(), "{number}");
    }
    assert!(Lease::parse(b"OK").is_err());
}
