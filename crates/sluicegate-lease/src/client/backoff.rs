/// When to ask again: `1 s × 1.3ⁿ`, at most 60 s, after `n` failures in a row, as Doorman's clients do. All waits are
/// shortened by up to a tenth, so that clients that began together do not go on together.
#[derive(Debug, Clone)]
pub(super) struct Backoff {
    failures: i32,
    random: u64,
}

const FIRST: f64 = 1_000.0;
const FACTOR: f64 = 1.3;
const LONGEST: f64 = 60_000.0;

impl Backoff {
    pub(super) fn new(seed: u64) -> Self {
        Self { failures: 0, random: seed }
    }

    /// How long to wait after a failure.
    pub(super) fn failed(&mut self) -> u64 {
        let wait = (FIRST * FACTOR.powi(self.failures)).min(LONGEST);
        self.failures = self.failures.saturating_add(1).min(100);
        self.early(wait as u64)
    }

    /// Whether the last request has failed.
    pub(super) const fn is_waiting(&self) -> bool {
        self.failures > 0
    }

    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// Up to a tenth less than `wait`.
    pub(super) fn early(&mut self, wait: u64) -> u64 {
        // Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (2014).
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        wait - mixed % (wait / 10 + 1)
    }
}
