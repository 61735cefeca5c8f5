//! What to do after a decision.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::limit::Decision;

/// The default number of requests that may wait behind one gate: each holds a connection and some memory.
const WAITING: usize = 1_024;

/// What happens to a request that exceeds a limit.
///
/// ```
/// use std::time::Duration;
/// use sluicegate::Rejection;
///
/// // Wait up to 200 ms, at most 100 requests at a time; send the rest elsewhere.
/// let rejection = Rejection::queue(Duration::from_millis(200))
///     .at_most(100)
///     .then(Rejection::redirect("https://busy.example.com/"));
/// ```
#[derive(Debug, Clone)]
pub struct Rejection {
    kind: Kind,
    /// How long and how many requests may wait before that; `None` for no queue.
    queue: Option<Queue>,
}

#[derive(Debug, Clone, Copy)]
struct Queue {
    longest: Duration,
    most: usize,
}

#[derive(Clone)]
enum Kind {
    Always(Treatment),
    Choose(Arc<dyn Fn(&Decision) -> Rejection + Send + Sync>),
}

/// Where a refused request is redirected.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Redirect {
    /// The status, 307 by default.
    pub status: u16,
    /// The target, as the operator wrote it; never taken from the request.
    pub location: Arc<str>,
}

impl Redirect {
    /// A redirect with this status to this target.
    pub fn new(status: u16, location: impl Into<Arc<str>>) -> Self {
        Self { status, location: location.into() }
    }
}

impl Rejection {
    /// Refuses: `429 Too Many Requests`. The default.
    pub const fn block() -> Self {
        Self { kind: Kind::Always(Treatment::Reject), queue: None }
    }

    /// Lets a request wait up to `longest` for its turn, in order of arrival, at most 1,024 at a time. A request that
    /// cannot be served in time is refused at once.
    ///
    /// A request in the queue of a [leaky bucket](crate::Limit::leaky_bucket) has a place here too: it waits no
    /// longer than `longest`, and counts among the waiting requests. The bucket's own [`queue`](crate::Limit::queue)
    /// applies to each key, this one to all of them together; the tighter of the two decides. Without a queue here,
    /// the bucket's own is the only bound.
    ///
    /// A client that leaves while it waits gives its turn back. If others wait behind it for the same key, their turns
    /// are fixed already, and its turn is lost: only the last in line can give one back to a bucket or a fixed window.
    /// No turn is booked further ahead than `longest`, so that is how long a client that comes and leaves again and again
    /// keeps others of its key waiting. `at_most` bounds only how many wait at the same time.
    /// A bucket beside the limit that it waited for stays booked as [idle](crate::limit::Limits) until that turn.
    ///
    /// While a request waits, it holds the inner service that was made ready for it. A request that is charged to
    /// several keys waits only as long as all that wait together keep at most half of a shared bucket, and nothing of a
    /// shared window, from others.
    pub const fn queue(longest: Duration) -> Self {
        Self {
            kind: Kind::Always(Treatment::Reject),
            queue: Some(Queue { longest, most: WAITING }),
        }
    }

    /// Lets at most `most` requests wait at a time.
    ///
    /// # Panics
    ///
    /// If this is not a [`queue`](Self::queue), or `most` is zero.
    #[must_use]
    #[track_caller]
    pub fn at_most(mut self, most: usize) -> Self {
        assert!(most > 0, "a queue of at most 0 requests lets nobody wait: leave it out");
        let queue = self.queue.as_mut().expect("`at_most` belongs to `Rejection::queue`");
        queue.most = most;
        self
    }

    /// What happens to a request that cannot wait, or not long enough.
    ///
    /// # Panics
    ///
    /// If this is not a [`queue`](Self::queue), or `rejection` is one.
    #[must_use]
    #[track_caller]
    pub fn then(self, rejection: Self) -> Self {
        assert!(self.queue.is_some(), "`then` belongs to `Rejection::queue`");
        assert!(rejection.queue.is_none(), "one queue behind another: make the first one longer");
        Self { kind: rejection.kind, queue: self.queue }
    }

    /// Sends the client to `location`, with `307 Temporary Redirect`, which keeps method and body.
    ///
    /// # Panics
    ///
    /// If the location is empty, or contains anything but visible ASCII: it goes into a header field.
    #[track_caller]
    pub fn redirect(location: impl AsRef<str>) -> Self {
        let location = location.as_ref();
        assert!(
            !location.is_empty() && location.bytes().all(|byte| byte.is_ascii_graphic()),
            "the redirect's location {location:?} is not a URI of visible ASCII characters",
        );
        let redirect = Redirect::new(307, location);
        Self { kind: Kind::Always(Treatment::Redirect(redirect)), queue: None }
    }

    /// Redirects with another status: 302, 303, 307 or 308.
    ///
    /// # Panics
    ///
    /// If this is not a [`redirect`](Self::redirect), or the status is none of these.
    #[must_use]
    #[track_caller]
    pub fn status(mut self, status: u16) -> Self {
        assert!(
            matches!(status, 302 | 303 | 307 | 308),
            "{status} does not redirect to a location: use 302, 303, 307 or 308",
        );
        match &mut self.kind {
            Kind::Always(Treatment::Redirect(redirect)) => redirect.status = status,
            _ => panic!("`status` belongs to `Rejection::redirect`"),
        }
        self
    }

