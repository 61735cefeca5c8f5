//! Calls that wait to be sent to one server together.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::failure::Failure;
use crate::script::SingleCall;

/// The largest batch. A server, which runs one script at a time, needs less than half a millisecond for it.
const MAX_BATCH: usize = 64;

/// A batch may have this size however few calls there are.
const MIN_BATCH: usize = 8;

pub(crate) type Answer = Result<Vec<u8>, Failure>;

#[derive(Debug)]
pub(crate) struct QueuedCall {
    pub(crate) call: SingleCall,
    pub(crate) answer: oneshot::Sender<Answer>,
}

/// Calls that wait to be sent to one server together.
#[derive(Debug, Default)]
pub(crate) struct CallQueue {
    waiting: Mutex<Vec<QueuedCall>>,
    /// Calls without an answer yet.
    unanswered: AtomicUsize,
    /// Scripts that were sent and not answered yet.
    scripts: AtomicUsize,
    /// Whether the last batch held more than one call.
    is_busy: AtomicBool,
}

/// What the caller that joined has to do.
pub(crate) enum QueuePosition {
    /// Send this batch: there is no room for more.
    Full(Vec<QueuedCall>),
    /// Send the batch soon: this is its first call.
    First,
}

/// Counts for as long as it lives.
pub(crate) struct CountGuard<'a>(&'a AtomicUsize);

impl<'a> CountGuard<'a> {
    fn by(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for CountGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl CallQueue {
    /// Counts a call until it is answered.
    pub(crate) fn begin_call(&self) -> CountGuard<'_> {
        CountGuard::by(&self.unanswered)
    }

    /// Counts a script until it is answered.
    pub(crate) fn begin_script(&self) -> CountGuard<'_> {
        CountGuard::by(&self.scripts)
    }

    /// Lets a call be sent at once and alone, if there are no others to send it with.
    pub(crate) fn begin_script_alone(&self) -> Option<CountGuard<'_>> {
        // Without this second condition, a process with many calls would send the first of each round alone, and the
        // server would run two scripts where one does.
        let is_quiet =
            self.scripts.load(Ordering::Relaxed) == 0 && !self.is_busy.load(Ordering::Relaxed);
        is_quiet.then(|| self.begin_script())
    }

    /// Remembers whether calls come at the same time, by the size of a batch.
    pub(crate) fn observe(&self, batch: usize) {
        self.is_busy.store(batch > 1, Ordering::Relaxed);
    }

    /// Half of all calls, so that the client can prepare one batch while the server decides the other.
    fn batch_size(&self) -> usize {
        // The counts are read without an order. A batch that is a call too small or too large decides the same.
        self.unanswered.load(Ordering::Relaxed).div_ceil(2).clamp(MIN_BATCH, MAX_BATCH)
    }

    /// Adds a call. `None` if another caller sends the batch.
    pub(crate) fn join(&self, one: QueuedCall) -> Option<QueuePosition> {
        let mut waiting = self.waiting();
        waiting.push(one);
        match waiting.len() {
            // Exactly one caller takes on each batch: the first call of a queue that was empty, or the one that fills
            // it. If a full batch is sent meanwhile, the first caller finds fewer calls or none, which does no harm.
            1 => Some(QueuePosition::First),
            many if many >= self.batch_size() => {
                Some(QueuePosition::Full(std::mem::take(&mut *waiting)))
            }
            _ => None,
        }
    }

    /// Takes all calls that wait.
    pub(crate) fn take(&self) -> Vec<QueuedCall> {
        std::mem::take(&mut *self.waiting())
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<QueuedCall>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
