//! Metrics for Prometheus, a dashboard for Grafana, and the keys that are limited most.
//!
//!     cargo run --example metrics
//!
//! `docs/grafana.json` is the dashboard; import it, and choose the Prometheus that scrapes this.

use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use metrics_exporter_prometheus::{
    Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};
use serde_json::{Value, json};
use sluicegate_axum::observe::Watch;
use sluicegate_axum::{Header, Ip, Limit, Memory, RateLimitLayer, Rejection};
use sluicegate_throttle::Throttle;
use sluicegate_throttle::adaptive::Bandwidth;
use sluicegate_throttle::layer::partition_when;

const API: Limit = Limit::per_minute(60).burst(10).soft(7).named("api");
const REPORTS: Limit = Limit::per_second(1).named("reports");

/// Borders of the shares that remain: closer together towards the end, where it gets interesting.
const SHARES: [f64; 8] = [0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0];
/// Borders of the waits, in seconds: for a turn, and for a place in the throttle.
const WAITS: [f64; 7] = [0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5];

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Before the first request: what is measured of a limit is registered at its first decision.
    let recorder = recorder()?;
    let scrape = recorder.handle();
    metrics::set_global_recorder(recorder)?;
    tokio::spawn(keep_up(scrape.clone()));

    let (listener, url) = sluicegate_examples::listen().await;
    println!(
        "Ten requests at once, then one a second, for each address:

    curl -s -o /dev/null -w '%{{http_code}}\\n' '{url}/?[1-14]'

One report a second; who comes too early waits, for two seconds at most:

    for i in 1 2 3 4 5; do curl -s -o /dev/null -w '%{{http_code}} %{{time_total}}\\n' {url}/reports & done; wait

Searches, as many at once as the server can do; the others wait, and the queue of each class is shown:

    for i in $(seq 30); do curl -s -o /dev/null {url}/search & done; wait

What Prometheus reads, and who is being limited most:

    curl -s {url}/metrics | grep sluicegate
    curl -s {url}/limited

Neither is for everybody: serve them where only operators come. Ctrl-C ends this."
    );
    let app = app(scrape, Memory::new()).into_make_service_with_connect_info::<SocketAddr>();
    Ok(axum::serve(listener, app).await?)
}

/// Histograms with fixed borders, which can be added up over processes; the exporter's summaries cannot.
fn recorder() -> Result<PrometheusRecorder, Box<dyn std::error::Error>> {
    let of = |name: &str| Matcher::Full(name.to_owned());
    let builder = PrometheusBuilder::new()
        .set_buckets_for_metric(of("sluicegate_remaining_share"), &SHARES)?
        .set_buckets_for_metric(of("sluicegate_wait_seconds"), &WAITS)?
        .set_buckets_for_metric(of("sluicegate_throttle_wait_seconds"), &WAITS)?;
    Ok(builder.build_recorder())
}

/// The exporter keeps what histograms are told until it is scraped, or until this: without it, memory
/// grows while nobody scrapes.
async fn keep_up(scrape: PrometheusHandle) {
    let mut ticks = tokio::time::interval(Duration::from_secs(5));
    loop {
        ticks.tick().await;
        scrape.run_upkeep();
    }
}

/// What the routes for operators show.
#[derive(Clone)]
struct Shown {
    scrape: PrometheusHandle,
    store: Memory,
    watch: Watch,
    throttle: Throttle,
}

fn app(scrape: PrometheusHandle, store: Memory) -> Router {
    // The ten most refused of each limit. `.redacted(secret)` would show digests in place of addresses.
    let watch = Watch::new(10);

    let api = RateLimitLayer::new(API.by(Ip::peer())).store(store.clone()).watch(&watch);
    let reports = RateLimitLayer::new(REPORTS.by(Ip::peer()))
        .rejection(Rejection::queue(Duration::from_secs(2)))
        .store(store.clone())
        .watch(&watch);

    // Gauges are read when the page is requested.
    let throttle = Throttle::builder()
        .named("search")
        .adaptive(Bandwidth::new(4, 2, 1_000))
        // A quarter of the places is theirs, whoever else searches.
        .partition("partners", 0.25)
        .queue(Duration::from_secs(1))
        .build()
        .expect("a throttle that works");

    let partners = throttle.partition("partners").expect("it is named above");
    let searches = throttle
        .layer()
        .fair_by(Header("x-customer"))
        .partition_by(partition_when(Header("x-partner").is_present(), partners));

    Router::new()
        .route("/search", get(search).layer(searches))
        .route("/", get(async || "Hello!\n").layer(api))
        .route("/reports", get(async || "Nothing to report.\n").layer(reports))
        .route("/metrics", get(metrics_text))
        .route("/limited", get(limited))
        .with_state(Shown { scrape, store, watch, throttle })
}

/// Lets others run meanwhile.
async fn search() -> &'static str {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    "Nothing found.\n"
}

async fn metrics_text(State(shown): State<Shown>) -> String {
    // The answers of the routes once each limit has refused, in a process that nothing else measures in.
    shown.store.record_metrics("service");
    shown.throttle.record_metrics();
    shown.scrape.render()
}

