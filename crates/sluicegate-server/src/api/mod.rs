//! The HTTP port: JSON for programs without gRPC, and health.

pub mod health;
pub mod json;
pub(crate) mod plain;
mod read;
pub mod v1;

use axum::http::{HeaderMap, HeaderValue, header};

/// An answer is about one moment.
fn no_store() -> HeaderMap {
    HeaderMap::from_iter([(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))])
}
