//! The layer under a manual clock, in front of real connections, and in each framework.
//!
//! Beside it are two programs that need a process of their own: `memory` for its allocator, and `telling` because
//! `tracing` remembers whether a place has a subscriber, and other tests pass the same places without one.

#[cfg(all(feature = "actix", feature = "axum", feature = "upgrades"))]
mod connections;
mod layer;
mod overload;
#[cfg(all(feature = "actix", feature = "axum", feature = "parse"))]
mod parity;
