//! Keys, and the order in which they come.
//!
//! A key is made at the moment it is asked about, from its number, as a service finds the keys of its
//! requests in memory that it has just read into. A list of ten million keys would measure the list.

use std::fmt::{Debug, Write};
use std::hash::Hash;
use std::mem;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use sluicegate_axum::key::Part;

/// A key that every contender can use, as it is or as text.
pub trait Key: Part + Hash + Eq + Clone + Debug + Send + Sync + 'static {
    /// Its name in a table.
    const NAME: &'static str;

    /// Key number `number`.
    fn number(number: u64) -> Self;

    /// Becomes key number `number`, without allocating.
    fn renumber(&mut self, number: u64) {
        *self = Self::number(number);
    }

    /// The key for limiters that know keys as text only: written into `buffer`, unless it is text.
    fn text<'a>(&'a self, buffer: &'a mut String) -> &'a str;
}

/// The one key of a limit for all clients.
impl Key for () {
    const NAME: &'static str = "`Global`";

    fn number(_: u64) -> Self {}

    fn text<'a>(&'a self, _: &'a mut String) -> &'a str {
        "global"
    }
}

impl Key for u64 {
    const NAME: &'static str = "`u64`";

    #[inline]
    fn number(number: u64) -> Self {
        number
    }

    /// Sixteen hexadecimal digits, which take a third of the time of decimal ones.
    #[inline]
    fn text<'a>(&'a self, buffer: &'a mut String) -> &'a str {
        if buffer.len() != 16 {
            *buffer = "0".repeat(16);
        }
        overwrite(buffer, 0, (self >> 32) as u32);
        overwrite(buffer, 8, *self as u32);
        buffer
    }
}

/// Addresses of version 4, all over the net.
impl Key for IpAddr {
    const NAME: &'static str = "`IpAddr`";

    #[inline]
    fn number(number: u64) -> Self {
        // Odd, so that no two numbers of 32 bits share an address.
        Self::V4(Ipv4Addr::from_bits((number as u32).wrapping_mul(0x9e37_79b1)))
    }

    fn text<'a>(&'a self, buffer: &'a mut String) -> &'a str {
        buffer.clear();
        write!(buffer, "{self}").expect("a `String` takes any text");
        buffer
    }
}

/// A text of 24 bytes, about as long as an API key.
impl Key for String {
    const NAME: &'static str = "24 bytes";

    fn number(number: u64) -> Self {
        long_text(number, 24)
    }

    #[inline]
    fn renumber(&mut self, number: u64) {
        overwrite(self, self.len() - 8, number as u32);
    }

    #[inline]
    fn text<'a>(&'a self, _: &'a mut String) -> &'a str {
        self
    }
}

/// Text number `number`, of `length` bytes.
///
/// # Panics
///
/// When it is to be shorter than the digits of a number, 8.
pub fn long_text(number: u64, length: usize) -> String {
    let prefix = "tenant-7f3a/key-".chars().cycle();
    let mut text: String = prefix.take(length - 8).chain("00000000".chars()).collect();
    let at = text.len() - 8;
    overwrite(&mut text, at, number as u32);
    text
}

/// Writes eight hexadecimal digits over those at `at`.
#[inline]
fn overwrite(text: &mut String, at: usize, number: u32) {
    let mut bytes = mem::take(text).into_bytes();
    bytes[at..at + 8].copy_from_slice(&digits(number));
    *text = String::from_utf8(bytes).expect("digits are text");
}

