use sluicegate::Memory;
use sluicegate::service::RateLimitLayerFor;

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
pub type RateLimitLayer<R, S = Memory, P = Grpc> = RateLimitLayerFor<R, S, P, Tonic>;
