//! What clients and servers tell each other, apart from how it is written on the wire.

use crate::amount::Amount;
use crate::demand::Demand;
use crate::pool::{Answer, Ask, AskError};

/// A request for capacity of several resources.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Who asks.
    pub client: Box<str>,
    /// Grows with every request of the client.
    pub sequence: u64,
    /// The highest fence that the client has seen.
    pub fence: u64,
    /// What it asks for.
    pub resources: Vec<ResourceRequest>,
}

/// The part of a [`Request`] for one resource.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceRequest {
    /// The name of the resource.
    pub resource: Box<str>,
    /// What is wanted.
    pub demands: Vec<Demand>,
    /// What the client may use now.
    pub has: Amount,
    /// What the client's own clients may use now.
    pub outstanding: Amount,
    /// The client is a server that does not know yet what its own clients hold.
    pub learning: bool,
}

impl Request {
    /// What is asked of a [`Pool`](crate::Pool) for one of the resources.
    pub fn ask<'a>(&'a self, resource: &'a ResourceRequest) -> Ask<'a> {
        Ask {
            client: &self.client,
            resource: &resource.resource,
            sequence: self.sequence,
            fence: self.fence,
            demands: &resource.demands,
            has: resource.has,
            outstanding: resource.outstanding,
            learning: resource.learning,
        }
    }
}

/// The answer to a [`Request`].
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The number of the request.
    pub sequence: u64,
    /// Which master answers.
    pub fence: u64,
    /// An answer for each resource that was asked for, in the same order.
    pub answers: Vec<Result<Answer, AskError>>,
}

/// What a client gives back when it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// Who it is.
    pub client: Box<str>,
    /// Grows with every request of the client.
    pub sequence: u64,
    /// The highest fence that the client has seen.
    pub fence: u64,
    /// What it has stopped to use.
    pub resources: Vec<Box<str>>,
}
