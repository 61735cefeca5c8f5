//! The HTTP port: JSON for programs without gRPC, and health.

pub mod health;
pub mod json;
mod number;
mod object;
pub(crate) mod plain;
mod proto_json;
pub(crate) mod slow;
mod text;
pub mod v1;
