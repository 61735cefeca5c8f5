//! Limiters in Redis: a server of its own, one connection for each contender, many requests in flight on it.

mod actix_extensible;
mod bare;
mod cell;
mod limitador;
mod scripts;
mod server;
mod sluicegate;
mod traffic;
mod trial;

pub use self::actix_extensible::ActixExtensible;
pub use self::bare::{Increment, OneLine};
pub use self::cell::Cell;
pub use self::limitador::LimitadorScripts;
pub use self::scripts::{Gcra, Time};
pub use self::server::Redis;
pub use self::sluicegate::{Sluicegate, limit};
pub use self::trial::{Contender, Trial};

/// Someone who decides by asking a server.
pub trait Remote: Clone + Send + 'static {
    /// Whether the request of this key is admitted.
    ///
    /// # Panics
    ///
    /// When the server does not answer.
    fn decide(&self, key: &str) -> impl Future<Output = bool> + Send;
}

/// The burst of one key, at one a second. No request is refused and nothing recovers, so each request finds and
/// writes the row of its key.
const BURST: u64 = 100_000_000;

/// The windows of those who have no bucket, in seconds.
const WINDOW: u64 = 3_600;
