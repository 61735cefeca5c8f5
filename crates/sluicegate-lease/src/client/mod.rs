//! The part of a client that talks to a server and knows what may be used.
//!
//! A [`Session`] has no clock and no network: it says what to send and when, and is told what came back. Times are
//! milliseconds since any moment, by a clock that never steps back.

use indexmap::IndexMap;

use crate::amount::Amount;
use crate::fair::Demand;
use crate::message::{Answer, Grant, Release, Request, ResourceRequest, Response, millis};

/// One client's dealings with its server.
///
/// ```
/// use sluicegate_lease::client::{Action, OnLoss, Session};
/// use sluicegate_lease::{Amount, Pool, Template, Templates};
///
/// let mut pool = Pool::new(Templates::new([Template::new("*", Amount::units(100))])?);
/// pool.lead(0, 1, Some(Vec::new()));
///
/// let mut session = Session::new("worker-1", 0, 7);
/// session.add("db", Amount::units(30), OnLoss::Stop);
/// assert_eq!(session.capacity(0, "db"), Amount::ZERO);
///
/// let Action::Ask(request) = session.poll(0) else { panic!("a new client asks at once") };
/// session.answered(5, &pool.answer(2, &request)?);
/// assert_eq!(session.capacity(5, "db"), Amount::units(30));
/// assert!(matches!(session.poll(5), Action::Wait(_)));
///
/// // Without a server, the lease ends 60 seconds after the client asked for it.
/// assert_eq!(session.capacity(59_999, "db"), Amount::units(30));
/// assert_eq!(session.capacity(60_000, "db"), Amount::ZERO);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Session {
    client: Box<str>,
    instance: u64,
    sequence: u64,
    fence: u64,
    /// By name. In requests and answers they have the same order.
    resources: IndexMap<Box<str>, ResourceState>,
    /// The first resource of the next request, or of the one on its way. Those before it were asked for in this round.
    turn: usize,
    /// When to ask again, by the answers of this round, and whether one of its resources was refused.
    round: (u64, bool),
    flight: Option<PendingRequest>,
    next: u64,
    timeout: u64,
    greetings: u32,
    backoff: Backoff,
    is_closed: bool,
}

/// A request that is on its way.
#[derive(Debug, Clone, Copy)]
struct PendingRequest {
    sequence: u64,
    sent: u64,
    /// How many resources it asks for. Others may have been added since.
    resources: usize,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Send this, and tell the session what comes back by [`Session::answered`] or [`Session::failed`].
    Ask(Request),
    /// Do nothing until this moment, unless something comes back.
    Wait(u64),
}

/// A request without an answer after this time has failed.
const TIMEOUT: u64 = 5_000;
/// No server has a reason to be asked more often, or to be left alone for longer while it learns.
const SHORTEST_WAIT: u64 = 10;
const LONGEST_WAIT: u64 = 60_000;
/// New masters that a client meets in a row before it waits between them.
const MAX_GREETINGS: u32 = 3;
/// The most resources in one request, and the most demands of theirs together. With the longest names, that is about 400 KiB,
/// and servers take no more by default.
pub(crate) const MOST_AT_ONCE: usize = 1_000;
const MOST_DEMANDS: usize = 4_000;
/// A round in which nothing was answered yet.
const NEW_ROUND: (u64, bool) = (u64::MAX, false);

impl Session {
    /// Makes a client. Every process needs a name of its own, or an [`instance`](Self::instance).
    ///
    /// `first_sequence` has to be larger than every sequence number that a client of the same name used before: the
    /// wall clock's milliseconds, shifted left by 16 bits, will do. `seed` is for the jitter.
    pub fn new(client: impl Into<Box<str>>, first_sequence: u64, seed: u64) -> Self {
        Self {
            client: client.into(),
            instance: 0,
            sequence: first_sequence,
            fence: 0,
            resources: IndexMap::new(),
            turn: 0,
            round: NEW_ROUND,
            flight: None,
            next: 0,
            timeout: TIMEOUT,
            greetings: 0,
            backoff: Backoff::new(seed),
            is_closed: false,
        }
    }

