//! The `tracing` events for operators, written here for every adapter.
#![cfg_attr(
    not(feature = "tracing"),
    expect(unused_variables, reason = "without the feature nobody is told")
)]

#[cfg(all(test, feature = "tracing"))]
pub(crate) mod testing;

use crate::key::Missing;
use crate::limit::{Decision, Limit, LimitStatus};
use crate::standard_error::{self, is_recorded};
use crate::store::OnStoreError;
use crate::store::StoreError;

/// At most one a second, for what the server does not provide.
pub(crate) fn keyless(missing: &Missing, so_far: u64) {
    if missing.is_server() {
        #[cfg(feature = "tracing")]
        tracing::error!(so_far, "{missing}");
        standard_error::write_unless(is_recorded!(ERROR), || {
            format!("requests are answered with 500: {missing}")
        });
    } else {
        #[cfg(feature = "tracing")]
        tracing::debug!("{missing}");
    }
}

pub(crate) fn refused(decision: &Decision, who: impl Fn() -> Option<String>, how: &str) {
    #[cfg(feature = "tracing")]
    tracing::debug!(
        limits = %DecidingNames(decision, |status| status.refused),
        who = who(),
        banned = decision.is_banned(),
        retry_after = ?decision.retry_after(),
        "{how}"
    );
}

/// Reports that `so_far` requests would have been refused, at most once a second.
pub(crate) fn on_trial(
    decision: &Decision,
    who: impl Fn() -> Option<String>,
    limits: fn(&LimitStatus) -> bool,
    so_far: Option<u64>,
    how: &str,
) {
    #[cfg(feature = "tracing")]
    if let Some(so_far) = so_far {
        tracing::info!(
            limits = %DecidingNames(decision, limits),
            who = who(),
            banned = decision.is_banned(),
            retry_after = ?decision.retry_after(),
            so_far,
            "{how}"
        );
    } else {
        tracing::debug!(limits = %DecidingNames(decision, limits), who = who(), "{how}");
    }
}

/// At most one a second. [`refused`] reports the others.
pub(crate) fn banned(decision: &Decision, who: impl Fn() -> Option<String>, how: &str) {
    #[cfg(feature = "tracing")]
    tracing::warn!(
        limits = %DecidingNames(decision, |status| status.refused),
        who = who(),
        retry_after = ?decision.retry_after(),
        "banned: {how}"
    );
}

/// At most one a second.
pub(crate) fn soft(limit: &Limit, who: Option<String>) {
    #[cfg(feature = "tracing")]
    tracing::warn!(limit = %limit.name(), who, "more than the soft limit is spent");
}

/// At most one a second.
pub(crate) fn uncounted(decision: &Decision, so_far: u64) {
    #[cfg(feature = "tracing")]
    tracing::warn!(
        limits = %DecidingNames(decision, |status| status.uncounted),
        so_far,
        "not counted: the store has no room for another key"
    );
}

/// At most one a second.
pub(crate) fn store_failed(error: &StoreError, then: OnStoreError, so_far: u64) {
    #[cfg(feature = "tracing")]
    tracing::warn!(
        source = std::error::Error::source(error),
        ?then,
        so_far,
        "no decision: {error}"
    );
    standard_error::write_unless(is_recorded!(WARN), || {
        format!("no decision: {error}; then {then:?}")
    });
}

/// At most one a second.
pub(crate) fn unread(so_far: u64) {
    #[cfg(feature = "tracing")]
    tracing::warn!(
        so_far,
        "what an answer cost was not read: it was charged what was reserved for it, or what was seen of it"
    );
}

/// The names of the limits for which that is true.
#[cfg(feature = "tracing")]
struct DecidingNames<'a>(&'a Decision, fn(&LimitStatus) -> bool);

#[cfg(feature = "tracing")]
impl std::fmt::Display for DecidingNames<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, status) in self.0.statuses().filter(|status| self.1(status)).enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}{}", status.limit.name())?;
        }
        Ok(())
    }
}

/// When tiers are made or changed.
pub(crate) fn unlimited(tiers: &str, tier: &str) {
    #[cfg(feature = "tracing")]
    tracing::info!(tiers, tier, "requests in this tier are not limited");
}

/// Once for each table of tiers.
pub(crate) fn stranger(tiers: &str, tier: &str, missing: &Missing) {
    #[cfg(feature = "tracing")]
    tracing::warn!(
        tiers,
        tier,
        "{missing}. Requests without it are in this tier; if no request ever has it, nobody is in \
         another"
    );
}

/// With each request.
pub(crate) fn passed(tiers: &str, tier: &str) {
    #[cfg(feature = "tracing")]
    tracing::debug!(tiers, tier, "not limited");
}
