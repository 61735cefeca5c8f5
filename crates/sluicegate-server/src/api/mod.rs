//! The HTTP port: JSON for programs without gRPC, and health.

pub mod health;
pub mod json;
mod object;
mod proto_json;
pub(crate) mod slow;
pub mod v1;
