//! Send requests again after failures that may pass, within a budget.
//!
//! - At most three attempts for a request, and at most a tenth of all requests twice, by default: a server that is down is
//!   not drowned in retries. The [`Budget`] is exact.
//! - Only what does no harm when it arrives twice: idempotent methods, requests with an `Idempotency-Key`, and what the
//!   program names. A body that can be read only once is sent once.
//! - Never before `Retry-After`, else after an exponential back-off with full jitter, and never too late: if the next
//!   attempt would come after the time that the caller has, it gets the failure at once.
//! - What a request states about its time, in `grpc-timeout` or to reqwest, is what is left of it in each attempt.
//! - An attempt that another layer holds back hides nothing: the caller gets the response to the last one that was sent.
//! - What the other layers let a request wait for bounds the waits between attempts, too.
//! - Layers do not multiply: a request that one layer has taken charge of passes the others once.

mod attempts;
mod budget;
mod decide;
mod layer;
mod service;

pub use self::budget::{Budget, Tokens};
pub use self::decide::AttemptResult;
pub use self::layer::{RetryBuilder, RetryLayer};
pub use self::service::ResponseFuture;