    /// Sets a random number, for processes that may have one name: see [`Request::instance`].
    #[must_use]
    pub fn instance(mut self, instance: u64) -> Self {
        self.instance = instance;
        self
    }

    /// Sets after which time a request without an answer has failed, in milliseconds. The default is 5,000.
    #[must_use]
    pub fn timeout(mut self, timeout: u64) -> Self {
        self.timeout = timeout.max(1);
        self
    }

    /// Wants this much of a resource from now on. Asks for it at the next [`poll`](Self::poll) if it is new.
    pub fn add(&mut self, resource: &str, wants: Amount, on_loss: OnLoss) {
        let held = self.held(resource);
        held.demands = vec![Demand::of(wants)];
        held.on_loss = on_loss;
    }

    /// Wants this from now on. A resource that was not [added](Self::add) is used with a lease only.
    pub fn set_demands(&mut self, resource: &str, demands: Vec<Demand>) {
        let nothing = || vec![Demand::of(Amount::ZERO)];
        self.held(resource).demands = if demands.is_empty() { nothing() } else { demands };
    }

    /// Does not ask for a resource any more. What it had of it ends with its lease; want nothing for a while first to
    /// give it back.
    pub fn remove(&mut self, resource: &str) {
        let Some(mut at) = self.resources.get_index_of(resource) else { return };
        if at < self.turn {
            // The last resource takes its place, and must not miss its turn.
            self.turn -= 1;
            self.resources.swap_indices(at, self.turn);
            at = self.turn;
        }
        self.resources.swap_remove_index(at);
        if self.flight.take().is_some() {
            // The answer on its way is for other resources.
            self.next = 0;
        }
    }

    /// Stops to use resources. Returns what to tell the server, unless it asks for none of them.
    pub fn give_back(&mut self, resources: &[&str]) -> Option<Release> {
        let mut returned: Vec<Box<str>> = Vec::new();
        for resource in resources.iter().filter(|resource| self.asks_for(resource)) {
            returned.push((*resource).into());
        }
        for resource in &returned {
            self.remove(resource);
        }
        (!returned.is_empty()).then(|| self.release(returned))
    }

    fn release(&mut self, resources: Vec<Box<str>>) -> Release {
        self.sequence += 1;
        let Self { sequence, fence, instance, .. } = *self;
        Release { client: self.client.clone(), instance, sequence, fence, resources }
    }

    /// The number of the last request.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Whether it asks for a resource.
    pub fn asks_for(&self, resource: &str) -> bool {
        self.find(resource).is_some()
    }

    /// The resources that it asks for.
    pub fn resources(&self) -> impl Iterator<Item = &str> {
        self.resources.keys().map(|resource| &**resource)
    }

    /// Sets what [`OnLoss::Safe`] uses until the server has said what is safe.
    pub fn set_safe(&mut self, resource: &str, safe: Amount) {
        self.held(resource).safe = safe;
    }

    /// What this client's own clients may use, if it is a server, and whether it still learns what that is.
    pub fn set_outstanding(&mut self, resource: &str, outstanding: Amount, learning: bool) {
        let held = self.held(resource);
        (held.outstanding, held.learning) = (outstanding, learning);
    }

    fn held(&mut self, resource: &str) -> &mut ResourceState {
        let at = self.resources.get_index_of(resource).unwrap_or_else(|| {
            self.next = 0;
            self.resources.insert_full(resource.into(), ResourceState::new()).0
        });
        &mut self.resources[at]
    }

    /// What may be used of a resource.
    pub fn capacity(&self, now: u64, resource: &str) -> Amount {
        self.find(resource).map_or(Amount::ZERO, |held| held.capacity(now))
    }

    /// What may be used by a lease, and until when. After that, [`OnLoss`] says what may be used.
    pub fn lease(&self, resource: &str) -> (Amount, u64) {
        self.find(resource).map_or((Amount::ZERO, 0), |held| (held.granted, held.expires))
    }

