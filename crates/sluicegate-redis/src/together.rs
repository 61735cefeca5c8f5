//! Questions that are asked of one server at the same time, sent together in one script.
//!
//! Most of what a script costs a server, it costs once: the call, the clock, the way in and out of Lua. So
//! when many ask at once, those that are asked while others are on their way go together. Each is decided
//! by itself, after the one before it, and has an answer of its own.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redis::Cmd;
use tokio::sync::oneshot;
use tokio::task::yield_now;

use crate::ask::{Question, ask_many, command};
use crate::failure::{Failure, FailureKind};
use crate::node::{Connection, Node};
use crate::script::{Call, Script};
use crate::shared::Shared;

/// As many go together, at most: the server, which does one thing at a time, is through with them in less
/// than half a millisecond.
const MOST: usize = 64;

/// As many may go together, however few ask.
const FEW: usize = 8;

/// The clock that a script goes by, in front of its argument.
const CLOCK: usize = size_of::<f64>();

/// How many owe the same, in front of what they owe.
const ALIKE: usize = size_of::<f64>();

/// A limit's identity, at the end of a row's key.
const LIMIT: usize = 16;

/// What one of many asks.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    script: &'static Script,
    key: Vec<u8>,
    args: Vec<u8>,
}

impl Part {
    /// `None` of a call that has to go alone.
    pub(crate) fn of(call: &Call<'_>) -> Option<Self> {
        let key = call.keys().next().filter(|_| call.is_one_of_many())?;
        Some(Self { script: call.script(), key: key.to_vec(), args: call.args().to_vec() })
    }

    fn command(&self) -> Cmd {
        command(self.script, std::iter::once(&*self.key), &self.args)
    }

    fn clock(&self) -> &[u8] {
        &self.args[..CLOCK]
    }

    /// What it owes.
    fn debits(&self) -> &[u8] {
        &self.args[CLOCK + ALIKE..]
    }

    /// Limit by limit, and key by key.
    pub(crate) fn order(&self) -> (&[u8], &[u8]) {
        (&self.key[self.key.len().saturating_sub(LIMIT)..], &self.key)
    }
}

type Answer = Result<Vec<u8>, Failure>;

#[derive(Debug)]
struct Waiting {
    part: Part,
    answer: oneshot::Sender<Answer>,
}

/// Those that wait to be sent to one server.
#[derive(Debug, Default)]
pub(crate) struct Together {
    waiting: Mutex<Vec<Waiting>>,
    /// Who has no answer yet.
    asking: AtomicUsize,
    /// Scripts that have not been answered.
    under_way: AtomicUsize,
    /// Whether several went together the last time.
    is_crowded: AtomicBool,
}

/// Whom somebody has to send.
enum Batch {
    /// There is no room for more.
    Full(Vec<Waiting>),
    /// Whoever joins the first.
    Begun,
}

/// One of those that are counted.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn among(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Together {
    fn enter(&self) -> Counted<'_> {
        Counted::among(&self.under_way)
    }

    /// Leave to be sent at once, where there is nobody to go with.
    fn enter_alone(&self) -> Option<Counted<'_>> {
        let is_quiet =
            self.under_way.load(Ordering::Relaxed) == 0 && !self.is_crowded.load(Ordering::Relaxed);
        is_quiet.then(|| self.enter())
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many go together: half of all, so that these are made ready here while the server decides about
    /// those.
    fn most(&self) -> usize {
        self.asking.load(Ordering::Relaxed).div_ceil(2).clamp(FEW, MOST)
    }

    /// What is to be sent now, or soon; nothing for those who come after the first.
    fn join(&self, one: Waiting) -> Option<Batch> {
        let mut waiting = self.waiting();
        waiting.push(one);
        match waiting.len() {
            1 => Some(Batch::Begun),
            many if many >= self.most() => Some(Batch::Full(std::mem::take(&mut *waiting))),
            _ => None,
        }
    }

    fn take(&self) -> Vec<Waiting> {
        std::mem::take(&mut *self.waiting())
    }
}

