//! The task of a server that wants to be the master.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep_until};
use tonic::{Code, Status};

use super::cluster::{
    Cluster, EtcdLease, Keys, delete, get, is_absent, is_of_lease, is_of_revision, put,
};
use super::generated::response_op::Response;
use super::generated::{KeyValue, RangeRequest};
use crate::grpc::Role;
use crate::pool::{Change, LeaseHolder};

/// A master calls so often in the time of a lease. Two of four calls may be lost.
pub(super) const CALLS: u32 = 4;

/// Other candidates look so often in the time of a lease.
const LOOKS: u32 = 8;

/// etcd allows 128 operations in a transaction unless it is told otherwise.
const OPERATIONS: usize = 100;

/// Clients in one answer. With the longest names, that are 3 of the 4 MiB that an answer may have.
const PAGE: i64 = 5_000;

/// With these, etcd has written nothing.
const REFUSALS: [Code; 4] = [
    Code::PermissionDenied,
    Code::Unauthenticated,
    Code::InvalidArgument,
    Code::FailedPrecondition,
];

/// A candidate for a mastership.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) cluster: Cluster,
    pub(super) keys: Keys,
    pub(super) address: String,
    /// Whole seconds.
    pub(super) lease: Duration,
    /// The longest lease of a client, in whole seconds.
    pub(super) longest: Duration,
    /// The lease in etcd that the key of this master ends with; 0 if this is not the master.
    pub(super) held: AtomicI64,
    /// A lease that this candidate has given up while etcd was away; 0 if there is none.
    pub(super) left_behind: AtomicI64,
}

/// Runs until the other end of `dropped` is gone, and then resigns.
pub(super) async fn run(
    candidate: Arc<Candidate>,
    roles: watch::Sender<Role>,
    dropped: oneshot::Receiver<()>,
) {
    tokio::select! {
        _ = dropped => {}
        () = candidate.campaign(&roles) => {}
    }
    candidate.resign().await;
}

impl Candidate {
    async fn campaign(&self, roles: &watch::Sender<Role>) {
        // The largest that it has seen, so that fences grow even if etcd has lost its keys.
        let mut fence = 0;
        let mut told = Vec::new();
        loop {
            let next = Instant::now() + self.lease / LOOKS;
            self.clean_up().await;
            match self.look(&mut fence, roles).await {
                Ok(elected) => {
                    told.clear();
                    if let Some((held, known)) = elected {
                        // An error is that of a call, and has ended the mastership.
                        let _ = self.lead(held, fence, known, roles).await;
                        become_other(roles, None);
                        self.resign().await;
                    }
                }
                // Each kind is said once, not at each look: a right that is missing is missing for good, and members of a
                // cluster are asked in turn.
                Err(status) if !told.contains(&status.code()) => {
                    told.push(status.code());
                    #[cfg(feature = "tracing")]
                    tracing::warn!(
                        address = %self.address,
                        "cannot learn from etcd who is the master, or become it: {}", status.message()
                    );
                }
                Err(_) => {}
            }
            sleep_until(next).await;
        }
    }

    /// Looks who is the master, and becomes it if there is none: returns its lease then, and whether the list of clients is
    /// complete.
    async fn look(
        &self,
        fence: &mut u32,
        roles: &watch::Sender<Role>,
    ) -> Result<Option<(EtcdLease, bool)>, Status> {
        let Keys { master, fence: counter, learning, clients } = &self.keys;
        // In one transaction, so that all three are of one moment. The comparisons below then say whether anything has
        // changed since.
        let reads = vec![get(master), get(counter), get(learning)];
        let seen = self.cluster.transact(vec![], reads).await?;
        let mut values = seen.responses.into_iter().map(|response| match response.response {
            Some(Response::ResponseRange(range)) => range.kvs.into_iter().next(),
            None => None,
        });
        let mut value = || values.next().flatten();
        let (now, last, is_learning) = (value(), value(), value().is_some());
        if let Some(last) = &last {
            *fence = read_fence(last)?.max(*fence);
        }
        if let Some(now) = now {
            let address = String::from_utf8_lossy(&now.value);
            become_other(roles, (address != self.address).then(|| address.into()));
            return Ok(None);
        }
        // The larger of what etcd has and of what this process remembers, plus one. Clients obey the larger fence, even
        // after etcd was restored from an old copy.
        let new = fence.checked_add(1).ok_or_else(|| Status::out_of_range("no fence is left"))?;
        // The lease before the key: a master that is cut off right after the election is forgotten by etcd itself.
        let held = self.cluster.grant(seconds(self.lease)).await?;
        // Before the transaction: whatever becomes of it, `resign` then ends this lease and the key with it.
        self.held.store(held.id, Ordering::Relaxed);
        let mut longest = None;
        let revision = last.as_ref().map_or(0, |last| last.mod_revision);
        let mut writes =
            vec![put(master, &self.address, held.id), put(counter, &new.to_string(), 0)];
        if last.is_none() {
            // What is left of a list that nobody vouches for. The new one lacks clients of earlier masters until the last of
            // their leases has ended.
            writes.push(delete(clients, &self.keys.end_of_clients()));
            // A key that etcd deletes by itself, when the last lease that the list may lack has ended. No master need
            // live as long as that.
            let granted = self.cluster.grant(seconds(self.longest)).await?.id;
            writes.push(put(learning, "", granted));
            longest = Some(granted);
        }
        // Both: another candidate may have won and resigned in between.
        let conditions = vec![is_absent(master), is_of_revision(counter, revision)];
        match self.cluster.transact(conditions, writes).await {
            Ok(won) if won.succeeded => {
                *fence = new;
                Ok(Some((held, last.is_some() && !is_learning)))
            }
            lost => {
                // It may have been written even if there is no answer.
                self.resign().await;
                // Where another has won, or where etcd has refused. Otherwise each look would leave one behind. A key that may
                // have been written may be the only sign that the list is incomplete.
                let is_surely_lost = match &lost {
                    Ok(_) => true,
                    Err(status) => REFUSALS.contains(&status.code()),
                };
                if let (Some(longest), true) = (longest, is_surely_lost) {
                    let _ = self.cluster.revoke(longest).await;
                }
                lost.map(|_| None)
            }
        }
    }

