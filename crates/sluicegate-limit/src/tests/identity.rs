//! Which limits share a state for one key, and which must not.

use proptest::prelude::*;

use super::super::Limit;
use super::{NOW, SECOND, micros, secs};

fn share(a: Limit, b: Limit) -> bool {
    a.id() == b.id()
}

#[test]
fn equal_limits_share_a_state() {
    assert!(share(Limit::per_minute(10), Limit::per(10, secs(60))));
    assert!(share(Limit::per_minute(10).burst(3), Limit::per_minute(10).burst(3)));
}

#[test]
fn limits_without_a_name_differ_by_algorithm_count_and_period() {
    let limits = [
        Limit::per_minute(10),
        Limit::per_minute(11),
        Limit::per_hour(10),
        Limit::per_minute(10).refill(10, secs(60)),
        Limit::per_minute(10).refill(1, secs(6)),
        Limit::leaky_bucket(10, secs(60)),
        Limit::fixed_window(10, secs(60)),
        Limit::fixed_window(10, secs(60)).from_first(),
        Limit::fixed_window(11, secs(60)),
        Limit::sliding_log(10, secs(60)),
        Limit::sliding_log(11, secs(60)),
        Limit::sliding_log(10, secs(60)).resolution(secs(1)),
        Limit::sliding_window(10, secs(60)),
        Limit::sliding_window(11, secs(60)),
        Limit::concurrent(10),
        Limit::concurrent(11),
    ];
    for (i, a) in limits.iter().enumerate() {
        for b in &limits[..i] {
            assert!(!share(*a, *b), "{a} and {b}");
        }
    }
}

#[test]
fn rates_that_are_equal_in_lowest_terms_are_still_two_limits() {
    // One admits sixty at once, the other one: spent together, each would be too strict.
    assert!(!share(Limit::per_minute(60), Limit::per_second(1)));
    assert!(share(Limit::per_minute(60).named("a"), Limit::per_second(1).named("a")));
}

#[test]
fn limits_with_different_names_share_nothing() {
    assert!(!share(Limit::per_minute(10).named("a"), Limit::per_minute(10).named("b")));
    assert!(!share(Limit::per_minute(10).named("a"), Limit::per_minute(10)));
    assert!(!share(Limit::per_minute(10).named("a"), Limit::fixed_window(10, secs(60)).named("a")));
}

#[test]
fn a_name_keeps_what_was_spent_when_a_bucket_s_burst_changes() {
    let (before, after) =
        (Limit::per_minute(60).named("a"), Limit::per_minute(60).burst(10).named("a"));
    assert!(share(before, after));
    let mut state = before.fresh();
    assert!(before.take(&mut state, NOW, 9).is_admitted());
    assert_eq!(after.peek(&state, NOW, 1).remaining(), Some(1));
}

#[test]
fn a_name_keeps_what_was_spent_when_a_log_s_or_a_counter_s_count_changes() {
    let logs = [5, 3].map(|count| Limit::sliding_log(count, secs(60)).named("a"));
    let counters = [5, 3].map(|count| Limit::sliding_window(count, secs(60)).named("a"));
    for [before, after] in [logs, counters] {
        assert!(share(before, after));
        let mut state = before.fresh();
        assert!(before.take(&mut state, NOW, 4).is_admitted());
        assert_eq!(after.peek(&state, NOW, 1).remaining(), Some(0), "{after}");
        assert!(after.take(&mut state, NOW + 120 * SECOND, 3).is_admitted(), "{after}");
    }
}

/// Five of a hundred would be read by a limit of one as booked into the next windows.
#[test]
fn a_fixed_window_with_another_count_is_another_limit() {
    let of = |count| Limit::fixed_window(count, secs(60)).named("a");
    assert!(!share(of(100), of(1)));
}

/// If a burst needs a coarser tick to stay exact, both words of the state have another meaning.
#[test]
fn states_counted_in_different_ticks_are_never_shared() {
    let fine = Limit::per_day(1_000_003).burst(10).named("a");
    let coarse = Limit::per_day(1_000_003).burst(1_000_003).named("a");
    assert!(!share(fine, coarse));
}

#[test]
fn options_that_are_only_reported_change_no_identity() {
    let limit = Limit::sliding_log(10, secs(60));
    assert!(share(limit, limit.soft(5)));
    assert!(share(limit, limit.shadow()));
}

