//! The bytes of a [`State`], for what keeps states outside the memory of a process.
//!
//! All numbers are unsigned, of 64 bits, the lowest byte first. A state is one byte that says which parts follow, the two
//! words, and these parts in this order:
//!
//! | bit | part | numbers |
//! | --- | --- | --- |
//! | 1 | gap | 2 |
//! | 2 | ban: since when, for how long, what was refused since | 3 |
//! | 4 | refusals that count towards a ban: since when, how many | 2 |
//! | 8 | the numbers that have written the words, since when | 5 |
//! | 16 | other accounts: since when and for how long new ones are shut, what they owe, how many there are; then for each its words, its numbers, since when | 4 + 7 for each |
//! | 32 | log: its clock, how many entries there are; then for each its stamp and its cost | 2 + 2 for each |
//!
//! What the numbers mean depends on the limit, so they are kept beside its [identity](crate::Limit::id). A change of this
//! format needs a new number of the format that contains it.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::algorithm::sliding_log::{Log, MOST_ENTRIES};
use crate::state::{Account, MOST_ACCOUNTS, OtherAccounts, State, WrittenBy};

const GAP: u8 = 1;
const BAN: u8 = 2;
const STRIKES: u8 = 4;
const WRITTEN: u8 = 8;
const OTHERS: u8 = 16;
const LOG: u8 = 32;

/// Appends the bytes of `state`. Parts in which nothing is remembered are left out.
pub fn write_state(state: &State, bytes: &mut Vec<u8>) {
    let others = state.others.as_deref();
    let others = others.filter(|others| !others.accounts.is_empty() || others.shut != [0; 2]);
    let log = state.log.as_deref().map(Log::numbers);
    let log = log.filter(|(_, entries)| !entries.is_empty());
    let [since, banned] = state.ban;
    let ban = [since, banned, state.refused];
    let parts = [
        (GAP, state.gap != [0; 2]),
        (BAN, ban != [0; 3]),
        (STRIKES, state.strikes != [0; 2]),
        (WRITTEN, state.written != WrittenBy::default()),
        (OTHERS, others.is_some()),
        (LOG, log.is_some()),
    ];
    let parts = parts.into_iter().filter(|(_, is_there)| *is_there);
    let parts = parts.fold(0, |all, (bit, _)| all | bit);
    bytes.push(parts);
    let mut put = |numbers: &[u64]| {
        numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    };
    put(&state.words);
    if parts & GAP != 0 {
        put(&state.gap);
    }
    if parts & BAN != 0 {
        put(&ban);
    }
    if parts & STRIKES != 0 {
        put(&state.strikes);
    }
    if parts & WRITTEN != 0 {
        put(&state.written.parameters);
        put(&[state.written.since]);
    }
    if let Some(OtherAccounts { accounts, shut, owed }) = others {
        put(shut);
        put(&[*owed, accounts.len() as u64]);
        for Account { words, written } in accounts {
            put(words);
            put(&written.parameters);
            put(&[written.since]);
        }
    }
    if let Some((seen, entries)) = log {
        put(&[seen, entries.len() as u64]);
        entries.iter().for_each(|entry| put(entry));
    }
}

/// Reads what [`write_state`] wrote. `None` if it was something else.
pub fn read_state(bytes: &[u8]) -> Option<State> {
    let (parts, bytes) = bytes.split_first()?;
    let has = |part| parts & part != 0;
    let mut numbers = Numbers(bytes);
    let mut state = State::of(numbers.next()?);
    if has(GAP) {
        state.gap = numbers.next()?;
    }
    if has(BAN) {
        let [since, banned, refused] = numbers.next()?;
        (state.ban, state.refused) = ([since, banned], refused);
    }
    if has(STRIKES) {
        state.strikes = numbers.next()?;
    }
    if has(WRITTEN) {
        state.written = numbers.written()?;
    }
    if has(OTHERS) {
        let [from, shut, owed, count] = numbers.next()?;
        let count = usize::try_from(count).ok().filter(|count| *count <= MOST_ACCOUNTS)?;
        let account = |_| Some(Account { words: numbers.next()?, written: numbers.written()? });
        let accounts = (0..count).map(account).collect::<Option<_>>()?;
        state.others = Some(Box::new(OtherAccounts { accounts, shut: [from, shut], owed }));
    }
    if has(LOG) {
        let [seen, count] = numbers.next()?;
        let count = usize::try_from(count).ok().filter(|count| *count <= MOST_ENTRIES)?;
        let entries = (0..count).map(|_| numbers.next()).collect::<Option<Vec<_>>>()?;
        state.log = Some(Box::new(Log::of(seen, &entries)?));
    }
    let all = GAP | BAN | STRIKES | WRITTEN | OTHERS | LOG;
    (numbers.0.is_empty() && parts & !all == 0).then_some(state)
}

