//! The HTTP port: JSON for programs without gRPC, and health.

pub mod health;
pub mod json;
pub(crate) mod plain;
mod read;
pub mod v1;
