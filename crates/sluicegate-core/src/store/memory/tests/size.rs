use super::super::bucket::Bucket;
use super::super::one_word::OneWord;
use super::super::row::{FourRows, FullState, TwoWords};
use super::*;
use crate::limit::State;

const ONE_WORD: Limit = Limit::per_minute(60);
const TWO_WORDS: Limit = Limit::fixed_window(60, MINUTE).from_first();
const FULL_STATE: Limit = Limit::sliding_log(60, MINUTE);

#[test]
fn a_small_store_is_counted_exactly() {
    let (store, clock) = memory(1_000);
    assert_eq!(store.about_len(), 0);
    for (limit, keys) in [(ONE_WORD, 300), (TWO_WORDS, 40), (FULL_STATE, 5)] {
        (0..keys).for_each(|number| assert!(admits(&store, limit, number)));
    }
    assert_eq!(store.about_len(), 345);
    clock.advance(MINUTE + EXPIRED);
    assert_eq!(store.about_len(), 0);
}

#[test]
fn the_size_of_a_large_store_is_known_within_a_tenth() {
    let keys = if cfg!(miri) { return } else { 100_000 };
    for (limit, capacity) in [(ONE_WORD, 400_000), (TWO_WORDS, 800_000)] {
        let (store, _clock) = memory(capacity);
        (0..keys).for_each(|number| assert!(admits(&store, limit, number)));
        let about = store.about_len() as u64;
        assert_eq!(store.len() as u64, keys);
        assert!(about.abs_diff(keys) < keys / 10, "{about} of {keys}");
    }
}

/// What a table takes for each key of its capacity, in tenths of a byte.
fn tenths_for_each_key<B: Bucket>() -> usize {
    size_of::<B>() * (100 + B::SPARE) / (10 * B::ROWS)
}

#[test]
fn a_key_takes_as_many_bytes_as_the_documentation_says() {
    if cfg!(not(target_pointer_width = "64")) {
        return;
    }
    assert_eq!(tenths_for_each_key::<OneWord>(), 384);
    assert_eq!(tenths_for_each_key::<FourRows<TwoWords>>(), 384);
    assert_eq!(tenths_for_each_key::<FourRows<FullState>>(), 384);
    // glibc adds 8 bytes, and rounds up to 16.
    let allocated = |bytes: usize| (bytes + 8).next_multiple_of(16);
    assert_eq!(allocated(size_of::<State>()), 144);
    let (limit, mut state) = (Limit::sliding_log(8, MINUTE), State::default());
    limit.take(&mut state, 0, 1);
    let log = size_of_val(&**state.log.as_ref().expect("a log"));
    // Two words for each of the first eight entries.
    let with_log = 38 + [size_of::<State>(), log, 8 * 16].map(allocated).iter().sum::<usize>();
    assert!((385..=395).contains(&with_log), "{with_log}");
    let guide = include_str!("../mod.rs");
    assert!(guide.contains("144 bytes with glibc") && guide.contains("38.4 bytes for each key"));
}
