//! The value of gRPC's field `grpc-timeout`: at most eight digits and a unit.
//!
//! ```
//! use std::time::Duration;
//! use sluicegate_throttle::grpc_timeout;
//!
//! assert_eq!(grpc_timeout::read("250m"), Some(Duration::from_millis(250)));
//! assert_eq!(grpc_timeout::write(Duration::from_millis(250)), "250m");
//! ```

use std::time::Duration;

/// The time that `text` means; `None` if it means none.
pub fn read(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let is_number = (1..=8).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    let value: u64 = is_number.then(|| digits.parse().ok())??;
    Some(match unit {
        "H" => Duration::from_secs(value * 3_600),
        "M" => Duration::from_secs(value * 60),
        "S" => Duration::from_secs(value),
        "m" => Duration::from_millis(value),
        "u" => Duration::from_micros(value),
        "n" => Duration::from_nanos(value),
        _ => return None,
    })
}

/// `time` in milliseconds up to a day, else in hours. It is rounded down.
pub fn write(time: Duration) -> String {
    const DIGITS: u128 = 99_999_999;
    match time.as_millis() {
        millis @ ..=DIGITS => format!("{millis}m"),
        _ => format!("{}H", u128::from(time.as_secs() / 3_600).min(DIGITS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_of_grpc_are_read_as_specified() {
        let millis = |text| read(text).map(|timeout| timeout.as_millis());
        assert_eq!(millis("1H"), Some(3_600_000));
        assert_eq!(millis("99999999S"), Some(99_999_999_000));
        assert_eq!(millis("250m"), Some(250));
        assert_eq!(millis("2000u"), Some(2));
        assert_eq!(millis("3M"), Some(180_000));
        assert_eq!(millis("0n"), Some(0));
        for wrong in ["", "m", "1", "-1m", "+1m", "1.5S", "100000000m", "1h", "1 m", "1é", "20"] {
            assert_eq!(millis(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_written_is_read_and_is_never_longer() {
        for millis in [0, 1, 250, 99_999_999, 100_000_000, u64::MAX] {
            let time = Duration::from_millis(millis);
            let written = read(&write(time)).unwrap();
            assert!(written <= time, "{time:?}");
            assert!(millis > 99_999_999 || written == time, "{time:?}");
        }
    }
}