/// Two routes with such limits on one key would share a row without anybody noticing.
#[test]
fn limits_without_a_name_that_differ_in_an_option_are_two() {
    let (bucket, log) = (Limit::per_minute(10), Limit::sliding_log(10, secs(60)));
    let leaky = Limit::leaky_bucket(10, secs(60));
    let limits = [
        bucket,
        bucket.burst(3),
        bucket.min_gap(micros(5_000)),
        bucket.min_gap(micros(6_000)),
        bucket.ban(secs(30)),
        bucket.ban(secs(31)),
        bucket.ban(secs(30)).ban_after(3, secs(60)),
        bucket.ban(secs(30)).ban_after(4, secs(60)),
        bucket.ban(secs(30)).ban_after(3, secs(61)),
        bucket.ban(secs(30)).min_gap(micros(5_000)),
        bucket.refill(5, secs(30)),
        bucket.refill(5, secs(30)).burst(4),
        leaky,
        leaky.queue(3),
        leaky.queue(3).delay_after(1),
        log,
        log.count_refused(),
        Limit::sliding_window(10, secs(60)),
        Limit::sliding_window(10, secs(60)).count_refused(),
    ];
    for (i, a) in limits.iter().enumerate() {
        for b in &limits[..i] {
            assert!(!share(*a, *b), "{a} and {b}");
        }
    }
}

/// Few different numbers, so that pairs are often alike.
fn near() -> impl Strategy<Value = Limit> {
    let kinds =
        prop::sample::select(vec!["", "leaky ", "fixed ", "log ", "sliding ", "stepped", "first"]);
    let options = prop::collection::vec(
        prop::sample::select(vec![
            "min-gap 5ms",
            "min-gap 6ms",
            "ban 30 s",
            "ban 31 s",
            "ban 30 s after 2 in 9 s",
            "count-refused",
            "soft 1",
            "shadow",
            "burst 3",
            "burst 4",
            "queue 3",
            "queue 4",
            "delay-after 1",
            "resolution 1 second",
        ]),
        0..3,
    );
    (kinds, 2_u64..5, prop::sample::select(vec!["second", "minute"]), options).prop_filter_map(
        "no limit",
        |(spec, count, period, options)| {
            let (before, after) = match spec {
                "stepped" => ("", " stepped"),
                "first" => ("fixed ", " from-first"),
                spec => (spec, ""),
            };
            let text = format!("{before}{count}/{period}{after} {}", options.join(" "));
            text.trim().parse().ok()
        },
    )
}

proptest! {
    #![proptest_config(crate::tests::cases(1000))]

    #[test]
    fn two_limits_without_a_name_share_a_row_only_if_they_decide_alike(a in near(), b in near()) {
        let told = |limit: Limit| Limit { soft: None, shadow: false, plain: true, ..limit };
        prop_assert_eq!(share(a, b), told(a) == told(b), "{} and {}", a, b);
    }
}

/// Identities are in Redis, where processes of several versions meet. A limit whose identity changed would begin anew.
#[test]
fn identities_stay_the_same_in_all_versions() {
    let pinned = [
        ("10/minute", [0x4d6b_6a07_0d5a_d5e9, 0x895d_82fe_8d5e_7c7b, 0x12fc_2d20_e423_37fa]),
        (
            "10/minute burst 3",
            [0x6362_fa97_06da_258e, 0x895d_82fe_8d5e_7c7b, 0x12fc_2d20_e423_37fa],
        ),
        (
            "10/minute stepped burst 10",
            [0x9f62_1748_63d3_b6c2, 0x433d_7a8a_68f1_ccfc, 0xa0b1_d7da_cf6c_a74c],
        ),
        (
            "leaky 10/minute queue 5",
            [0x562b_0ba2_4b3c_80cf, 0x2f34_11c2_ae30_28d0, 0x6786_6337_c50c_7589],
        ),
        ("fixed 10/minute", [0x903d_ed72_5b41_dd13, 0x28c2_3351_69a5_dd03, 0xbe65_a30a_0330_9453]),
        (
            "fixed 10/minute from-first",
            [0xc055_0926_063e_8fae, 0x8c4d_0e42_9f82_5d9e, 0xbe65_a30a_0330_9453],
        ),
        (
            "sliding 10/minute",
            [0xc7de_5707_7948_743b, 0xe5e2_d656_c144_acdb, 0x8547_4266_f8db_0ee8],
        ),
        (
            "log 10/minute resolution 1 second",
            [0xed91_f79c_a9f2_099b, 0xd0b5_e6db_1a74_907b, 0x7122_86ef_f86f_b90f],
        ),
        ("concurrent 10", [0xa73b_db6b_cff4_5990, 0xec04_f304_3b81_bee2, 0xec04_f304_3b81_bee2]),
    ];
    for (text, expected) in pinned {
        let limit: Limit = text.parse().unwrap();
        let named = limit.named("a");
        let carried = if text.starts_with("concurrent") { named } else { named.carried() };
        let ids = [limit, named, carried].map(|limit| limit.id());
        assert_eq!(ids, expected, "{text}, without a name, named, and carried over");
    }
}
