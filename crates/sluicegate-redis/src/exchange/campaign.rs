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
use crate::script::master::{Candidate, Election, Heard, LIST_END, Page, Say, is_written};

/// Calls in the time of a lease. Two of four may be lost.
const CALLS: u32 = 4;

/// Changes of the list of clients in one call, which take the server about a millisecond.
const CHANGES: usize = 500;

/// The clock of the server may be faster than that of this process by a twentieth.
const SKEW: u32 = 20;

/// Runs until `held` is dropped, and then resigns.
pub(crate) async fn run(
    shared: Arc<Shared>,
    candidate: Arc<Candidate>,
    roles: watch::Sender<Role>,
    held: Weak<()>,
) {
    let lease = Duration::from_micros(candidate.lease);
    let mut heard = Heard::default();
    loop {
        if held.strong_count() == 0 {
            let resigning = say(&shared, &candidate, heard, &Say::Resign);
            let _ = before(shared.runtime.sleep(lease), resigning).await;
            return;
        }
        let next = shared.runtime.sleep(lease / CALLS);
        let mut soonest = lease / CALLS;
        let sent = Instant::now();
        let answer = ask(&shared, &candidate, heard, &Say::Campaign).await;
        match answer.and_then(|answer| Election::parse(&answer).ok()) {
            Some(Election::Begins { heard: own, left, is_known }) => {
                let mut reign = Reign { heard: own, until: end(sent, left) };
                let clients = match is_known {
                    true => reign.clients(&shared, &candidate, &held).await.map(Some),
                    false => Some(None),
                };
                heard = reign.heard;
                match clients {
                    Some(known) => {
                        roles.send_replace(master(reign, known.map(Arc::from)));
                    }
                    None => become_other(&roles, None),
                }
            }
            Some(Election::Stays { heard: own, left }) => {
                heard = own;
                stay(&roles, Reign { heard, until: end(sent, left) });
            }
            Some(Election::Other { heard: Heard { fence, ends }, left, address }) => {
                heard = Heard { fence: fence.max(heard.fence), ends };
                soonest = soonest.min(Duration::from_micros(left));
                let is_other = address != candidate.address && left > 0;
                become_other(&roles, is_other.then(|| address.into()));
            }
            None => lapse(&roles),
        }
        before(shared.runtime.sleep(soonest), next).await;
    }
}

/// A mastership, as far as it was heard of.
#[derive(Debug, Clone, Copy)]
struct Reign {
    heard: Heard,
    until: Instant,
}

impl Reign {
    /// The clients of earlier masters, page by page, so that no call keeps the server from others for long. Each page
    /// prolongs the mastership. `None` if it has ended.
    async fn clients(
        &mut self,
        shared: &Arc<Shared>,
        candidate: &Candidate,
        held: &Weak<()>,
    ) -> Option<Vec<Known>> {
        let (mut known, mut cursor) = (Vec::new(), LIST_END.to_vec());
        while held.strong_count() > 0 && Instant::now() < self.until {
            let sent = Instant::now();
            let answer = ask(shared, candidate, self.heard, &Say::List(&cursor)).await;
            // Without an answer, the same page is asked for again.
            let Some(page) = answer.and_then(|answer| Page::parse(&answer).ok()) else { continue };
            let Page { ends, left, cursor: next, clients } = page?;
            (self.heard.ends, self.until) = (ends, end(sent, left));
            known.extend(clients.iter().filter_map(|text| read(text)));
            if next == LIST_END {
                return Some(known);
            }
            cursor = next;
        }
        None
    }
}

/// When a mastership ends that lasts for `left` microseconds. From before the call: the server counts from when it comes.
fn end(sent: Instant, left: u64) -> Instant {
    let left = Duration::from_micros(left);
    sent + (left - left / SKEW)
}

/// Writes down that clients have come or gone, a part at a time: the server does nothing else meanwhile.
pub(crate) async fn record(
    shared: &Arc<Shared>,
    candidate: &Candidate,
    fence: u32,
    changes: &[(bool, Vec<u8>)],
) -> Result<bool, Failure> {
    let heard = Heard { fence: fence.into(), ..Heard::default() };
    for changes in changes.chunks(CHANGES) {
        let answer = say(shared, candidate, heard, &Say::Record(changes)).await?;
        let is_written = is_written(&answer)
            .map_err(|malformed| Failure::because(FailureKind::Protocol, malformed.to_string()))?;
        if !is_written {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The answer, if it comes before the next call is due.
async fn ask(
    shared: &Arc<Shared>,
    candidate: &Candidate,
    heard: Heard,
    saying: &Say<'_>,
) -> Option<Vec<u8>> {
    let patience = shared.runtime.sleep(Duration::from_micros(candidate.lease) / CALLS);
    before(patience, say(shared, candidate, heard, saying)).await.and_then(Result::ok)
}

async fn say(
    shared: &Arc<Shared>,
    candidate: &Candidate,
    heard: Heard,
    say: &Say<'_>,
) -> Result<Vec<u8>, Failure> {
    let now = shared.runtime.clock.as_manual().map(sluicegate_core::ManualClock::now);
    let slot = shared.route.slot(&candidate.keys[0]);
    let request = Request::new(shared, slot, Call::candidate(candidate, now, heard, say));
    delivery::send(shared, &request).await
}

fn stay(roles: &watch::Sender<Role>, reign: Reign) {
    roles.send_modify(|role| {
        let known = match role {
            Role::Master { known, .. } => known.take(),
            Role::Other { .. } => None,
        };
        *role = master(reign, known);
    });
}

/// Fences count masters, and there are not four thousand million of them.
fn master(Reign { heard, until }: Reign, known: Option<Arc<[Known]>>) -> Role {
    let fence = u32::try_from(heard.fence).unwrap_or(u32::MAX);
    Role::Master { fence, until: Some(until), known }
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
