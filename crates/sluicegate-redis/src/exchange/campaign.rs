//! The task of a server that wants to be the master.

use std::sync::{Arc, Weak};
use std::time::Duration;

use sluicegate_lease::Role;
use sluicegate_lease::pool::Known;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::exchange::delivery;
use crate::exchange::request::Request;
use crate::exchange::shared::Shared;
use crate::failure::{Failure, FailureKind};
use crate::runtime::before;
use crate::script::Call;
use crate::script::master::{Candidate, Election, Say, is_written};

/// Calls in the time of a lease. Two of four may be lost.
const CALLS: u32 = 4;

/// The clock of the server may be faster than that of this process by a twentieth.
const SKEW: u32 = 20;

/// Runs until `held` is dropped or the store is, and then resigns.
pub(crate) async fn run(
    store: Weak<Shared>,
    candidate: Arc<Candidate>,
    roles: watch::Sender<Role>,
    held: Weak<()>,
) {
    let lease = Duration::from_micros(candidate.lease);
    let mut fence = 0;
    loop {
        let Some(shared) = store.upgrade() else { return };
        if held.strong_count() == 0 {
            let resigning = say(&shared, &candidate, fence, &Say::Resign);
            let _ = before(shared.runtime.sleep(lease), resigning).await;
            return;
        }
        // From before the call: the server counts from when it comes.
        let until = Instant::now() + (lease - lease / SKEW);
        let next = shared.runtime.sleep(lease / CALLS);
        let campaign = say(&shared, &candidate, fence, &Say::Campaign);
        let answer = before(shared.runtime.sleep(lease / CALLS), campaign).await;
        let answer = answer.and_then(Result::ok);
        let mut soonest = lease / CALLS;
        match answer.and_then(|answer| Election::parse(&answer).ok()) {
            Some(Election::Begins { fence: own, clients }) => {
                fence = own;
                begin(&roles, own, until, clients);
            }
            Some(Election::Stays { fence: own }) => stay(&roles, own, until),
            Some(Election::Other { fence: seen, left, address }) => {
                fence = fence.max(seen);
                soonest = soonest.min(Duration::from_micros(left));
                let other = (address != candidate.address).then(|| address.into());
                become_other(&roles, other);
            }
            None => lapse(&roles),
        }
        let sooner = shared.runtime.sleep(soonest);
        drop(shared);
        before(sooner, next).await;
    }
}

/// Writes down that clients have come or gone.
pub(crate) async fn record(
    shared: &Arc<Shared>,
    candidate: &Candidate,
    fence: u32,
    changes: &[(bool, Vec<u8>)],
) -> Result<bool, Failure> {
    let answer = say(shared, candidate, fence.into(), &Say::Record(changes)).await?;
    is_written(&answer)
        .map_err(|malformed| Failure::because(FailureKind::Protocol, malformed.to_string()))
}

async fn say(
    shared: &Arc<Shared>,
    candidate: &Candidate,
    fence: u64,
    say: &Say<'_>,
) -> Result<Vec<u8>, Failure> {
    let now = shared.runtime.clock.as_manual().map(sluicegate_core::ManualClock::now);
    let slot = shared.route.slot(&candidate.keys[0]);
    let request = Request::new(shared, slot, Call::candidate(candidate, now, fence, say));
    delivery::send(shared, &request).await
}

fn begin(roles: &watch::Sender<Role>, fence: u64, until: Instant, clients: Option<Vec<Vec<u8>>>) {
    let known = clients.map(|clients| clients.iter().filter_map(|text| read(text)).collect());
    roles.send_replace(master(fence, until, known));
}

fn stay(roles: &watch::Sender<Role>, own: u64, until: Instant) {
    roles.send_modify(|role| {
        let known = match role {
            Role::Master { known, .. } => known.take(),
            Role::Other { .. } => None,
        };
        *role = master(own, until, known);
    });
}

/// Fences count masters, and there are not four thousand million of them.
fn master(fence: u64, until: Instant, known: Option<Arc<[Known]>>) -> Role {
    Role::Master { fence: u32::try_from(fence).unwrap_or(u32::MAX), until: Some(until), known }
}

fn become_other(roles: &watch::Sender<Role>, master: Option<Box<str>>) {
    let other = Role::Other { master };
    roles.send_if_modified(|role| {
        let differs = *role != other;
        *role = other;
        differs
    });
}

/// The server has not answered: a master stays one until its time is over.
fn lapse(roles: &watch::Sender<Role>) {
    roles.send_if_modified(|role| {
        let is_over =
            matches!(role, Role::Master { until: Some(until), .. } if *until <= Instant::now());
        if is_over {
            *role = Role::Other { master: None };
        }
        is_over
    });
}

/// A client as the server keeps it: the length of the resource's name, that name, and the client's.
pub(crate) fn write(resource: &str, client: &str) -> Vec<u8> {
    let length = u32::try_from(resource.len()).unwrap_or(u32::MAX);
    [&length.to_le_bytes(), resource.as_bytes(), client.as_bytes()].concat()
}

fn read(text: &[u8]) -> Option<Known> {
    let (length, names) = text.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (resource, client) = names.split_at_checked(length)?;
    let name = |bytes| std::str::from_utf8(bytes).ok().map(Into::into);
    Some(Known { resource: name(resource)?, client: name(client)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_read_as_it_was_written() {
        for (resource, client) in [("db", "a"), ("", ""), ("ü\0,", "\u{1f600}")] {
            let known = read(&write(resource, client)).expect("a client");
            assert_eq!((&*known.resource, &*known.client), (resource, client));
        }
        for text in [&b""[..], b"\x05\0\0\0db", b"\xff\xff\xff\xffdb", b"\x01\0\0\0\xff"] {
            assert_eq!(read(text), None);
        }
    }
}
