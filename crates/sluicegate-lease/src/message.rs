//! What clients and servers tell each other, apart from how it is written on the wire.

use std::borrow::Cow;

use crate::amount::Amount;
use crate::demand::Demand;
use crate::pool::{Answer, Ask, AskError};
use crate::rules::{Rule, holds};

/// A request for capacity of several resources.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Who asks.
    pub client: Box<str>,
    /// Which process of this name asks: a random number that it chose when it started. Two processes of one name are two
    /// clients, so neither is taken to hold what the other does. 0 if no two processes have one name.
    pub instance: u64,
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

    /// Whose leases these are.
    pub(crate) fn holder(&self) -> Cow<'_, str> {
        holder(&self.client, self.instance)
    }
}

impl Release {
    /// Whose leases these are.
    pub(crate) fn holder(&self) -> Cow<'_, str> {
        holder(&self.client, self.instance)
    }
}

/// The name under which a [`Pool`](crate::Pool) keeps the leases of a process: `worker#00000000000004d2`.
fn holder(client: &str, instance: u64) -> Cow<'_, str> {
    match instance {
        0 => client.into(),
        _ if !holds(Rule::TellProcessesApart) => client.into(),
        instance => format!("{client}#{instance:0DIGITS$x}").into(),
    }
}

/// Digits of an instance.
const DIGITS: usize = 16;

/// The name of a client without its instance.
pub(crate) fn bare(holder: &str) -> &str {
    match holder.rsplit_once('#') {
        Some((client, instance)) if instance.len() == DIGITS => client,
        _ => holder,
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
    /// Which process of this name it is: see [`Request::instance`].
    pub instance: u64,
    /// Grows with every request of the client.
    pub sequence: u64,
    /// The highest fence that the client has seen.
    pub fence: u64,
    /// What it has stopped to use.
    pub resources: Vec<Box<str>>,
}
