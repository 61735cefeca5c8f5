//! One decision over several limits: charged all or none.
//!
//! Limits are asked in turn until none moves the moment of admission, at most 16 times round.
//!
//! A request that waits must not shut others out of what they share. A request that one limit holds back
//! books its places in all other limits at that moment, and the debt of a bucket cannot begin in the
//! future: it is booked as if the bucket idled until then. On one key, that shuts out only clients who
//! would wait anyway. Where a request is charged to several keys (the limit of a customer, and one for all
//! customers), a place is booked ahead only if it takes at most half of the shared bucket from the others,
//! and none of a shared window. Otherwise the request is refused.

use std::time::Duration;

use super::exact::bounded;
use super::outcome::{LimitOutcome, Outcome, PlainOutcome};
use super::state::{Receipt, State};
use super::step::StepResult;
use super::{Earliest, Limit, LimitStatus};
use crate::store::few::Few;

/// A limit, the state of one key, and what is to be spent there.
#[derive(Debug)]
pub struct Attempt<'a> {
    /// The limit.
    pub limit: &'a Limit,
    /// What it remembers of the key.
    pub state: &'a mut State,
    /// How much is to be spent.
    pub cost: u64,
}

/// Whether all attempts of one decision belong to one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// Whoever waits for one limit keeps nobody from another who would not wait for it too.
    One,
    /// One limit may be shared by many who do not wait for another: a place that is booked far ahead
    /// must not shut it for them, and is refused instead.
    Several,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It may go ahead, once `wait` has passed.
    Admit {
        /// Zero, unless a place was booked ahead.
        wait: Duration,
    },
    /// It may not.
    Refuse {
        /// When it would be admitted, with nobody else spending; `None` where that cannot be told: only
        /// giving back makes room.
        retry_after: Option<Duration>,
    },
    /// It can never be admitted as it is, however long the client waits: the cost is more than one of the
    /// limits ever allows, or would always keep the request in a leaky bucket's queue for longer than it may
    /// wait. Nothing is charged, and nothing is recorded as a refusal.
    Never,
}

impl Verdict {
    /// Whether the request may go ahead, now or after [`wait`](Self::wait).
    #[inline]
    pub const fn is_admitted(&self) -> bool {
        matches!(self, Self::Admit { .. })
    }

    /// How long an admitted request waits before it goes; zero for a refused one.
    #[inline]
    pub const fn wait(&self) -> Duration {
        match *self {
            Self::Admit { wait } => wait,
            Self::Refuse { .. } | Self::Never => Duration::ZERO,
        }
    }

    /// Whether the request can never be admitted as it is: see [`Never`](Self::Never).
    #[inline]
    pub const fn never_fits(&self) -> bool {
        matches!(self, Self::Never)
    }

    /// When a refused request would be admitted; `None` for an admitted one, for one that
    /// [never fits](Self::never_fits), and where that cannot be told.
    #[inline]
    pub const fn retry_after(&self) -> Option<Duration> {
        match *self {
            Self::Admit { .. } | Self::Never => None,
            Self::Refuse { retry_after } => retry_after,
        }
    }
}

/// The verdict, and how the key stands with each limit.
///
/// ```
/// use sluicegate::Limit;
///
/// let limit = Limit::per_minute(2);
/// let decision = limit.take(&mut limit.fresh(), 0, 1);
/// assert!(decision.is_admitted());
/// assert_eq!(decision.remaining(), Some(1));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    verdict: Verdict,
    statuses: Few<LimitStatus>,
}

