//! Limits in etcd: what an engine of another kind takes. It has no SQL and no clock that it tells, and rows end with leases.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use sluicegate_core::adapter::{Answer, Charge};
use sluicegate_core::store::{Store as _, StoreError};
use sluicegate_core::{Limit, ManualClock};
use sluicegate_swap::{Engine, EngineError, Loaded, Stored, Swap, SwapBuilder, Swapped, Write};
use sluicegate_tests::{conformance, key};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::server::Server;

type Http = Client<HttpConnector, Full<axum::body::Bytes>>;

/// Rows in an etcd, through its gateway for JSON. A row's version is the revision of its last change.
#[derive(Clone)]
struct EtcdRows {
    server: Arc<Mutex<Server>>,
    http: Http,
    /// By the seconds that rows are kept, at least: a lease, and until when new rows may have it.
    leases: Arc<Mutex<HashMap<u64, (String, Instant)>>>,
}

impl EtcdRows {
    fn new(server: Server) -> Self {
        let http = Client::builder(TokioExecutor::new()).build_http();
        Self { server: Arc::new(Mutex::new(server)), http, leases: Arc::default() }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Server> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn call(&self, path: &str, body: Value) -> Result<Value, EngineError> {
        let uri = format!("{}/v3/{path}", self.lock().address());
        let request = axum::http::Request::post(uri).body(Full::from(body.to_string()))?;
        let (head, body) = self.http.request(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        if !head.status.is_success() {
            return Err(format!("etcd: {}", String::from_utf8_lossy(&body)).into());
        }
        Ok(serde_json::from_slice(&body)?)
    }

    /// A lease for rows that are kept for so long. Many rows share one: it lasts twice as long as any of them needs, and
    /// half of that time later the next rows get another one.
    async fn lease(&self, keep: Duration) -> Result<String, EngineError> {
        let seconds = (keep.as_secs() + 1).next_power_of_two();
        let known = |leases: &HashMap<u64, (String, Instant)>| leases.get(&seconds).cloned();
        let known = known(&self.leases.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some((lease, _)) = known.filter(|(_, until)| Instant::now() < *until) {
            return Ok(lease);
        }
        let until = Instant::now() + Duration::from_secs(seconds);
        let granted = self.call("lease/grant", json!({ "TTL": 2 * seconds })).await?;
        let lease = granted["ID"].as_str().ok_or("a lease without a number")?.to_owned();
        let mut leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        leases.insert(seconds, (lease.clone(), until));
        Ok(lease)
    }
}

fn encoded(bytes: impl AsRef<[u8]>) -> String {
    BASE64_STANDARD.encode(bytes)
}

fn ranges<'a>(keys: impl Iterator<Item = &'a Arc<str>>) -> Vec<Value> {
    keys.map(|key| json!({ "request_range": { "key": encoded(key.as_bytes()) } })).collect()
}

fn number(value: &Value) -> Result<u64, EngineError> {
    Ok(value.as_str().ok_or("no number")?.parse()?)
}

/// The rows in the answer to a transaction that has read them.
fn loaded(answer: &Value) -> Result<Loaded, EngineError> {
    let read = |response: &Value| {
        let row = &response["response_range"]["kvs"][0];
        if row.is_null() {
            return Ok(None);
        }
        let bytes = BASE64_STANDARD.decode(row["value"].as_str().unwrap_or_default())?;
        Ok(Some(Stored { version: number(&row["mod_revision"])?, bytes }))
    };
    let responses = answer["responses"].as_array().ok_or("no answers")?;
    let rows = responses.iter().map(read).collect::<Result<_, EngineError>>()?;
    // etcd tells no time.
    Ok(Loaded { rows, now: None })
}

impl Engine for EtcdRows {
    fn rows_at_once(&self) -> usize {
        // etcd allows 128 operations in a transaction, if nobody has changed that.
        64
    }

    async fn load(&self, keys: &[Arc<str>]) -> Result<Loaded, EngineError> {
        loaded(&self.call("kv/txn", json!({ "success": ranges(keys.iter()) })).await?)
    }

    async fn swap(&self, writes: &[Write]) -> Result<Swapped, EngineError> {
        let (mut compare, mut puts) = (Vec::new(), Vec::new());
        for write in writes {
            let (key, expected) = (encoded(write.key.as_bytes()), write.expected.unwrap_or(0));
            puts.push(json!({ "request_put": {
                "key": key, "value": encoded(&write.bytes), "lease": self.lease(write.keep).await?,
            } }));
            // A key that is not there has the revision 0.
            compare.push(json!({
                "key": key, "target": "MOD", "result": "EQUAL", "mod_revision": expected.to_string(),
            }));
        }
        let read = ranges(writes.iter().map(|write| &write.key));
        let transaction = json!({ "compare": compare, "success": puts, "failure": read });
        let answer = self.call("kv/txn", transaction).await.inspect_err(|_| {
            // It may have been that a lease has ended.
            self.leases.lock().unwrap_or_else(PoisonError::into_inner).clear();
        })?;
        if answer["succeeded"] != true {
            return Ok(Swapped::Changed(Some(loaded(&answer)?)));
        }
        let revision = number(&answer["header"]["revision"])?;
        Ok(Swapped::Written { versions: vec![revision; writes.len()], now: None })
    }
}

/// The runtime of all stores of this process.
fn runtime() -> &'static Runtime {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("threads"));
    &RUNTIME
}

const AGES: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

fn patient(engine: EtcdRows) -> SwapBuilder<EtcdRows> {
    Swap::builder(engine).deadline(AGES).background(4_096, AGES)
}

fn open(builder: SwapBuilder<EtcdRows>) -> Swap<EtcdRows> {
    let _entered = runtime().enter();
    builder.build()
}

conformance!(
    rows_in_etcd,
    |clock: &ManualClock| {
        let store = patient(EtcdRows::new(Server::start()));
        open(store.clock(clock).concurrency_lease(AGES))
    },
    |store: &Swap<EtcdRows>| runtime().block_on(store.flush())
);

async fn take(store: &Swap<EtcdRows>, charge: &Charge) -> Result<bool, StoreError> {
    let outcome = match store.take(charge) {
        Answer::Now(outcome) => outcome,
        Answer::Later(answer) => answer.await,
    };
    outcome.map(|outcome| outcome.is_admitted())
}

/// Three stores, as three processes have them, and a lease of etcd for each of them.
#[test]
fn decisions_in_etcd_are_exact_and_its_rows_end() {
    let engine = EtcdRows::new(Server::start());
    let stores =
        [(); 3].map(|()| open(patient(EtcdRows { leases: Arc::default(), ..engine.clone() })));
    let limit = Limit::fixed_window(50, Duration::from_secs(86_400)).from_first();
    let admitted = runtime().block_on(async {
        let mut tasks = JoinSet::new();
        for number in 0..300 {
            let store = stores[number % 3].clone();
            let charge = Charge::of(limit, key(&format!("user {}", number % 2)), 1);
            tasks.spawn(async move { take(&store, &charge).await.expect("etcd answers") });
        }
        tasks.join_all().await.into_iter().filter(|admitted| *admitted).count()
    });
    assert_eq!(admitted, 100, "50 for each of two users");

    let all = json!({ "key": encoded([0]), "range_end": encoded([0]) });
    let rows = runtime().block_on(engine.call("kv/range", all)).expect("etcd answers");
    let rows = rows["kvs"].as_array().expect("rows").clone();
    assert_eq!(rows.len(), 2);
    for row in rows {
        let lease = json!({ "ID": row["lease"].as_str().expect("a lease") });
        let lease = runtime().block_on(engine.call("lease/timetolive", lease)).expect("an answer");
        let left = number(&lease["TTL"]).expect("seconds");
        assert!((86_400..=4 * 131_072).contains(&left), "{left}");
    }
}

#[test]
fn an_etcd_that_is_away_is_an_error_and_forgets_nothing() {
    let engine = EtcdRows::new(Server::start());
    let store = Swap::builder(engine.clone()).deadline(AGES).breaker(0, AGES, AGES);
    let store = open(store);
    let charge = Charge::of(Limit::per_day(2), key("alice"), 1);
    let take = || runtime().block_on(take(&store, &charge));
    assert!(take().expect("etcd answers"));
    engine.lock().kill();
    take().expect_err("nobody listens");
    engine.lock().start_again();
    // The failed decision has charged nothing.
    assert!(take().expect("etcd answers"));
    assert!(!take().expect("etcd answers"));
}
