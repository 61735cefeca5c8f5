//! Whole numbers as proto3 writes them in JSON.

use std::fmt;

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A whole number. It may be written as text, and with an exponent or a fraction of zeros.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(try_from = "Written")]
pub(super) struct Number(u64);

impl Number {
    pub(super) const fn get(self) -> u64 {
        self.0
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a whole number below 2^64")]
enum Written {
    Whole(u64),
    /// Only so that an error shows the number as it was sent.
    Negative(i64),
    Fraction(f64),
    Text(String),
}

impl TryFrom<Written> for Number {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        match written {
            Written::Whole(number) => Some(number),
            Written::Negative(_) => None,
            Written::Fraction(number) => whole(number),
            Written::Text(ref text) => in_json(text).or_else(|| whole(in_json(text)?)),
        }
        .map(Self)
        .ok_or_else(|| format!("expected a whole number below 2^64, not {written}"))
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(number) => write!(f, "{number}"),
            Self::Negative(number) => write!(f, "{number}"),
            Self::Fraction(number) => write!(f, "{number:?}"),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}

/// A number as JSON writes it, and not `inf` or `+1`.
fn in_json<T: DeserializeOwned>(text: &str) -> Option<T> {
    let is_bare = !text.contains(|char: char| char.is_ascii_whitespace());
    serde_json::from_str(text).ok().filter(|_| is_bare)
}

/// 2^53: above it, a fraction may be another number than the one that was written.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The number, if it is a whole one that floating point holds exactly.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole, not negative and below 2^53"
)]
fn whole(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && (0.0..=EXACT).contains(&number)).then_some(number as u64)
}
