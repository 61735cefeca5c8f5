//! Reads numbers written by clients, exactly.
//!
//! A number from a client has bounds. A cost is at least 1. Text that is not a number, a number that is too large,
//! and two different numbers in one place are answered with 400, which names the place and the bound in the client's
//! own unit. Decimals are read digit by digit, without floats.

/// Why a text is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberError {
    NoNumber,
    TooLarge,
}

/// Reads a whole number: digits, nothing else.
pub(super) fn whole(text: &[u8]) -> Result<u64, NumberError> {
    if !are_digits(text) {
        return Err(NumberError::NoNumber);
    }
    let mut digits = text.iter().map(|digit| u64::from(digit - b'0'));
    let number = digits.try_fold(0_u64, |number, digit| number.checked_mul(10)?.checked_add(digit));
    number.ok_or(NumberError::TooLarge)
}

/// Reads a decimal number, `12` or `0.25`, times `scale`, rounded up.
pub(super) fn scaled(text: &[u8], scale: u64) -> Result<u128, NumberError> {
    let (before, after) = match text.iter().position(|&byte| byte == b'.') {
        Some(point) => (&text[..point], &text[point + 1..]),
        None => (text, &b"0"[..]),
    };
    if !are_digits(after) {
        return Err(NumberError::NoNumber);
    }
    Ok(u128::from(whole(before)?) * u128::from(scale) + fraction(after, scale))
}

fn are_digits(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

/// The digits after the point, times `scale`, rounded up: from the last digit on, as on paper, so
/// that any number of digits is exact.
fn fraction(digits: &[u8], scale: u64) -> u128 {
    let (mut carried, mut rest) = (0, false);
    for digit in digits.iter().rev() {
        let sum = u128::from(digit - b'0') * u128::from(scale) + carried;
        carried = sum / 10;
        rest |= sum % 10 > 0;
    }
    carried + u128::from(rest)
}

/// `dividend / divisor` as a decimal number, rounded down to six places.
pub(super) fn quotient(dividend: u128, divisor: u64) -> String {
    let divisor = u128::from(divisor);
    let (whole, mut rest) = (dividend / divisor, dividend % divisor);
    let mut text = format!("{whole}.");
    for _ in 0..6 {
        rest *= 10;
        text.push(char::from(b'0' + (rest / divisor) as u8));
        rest %= divisor;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_number_is_told_from_what_is_too_large() {
        for text in
            ["", "-1", "+1", "1e3", "0x1", " 1", "1 ", "1,0", "1.", ".5", "1.2.3", "1.-2", "٣"]
        {
            assert_eq!(scaled(text.as_bytes(), 100), Err(NumberError::NoNumber), "{text}");
            assert_eq!(whole(text.as_bytes()), Err(NumberError::NoNumber), "{text}");
        }
        assert_eq!(whole(b"1.0"), Err(NumberError::NoNumber));
        assert_eq!(whole(b"18446744073709551615"), Ok(u64::MAX));
        assert_eq!(whole(b"18446744073709551616"), Err(NumberError::TooLarge));
        assert_eq!(scaled(b"18446744073709551616.5", 1), Err(NumberError::TooLarge));
        assert_eq!(scaled(b"18446744073709551616.x", 1), Err(NumberError::NoNumber));
        assert_eq!(whole(b"00000000000000000000000000007"), Ok(7));
    }

    #[test]
    fn decimals_are_exact_and_rounded_up() {
        for (text, scale, expected) in [
            ("0.25", 100, 25),
            ("0.251", 100, 26),
            ("0.2500000000000000000000000000000000000000001", 100, 26),
            ("0.10", 100, 10),
            ("0.29", 100, 29),
            ("1.1", 10, 11),
            ("3", 100, 300),
            ("0.000", 100, 0),
            ("0.333", 3, 1),
        ] {
            assert_eq!(scaled(text.as_bytes(), scale), Ok(expected), "{text} times {scale}");
        }
    }

    #[test]
    fn a_bound_is_told_without_promising_more() {
        assert_eq!(quotient(100, 1), "100");
        assert_eq!(quotient(25, 100), "0.25");
        assert_eq!(quotient(2, 3), "0.666666");
        let largest = u128::from(u64::MAX) * u128::from(u64::MAX);
        assert_eq!(quotient(largest, 1 << 63), "36893488147419103228");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        /// Compared with integers that are large enough: `whole.after` times `scale` is `wholeafter * scale /
        /// 10^digits`.
        #[test]
        fn decimals_agree_with_arithmetic_in_large_integers(
            before in 0..10_u64.pow(12),
            after in "[0-9]{1,9}",
            scale in 1..10_u64.pow(9),
        ) {
            let digits = 10_u128.pow(after.len() as u32);
            let number = u128::from(before) * digits + after.parse::<u128>().unwrap();
            let expected = (number * u128::from(scale)).div_ceil(digits);
            prop_assert_eq!(scaled(format!("{before}.{after}").as_bytes(), scale), Ok(expected));
        }

        #[test]
        fn nothing_panics_and_what_is_read_is_a_number(text in "[0-9.x+-]{0,40}", scale in 1..u64::MAX) {
            let plain = text.trim_start_matches('0');
            if scaled(text.as_bytes(), scale).is_ok() {
                prop_assert!(plain.is_empty() || plain.parse::<f64>().is_ok());
            }
        }
    }
}