/// What is left to be read.
struct Numbers<'b>(&'b [u8]);

impl Numbers<'_> {
    fn next<const N: usize>(&mut self) -> Option<[u64; N]> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            let (bytes, rest) = self.0.split_first_chunk()?;
            *number = u64::from_le_bytes(*bytes);
            self.0 = rest;
        }
        Some(numbers)
    }

    fn written(&mut self) -> Option<WrittenBy> {
        let [a, b, c, d, since] = self.next()?;
        Some(WrittenBy { parameters: [a, b, c, d], since })
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::Limit;

    const NOW: u64 = 1_700_000_000_000_000;
    const MINUTE: Duration = Duration::from_secs(60);

    fn states() -> Vec<State> {
        let mut carried = State::default();
        for count in 5..14 {
            let limit = Limit::per_minute(count).named("a").carried();
            limit.take(&mut carried, NOW + count, 4);
        }
        let banning = Limit::per_minute(2).ban(MINUTE).ban_after(3, MINUTE).min_gap(MINUTE / 60);
        let log = Limit::sliding_log(5, MINUTE);
        let mut states = vec![State::default(), carried];
        for limit in [banning, log, Limit::sliding_window(8, MINUTE), Limit::concurrent(3)] {
            let mut state = State::default();
            for step in 0..7 {
                limit.take(&mut state, NOW + step * 2_000_000, 1);
                states.push(state.clone());
            }
        }
        states
    }

    #[test]
    fn a_state_is_read_as_it_was_written() {
        for state in states() {
            let mut bytes = Vec::new();
            write_state(&state, &mut bytes);
            let mut again = Vec::new();
            let read = read_state(&bytes).expect("it was just written");
            write_state(&read, &mut again);
            assert_eq!(bytes, again);
            assert_eq!(read.words, state.words);
            let (read, state) =
                (crate::remote::StateFields::from(&read), crate::remote::StateFields::from(&state));
            assert_eq!(read, state);
        }
    }

    #[test]
    fn what_is_cut_short_or_longer_is_refused() {
        for state in states() {
            let mut bytes = Vec::new();
            write_state(&state, &mut bytes);
            for length in 0..bytes.len() {
                assert!(read_state(&bytes[..length]).is_none(), "{length} of {bytes:?}");
            }
            bytes.push(0);
            assert!(read_state(&bytes).is_none());
        }
    }

    #[test]
    fn the_format_is_pinned() {
        let mut state = State::of([1, 2]);
        state.gap = [3, 4];
        (state.ban, state.refused, state.strikes) = ([5, 6], 7, [8, 9]);
        state.written = WrittenBy { parameters: [10, 11, 12, 13], since: 14 };
        let account = Account {
            words: [19, 20],
            written: WrittenBy { parameters: [21, 22, 23, 24], since: 25 },
        };
        let accounts = Vec::from([account]);
        state.others = Some(Box::new(OtherAccounts { accounts, shut: [15, 16], owed: 17 }));
        state.log = Log::of(26, &[[28, 29]]).map(Box::new);
        let mut expected = Vec::from([63]);
        let counts = [(18, 1), (27, 1)];
        for number in 1..=29_u64 {
            let count = counts.iter().find(|(at, _)| *at == number);
            let number = count.map_or(number, |(_, count)| *count);
            expected.extend_from_slice(&number.to_le_bytes());
        }
        let mut bytes = Vec::new();
        write_state(&state, &mut bytes);
        assert_eq!(bytes, expected);
        assert_eq!(read_state(&bytes), Some(state));
        bytes.clear();
        write_state(&State::of([1, 2]), &mut bytes);
        assert_eq!(bytes.len(), 17);
    }
}
