use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::shared::{Answer, Permit, Server, Shared};
use crate::error::Refused;
use crate::within::within;

/// Waits for a turn in the order of arrival, for as long as the layer allows, or `patience` if that is shorter.
///
/// Without a permit the request may go, uncounted: the table has no room for its server.
pub(super) async fn turn(
    shared: Arc<Shared>,
    server: Server,
    patience: Option<Duration>,
) -> Result<Option<Permit>, Refused> {
    let clock = shared.clock.clone();
    let patience = patience.map_or(shared.wait, |patience| patience.min(shared.wait));
    let deadline = clock.now().saturating_add(patience.as_micros() as u64);
    let left = || Duration::from_micros(deadline.saturating_sub(clock.now()));

    let place = shared.join(&server)?;
    let front = place.line.front.acquire();
    let Some(front) = within(&clock, left(), front).await else { return Err(too_long(None)) };
    // The semaphore is never closed.
    let _front = front.ok();
    loop {
        let mut news = pin!(place.line.news.notified());
        news.as_mut().enable();
        let (time, is_final) = match shared.ask(&server, true) {
            Answer::Send(permit) => return Ok(Some(permit)),
            Answer::Full => return Ok(None),
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
