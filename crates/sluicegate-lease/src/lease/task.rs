use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::shared::{Basis, Entry, LeaseState, Shared};
use super::transport::{Clock, Flight, Transport, TransportError, arrival};
use crate::amount::Amount;
use crate::client::{Action, OnLoss, Session};
use crate::limit::LeasedLimit;
use crate::message::{Release, Response};

/// The half of a client that talks to the server. It drives a [`Session`] with a clock and a transport.
#[derive(Debug)]
pub(super) struct Task<T> {
    session: Session,
    transport: T,
    shared: Arc<Shared>,
    followed: Vec<LeasedResource>,
    /// Releases on their way.
    releases: JoinSet<()>,
    clock: Clock,
}

/// A resource that the client asks for.
#[derive(Debug)]
struct LeasedResource {
    entry: Arc<Entry>,
    /// What the application was told last.
    basis: Basis,
}

/// How long a release may take.
const FAREWELL: Duration = Duration::from_secs(2);
/// How often it looks whether less is wanted, at the most.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// More releases at a time are not sent: those leases end by themselves.
const MAX_RELEASES: usize = 16;

impl<T: Transport> Task<T> {
    pub(super) fn new(session: Session, transport: T, shared: Arc<Shared>) -> Self {
        let (followed, releases) = (Vec::new(), JoinSet::new());
        Self { session, transport, shared, followed, releases, clock: Clock::start() }
    }

    pub(super) async fn run(mut self) {
        let shared = self.shared.clone();
        let ended = EndNotice(shared.clone());
        let mut flight: Option<Flight> = None;
        // Each turn looks at everything anew: wishes, then requests, then what to tell the application. So no event
        // needs to say what has happened, and none can be missed.
        while !self.follow_wishes() {
            let until = match self.session.poll(self.now()) {
                Action::Ask(request) => {
                    flight = Some(Box::pin(self.transport.ask(request)));
                    continue;
                }
                Action::Wait(until) => until,
            };
            if !self.session.is_waiting() && flight.take().is_some() {
                // The session has given the request up. Dropping its future also tells the transport.
                shared.set_problem(Some(TransportError::Late));
            }
            let wake = self.publish().min(until);
            tokio::select! {
                answer = arrival(&mut flight) => self.arrived(answer),
                Some(_) = self.releases.join_next() => {}
                () = shared.changed.notified() => {}
                () = sleep(self.clock.instant(wake)) => {}
            }
        }
        self.end().await;
        drop(ended);
    }

    fn now(&self) -> u64 {
        self.clock.millis(Instant::now())
    }

    /// Compares what is leased with what the application wants. Returns whether it wants to end.
    fn follow_wishes(&mut self) -> bool {
        let shared = self.shared.clone();
        let wanted = shared.wanted();
        let is_wanted = |one: &LeasedResource| {
            wanted.entries.iter().any(|entry| Arc::ptr_eq(entry, &one.entry))
        };
        let (kept, gone): (Vec<_>, Vec<_>) = self.followed.drain(..).partition(is_wanted);
        self.followed = kept;
        let gone: Vec<&str> = gone.iter().map(|gone| &*gone.entry.resource).collect();
        // Given back before anything new is asked for, so that others can have it at once.
        if let Some(release) = self.session.give_back(&gone) {
            self.tell(release);
        }
        for entry in &wanted.entries {
            if !self.followed.iter().any(|one| Arc::ptr_eq(entry, &one.entry)) {
                // Nothing is wanted yet. What is, is set below, at the moment of the request.
                self.session.add(&entry.resource, Amount::ZERO, entry.on_loss);
                self.session.set_safe(&entry.resource, entry.safe);
                let basis = entry.state.borrow().basis_at(Instant::now());
                self.followed.push(LeasedResource { entry: entry.clone(), basis });
            }
        }
        let is_closed = wanted.is_closed;
        // A limit that is dropped while the task looks at it gives its lease back, which takes this lock.
        drop(wanted);
        let now = self.now();
        for LeasedResource { entry, .. } in &self.followed {
            if entry.take_need() && !self.session.hurry(now) {
                // Once the request on its way was answered.
                entry.is_needed.store(true, Ordering::Relaxed);
            }
            if entry.limit().and_then(|limit| limit.falls_in()) == Some(Duration::ZERO) {
                // Others may need it.
                self.session.hurry(now);
            }
        }
        if self.session.is_due(now) {
            for LeasedResource { entry, .. } in &self.followed {
                let (demand, limit) = (entry.demand(), entry.limit());
                self.session.set_demands(&entry.resource, vec![demand]);
                let outstanding = limit.as_ref().map_or(Amount::ZERO, LeasedLimit::outstanding);
                if let Some(limit) = limit {
                    limit.told(demand.want.wants);
                }
                self.session.set_outstanding(&entry.resource, outstanding, false);
            }
        }
        is_closed
    }

