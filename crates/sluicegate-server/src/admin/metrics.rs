//! `/metrics` for Prometheus.

use std::time::Duration;

use axum::Router;
use axum::http::header;
use axum::routing::get;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use crate::rls::Statistics;
use crate::run::ServerError;

/// Upper bounds of the histograms of times, in seconds.
const SECONDS: [f64; 12] =
    [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0];

/// Upper bounds of the histograms of shares, from 0 to 1.
const SHARES: [f64; 6] = [0.0, 0.1, 0.2, 0.5, 0.8, 1.0];

/// The metrics of the process, which the crates record through the `metrics` facade.
#[derive(Debug, Clone)]
pub struct Metrics(PrometheusHandle);

impl Metrics {
    /// Records the metrics of this process from now on. Call it once, before the service is built.
    ///
    /// # Errors
    ///
    /// If the process records metrics already.
    pub fn install() -> Result<Self, ServerError> {
        let installed = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
            .and_then(|to| to.set_buckets_for_metric(Matcher::Suffix("_share".to_owned()), &SHARES))
            .and_then(PrometheusBuilder::install_recorder);
        installed.map(Self).map_err(|error| ServerError::because("no metrics", error))
    }

    /// The metrics as text.
    pub(crate) fn render(&self) -> String {
        self.0.render()
    }

    /// Moves what was measured into histograms every few seconds, so that it does not pile up while nobody asks. Never completes.
    pub(crate) async fn keep_tidy(self) {
        loop {
            tokio::time::sleep(TIDY).await;
            self.0.run_upkeep();
        }
    }
}

/// How often what was measured is moved into histograms.
const TIDY: Duration = Duration::from_secs(5);

/// The usual path.
pub(crate) const PATH: &str = "/metrics";

/// Whether there can be a route of this path. Braces would stand for any text.
pub(crate) fn is_path(path: &str) -> bool {
    path.starts_with('/') && !path.contains(['{', '}', '?', '#']) && path.is_ascii()
}

/// `GET` of this path, with these statistics. Without metrics, there is no route.
pub(crate) fn routes(
    path: &str,
    metrics: Option<&Metrics>,
    statistics: Option<&Statistics>,
) -> Router {
    let Some(metrics) = metrics.cloned() else { return Router::new() };
    let statistics = statistics.cloned();
    let text = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    let all = async move || {
        let more = statistics.map(|statistics| statistics.prometheus()).unwrap_or_default();
        (text, metrics.render() + &more)
    };
    Router::new().route(path, get(all))
}
