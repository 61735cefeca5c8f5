use std::time::Duration;

/// Which header fields an answer asks the proxy to add to the client's response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fields {
    /// None: Envoy can write fields of its own, by `enable_x_ratelimit_headers`.
    #[default]
    Nothing,
    /// `RateLimit` and `RateLimit-Policy` of draft-ietf-httpapi-ratelimit-headers-11, and `Retry-After` with a
    /// refusal.
    Draft,
    /// `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset`, which Envoy's service writes if told so.
    Three,
}

/// The names of the three fields.
pub(crate) const NAMES: [&str; 3] = ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"];

/// Whole seconds, rounded up, so that nobody comes too early.
pub(crate) fn rounded_up(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}
