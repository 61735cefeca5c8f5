//! Which of several servers of leases is the master. Each has a task that campaigns.

use std::error::Error;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::adapter::ConfigError;
use sluicegate_lease::pool::{Change, LeaseHolder};
use sluicegate_lease::{Mastership, Role, candidate_problem};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::exchange::request::Request;
use crate::exchange::settle::deliver_once;
use crate::exchange::shared::Shared;
use crate::failure::{Failure, FailureKind};
use crate::rows::mastership_keys;
use crate::runtime::before;
use crate::script::Call;
use crate::script::master::{
    Candidate, Election, ElectionRequest, LIST_END, Page, Term, is_written,
};
use crate::store::Redis;

impl Redis {
    /// Makes this process a candidate for the mastership of `name`, whose clients find it at `address`.
    ///
    /// One key in Redis says which of the candidates is the master, until when by the server's clock, and with which fence:
    /// a number that grows with each master. A set has the clients that may hold leases, so that a new master knows whom to
    /// wait for. Neither expires. Where Redis has lost them, the next master takes a larger fence than any that the
    /// candidates remember, and lets clients keep what they have for the time of a lease. A new master reads the set in
    /// pages of about a thousand clients, and leads after the last one.
    ///
    /// A candidate is elected, and stays the master, only as long as it hears the answers: each call says which end of the
    /// mastership was heard last.
    ///
    /// A replica that becomes Redis' master may not have got the last writes, and a clock of Redis that jumps ends a
    /// mastership early. Two servers may then be master for the time of a lease. Clients obey the one with the larger fence.
    ///
    /// ```no_run
    /// use sluicegate_lease::{CapacityService, Server, Templates};
    /// use sluicegate_redis::Redis;
    ///
    /// # fn example(templates: Templates) -> Result<(), Box<dyn std::error::Error>> {
    /// let redis = Redis::connect("redis://127.0.0.1:6379")?;
    /// let mastership = redis.mastership("quota", "http://10.0.0.7:8083").stand()?;
    /// let server = Server::root("quota", templates);
    /// let service = CapacityService::builder(server).mastership(mastership).start()?;
    /// # let _ = service;
    /// # Ok(())
    /// # }
    /// ```
    pub fn mastership(&self, name: &str, address: &str) -> Candidacy {
        Candidacy {
            redis: self.clone(),
            name: name.to_owned(),
            address: address.to_owned(),
            lease: Duration::from_secs(2),
            longest: Duration::from_secs(600),
        }
    }
}

/// How this process stands for a mastership: see [`Redis::mastership`].
#[derive(Debug, Clone)]
#[must_use = "`stand` makes it a candidate"]
pub struct Candidacy {
    redis: Redis,
    name: String,
    address: String,
    lease: Duration,
    longest: Duration,
}

impl Candidacy {
    /// Sets how long a master that is not heard of stays the master, 2 s by default. It calls four times in this time. Another
    /// candidate takes over within a quarter of it after that.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets the longest lease that servers of this name grant to a client, 10 minutes by default; the same in every server.
    ///
    /// Where Redis had no list of clients, or has lost it, masters learn from everybody for as long as this. After that, the
    /// list has everybody who may hold a lease.
    pub fn longest_lease(mut self, longest: Duration) -> Self {
        self.longest = longest;
        self
    }

    /// Becomes a candidate, and campaigns in the background.
    ///
    /// # Errors
    ///
    /// When there is no tokio runtime, the name or the address is empty or longer than 1,024 bytes, or the lease is shorter
    /// than 100 ms or longer than a minute, or the longest lease of a client is longer than a year.
    pub fn stand(self) -> Result<RedisMastership, ConfigError> {
        let shared = &self.redis.0;
        if let Some(problem) = candidate_problem(&self.name, &self.address) {
            return Err(ConfigError::new(problem));
        }
        let (shortest, longest) = (Duration::from_millis(100), Duration::from_secs(60));
        if !(shortest..=longest).contains(&self.lease) {
            let lease = self.lease;
            return Err(ConfigError::new(format!(
                "the lease is {lease:?}, but must be from {shortest:?} to {longest:?}"
            )));
        }
        if self.longest > Duration::from_secs(366 * 86_400) {
            let longest = self.longest;
            return Err(ConfigError::new(format!(
                "the longest lease of a client is {longest:?}, but must be at most a year"
            )));
        }
        if shared.runtime.handle().is_none() {
            return Err(ConfigError::new("there is no tokio runtime to campaign in"));
        }
        let candidate = Arc::new(Candidate {
            keys: mastership_keys(&shared.naming, &self.name),
            number: RandomState::new().hash_one("candidate") >> 12 | 1,
            lease: self.lease.as_micros() as u64,
            longest: self.longest.as_micros() as u64,
            address: self.address,
        });
        let (sender, roles) = watch::channel(Role::Other { master: None });
        let (held, dropped) = watch::channel(());
        shared.runtime.spawn(run(Arc::clone(shared), Arc::clone(&candidate), sender, dropped));
        Ok(RedisMastership { redis: self.redis, candidate, roles, _held: held })
    }
}

