//! Numbers as people read them.

/// With commas between thousands.
pub(super) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// With one digit behind the point if it is small.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
pub(super) fn rate(value: f64) -> String {
    match value {
        value if value < 10.0 && value.fract() != 0.0 => format!("{value:.1}"),
        value => count(value.round() as u64),
    }
}

/// A time in microseconds, or a dash.
pub(super) fn time(us: Option<u64>) -> String {
    match us {
        None => "-".to_owned(),
        Some(us @ 0..1_000) => format!("{us} µs"),
        Some(us @ 1_000..1_000_000) => format!("{}.{} ms", us / 1_000, us / 100 % 10),
        Some(us) => format!("{}.{} s", us / 1_000_000, us / 100_000 % 10),
    }
}

/// A span in seconds.
pub(super) fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_extremes_do_not_panic() {
        assert_eq!(
            (count(0), count(999), count(1_234_567)),
            ("0".into(), "999".into(), "1,234,567".into())
        );
        assert_eq!(
            (rate(0.25), rate(3.0), rate(1_234.6)),
            ("0.2".into(), "3".into(), "1,235".into())
        );
        assert_eq!((time(Some(999)), time(Some(1_250))), ("999 µs".into(), "1.2 ms".into()));
        assert_eq!((time(Some(2_500_000)), time(None)), ("2.5 s".into(), "-".into()));
        assert_eq!(
            (span(119), span(120), span(200_000)),
            ("119 s".into(), "2 min".into(), "2 days".into())
        );
        for value in [f64::MAX, -1e300, f64::NAN, f64::INFINITY] {
            assert!(!rate(value).is_empty());
        }
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
        assert!(!time(Some(u64::MAX)).is_empty() && !span(u64::MAX).is_empty());
    }
}
