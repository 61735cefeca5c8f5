//! What operators see: counters, metrics, log lines.

pub(crate) mod counts;
pub(crate) mod latency;
pub(crate) mod log_limiter;
pub(crate) mod report;
