//! `/v1`: limits for anybody with an HTTP client, by the rules of the service.

mod decide;
mod request;
mod routes;
mod tickets;

pub(crate) use self::decide::Context;
pub(super) use self::decide::bad;
pub(crate) use self::routes::routes_in;
pub(super) use self::routes::{LARGEST, take_sent};
pub use self::routes::{openapi, routes};