/// Charges every attempt, or none of them, at `now` microseconds since the Unix epoch; where they do not
/// all admit at once, books the earliest moment within `patience` at which they all do. Without
/// patience, a request still waits in a leaky bucket's own queue; with it, never longer than that.
///
/// This is how every store in a process decides. The attempts' states must belong to different rows.
pub fn decide(
    attempts: &mut [Attempt<'_>],
    now: u64,
    patience: Option<Duration>,
    keys: Keys,
) -> Outcome {
    if let ([attempt], None) = (&mut *attempts, patience) {
        if attempt.limit.is_plain() {
            let now = bounded(now);
            attempt.limit.follow(attempt.state, now);
            let result = attempt.limit.step(attempt.state.words, now, attempt.cost);
            let before = attempt.state.words;
            if let StepResult::Admit { words, .. } = result {
                attempt.state.words = words;
            }
            return PlainOutcome::new(result, before, now).into();
        }
    }
    let mut limits = Vec::with_capacity(attempts.len());
    let verdict =
        settle_on(attempts, now, patience, keys, |_, limit_outcome| limits.push(limit_outcome));
    Outcome::new(verdict, limits)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// [`decide`], handing out each attempt's limit_outcome: nothing is allocated.
pub(super) fn settle_on<'a>(
    attempts: &mut [Attempt<'a>],
    now: u64,
    patience: Option<Duration>,
    keys: Keys,
    mut each: impl FnMut(&Attempt<'a>, LimitOutcome),
) -> Verdict {
    let now = bounded(now);
    for attempt in attempts.iter_mut() {
        attempt.limit.tidy(attempt.state, now);
    }
    let patience = patience.map(micros);
    let Some(wait) = earliest_leave(attempts, now, patience, keys) else {
        return refusal(attempts, now, patience, keys, true, each);
    };
    for attempt in attempts {
        let limit_outcome = match attempt.limit.is_shadow() {
            true => attempt.in_shadow(now, Course::Admit, true),
            false => {
                let receipt = attempt.limit.spend(attempt.state, now, attempt.cost, wait);
                attempt.limit_outcome(now, receipt, Role::Charged)
            }
        };
        each(attempt, limit_outcome);
    }
    Verdict::Admit { wait: Duration::from_micros(wait) }
}

/// Whether [`decide`] would admit, without spending anything or recording a refusal.
pub(crate) fn would_admit(
    attempts: &mut [Attempt<'_>],
    now: u64,
    patience: Option<Duration>,
    keys: Keys,
) -> bool {
    let now = bounded(now);
    for attempt in attempts.iter_mut() {
        attempt.limit.tidy(attempt.state, now);
    }
    earliest_leave(attempts, now, patience.map(micros), keys).is_some()
}

/// What [`decide`] would answer to a request of the same patience, without spending anything or recording a
/// refusal. The states stay as they are.
pub fn preview(
    attempts: &mut [Attempt<'_>],
    now: u64,
    patience: Option<Duration>,
    keys: Keys,
) -> Outcome {
    let now = bounded(now);
    let before: Vec<_> = attempts.iter_mut().map(|attempt| attempt.look(now)).collect();
    let patience = patience.map(micros);
    let mut limits = Vec::with_capacity(attempts.len());
    let verdict = match earliest_leave(attempts, now, patience, keys) {
        None => refusal(attempts, now, patience, keys, false, |_, limit_outcome| {
            limits.push(limit_outcome)
        }),
        Some(wait) => {
            limits.extend(attempts.iter_mut().map(|attempt| match attempt.limit.is_shadow() {
                true => attempt.in_shadow(now, Course::Admit, false),
                false => attempt.limit_outcome(now, Receipt::default(), Role::Asked),
            }));
            Verdict::Admit { wait: Duration::from_micros(wait) }
        }
    };
    for (attempt, before) in attempts.iter_mut().zip(before) {
        let log = attempt.state.log.take();
        *attempt.state = State { log, ..before };
    }
    Outcome::new(verdict, limits)
}

/// How often the limits are asked again to agree on one moment. Each round moves it to a border or a
/// refill of some limit; two rounds settle all but contrived mixtures.
const ROUNDS: usize = 16;

/// When the request leaves, if every limit lets it in within the patience, or has room in its own
/// queue. How long that queue is makes no other limit more patient.
fn earliest_leave(
    attempts: &[Attempt<'_>],
    now: u64,
    patience: Option<u64>,
    keys: Keys,
) -> Option<u64> {
    let (mut wait, mut allowed) = (0, patience.unwrap_or(0));
    for attempt in real(attempts) {
        let Earliest::At(earliest) = attempt.earliest(now, 0) else { return None };
        let (leave, in_time) = match attempt.queued(now) {
            // Its queue is as long as it was made: patience does not make it longer.
            Some(queued) => (queued, earliest == 0 && queued <= patience.unwrap_or(u64::MAX)),
            None => (earliest, earliest <= patience.unwrap_or(0)),
        };
        if !in_time {
            return None;
        }
        wait = wait.max(leave);
        allowed = allowed.max(leave);
    }
    if wait == 0 {
        return Some(0);
    }
    for _ in 0..ROUNDS {
        let asked = wait;
        for attempt in real(attempts) {
            let Earliest::At(leave) = attempt.earliest(now, wait) else { return None };
            wait = leave;
        }
        if wait > allowed {
            return None;
        }
        if wait == asked {
            return real(attempts).all(|attempt| attempt.books(now, wait, keys)).then_some(wait);
        }
    }
    None
}

/// The earliest moment at which the request is admitted, with nobody else spending.
fn earliest_enter(
    attempts: &[Attempt<'_>],
    now: u64,
    patience: Option<u64>,
    keys: Keys,
) -> Option<Duration> {
    let mut when = 0;
    for _ in 0..ROUNDS {
        let asked = when;
        for attempt in real(attempts) {
            let Earliest::At(earliest) = attempt.earliest(now, when) else { return None };
            when = earliest;
        }
        if when > asked {
            continue;
        }
        // One's own queue may hold the request back for longer than another can book ahead.
        let then = bounded(now + when);
        let wait = longest_queue(attempts, then);
        let too_long = wait.saturating_sub(patience.unwrap_or(u64::MAX));
        if too_long > 0 {
            // Whoever would wait too long comes back when the queue has become so much shorter. A cost
            // that has to wait longer even in an empty one never comes to an end here.
            when += too_long;
            continue;
        }
        if real(attempts).count() == 1
            || real(attempts).all(|attempt| attempt.books(then, wait, keys))
        {
            return Some(Duration::from_micros(when));
        }
        let empty = when + wait.saturating_sub(shortest_queue(attempts));
        if books_at(attempts, now, empty, keys) {
            return Some(Duration::from_micros(earliest_booking(
                attempts,
                now,
                keys,
                (when, empty),
            )));
        }
        // From then on the end of the queue moves on with the time: it may come to lie in a window in which
        // places can be booked.
        let then = bounded(now + empty);
        let wait = longest_queue(attempts, then);
        let mut later = 0;
        for attempt in real(attempts).filter(|attempt| !attempt.books(then, wait, keys)) {
            later = later.max(attempt.limit.window_begins(attempt.state, then, wait)?);
        }
        when = empty + later;
    }
    None
}

/// The first moment at which all can book a place at the end of the queue, after one at which not all can and
/// no later than another, at which they can and the queue is as short as it gets.
///
/// Till then the end of the queue stays where it is, and comes nearer as time passes: once all can book, they
/// stay able to.
fn earliest_booking(
    attempts: &[Attempt<'_>],
    now: u64,
    keys: Keys,
    (mut early, mut late): (u64, u64),
) -> u64 {
    while late - early > 1 {
        let middle = early + (late - early) / 2;
        if books_at(attempts, now, middle, keys) {
            late = middle;
        } else {
            early = middle;
        }
    }
    late
}

/// Whether all can book a place at the end of the queue at that moment.
fn books_at(attempts: &[Attempt<'_>], now: u64, when: u64, keys: Keys) -> bool {
    let then = bounded(now + when);
    let wait = longest_queue(attempts, then);
    real(attempts).all(|attempt| attempt.books(then, wait, keys))
}

/// How long the request waits in the limits' own queues even where it finds them empty.
fn shortest_queue(attempts: &[Attempt<'_>]) -> u64 {
    real(attempts).map(|attempt| attempt.limit.shortest_queue(attempt.cost)).max().unwrap_or(0)
}

/// How long the request would wait in the limits' own queues.
fn longest_queue(attempts: &[Attempt<'_>], now: u64) -> u64 {
    real(attempts).filter_map(|attempt| attempt.queued(now)).max().unwrap_or(0)
}

/// Those that decide: a shadow is not there.
fn real<'s, 'a>(attempts: &'s [Attempt<'a>]) -> impl Iterator<Item = &'s Attempt<'a>> {
    attempts.iter().filter(|attempt| !attempt.limit.is_shadow())
}

/// Why a limit is one of those that refuse.
#[derive(Clone, Copy)]
enum RefusalReason {
    /// It would let the request in later than the patience lasts.
    Patience(Option<u64>),
    /// It never lets in a request that waits no longer.
    Never(Option<u64>),
    /// It cannot book a place so far ahead.
    Booking(u64),
}

impl RefusalReason {
    fn refuses(self, attempt: &Attempt<'_>, now: u64, keys: Keys) -> bool {
        match (self, attempt.earliest(now, 0)) {
            (Self::Never(patience), _) => attempt.never_admits(patience),
            (Self::Booking(wait), _) => !attempt.books(now, wait, keys),
            (Self::Patience(patience), Earliest::At(0)) => {
                attempt.queued(now).is_some_and(|queued| queued > patience.unwrap_or(u64::MAX))
            }
            (Self::Patience(patience), Earliest::At(delay)) => {
                let late = delay > patience.unwrap_or(0);
                late || attempt.queued(now).is_some() || !attempt.books(now, delay, keys)
            }
            (Self::Patience(_), Earliest::Unknown | Earliest::Never) => true,
        }
    }
}

fn refusal<'a>(
    attempts: &mut [Attempt<'a>],
    now: u64,
    patience: Option<u64>,
    keys: Keys,
    record: bool,
    mut each: impl FnMut(&Attempt<'a>, LimitOutcome),
) -> Verdict {
    let never = RefusalReason::Never(patience);
    let queue = longest_queue(attempts, now);
    // Who never gets in is told so, and no other reason. Where each would wait long enough but they find no moment in common, all that wait refuse;
    // where none waits but one is held back by another's queue, those that cannot book that far.
    let grounds = [
        never,
        RefusalReason::Patience(patience),
        RefusalReason::Patience(None),
        RefusalReason::Booking(queue),
    ];
    let found =
        |ground: &RefusalReason| real(attempts).any(|attempt| ground.refuses(attempt, now, keys));
    let ground = grounds.into_iter().find(found).unwrap_or(RefusalReason::Patience(patience));
    let is_never = matches!(ground, RefusalReason::Never(_));
    // No attempt to go faster is recorded of a request that no slower one would help.
    let record = record && !is_never;
    for attempt in attempts.iter_mut() {
        if attempt.limit.is_shadow() {
            let limit_outcome = attempt.in_shadow(now, Course::Refuse, record);
            each(attempt, limit_outcome);
            continue;
        }
        let refused = ground.refuses(attempt, now, keys);
        if refused && record {
            attempt.limit.refuse(attempt.state, now, attempt.cost);
        }
        let limit_outcome = attempt.limit_outcome(now, Receipt::default(), Role::Refused(refused));
        each(attempt, limit_outcome);
    }
    if is_never {
        return Verdict::Never;
    }
    Verdict::Refuse { retry_after: earliest_enter(attempts, now, patience, keys) }
}

/// What a limit had to do with a decision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Role {
    /// It admitted, and was charged.
    Charged,
    /// It would admit.
    #[default]
    Asked,
    /// The request was refused, by this limit or by others.
    Refused(bool),
    /// It would have refused, or held the request up, and is a shadow.
    Shadowed,
}

/// What the limits that decide do with a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Course {
    Admit,
    Refuse,
}

impl Role {
    /// Whether the limit was not charged for being asked too early, or others were.
    pub(super) const fn is_refused(self) -> bool {
        matches!(self, Self::Refused(_) | Self::Shadowed)
    }
}

impl Attempt<'_> {
    /// Makes the state what a decision would find, and returns what it was: all but a log, which may be long,
    /// and whose arithmetic sees through stamps that are over and a clock that result back.
    fn look(&mut self, now: u64) -> State {
        let log = self.state.log.take();
        let before = self.state.clone();
        self.limit.tidy(self.state, now);
        self.state.log = log;
        before
    }

    /// The earliest moment, `from` or more from `now`, at which the limit lets the request in.
    #[inline]
    fn earliest(&self, now: u64, from: u64) -> Earliest {
        self.limit.earliest(self.state, now, self.cost, from)
    }

    fn never_admits(&self, patience: Option<u64>) -> bool {
        self.limit.never_admits(self.cost, patience)
    }

    /// How long the request would wait in the limit's own queue, if it has one.
    #[inline]
    fn queued(&self, now: u64) -> Option<u64> {
        self.limit.queued(self.state, now, self.cost)
    }

    /// What a shadow does and tells of a request that the others have decided, writing if it `takes`.
    fn in_shadow(&mut self, now: u64, course: Course, takes: bool) -> LimitOutcome {
        let is_at_once = matches!(self.earliest(now, 0), Earliest::At(0));
        if !is_at_once || self.queued(now).is_some_and(|queued| queued > 0) {
            if takes {
                self.limit.refuse(self.state, now, self.cost);
            }
            return self.limit_outcome(
                now,
                Receipt { void: true, ..Receipt::default() },
                Role::Shadowed,
            );
        }
        match (course, takes) {
            (Course::Refuse, _) => {
                self.limit_outcome(now, Receipt::default(), Role::Refused(false))
            }
            (Course::Admit, false) => self.limit_outcome(now, Receipt::default(), Role::Asked),
            (Course::Admit, true) => {
                let receipt = self.limit.spend(self.state, now, self.cost, 0);
                self.limit_outcome(now, receipt, Role::Charged)
            }
        }
    }

    /// What there is to know of the limit once the request has been decided.
    fn limit_outcome(&self, now: u64, receipt: Receipt, role: Role) -> LimitOutcome {
        if !self.limit.has_extra_state() {
            return LimitOutcome::of_words(self.state.words, now, role);
        }
        let mut status = self.limit.status(self.state, now, receipt);
        if role.is_refused() {
            status.retry = self.limit.retry(self.state, now, self.cost);
        }
        status.charged = if role == Role::Charged { self.cost } else { 0 };
        status.refused = role == Role::Refused(true);
        status.shadowed = role == Role::Shadowed;
        LimitOutcome::computed(status)
    }

    fn books(&self, now: u64, wait: u64, keys: Keys) -> bool {
        self.limit.books(self.state, now, self.cost, wait, keys)
    }
}

impl Decision {
    pub(super) fn new(verdict: Verdict, statuses: Few<LimitStatus>) -> Self {
        Self { verdict, statuses }
    }

    /// The verdict.
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// The same for now: nobody can tell when it is admitted.
    pub(crate) fn for_now(self) -> Self {
        Self { verdict: Verdict::Refuse { retry_after: None }, ..self }
    }

    /// Whether the request may go ahead, now or after [`wait`](Self::wait).
    pub fn is_admitted(&self) -> bool {
        self.verdict.is_admitted()
    }

    /// How long an admitted request waits before it goes; zero for a refused one.
    pub fn wait(&self) -> Duration {
        self.verdict.wait()
    }

    /// Whether the request can never be admitted as it is: see [`Verdict::Never`]. The standings that are
    /// [`refused`](LimitStatus::refused) are those of the limits that it is too much for.
    pub fn never_fits(&self) -> bool {
        self.verdict.never_fits()
    }

    /// When a refused request would be admitted; `None` for an admitted one, for one that
    /// [never fits](Self::never_fits), and where that cannot be told.
    pub fn retry_after(&self) -> Option<Duration> {
        self.verdict.retry_after()
    }

    /// How the key stands with each limit, in the order of the rule; empty where nothing was owed.
    pub fn statuses(&self) -> impl DoubleEndedIterator<Item = &LimitStatus> + Clone {
        self.statuses.iter()
    }

    /// The least that remains with any limit that is no [shadow](Limit::shadow); `None` where nothing was
    /// owed to one.
    pub fn remaining(&self) -> Option<u64> {
        self.told().map(|status| status.remaining).min()
    }

    /// The standings that clients are told of: those of a shadow, and of a limit that was not counted, are not
    /// among them.
    pub(crate) fn told(&self) -> impl DoubleEndedIterator<Item = &LimitStatus> + Clone {
        self.statuses().filter(|status| !status.limit.is_shadow() && !status.uncounted)
    }

    /// Whether a limit was not counted, because the store had no room for the key.
    pub fn is_uncounted(&self) -> bool {
        self.statuses().any(|status| status.uncounted)
    }

    /// Whether a soft limit is exceeded.
    pub fn is_soft(&self) -> bool {
        self.told().any(|status| status.soft)
    }

    /// Whether a limit that is a [shadow](Limit::shadow) would have refused the request, or held it up.
    pub fn is_shadowed(&self) -> bool {
        self.statuses().any(|status| status.shadowed)
    }

    /// Whether a ban is what refuses.
    pub fn is_banned(&self) -> bool {
        self.statuses().any(|status| status.refused && status.banned)
    }
}
