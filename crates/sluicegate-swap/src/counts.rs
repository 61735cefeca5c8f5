use std::sync::atomic::{AtomicU64, Ordering};

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
    /// Charges of which it will never be known whether they were made. If they were, they stand.
    pub unanswered: u64,
    /// Places of limits of concurrency that were lost, because they were not renewed in time.
    pub places_lost: u64,
    /// Times that the breaker opened.
    pub breaker_openings: u64,
    /// Whether the engine is called at the moment.
    pub breaker: BreakerState,
}

/// Declares the counters, each with its metric, the `outcome` of that if it has one, and a description.
macro_rules! counters {
    ($($name:ident: $metric:literal $(as $outcome:literal)?, $text:literal;)*) => {
        #[derive(Debug)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
        }

        impl Default for Counters {
            fn default() -> Self {
                Self {
                    $($name: Counter {
                        count: AtomicU64::new(0),
                        #[cfg(feature = "metrics")]
                        metric: concat!("sluicegate_swap_", $metric, "_total"),
                        #[cfg(feature = "metrics")]
                        outcome: None$(.or(Some($outcome)))?,
                    },)*
                }
            }
        }

        impl Counters {
            pub(crate) fn read(&self, breaker: BreakerState) -> SwapCounts {
                SwapCounts { $($name: self.$name.count.load(Ordering::Relaxed),)* breaker }
            }

            /// Describes each metric to the recorder, if there is one.
            #[cfg(feature = "metrics")]
            pub(crate) fn describe(&self) {
                $(metrics::describe_counter!(self.$name.metric, metrics::Unit::Count, $text);)*
            }
        }
    };
}

counters!(
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

#[derive(Debug)]
pub(crate) struct Counter {
    count: AtomicU64,
    #[cfg(feature = "metrics")]
    metric: &'static str,
    #[cfg(feature = "metrics")]
    outcome: Option<&'static str>,
}

impl Counter {
    pub(crate) fn add(&self, more: u64) {
        self.count.fetch_add(more, Ordering::Relaxed);
        #[cfg(feature = "metrics")]
        match self.outcome {
            Some(outcome) => metrics::counter!(self.metric, "outcome" => outcome).increment(more),
            None => metrics::counter!(self.metric).increment(more),
        }
    }
}
