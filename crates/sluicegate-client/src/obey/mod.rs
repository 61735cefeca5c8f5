//! Obey what servers say about their limits, before they have to refuse.
//!
//! A [`Signal`] is what a response tells. What a client knows of one server decides when a request may be sent:
//!
//! - Nothing is sent before the end of a `Retry-After`, and then one request first, whose response shows whether the
//!   server serves again. A thirty-second of the wait is added at random, so that clients do not
//!   return together, and more after each further refusal.
//! - The first request to a server goes alone, for a second at most: its response may say what is left.
//! - When less than a quarter of a quota is left, what is left is spread over the time to its reset.
//! - Nothing is sent when nothing is left, until the reset.
//!
//!   A client knows what is left for all, but not what others are about to send. Several clients of a bucket use all of it and are
//!   hardly ever refused. Of a fixed window of one second they use 98 %, and 3 % of their requests are refused, at the
//!   ends of the windows; of a sliding window they leave a tenth (`tests/all/fleet` simulates them).
//! - The wait that a hostile server can demand has a cap, an hour by default.
//!
//! [`ObeyLayer`] does this for the requests of a client, by origin. reqwest follows redirects below the layer: what the
//! last origin says is noted for that origin, but a request is held back by the first alone. To have each hop obeyed,
//! switch reqwest's redirects off and put tower-http's `FollowRedirect` around the layer.

mod layer;
mod server_row;
mod service;
mod shared;
mod signal;
mod standing;

pub use self::layer::{ObeyBuilder, ObeyLayer};
pub use self::signal::{MAX_QUOTAS, Quota, Signal};
