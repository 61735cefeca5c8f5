//! Without the feature `upgrades`, no connection keeps anything.

use std::convert::Infallible;

use http::{Request, StatusCode};

use crate::http_limit::Guard;

/// A request whose connection can be upgraded: there is none without the feature `upgrades`.
#[derive(Debug)]
pub struct Upgrade(Infallible);

impl Upgrade {
    /// None.
    pub fn of<B>(_: &mut Request<B>) -> Option<Self> {
        None
    }

    /// Whether a response upgrades the connection.
    pub fn is_accepted(&self, _: StatusCode) -> bool {
        match self.0 {}
    }

    /// Upgrades the connection, which keeps something.
    pub fn keep(self, _: impl Send + Sync + 'static) {
        match self.0 {}
    }

    pub(crate) fn accept(self, _: Option<Guard>) {
        match self.0 {}
    }
}
