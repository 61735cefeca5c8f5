//! One server: its connection, which is replaced whenever it is lost, and its breaker.

mod connection;
mod guard;
mod open;
pub(crate) mod queue;
mod target;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisResult, Value};
use tokio::sync::watch;

use self::connection::{ConnectionHistory, Driver, FailureStreak, OldConnections, OpenConnection};
use self::guard::Traffic;
use self::queue::CallQueue;
use self::target::Attempt;
use crate::failure::{Failure, FailureKind};
use crate::observe::report;
use crate::runtime::Sleep;
use crate::wire::epochs::ServerEpoch;
use sluicegate_core::adapter::breaker::{Breaker, Permit, Transition};

pub(crate) use self::open::{ConnectSettings, NodeContext};
pub(crate) use self::target::{Sentinels, Target, at_address};

/// A connection of a node. Clones are the same connection.
#[derive(Clone)]
pub(crate) struct Connection(Arc<ConnectionInner>);

pub(crate) struct ConnectionInner {
    wire: MultiplexedConnection,
    traffic: Arc<Traffic>,
    /// The number of this connection among those of its node.
    pub(crate) generation: u64,
    /// Answers on it hold for as long as this epoch lasts.
    pub(crate) epoch: ServerEpoch,
    driver: Arc<Driver>,
    /// Whether each script of settlements has been sent in full on it.
    settled: [AtomicBool; 2],
}

pub(crate) struct Node {
    name: String,
    target: Target,
    context: NodeContext,
    breaker: Arc<Breaker>,
    state: watch::Sender<State>,
    generations: AtomicU64,
    redial: Mutex<FailureStreak>,
    retired: Mutex<OldConnections>,
    /// When the current connection was made, in microseconds.
    connected_at: AtomicU64,
    /// Whether the server has answered on it in time.
    has_answered: AtomicBool,
    /// The node's index among the epochs of servers.
    index: usize,
    pub(crate) queue: CallQueue,
    /// Set once the server has shown that it does not know RESP3.
    only_resp2: AtomicBool,
}

enum State {
    /// No connection was needed yet.
    Idle,
    /// A connection is being made. Calls wait for it, unless the last attempt failed or the last connection was lost
    /// for a reason that lasts.
    Dialling {
        failed: Option<Failure>,
    },
    Up(Connection),
}

impl Connection {
    /// Sends a command. An error of the server is an answer.
    pub(crate) async fn send(&self, command: &Cmd) -> RedisResult<Value> {
        // Counted before it is sent, and until the answer is there or nobody waits: that is how `guard` knows whether
        // silence is a fault.
        let (mut wire, call) = (self.0.wire.clone(), self.0.traffic.begin());
        let answer = self.0.driver.answer(wire.send_packed_command(command)).await;
        call.answered();
        answer
    }

    /// Sends a command behind `ASKING`, as one pipeline, so that no other command on the connection comes in between.
    pub(crate) async fn send_asking(&self, command: &Cmd) -> RedisResult<Value> {
        let (mut wire, call) = (self.0.wire.clone(), self.0.traffic.begin());
        let mut both = redis::pipe();
        both.cmd("ASKING").add_command(command.clone());
        let answers = self.0.driver.answer(wire.send_packed_commands(&both, 0, 2)).await;
        call.answered();
        answers.map(|mut answers| answers.pop().unwrap_or_default())
    }

    /// Whether this is the first settlement on this connection by the script of this number.
    pub(crate) fn is_first_settlement(&self, script: usize) -> bool {
        !self.0.settled[script].swap(true, Ordering::Relaxed)
    }
}

impl std::ops::Deref for Connection {
    type Target = ConnectionInner;

    fn deref(&self) -> &ConnectionInner {
        &self.0
    }
}

impl Node {
    pub(crate) fn new(target: Target, context: NodeContext) -> Arc<Self> {
        let name = target.name();
        report::server_is_known(&name);
        Arc::new(Self {
            name,
            breaker: Arc::new(Breaker::new(context.breaker)),
            state: watch::Sender::new(State::Idle),
            generations: AtomicU64::new(0),
            redial: Mutex::default(),
            retired: Mutex::default(),
            connected_at: AtomicU64::new(0),
            has_answered: AtomicBool::new(false),
            index: context.epochs.add_server(),
            queue: CallQueue::default(),
            only_resp2: AtomicBool::new(!context.connect.resp3),
            target,
            context,
        })
    }

