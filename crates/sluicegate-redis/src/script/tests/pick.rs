//! Random limits of every algorithm and option, with awkward numbers; and clocks that step in any direction.

use std::mem::discriminant;
use std::time::Duration;

use fastrand::Rng;
use sluicegate_core::Limit;
use sluicegate_core::adapter::remote::{Algorithm, LimitParameters};
use sluicegate_core::limit::LimitError;

pub(super) const SECOND: u64 = 1_000_000;
pub(super) const DAY: u64 = 86_400 * SECOND;

fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros.max(1))
}

fn one_of<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.usize(..of.len())]
}

fn count(rng: &mut Rng) -> u64 {
    match rng.u8(..10) {
        0..6 => rng.u64(1..9),
        6 | 7 => one_of(rng, &[13, 97, 101, 1_000_003, 999_999_937, 700_000_000]),
        8 => one_of(rng, &[100, 5_000, 1 << 20, u64::from(u32::MAX)]),
        _ => rng.u64(1..2_000_000),
    }
}

fn period(rng: &mut Rng) -> u64 {
    match rng.u8(..10) {
        0..4 => one_of(rng, &[1, 2, 3, 7, 10, 60, 100, 1_000]),
        4..7 => one_of(rng, &[100_000, SECOND, 11 * SECOND, 60 * SECOND, 3_600 * SECOND, DAY]),
        7 => rng.u64(1..40),
        8 => rng.u64(1..3 * DAY),
        _ => rng.u64(1..100_000) * SECOND,
    }
}

fn plain(rng: &mut Rng, period: u64) -> Result<Limit, LimitError> {
    let (count, burst) = (count(rng), rng.u64(1..30));
    let time = micros(period);
    match rng.u8(..13) {
        0 => Limit::try_per(count, time),
        1 | 2 => Limit::try_per(count, time)?.try_burst(burst),
        3 => Limit::try_per(burst, time)?.try_refill(count, time)?.try_burst(burst),
        4 | 12 => {
            let queue = rng.u64(..8);
            Limit::try_leaky_bucket(count, time)?
                .try_queue(queue)?
                .try_delay_after(rng.u64(..=queue))
        }
        5 => Limit::try_fixed_window(count, time),
        6 => Limit::try_fixed_window(count, time)?.try_from_first(),
        7 | 8 => Limit::try_sliding_log(count.min(200), time),
        9 => {
            let parts = (1..60).map(|parts| parts + burst).find(|parts| period % parts == 0);
            let resolution = micros(period / parts.unwrap_or(1));
            Limit::try_sliding_log(count, time)?.try_resolution(resolution)
        }
        10 => Limit::try_sliding_window(count, time),
        _ => Limit::try_concurrent(count),
    }
}

/// A limit whose numbers stay exact, with some options.
pub(super) fn limit(rng: &mut Rng) -> Limit {
    loop {
        let period = period(rng);
        if let Ok(limit) = plain(rng, period).and_then(|limit| with_options(rng, limit)) {
            return limit;
        }
    }
}

/// Limits for one charge. Half the time they have similar periods, so that one waits for another.
pub(super) fn mixture(rng: &mut Rng, limits: usize) -> Vec<Limit> {
    let (alike, period) = (rng.bool(), period(rng));
    let mut mixture = Vec::new();
    if rng.bool() {
        // A request that waits in its queue has to book ahead in the others.
        let leaky = Limit::leaky_bucket(1, micros(period * rng.u64(1..4))).queue(rng.u64(2..9));
        mixture.push(leaky);
    }
    while mixture.len() < limits {
        let limit = if alike {
            let period = period * rng.u64(1..4);
            plain(rng, period).and_then(|limit| with_options(rng, limit)).ok()
        } else {
            Some(limit(rng))
        };
        mixture.extend(limit);
    }
    mixture
}

