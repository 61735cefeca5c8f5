//! Rate limiting for actix-web.
//!
//! [`RateLimit`] is a middleware for a whole [`App`](actix_web::App), a scope or a resource: a
//! [`Rule`] says which [`Limit`]s a request owes to and on whose key, a [`Store`] decides, and a
//! [`Rejection`] says what happens to what exceeds them.
//!
//! ```no_run
//! use actix_web::{App, HttpServer, web};
//! use tollgate_actix::{Ip, Limit, RateLimit};
//!
//! #[actix_web::main]
//! async fn main() -> std::io::Result<()> {
//!     HttpServer::new(|| {
//!         App::new()
//!             .wrap(RateLimit::new(Limit::per_minute(100).burst(20).by(Ip::peer())))
//!             .route("/", web::get().to(async || "hello"))
//!     })
//!     .bind(("127.0.0.1", 3000))?
//!     .run()
//!     .await
//! }
//! ```
//!
//! All workers of the server count together, although each runs the closure for itself: see
//! [`RateLimit`].
//!
//! # What rules see
//!
//! Closures in rules ([`from_fn`], [`choose`], [`cost_fn`], `when`) are shown the
//! [`HttpRequest`](actix_web::HttpRequest). [`Ip`] reads the address of the connection
//! ([`peer_addr`](actix_web::HttpRequest::peer_addr)), never actix-web's `realip_remote_addr`, which
//! believes what clients write; name your proxies with [`Ip::behind`]. [`Route`] is the pattern that
//! matches the path, also where the limit is wrapped around the whole app. [`Extension`] reads the
//! request's extensions, then the data of the connection (`HttpServer::on_connect`); for app data use
//! `from_fn(|request: &HttpRequest| request.app_data::<T>()…)`.
//!
//! # Features
//!
//! - `metrics`: decisions by policy and verdict, what remains, waits and errors, through the facade of that name;
//!   `tollgate-core` lists them, and `examples/metrics.rs` shows them to Prometheus and Grafana.
//!
//! Everything of `tollgate-core` is re-exported here.

mod extract;
mod future;
mod headers;
mod middleware;
mod reply;
mod respond;
mod service;
mod shared;
mod sleep;
mod view;

#[doc(inline)]
pub use tollgate_core::*;

pub use self::extract::{CurrentDecision, NotLimited};
pub use self::future::ResponseFuture;
pub use self::middleware::RateLimit;
pub use self::service::RateLimitService;
pub use self::view::RequestView;
