//! What several crates have to do together: every store, every adapter, the documents.

mod bodies;
mod conformance;
mod documents;
mod extended_connect;
mod hazards;
mod leases;
mod overload;
mod parity;
#[cfg(unix)]
mod redis;
mod store_wrappers;
mod streamed_usage;