fn with_options(rng: &mut Rng, limit: Limit) -> Result<Limit, LimitError> {
    let mut limit = limit;
    // Hundredths of the period in which one token is added.
    let one = limit.period().map_or(SECOND, |period| period.as_micros() as u64) / limit.count();
    let some = |rng: &mut Rng| rng.u8(..5) == 0;
    if some(rng) {
        limit = limit.try_min_gap(micros(one * rng.u64(1..300) / 100))?;
    }
    if some(rng) {
        limit = limit.try_ban(micros(one * rng.u64(1..300) / 100))?;
        if rng.bool() {
            let within = micros(one * rng.u64(1..600) / 100);
            limit = limit.try_ban_after(rng.u64(1..4), within)?;
        }
    }
    if some(rng) {
        limit = limit.try_soft(rng.u64(..300) % limit.capacity())?;
    }
    if rng.u8(..10) < 3 {
        limit = limit.try_count_refused().unwrap_or(limit);
    }
    if some(rng) {
        // Limits with one name and similar numbers share a row, like a limit that has been changed.
        limit = limit.try_named("shared")?;
    }
    if rng.u8(..4) == 0 {
        limit = limit.try_named("shared")?.try_carried()?;
    }
    if rng.u8(..6) == 0 {
        limit = limit.try_shadow()?;
    }
    Ok(limit)
}

/// A carried limit with other numbers, as after a file is reloaded.
pub(super) fn changed(rng: &mut Rng, before: &Limit) -> Limit {
    let algorithm = |limit: &Limit| {
        let algorithm = LimitParameters::of(limit).algorithm;
        let queues = matches!(algorithm, Algorithm::TokenBucket { queues: true, .. });
        (discriminant(&algorithm), queues)
    };
    loop {
        let period = match before.period() {
            // Windows of the same length, with another count.
            Some(period) if rng.bool() => period.as_micros() as u64,
            _ => period(rng),
        };
        let after = plain(rng, period).and_then(|limit| with_options(rng, limit));
        let after = after.and_then(|limit| limit.try_named("shared")?.try_carried());
        let is_next = |after: &Limit| algorithm(after) == algorithm(before);
        if let Some(after) = after.ok().filter(is_next) {
            return after;
        }
    }
}

/// Nothing, one, some, all, and more than the limit ever admits.
pub(super) fn cost(rng: &mut Rng, limit: &Limit) -> u64 {
    let most = limit.capacity();
    match rng.u8(..16) {
        0 => 0,
        1..10 => 1,
        10 | 11 => rng.u64(1..4),
        12 => most,
        13 => rng.u64(..=most),
        14 => most.saturating_sub(1),
        _ => most + rng.u64(1..3),
    }
}

/// What is known when the clock is moved.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) limit: Limit,
    /// The last `retry_after` or the last wait.
    pub(super) told: u64,
}

/// The next moment: a little later, after the last wait, at a border, after a leap, or earlier.
pub(super) fn moment(rng: &mut Rng, now: u64, known: Known) -> u64 {
    let period = known.limit.period().map_or(SECOND, |period| period.as_micros() as u64);
    let token = period / known.limit.count();
    let border = now.next_multiple_of(period);
    let thousandths = |rng: &mut Rng, of: u64| of / 1_000 * rng.u64(..2_500) + of % 1_000;
    match rng.u8(..32) {
        0..6 => now,
        6..10 => now + rng.u64(1..3),
        10..15 => now + thousandths(rng, token),
        15..18 => now + thousandths(rng, period),
        18..22 => now + known.told,
        22 => (now + known.told).saturating_sub(1).max(now),
        23 => now + known.told + 1,
        24..27 => border + rng.u64(..3) - 1,
        27 => now + period / 2 * rng.u64(..5),
        28 => now - rng.u64(1..20),
        29 => now - thousandths(rng, token).min(now / 4),
        30 => now - (thousandths(rng, period) * rng.u64(1..3)).min(now / 4),
        _ => now + DAY * rng.u64(..3),
    }
}
