//! Keys, drawn as they are needed: a list of a million would fill the caches that are measured.

use std::hash::Hash;

use tollgate_axum::{KeyBuf, Part};

/// A key that both sides can use as it is.
pub trait Key: Part + Hash + Eq + Clone + Send + Sync + 'static {
    /// Key number `number`.
    fn number(number: u64) -> Self;
}

impl Key for u64 {
    fn number(number: u64) -> Self {
        number
    }
}

/// A text of 24 bytes, about as long as an API key or an address written out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Text([u8; 24]);

impl Key for Text {
    fn number(number: u64) -> Self {
        let mut text = *b"tenant-7f3a/key-________";
        for (i, byte) in text[16..].iter_mut().enumerate() {
            *byte = b'a' + (number >> (4 * i) & 15) as u8;
        }
        Self(text)
    }
}

impl Part for Text {
    fn write(&self, key: &mut KeyBuf) {
        key.push(&self.0);
    }
}

/// A cheap sequence of numbers below a bound, each as likely as the other (PCG's generator, its upper
/// half).
#[derive(Debug, Clone)]
pub struct Draws {
    state: u64,
    bound: u64,
}

impl Draws {
    /// Numbers below `bound`; another sequence for each `seed`.
    pub fn below(bound: u64, seed: usize) -> Self {
        Self { state: (seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15), bound }
    }

    /// The next one.
    pub fn draw(&mut self) -> u64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.state >> 32) * self.bound) >> 32
    }
}
