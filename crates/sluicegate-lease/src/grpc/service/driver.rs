use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, sleep_until};

use super::engine::Engine;
use crate::client::Action;
use crate::grpc::channel::GrpcTransport;
use crate::grpc::mastership::Role;
use crate::lease::{Flight, Transport, TransportError, arrival};
use crate::message::Response;

/// The tasks of a service. They end with it.
#[derive(Debug)]
pub(super) struct Driver([AbortHandle; 3]);

impl Drop for Driver {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

/// How often leases that have ended are forgotten, and capacities are divided anew.
const TICK: Duration = Duration::from_millis(100);
/// How often clients that are gone are written down.
const RECORD: Duration = Duration::from_secs(1);

impl Driver {
    pub(super) fn start(engine: Arc<Engine>, parent: Option<GrpcTransport>) -> Self {
        Self([
            tokio::spawn(follow(engine.clone())).abort_handle(),
            tokio::spawn(record(engine.clone())).abort_handle(),
            tokio::spawn(drive(engine, parent)).abort_handle(),
        ])
    }
}

/// Tells the server what its role is.
async fn follow(engine: Arc<Engine>) {
    let mut roles: watch::Receiver<Role> = engine.mastership.roles();
    // The present role counts too. It may have changed since the engine was made.
    roles.mark_changed();
    while roles.changed().await.is_ok() {
        let role = roles.borrow_and_update().clone();
        engine.set_role(role);
    }
}

/// Writes down who is gone. Requests write down who has come.
async fn record(engine: Arc<Engine>) {
    loop {
        sleep(RECORD).await;
        // What was not written is written next time.
        let _ = engine.record().await;
    }
}

/// Keeps the time of the server, and asks its parent.
async fn drive(engine: Arc<Engine>, mut parent: Option<GrpcTransport>) {
    let mut flight: Option<Flight> = None;
    loop {
        let until = match (engine.poll(), &mut parent) {
            (Action::Ask(request), Some(parent)) => {
                // A request that was on its way is dropped here. The session asks again only after it has given it up.
                flight = Some(Box::pin(parent.ask(request)));
                continue;
            }
            (Action::Ask(_), None) => None,
            (Action::Wait(until), _) => engine.instant(until),
        };
        let tick = Instant::now() + TICK;
        tokio::select! {
            answer = arrival(&mut flight) => arrived(&engine, answer),
            () = engine.is_wanted.notified(), if parent.is_some() => {}
            () = sleep_until(until.map_or(tick, |until| until.min(tick))) => {}
        }
    }
}

fn arrived(engine: &Engine, answer: Result<Response, TransportError>) {
    match answer {
        Ok(response) => engine.arrived(Some(&response)),
        Err(TransportError::Redirected) => engine.redirected(),
        Err(TransportError::Late | TransportError::Failed(_)) => engine.arrived(None),
    }
}