/// A candidate for a mastership, and the master if it is elected. Dropped, it resigns: another candidate takes over within a
/// quarter of the lease. The channel of its roles closes once it has.
#[derive(Debug)]
pub struct RedisMastership {
    redis: Redis,
    candidate: Arc<Candidate>,
    roles: watch::Receiver<Role>,
    _held: watch::Sender<()>,
}

impl Mastership for RedisMastership {
    fn roles(&self) -> watch::Receiver<Role> {
        self.roles.clone()
    }

    async fn record(&self, changes: Vec<Change>) -> Result<(), Box<dyn Error + Send + Sync>> {
        let fence = match &*self.roles.borrow() {
            Role::Master { fence, .. } => *fence,
            Role::Other { .. } => return Err("this server is not the master".into()),
        };
        let changes: Vec<_> = changes.iter().map(change).collect();
        match record(&self.redis.0, &self.candidate, fence, &changes).await {
            Ok(true) => Ok(()),
            Ok(false) => Err("another server is the master".into()),
            Err(failure) => Err(failure.into()),
        }
    }
}

fn change(change: &Change) -> (bool, Vec<u8>) {
    match change {
        Change::Add { resource, client } => (true, write(resource, client)),
        Change::Remove { resource, client } => (false, write(resource, client)),
    }
}

/// Calls in the time of a lease. Two of four may be lost.
const CALLS: u32 = 4;

/// The pause before a page of the list of clients is asked for again.
const AGAIN: Duration = Duration::from_millis(20);

/// Changes of the list of clients in one call, which take the server about a millisecond.
const CHANGES: usize = 500;

/// The clock of the server may be faster than that of this process by a twentieth.
const SKEW: u32 = 20;

/// Runs until the other end of `dropped` is gone, and then resigns.
pub(crate) async fn run(
    shared: Arc<Shared>,
    candidate: Arc<Candidate>,
    roles: watch::Sender<Role>,
    mut dropped: watch::Receiver<()>,
) {
    let lease = Duration::from_micros(candidate.lease);
    let mut heard = Term::default();
    loop {
        if is_gone(&dropped) {
            let resigning = say(&shared, &candidate, heard, &ElectionRequest::Resign);
            let _ = before(shared.runtime.sleep(lease), resigning).await;
            return;
        }
        let next = shared.runtime.sleep(lease / CALLS);
        // The time is taken before the call, so that this process never takes itself for the master for longer than the
        // server does.
        let mut soonest = lease / CALLS;
        let sent = Instant::now();
        let answer = ask(&shared, &candidate, heard, &ElectionRequest::Campaign).await;
        match answer.and_then(|answer| Election::parse(&answer).ok()) {
            Some(Election::Begins { heard: own, left, is_known }) => {
                // A new master leads only when it knows who may hold leases, or that nobody can know.
                let mut term = CurrentTerm { heard: own, until: end(sent, left) };
                let clients = match is_known {
                    true => term.clients(&shared, &candidate, &dropped).await.map(Some),
                    false => Some(None),
                };
                heard = term.heard;
                // Without clients, the mastership has ended while the list was read. Only a whole list lets it lead: of
                // a part, it would grant what clients in the rest still use.
                match clients {
                    Some(known) => {
                        roles.send_replace(master(term, known.map(Arc::from)));
                    }
                    None => become_other(&roles, None),
                }
            }
            Some(Election::Stays { heard: own, left }) => {
                heard = own;
                stay(&roles, CurrentTerm { heard, until: end(sent, left) });
            }
            Some(Election::Other { heard: Term { fence, ends }, left, address }) => {
                // Fences grow even if Redis has lost its keys: the next master takes one above all that a candidate has seen.
                heard = Term { fence: fence.max(heard.fence), ends };
                soonest = soonest.min(Duration::from_micros(left));
                let is_other = address != candidate.address && left > 0;
                become_other(&roles, is_other.then(|| address.into()));
            }
            // No answer says nothing about who is the master. What was heard last is in force until its end.
            None => lapse(&roles),
        }
        // A candidate looks again when the present mastership may end, and not a quarter of a lease later.
        let pause = before(shared.runtime.sleep(soonest), next);
        let gone = async {
            let _ = dropped.changed().await;
        };
        before(gone, pause).await;
    }
}

