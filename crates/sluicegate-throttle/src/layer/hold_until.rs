/// Until when a request counts as running.
///
/// A handler can put `HoldUntil::Head` into the extensions of its own response. An event stream, for example, then
/// counts only until its head has been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HoldUntil {
    /// Until the body of its response has ended. A connection that is upgraded, such as a WebSocket, counts until the
    /// head of its response is there.
    #[default]
    Body,
    /// Until the body of its response has ended, or the upgraded connection has closed. Meant for a capacity of work in
    /// flight, if each WebSocket should take a place while it is open. In tower and axum it needs the feature
    /// `upgrades`.
    Close,
    /// Until the head of its response is there: for services whose responses stream for a long time.
    Head,
}