    /// The host of its address. Empty for a Unix socket, and for a master that sentinels name.
    pub(crate) fn host(&self) -> &str {
        self.target.host()
    }

    pub(crate) fn breaker(&self) -> &Breaker {
        &self.breaker
    }

    /// Permission to send to the server, unless its breaker is open.
    pub(crate) fn enter(&self) -> Option<Permit> {
        self.breaker.enter(self.now())
    }

    fn now(&self) -> u64 {
        self.context.runtime.clock.now()
    }

    /// Ends the epoch of the server: answers from before need not hold any more.
    pub(crate) fn forget(&self) {
        self.context.epochs.advance(self.index);
    }

    /// The connection, if there is one.
    pub(crate) fn current(&self) -> Option<Connection> {
        match &*self.state.borrow() {
            State::Up(connection) => Some(connection.clone()),
            _ => None,
        }
    }

    /// Waits for the connection. Fails at once if the last attempt failed, without waiting for the next one.
    pub(crate) async fn connection(self: Arc<Self>) -> Result<Connection, Failure> {
        // Subscribed first, so that the connection cannot come up unseen.
        let mut state = self.state.subscribe();
        self.start();
        loop {
            match &*state.borrow_and_update() {
                State::Up(connection) => return Ok(connection.clone()),
                State::Dialling { failed: Some(failure) } => {
                    return Err(failure.clone().not_sent());
                }
                State::Dialling { failed: None } | State::Idle => {}
            }
            if state.changed().await.is_err() {
                return Err(Failure::new(FailureKind::Unreachable));
            }
        }
    }

    /// Begins to connect, unless that has begun already.
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

    /// Replaces a lost connection, unless that was done already. If the last connections were useless, there is a
    /// pause first, and calls fail meanwhile instead of waiting, unless the pause is the shortest.
    pub(crate) fn lose(self: &Arc<Self>, generation: u64, why: &Failure) {
        let mut lost = None;
        self.state.send_if_modified(|state| {
            let State::Up(current) = &*state else { return false };
            // Another call has lost this connection before, and it has been replaced. The new one has done nothing
            // wrong.
            if current.generation != generation {
                return false;
            }
            // Under the lock of the state: of many calls that fail with the connection, one replaces it.
            let (pause, may_wait) = self.pause_after_loss();
            lost = Some((Arc::clone(&current.driver), pause));
            let failed = (!may_wait).then(|| why.clone());
            *state = State::Dialling { failed };
            true
        });
        let Some((driver, pause)) = lost else { return };
        // Answers that are on their way may report charges, which can only be given back once they are known.
        if why.kind().leaves_others_to_be_answered() {
            self.retired.lock().unwrap_or_else(PoisonError::into_inner).keep(&driver);
        } else {
            driver.close();
        }
        self.context.counters.lost(&self.name, why);
        self.dial(pause);
    }

    /// A connection has ended, and not because it was replaced.
    fn closed(self: &Arc<Self>, generation: u64) {
        let closed = Failure::because(FailureKind::Unreachable, "the server closed it");
        self.lose(generation, &closed.of_connection(generation));
    }

    /// `connection`, or the next one if it is broken. A call that was not sent yet need not fail with it.
    pub(crate) async fn open_connection(
        self: &Arc<Self>,
        connection: Connection,
    ) -> Result<Connection, Failure> {
        if !connection.driver.is_finished() {
            return Ok(connection);
        }
        self.closed(connection.generation);
        Arc::clone(self).connection().await
    }

    /// The pause, and whether calls wait for its end.
    fn pause_after_loss(&self) -> (Duration, bool) {
        let history = ConnectionHistory {
            lasted: self.now().saturating_sub(self.connected_at.load(Ordering::Relaxed)),
            answered: self.has_answered.load(Ordering::Relaxed),
        };
        let backoff = self.context.connect.backoff;
        let pause = self.redial().lost(history, backoff);
        (pause, pause.is_zero() || history.answered && pause <= backoff.first)
    }

