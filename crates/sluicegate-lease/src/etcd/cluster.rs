use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tonic::transport::Channel;
use tonic::{Response, Status};

use super::generated::kv_client::KvClient;
use super::generated::lease_client::LeaseClient;
use super::generated::{
    Compare, LeaseGrantRequest, LeaseKeepAliveRequest, LeaseRevokeRequest, RangeRequest,
    RangeResponse, RequestOp, TxnRequest, TxnResponse,
};

/// The members of an etcd cluster. One of them is asked until it fails, and then the next one.
#[derive(Debug)]
pub(super) struct Cluster {
    /// At least one.
    pub(super) members: Vec<Channel>,
    pub(super) at: AtomicUsize,
    /// How long a call may take.
    pub(super) patience: Duration,
}

/// A lease in etcd.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub(super) id: i64,
    /// It has not ended before this moment.
    pub(super) until: Instant,
}

/// etcd's clock may be faster than that of this process by a twentieth.
const SKEW: u32 = 20;

impl Cluster {
    /// Makes a lease of so many seconds, or of the shortest time that etcd allows if that is longer.
    pub(super) async fn grant(&self, seconds: i64) -> Result<Held, Status> {
        let began = Instant::now();
        let granted = self.call(async |channel| {
            LeaseClient::new(channel).lease_grant(LeaseGrantRequest { ttl: seconds }).await
        });
        let granted = granted.await?;
        Ok(Held { id: granted.id, until: end(began, granted.ttl) })
    }

    /// Lets a lease begin anew, and returns when it ends; `None` if it has ended.
    pub(super) async fn keep_alive(&self, id: i64) -> Result<Option<Instant>, Status> {
        // From before the call: etcd counts from when it comes.
        let began = Instant::now();
        let answer = self.call(async |channel| {
            let once = tokio_stream::once(LeaseKeepAliveRequest { id });
            let mut answers = LeaseClient::new(channel).lease_keep_alive(once).await?.into_inner();
            let answer = answers.message().await?;
            answer.map(Response::new).ok_or_else(|| Status::unavailable("etcd has not answered"))
        });
        let ttl = answer.await?.ttl;
        Ok((ttl > 0).then(|| end(began, ttl)))
    }

    /// Ends a lease, and with it its keys.
    pub(super) async fn revoke(&self, id: i64) -> Result<(), Status> {
        let revoked = self.call(async |channel| {
            LeaseClient::new(channel).lease_revoke(LeaseRevokeRequest { id }).await
        });
        revoked.await.map(drop)
    }

    /// Does all of this at once if all comparisons hold.
    pub(super) async fn transact(
        &self,
        compare: Vec<Compare>,
        success: Vec<RequestOp>,
    ) -> Result<TxnResponse, Status> {
        let request = TxnRequest { compare, success };
        self.call(async |channel| KvClient::new(channel).txn(request).await).await
    }

    pub(super) async fn range(&self, request: RangeRequest) -> Result<RangeResponse, Status> {
        self.call(async |channel| KvClient::new(channel).range(request).await).await
    }

    async fn call<T>(
        &self,
        call: impl AsyncFnOnce(Channel) -> Result<Response<T>, Status>,
    ) -> Result<T, Status> {
        let at = self.at.load(Ordering::Relaxed);
        let answer = timeout(self.patience, call(self.members[at].clone())).await;
        let answer =
            answer.unwrap_or_else(|_| Err(Status::deadline_exceeded("etcd has not answered")));
        if answer.is_err() {
            let next = (at + 1) % self.members.len();
            // Unless another call has moved on already.
            let _ = self.at.compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed);
        }
        answer.map(Response::into_inner)
    }
}

/// When a lease of `ttl` seconds ends at the earliest.
fn end(began: Instant, ttl: i64) -> Instant {
    let ttl = Duration::from_secs(u64::try_from(ttl).unwrap_or(0).min(LONGEST));
    began + (ttl - ttl / SKEW)
}

/// No answer makes a lease longer than an hour.
const LONGEST: u64 = 3_600;
