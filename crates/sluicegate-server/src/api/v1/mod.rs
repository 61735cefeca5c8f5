//! `/v1`: limits for anybody with an HTTP client, by the rules of the service.

mod answer;
mod asked;
mod decide;
mod routes;
mod sent;
mod tickets;

pub use self::routes::{openapi, routes};