    /// Is the master until another one may be.
    async fn lead(
        &self,
        mut held: EtcdLease,
        fence: u32,
        is_known: bool,
        roles: &watch::Sender<Role>,
    ) -> Result<(), Status> {
        // The list is read after the election and before the first answer. Nobody else writes to it from then on.
        let mut known = None;
        if is_known {
            match self.known(&mut held).await? {
                Some(clients) => known = Some(clients.into()),
                None => return Ok(()),
            }
        }
        let mut next = Instant::now() + self.lease / CALLS;
        loop {
            roles.send_replace(Role::Master {
                fence,
                until: Some(held.until),
                known: known.take(),
            });
            // Not beyond the end: a call at that moment finds out at once whether the mastership has ended.
            sleep_until(next.min(held.until)).await;
            next = Instant::now() + self.lease / CALLS;
            match self.stay(held.id).await {
                Ok(Some(until)) => held.until = until,
                Ok(None) => return Ok(()),
                // etcd is away. The master stays the master until its time is over.
                Err(_) if Instant::now() < held.until => {}
                Err(away) => return Err(away),
            }
        }
    }

    /// Prolongs the mastership, and returns until when; `None` if it has ended.
    async fn stay(&self, id: i64) -> Result<Option<Instant>, Status> {
        // The lease first: it is what ends. A key that was deleted by hand leaves the lease alive, so both are asked.
        let Some(until) = self.cluster.keep_alive(id).await? else { return Ok(None) };
        // Somebody may have deleted the key.
        let still = vec![is_of_lease(&self.keys.master, id)];
        let still = self.cluster.transact(still, vec![]).await?;
        Ok(still.succeeded.then_some(until))
    }

    /// The clients of earlier masters; `None` if the mastership has ended.
    async fn known(&self, held: &mut EtcdLease) -> Result<Option<Vec<LeaseHolder>>, Status> {
        let mut known = Vec::new();
        let (mut key, range_end) = (self.keys.clients.clone(), self.keys.end_of_clients());
        loop {
            let request =
                RangeRequest { key, range_end: range_end.clone(), limit: PAGE, keys_only: true };
            let page = self.cluster.range(request).await?;
            known.extend(page.kvs.iter().filter_map(|entry| self.keys.read(&entry.key)));
            let Some(last) = page.kvs.into_iter().last().filter(|_| page.more) else {
                return Ok(Some(known));
            };
            // The next key after the last one.
            key = [last.key, vec![0]].concat();
            // A long list may take longer to read than the lease lasts.
            match self.stay(held.id).await? {
                Some(until) => held.until = until,
                None => return Ok(None),
            }
        }
    }

    /// Writes down that clients have come or gone. Returns whether this is still the master.
    pub(super) async fn record(&self, changes: &[Change]) -> Result<bool, Status> {
        let held = self.held.load(Ordering::Relaxed);
        // The last word about each: etcd takes each key once in a transaction.
        let changes: BTreeMap<_, _> = changes.iter().map(|change| self.keys.of(change)).collect();
        let changes: Vec<_> = changes.into_iter().collect();
        for changes in changes.chunks(OPERATIONS) {
            let write = |(key, has_joined): &(Vec<u8>, bool)| match has_joined {
                true => put(key, "", 0),
                false => delete(key, &[]),
            };
            // Compared by etcd in the same transaction as the writes. A master that was replaced while its record was
            // on the way writes nothing into the list of the next one.
            let is_master = vec![is_of_lease(&self.keys.master, held)];
            let writes = changes.iter().map(write).collect();
            if held == 0 || !self.cluster.transact(is_master, writes).await?.succeeded {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Gives the mastership up. If etcd is away, it ends with its lease, or when etcd is back.
    async fn resign(&self) {
        // Taken out, so that a record that comes later finds no lease, and nothing is revoked twice.
        let held = self.held.swap(0, Ordering::Relaxed);
        if held != 0 {
            self.left_behind.store(held, Ordering::Relaxed);
            self.clean_up().await;
        }
    }

    /// Revokes a lease that could not be revoked before. An etcd that starts again lets all leases begin anew, so nobody
    /// would be the master for so long.
    async fn clean_up(&self) {
        let left = self.left_behind.load(Ordering::Relaxed);
        if left == 0 {
            return;
        }
        match self.cluster.revoke(left).await {
            Err(status) if status.code() != Code::NotFound => {}
            _ => self.left_behind.store(0, Ordering::Relaxed),
        }
    }
}

fn seconds(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

fn read_fence(entry: &KeyValue) -> Result<u32, Status> {
    let text = std::str::from_utf8(&entry.value).ok();
    let fence = text.and_then(|text| text.parse().ok());
    fence.ok_or_else(|| Status::data_loss("the last fence is not a number"))
}

fn become_other(roles: &watch::Sender<Role>, master: Option<Box<str>>) {
    let other = Role::Other { master };
    roles.send_if_modified(|role| {
        let differs = *role != other;
        *role = other;
        differs
    });
}
