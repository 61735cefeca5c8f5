use std::sync::{Mutex, PoisonError};

use crate::error::ConfigError;

/// A share of the requests that may be sent a second time.
///
/// Each request deposits the share, and each retry withdraws 1. The arithmetic is in millionths, so a share of 0.3 is
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

    /// Notes a request that is sent for the first time.
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
    fn a_share_that_makes_no_sense_is_an_error() {
        for share in [-0.1, 1.1, f64::NAN, f64::INFINITY, -1e-320, f64::MAX] {
            let sentence = Budget::try_new(share, 0).unwrap_err().to_string();
            assert!(sentence.contains(&format!("{share:?}")), "{sentence}");
        }
        assert!(Budget::try_new(0.1, u64::MAX).is_err());
    }
}
