use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{Basis, InProcess, Lease, LeaseClient, LeaseClientClosed, Transport, TransportError};
use crate::amount::Amount;
use crate::client::OnLoss;
use crate::message::{Release, Request, Response};
use crate::template::{Template, Templates};

/// A server that can be cut off.
#[derive(Clone)]
pub(super) struct Cut {
    server: InProcess,
    link: Arc<Mutex<Link>>,
}

#[derive(Debug, Default)]
struct Link {
    is_cut: bool,
    /// Requests vanish instead of failing.
    is_silent: bool,
    requests: Vec<Request>,
    releases: Vec<Release>,
}

impl Transport for Cut {
    fn ask(
        &mut self,
        request: Request,
    ) -> impl Future<Output = Result<Response, TransportError>> + Send + 'static {
        let mut link = self.link.lock().unwrap();
        link.requests.push(request.clone());
        let (is_cut, is_silent) = (link.is_cut, link.is_silent);
        let mut server = self.server.clone();
        async move {
            if is_silent {
                std::future::pending::<()>().await;
            }
            if is_cut {
                return Err(TransportError::Failed("it is cut off".into()));
            }
            server.ask(request).await
        }
    }

    fn release(
        &mut self,
        release: Release,
    ) -> impl Future<Output = Result<(), TransportError>> + Send + 'static {
        let mut link = self.link.lock().unwrap();
        link.releases.push(release.clone());
        let is_silent = link.is_silent;
        let mut server = self.server.clone();
        async move {
            if is_silent {
                std::future::pending::<()>().await;
            }
            server.release(release).await
        }
    }
}

/// 100 units, leased for 10 seconds at a time, and asked for each second.
fn server() -> Cut {
    let template = Template::new("*", Amount::units(100))
        .lease(Duration::from_secs(10))
        .refresh(Duration::from_secs(1))
        .safe(Amount::units(3));
    let server = InProcess::new(Templates::new([template]).unwrap());
    Cut::of(server)
}

impl Cut {
    pub(super) fn of(server: InProcess) -> Self {
        Self { server, link: Arc::default() }
    }

    fn set(&self, change: impl FnOnce(&mut Link)) {
        change(&mut self.link.lock().unwrap());
    }

    pub(super) fn requests(&self) -> usize {
        self.link.lock().unwrap().requests.len()
    }

    fn outstanding(&self) -> Amount {
        self.server.with(|server| server.pool().outstanding("db"))
    }
}

