use std::net::IpAddr;

use super::Readings;

/// What a rule can see of a request, in any framework.
///
/// Every adapter implements this once for its own request type. Rules and keys are written against it, so the same
/// rule works in tower, axum and actix-web.
///
/// No method has a default, so that no view leaves out by accident what another one provides.
pub trait View {
    /// The framework's own request type, for [`from_fn`](super::from_fn) and similar functions.
    type Request;

    /// The framework's own request.
    fn request(&self) -> &Self::Request;

    /// The method, as it was sent: `GET`.
    fn method(&self) -> &str;

    /// The path as the client wrote it, not decoded: `/users/7`.
    fn path(&self) -> &str;

    /// The part of the path that is left to route. In nested routers, the outer ones have removed their prefix.
    /// Otherwise the whole path.
    fn routed_path(&self) -> &str;

    /// Where rules keep what they have read of the path, the query and the cookies, so that each is parsed once for all
    /// rules. A view owns a [`Readings`] for this, and what it shows does not change.
    fn readings(&self) -> &Readings;

    /// The query without its `?`, not decoded.
    fn query(&self) -> Option<&str>;

    /// The authority that the request is for, as the client wrote it: from the request target, otherwise from the
    /// `Host` field. [`Host`](super::Host) compares it with each `Host` field.
    fn host(&self) -> Option<&str>;

    /// The pattern of the matched route: `/users/{id}`.
    fn route(&self) -> Option<&str>;

    /// Whether the route with this pattern answers the request; `None` if that is unknown.
    ///
    /// It is unknown if the limit runs before routing, and the decision depends on something that the limit cannot
    /// see, such as a guard. A view that always knows compares `pattern` with the [`route`](Self::route).
    fn is_route(&self, pattern: &str) -> Option<bool>;

    /// The address of the other end of the connection.
    fn peer(&self) -> Option<IpAddr>;

    /// Every line of the header field `name`, in the order received.
    fn header_lines<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a [u8]>;

    /// Calls `read` with a value that an earlier layer left in the request's extensions, and returns the result.
    ///
    /// It takes a closure because some frameworks lend out the extensions only for a moment.
    fn extension<T: Send + Sync + 'static, O>(&self, read: impl FnOnce(&T) -> O) -> Option<O>;

    /// The line to add to the server's set-up if [`peer`](Self::peer) returns `None`.
    fn peer_hint(&self) -> &'static str;

    /// The line to add to the server's set-up if [`route`](Self::route) returns `None`.
    fn route_hint(&self) -> &'static str;
}