    fn arrived(&mut self, answer: Result<Response, TransportError>) {
        let now = self.now();
        let problem = match answer {
            Ok(response) => {
                self.session.answered(now, &response);
                let refusal = response.answers.into_iter().find_map(Result::err);
                refusal.map(TransportError::from)
            }
            Err(problem) => {
                match problem {
                    TransportError::Redirected => self.session.redirected(now),
                    TransportError::Late | TransportError::Failed(_) => self.session.failed(now),
                }
                Some(problem)
            }
        };
        self.shared.set_problem(problem);
    }

    /// Tells the application what has changed. Returns when something will change by itself.
    fn publish(&mut self) -> u64 {
        let now = Instant::now();
        let mut next = u64::MAX;
        for LeasedResource { entry, basis } in &mut self.followed {
            let (granted, until) = self.session.lease(&entry.resource);
            let state = LeaseState {
                granted,
                expires: self.clock.instant(until).filter(|_| until > 0),
                safe: self.session.safe(&entry.resource),
                on_loss: entry.on_loss,
            };
            let before = std::mem::replace(basis, state.basis_at(now));
            let is_new_basis = before != *basis;
            entry.state.send_if_modified(|told| {
                // Also woken if only the basis has changed: a lease that ends changes no number, but its end means
                // something else.
                let is_new = *told != state;
                *told = state;
                is_new || is_new_basis
            });
            if let Some(limit) = entry.limit() {
                limit.follow(self.clock.millis(now), &self.session, &entry.resource);
                if let Some(falls) = limit.falls_in() {
                    next = next.min(self.clock.millis(now + falls.max(LOOK_EVERY)));
                }
            }
            if *basis == Basis::Lease {
                next = next.min(until);
            }
        }
        next
    }

    /// Sends a release without waiting for the answer.
    fn tell(&mut self, release: Release) {
        if self.releases.len() < MAX_RELEASES {
            let told = timeout(FAREWELL, self.transport.release(release));
            self.releases.spawn(async {
                // A lease that could not be given back ends by itself.
                let _ = told.await;
            });
        }
    }

    /// Stops to use everything, and gives it back.
    async fn end(mut self) {
        for LeasedResource { entry, .. } in &self.followed {
            let nothing = LeaseState::before_the_first_grant(OnLoss::Stop, Amount::ZERO);
            entry.state.send_replace(nothing);
            if let Some(limit) = entry.limit() {
                limit.close();
            }
        }
        if let Some(release) = self.session.close().filter(|release| !release.resources.is_empty())
        {
            self.tell(release);
        }
        while self.releases.join_next().await.is_some() {}
    }
}

/// Tells that the task has ended, also when its runtime has.
struct EndNotice(Arc<Shared>);

impl Drop for EndNotice {
    fn drop(&mut self) {
        self.0.ended.send_replace(true);
    }
}

async fn sleep(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}
