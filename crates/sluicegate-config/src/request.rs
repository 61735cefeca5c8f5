use std::fmt;
use std::net::IpAddr;

use sluicegate_core::Claim;
use sluicegate_core::key::{Text, View};

/// What a function of an [`Environment`](crate::Environment) sees of a request, whatever framework it came
/// through.
pub struct Request<'a>(&'a dyn Seen);

impl<'a> Request<'a> {
    /// What stands in `view`.
    pub(crate) fn of(view: &'a Shown<'a, impl View>) -> Self {
        Self(view)
    }

    /// The method: `GET`.
    pub fn method(&self) -> &str {
        self.0.method()
    }

    /// The path as the client wrote it: `/users/7`.
    pub fn path(&self) -> &str {
        self.0.path()
    }

    /// The query without its `?`, not decoded.
    pub fn query(&self) -> Option<&str> {
        self.0.query()
    }

    /// The host that the request is for, as the client wrote it.
    pub fn host(&self) -> Option<&str> {
        self.0.host()
    }

    /// The pattern of the route that matched: `/users/{id}`.
    pub fn route(&self) -> Option<&str> {
        self.0.route()
    }

    /// The address of the socket's other end.
    pub fn peer(&self) -> Option<IpAddr> {
        self.0.peer()
    }

    /// The header field `name`, if it stands on exactly one line.
    pub fn header<'s>(&'s self, name: &'s str) -> Option<&'s [u8]> {
        self.0.header(name)
    }

    /// What the application's [`Claims`](sluicegate_core::key::Claims) say of `name`.
    pub fn claim(&self, name: &str) -> Option<String> {
        self.0.claim(name)
    }
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method())
            .field("path", &self.path())
            .finish_non_exhaustive()
    }
}

/// A view, made one type with all others: a function that a document names cannot be generic.
pub(crate) struct Shown<'a, V>(pub(crate) &'a V);

trait Seen {
    fn method(&self) -> &str;
    fn path(&self) -> &str;
    fn query(&self) -> Option<&str>;
    fn host(&self) -> Option<&str>;
    fn route(&self) -> Option<&str>;
    fn peer(&self) -> Option<IpAddr>;
    fn header<'s>(&'s self, name: &'s str) -> Option<&'s [u8]>;
    fn claim(&self, name: &str) -> Option<String>;
}

impl<V: View> Seen for Shown<'_, V> {
    fn method(&self) -> &str {
        self.0.method()
    }

    fn path(&self) -> &str {
        self.0.path()
    }

    fn query(&self) -> Option<&str> {
        self.0.query()
    }

    fn host(&self) -> Option<&str> {
        self.0.host()
    }

    fn route(&self) -> Option<&str> {
        self.0.route()
    }

    fn peer(&self) -> Option<IpAddr> {
        self.0.peer()
    }

    fn header<'s>(&'s self, name: &'s str) -> Option<&'s [u8]> {
        let mut lines = self.0.header_lines(name);
        lines.next().filter(|_| lines.next().is_none())
    }

    fn claim(&self, name: &str) -> Option<String> {
        Claim(name).read(self.0, str::to_owned).ok()
    }
}
