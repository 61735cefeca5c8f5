//! The layers, by a manual clock and around the clients of other crates: one program, which is linked once.

mod adaptive_throttle;
#[cfg(all(feature = "grpc", feature = "reqwest-middleware"))]
mod clients;
mod contention;
mod fleet;
mod obey;
mod recovery;
mod retry;
mod smooth;
mod waits;
