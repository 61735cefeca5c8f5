//! Numbers of tokens as JSON writes them.

/// Whether a number may go on with this byte. The last one is for `-Infinity`.
pub(super) const fn goes_on(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E' | b'I')
}

/// A number of any length, read as its bytes arrive.
///
/// JSON has one type of numbers: `1000`, `1000.0` and `1e3` are the same, and a service may accept each of them, however
/// many zeros it has. Services that read numbers in texts allow spaces around them and underscores in them. Some read only
/// the beginning (`parseInt`), some another base, and some the digits of any script.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Number {
    part: Part,
    is_negative: bool,
    /// The first digits.
    digits: u128,
    /// The power of ten of the last one of these digits.
    power: i64,
    /// Whether a later digit is not zero.
    has_rest: bool,
    exponent: i64,
    is_exponent_negative: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Start,
    Sign,
    Whole,
    Fraction,
    ExponentStart,
    ExponentSign,
    Exponent,
    /// In digits of this base.
    Based(u8),
    /// Behind the number.
    End,
    /// This is not a number.
    Broken,
}

/// Digits beyond this one only round the number up.
const DIGITS: u128 = 10_u128.pow(28);

/// Larger exponents make no difference.
const EXPONENT: i64 = 1_000_000;

impl Number {
    pub(crate) const fn new() -> Self {
        Self {
            part: Part::Start,
            is_negative: false,
            digits: 0,
            power: 0,
            has_rest: false,
            exponent: 0,
            is_exponent_negative: false,
        }
    }

