use sluicegate_core::adapter::breaker::BreakerState;

/// What a [`Swap`](crate::Swap) has done since it was made. Clones of a store are counted together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SwapCounts {
    /// Charges that were admitted, at once or after a wait.
    pub admitted: u64,
    /// Charges that were refused by the engine's rows.
    pub refused: u64,
    /// Charges that were refused by [remembered](crate::SwapBuilder::remember_refusals) rows, without a call.
    pub refused_locally: u64,
    /// Decisions that failed.
    pub failures: u64,
    /// Calls of [`Engine::load`](crate::Engine::load).
    pub loads: u64,
    /// Calls of [`Engine::swap`](crate::Engine::swap).
    pub swaps: u64,
    /// Swaps that found a row changed, most of them by another process.
    pub conflicts: u64,
    /// Settlements that were written.
    pub settled: u64,
    /// Settlements that were given up.
    pub settlements_dropped: u64,
    /// Charges that were given back, because nobody waited for the answer or it came too late.
    pub given_back: u64,
    /// Charges of which it will never be known whether they were made. If they were, they stand; places of limits of
    /// concurrency are free again after a renewal.
    pub unanswered: u64,
    /// Places of limits of concurrency that were lost, because they were not renewed in time.
    pub places_lost: u64,
    /// Times that the breaker opened.
    pub breaker_openings: u64,
    /// Whether the engine is called at the moment.
    pub breaker: BreakerState,
}

sluicegate_core::store_counters!(
    Counters of SwapCounts as "sluicegate_swap_";
    admitted: "decisions" as "admitted", "Decisions by outcome, remembered ones included.";
    refused: "decisions" as "refused", "Decisions by outcome, remembered ones included.";
    refused_locally: "decisions" as "remembered", "Decisions by outcome, remembered ones included.";
    failures: "failures", "Decisions that failed.";
    loads: "loads", "Calls that read rows.";
    swaps: "swaps", "Calls that wrote rows, or found one changed.";
    conflicts: "conflicts", "Writes that found a row changed, most of them by another process.";
    settled: "settled", "Settlements that were written.";
    settlements_dropped: "settlements_dropped", "Settlements that were given up.";
    given_back: "given_back", "Charges given back because their answer came too late.";
    unanswered: "unanswered", "Charges of which it is unknown whether they were made.";
    places_lost: "places_lost", "Places that were lost because they were not renewed in time.";
    breaker_openings: "breaker_openings", "Times that the breaker opened.";
);
