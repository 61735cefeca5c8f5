//! Real clients and real servers over a simulated network: latency, partitions, crashes, duplicates, clocks that run at
//! different speeds. At no moment may clients use more than there is.
#![cfg(feature = "grpc")]

mod masters;
mod mishaps;
mod socket;
mod world;
