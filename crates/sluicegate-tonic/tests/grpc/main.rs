//! Real clients of gRPC against servers of tonic and axum that are limited.

mod hostile;
mod keys;
mod messages;
mod one_port;
mod refusals;
mod servers;
mod service;
mod shed;
mod streams;
#[cfg(feature = "tls")]
mod tls;
mod web;
