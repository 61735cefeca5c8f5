//! Health, metrics and the dashboard, on a port of their own: every path of the proxied port is the application's.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use sluicegate_config::proxy::Upstream;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::admin::metrics::{Metrics, PATH as METRICS, routes as metrics_routes};
use crate::admin::{Token, guarded, page, status};
use crate::health::Health;
use crate::status::Dashboard;

/// `/healthz`, 200 as long as the proxy runs; `/readyz`, 503 if it is about to stop or the application does not accept
/// connections; behind the token, `/metrics`, the dashboard and what it shows.
pub(crate) fn routes(
    upstream: &Upstream,
    health: &Arc<Health>,
    metrics: Option<&Metrics>,
    dashboard: &Dashboard,
    token: Option<Token>,
) -> Router {
    let (upstream, health) = (upstream.clone(), Arc::clone(health));
    let ready = async move || ready(&upstream, &health).await;
    let operators = metrics_routes(METRICS, metrics, None)
        .merge(status::routes(dashboard, None))
        .merge(page::routes());
    Router::new()
        .merge(guarded(operators, token))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
}

async fn ready(upstream: &Upstream, health: &Health) -> (StatusCode, &'static str) {
    const UNAVAILABLE: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
    if health.is_stopping() {
        return (UNAVAILABLE, "stopping\n");
    }
    match timeout(upstream.connect_timeout, TcpStream::connect(&*address(upstream))).await {
        Ok(Ok(_)) => (StatusCode::OK, "ok\n"),
        Ok(Err(_)) => (UNAVAILABLE, "the application does not accept connections\n"),
        Err(_) => (UNAVAILABLE, "the application did not accept a connection in time\n"),
    }
}

/// The host with its port. The default is that of the scheme.
fn address(upstream: &Upstream) -> String {
    with_port(&upstream.authority, if upstream.tls.is_some() { 443 } else { 80 })
}

fn with_port(authority: &str, default: u16) -> String {
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
    if has_port { authority.to_owned() } else { format!("{authority}:{default}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_a_port_has_that_of_its_scheme() {
        assert_eq!(with_port("app", 80), "app:80");
        assert_eq!(with_port("app:3000", 80), "app:3000");
        assert_eq!(with_port("[::1]", 443), "[::1]:443");
        assert_eq!(with_port("[::1]:3000", 443), "[::1]:3000");
    }
}
