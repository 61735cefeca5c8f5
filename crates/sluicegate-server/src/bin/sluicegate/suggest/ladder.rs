//! Numbers that limits are tried with, and numbers that people write.

/// A window that counts are of.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) name: &'static str,
    pub(super) seconds: u32,
}

pub(super) const WINDOWS: [Window; 5] = [
    Window { name: "second", seconds: 1 },
    Window { name: "10 seconds", seconds: 10 },
    Window { name: "minute", seconds: 60 },
    Window { name: "hour", seconds: 3_600 },
    Window { name: "day", seconds: 86_400 },
];

pub(super) const MINUTE: usize = 2;
pub(super) const HOUR: usize = 3;
pub(super) const DAY: usize = 4;

/// How many rates the arrivals of a client are compared with: from 10 an hour to 800 a second, each half as much again as
/// the one before. What is chosen is rounded to numbers that are further apart than that.
pub(super) const RATES: usize = 32;

/// The rates, for each second.
pub(super) fn rates() -> [f32; RATES] {
    std::array::from_fn(|index| (10.0 / 3_600.0 * 1.5_f64.powi(index as i32)) as f32)
}

/// Candidates for a limit of a window.
pub(super) const CANDIDATES: usize = 46;

/// 1, 2, 3, 5 and 6 times each power of ten.
pub(super) fn candidates() -> [u64; CANDIDATES] {
    std::array::from_fn(|index| [1, 2, 3, 5, 6][index % 5] * 10_u64.pow((index / 5) as u32))
}

/// The least number of at least this much that people write: 1, 1.5, 2, 3, 4, 5, 6 or 8 times a power of ten.
pub(super) fn round_up(number: f64) -> u64 {
    let number = number.clamp(1.0, 1e15);
    let mut power = 1.0;
    loop {
        for step in [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0] {
            let round: f64 = step * power;
            // Not 1.5 itself. A hair is no reason to take the next number.
            if round.fract() == 0.0 && round >= number * (1.0 - 1e-9) {
                return round as u64;
            }
        }
        power *= 10.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_those_that_people_write() {
        for (number, expected) in [
            (0.0, 1),
            (1.0, 1),
            (1.1, 2),
            (6.1, 8),
            (8.1, 10),
            (10.5, 15),
            (101.0, 150),
            (810.0, 1_000),
            (5e9, 5_000_000_000),
        ] {
            assert_eq!(round_up(number), expected, "{number}");
        }
        assert_eq!(candidates()[..7], [1, 2, 3, 5, 6, 10, 20]);
    }
}
