//! Send a copy of a request whose response is late, within a budget.
//!
//! Where one response in a hundred takes a second and the others ten milliseconds, a second request is most likely answered
//! in ten milliseconds, too. So a request that has no response after the time in which 95 in 100 have one is sent again,
//! and the first response is taken (Dean and Barroso, "The Tail at Scale", 2013).
//!
//! - At most 5 in 100 requests have a copy, by an exact [`Budget`](crate::retry::Budget). A server that gets slower as a
//!   whole is not asked twice as much.
//! - Only what does no harm when it arrives twice: idempotent methods, requests with an `Idempotency-Key`, and what the
//!   program names. A body that can be read only once is sent once.
//! - The one that is late is cancelled when the other is answered. A copy that fails changes nothing for the request. When
//!   the request itself fails, its copy is awaited once more until that is late.
//! - How long responses take is measured by origin, or by a key of yours, in 2 kB for each.
//! - Layers do not multiply: a request that one layer has taken charge of passes the others once.
//!
//! tower's own `hedge` could not be used. It is not `Clone`, so clients could not share what it has measured; the error of
//! a copy ends the request, though the first one may still be answered; and its copies begin to count when they are made,
//! though a layer further in may hold them back.

mod future;
mod latency;
mod layer;
mod service;
mod shared;

pub use self::future::ResponseFuture;
pub use self::layer::{HedgeBuilder, HedgeLayer};
pub use self::service::Hedge;
