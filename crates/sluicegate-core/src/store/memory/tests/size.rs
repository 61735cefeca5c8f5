use super::*;

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