    fn redial(&self) -> std::sync::MutexGuard<'_, FailureStreak> {
        self.redial.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports the outcome of a call to the breaker.
    pub(crate) fn learn(self: &Arc<Self>, permit: &mut Permit, outcome: Result<(), &Failure>) {
        let failure = match outcome {
            Err(failure) if failure.kind().affects_server() => failure,
            _ => {
                self.has_answered_in_time();
                if permit.succeed() == Transition::Closed {
                    self.context.counters.breaker_closed(&self.name);
                }
                return;
            }
        };
        // The probe could not be sent. The next attempt to connect decides when another may be.
        if permit.is_probe() && failure.is_not_sent() {
            return;
        }
        let transition = permit.fail(self.now(), failure.connection());
        if let Transition::Opened(wait) = transition {
            self.context.counters.breaker_opened(&self.name, wait);
        }
        // TCP may keep a connection to a peer that is gone for many minutes.
        let decisive = permit.is_probe() || transition != Transition::Stayed;
        if decisive && failure.kind() == FailureKind::TooSlow {
            if let Some(current) = self.current() {
                self.lose(current.generation, failure);
            }
        }
    }

    /// The connection is of use: it is replaced at once if it is lost.
    pub(crate) fn has_answered_in_time(&self) {
        // Read first, because every answer comes here.
        if !self.has_answered.load(Ordering::Relaxed) {
            self.has_answered.store(true, Ordering::Relaxed);
        }
    }

    /// Whether no call may be sent at the moment.
    pub(crate) fn is_shut(&self) -> bool {
        self.breaker.is_shut(self.now())
    }

    fn dial(self: &Arc<Self>, pause: Duration) {
        self.context.runtime.spawn(dial_until_connected(Arc::downgrade(self), pause));
    }

    async fn attempt(self: &Arc<Self>, generation: u64) -> Result<OpenConnection, Failure> {
        let node = Arc::downgrade(self);
        let on_end = move || {
            if let Some(node) = node.upgrade() {
                node.closed(generation);
            }
        };
        let (target, context, only_resp2) = (&self.target, &self.context, &self.only_resp2);
        Attempt { target, context, only_resp2, on_end }.run().await
    }

    fn up(&self, opened: OpenConnection, generation: u64) -> Connection {
        let OpenConnection { wire, driver, traffic } = opened;
        self.connected_at.store(self.now(), Ordering::Relaxed);
        self.has_answered.store(false, Ordering::Relaxed);
        // The server may have restarted empty.
        self.forget();
        self.context.counters.connected(&self.name);
        // After `forget`: answers on this connection belong to the new epoch.
        let epoch = self.context.epochs.current(self.index);
        let (driver, settled) = (Arc::new(driver), Default::default());
        let connected = ConnectionInner { wire, traffic, generation, epoch, driver, settled };
        let connection = Connection(Arc::new(connected));
        self.state.send_replace(State::Up(connection.clone()));
        connection
    }

    /// How long to wait before the next attempt.
    fn down(&self, failure: Failure) -> Duration {
        // The breaker waits as long as the next attempt does. A probe before that would have no connection.
        let pause = self.redial().failed(self.context.connect.backoff);
        self.breaker.put_off(self.now(), pause);
        self.context.counters.unreachable(&self.name, &failure);
        self.state.send_replace(State::Dialling { failed: Some(failure) });
        pause
    }

    /// The rest of the breaker's pause: no attempt to connect is made before it has ended.
    fn breaker_pause(&self) -> Option<Sleep> {
        let pause = self.breaker.pause(self.now())?;
        let sleep = self.context.runtime.sleep(pause);
        // The sleep counts from a later reading of the clock, which a test may have moved beyond the pause meanwhile.
        self.breaker.pause(self.now()).map(|_| sleep)
    }
}

async fn dial_until_connected(node: Weak<Node>, mut pause: Duration) {
    loop {
        if !pause.is_zero() {
            let Some(timer) = node.upgrade().map(|node| node.context.runtime.timer(pause)) else {
                return;
            };
            timer.await;
        }
        // A server that accepts connections and answers nothing would otherwise get a new one all the time.
        while let Some(pause) = node.upgrade().and_then(|node| node.breaker_pause()) {
            pause.await;
        }
        let Some(node) = node.upgrade() else { return };
        // A new number for each attempt, so that the end of an old connection does not replace a new one.
        let generation = node.generations.fetch_add(1, Ordering::Relaxed);
        match node.attempt(generation).await {
            Ok(opened) => {
                let connection = node.up(opened, generation);
                // It may have ended before anyone could be told.
                if connection.driver.is_finished() {
                    node.closed(generation);
                }
                return;
            }
            Err(failure) => pause = node.down(failure),
        }
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node").field("name", &self.name).finish_non_exhaustive()
    }
}
