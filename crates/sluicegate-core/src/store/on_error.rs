//! What happens when a store fails.
//!
//! The default is to admit: a limiter should not be the reason for an outage. The failure is counted and
//! logged, and one call makes the layer answer 503 instead.

/// What happens to a request when the store cannot decide about it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnStoreError {
    /// It passes without being counted. The default.
    #[default]
    Admit,
    /// It is answered with `503 Service Unavailable`, never with 429.
    Refuse,
}
