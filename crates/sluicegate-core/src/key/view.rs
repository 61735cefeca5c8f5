use std::net::IpAddr;

use crate::key::path::PathReadings;

/// What a rule can see of a request, whatever framework it came through.
///
/// Every adapter implements this once over its own request; rules and keys are written against it,
/// so the same rule works in tower, axum and actix-web.
pub trait View {
    /// The framework's own request, for [`from_fn`](super::from_fn) and its like.
    type Request;

    /// The framework's own request.
    fn request(&self) -> &Self::Request;

    /// The method, in upper case as it was sent: `GET`.
    fn method(&self) -> &str;

    /// The path as the client wrote it, not decoded: `/users/7`.
    fn path(&self) -> &str;

    /// The part of the path that is left to route, where routers are nested and the outer ones have taken
    /// theirs away; else the path.
    fn routed_path(&self) -> &str {
        self.path()
    }

    /// Where conditions keep what they found out about the path, so that one that many of them ask about
    /// is read once. A view has a [`PathReadings::new`] for this; without it, each condition reads the
    /// path for itself.
    fn path_readings(&self) -> Option<&PathReadings> {
        None
    }

    /// The query without its `?`, not decoded.
    fn query(&self) -> Option<&str>;

    /// The authority that the request is for, as the client wrote it: from the request target, else
    /// from the `Host` field. [`Host`](super::Host) compares it with each `Host` field.
    fn host(&self) -> Option<&str>;

    /// The pattern of the route that matched: `/users/{id}`.
    fn route(&self) -> Option<&str>;

    /// Whether the route of this pattern answers the request; `None` where that cannot be told.
    ///
    /// It cannot be told where a limit runs before the routing that it asks about, and what decides
    /// there is hidden from it, such as a guard.
    fn is_route(&self, pattern: &str) -> Option<bool> {
        Some(self.route() == Some(pattern))
    }

    /// The address of the socket's other end.
    fn peer(&self) -> Option<IpAddr>;

    /// Every line of the header field `name`, in the order received.
    fn header_lines<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a [u8]>;

    /// What `read` makes of a value that an earlier layer left in the request's extensions.
    ///
    /// A closure, because some frameworks lend out what is in there for a moment only.
    fn extension<T: Send + Sync + 'static, O>(&self, read: impl FnOnce(&T) -> O) -> Option<O>;

    /// The line to add to the server's set-up where [`peer`](Self::peer) has nothing to say.
    fn peer_hint(&self) -> &'static str;

    /// The line to add to the server's set-up where [`route`](Self::route) has nothing to say.
    fn route_hint(&self) -> &'static str;
}