/// The hexadecimal digits of `number`, all eight at a time.
#[inline]
fn digits(number: u32) -> [u8; 8] {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let mut spread = u64::from(number);
    spread = (spread | spread << 16) & 0x0000_ffff_0000_ffff;
    spread = (spread | spread << 8) & 0x00ff_00ff_00ff_00ff;
    spread = (spread | spread << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    // Bit 4 of `nibble + 6` says that the nibble is a letter, whose code is 39 higher than a digit's would be.
    let letters = ((spread + 6 * ONES) >> 4) & ONES;
    (spread + u64::from(b'0') * ONES + letters * 39).to_be_bytes()
}

/// The order in which keys come: the same for all contenders.
#[derive(Debug, Clone)]
pub struct Arrivals {
    keys: u64,
    ring: Option<Arc<[u32]>>,
}

/// The largest number of draws of a Zipf distribution that are made in advance. They are read in order, 16 to a cache
/// line, so reading costs next to nothing.
const RING: usize = 1 << 22;

impl Arrivals {
    /// Each of `keys` keys as likely.
    pub fn uniform(keys: u64) -> Self {
        Self { keys, ring: None }
    }

    /// The most popular key twice as likely as the second, three times as likely as the third.
    pub fn zipf(keys: u64) -> Self {
        let mut draws = Draws::below(1 << 32, 7);
        let length = (64 * keys as usize).next_power_of_two().min(RING);
        let ring = (0..length).map(|_| scattered(zipf_rank(&mut draws, keys), keys) as u32);
        Self { keys, ring: Some(ring.collect()) }
    }

    /// The keys of one thread.
    pub fn on(&self, thread: usize) -> Arriving {
        let next = self.ring.as_ref().map_or(0, |ring| thread * ring.len() / 2);
        Arriving { draws: Draws::below(self.keys, thread), ring: self.ring.clone(), next }
    }
}

/// All keys in order.
#[derive(Debug)]
pub struct Arriving {
    draws: Draws,
    ring: Option<Arc<[u32]>>,
    next: usize,
}

impl Arriving {
    /// The number of the next key.
    #[inline]
    pub fn number(&mut self) -> u64 {
        let Some(ring) = &self.ring else { return self.draws.draw() };
        let number = ring[self.next & (ring.len() - 1)];
        self.next += 1;
        number.into()
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
    /// Numbers below `bound`, at most 2^32; another sequence for each `seed`.
    pub fn below(bound: u64, seed: usize) -> Self {
        Self { state: (seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15), bound }
    }

    /// The next one.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.state >> 32) * self.bound) >> 32
    }
}

/// A rank from 1 to `keys`, drawn with a probability inversely proportional to it: rejection-inversion (Hörmann and
/// Derflinger) for the exponent 1.
fn zipf_rank(draws: &mut Draws, keys: u64) -> u64 {
    let (from, to) = (1.5_f64.ln() - 1.0, (keys as f64 + 0.5).ln());
    let certain = 2.0 - 2.5 * (-0.5_f64).exp();
    loop {
        let at = to + draws.draw() as f64 / (1_u64 << 32) as f64 * (from - to);
        let rank = at.exp().round().clamp(1.0, keys as f64);
        if rank - at.exp() <= certain || at >= (rank + 0.5).ln() - 1.0 / rank {
            return rank as u64;
        }
    }
}

/// The number of the key with that rank. Popular keys must not be neighbours because they were added first.
fn scattered(rank: u64, keys: u64) -> u64 {
    // A prime, so that no two ranks share a number.
    (rank - 1) * 2_654_435_761 % keys
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_text_ends_in_the_digits_of_its_number() {
        let mut text = String::number(0x0012_abcf);
        assert_eq!(text, "tenant-7f3a/key-0012abcf");
        text.renumber(0x9876_5430);
        assert_eq!(text, "tenant-7f3a/key-98765430");
        assert_eq!(long_text(1, 200).len(), 200);
        assert_eq!(0xfeed_u64.text(&mut String::new()), "000000000000feed");
    }

    #[test]
    fn every_rank_has_a_number_of_its_own() {
        let numbers: HashSet<u64> = (1..=1_000).map(|rank| scattered(rank, 1_000)).collect();
        assert_eq!(numbers.len(), 1_000);
        assert!(numbers.iter().all(|number| *number < 1_000));
    }

    #[test]
    fn the_first_of_a_thousand_comes_once_in_seven_and_a_half() {
        let mut arriving = Arrivals::zipf(1_000).on(0);
        let mut times = [0_u32; 1_000];
        (0..1_000_000).for_each(|_| times[arriving.number() as usize] += 1);
        let of_rank = |rank| times[scattered(rank, 1_000) as usize];
        // 1 / H(1000) is 0.1336.
        assert!((131_000..136_000).contains(&of_rank(1)), "{}", of_rank(1));
        assert!((65_000..69_000).contains(&of_rank(2)), "{}", of_rank(2));
        assert!((12_600..14_200).contains(&of_rank(10)), "{}", of_rank(10));
    }
}
