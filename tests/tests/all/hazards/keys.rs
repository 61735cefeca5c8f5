//! Keys: how many there are, and which client they belong to.

use std::net::IpAddr;

use sluicegate_core::Limit;
use sluicegate_core::adapter::Charge;
use sluicegate_core::key::{KeyBuf, Part};
use sluicegate_core::limit::WhenFull;
use sluicegate_core::store::Store;
use sluicegate_tests::answer;

use super::*;

fn key(part: impl Part) -> KeyBuf {
    let mut key = KeyBuf::new();
    part.write(&mut key);
    key
}

/// 300,000 keys in a store for 10,000: memory stays within its bound, and every limited key stays limited. (The
/// benchmarks measure ten million keys, and how long a decision takes meanwhile.)
#[test]
fn unbounded_keys_and_eviction_resets_a_limit() {
    let subject = memory_of(10_000);
    let limit = Limit::per_hour(2).when_full(WhenFull::Admit);
    let limited: Vec<_> = (0_u64..100).map(|number| key(("limited", number))).collect();
    let mut turned_away = 0;
    for number in 0_u64..100_000 {
        if let Some(limited) = limited.get(number as usize) {
            assert!(subject.take(&Charge::of(limit, *limited, 2)).is_admitted());
        }
        let flood = Charge::of(limit, key(number), 1);
        turned_away += u64::from(answer(subject.store.take(&flood)).is_err());
        subject.pass(TICK);
        if number > 100 && number % 97 == 0 {
            let again = Charge::of(limit, limited[number as usize % 100], 1);
            assert!(!subject.take(&again).is_admitted(), "after {number} keys");
        }
    }
    assert_eq!(subject.store.turned_away(), turned_away);
    assert!((10_000..18_100).contains(&subject.store.len()));
    assert_eq!(turned_away + subject.store.len() as u64, 100_100);
}

/// The clean-up task ends when the first clone is dropped. There is no such task here.
#[test]
fn clean_up_task_dies_with_the_first_clone_dropped() {
    let subject = memory_of(1_000);
    drop(subject.store.clone());
    for number in 0_u64..30_000 {
        subject.pass(Duration::from_millis(10));
        drop(subject.store.clone());
        // 500 keys at a time, each of which takes five seconds to recover.
        let charge = Charge::of(Limit::per_minute(12), key(number), 1);
        assert!(subject.take(&charge).is_admitted());
    }
    assert_eq!(subject.store.turned_away(), 0);
}

/// Every IPv4 client behind a dual-stack socket shares one bucket.
#[test]
fn ipv4_mapped_ipv6_all_in_one_bucket() {
    let address = |text: &str| key(text.parse::<IpAddr>().expect("an address"));
    assert_eq!(address("::ffff:1.2.3.4"), address("1.2.3.4"));
    assert_ne!(address("::ffff:9.9.9.9"), address("1.2.3.4"));

    let subject = memory();
    let one = |text| subject.take(&Charge::of(Limit::per_hour(1), address(text), 1)).is_admitted();
    assert!(one("::ffff:1.2.3.4"));
    assert!(!one("1.2.3.4"));
    assert!(one("::ffff:9.9.9.9"));
    assert!(one("::9.9.9.9"));
}

/// Parts run into each other: `ab`, `c` becomes the same key as `a`, `bc`.
#[test]
fn parts_of_a_key_run_into_each_other() {
    let subject = memory();
    let one = |part: (&str, &str)| {
        subject.take(&Charge::of(Limit::per_hour(1), key(part), 1)).is_admitted()
    };
    assert!(one(("ab", "c")));
    assert!(one(("a", "bc")));
    assert!(one(("", "abc")));
    assert!(!one(("ab", "c")));
}

/// The store failed, and the client is told that it sent too many requests.
#[test]
fn store_failure_answered_as_429() {
    let subject = memory_of(1);
    let limit = Limit::per_hour(1).when_full(WhenFull::Admit);
    let flood = |number: u64| Charge::of(limit, key(number), 1);
    let errors = (0..100).filter_map(|number| answer(subject.store.take(&flood(number))).err());
    assert!(errors.inspect(|error| assert!(error.is_full())).count() > 80);
}
