//! Applications that lease their capacity from the server.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::routing::get;
use sluicegate::{Global, RateLimitLayer};
use sluicegate_lease::client::OnLoss;
use sluicegate_lease::{Amount, Lease, LeaseClient, LeasedLimit, Wants};
use tempfile::TempDir;
use tower::ServiceExt;

use super::sluicegate::{PATIENCE, Sluicegate, serve};

/// Requests a second.
const CAPACITY: u64 = 200;

/// How many each application may admit at once.
const BURST: u64 = 5;

struct Capacity(TempDir);

impl Capacity {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let file = Self(directory);
        let text = format!(
            "[[capacity]]\nname = \"db\"\nlimit = \"{CAPACITY}/second\"\nlease = \"10 seconds\"\n"
        );
        std::fs::write(file.path(), text).expect("a file");
        file
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("capacity.toml")
    }
}

/// An application in axum, which serves what it has leased.
struct Application {
    lease: Lease,
    admitted: Arc<AtomicU64>,
    _client: LeaseClient,
}

impl Application {
    fn start(server: &Sluicegate) -> Self {
        let client = LeaseClient::connect(&format!("http://{}", server.grpc)).expect("an address");
        let lease = client.resource("db").wants(Wants::learned()).on_loss(OnLoss::Stop);
        let lease = lease.lease().expect("a lease");
        let limit = lease.limit(LeasedLimit::rate("db").burst(BURST)).expect("a limit");
        let layer = RateLimitLayer::new(limit.limit().by(Global)).store(limit);
        let application = Router::new().route("/", get(async || "served")).layer(layer);
        let admitted = Arc::new(AtomicU64::new(0));
        let served = Arc::clone(&admitted);
        tokio::spawn(async move {
            // More than there is for everybody, also where a busy machine makes each sleep long.
            let wanted = (CAPACITY * 2) as f64;
            let begun = Instant::now();
            let mut sent = 0.0;
            loop {
                while sent < wanted * begun.elapsed().as_secs_f64() {
                    let request = Request::get("/").body(Body::empty()).expect("a request");
                    let answer = application.clone().oneshot(request).await.expect("an answer");
                    match answer.status() {
                        StatusCode::OK => served.fetch_add(1, Ordering::Relaxed),
                        _ => 0,
                    };
                    sent += 1.0;
                    tokio::task::yield_now().await;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        Self { lease, admitted, _client: client }
    }

    /// Waits until it may use this much.
    async fn has(&mut self, enough: impl Fn(f64) -> bool) {
        let until = async {
            while !enough(self.lease.capacity().as_f64()) {
                self.lease.changed().await.expect("a client");
            }
        };
        tokio::time::timeout(PATIENCE, until).await.expect("capacity");
    }

    fn admitted(&self) -> u64 {
        self.admitted.load(Ordering::Relaxed)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn applications_that_lease_from_the_server_never_serve_more_than_there_is() {
    let file = Capacity::new();
    let path = file.path();
    let path = path.to_str().expect("text");
    let server = serve(&["--capacity", path, "--nothing-leased"]);
    let begun = Instant::now();
    let mut applications = [(); 2].map(|()| Application::start(&server));
    for application in &mut applications {
        application.has(|capacity| capacity > 0.0).await;
    }
    // Both want more than half, and get half.
    for application in &mut applications {
        application.has(|capacity| (capacity - CAPACITY as f64 / 2.0).abs() < 20.0).await;
    }
    // Before the count, so that what is served between the two is no more than the time allows.
    let since = Instant::now();
    let before: u64 = applications.iter().map(Application::admitted).sum();
    let admitted = || -> u64 { applications.iter().map(Application::admitted).sum() };
    // One more for each application: it may be admitted before a count and counted after it.
    let most = |time: Duration| CAPACITY as f64 * time.as_secs_f64() + (2 * (BURST + 1)) as f64;
    // What two seconds hold, however long a busy machine takes for it.
    let serving = async {
        loop {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let used = admitted() - before;
            assert!(used as f64 <= most(since.elapsed()), "{used}");
            if used >= 2 * CAPACITY {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, serving).await.expect("requests that are served");
    // From the beginning, too.
    let all = admitted() as f64;
    assert!(all <= most(begun.elapsed()), "{all}");
    let held: Amount = applications.iter().map(|application| application.lease.capacity()).sum();
    assert!(held <= Amount::units(CAPACITY), "{held:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_may_have_had_a_predecessor_hands_out_nothing_at_first() {
    let file = Capacity::new();
    let path = file.path();
    let server = serve(&["--capacity", path.to_str().expect("text")]);
    let application = Application::start(&server);
    // The lease is 10 seconds long, and so long may clients of the last server have theirs.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(application.lease.capacity(), Amount::ZERO);
    assert_eq!(application.admitted(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_cannot_take_the_name_of_an_envoy_and_gets_nothing_of_what_is_not_there() {
    let file = Capacity::new();
    let path = file.path();
    let server = serve(&["--capacity", path.to_str().expect("text"), "--nothing-leased"]);
    let address = format!("http://{}", server.grpc);
    let envoy = LeaseClient::builder().name("envoy/1/1").connect([&address]).expect("an address");
    let taken = envoy.resource("db").wants(Amount::units(1)).lease().expect("a lease");
    let client = LeaseClient::connect(&address).expect("an address");
    let absent = client.resource("absent").wants(Amount::units(1)).lease().expect("a lease");
    let mut present = client.resource("db").wants(Amount::units(1)).lease().expect("a lease");
    let granted = async {
        while present.capacity() < Amount::units(1) {
            present.changed().await.expect("a client");
        }
    };
    tokio::time::timeout(PATIENCE, granted).await.expect("capacity");
    let refused = async {
        loop {
            if let Some(problem) = envoy.problem() {
                return format!("{problem:?}");
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let problem = tokio::time::timeout(PATIENCE, refused).await.expect("a refusal");
    assert!(problem.contains("may not begin with `envoy/`"), "{problem}");
    assert_eq!((taken.capacity(), absent.capacity()), (Amount::ZERO, Amount::ZERO));
}
