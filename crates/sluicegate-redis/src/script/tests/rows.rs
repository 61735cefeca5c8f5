//! The content of a row, read from its bytes: the format that other processes read, too.

use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::State;
use sluicegate_core::adapter::remote::{Account, Algorithm, LimitParameters, StateFields};

/// What `row` holds of `limit`. Stamps that were taken out of the middle of a log are skipped.
pub(super) fn held(limit: &Limit, row: &[u8]) -> StateFields {
    let numbers = LimitParameters::of(limit);
    let mut held = StateFields::default();
    let counts_refusals = numbers.after > 0 || numbers.carried;
    if let Algorithm::SlidingLog { .. } = numbers.algorithm {
        let [seen, total, head, len, gap1, gap2, ban1, ban2, refused] = doubles(&row[..72]);
        let head_size = if counts_refusals { 88 } else { 72 };
        if counts_refusals {
            held.strikes = doubles(&row[72..88]);
        }
        let live = &row[head_size + 16 * head as usize..][..16 * len as usize];
        held.entries = live.chunks(16).map(doubles).filter(|[_, cost]| *cost > 0).collect();
        assert_eq!(held.entries.iter().map(|[_, cost]| cost).sum::<u64>(), total);
        (held.seen, held.gap, held.ban, held.refused) = (seen, [gap1, gap2], [ban1, ban2], refused);
        return held;
    }
    let (cell, mut rest) = row.split_at(16);
    if let Algorithm::Concurrency { .. } = numbers.algorithm {
        let head = if numbers.carried {
            96
        } else if counts_refusals {
            56
        } else {
            40
        };
        let (words, holders) = rest.split_at(if numbers.extra_state { head } else { 0 });
        rest = words;
        let holders: Vec<[u64; 6]> = holders.chunks(48).map(doubles).collect();
        let sum: u64 = holders.iter().map(|[_, held, ..]| held).sum();
        assert_eq!(doubles(&cell[..8]), [sum], "a row tells what all hold");
    }
    held.words = cell_of(&numbers.algorithm, cell);
    if numbers.extra_state {
        let (words, rest) = rest.split_at(40);
        let [gap1, gap2, ban1, ban2, refused] = doubles(words);
        (held.gap, held.ban, held.refused) = ([gap1, gap2], [ban1, ban2], refused);
        let (strikes, rest) = rest.split_at(if counts_refusals { 16 } else { 0 });
        if counts_refusals {
            held.strikes = doubles(strikes);
        }
        if numbers.carried {
            let (own, others) = rest.split_at(40);
            let accounts = others.split_at_checked(24).map_or(others, |(words, accounts)| {
                let [since, time, owed] = doubles(words);
                (held.shut, held.owed) = ([since, time], owed);
                accounts
            });
            let own = account(held.words, own);
            held.accounts.extend(Some(own).filter(|own| own.parameters != [0; 4]));
            held.accounts.extend(accounts.chunks(56).map(|other| {
                let (cell, written) = other.split_at(16);
                account(cell_of(&numbers.algorithm, cell), written)
            }));
        } else {
            assert!(rest.is_empty(), "nothing else belongs there");
        }
    } else {
        assert!(rest.is_empty(), "a narrow row is two words");
    }
    held
}

/// The words of an algorithm. A sliding window has two counts of 32 bits in one word.
fn cell_of(algorithm: &Algorithm, cell: &[u8]) -> [u64; 2] {
    match algorithm {
        Algorithm::SlidingWindow { .. } => {}
        Algorithm::Concurrency { .. } => return [doubles::<2>(cell)[0], 0],
        _ => return doubles(cell),
    }
    let count = |at: usize| u64::from(u32::from_le_bytes(cell[at..at + 4].try_into().unwrap()));
    let [index] = doubles(&cell[..8]);
    [index, count(8) << 32 | count(12)]
}

fn account(cell: [u64; 2], written: &[u8]) -> Account {
    let [first, second, third, fourth, since] = doubles(written);
    Account { parameters: [first, second, third, fourth], words: cell, since }
}

/// The same, whichever account is in front.
pub(super) fn in_any_order(mut held: StateFields) -> StateFields {
    if !held.accounts.is_empty() {
        held.words = [0; 2];
        held.accounts.sort_unstable();
    }
    held
}

fn doubles<const N: usize>(bytes: &[u8]) -> [u64; N] {
    assert_eq!(bytes.len(), 8 * N);
    std::array::from_fn(|i| {
        let number = f64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().unwrap());
        assert!(
            number >= 0.0 && number.fract() == 0.0 && number < (1_u64 << 53) as f64,
            "{number}"
        );
        number as u64
    })
}

/// Whether one became the other by dropping old stamps, and how many.
pub(super) fn dropped(before: &StateFields, after: &StateFields) -> Option<usize> {
    let gone = before.entries.len().checked_sub(after.entries.len())?;
    let mut rest = before.clone();
    rest.entries.drain(..gone);
    (rest == *after).then_some(gone)
}

/// How much longer a row may exist than it matters: for a bucket, as long as it mattered when its words were written.
pub(super) fn slack(limit: &Limit, state: &State) -> Duration {
    let numbers = LimitParameters::of(limit);
    let tick = match numbers.algorithm {
        Algorithm::TokenBucket { tick, .. } => tick,
        Algorithm::SteppedBucket { .. } => 1,
        _ => return Duration::ZERO,
    };
    let written = StateFields::from(state).words[0] * tick;
    let worth = (!numbers.extra_state).then(|| limit.fresh_in(state, written)).flatten();
    worth.unwrap_or_default()
}
