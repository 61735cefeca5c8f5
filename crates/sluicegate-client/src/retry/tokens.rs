use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::ConfigError;

/// gRPC's retry throttling: no request is retried while too many fail (gRFC A6).
///
/// Each failure that may pass takes a token, and each other end of an attempt gives a part of one back. Requests are
/// retried while more than half of the tokens are there. Unlike a [`Budget`](super::Budget) it limits how long retries go
/// on while a server is down, and not how many there are on the whole.
///
/// ```
/// use sluicegate_client::RetryLayer;
/// use sluicegate_client::retry::Tokens;
///
/// // As a service config says it: { "maxTokens": 10, "tokenRatio": 0.1 }
/// let layer = RetryLayer::builder().throttling(Tokens::try_new(10, 0.1)?).build()?;
/// # let _ = layer;
/// # Ok::<(), sluicegate_client::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct Tokens {
    /// In thousandths, as the others.
    most: u64,
    back: u64,
    held: AtomicU64,
}

/// Thousandths in one.
const ONE: u64 = 1_000;

impl Tokens {
    /// At most this many tokens, of which each success gives `ratio` back.
    ///
    /// # Errors
    ///
    /// If the number is not from 1 to 1,000, or the ratio is not from 0.001 to 1,000.
    pub fn try_new(most: u32, ratio: f64) -> Result<Self, ConfigError> {
        if !(1..=1_000).contains(&most) {
            let text = format!("retry throttling has 1 to 1,000 tokens; {most} were given");
            return Err(ConfigError::new(text));
        }
        if !(0.001..=1_000.0).contains(&ratio) {
            let text = format!(
                "a success gives from 0.001 to 1,000 tokens of retry throttling back; {ratio:?} was given"
            );
            return Err(ConfigError::new(text));
        }
        let most = u64::from(most) * ONE;
        Ok(Self { most, back: (ratio * ONE as f64).round() as u64, held: AtomicU64::new(most) })
    }

    /// Notes how an attempt ended. Returns whether it may be followed by another one.
    pub(super) fn note(&self, has_failed: bool) -> bool {
        let next = |held: u64| match has_failed {
            true => held.saturating_sub(ONE),
            false => (held + self.back).min(self.most),
        };
        let update = |held| Some(next(held));
        let before = self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, update);
        // The update never fails.
        let (Ok(held) | Err(held)) = before.map(next);
        held > self.most / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_retries_while_more_than_half_of_the_tokens_are_there() {
        let tokens = Tokens::try_new(10, 0.1).unwrap();
        let fails = || tokens.note(true);
        let succeed = |times| (0..times).for_each(|_| _ = tokens.note(false));
        assert_eq!([(); 6].map(|()| fails()), [true, true, true, true, false, false]);
        // 4 are left, and 20 successes give 2 back.
        succeed(20);
        assert_eq!([fails(), fails()], [false, false]);
        succeed(1_000);
        assert!(fails());
    }

    #[test]
    fn numbers_that_make_no_sense_are_errors() {
        for (most, ratio) in [(0, 0.1), (1_001, 0.1), (10, 0.0), (10, -1.0), (10, f64::NAN)] {
            assert!(Tokens::try_new(most, ratio).is_err(), "{most} {ratio}");
        }
        let error = Tokens::try_new(10, 1e-320).unwrap_err().to_string();
        assert!(error.ends_with("; 1e-320 was given"), "{error}");
    }
}
