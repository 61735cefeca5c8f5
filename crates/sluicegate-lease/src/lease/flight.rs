use std::pin::Pin;

use super::transport::TransportError;
use crate::message::Response;

/// A request on its way.
pub(crate) type Flight = Pin<Box<dyn Future<Output = Result<Response, TransportError>> + Send>>;

/// Waits until the request is answered; without a request, for ever. It goes on where it was dropped.
pub(crate) async fn arrival(flight: &mut Option<Flight>) -> Result<Response, TransportError> {
    let Some(answer) = flight else { return std::future::pending().await };
    let answer = answer.await;
    *flight = None;
    answer
}
