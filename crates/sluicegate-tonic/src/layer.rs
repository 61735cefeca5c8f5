use sluicegate::Memory;
use sluicegate::adapter::LayerSettings;
use sluicegate::rule::KnownLimits;

use crate::framework::Tonic;
use crate::respond::Grpc;

/// A tower layer that limits the requests to a tonic server, and answers refused ones with a gRPC status.
///
/// The rule `R` decides what requests are charged, the store `S` keeps the counts, and `P` makes the answers to
/// refused requests.
///
/// ```
/// use sluicegate_tonic::{Ip, Limit, Memory, RateLimitLayer};
///
/// let layer = RateLimitLayer::new(Limit::per_second(50).by(Ip::peer())).store(Memory::with_capacity(10_000));
/// # let _ = layer;
/// ```
///
/// Clones share one store with each other and with all services that they wrap.
#[must_use]
#[derive(Clone)]
pub struct RateLimitLayer<R, S = Memory, P = Grpc>(LayerSettings<R, S, P>);

impl<R: KnownLimits> RateLimitLayer<R> {
    /// Limits requests by `rule`, counted in the memory of this process.
    ///
    /// # Panics
    ///
    /// When a limit is a log that is [too long](crate::Limit::check_length).
    #[track_caller]
    pub fn new(rule: R) -> Self {
        Self(LayerSettings::new(rule, Grpc::new()))
    }
}

sluicegate::adapter::layer!("sluicegate_tonic", Tonic);
sluicegate::adapter::respond_with!("sluicegate_tonic");
