//! Stores over engines that compare and swap: one that these tests make up, one that lies, and PostgreSQL.

mod across;
mod away;
mod conformance;
mod engine;
mod metrics;
mod places;
#[cfg(unix)]
mod postgres;
mod simulation;
mod store;
#[cfg(unix)]
mod tls;
