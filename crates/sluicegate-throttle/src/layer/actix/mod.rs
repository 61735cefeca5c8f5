//! The middleware for actix-web: hands requests to the parts that decide, and responses to those that measure.

mod future;
mod service;

pub use self::future::ActixFuture;
pub use self::service::ActixService;
