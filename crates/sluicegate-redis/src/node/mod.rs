//! One server: the connection to it, made anew whenever it is lost, and its breaker.

mod dial;
mod frames;
mod guard;
mod line;
mod pace;
mod sentinel;
mod stream;
mod target;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use tokio::sync::watch;

pub(crate) use self::dial::Dial;
use self::line::{Hold, Line, Retired};
use self::pace::{Pace, Stood};
pub(crate) use self::sentinel::Sentinels;
pub(crate) use self::target::{Target, moved_to};
use crate::breaker::{Breaker, Permit, Settings, Turn};
use crate::counts::Counters;
use crate::failure::{Failure, FailureKind};
use crate::refusals::{Epochs, Seen};
use crate::report;
use crate::runtime::{Runtime, Sleep};
use crate::together::Together;

/// A connection, and which one in the life of its node.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) wire: MultiplexedConnection,
    pub(crate) generation: u64,
    /// What is told on it can be believed for as long as this lasts.
    pub(crate) seen: Seen,
    hold: Arc<Hold>,
}

/// What all nodes of a store have in common.
#[derive(Clone)]
pub(crate) struct Common {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) epochs: Arc<Epochs>,
    pub(crate) dial: Dial,
    pub(crate) breaker: Settings,
}

pub(crate) struct Node {
    name: String,
    target: Target,
    common: Common,
    breaker: Arc<Breaker>,
    state: watch::Sender<State>,
    generations: AtomicU64,
    pace: Mutex<Pace>,
    retired: Mutex<Retired>,
    /// When the last connection was made, in microseconds.
    made: AtomicU64,
    /// Whether the server has answered on it, in time.
    has_answered: AtomicBool,
    /// What refusals that it tells are remembered under.
    place: usize,
    pub(crate) together: Together,
    /// Set once the server has shown that it knows no RESP3.
    plain: AtomicBool,
}

enum State {
    /// Nobody has asked for a connection.
    Idle,
    /// One is being made. Whoever needs it waits for that, unless the one before was lost for a reason that
    /// lasts, or the attempt before failed: then nobody waits.
    Dialling {
        failed: Option<Failure>,
    },
    Up(Connection),
}

impl Node {
    pub(crate) fn new(target: Target, common: Common) -> Arc<Self> {
        let name = target.name();
        report::server_is_known(&name);
        Arc::new(Self {
            name,
            breaker: Arc::new(Breaker::new(common.breaker)),
            state: watch::Sender::new(State::Idle),
            generations: AtomicU64::new(0),
            pace: Mutex::default(),
            retired: Mutex::default(),
            made: AtomicU64::new(0),
            has_answered: AtomicBool::new(false),
            place: common.epochs.place(),
            together: Together::default(),
            plain: AtomicBool::new(!common.dial.resp3),
            target,
            common,
        })
    }

    /// The host that it was found by; none for a unix socket, or a master that sentinels name.
    pub(crate) fn host(&self) -> &str {
        self.target.host()
    }

    pub(crate) fn breaker(&self) -> &Breaker {
        &self.breaker
    }

    /// Leave to ask the server now, unless its breaker is open.
    pub(crate) fn enter(&self) -> Option<Permit> {
        self.breaker.enter(self.now())
    }

    fn now(&self) -> u64 {
        self.common.runtime.clock.now()
    }

    /// What it told before need not be so any more.
    pub(crate) fn forget(&self) {
        self.common.epochs.advance(self.place);
    }

    /// The connection, if it is there.
    pub(crate) fn current(&self) -> Option<Connection> {
        match &*self.state.borrow() {
            State::Up(connection) => Some(connection.clone()),
            _ => None,
        }
    }

    /// The connection, once it is made, if there is hope for that: while the server cannot be reached,
    /// nobody waits for the next attempt.
    pub(crate) async fn connection(self: Arc<Self>) -> Result<Connection, Failure> {
        let mut state = self.state.subscribe();
        self.start();
        loop {
            match &*state.borrow_and_update() {
                State::Up(connection) => return Ok(connection.clone()),
                State::Dialling { failed: Some(failure) } => return Err(failure.clone().unasked()),
                State::Dialling { failed: None } | State::Idle => {}
            }
            if state.changed().await.is_err() {
                return Err(Failure::new(FailureKind::Unreachable));
            }
        }
    }

    /// Begins to connect, if nobody has yet.
    pub(crate) fn start(self: &Arc<Self>) {
        let begins = self.state.send_if_modified(|state| {
            let idle = matches!(state, State::Idle);
            if idle {
                *state = State::Dialling { failed: None };
            }
            idle
        });
        if begins {
            self.dial(Duration::ZERO);
        }
    }

