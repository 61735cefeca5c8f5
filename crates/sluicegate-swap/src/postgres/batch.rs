//! Swaps of single rows that come at the same time go in one statement, each by itself.
//!
//! Most of the cost of a statement does not depend on the number of its rows. A swap that finds fewer than [`MOST`]
//! statements on their way is sent at once. Those that come meanwhile are sent together when one is back.

use std::collections::HashSet;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::panicking;

use tokio::runtime::Handle;
use tokio::sync::oneshot::{self, Receiver};
use tokio::task::yield_now;

use super::{Connections, Postgres, ROWS, swapped};
use crate::engine::{EngineError, Swapped, Write};
use crate::runtime::before;

/// Statements on their way, each on a connection of its own.
const MOST: usize = 2;

type Reply = Result<Swapped, EngineError>;

#[derive(Debug, Default)]
pub(super) struct Batch(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    swaps: Vec<(Write, oneshot::Sender<Reply>)>,
    statements: usize,
}

impl Batch {
    pub(super) async fn swap<C: Connections>(postgres: &Postgres<C>, write: Write) -> Reply {
        let (turn, write) = match Turn::take(postgres, write) {
            Ok(taken) => taken,
            Err(reply) => return answer(reply).await,
        };
        // Other tasks that are ready run first, and may join.
        yield_now().await;
        let is_alone = postgres.batch.lock().swaps.is_empty();
        if is_alone {
            return postgres.call(&[write], true).await.map(swapped);
        }
        let reply = postgres.batch.lock().push(write);
        drop(turn);
        answer(reply).await
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to send a statement with one swap. The swaps that came meanwhile are sent when it is dropped.
struct Turn<'a, C: Connections>(&'a Postgres<C>);

/// The right of a task to send statements with the swaps that wait. It is given back when this is dropped, however the task
/// ends: connections of users may panic.
struct LastingTurn<C: Connections>(Option<Postgres<C>>);

impl<'a, C: Connections> Turn<'a, C> {
    /// Without a turn, the swap waits for the end of a statement.
    fn take(postgres: &'a Postgres<C>, write: Write) -> Result<(Self, Write), Receiver<Reply>> {
        let mut waiting = postgres.batch.lock();
        if waiting.statements >= MOST {
            return Err(waiting.push(write));
        }
        waiting.statements += 1;
        Ok((Self(postgres), write))
    }
}

impl<C: Connections> Drop for Turn<'_, C> {
    fn drop(&mut self) {
        pass_on(self.0, Handle::try_current().ok());
    }
}

impl<C: Connections> Drop for LastingTurn<C> {
    fn drop(&mut self) {
        let Some(postgres) = &self.0 else { return };
        // If the runtime ends instead, another task would be dropped as this one.
        let runtime = panicking().then(Handle::try_current);
        pass_on(postgres, runtime.and_then(Result::ok));
    }
}

/// Gives a turn to the swaps that wait, or back.
fn pass_on<C: Connections>(postgres: &Postgres<C>, runtime: Option<Handle>) {
    let mut waiting = postgres.batch.lock();
    match runtime.filter(|_| !waiting.swaps.is_empty()) {
        None => waiting.statements -= 1,
        Some(runtime) => {
            // A runtime that ends drops the task at once, which locks, too.
            drop(waiting);
            // Not in the future of a caller, which is dropped at its deadline, because others depend on it.
            runtime.spawn(send(LastingTurn(Some(postgres.clone()))));
        }
    }
}

async fn answer(reply: Receiver<Reply>) -> Reply {
    reply.await.unwrap_or_else(|_| Err("the runtime ends".into()))
}

impl Waiting {
    fn push(&mut self, write: Write) -> Receiver<Reply> {
        let (caller, reply) = oneshot::channel();
        self.swaps.push((write, caller));
        reply
    }

    /// The swaps of the next statement: of each row at most one. Without any, the statement is over.
    fn next(&mut self) -> Vec<(Write, oneshot::Sender<Reply>)> {
        let (mut keys, mut go, mut stay) = (HashSet::new(), Vec::new(), Vec::new());
        for (write, caller) in self.swaps.drain(..).filter(|(_, caller)| !caller.is_closed()) {
            let goes = keys.len() < ROWS && keys.insert(Arc::clone(&write.key));
            if goes { &mut go } else { &mut stay }.push((write, caller));
        }
        self.swaps = stay;
        self.statements -= usize::from(go.is_empty());
        // The order in which all statements lock rows, so that no two wait for each other.
        go.sort_unstable_by(|(a, _), (b, _)| {
            (a.expected.is_some(), &a.key).cmp(&(b.expected.is_some(), &b.key))
        });
        go
    }
}

async fn send<C: Connections>(mut turn: LastingTurn<C>) {
    while let Some(postgres) = &turn.0 {
        // Other tasks that are ready run first, and may join.
        yield_now().await;
        let swaps = postgres.batch.lock().next();
        if swaps.is_empty() {
            // Given back under the lock, so that no swap waits for it in vain.
            turn.0 = None;
            return;
        }
        let (writes, mut callers): (Vec<_>, Vec<_>) = swaps.into_iter().unzip();
        // A connection that never answers must not keep the turn: when nobody waits any more, others have theirs.
        let called = before(all_closed(&mut callers), postgres.call(&writes, true)).await;
        let called = called.unwrap_or_else(|| Err("nobody waits any more".into()));
        match called {
            Ok(Some((rows, now))) => {
                for (caller, row) in callers.into_iter().zip(rows) {
                    // A caller that has gone needs no answer.
                    let _ = caller.send(Ok(swapped(Some((vec![row], now)))));
                }
            }
            Ok(None) => {
                for caller in callers {
                    let _ = caller.send(Ok(swapped(None)));
                }
            }
            Err(error) => {
                let error = SharedError(error.into());
                for caller in callers {
                    let _ = caller.send(Err(Box::new(error.clone())));
                }
            }
        }
    }
}

/// Waits until no caller waits any more.
async fn all_closed(callers: &mut [oneshot::Sender<Reply>]) {
    for caller in callers {
        caller.closed().await;
    }
}

/// The error of one statement with many swaps.
#[derive(Debug, Clone)]
struct SharedError(Arc<dyn Error + Send + Sync>);

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for SharedError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
