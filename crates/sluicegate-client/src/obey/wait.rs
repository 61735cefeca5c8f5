use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::shared::{Answer, Permit, Server, Shared};
use crate::bound::{end, until};
use crate::error::Refused;
use crate::within::within;

/// Waits for a turn in the order of arrival, for `patience` at most. Returns what is left of it, too.
///
/// Without a permit the request may go, uncounted: the table has no room for its server.
pub(super) async fn turn(
    shared: Arc<Shared>,
    server: Server,
    patience: Duration,
) -> Result<(Option<Permit>, Duration), Refused> {
    let clock = shared.clock.clone();
    let deadline = end(&clock, patience);
    let left = || until(&clock, deadline);

    let place = shared.join(&server)?;
    let front = place.line.front.acquire();
    let Some(front) = within(&clock, left(), front).await else { return Err(too_long(None)) };
    // The semaphore is never closed.
    let _front = front.ok();
    loop {
        let mut news = pin!(place.line.news.notified());
        news.as_mut().enable();
        let (time, is_final) = match shared.ask(&server, true) {
            Answer::Send(permit) => return Ok((Some(permit), left())),
            Answer::Full => return Ok((None, left())),
            Answer::Wait { time, is_final } => (time, is_final),
        };
        let left = left();
        if left.is_zero() || (is_final && time > left) {
            return Err(too_long(Some(time)));
        }
        within(&clock, time.min(left), news).await;
    }
}

/// The refusal of a request that would have to wait for too long.
pub(super) fn too_long(time: Option<Duration>) -> Refused {
    Refused::new("its server asks for a longer wait than it has time for", time)
}
