use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tonic::Status;

use crate::client::Action;
use crate::grpc::mastership::{DynMastership, Role};
use crate::lease::Clock;
use crate::message::{Release, Request, Response};
use crate::pool::{AskError, Change};
use crate::server::Server;

/// What requests and the driver share.
pub(super) struct Engine {
    state: Mutex<State>,
    clock: Clock,
    pub(super) mastership: Box<dyn DynMastership>,
    records: ChangeLog,
    /// Wakes the driver: a parent is to be asked for something new.
    pub(super) is_wanted: Notify,
}

struct State {
    server: Server,
    role: Role,
    /// The reign that the server knows of.
    fence: Option<u32>,
    /// The fence of the last reign.
    last: Option<u32>,
    /// Numbers requests of clients that do not number them.
    sequence: u64,
    seed: u64,
    false_claims: FalseClaims,
}

/// Clients that say that they use more than they were granted.
#[derive(Default)]
struct FalseClaims {
    /// When one was last logged.
    logged: Option<Instant>,
    /// How many there were by then.
    count: u64,
}

/// One false claim is logged in this time.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// Why a request got no answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// Another server is the master, or nobody knows which one is.
    NotMaster(Option<Box<str>>),
    Status(Status),
}

impl Engine {
    pub(super) fn new(server: Server, mastership: Box<dyn DynMastership>, seed: u64) -> Self {
        let role = mastership.roles().borrow().clone();
        let role_before = Role::Other { master: None };
        let state = State {
            server,
            role: role_before,
            fence: None,
            last: None,
            sequence: 0,
            seed,
            false_claims: FalseClaims::default(),
        };
        let engine = Self {
            state: Mutex::new(state),
            clock: Clock::start(),
            mastership,
            records: ChangeLog::default(),
            is_wanted: Notify::new(),
        };
        engine.set_role(role);
        engine
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> (Instant, u64) {
        let now = Instant::now();
        (now, self.clock.millis(now))
    }

    pub(super) fn with<T>(&self, use_it: impl FnOnce(&mut Server) -> T) -> T {
        use_it(&mut self.state().server)
    }

    pub(super) fn with_time<T>(&self, use_it: impl FnOnce(&mut Server, u64) -> T) -> T {
        let (now, millis) = self.now();
        let mut state = self.state();
        state.follow_role(now, millis, &self.records);
        let used = use_it(&mut state.server, millis);
        if self.records.add(state.server.pool().take_changes()) {
            self.is_wanted.notify_one();
        }
        used
    }

    /// Whether too many clients wait to be written down. No further one is taken then.
    pub(super) fn is_behind(&self) -> bool {
        self.records.is_full()
    }

    pub(super) fn instant(&self, millis: u64) -> Option<Instant> {
        self.clock.instant(millis)
    }

    /// The role of this server has changed.
    pub(super) fn set_role(&self, role: Role) {
        let (now, millis) = self.now();
        let mut state = self.state();
        state.role = role;
        state.follow_role(now, millis, &self.records);
    }

    /// The address of the master, unless it is this server.
    pub(super) fn master(&self) -> Result<(), Option<Box<str>>> {
        let (now, _) = self.now();
        let state = self.state();
        state.role.fence_at(now).map(|_| ()).ok_or_else(|| state.master())
    }

    /// Answers a request, after what has to be written down is.
    pub(super) async fn answer(&self, request: &mut Request) -> Result<Response, NoAnswer> {
        // Decided first and written down then, without the lock in between. The answer leaves only after that, so a
        // client never uses a lease that the next master does not know of.
        let response = self.decide(request)?;
        self.confirm(response.fence).await?;
        Ok(response)
    }

    /// Waits until everything is written down. Fails unless this server is the master with this fence then.
    pub(super) async fn confirm(&self, fence: u64) -> Result<(), NoAnswer> {
        self.record().await.map_err(NoAnswer::Status)?;
        // Another master that read the list before this was written does not know the client, nor does this server where
        // it was elected again.
        let (now, _) = self.now();
        let state = self.state();
        match state.role.fence_at(now) {
            Some(own) if u64::from(own) == fence => Ok(()),
            _ => Err(NoAnswer::NotMaster(state.master())),
        }
    }

    fn decide(&self, request: &mut Request) -> Result<Response, NoAnswer> {
        // Without this bound, clients that come and go while the list cannot be written would fill the memory.
        if self.is_behind() {
            return Err(NoAnswer::Status(Status::unavailable(
                "clients cannot be written down at the moment",
            )));
        }
        let (now, millis) = self.now();
        let mut state = self.state();
        state.follow_role(now, millis, &self.records);
        let Some(fence) = state.fence else { return Err(NoAnswer::NotMaster(state.master())) };
        let fence = u64::from(fence);
        if request.sequence == 0 {
            // A client of Doorman knows neither number.
            state.sequence += 1;
            // It is taken to be up to date. A late request of such a client cannot be told from a new one.
            (request.sequence, request.fence) = (state.sequence, fence);
        }
        if request.fence > fence {
            // It says that there is a newer master. Whether that is true, the mastership will tell.
            return Err(NoAnswer::NotMaster(None));
        }
        let answered = state.server.answer(millis, request);
        state.log_false_claims(now);
        if self.records.add(state.server.pool().take_changes()) {
            self.is_wanted.notify_one();
        }
        drop(state);
        answered.map_err(|error| match error {
            AskError::NotMaster => NoAnswer::NotMaster(None),
            error => NoAnswer::Status(Status::internal(error.to_string())),
        })
    }

    pub(super) fn release(&self, release: &mut Release) -> Result<(), NoAnswer> {
        let (now, millis) = self.now();
        let mut state = self.state();
        state.follow_role(now, millis, &self.records);
        let Some(fence) = state.fence else { return Err(NoAnswer::NotMaster(state.master())) };
        if release.sequence == 0 {
            state.sequence += 1;
            (release.sequence, release.fence) = (state.sequence, fence.into());
        }
        state.server.pool().release(millis, release);
        self.records.add(state.server.pool().take_changes());
        Ok(())
    }

    /// Writes down who has come and gone.
    pub(super) async fn record(&self) -> Result<(), Status> {
        self.records.write(&*self.mastership).await
    }

    /// What to send to the parent.
    pub(super) fn poll(&self) -> Action {
        let (now, millis) = self.now();
        let mut state = self.state();
        state.follow_role(now, millis, &self.records);
        let action = state.server.poll(millis);
        self.records.add(state.server.pool().take_changes());
        action
    }

    /// The parent has answered, or has not.
    pub(super) fn arrived(&self, answer: Option<&Response>) {
        let (_, millis) = self.now();
        let mut state = self.state();
        match answer {
            Some(response) => state.server.answered(millis, response),
            None => state.server.failed(millis),
        }
    }

    /// Another server is the master among the parents.
    pub(super) fn redirected(&self) {
        let (_, millis) = self.now();
        self.state().server.redirected(millis);
    }
}

impl State {
    /// Begins to lead, or stops.
    fn follow_role(&mut self, now: Instant, millis: u64, records: &ChangeLog) {
        let fence = self.role.fence_at(now);
        // `fence_at` is `None` once the time of the mastership has passed, even if nobody has told this server so yet.
        if fence == self.fence {
            return;
        }
        self.fence = fence;
        match (&self.role, fence) {
            (Role::Master { known, .. }, Some(fence)) => {
                // A list is as old as its reign: who has come since that began is not on it.
                // The same fence again is the same reign, after a pause in which this server was not sure of it.
                let is_new = self.last.replace(fence) != Some(fence);
                if is_new {
                    // What an earlier reign did not write down is of no use any more. What this one has still to write
                    // down has to be, because requests wait for it.
                    records.clear();
                }
                let known = known.as_ref().filter(|_| is_new).map(|known| known.to_vec());
                self.seed = self.seed.wrapping_add(1);
                self.server.lead(millis, fence.into(), known, self.seed);
            }
            _ => self.server.step_down(),
        }
    }

