use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tonic::transport::Channel;
use tonic::{Response, Status};

use super::generated::compare::{CompareTarget, TargetUnion};
use super::generated::kv_client::KvClient;
use super::generated::lease_client::LeaseClient;
use super::generated::request_op::Request;
use super::generated::{
    Compare, DeleteRangeRequest, LeaseGrantRequest, LeaseKeepAliveRequest, LeaseRevokeRequest,
    PutRequest, RangeRequest, RangeResponse, RequestOp, TxnRequest, TxnResponse,
};
use crate::pool::{Change, LeaseHolder};

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
pub(super) struct EtcdLease {
    pub(super) id: i64,
    /// It has not ended before this moment.
    pub(super) until: Instant,
}

/// etcd's clock may be faster than that of this process by a twentieth.
const SKEW: u32 = 20;

impl Cluster {
    /// Makes a lease of so many seconds, or of the shortest time that etcd allows if that is longer.
    pub(super) async fn grant(&self, seconds: i64) -> Result<EtcdLease, Status> {
        let began = Instant::now();
        let granted = self.call(async |channel| {
            LeaseClient::new(channel).lease_grant(LeaseGrantRequest { ttl: seconds }).await
        });
        let granted = granted.await?;
        Ok(EtcdLease { id: granted.id, until: end(began, granted.ttl) })
    }

    /// Lets a lease begin anew, and returns when it ends; `None` if it has ended.
    pub(super) async fn keep_alive(&self, id: i64) -> Result<Option<Instant>, Status> {
        // From before the call: etcd counts from when it comes.
        let began = Instant::now();
        let answer = self.call(async |channel| {
            // One message in a stream of its own, so that the time-out of a call holds here too.
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
            // The call is not repeated here: a transaction may have been carried out although its answer was lost. The
            // caller looks again, at the next member.
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

/// The key does not exist.
pub(super) fn is_absent(key: &[u8]) -> Compare {
    compare(key, CompareTarget::Create, TargetUnion::CreateRevision(0))
}

/// The key was last changed in this revision; 0 if it does not exist.
pub(super) fn is_of_revision(key: &[u8], revision: i64) -> Compare {
    compare(key, CompareTarget::Mod, TargetUnion::ModRevision(revision))
}

/// The key ends with this lease.
pub(super) fn is_of_lease(key: &[u8], lease: i64) -> Compare {
    compare(key, CompareTarget::Lease, TargetUnion::Lease(lease))
}

fn compare(key: &[u8], target: CompareTarget, value: TargetUnion) -> Compare {
    Compare { target: target.into(), key: key.to_vec(), target_union: Some(value) }
}

pub(super) fn get(key: &[u8]) -> RequestOp {
    let range = RangeRequest { key: key.to_vec(), ..RangeRequest::default() };
    RequestOp { request: Some(Request::RequestRange(range)) }
}

/// Writes a key that ends with a lease, or stays if that is 0.
pub(super) fn put(key: &[u8], value: &str, lease: i64) -> RequestOp {
    let put = PutRequest { key: key.to_vec(), value: value.as_bytes().to_vec(), lease };
    RequestOp { request: Some(Request::RequestPut(put)) }
}

/// Deletes all keys from the first one to before the second one; if that is empty, the first one.
pub(super) fn delete(key: &[u8], end: &[u8]) -> RequestOp {
    let range = DeleteRangeRequest { key: key.to_vec(), range_end: end.to_vec() };
    RequestOp { request: Some(Request::RequestDeleteRange(range)) }
}

/// The keys of one mastership in etcd. The name has no slash, so no two names share keys.
#[derive(Debug)]
pub(super) struct Keys {
    /// Is there while there is a master. Its value is the master's address.
    pub(super) master: Vec<u8>,
    /// The fence of the last master, as a decimal number.
    pub(super) fence: Vec<u8>,
    /// Is there as long as clients may hold leases that the list of clients lacks.
    pub(super) learning: Vec<u8>,
    /// What the keys of clients begin with.
    pub(super) clients: Vec<u8>,
}

impl Keys {
    pub(super) fn new(name: &str) -> Self {
        let key = |what: &str| format!("sluicegate/{name}/{what}").into_bytes();
        Self {
            master: key("master"),
            fence: key("fence"),
            learning: key("learning"),
            clients: key("clients/"),
        }
    }

    /// The first key after those of all clients.
    pub(super) fn end_of_clients(&self) -> Vec<u8> {
        let mut end = self.clients.clone();
        // From `/` to the next character.
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        end
    }

    /// The key of a client, and whether the client has come.
    pub(super) fn of(&self, change: &Change) -> (Vec<u8>, bool) {
        let (resource, client, has_joined) = match change {
            Change::Add { resource, client } => (resource, client, true),
            Change::Remove { resource, client } => (resource, client, false),
        };
        let names = format!("{}/{resource}/{client}", resource.len());
        ([&self.clients, names.as_bytes()].concat(), has_joined)
    }

    /// The client with this key.
    pub(super) fn read(&self, key: &[u8]) -> Option<LeaseHolder> {
        let names = std::str::from_utf8(key.strip_prefix(&*self.clients)?).ok()?;
        let (length, names) = names.split_once('/')?;
        let (resource, client) = names.split_at_checked(length.parse().ok()?)?;
        Some(LeaseHolder { resource: resource.into(), client: client.strip_prefix('/')?.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_read_as_it_was_written() {
        let keys = Keys::new("quota");
        for (resource, client) in [("db", "a"), ("", ""), ("a/b", "c/1/d"), ("ü\0", "\u{1f600}")] {
            let (key, _) =
                keys.of(&Change::Add { resource: resource.into(), client: client.into() });
            assert!(keys.clients < key && key < keys.end_of_clients());
            let known = keys.read(&key).expect("a client");
            assert_eq!((&*known.resource, &*known.client), (resource, client));
        }
    }

    #[test]
    fn a_key_that_is_not_that_of_a_client_is_left_out() {
        let keys = Keys::new("quota");
        for text in
            ["", "2", "2/db", "9/db/a", "1/ü/a", "-1/db/a", "x/db/a", "99999999999999999999/"]
        {
            assert_eq!(keys.read(format!("sluicegate/quota/clients/{text}").as_bytes()), None);
        }
        assert_eq!(keys.read(b"sluicegate/quota/clients/1/\xff/a"), None);
        assert_eq!(keys.read(b"sluicegate/other/clients/2/db/a"), None);
    }
}
