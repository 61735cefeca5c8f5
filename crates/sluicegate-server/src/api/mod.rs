//! The HTTP port: JSON for programs without gRPC, and health.

pub mod health;
pub mod json;
mod proto_json;
