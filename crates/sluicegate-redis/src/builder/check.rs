//! Checks the configuration of a store.

use std::time::Duration;

use super::RedisBuilder;
use crate::config_error::ConfigError;

/// The bounds of leases of places. Shorter ones would be renewed all the time. With longer ones, sums with a time would
/// not be exact in a double.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);

impl RedisBuilder {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let times = [
            ("deadline", self.deadline),
            ("connect timeout", self.connect_timeout),
            ("first pause before reconnecting", self.reconnect.first),
            ("first pause of the breaker", self.breaker.backoff.first),
        ];
        for (name, time) in times {
            if time.is_zero() {
                return Err(ConfigError::new(format!("the {name} is zero")));
            }
        }
        if !(SHORTEST..=LONGEST).contains(&self.lease) {
            let lease = self.lease;
            return Err(ConfigError::new(format!(
                "the concurrency lease is {lease:?}, but must be from {SHORTEST:?} to {LONGEST:?}"
            )));
        }
        for (name, backoff) in
            [("reconnecting", self.reconnect), ("the breaker", self.breaker.backoff)]
        {
            if backoff.longest < backoff.first {
                let (first, longest) = (backoff.first, backoff.longest);
                return Err(ConfigError::new(format!(
                    "the longest pause of {name}, {longest:?}, is shorter than the first, {first:?}"
                )));
            }
        }
        let name = self.client_name.as_deref().unwrap_or_default();
        if name.chars().any(|sign| !sign.is_ascii_graphic()) {
            return Err(ConfigError::new(format!(
                "the client name {name:?} contains a space or a character that is not printable ASCII"
            )));
        }
        Ok(())
    }
}