    /// Reads the next bytes.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.part == Part::Broken {
                return;
            }
            self.part = self.next(*byte);
        }
    }

    fn next(&mut self, byte: u8) -> Part {
        match (self.part, byte) {
            (Part::End, _) => Part::End,
            // What Python skips is more than what JSON does.
            (Part::Start, b' ' | b'\t'..=b'\r' | 0x1c..=0x1f) => Part::Start,
            (Part::Start, b'+' | b'-') => {
                self.is_negative = byte == b'-';
                Part::Sign
            }
            (Part::Start | Part::Sign | Part::Whole, b'0'..=b'9') => {
                self.digit(byte, 1);
                Part::Whole
            }
            // All that follows comes in texts only, but for the signs and exponents of JSON.
            (Part::Whole, b'x' | b'X') if self.digits == 0 => Part::Based(16),
            (Part::Whole, b'o' | b'O') if self.digits == 0 => Part::Based(8),
            (Part::Whole, b'b' | b'B') if self.digits == 0 => Part::Based(2),
            (Part::Based(base), _) => match char::from(byte).to_digit(base.into()) {
                Some(digit) => {
                    let digits = self.digits.saturating_mul(base.into());
                    self.digits = digits.saturating_add(digit.into());
                    Part::Based(base)
                }
                None => Part::End,
            },
            // The first byte of a character that is not ASCII: it may be any digit, or a space.
            (part @ (Part::Start | Part::Sign | Part::Whole), 0xc0..) => {
                self.digit(b'9', 1);
                if part == Part::Start { Part::Start } else { Part::Whole }
            }
            (part, 0x80..0xc0) => part,
            (Part::Whole, b'_') => Part::Whole,
            (Part::Start | Part::Sign | Part::Whole, b'.') => Part::Fraction,
            (Part::Fraction, b'0'..=b'9') => {
                self.digit(byte, 0);
                Part::Fraction
            }
            (Part::Whole | Part::Fraction, b'e' | b'E') => Part::ExponentStart,
            (Part::ExponentStart, b'+' | b'-') => {
                self.is_exponent_negative = byte == b'-';
                Part::ExponentSign
            }
            (Part::ExponentStart | Part::ExponentSign | Part::Exponent, b'0'..=b'9') => {
                self.exponent = (10 * self.exponent + i64::from(byte - b'0')).min(EXPONENT);
                Part::Exponent
            }
            (Part::Whole | Part::Fraction, _) => Part::End,
            (Part::ExponentStart | Part::ExponentSign | Part::Exponent, _) => Part::End,
            _ => Part::Broken,
        }
    }

    /// `dropped` is by how much the power grows with a digit that is not kept.
    fn digit(&mut self, byte: u8, dropped: i64) {
        if self.digits < DIGITS {
            self.digits = 10 * self.digits + u128::from(byte - b'0');
            self.power += dropped - 1;
        } else {
            self.has_rest |= byte != b'0';
            self.power += dropped;
        }
    }

    /// The number, rounded up; `u64::MAX` if it is larger. `None` if it is negative or malformed.
    pub(crate) fn value(&self) -> Option<u64> {
        // Zero is zero with any exponent. Without this, `0e999999` would be the largest number.
        let is_zero = self.digits == 0 && !self.has_rest;
        let is_none = match self.part {
            Part::Start => is_zero,
            Part::Sign | Part::Broken => true,
            _ => self.is_negative && !is_zero,
        };
        if is_none {
            return None;
        }
        let exponent = if self.is_exponent_negative { -self.exponent } else { self.exponent };
        let power = self.power.saturating_add(exponent);
        // 28 digits are kept, which is more than `u64` has. So a scale that overflows `u128` means that the number is
        // larger than `u64`, or that it is below one.
        let scale = u32::try_from(power.unsigned_abs()).ok().and_then(|by| 10_u128.checked_pow(by));
        let number = match (scale, power < 0) {
            _ if is_zero => 0,
            (Some(scale), false) => {
                self.digits.saturating_mul(scale).saturating_add(self.has_rest.into())
            }
            (None, false) => u128::MAX,
            (Some(scale), true) => {
                self.digits / scale + u128::from(self.has_rest || self.digits % scale > 0)
            }
            (None, true) => 1,
        };
        Some(u64::try_from(number).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(text: &str) -> Option<u64> {
        let mut number = Number::new();
        number.read(text.as_bytes());
        number.value()
    }

    #[test]
    fn numbers_of_any_length_are_numbers() {
        let zeros = "0".repeat(60);
        for (text, number) in [
            (format!("100000.{zeros}"), 100_000),
            (format!("100000.{zeros}1"), 100_001),
            (format!("{zeros}7"), 7),
            (format!("1{zeros}"), u64::MAX),
            (format!("1{zeros}e-60"), 1),
            (format!("0.{zeros}5e62"), 50),
            (format!("5e{zeros}2"), 500),
            (format!("0.{zeros}"), 0),
            (format!("-0.{zeros}"), 0),
            (format!("0e{}", "9".repeat(60)), 0),
            (format!("1e{}", "9".repeat(60)), u64::MAX),
            (format!("1e-{}", "9".repeat(60)), 1),
            ("18446744073709551615".into(), u64::MAX),
            ("1844674407370955161".into(), 1_844_674_407_370_955_161),
            (" 9_000 \n".into(), 9_000),
            ("+5".into(), 5),
            ("5.".into(), 5),
            (".5".into(), 1),
            // What `parseInt` reads, and what `Number` and `int` do.
            ("1e".into(), 1),
            ("1e+".into(), 1),
            ("1 2".into(), 1),
            ("50000 tokens, or 9".into(), 50_000),
            ("0xfFff.".into(), 65_535),
            ("0o777".into(), 511),
            ("0b101".into(), 5),
            (format!("0x{}", "f".repeat(60)), u64::MAX),
            ("\x0b\x1f 50000".into(), 50_000),
            // Digits of other scripts, which may be any, and spaces.
            ("５００００".into(), 99_999),
            ("5０".into(), 59),
            ("\u{a0}50000".into(), 950_000),
        ] {
            assert_eq!(value(&text), Some(number), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_of_tokens_is_none() {
        for text in ["", " ", "-", "+", "-1", "x", "--1", "NaN", "é is none", "many 5"] {
            assert_eq!(value(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn numbers_agree_with_floats(whole in 0..1_000_000_u64, fraction in "[0-9]{0,6}", exponent in -3..4_i32) {
            let text = format!("{whole}.{fraction}e{exponent}");
            let digits = format!("{whole}{fraction}").parse::<u128>().unwrap();
            let power = exponent - fraction.len() as i32;
            let expected = match power {
                0.. => digits * 10_u128.pow(power.unsigned_abs()),
                _ => digits.div_ceil(10_u128.pow(power.unsigned_abs())),
            };
            prop_assert_eq!(value(&text).map(u128::from), Some(expected), "{}", text);
        }
    }
}
