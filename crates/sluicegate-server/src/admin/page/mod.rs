//! The dashboard: one page, its style and its scripts, all in the binary. None of them holds data.
//!
//! The page asks for `/v1/status` once a second. Where the server has a token, it asks for it once and gets a
//! cookie: see [`session`](super::session).

use axum::Router;
use axum::http::{HeaderName, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

/// What a browser needs before it has shown the token.
pub(super) const PUBLIC: [&str; 6] =
    ["/", "/dashboard.css", "/dashboard.js", "/parts.js", "/picture.js", "/favicon.svg"];

/// Nothing is loaded from elsewhere, nothing inline runs, and no other page may show this one in a frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

/// `GET /`, and what the page loads.
pub(crate) fn routes() -> Router {
    Router::new()
        .route("/", get(async || asset("text/html", include_str!("dashboard.html"))))
        .route("/dashboard.css", get(async || asset("text/css", include_str!("dashboard.css"))))
        .route("/dashboard.js", get(async || script(include_str!("dashboard.js"))))
        .route("/parts.js", get(async || script(include_str!("parts.js"))))
        .route("/picture.js", get(async || script(include_str!("picture.js"))))
        .route("/favicon.svg", get(async || asset("image/svg+xml", include_str!("favicon.svg"))))
}

fn script(text: &'static str) -> Response {
    asset("text/javascript", text)
}

fn asset(kind: &'static str, text: &'static str) -> Response {
    let fields: [(HeaderName, &str); 6] = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        // A new version of the server has a new page.
        (header::CACHE_CONTROL, "no-cache"),
    ];
    let charset = format!("{kind}; charset=utf-8");
    (fields, [(header::CONTENT_TYPE, charset)], text).into_response()
}
