//! Sends requests for which no caller waits: once, or until they have arrived.

use std::pin::pin;
use std::sync::Arc;

use crate::exchange::request::Request;
use crate::exchange::shared::Shared;
use crate::failure::{Failure, FailureKind};
use crate::runtime::before;

/// Fails a delivery that takes longer than the background allows.
pub(super) async fn in_time(
    shared: &Shared,
    delivery: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let delivered = before(shared.runtime.sleep(shared.grace), delivery).await;
    delivered.unwrap_or_else(|| Err(Failure::new(FailureKind::TooSlow)))
}

/// Tries again for as long as the request cannot have been applied.
pub(super) async fn deliver(shared: &Shared, request: &Request) -> Result<(), Failure> {
    let mut attempts = 0;
    loop {
        let failure = match send(shared, request).await {
            Ok(_) => return Ok(()),
            Err(failure) => failure,
        };
        if failure.may_be_applied() || !is_passing(failure.kind()) {
            return Err(failure);
        }
        attempts += 1;
        shared.runtime.timer(shared.backoff.after(attempts)).await;
    }
}

/// Sends a request once. It needs a permit of the breaker, like any other: while that is open, one request at a time
/// probes the server.
pub(super) async fn send(shared: &Shared, request: &Request) -> Result<Vec<u8>, Failure> {
    let node = match shared.route.known(request.slot) {
        Some(node) => node,
        None => shared.route.clone().node(request.slot).await?,
    };
    let mut permit = node.enter().ok_or_else(|| Failure::new(FailureKind::BreakerOpen))?;
    let connection = match node.current() {
        Some(connection) => connection,
        None => Arc::clone(&node).connection().await?,
    };
    let mut learn = |outcome: Result<(), &Failure>| {
        // Whether the server decides in time is judged by decisions alone.
        if permit.is_probe() {
            node.learn(&mut permit, outcome);
        }
    };
    let mut answer = pin!(request.send(Arc::clone(&node), connection));
    let in_time = before(shared.runtime.sleep(shared.deadline), answer.as_mut()).await;
    let sent = match in_time {
        Some(sent) => {
            learn(sent.as_ref().map(drop));
            sent
        }
        None => {
            // The answer is still awaited, but it says nothing about the server any more.
            learn(Err(&Failure::new(FailureKind::TooSlow).after_sending()));
            answer.await
        }
    };
    if sent.is_err() {
        shared.route.look();
    }
    sent
}

/// Whether a failure of this kind may be over in a moment.
const fn is_passing(kind: FailureKind) -> bool {
    !matches!(kind, FailureKind::WrongType | FailureKind::Script | FailureKind::Protocol)
}