    /// Makes a new connection in the place of the one that is lost, unless there is one already. Soon, or
    /// later, if the last ones were of no use; then nobody waits for it.
    pub(crate) fn lose(self: &Arc<Self>, generation: u64, why: &Failure) {
        let mut lost = None;
        self.state.send_if_modified(|state| {
            let State::Up(current) = &*state else { return false };
            if current.generation != generation {
                return false;
            }
            let pause = self.pause_after_loss();
            lost = Some((Arc::clone(&current.hold), pause));
            let failed = (!pause.is_zero()).then(|| why.clone());
            *state = State::Dialling { failed };
            true
        });
        let Some((hold, pause)) = lost else { return };
        if why.kind().leaves_others_to_be_answered() {
            self.retired.lock().unwrap_or_else(PoisonError::into_inner).keep(&hold);
        } else {
            hold.close();
        }
        self.common.counters.lost(&self.name, why);
        self.dial(pause);
    }

    fn pause_after_loss(&self) -> Duration {
        let stood = Stood {
            time: self.now().saturating_sub(self.made.load(Ordering::Relaxed)),
            answered: self.has_answered.load(Ordering::Relaxed),
        };
        self.pace().lost(stood, self.common.dial.backoff)
    }

    fn pace(&self) -> std::sync::MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What became of a question that `permit` was given for. Dropped without that, it says nothing.
    pub(crate) fn learn(self: &Arc<Self>, permit: &mut Permit, outcome: Result<(), &Failure>) {
        let failure = match outcome {
            Err(failure) if failure.kind().is_the_server_s() => failure,
            _ => {
                if !self.has_answered.load(Ordering::Relaxed) {
                    self.has_answered.store(true, Ordering::Relaxed);
                }
                if permit.succeed() == Turn::Closed {
                    self.common.counters.breaker_closed(&self.name);
                }
                return;
            }
        };
        // One that was to find out, and could not: whoever dials says when the next may.
        if permit.is_probe() && failure.is_unasked() {
            return;
        }
        let turn = permit.fail(self.now());
        if let Turn::Opened(wait) = turn {
            self.common.counters.breaker_opened(&self.name, wait);
        }
        // A peer that is gone without a word leaves the connection open for many minutes.
        let decisive = permit.is_probe() || turn != Turn::Stayed;
        if decisive && failure.kind() == FailureKind::TooSlow {
            if let Some(current) = self.current() {
                self.lose(current.generation, failure);
            }
        }
    }

    /// Whether nobody may ask at the moment.
    pub(crate) fn is_shut(&self) -> bool {
        self.breaker.is_shut(self.now())
    }

    fn dial(self: &Arc<Self>, pause: Duration) {
        self.common.runtime.spawn(dial_until_connected(Arc::downgrade(self), pause));
    }

    fn up(&self, Line { wire, hold }: Line, generation: u64) {
        self.made.store(self.now(), Ordering::Relaxed);
        self.has_answered.store(false, Ordering::Relaxed);
        // It may have begun anew.
        self.forget();
        self.common.counters.connected(&self.name);
        let seen = self.common.epochs.seen(self.place);
        let hold = Arc::new(hold);
        self.state.send_replace(State::Up(Connection { wire, generation, seen, hold }));
    }

    /// How long to wait before the next attempt.
    fn down(&self, failure: Failure) -> Duration {
        let pause = self.pace().failed(self.common.dial.backoff);
        self.breaker.put_off(self.now(), pause);
        self.common.counters.unreachable(&self.name, &failure);
        self.state.send_replace(State::Dialling { failed: Some(failure) });
        pause
    }

    /// While nobody may ask, nobody is connected to either.
    fn barred(&self) -> Option<Sleep> {
        let pause = self.breaker.pause(self.now())?;
        Some(self.common.runtime.sleep(pause))
    }
}

async fn dial_until_connected(node: Weak<Node>, mut pause: Duration) {
    loop {
        if !pause.is_zero() {
            let Some(timer) = node.upgrade().map(|node| node.common.runtime.timer(pause)) else {
                return;
            };
            timer.await;
        }
        while let Some(barred) = node.upgrade().and_then(|node| node.barred()) {
            barred.await;
        }
        let Some(node) = node.upgrade() else { return };
        let generation = node.generations.fetch_add(1, Ordering::Relaxed);
        match dial::attempt(&node, generation).await {
            Ok(line) => return node.up(line, generation),
            Err(failure) => pause = node.down(failure),
        }
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node").field("name", &self.name).finish_non_exhaustive()
    }
}
