//! The layer that limits requests, its service, and the service's future.

pub(crate) mod future;
pub(crate) mod layer;
pub(crate) mod service;