/// Asks together with those who ask at the same time, if there are any.
pub(crate) async fn ask(
    question: &Question,
    part: &Part,
    node: Arc<Node>,
    connection: Connection,
) -> Answer {
    let _asking = Counted::among(&node.together.asking);
    if let Some(_under_way) = node.together.enter_alone() {
        return question.ask_alone(&part.command(), Arc::clone(&node), connection).await;
    }
    let (answer, told) = oneshot::channel();
    let waiting = Waiting { part: part.clone(), answer };
    let shared = question.shared();
    if let Some(batch) = node.together.join(waiting) {
        let (on, node) = (Arc::clone(shared), Arc::clone(&node));
        shared.runtime.spawn(async move {
            let batch = match batch {
                Batch::Full(batch) => batch,
                Batch::Begun => {
                    // Whoever can run runs first, and may join.
                    yield_now().await;
                    node.together.take()
                }
            };
            send(&on, &node, connection, batch).await;
        });
    }
    let gone = || Failure::because(FailureKind::Unreachable, "the runtime ends").after_sending();
    told.await.unwrap_or_else(|_| Err(gone()))
}

async fn send(
    shared: &Shared,
    node: &Arc<Node>,
    connection: Connection,
    mut waiting: Vec<Waiting>,
) {
    node.together.is_crowded.store(waiting.len() > 1, Ordering::Relaxed);
    while let Some(first) = waiting.first() {
        let clock = first.part.clock().to_vec();
        // All but those of a test, which turns the clock meanwhile.
        let (these, others) =
            waiting.into_iter().partition(|waiting| waiting.part.clock() == clock);
        waiting = others;
        let _under_way = node.together.enter();
        // It may have been made anew.
        let connection = node.current().unwrap_or_else(|| connection.clone());
        deliver(shared, node, connection, these).await;
    }
}

async fn deliver(
    shared: &Shared,
    node: &Arc<Node>,
    connection: Connection,
    mut these: Vec<Waiting>,
) {
    these.sort_by(|one, other| one.part.order().cmp(&other.part.order()));
    let (parts, told): (Vec<_>, Vec<_>) =
        these.into_iter().map(|waiting| (waiting.part, waiting.answer)).unzip();
    let expected = parts.len();
    let answers = match ask_many(shared, node, connection, &Many(parts)).await {
        Ok(answers) if answers.len() == expected => answers,
        Ok(_) => {
            vec![Err(Failure::because(FailureKind::Script, "not an answer for each")); expected]
        }
        Err(failure) => vec![Err(failure); expected],
    };
    for (told, answer) in told.into_iter().zip(answers) {
        // Whoever does not wait any more does not want to know.
        let _ = told.send(answer);
    }
}

/// What is asked in one script, of at least one. Those of one key stand side by side, since the script reads
/// a row once; and those of one limit, since what is owed to it is then said once.
#[derive(Debug)]
pub(crate) struct Many(pub(crate) Vec<Part>);

impl Many {
    /// By the script's name, as most servers know it.
    pub(crate) fn by_name(&self) -> Cmd {
        self.command("EVALSHA", self.0[0].script.sha())
    }

    /// With the script itself, which the server then knows.
    pub(crate) fn in_full(&self) -> Cmd {
        self.command("EVAL", self.0[0].script.source())
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|part| &*part.key)
    }

    /// `ARGV[1]`; there is no other.
    pub(crate) fn args(&self) -> Vec<u8> {
        let mut args = self.0[0].clock().to_vec();
        for alike in self.0.chunk_by(|one, other| one.debits() == other.debits()) {
            args.extend_from_slice(&(alike.len() as f64).to_le_bytes());
            args.extend_from_slice(alike[0].debits());
        }
        args
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        let args = self.args();
        let bytes = self.keys().map(<[u8]>::len).sum::<usize>() + args.len();
        let mut command = Cmd::with_capacity(self.0.len() + 4, bytes + script.len() + 16);
        command.arg(name).arg(script).arg(self.0.len());
        self.keys().for_each(|key| {
            command.arg(key);
        });
        command.arg(args);
        command
    }
}
