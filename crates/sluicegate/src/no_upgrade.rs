//! Without the feature `upgrades`, no connection keeps anything.

use std::convert::Infallible;

use http::{Request, StatusCode};

use crate::held::Held;

#[derive(Debug)]
pub(crate) struct Upgrade(Infallible);

impl Upgrade {
    pub(crate) fn of<B>(_: &mut Request<B>) -> Option<Self> {
        None
    }

    pub(crate) fn is_accepted(&self, _: StatusCode) -> bool {
        match self.0 {}
    }

    pub(crate) fn accept(self, _: Option<Box<dyn Held>>) {
        match self.0 {}
    }
}
