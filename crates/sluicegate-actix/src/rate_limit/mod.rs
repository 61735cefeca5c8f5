//! The middleware that limits requests, its service, and the service's future.

pub(crate) mod future;
pub(crate) mod middleware;
pub(crate) mod service;
