//! Tests of the arithmetic as a whole. Tests of one algorithm are in its file.

mod accounts;
mod against_model;
mod bans;
mod carried;
mod debts;
mod identity;
mod making;
mod model;
mod moved;
mod never;
mod options;
mod over;
mod shadow;
mod strategies;
mod text;
mod worked_examples;

mod promises;

use std::env;
use std::time::Duration;

use proptest::test_runner::Config;

use super::{Limit, State};

pub(super) const SECOND: u64 = 1_000_000;
pub(super) const MINUTE: u64 = 60 * SECOND;
pub(super) const HOUR: u64 = 60 * MINUTE;
pub(super) const DAY: u64 = 24 * HOUR;

/// 2026-01-01 00:00:00 UTC: a border of every window that divides a day.
pub(super) const NOW: u64 = 1_767_225_600 * SECOND;

/// Draws few cases, for short turns between a change and its test, and as many as `PROPTEST_CASES` says where it is
/// set, as `cargo xtask prove properties` does.
pub(super) fn cases(few: u32) -> Config {
    match env::var_os("PROPTEST_CASES") {
        Some(_) => Config::default(),
        None => Config::with_cases(few),
    }
}

pub(super) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(super) fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

/// Whether `limit` admits one more request at `now`. If so, it is spent.
pub(super) fn admits(limit: Limit, state: &mut State, now: u64) -> bool {
    limit.take(state, now, 1).is_admitted()
}

/// How many requests of cost 1 it admits at `now`, up to `most`.
pub(super) fn admitted(limit: Limit, state: &mut State, now: u64, most: u64) -> u64 {
    (0..most).take_while(|_| admits(limit, state, now)).count() as u64
}