    /// Forwards the request with a mark, so that the handler can serve less. It is charged to none of its limits,
    /// including those that would admit it. Put limits that must hold in any case into a layer of their own.
    pub const fn degrade() -> Self {
        Self { kind: Kind::Always(Treatment::Degrade), queue: None }
    }

    /// Forwards everything and only reports what would have been refused: for trying all limits of a layer on real
    /// traffic. To try one limit beside others, there is [`Limit::shadow`](crate::Limit::shadow). No request waits,
    /// unless there is a [`queue`](Self::queue) before it. None is refused because the store fails or is full.
    pub const fn shadow() -> Self {
        Self { kind: Kind::Always(Treatment::Shadow), queue: None }
    }

    /// Chooses for each refused request, for example blocks banned keys and degrades all others.
    ///
    /// If the choice returns a queue, it is not used, because the request is already refused.
    pub fn from_fn(choose: impl Fn(&Decision) -> Self + Send + Sync + 'static) -> Self {
        Self { kind: Kind::Choose(Arc::new(choose)), queue: None }
    }

    fn treatment(&self, decision: &Decision) -> Treatment {
        match &self.kind {
            Kind::Always(treatment) => treatment.clone(),
            Kind::Choose(choose) => match choose(decision) {
                // Only one choice is followed: a chain of them could be endless.
                Self { kind: Kind::Choose(_), .. } => Treatment::Reject,
                chosen => chosen.treatment(decision),
            },
        }
    }
}

impl Default for Rejection {
    fn default() -> Self {
        Self::block()
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always(treatment) => treatment.fmt(f),
            Self::Choose(_) => f.write_str("Choose"),
        }
    }
}

/// What happens to a request that exceeds a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Treatment {
    /// Calls the service, with the request marked as degraded.
    Degrade,
    /// Calls the service, and reports that it would have been refused.
    Shadow,
    /// Answers with a redirect.
    Redirect(Redirect),
    /// Answers with a refusal.
    Reject,
}

/// Decides what happens to requests that exceed a limit, and bounds how many wait. Clones share that bound.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    rejection: Rejection,
    waiting: Arc<AtomicUsize>,
    tells_waits: bool,
}

/// A permit to wait in the queue. Dropping it makes room for another request.
#[derive(Debug)]
pub(crate) struct QueuePermit {
    waiting: Arc<AtomicUsize>,
}

impl Gate {
    /// A gate that treats refused requests by `rejection`.
    pub fn new(rejection: Rejection) -> Self {
        Self { rejection, ..Self::default() }
    }

    /// The same bound on waiting requests, with another way to treat refused requests.
    #[must_use]
    pub fn with(&self, rejection: Rejection) -> Self {
        Self { rejection, ..self.clone() }
    }

    /// Lets nobody wait: a request that may go ahead later is admitted now, and its decision says how long to wait. For
    /// servers whose clients do the waiting.
    #[must_use]
    pub fn without_waiting(self) -> Self {
        Self { tells_waits: true, ..self }
    }

    /// Whether the wait of a request is told, and not waited here.
    pub(crate) fn tells_waits(&self) -> bool {
        self.tells_waits
    }

    /// Takes a permit to wait in the queue, if there is a queue and room in it, and says how long the request may
    /// wait there.
    pub(crate) fn permit(&self) -> Option<(QueuePermit, Duration)> {
        let queue = self.rejection.queue?;
        // Counts only requests that get a place. One that is refused must not take another's place.
        let next = |waiting| (waiting < queue.most).then_some(waiting + 1);
        self.waiting.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).ok()?;
        Some((QueuePermit { waiting: Arc::clone(&self.waiting) }, queue.longest))
    }

    /// How long a request may wait here, if there is a queue.
    #[inline]
    pub(crate) fn longest(&self) -> Option<Duration> {
        self.rejection.queue.map(|queue| queue.longest)
    }

    /// The permit of a request that waits: the one that it has, or else one that is only counted, because the limit's
    /// own queue admitted it and bounds how many wait there.
    pub(crate) fn seat(&self, permit: Option<QueuePermit>) -> QueuePermit {
        permit.unwrap_or_else(|| {
            // Beyond the bound, if need be. The store has booked the place already, and to refuse now would waste it.
            self.waiting.fetch_add(1, Ordering::AcqRel);
            QueuePermit { waiting: Arc::clone(&self.waiting) }
        })
    }

    /// How many requests wait: in this queue, or in that of a leaky bucket. A request with a place whose store has
    /// not answered yet counts too.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    /// What to do with a refused request.
    pub fn treat(&self, decision: &Decision) -> Treatment {
        self.rejection.treatment(decision)
    }

    /// Whether every request goes ahead.
    pub(crate) fn is_trial(&self) -> bool {
        matches!(self.rejection.kind, Kind::Always(Treatment::Shadow))
    }

    /// How long an admitted request waits that may go in after `wait`.
    #[inline]
    pub(crate) fn admit(&self, wait: Duration) -> Option<Duration> {
        if wait.is_zero() || self.tells_waits {
            return None;
        }
        // A queue in front of a shadow was asked for explicitly. A leaky bucket's own queue is on trial as well.
        let waits = self.rejection.queue.is_some() || !self.is_trial();
        waits.then_some(wait)
    }
}

impl Drop for QueuePermit {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests;
