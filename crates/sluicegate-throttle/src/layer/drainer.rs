//! Tasks that start requests when the rate allows it, and answer those whose deadline passes.
//!
//! Each runtime in which a request waits has one, because a runtime may end, or be held up by a handler, while requests
//! of other runtimes wait. Where there is no runtime, or one without timers, it is a thread.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use sluicegate_core::adapter::Sleep;
use tokio::runtime::{Handle, Id};

use super::shared::{Alarm, Shared, State};
use super::sync::MutexGuard;
use super::turn;

/// How much later than the first drainer the others look, in microseconds. A rate makes up for more than that.
const GRACE: u64 = 5_000;

impl Shared {
    /// Unlocks, calls the wakers, and makes sure that a drainer starts requests in time and answers those with
    /// deadlines.
    #[inline]
    pub(super) fn let_go(self: &Arc<Self>, state: MutexGuard<'_, State>, wakers: Vec<Waker>) {
        let next = state.next_at();
        // Nearly always there is nothing to do.
        if next.is_some() || !wakers.is_empty() {
            self.let_go_on(state, wakers, next);
        }
    }

    fn let_go_on(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        mut wakers: Vec<Waker>,
        next: Option<u64>,
    ) {
        let mut begun = None;
        if let Some(next) = next {
            // Only a drainer that sleeps for longer than that has to be woken.
            for (at, alarm) in state.drainers.iter_mut().enumerate() {
                let due = due(at, next);
                if due < alarm.at {
                    alarm.at = due;
                    wakers.extend(alarm.waker.take());
                }
            }
            let runtime = Handle::try_current().ok();
            if self.needs_drainer(&state, runtime.as_ref()) {
                let id = runtime.as_ref().map(Handle::id);
                let at = due(state.drainers.len(), next);
                state.drainers.push(Alarm { runtime: id, at, waker: None });
                let drainer = Drainer { shared: Arc::clone(self), runtime: id, is_done: false };
                begun = Some((runtime, drainer));
            }
        }
        // Wakers and runtimes run code of others, which may come back here: never under the lock.
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        match begun {
            Some((Some(runtime), drainer)) => drop(runtime.spawn(drain(drainer))),
            Some((None, drainer)) => drain_in_thread(drainer, thread::Builder::new()),
            None => {}
        }
    }

    /// Whether the caller's runtime has no drainer. Outside of any runtime, one of any kind will do; and a clock that a
    /// test moves would keep a thread for ever.
    fn needs_drainer(&self, state: &State, runtime: Option<&Handle>) -> bool {
        match runtime.map(Handle::id) {
            Some(id) => state.drainers.iter().all(|alarm| alarm.runtime != Some(id)),
            None => state.drainers.is_empty() && self.clock.as_manual().is_none(),
        }
    }

