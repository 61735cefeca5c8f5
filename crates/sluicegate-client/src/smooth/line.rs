use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sluicegate::adapter::Sleep;
use sluicegate::clock::Clock;
use tokio::sync::Semaphore;

use super::gate::Reserve;
use crate::call::within;
use crate::error::Refused;
use crate::table::{Row, Worth};

/// How far ahead a time is reserved. Further ahead, the times of callers that leave would stay empty; with nothing, timers
/// that are late would slow the rate down.
const AHEAD: Duration = Duration::from_millis(100);

/// The shortest sleep, which timers can tell from none.
const SHORTEST: Duration = Duration::from_millis(1);

/// The method of one key, and the requests that could not reserve a time yet.
#[derive(Debug)]
pub(super) struct Line<R> {
    state: Mutex<State<R>>,
    /// The first asks again, the others wait behind it.
    front: Semaphore,
    waiting: AtomicUsize,
}

#[derive(Debug)]
struct State<R> {
    method: R,
    /// Reservations so far, without those that were taken back.
    reserved: u64,
}

/// The line of a key, in the table.
#[derive(Debug)]
pub(super) struct LineRow<R> {
    pub(super) line: Option<Arc<Line<R>>>,
    pub(super) used: u64,
}

impl<R> Default for LineRow<R> {
    fn default() -> Self {
        Self { line: None, used: 0 }
    }
}

/// A line with requests is kept. What was not used for the longest time is forgotten first.
impl<R> Row for LineRow<R> {
    fn worth(&self, _: u64) -> Worth {
        match &self.line {
            Some(line) if Arc::strong_count(line) > 1 => Worth::Keep,
            _ => Worth::Something(self.used),
        }
    }
}

/// What a request is told.
pub(super) enum Answer<R: Reserve + Clone> {
    Go,
    /// It may go after this time.
    Wait(Duration, Reservation<R>),
    /// It may ask again after this time.
    AskAgain(Duration),
    /// It would have to wait for this time, if that is known.
    Refuse(Option<Duration>),
}

impl<R: Reserve + Clone> Line<R> {
    pub(super) fn new(method: R) -> Self {
        let state = Mutex::new(State { method, reserved: 0 });
        Self { state, front: Semaphore::new(1), waiting: AtomicUsize::new(0) }
    }

    /// Whether others ask again before a request that has just come.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) == 0
    }

    /// Reserves a time for a request that waits for `left` at most.
    pub(super) fn ask(
        self: &Arc<Self>,
        clock: &Clock,
        permits: u32,
        left: Option<Duration>,
    ) -> Answer<R> {
        let mut state = self.lock();
        // To go back to, if the caller leaves before its time.
        let before = state.method.clone();
        let now = Duration::from_micros(clock.now());
        let ahead = left.map_or(AHEAD, |left| left.min(AHEAD));
        match state.method.reserve(now, permits, Some(ahead)) {
            Ok(Duration::ZERO) => {
                state.reserved += 1;
                Answer::Go
            }
            Ok(wait) => {
                state.reserved += 1;
                let number = state.reserved;
                Answer::Wait(wait, Reservation { line: self.clone(), before: Some(before), number })
            }
            Err(Duration::MAX) => Answer::Refuse(None),
            Err(wait) if left.is_some_and(|left| wait > left) => Answer::Refuse(Some(wait)),
            // What cannot be reserved although it is near enough has a bound of the method's own.
            Err(wait) => {
                let early = if wait > ahead { ahead } else { Duration::ZERO };
                Answer::AskAgain((wait - early).max(SHORTEST))
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A time that was reserved. Dropped before that, it is taken back, if it is the last one: later ones were told their time.
pub(super) struct Reservation<R: Reserve + Clone> {
    line: Arc<Line<R>>,
    /// The method without it; `None` once it is used.
    before: Option<R>,
    number: u64,
}

impl<R: Reserve + Clone> Drop for Reservation<R> {
    fn drop(&mut self) {
        let Some(before) = self.before.take() else { return };
        let mut state = self.line.lock();
        // Later ones were told a time that counts with this one.
        if state.reserved == self.number {
            *state = State { method: before, reserved: self.number - 1 };
        }
    }
}

/// A place in a line.
struct Place<R>(Arc<Line<R>>);

impl<R> Drop for Place<R> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits for the time that was reserved.
pub(super) async fn wait_for<R>(clock: Clock, wait: Duration, mut reservation: Reservation<R>)
where
    R: Reserve + Clone,
{
    Sleep::new(&clock, wait, tokio::time::sleep).await;
    reservation.before = None;
}

/// Waits in the line, and then for a time that could be reserved.
pub(super) async fn wait_in_line<R>(
    line: Arc<Line<R>>,
    clock: Clock,
    permits: u32,
    patience: Option<Duration>,
) -> Result<(), Refused>
where
    R: Reserve + Clone,
{
    line.waiting.fetch_add(1, Ordering::Relaxed);
    let place = Place(line.clone());
    let end = patience.map(|patience| clock.now().saturating_add(patience.as_micros() as u64));
    let left = || end.map(|end| Duration::from_micros(end.saturating_sub(clock.now())));
    let front = match left() {
        Some(left) => within(&clock, left, line.front.acquire()).await,
        None => Some(line.front.acquire().await),
    };
    // The semaphore is never closed.
    let Some(Ok(front)) = front else { return Err(too_long(None)) };
    let answer = loop {
        match line.ask(&clock, permits, left()) {
            Answer::AskAgain(wait) => Sleep::new(&clock, wait, tokio::time::sleep).await,
            answer => break answer,
        }
    };
    // Those behind may reserve a time after this one.
    drop((front, place));
    match answer {
        Answer::Wait(wait, reservation) => wait_for(clock, wait, reservation).await,
        Answer::Refuse(wait) => return Err(too_long(wait)),
        Answer::Go | Answer::AskAgain(_) => {}
    }
    Ok(())
}

pub(super) fn too_long(wait: Option<Duration>) -> Refused {
    Refused::new("its turn comes later than it waits for", wait)
}
