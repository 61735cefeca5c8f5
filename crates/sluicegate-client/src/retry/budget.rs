use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use sluicegate::adapter::ConfigError;

/// A share of the requests that may be sent a second time.
///
/// Each request that was sent deposits the share, and each retry withdraws 1. The arithmetic is in millionths, so a share of 0.3 is
/// three retries for ten requests, exactly. The budget begins with an advance, so that a program that makes few requests
/// may retry too. Half of the deposits pay it back, so over many requests no more than the share is retried.
///
/// Clones of a layer share its budget.
///
/// ```
/// use sluicegate_client::retry::Budget;
///
/// let budget = Budget::try_new(0.1, 0)?;
/// (0..10).for_each(|_| budget.deposit());
/// assert!(budget.withdraw());
/// assert!(!budget.withdraw());
/// # Ok::<(), sluicegate_client::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct Budget {
    /// What a request deposits, in millionths of a retry.
    share: u64,
    /// The most that is kept, in millionths of a retry.
    most: u64,
    balance: Mutex<Balance>,
}

#[derive(Debug)]
struct Balance {
    /// The balance, in millionths of a retry.
    credit: u64,
    /// The part of the advance that has not been paid back yet.
    debt: u64,
}

/// Millionths in one.
const ONE: u64 = 1_000_000;

/// Retries that are saved up at most if the advance is smaller. Without a bound, a day without failures would pay for a
/// storm of retries.
const SAVED: u64 = 10;

impl Default for Budget {
    /// A tenth of the requests, with an advance of ten retries.
    fn default() -> Self {
        Self::of(100_000, 10)
    }
}

impl Budget {
    /// A budget of `share` of the requests, from 0 to 1, with an advance of this many retries.
    ///
    /// # Errors
    ///
    /// If the share is not a number from 0 to 1, or the advance is above 1,000,000.
    pub fn try_new(share: f64, advance: u64) -> Result<Self, ConfigError> {
        if !(0.0..=1.0).contains(&share) {
            let text = format!("a retry budget is a share from 0 to 1; {share:?} was given");
            return Err(ConfigError::new(text));
        }
        if advance > 1_000_000 {
            let text = format!("a retry budget advances at most 1,000,000; {advance} was given");
            return Err(ConfigError::new(text));
        }
        Ok(Self::of((share * ONE as f64).round() as u64, advance))
    }

    /// `share` in millionths.
    pub(crate) fn of(share: u64, advance: u64) -> Self {
        let advance = advance * ONE;
        // Without a share nothing could pay the advance back.
        let advance = if share == 0 { 0 } else { advance };
        let balance = Mutex::new(Balance { credit: advance, debt: advance });
        Self { share, most: advance.max(SAVED * ONE), balance }
    }

    /// Notes a request that was sent for the first time. A [`RetryLayer`](crate::RetryLayer) does so when it is answered or has
    /// failed, and not for one that was [refused](crate::Refused) by this program.
    pub fn deposit(&self) {
        let mut balance = self.balance.lock().unwrap_or_else(PoisonError::into_inner);
        let paid_back = (self.share / 2).min(balance.debt);
        balance.debt -= paid_back;
        balance.credit = (balance.credit + self.share - paid_back).min(self.most);
    }

    /// Pays for one more retry. Returns whether the budget allows it.
    pub fn withdraw(&self) -> bool {
        let mut balance = self.balance.lock().unwrap_or_else(PoisonError::into_inner);
        match balance.credit.checked_sub(ONE) {
            Some(rest) => {
                balance.credit = rest;
                true
            }
            None => false,
        }
    }

    /// Takes back what was paid for a request that was not sent.
    pub(crate) fn refund(&self) {
        let mut balance = self.balance.lock().unwrap_or_else(PoisonError::into_inner);
        balance.credit = (balance.credit + ONE).min(self.most);
    }
}

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

/// Thousandths in a token.
const TOKEN: u64 = 1_000;

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
        let most = u64::from(most) * TOKEN;
        Ok(Self { most, back: (ratio * TOKEN as f64).round() as u64, held: AtomicU64::new(most) })
    }

    /// Notes how an attempt ended. Returns whether it may be followed by another one.
    pub(super) fn note(&self, has_failed: bool) -> bool {
        let next = |held: u64| match has_failed {
            true => held.saturating_sub(TOKEN),
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

    /// Retries of `requests` requests that all fail.
    fn retries(budget: &Budget, requests: u32) -> u32 {
        (0..requests)
            .map(|_| {
                budget.deposit();
                u32::from(budget.withdraw())
            })
            .sum()
    }

    #[test]
    fn a_budget_admits_its_share_exactly() {
        for (share, expected) in [
            (0.0, 0),
            (0.1, 10_000),
            (0.3, 30_000),
            (0.4, 40_000),
            (0.6, 60_000),
            (0.7, 70_000),
            (1.0, 100_000),
        ] {
            for advance in [0, 10] {
                let admitted = retries(&Budget::try_new(share, advance).unwrap(), 100_000);
                assert!(admitted.abs_diff(expected) <= 1, "{share}: {admitted}");
            }
        }
    }

    #[test]
    fn a_program_of_few_requests_may_retry_too() {
        assert_eq!(retries(&Budget::default(), 5), 5);
    }

    #[test]
    fn the_advance_is_paid_back() {
        for requests in [200, 1_000, 100_000] {
            assert!(retries(&Budget::default(), requests) <= requests / 10);
        }
    }

    #[test]
    fn a_day_without_failures_does_not_pay_for_a_storm() {
        let budget = Budget::default();
        (0..1_000_000).for_each(|_| budget.deposit());
        let stored = (0..1_000).filter(|_| budget.withdraw()).count();
        assert_eq!(stored, 10);
    }

    #[test]
    fn what_is_taken_back_is_not_kept_beyond_the_most() {
        for (budget, most) in [(Budget::default(), 10), (Budget::try_new(0.5, 20).unwrap(), 20)] {
            (0..100).for_each(|_| budget.refund());
            assert_eq!((0..1_000).filter(|_| budget.withdraw()).count(), most);
            budget.refund();
            assert!(budget.withdraw() && !budget.withdraw(), "one was taken back");
        }
    }

    #[test]
    fn a_share_that_makes_no_sense_is_an_error() {
        for share in [-0.1, 1.1, f64::NAN, f64::INFINITY, -1e-320, f64::MAX] {
            let sentence = Budget::try_new(share, 0).unwrap_err().to_string();
            assert!(sentence.contains(&format!("{share:?}")), "{sentence}");
        }
        assert!(Budget::try_new(0.1, u64::MAX).is_err());
    }

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