async fn limited(State(shown): State<Shown>) -> Json<Value> {
    let policies = shown.watch.snapshot().into_iter().map(|policy| {
        let keys = policy
            .keys
            .iter()
            .map(|key| json!({ "who": key.who, "at_least": key.at_least, "at_most": key.at_most }));
        json!({
            "policy": policy.policy,
            "refusals": policy.refusals,
            "missed": policy.missed,
            "keys": keys.collect::<Vec<_>>(),
        })
    });
    Json(policies.collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use axum::body::{Body, to_bytes};
    use axum::extract::connect_info::MockConnectInfo;
    use axum::http::Request;
    use sluicegate::ManualClock;
    use tower::ServiceExt;

    use super::*;

    const DASHBOARD: &str = include_str!("../../docs/grafana.json");

    /// Those of Redis are for services that use it; its crate checks them.
    fn after_some_traffic(path: &str) -> String {
        let recorder = recorder().unwrap();
        let store = Memory::builder().clock(ManualClock::new()).build();
        let app = app(recorder.handle(), store)
            .layer(MockConnectInfo(SocketAddr::from(([192, 0, 2, 7], 1))));
        let get = async |path: &str| {
            let request = Request::get(path).body(Body::empty()).unwrap();
            let response = app.clone().oneshot(request).await.unwrap();
            let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
            String::from_utf8(body.to_vec()).unwrap()
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        metrics::with_local_recorder(&recorder, || {
            runtime.block_on(async {
                for _ in 0..12 {
                    get("/").await;
                }
                // As many as the throttle needs to learn what an unloaded server does, more at once than it starts.
                for _ in 0..60 {
                    tokio::join!(
                        get("/search"),
                        get("/search"),
                        get("/search"),
                        get("/search"),
                        get("/search"),
                        get("/search"),
                        get("/search"),
                        get("/search"),
                        get("/search"),
                        get("/search"),
                    );
                }
                get(path).await
            })
        })
    }

    /// The names that begin with `sluicegate_` in a text.
    fn names(text: &str) -> BTreeSet<&str> {
        text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .filter(|word| word.starts_with("sluicegate_"))
            .collect()
    }

    /// What the dashboard asks for: of its panels, and for its variables.
    fn expressions(dashboard: &Value, found: &mut Vec<String>) {
        match dashboard {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match value {
                        // The crates of Redis and of other engines check their own metrics.
                        Value::String(text) if text.contains("sluicegate_redis_") => {}
                        Value::String(text) if text.contains("sluicegate_swap_") => {}
                        Value::String(text) if name == "expr" || name == "definition" => {
                            found.push(text.clone());
                        }
                        _ => expressions(value, found),
                    }
                }
            }
            Value::Array(values) => values.iter().for_each(|value| expressions(value, found)),
            _ => {}
        }
    }

    #[test]
    fn the_dashboard_asks_for_what_is_exported_and_for_all_of_it() {
        let scrape = after_some_traffic("/metrics");
        let samples: BTreeSet<_> = scrape
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split(['{', ' ']).next())
            .filter(|name| !name.is_empty())
            .collect();
        let families: BTreeSet<_> = scrape
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
            .collect();

        let mut asked = Vec::new();
        expressions(&serde_json::from_str(DASHBOARD).unwrap(), &mut asked);
        assert!(asked.len() > 5, "{asked:?}");
        let asked: BTreeSet<_> = asked.iter().flat_map(|expression| names(expression)).collect();

        let unknown: Vec<_> = asked.difference(&samples).collect();
        assert!(
            unknown.is_empty(),
            "the dashboard asks for {unknown:?}, which is not in {samples:?}"
        );
        let is_asked = |family: &&&str| asked.iter().any(|name| name.starts_with(**family));
        let unasked: Vec<_> = families.iter().filter(|family| !is_asked(family)).collect();
        assert!(unasked.is_empty(), "the dashboard does not ask for {unasked:?}");
    }

    #[test]
    fn the_dashboard_asks_by_labels_that_there_are() {
        let scrape = after_some_traffic("/metrics");
        let mut asked = Vec::new();
        expressions(&serde_json::from_str(DASHBOARD).unwrap(), &mut asked);
        for expression in &asked {
            for by in expression.split(" by (").skip(1) {
                let labels = by.split(')').next().unwrap();
                for label in labels.split(", ") {
                    assert!(scrape.contains(&format!("{label}=\"")), "{label} in {expression}");
                }
            }
        }
    }

    #[test]
    fn who_is_limited_is_shown_with_the_bounds_of_how_often() {
        let shown: Value = serde_json::from_str(&after_some_traffic("/limited")).unwrap();
        let who = json!({ "who": "ip:192.0.2.7", "at_least": 2, "at_most": 2 });
        let policy = json!({ "policy": "api", "refusals": 2, "missed": 0, "keys": [who] });
        assert_eq!(shown, json!([policy]));
    }
}
