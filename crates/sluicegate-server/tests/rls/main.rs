//! Envoy's rate limit service as Envoy uses it: a real client over a real port.

mod behaviour;
mod running;
mod server;
