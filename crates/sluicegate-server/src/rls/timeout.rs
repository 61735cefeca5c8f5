use std::time::Duration;

use axum::http::HeaderMap;

/// How long a decision may take so that the caller still gets it: three quarters of the time that it waits, by the
/// `grpc-timeout` of the call.
pub(super) fn of(call: &HeaderMap) -> Option<Duration> {
    let waits = parse(call.get("grpc-timeout")?.to_str().ok()?)?;
    Some(waits / 4 * 3)
}

/// Up to eight digits and a unit.
fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(count * 3_600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_has_up_to_eight_digits_and_a_unit() {
        for (text, time) in [
            ("20m", Some(Duration::from_millis(20))),
            ("99999999H", Some(Duration::from_secs(99_999_999 * 3_600))),
            ("1u", Some(Duration::from_micros(1))),
            ("0n", Some(Duration::ZERO)),
            ("2S", Some(Duration::from_secs(2))),
            ("3M", Some(Duration::from_secs(180))),
            ("", None),
            ("m", None),
            ("-1m", None),
            ("1 m", None),
            ("100000000m", None),
            ("1µ", None),
            ("20", None),
        ] {
            assert_eq!(parse(text), time, "{text}");
        }
    }
}
