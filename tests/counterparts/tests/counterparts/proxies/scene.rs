//! What stands behind a proxy: an application, and a server on free ports.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use sluicegate_core::{ManualClock, Memory};
use sluicegate_counterparts::root;
use sluicegate_redis::Redis;
use sluicegate_server::{Policies, Server, Service, ServiceBuilder};
use tokio::net::TcpListener;

use crate::proxies::RULES;
use crate::proxies::program::free_address;

/// An application, and a server that decides by a clock that stands still.
pub(crate) struct Scene {
    application: SocketAddr,
    served: Arc<AtomicUsize>,
    http: SocketAddr,
    grpc: SocketAddr,
}

impl Scene {
    pub(crate) async fn new() -> Self {
        Self::with(Policies::new, |service| service).await
    }

    /// A scene whose rule redirects clients that have spent their limit.
    pub(crate) async fn redirecting() -> Self {
        let rules =
            format!("{RULES}reject = {{ redirect = \"https://busy.example/\", status = 303 }}\n");
        Self::of(&rules, Policies::new, |service| service).await
    }

    /// A scene whose store cannot decide, because nobody listens there.
    pub(crate) async fn with_store_away() -> Self {
        let away = Redis::connect("redis://127.0.0.1:1").expect("a URL");
        Self::with(Policies::new, |service| service.store(away)).await
    }

    /// A scene without a server.
    pub(crate) async fn with_server_away() -> Self {
        let nobody = free_address();
        Self::with_server_at(nobody, nobody).await
    }

    /// A scene whose server is at these addresses, and not in this process.
    pub(crate) async fn with_server_at(http: SocketAddr, grpc: SocketAddr) -> Self {
        Self { http, grpc, ..Self::new().await }
    }

    /// Serves these policies, and [`RULES`].
    pub(crate) async fn with(
        policies: impl FnOnce() -> Policies,
        set: impl FnOnce(ServiceBuilder) -> ServiceBuilder,
    ) -> Self {
        Self::of(RULES, policies, set).await
    }

    async fn of(
        text: &str,
        policies: impl FnOnce() -> Policies,
        set: impl FnOnce(ServiceBuilder) -> ServiceBuilder,
    ) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let rules = directory.path().join("rules.toml");
        std::fs::write(&rules, text).expect("a file");
        let policies = policies().rules(&rules).unwrap_or_else(|error| panic!("{error}"));
        let store = Memory::builder().clock(ManualClock::new()).build();
        // Decisions take no time. A busy machine does.
        let service = Service::builder(policies).store(store).deadline(Duration::from_secs(10));
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let server = Server::new(set(service).build().expect("a service")).grpc(any).http(any);
        let bound = server.bind().await.expect("free ports");
        let addresses = bound.addresses();
        tokio::spawn(bound.run(std::future::pending()));
        let (application, served) = serve_application().await;
        let (http, grpc) = (addresses.http.expect("a port"), addresses.grpc.expect("a port"));
        Self { application, served, http, grpc }
    }

    /// How many requests have reached the application.
    pub(crate) fn served(&self) -> usize {
        self.served.load(Ordering::Relaxed)
    }

    /// A file of `docs/proxies`, for a proxy at `address`, this server and this application.
    pub(crate) fn configuration(&self, file: &str, address: SocketAddr) -> String {
        let file = root().join("docs/proxies").join(file);
        let text = std::fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let ports = [
            ("8000", address),
            ("3000", self.application),
            ("8080", self.http),
            ("8081", self.grpc),
        ];
        let mut filled = String::new();
        for word in text.split_inclusive(|character: char| !character.is_ascii_digit()) {
            let digits = word.trim_end_matches(|character: char| !character.is_ascii_digit());
            match ports.iter().find(|(port, _)| *port == digits) {
                Some((_, address)) => {
                    filled.push_str(&address.port().to_string());
                    filled.push_str(&word[digits.len()..]);
                }
                None => filled.push_str(word),
            }
        }
        filled
    }
}

/// Serves 403 at `/forbidden`.
async fn serve_application() -> (SocketAddr, Arc<AtomicUsize>) {
    let served = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&served);
    let answer = async move |uri: Uri| -> Response {
        counter.fetch_add(1, Ordering::Relaxed);
        match uri.path() {
            "/forbidden" => (StatusCode::FORBIDDEN, "the application's own").into_response(),
            _ => "hello".into_response(),
        }
    };
    let app = Router::new().fallback(answer);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, app).await });
    (address, served)
}
