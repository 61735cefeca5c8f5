//! Calls that fail before there is a decision. Nobody else sees them: a client that can make calls fail may get past its limits.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use metrics::{counter, describe_counter};
use sluicegate_core::clock::Clock;

use crate::status::FailedCalls;

const FAILED: &str = "sluicegate_failed_calls_total";

/// Microseconds between two lines in the log, because every client can cause one.
const QUIET: u64 = 1_000_000;

/// The most characters of a reason that are kept: it may repeat what a client has sent.
const LONGEST: usize = 300;

/// Counts them, and tells of them at most once a second.
#[derive(Debug)]
pub(crate) struct Failed {
    clock: Clock,
    total: AtomicU64,
    /// When the log was last told, in microseconds, and 0 before that.
    told: AtomicU64,
    last: Mutex<String>,
}

impl Failed {
    pub(crate) fn new(clock: Clock) -> Self {
        describe_counter!(
            FAILED,
            "Calls that failed before a decision, and requests that Envoy was told to refuse because of that."
        );
        Self { clock, total: AtomicU64::new(0), told: AtomicU64::new(0), last: Mutex::default() }
    }

    /// A call of a port or a service has failed with this code.
    pub(crate) fn note(&self, service: &'static str, code: &str, why: &dyn Display) {
        counter!(FAILED, "service" => service, "code" => code.to_owned()).increment(1);
        let so_far = self.total.fetch_add(1, Ordering::Relaxed) + 1;
        let now = self.clock.now().max(1);
        let told = self.told.load(Ordering::Relaxed);
        if told != 0 && now.abs_diff(told) < QUIET {
            return;
        }
        let mine = self.told.compare_exchange(told, now, Ordering::Relaxed, Ordering::Relaxed);
        if mine.is_err() {
            return;
        }
        let why: String = why.to_string().chars().take(LONGEST).collect();
        tracing::warn!(service, code, so_far, "a call failed before a decision: {why}");
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) =
            format!("{service}, {code}: {why}");
    }

    /// For the dashboard.
    pub(crate) fn status(&self) -> FailedCalls {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let last = (!last.is_empty()).then_some(last);
        FailedCalls { total: self.total.load(Ordering::Relaxed), last }
    }
}

/// Why a call has failed, in the extensions of an answer whose status does not say that it has.
#[derive(Debug, Clone)]
pub(crate) struct Why(pub(crate) String);