    /// What [`OnLoss::Safe`] uses of a resource without a lease.
    pub fn safe(&self, resource: &str) -> Amount {
        self.find(resource).map_or(Amount::ZERO, |held| held.safe)
    }

    /// The resources of the request that is on its way.
    pub(crate) fn asked(&self) -> impl Iterator<Item = &str> {
        let asked = self.flight.map_or(0, |flight| flight.resources);
        self.resources().skip(self.turn).take(asked)
    }

    /// Whether a request is on its way.
    pub fn is_waiting(&self) -> bool {
        self.flight.is_some()
    }

    /// Whether the server knows that nothing is used of a resource any more.
    pub fn has_returned(&self, now: u64, resource: &str) -> bool {
        self.find(resource).is_none_or(|held| held.has_returned(now))
    }

    /// What decides how it goes on, apart from jitter, if time goes in steps.
    #[cfg(test)]
    pub(crate) fn key(&self, now: u64) -> impl std::fmt::Debug + '_ {
        let round = (self.turn, self.round, self.greetings);
        (self.sequence, self.fence, &self.resources, self.flight, self.next <= now, round)
    }

    fn find(&self, resource: &str) -> Option<&ResourceState> {
        self.resources.get(resource)
    }

    /// Whether [`poll`](Self::poll) would ask, so that what is wanted has to be known.
    pub fn is_due(&self, now: u64) -> bool {
        let waits =
            self.flight.is_some_and(|flight| now < flight.sent.saturating_add(self.timeout));
        !self.is_closed && !waits && now >= self.next
    }

    /// Says what to do. Of more than 1,000 resources, it asks for a part at a time.
    pub fn poll(&mut self, now: u64) -> Action {
        if self.is_closed || self.resources.is_empty() {
            return Action::Wait(u64::MAX);
        }
        if let Some(flight) = self.flight {
            let late = flight.sent.saturating_add(self.timeout);
            if now < late {
                return Action::Wait(late);
            }
            // The request has taken too long. Its answer may still come, and then it has an old number and counts no
            // more.
            self.failed(now);
        }
        if now < self.next {
            return Action::Wait(self.next);
        }
        // A new number for each request, also for one that repeats another: the server must be able to tell which
        // report is the latest.
        self.sequence += 1;
        if self.turn >= self.resources.len() {
            self.begin_round();
        }
        let (sequence, resources) = (self.sequence, self.part());
        self.flight = Some(PendingRequest { sequence, sent: now, resources });
        let part = self.resources.iter_mut().skip(self.turn).take(resources);
        let resources = part.map(|(resource, held)| ResourceRequest {
            resource: resource.clone(),
            demands: held.demands.clone(),
            // What may be used at this moment, which is what the answer is counted against.
            has: held.tell(now),
            outstanding: held.outstanding,
            learning: held.learning,
        });
        Action::Ask(Request {
            client: self.client.clone(),
            instance: self.instance,
            sequence: self.sequence,
            fence: self.fence,
            resources: resources.collect(),
        })
    }

    /// How many resources the next request is for.
    fn part(&self) -> usize {
        let mut demands = 0;
        let fits = |held: &&ResourceState| {
            demands += held.demands.len();
            demands <= MOST_DEMANDS
        };
        self.resources.values().skip(self.turn).take(MOST_AT_ONCE).take_while(fits).count().max(1)
    }

    fn begin_round(&mut self) {
        (self.turn, self.round) = (0, NEW_ROUND);
    }

    /// An answer has come. Answers to earlier requests, and of masters that have been replaced, change nothing.
    pub fn answered(&mut self, now: u64, response: &Response) {
        let is_newest = |flight: &PendingRequest| flight.sequence == response.sequence;
        let Some(flight) = self.flight.filter(is_newest) else { return };
        // An older master may still answer, and what it grants, the newest one does not know of.
        if response.fence < self.fence || response.answers.len() != flight.resources {
            return self.failed(now);
        }
        // From here on, no older master is obeyed. The next request carries this fence, which is how the server knows
        // that it was sent after the two have met.
        self.flight = None;
        self.fence = response.fence;
        let mut refresh = u64::MAX;
        let mut failed = false;
        for (held, answer) in self.resources.values_mut().skip(self.turn).zip(&response.answers) {
            match answer {
                Ok(Answer::Grant(grant)) => {
                    // Counted from before the request was sent: the server counts from when it answered, which is
                    // later.
                    held.grant(flight.sent, grant);
                    refresh = refresh.min(asks_again(grant));
                }
                Ok(Answer::Keep(until)) => {
                    refresh = refresh.min(millis(*until).clamp(SHORTEST_WAIT, LONGEST_WAIT));
                }
                // With the new fence. What is held goes on meanwhile.
                Ok(Answer::AskAgain) => refresh = 0,
                Err(_) => failed = true,
            }
        }
        // All resources meet a new master together.
        self.greetings = if refresh == 0 { self.greetings + 1 } else { 0 };
        if self.greetings > MAX_GREETINGS {
            return self.back_off(now, u64::MAX);
        }
        if refresh > 0 {
            self.turn += flight.resources;
            self.round = (self.round.0.min(refresh), self.round.1 | failed);
            // Also resources that were added meanwhile.
            if self.turn < self.resources.len() {
                if !failed {
                    self.backoff.succeeded();
                }
                self.next = now;
                return;
            }
            (refresh, failed) = self.round;
            self.begin_round();
        }
        if failed {
            // What was granted is renewed in time all the same.
            return self.back_off(now, refresh);
        }
        self.backoff.succeeded();
        self.next = now.saturating_add(self.backoff.early(refresh));
    }

    /// The request has failed, or nobody knows who the master is. The lease goes on; the next request waits a while.
    pub fn failed(&mut self, now: u64) {
        let Some(flight) = self.flight.take() else { return };
        // The other parts have their turn, whatever is wrong with this one. It has its own again soon after them.
        self.turn += flight.resources;
        self.round.1 = true;
        if self.turn >= self.resources.len() {
            self.begin_round();
        }
        if self.resources.values().all(|held| now >= held.expires) {
            // It holds nothing, as if it were new. So a fence that was much too high does not bind it for ever.
            self.fence = 0;
        }
        self.back_off(now, u64::MAX);
    }

    /// Waits after a failure, at most for `longest`.
    fn back_off(&mut self, now: u64, longest: u64) {
        self.greetings = if longest == 0 { self.greetings } else { 0 };
        let mut wait = self.backoff.failed();
        if longest < wait {
            wait = self.backoff.early(longest);
        }
        self.next = now.saturating_add(wait);
    }

    /// What is wanted has changed much, such as from nothing to something: asks at the next [`poll`](Self::poll). Does
    /// nothing while a request is on its way, or while it waits after a failure. Returns whether it will ask.
    pub fn hurry(&mut self, now: u64) -> bool {
        // Not during a pause after failures: what is wanted would otherwise turn each pause into a question.
        let may_ask = self.flight.is_none() && !self.backoff.is_waiting() && !self.is_closed;
        if may_ask {
            self.next = self.next.min(now);
        }
        may_ask
    }

    /// Another server is the master. Asks it at once.
    pub fn redirected(&mut self, now: u64) {
        self.greetings += 1;
        if self.greetings > MAX_GREETINGS {
            return self.failed(now);
        }
        self.flight = None;
        self.next = now;
    }

    /// Stops to use everything. Returns what to tell the server, the first time.
    pub fn close(&mut self) -> Option<Release> {
        if std::mem::replace(&mut self.is_closed, true) {
            return None;
        }
        self.flight = None;
        let resources = self.resources.drain(..).map(|(resource, _)| resource).collect();
        Some(self.release(resources))
    }
}