    fn log_false_claims(&mut self, now: Instant) {
        let pool = self.server.pool();
        let Some(claim) = pool.take_false_claim() else { return };
        let FalseClaims { logged, count } = &mut self.false_claims;
        if logged.is_some_and(|logged| now < logged + LOG_EVERY) {
            return;
        }
        let others = pool.false_claims() - *count - 1;
        (*logged, *count) = (Some(now), pool.false_claims());
        #[cfg(feature = "tracing")]
        tracing::warn!(
            client = ?claim.client,
            resource = ?claim.resource,
            claimed = claim.claimed.as_f64(),
            granted = claim.granted.as_f64(),
            others,
            "a client of leases says that it uses more than it was granted, and is not believed"
        );
        #[cfg(not(feature = "tracing"))]
        let _ = (claim, others);
    }

    fn master(&self) -> Option<Box<str>> {
        match &self.role {
            Role::Other { master } => master.clone(),
            Role::Master { .. } => None,
        }
    }
}

/// Who has come and gone, in order, until it is written down.
#[derive(Debug, Default)]
pub(super) struct ChangeLog {
    queue: Mutex<Queue>,
    /// One at a time writes.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Queue {
    /// May have been written already, at least in part.
    first: Vec<Change>,
    rest: Vec<Change>,
}

/// With more to write down, requests are not answered.
const MAX_UNWRITTEN: usize = 100_000;

impl ChangeLog {
    /// Returns whether there are any.
    pub(super) fn add(&self, changes: impl Iterator<Item = Change>) -> bool {
        let mut changes = changes.peekable();
        let is_some = changes.peek().is_some();
        if is_some {
            self.queue().rest.extend(changes);
        }
        is_some
    }

    pub(super) fn clear(&self) {
        let mut queue = self.queue();
        queue.first.clear();
        queue.rest.clear();
    }

    pub(super) fn is_full(&self) -> bool {
        self.queue().len() > MAX_UNWRITTEN
    }

    /// Waits until everything is written down.
    pub(super) async fn write(&self, mastership: &dyn DynMastership) -> Result<(), Status> {
        // Most requests change nobody, and do not wait for those that do.
        if self.queue().len() == 0 {
            return Ok(());
        }
        // In turn, because the order of changes counts: a client that left and came back must not end up as gone.
        let _turn = self.turn.lock().await;
        // If this is not waited for, what was being written is written again.
        loop {
            let next = self.queue().next();
            let Some(changes) = next else { return Ok(()) };
            mastership.record(changes).await.map_err(|error| {
                Status::unavailable(format!("the client could not be written down: {error}"))
            })?;
            self.queue().first.clear();
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn len(&self) -> usize {
        self.first.len() + self.rest.len()
    }

    fn next(&mut self) -> Option<Vec<Change>> {
        if self.first.is_empty() {
            // All that has gathered while the last batch was written goes together.
            std::mem::swap(&mut self.first, &mut self.rest);
        }
        (!self.first.is_empty()).then(|| self.first.clone())
    }
}
