use std::collections::HashMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::snapshot::merged;
use super::*;

const LIMIT: Limit = Limit::per_minute(100).named("api");

fn key(number: u64) -> KeyBuf {
    KeyBuf::of(number)
}

/// Refusals, each of a key in a part. Some keys come far more often than others.
fn refusals() -> impl Strategy<Value = Vec<(u64, usize)>> {
    let key = prop_oneof![3 => 0_u64..3, 2 => 0_u64..20, 1 => 0_u64..200];
    vec((key, 0..PARTS), 0..400)
}

fn exact(refusals: &[(u64, usize)]) -> HashMap<u64, u64> {
    let mut counts = HashMap::new();
    refusals.iter().for_each(|(key, _)| *counts.entry(*key).or_default() += 1);
    counts
}

fn noted(refusals: &[(u64, usize)], room: usize) -> Vec<Summary> {
    let mut parts = vec![Summary::new(room); PARTS];
    // The hash is bad on purpose, so that different keys collide.
    refusals.iter().for_each(|(number, part)| parts[*part].add(number % 7, &key(*number)));
    parts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_exact_count_is_within_the_bounds(refusals in refusals(), room in 1..12_usize) {
        let counts = exact(&refusals);
        let parts = noted(&refusals, room);
        let merged = merged(&parts);
        for (number, count) in &counts {
            match merged.iter().find(|seen| seen.key == key(*number)) {
                Some(seen) => prop_assert!(seen.at_least <= *count && *count <= seen.at_most),
                None => prop_assert!(*count <= parts.iter().map(Summary::at_most_unseen).sum()),
            }
        }
        prop_assert_eq!(parts.iter().map(Summary::total).sum::<u64>(), refusals.len() as u64);
    }

    #[test]
    fn the_bounds_are_apart_by_no_more_than_a_counters_share(
        refusals in refusals(),
        room in 1..12_usize,
    ) {
        for seen in merged(&noted(&refusals, room)) {
            prop_assert!(seen.at_most - seen.at_least <= (refusals.len() / room) as u64);
        }
    }

    #[test]
    fn with_a_counter_for_everybody_the_counts_are_exact(refusals in refusals()) {
        let counts = exact(&refusals);
        let merged = merged(&noted(&refusals, 200));
        prop_assert_eq!(merged.len(), counts.len());
        for (number, count) in counts {
            let seen = merged.iter().find(|seen| seen.key == key(number)).unwrap();
            prop_assert_eq!((seen.at_least, seen.at_most), (count, count));
        }
    }

    #[test]
    fn whoever_has_more_than_one_in_n_refusals_is_shown(
        refusals in refusals(),
        keys in 1..8_usize,
    ) {
        let parts = noted(&refusals, SPARE * keys);
        let shown = MostRefused::of("api", &parts, 0, keys, &ShowKeys::Shown).keys;
        prop_assert!(shown.len() <= keys);
        let share = refusals.len() as u64 / keys as u64;
        for (number, _) in exact(&refusals).into_iter().filter(|(_, count)| *count > share) {
            let who = key(number).legible();
            prop_assert!(shown.iter().any(|key| key.who == who), "{who} is not in {shown:?}");
        }
    }
}

#[test]
fn policies_are_told_apart_and_the_most_refused_comes_first() {
    let watch = Watch::new(8);
    let other = Limit::per_minute(7);
    for (limit, who, times) in [(LIMIT, "alice", 2), (other, "carol", 1), (LIMIT, "bob", 3)] {
        (0..times).for_each(|_| watch.refused(&limit, &KeyBuf::of(who)));
    }
    let snapshot = watch.snapshot();
    let shown = |i: usize| {
        let keys = snapshot[i].keys.iter();
        keys.map(|key| (key.who.as_str(), key.at_least, key.at_most)).collect::<Vec<_>>()
    };
    assert_eq!(snapshot.len(), 2);
    assert_eq!((snapshot[0].policy.as_str(), snapshot[0].refusals), ("api", 5));
    assert_eq!(shown(0), [("bob", 3, 3), ("alice", 2, 2)]);
    assert_eq!((snapshot[1].policy.as_str(), snapshot[1].refusals), ("7/minute", 1));
    assert_eq!(shown(1), [("carol", 1, 1)]);
}

#[test]
fn memory_is_bounded_under_a_flood_of_keys() {
    let watch = Watch::new(4);
    (0..10_000).for_each(|number| watch.refused(&LIMIT, &key(number)));
    let snapshot = watch.snapshot();
    assert_eq!((snapshot[0].refusals, snapshot[0].keys.len()), (10_000, 4));
    let policy = watch.notes.policies.iter().next().unwrap();
    assert!(policy.kept.parts().all(|part| part.bounds().count() <= SPARE * 4));
}

#[test]
fn what_is_redacted_shows_a_digest_and_nothing_else() {
    let open = Watch::new(4);
    let redacted = open.clone().redacted(b"secret");
    redacted.refused(&LIMIT, &KeyBuf::of("alice"));
    assert_eq!(open.snapshot()[0].keys[0].who, "alice");
    // The digest with which a Redis store names rows, under the same secret.
    assert_eq!(redacted.snapshot()[0].keys[0].who, "$8712469beb2cb060443f58b5c8ae0ff8");
    assert!(!format!("{redacted:?}").contains("alice"));
}

#[test]
fn a_refusal_never_waits_and_what_was_missed_is_in_the_bounds() {
    let watch = Watch::new(4);
    watch.refused(&LIMIT, &KeyBuf::of("alice"));
    let policy = &watch.notes.policies.iter().next().unwrap().kept;
    let held: Vec<_> = policy.parts().collect();
    watch.refused(&LIMIT, &KeyBuf::of("alice"));
    drop(held);
    let shown = watch.snapshot().remove(0);
    assert_eq!((shown.refusals, shown.missed), (2, 1));
    assert_eq!((shown.keys[0].at_least, shown.keys[0].at_most), (1, 2));
}

#[test]
fn threads_note_together() {
    let watch = Watch::new(4);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..500).for_each(|_| watch.refused(&LIMIT, &KeyBuf::of("alice"))));
        }
    });
    let shown = watch.snapshot().remove(0);
    assert_eq!(shown.refusals, 4_000);
    assert!(shown.keys[0].at_least <= 4_000 && 4_000 <= shown.keys[0].at_most);
    assert_eq!(shown.keys[0].at_least + shown.missed, 4_000);
}

#[test]
fn what_is_cleared_begins_anew() {
    let watch = Watch::new(4);
    watch.refused(&LIMIT, &KeyBuf::of("alice"));
    watch.clear();
    assert_eq!(watch.snapshot()[0].refusals, 0);
    watch.refused(&LIMIT, &KeyBuf::of("bob"));
    let shown = watch.snapshot().remove(0);
    assert_eq!((shown.keys.len(), shown.keys[0].who.as_str()), (1, "bob"));
}

#[test]
#[should_panic(expected = "a watch shows from 1 to 1024 keys of each policy, not 0")]
fn a_watch_for_nobody_is_refused() {
    let _ = Watch::new(0);
}
