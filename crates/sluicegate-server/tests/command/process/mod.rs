//! The process as operators and orchestrators see it: signals, with clients at work.

#![cfg(unix)]

mod client;
mod leases;
mod like;
mod masters;
mod redis_leases;
mod reloading;
mod restarting;
mod sluicegate;
mod stopping;
mod top;