    /// Starts and answers what is due, in a new turn of the thread or in the present one. Returns when the drainer goes
    /// on, and how long that is from now; zero after the next turn, and `None` when nothing waits for a moment any more.
    fn drain(&self, runtime: Option<Id>, is_turn: bool) -> Option<(u64, Duration)> {
        let mut state = self.lock();
        let now = self.clock.now();
        if is_turn {
            turn::is_over();
        }
        state.allow(now);
        let mut instructions = std::mem::take(&mut state.instructions);
        state.scheduler.drain(now, &mut instructions);
        let wakers = state.tell(instructions);
        let next = state.next_at();
        let drainers = &mut state.drainers;
        let mut at = None;
        if let Some(mut own) = drainers.iter().position(|alarm| alarm.runtime == runtime) {
            // The first is held up.
            if own > 0 && drainers[0].at.saturating_add(GRACE) <= now {
                // From now on this drainer looks first. The one that is held up follows like the others when it is back.
                drainers.swap(0, own);
                own = 0;
            }
            at = next.map(|next| due(own, next));
            match at {
                Some(at) => (drainers[own].at, drainers[own].waker) = (at, None),
                None => drop(drainers.remove(own)),
            }
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        at.map(|at| (at, Duration::from_micros(at.saturating_sub(now).max(1))))
    }

    /// Ready when the drainer has something to do before `at`.
    fn poll_earlier(&self, runtime: Option<Id>, at: u64, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        match state.drainers.iter_mut().find(|alarm| alarm.runtime == runtime) {
            Some(alarm) if alarm.at >= at => {
                alarm.waker = Some(cx.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }
}

/// When the drainer at this place of the list looks, if the first does at `next`.
const fn due(place: usize, next: u64) -> u64 {
    if place == 0 || next == 0 { next } else { next.saturating_add(GRACE) }
}

/// It ends when nothing waits for a moment.
#[derive(Debug)]
struct Drainer {
    shared: Arc<Shared>,
    runtime: Option<Id>,
    is_done: bool,
}

async fn drain(mut drainer: Drainer) {
    let (shared, runtime) = (Arc::clone(&drainer.shared), drainer.runtime);
    let mut is_turn = false;
    while let Some((at, time)) = shared.drain(runtime, is_turn) {
        is_turn = at == 0;
        if is_turn {
            turn::pass().await;
            continue;
        }
        // A runtime without timers says so in a panic, on standard error, and cannot be asked before.
        let timer = || Sleep::new(&shared.clock, time, tokio::time::sleep);
        let Ok(mut sleep) = catch_unwind(AssertUnwindSafe(timer)) else {
            return drain_in_thread(drainer, thread::Builder::new());
        };
        poll_fn(|cx| match shared.poll_earlier(runtime, at, cx) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => Pin::new(&mut sleep).poll(cx),
        })
        .await;
    }
    drainer.is_done = true;
}

fn drain_in_thread(mut drainer: Drainer, thread: thread::Builder) {
    let (shared, runtime) = (Arc::clone(&drainer.shared), drainer.runtime);
    // Without a thread it wakes nobody: those whom it woke would try again at once, and for ever.
    drainer.is_done = true;
    let drain = move || {
        drainer.is_done = false;
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut cx = Context::from_waker(&waker);
        while let Some((at, time)) = drainer.shared.drain(drainer.runtime, true) {
            let until = Instant::now() + time;
            while drainer.shared.poll_earlier(drainer.runtime, at, &mut cx).is_pending() {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                thread::park_timeout(left);
            }
        }
        drainer.is_done = true;
    };
    // Where no thread can be made, requests are started as others come and end. The next that waits tries again.
    if thread.name("sluicegate-throttle".to_owned()).spawn(drain).is_err() {
        shared.lock().drainers.retain(|alarm| alarm.runtime != runtime);
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Drop for Drainer {
    /// The runtime of this task has ended, and requests of other runtimes may wait: the first of them that is polled
    /// starts another.
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let mut state = self.shared.lock();
        // All waiting requests are woken, because nobody knows which runtimes are still alive. Each of them, when it is
        // polled, sees to it that its runtime has a drainer.
        state.drainers.retain(|alarm| alarm.runtime != self.runtime);
        let waiters: Vec<_> = state.waiters.iter().flatten().cloned().collect();
        drop(state);
        waiters.iter().filter_map(|waiter| waiter.take_waker()).for_each(Waker::wake);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use sluicegate_core::ManualClock;

    use super::*;
    use crate::layer::dispatch::Dispatch;
    use crate::layer::requests::Description;
    use crate::layer::snapshot::UnreadCounts;
    use crate::{Class, Throttle};

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn where_no_thread_can_be_made_nobody_is_woken_to_try_again() {
        let builder = Throttle::builder().requests_per_second(1).queue_cost(1);
        let shared = builder.clock(ManualClock::new()).build().unwrap().shared;
        let request = Description {
            class: Class::CRITICAL,
            flow: 0,
            key: 0,
            timeout: None,
            partition: None,
            unread: UnreadCounts::default(),
            names: None,
        };
        let Dispatch::Start(_running) = shared.admit(&request) else { panic!("it starts") };
        let Dispatch::Wait(mut place) = shared.admit(&request) else { panic!("it waits") };
        let woken = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&woken));
        assert!(place.poll(&mut Context::from_waker(&waker)).is_pending());

        shared.lock().drainers.push(Alarm { runtime: None, at: 0, waker: None });
        let drainer = Drainer { shared: Arc::clone(&shared), runtime: None, is_done: false };
        // No machine has so much memory.
        drain_in_thread(drainer, thread::Builder::new().stack_size(usize::MAX / 4));
        assert_eq!(woken.0.load(Ordering::Relaxed), 0);
        assert!(shared.lock().drainers.is_empty(), "the next that comes tries again");
    }
}
