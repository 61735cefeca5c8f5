/// Until when a request counts as running.
///
/// A handler can say `HoldUntil::Head` of its own response, by leaving it in the response's extensions: an event stream,
/// say, then counts at its start alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HoldUntil {
    /// Until the body of its response has ended. A connection that is upgraded, such as a WebSocket, counts until the
    /// head of its response is there.
    #[default]
    Body,
    /// Until the body of its response has ended, or the upgraded connection has closed. For a capacity of work in flight,
    /// where each WebSocket is to take a place for as long as it is open. In tower and axum it needs the feature `upgrades`.
    Close,
    /// Until the head of its response is there: for services whose responses stream for a long time.
    Head,
}
