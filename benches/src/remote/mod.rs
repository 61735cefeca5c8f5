//! Limiters in Redis: a server of its own, one connection for each contender, many requests under way on it.

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

/// What one key may do at once, at one a second: nobody is refused, and nobody recovers either, so that each
/// request finds the row of its key and writes it.
const BURST: u64 = 100_000_000;

/// The windows of those who have no bucket, in seconds.
const WINDOW: u64 = 3_600;
