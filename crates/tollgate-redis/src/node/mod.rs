//! One server: the connection to it, made anew whenever it is lost, and its breaker.

mod dial;
mod sentinel;
mod target;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use redis::aio::MultiplexedConnection;
use tokio::sync::watch;

pub(crate) use self::dial::Dial;
pub(crate) use self::sentinel::Sentinels;
pub(crate) use self::target::{Target, moved_to};
use crate::breaker::{Breaker, Permit, Settings, Turn};
use crate::counts::Counters;
use crate::failure::{Failure, FailureKind};
use crate::report;
use crate::runtime::Runtime;
use crate::together::Together;

/// A connection, and which one in the life of its node.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) wire: MultiplexedConnection,
    pub(crate) generation: u64,
}

/// What all nodes of a store have in common.
#[derive(Clone)]
pub(crate) struct Common {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) counters: Arc<Counters>,
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
    pub(crate) together: Together,
    /// Set once the server has shown that it knows no RESP3.
    plain: AtomicBool,
}

enum State {
    /// Nobody has asked for a connection.
    Idle,
    /// One is being made. Whoever needs it waits for that, unless the attempt before failed.
    Dialling {
        failed: Option<Failure>,
    },
    Up(Connection),
}

impl Node {
    pub(crate) fn new(target: Target, common: Common) -> Arc<Self> {
        Arc::new(Self {
            name: target.name(),
            breaker: Arc::new(Breaker::new(common.breaker)),
            state: watch::Sender::new(State::Idle),
            generations: AtomicU64::new(0),
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
        self.breaker.enter(self.common.runtime.clock.now())
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
                State::Dialling { failed: Some(failure) } => return Err(failure.clone()),
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
            self.dial();
        }
    }

    /// Makes a new connection in the place of the one that is lost, unless there is one already.
    pub(crate) fn lose(self: &Arc<Self>, generation: u64, why: &Failure) {
        let lost = self.state.send_if_modified(|state| {
            let lost = matches!(state, State::Up(current) if current.generation == generation);
            if lost {
                *state = State::Dialling { failed: None };
            }
            lost
        });
        if lost {
            report::lost(&self.name, why);
            self.dial();
        }
    }

    /// What became of a question that `permit` was given for.
    pub(crate) fn learn(self: &Arc<Self>, permit: &mut Permit, outcome: Result<(), &Failure>) {
        let failure = match outcome {
            Err(failure) if failure.kind().is_the_server_s() => failure,
            _ => {
                if permit.succeed() == Turn::Closed {
                    report::breaker_closed(&self.name);
                }
                return;
            }
        };
        let turn = permit.fail(self.common.runtime.clock.now());
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
        self.breaker.is_shut(self.common.runtime.clock.now())
    }

    /// It answered somebody who had no permit.
    pub(crate) fn answered(&self) {
        if self.breaker.succeed() == Turn::Closed {
            report::breaker_closed(&self.name);
        }
    }

    fn dial(self: &Arc<Self>) {
        self.common.runtime.spawn(dial_until_connected(Arc::downgrade(self)));
    }

    fn up(&self, connection: Connection) {
        self.common.counters.connected(&self.name);
        self.state.send_replace(State::Up(connection));
        self.breaker.look_again();
    }

    fn down(&self, failure: Failure, attempts: u32) {
        if attempts == 1 {
            report::unreachable(&self.name, &failure);
        }
        self.state.send_replace(State::Dialling { failed: Some(failure) });
    }
}

async fn dial_until_connected(node: Weak<Node>) {
    let mut attempts = 0;
    loop {
        let pause = {
            let Some(node) = node.upgrade() else { return };
            let generation = node.generations.fetch_add(1, Ordering::Relaxed);
            match dial::attempt(&node, generation).await {
                Ok(connection) => return node.up(connection),
                Err(failure) => {
                    attempts += 1;
                    node.down(failure, attempts);
                }
            }
            node.common.runtime.timer(node.common.dial.backoff.after(attempts))
        };
        pause.await;
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node").field("name", &self.name).finish_non_exhaustive()
    }
}
