//! What operators and load balancers are told of the ports: whether they are about to close, and the calls that fail before
//! there is a decision. Nobody else sees those: a client that can make calls fail may get past its limits.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use metrics::{counter, describe_counter};
use sluicegate_core::clock::Clock;

use crate::status::FailedCalls;

const FAILED: &str = "sluicegate_failed_calls_total";

/// Microseconds between two lines in the log, because every client can cause one.
const QUIET: u64 = 1_000_000;

/// The most characters of a reason that are kept: it may repeat what a client has sent.
const LONGEST: usize = 300;

/// The health of the ports of a server or a proxy. Failed calls are counted, and logged at most once a second.
#[derive(Debug)]
pub(crate) struct Health {
    clock: Clock,
    is_stopping: AtomicBool,
    total: AtomicU64,
    /// When a call was last logged, in microseconds, and 0 before that.
    logged: AtomicU64,
    last: Mutex<String>,
}

impl Health {
    pub(crate) fn new(clock: Clock) -> Self {
        describe_counter!(
            FAILED,
            "Calls that failed before a decision, and requests that Envoy was told to refuse because of that."
        );
        Self {
            clock,
            is_stopping: AtomicBool::new(false),
            total: AtomicU64::new(0),
            logged: AtomicU64::new(0),
            last: Mutex::default(),
        }
    }

    /// Whether the ports are about to close: load balancers should send requests elsewhere.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Says that they are.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    /// A call of a port or a service has failed with this code before there was a decision.
    pub(crate) fn failed(&self, service: &'static str, code: &str, why: &dyn Display) {
        counter!(FAILED, "service" => service, "code" => code.to_owned()).increment(1);
        let so_far = self.total.fetch_add(1, Ordering::Relaxed) + 1;
        let now = self.clock.now().max(1);
        let logged = self.logged.load(Ordering::Relaxed);
        if logged != 0 && now.abs_diff(logged) < QUIET {
            return;
        }
        let mine = self.logged.compare_exchange(logged, now, Ordering::Relaxed, Ordering::Relaxed);
        if mine.is_err() {
            return;
        }
        let why: String = why.to_string().chars().take(LONGEST).collect();
        tracing::warn!(service, code, so_far, "a call failed before a decision: {why}");
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) =
            format!("{service}, {code}: {why}");
    }

    /// The calls that have failed so far, for the dashboard.
    pub(crate) fn failed_calls(&self) -> FailedCalls {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let last = (!last.is_empty()).then_some(last);
        FailedCalls { total: self.total.load(Ordering::Relaxed), last }
    }
}

/// Why a call has failed, in the extensions of an answer whose status does not say that it has.
#[derive(Debug, Clone)]
pub(crate) struct Why(pub(crate) String);