async fn lease(client: &LeaseClient, on_loss: OnLoss) -> Lease {
    let wants = Amount::units(30);
    let mut lease = client.resource("db").wants(wants).on_loss(on_loss).lease().unwrap();
    lease.changed().await.unwrap();
    lease
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_before_it_ends() {
    let server = server();
    let client = LeaseClient::over(server.clone());
    let lease = lease(&client, OnLoss::Stop).await;
    for _ in 0..100 {
        assert_eq!((lease.capacity(), lease.basis()), (Amount::units(30), Basis::Lease));
        sleep(Duration::from_secs(1)).await;
    }
    assert!((100..=115).contains(&server.requests()), "{}", server.requests());
}

#[tokio::test(start_paused = true)]
async fn without_a_server_each_client_does_what_it_was_told() {
    let expected = [
        (OnLoss::Stop, 0, Basis::Nothing),
        (OnLoss::Keep, 30, Basis::Kept),
        (OnLoss::Safe, 3, Basis::Safe),
    ];
    for (on_loss, capacity, basis) in expected {
        let server = server();
        let client = LeaseClient::over(server.clone());
        let mut lease = lease(&client, on_loss).await;
        server.set(|link| link.is_cut = true);
        sleep(Duration::from_millis(8_500)).await;
        assert_eq!((lease.capacity(), lease.basis()), (Amount::units(30), Basis::Lease));
        lease.changed().await.unwrap();
        assert_eq!((lease.capacity(), lease.basis()), (Amount::units(capacity), basis));

        // It is back within the longest time between two requests.
        server.set(|link| link.is_cut = false);
        sleep(Duration::from_secs(10)).await;
        assert_eq!((lease.capacity(), lease.basis()), (Amount::units(30), Basis::Lease));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_silent_is_asked_again() {
    let server = server();
    server.set(|link| link.is_silent = true);
    let client = LeaseClient::over(server.clone());
    let mut lease =
        client.resource("db").on_loss(OnLoss::Safe).safe(Amount::units(2)).lease().unwrap();
    lease.set_wants(Amount::units(30));
    assert_eq!((lease.capacity(), lease.basis()), (Amount::units(2), Basis::Safe));
    sleep(Duration::from_secs(7)).await;
    assert_eq!(server.requests(), 2);
    server.set(|link| link.is_silent = false);
    lease.changed().await.unwrap();
    assert_eq!((lease.capacity(), server.requests()), (Amount::units(30), 3));
}

#[tokio::test(start_paused = true)]
async fn what_is_wanted_changes_with_the_next_request() {
    let server = server();
    let client = LeaseClient::over(server.clone());
    let mut lease = lease(&client, OnLoss::Stop).await;
    lease.set_wants(Amount::units(50));
    assert_eq!(lease.wants(), Amount::units(50));
    let begun = Instant::now();
    lease.changed().await.unwrap();
    assert!(begun.elapsed() <= Duration::from_secs(1));
    assert_eq!(lease.capacity(), Amount::units(50));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_dropped_is_given_back() {
    let server = server();
    let client = LeaseClient::over(server.clone());
    let first = lease(&client, OnLoss::Stop).await;
    let second = first.clone();
    drop(first);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(server.outstanding(), Amount::units(30), "a clone is still there");
    drop(second);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(server.outstanding(), Amount::ZERO);
    // The resource can be leased again.
    let lease = lease(&client, OnLoss::Stop).await;
    assert_eq!((lease.capacity(), server.outstanding()), (Amount::units(30), Amount::units(30)));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_dropped_gives_everything_back_after_its_last_lease() {
    let server = server();
    let client = LeaseClient::over(server.clone());
    let lease = lease(&client, OnLoss::Keep).await;
    drop(client);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(lease.capacity(), Amount::units(30));
    drop(lease);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(server.outstanding(), Amount::ZERO);
    let before = server.requests();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(server.requests(), before);
}

#[tokio::test(start_paused = true)]
async fn closing_a_client_twice_is_harmless() {
    let server = server();
    let client = LeaseClient::over(server.clone());
    let mut lease = lease(&client, OnLoss::Keep).await;
    client.close().await;
    assert_eq!(server.outstanding(), Amount::ZERO);
    assert_eq!((lease.capacity(), lease.basis()), (Amount::ZERO, Basis::Nothing));
    client.close().await;
    assert_eq!(server.link.lock().unwrap().releases.len(), 1);
    // The last change is seen before the end.
    assert_eq!(lease.changed().await, Ok(()));
    assert_eq!(lease.changed().await, Err(LeaseClientClosed));
    let error = client.resource("db").lease().unwrap_err();
    assert_eq!(error.to_string(), "`db` cannot be leased by a client that is closed");
}

#[tokio::test(start_paused = true)]
async fn a_client_closes_within_two_seconds_when_the_server_is_silent() {
    let server = server();
    let client = LeaseClient::over(server.clone());
    let lease = lease(&client, OnLoss::Stop).await;
    server.set(|link| link.is_silent = true);
    let start = Instant::now();
    client.close().await;
    assert_eq!(start.elapsed(), Duration::from_secs(2));
    assert_eq!(lease.capacity(), Amount::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_cannot_be_leased_is_refused_at_once() {
    let client = LeaseClient::over(server());
    let _lease = client.resource("db").lease().unwrap();
    let error = |builder: super::LeaseBuilder| builder.lease().unwrap_err().to_string();
    assert_eq!(error(client.resource("")), "the name of a resource has 1 to 256 bytes, not 0");
    assert_eq!(
        error(client.resource("x".repeat(257))),
        "the name of a resource has 1 to 256 bytes, not 257"
    );
    assert_eq!(
        error(client.resource("cache").weight(0)),
        "the lease of `cache` has a weight of zero"
    );
    assert_eq!(
        error(client.resource("db")),
        "this client leases `db` already: clone that lease instead"
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_says_why_it_was_not_answered() {
    let server = server();
    let client = LeaseClient::over(server.clone());
    assert!(client.problem().is_none());
    let _lease = lease(&client, OnLoss::Stop).await;
    assert!(client.problem().is_none());
    let problem = || {
        let problem = client.problem().expect("a request that was not answered");
        (problem.to_string(), problem.source().map(ToString::to_string))
    };
    server.set(|link| link.is_cut = true);
    sleep(Duration::from_secs(2)).await;
    let (text, source) = problem();
    assert_eq!(text, "the request for capacity was not answered");
    assert_eq!(source.as_deref(), Some("it is cut off"));
    server.set(|link| link.is_silent = true);
    sleep(Duration::from_secs(20)).await;
    assert_eq!(problem(), ("the request for capacity was not answered in time".to_owned(), None));
    server.set(|link| (link.is_cut, link.is_silent) = (false, false));
    sleep(Duration::from_secs(20)).await;
    assert!(client.problem().is_none());
}

#[test]
fn nothing_can_be_leased_when_the_runtime_of_the_client_has_ended() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = {
        let _entered = runtime.enter();
        let templates = Templates::new([Template::new("*", Amount::units(100))]).unwrap();
        LeaseClient::over(InProcess::new(templates))
    };
    drop(runtime);
    let error = client.resource("db").lease().unwrap_err();
    assert_eq!(error.to_string(), "`db` cannot be leased by a client that is closed");
}