/// When to ask again after a grant, at the latest in the middle of the lease.
fn asks_again(grant: &Grant) -> u64 {
    let longest = match millis(grant.ttl) {
        // A server has nothing yet.
        0 => LONGEST_WAIT,
        ttl => ttl.min(LONGEST_LEASE) / 2,
    };
    millis(grant.refresh).min(longest).max(SHORTEST_WAIT)
}

/// What may be used of a resource when its lease has ended and was not renewed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnLoss {
    /// Nothing. The sum of what all clients use stays within the capacity.
    #[default]
    Stop,
    /// As much as before. For clients that serve people, of a resource that is protected otherwise.
    Keep,
    /// The safe capacity that came with the last grant.
    Safe,
}

/// No template has longer leases.
pub(super) const LONGEST_LEASE: u64 = 24 * 60 * 60 * 1_000;

/// What a client knows of one resource.
#[derive(Debug, Clone)]
pub(super) struct ResourceState {
    pub(super) demands: Vec<Demand>,
    pub(super) outstanding: Amount,
    pub(super) learning: bool,
    pub(super) on_loss: OnLoss,
    pub(super) granted: Amount,
    pub(super) expires: u64,
    pub(super) safe: Amount,
    /// What it has reported to have, and what the server is known to have heard.
    reported: Amount,
    heard: Amount,
}

