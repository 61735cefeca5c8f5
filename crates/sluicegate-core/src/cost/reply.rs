use super::number::{scaled, whole};
use crate::cost::account::Reply;
use crate::key::trimmed;

/// What a response says in its header `name`, a whole number, for
/// [`By::settle_cost`](crate::rule::By::settle_cost).
///
/// If the header is absent or not a number, the estimate is kept.
///
/// ```
/// use sluicegate::{Claim, Limit};
/// use sluicegate::cost::reply_header;
///
/// // 500 tokens reserved, then what the model's answer says that it used.
/// let rule = Limit::per_minute(10_000)
///     .by(Claim("customer"))
///     .cost(500)
///     .settle_cost(reply_header("x-tokens-used"));
/// ```
pub fn reply_header(
    name: impl AsRef<str> + Send + Sync + 'static,
) -> impl Fn(&dyn Reply) -> Option<u64> + Send + Sync + 'static {
    move |reply| whole(trimmed(reply.header(name.as_ref())?)).ok()
}

/// Like [`reply_header`], for decimal numbers, multiplied by `scale` and rounded up: with 100, a header of `0.25`
/// dollars is 25 cents.
///
/// # Panics
///
/// If `scale` is 0.
#[track_caller]
pub fn reply_header_scaled(
    name: impl AsRef<str> + Send + Sync + 'static,
    scale: u64,
) -> impl Fn(&dyn Reply) -> Option<u64> + Send + Sync + 'static {
    assert!(scale > 0, "scaled by 0, every response would cost nothing");
    move |reply| scaled(trimmed(reply.header(name.as_ref())?), scale).ok()?.try_into().ok()
}