/// Whether the other end is gone.
fn is_gone(dropped: &watch::Receiver<()>) -> bool {
    dropped.has_changed().is_err()
}

/// A mastership, as far as it was heard of.
#[derive(Debug, Clone, Copy)]
struct CurrentTerm {
    heard: Term,
    until: Instant,
}

impl CurrentTerm {
    /// The clients of earlier masters, page by page, so that no call keeps the server from others for long. Each page
    /// prolongs the mastership. `None` if it has ended.
    async fn clients(
        &mut self,
        shared: &Arc<Shared>,
        candidate: &Candidate,
        dropped: &watch::Receiver<()>,
    ) -> Option<Vec<LeaseHolder>> {
        let (mut known, mut cursor) = (Vec::new(), LIST_END.to_vec());
        while !is_gone(dropped) && Instant::now() < self.until {
            let sent = Instant::now();
            let answer = ask(shared, candidate, self.heard, &ElectionRequest::List(&cursor)).await;
            let Some(page) = answer.and_then(|answer| Page::parse(&answer).ok()) else {
                // Without an answer, the same page is asked for again. A call may fail at once.
                shared.runtime.timer(AGAIN).await;
                continue;
            };
            let Page { ends, left, cursor: next, clients } = page?;
            // The next call says that this end was heard. Redis prolongs no mastership whose last end was not: its master may be cut
            // off from the answers.
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
    // With the fence alone: a record counts if this master still is one, whatever end it heard of.
    let heard = Term { fence: fence.into(), ..Term::default() };
    for changes in changes.chunks(CHANGES) {
        let answer = say(shared, candidate, heard, &ElectionRequest::Record(changes)).await?;
        let is_written = is_written(&answer)
            .map_err(|malformed| Failure::because(FailureKind::Protocol, malformed.to_string()))?;
        if !is_written {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The answer, if it comes before the next call is due. Otherwise the connection is replaced: where its peer is gone without a
/// word, it would stay open for longer than the mastership lasts.
async fn ask(
    shared: &Arc<Shared>,
    candidate: &Candidate,
    heard: Term,
    saying: &ElectionRequest<'_>,
) -> Option<Vec<u8>> {
    let patience = shared.runtime.sleep(Duration::from_micros(candidate.lease) / CALLS);
    let node = shared.route.known(shared.route.slot(&candidate.keys[0]));
    let called = node.and_then(|node| node.current().map(|current| (node, current.generation)));
    let answer = before(patience, say(shared, candidate, heard, saying)).await;
    match (&answer, called) {
        (Some(Ok(_)), Some((node, _))) => node.has_answered_in_time(),
        (None, Some((node, generation))) => {
            node.lose(generation, &Failure::new(FailureKind::TooSlow));
        }
        _ => {}
    }
    answer.and_then(Result::ok)
}

async fn say(
    shared: &Arc<Shared>,
    candidate: &Candidate,
    heard: Term,
    say: &ElectionRequest<'_>,
) -> Result<Vec<u8>, Failure> {
    let now = shared.runtime.clock.as_manual().map(sluicegate_core::ManualClock::now);
    let slot = shared.route.slot(&candidate.keys[0]);
    let request = Request::new(shared, slot, Call::candidate(candidate, now, heard, say));
    deliver_once(shared, &request).await
}

fn stay(roles: &watch::Sender<Role>, term: CurrentTerm) {
    roles.send_modify(|role| {
        let known = match role {
            // Kept from before if nobody has read it yet: a watch shows the latest value only, and a master that is
            // prolonged quickly must not lose its list.
            Role::Master { known, .. } => known.take(),
            Role::Other { .. } => None,
        };
        *role = master(term, known);
    });
}

/// Fences count masters, and there are not four thousand million of them.
fn master(CurrentTerm { heard, until }: CurrentTerm, known: Option<Arc<[LeaseHolder]>>) -> Role {
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

fn read(text: &[u8]) -> Option<LeaseHolder> {
    let (length, names) = text.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (resource, client) = names.split_at_checked(length)?;
    let name = |bytes| std::str::from_utf8(bytes).ok().map(Into::into);
    Some(LeaseHolder { resource: name(resource)?, client: name(client)? })
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