impl ResourceState {
    pub(super) fn new() -> Self {
        Self {
            demands: vec![Demand::of(Amount::ZERO)],
            outstanding: Amount::ZERO,
            learning: false,
            on_loss: OnLoss::Stop,
            granted: Amount::ZERO,
            expires: 0,
            safe: Amount::ZERO,
            reported: Amount::ZERO,
            heard: Amount::ZERO,
        }
    }

    pub(super) fn capacity(&self, now: u64) -> Amount {
        match self.on_loss {
            _ if now < self.expires => self.granted,
            OnLoss::Stop => Amount::ZERO,
            OnLoss::Keep => self.granted,
            OnLoss::Safe => self.safe,
        }
    }

    /// What to report.
    pub(super) fn tell(&mut self, now: u64) -> Amount {
        self.reported = self.capacity(now);
        self.reported
    }

    pub(super) fn has_returned(&self, now: u64) -> bool {
        now >= self.expires || (self.granted.is_zero() && self.heard.is_zero())
    }

    /// Takes a grant that was asked for at `sent`.
    pub(super) fn grant(&mut self, sent: u64, grant: &Grant) {
        // The server has answered, so it has read the report that came with the request.
        self.heard = self.reported;
        if grant.ttl.is_zero() {
            // The server has no lease itself, so it says nothing of what may be used without one: that is what was
            // granted last, or what was safe then. Only a number of the template is safe in any case.
            self.expires = self.expires.min(sent);
            if !grant.safe.is_zero() {
                self.safe = grant.safe;
            }
            return;
        }
        self.granted = grant.capacity;
        self.expires = sent.saturating_add(millis(grant.ttl).min(LONGEST_LEASE));
        self.safe = grant.safe;
    }
}

/// When to ask again: `1 s × 1.3ⁿ`, at most 60 s, after `n` failures in a row, as Doorman's clients do. All waits are
/// shortened by up to a tenth, so that clients that began together do not go on together.
#[derive(Debug, Clone)]
pub(super) struct Backoff {
    failures: i32,
    random: u64,
}

const FIRST: f64 = 1_000.0;
const FACTOR: f64 = 1.3;
const LONGEST: f64 = 60_000.0;

impl Backoff {
    pub(super) fn new(seed: u64) -> Self {
        Self { failures: 0, random: seed }
    }

    /// How long to wait after a failure.
    pub(super) fn failed(&mut self) -> u64 {
        let wait = (FIRST * FACTOR.powi(self.failures)).min(LONGEST);
        self.failures = self.failures.saturating_add(1).min(100);
        self.early(wait as u64)
    }

    /// Whether the last request has failed.
    pub(super) const fn is_waiting(&self) -> bool {
        self.failures > 0
    }

    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// Up to a tenth less than `wait`.
    pub(super) fn early(&mut self, wait: u64) -> u64 {
        // Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (2014).
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        wait - mixed % (wait / 10 + 1)
    }
}

#[cfg(test)]
mod tests;
