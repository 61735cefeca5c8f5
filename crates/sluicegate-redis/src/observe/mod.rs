//! What operators see: counters, metrics, log lines.

pub(crate) mod counts;
pub(crate) mod report;
