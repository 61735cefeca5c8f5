//! What clients and servers tell each other, apart from how it is written on the wire.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::amount::Amount;
use crate::fair::Demand;

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

/// A request for capacity.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// Who asks. Each process needs a name of its own: a [`Request`] adds its instance to it.
    pub client: &'a str,
    /// What for.
    pub resource: &'a str,
    /// Grows with every request of this client, also from one run of the process to the next. Requests that come
    /// twice or late are found by it, for as long as the client has a lease. A client that has sent the largest number is
    /// [`Stale`](AskError::Stale) until its lease has ended.
    pub sequence: u64,
    /// The highest fence that the client has seen; 0 for none.
    pub fence: u64,
    /// What is wanted: one demand, or those of a server's clients.
    pub demands: &'a [Demand],
    /// What the client may use right now. It is believed as far as it was granted, and that has not ended; a new master
    /// believes all of it while it learns.
    pub has: Amount,
    /// What a server's own clients may still use, or what is in use by a client. It can be more than `has` after less was
    /// granted than before, and is believed as `has` is, for as long as it is said.
    pub outstanding: Amount,
    /// The client is a server that has just become master and does not know yet what its clients hold.
    pub learning: bool,
}

/// The answer to an [`Ask`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Use this much.
    Grant(Grant),
    /// This server is learning what its clients hold. Keep what you have until it ends, and ask again after this time.
    Keep(Duration),
    /// This server is a new master. Ask again at once, with its fence.
    AskAgain,
}

/// A lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// What may be used.
    pub capacity: Amount,
    /// For how long, counted from before the client asked: so latency shortens a lease and never lengthens it.
    pub ttl: Duration,
    /// When to ask again, counted from the answer.
    pub refresh: Duration,
    /// What to use without a lease, if the client is told to.
    pub safe: Amount,
}

/// Why a request for capacity cannot be right. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskError {
    /// The client has no name.
    NoClient,
    /// The resource has no name.
    NoResource,
    /// A name is longer than [`MAX_NAME`].
    LongName,
    /// A server has more than [`MAX_DEMANDS`] demands, or none.
    Demands(usize),
    /// A weight is zero, or more than 10¹¹.
    Weight(u64),
    /// A newer request of this client was already answered.
    Stale,
    /// This server is not the master, or the client says that it has seen a newer one.
    NotMaster,
    /// As many resources as there may be are in use.
    ManyResources,
    /// As many clients as there may be hold leases.
    ManyClients,
}

/// The longest name of a client or a resource, in bytes.
pub const MAX_NAME: usize = 256;
/// The most demands of one request.
pub const MAX_DEMANDS: usize = 64;
/// The sum of the weights of a million servers with 64 demands each still fits.
pub(crate) const MAX_WEIGHT: u64 = 100_000_000_000;

impl<'a> Ask<'a> {
    /// A request of a client that has nothing yet, to a master with this fence.
    pub const fn new(
        client: &'a str,
        resource: &'a str,
        sequence: u64,
        fence: u64,
        demands: &'a [Demand],
    ) -> Self {
        let (has, outstanding) = (Amount::ZERO, Amount::ZERO);
        Self { client, resource, sequence, fence, demands, has, outstanding, learning: false }
    }
}

impl Ask<'_> {
    pub(crate) fn check(&self) -> Result<(), AskError> {
        if self.client.is_empty() {
            return Err(AskError::NoClient);
        }
        if self.resource.is_empty() {
            return Err(AskError::NoResource);
        }
        if self.client.len() > MAX_NAME || self.resource.len() > MAX_NAME {
            return Err(AskError::LongName);
        }
        if self.demands.is_empty() || self.demands.len() > MAX_DEMANDS {
            return Err(AskError::Demands(self.demands.len()));
        }
        let mut weights = self.demands.iter().map(|demand| demand.want.weight);
        match weights.find(|weight| !(1..=MAX_WEIGHT).contains(weight)) {
            Some(weight) => Err(AskError::Weight(weight)),
            None => Ok(()),
        }
    }

    /// What the client says that it uses.
    pub(crate) fn uses(&self) -> Amount {
        self.has.max(self.outstanding)
    }

    pub(crate) fn wants(&self) -> Amount {
        self.demands.iter().map(|demand| demand.want.wants).sum()
    }
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoClient => f.write_str("the request names no client"),
            Self::NoResource => f.write_str("the request names no resource"),
            Self::LongName => write!(f, "a name is longer than {MAX_NAME} bytes"),
            Self::Demands(count) => {
                write!(f, "a request has 1 to {MAX_DEMANDS} demands; this one has {count}")
            }
            Self::Weight(weight) => {
                write!(f, "a weight is 1 to {MAX_WEIGHT}; this one is {weight}")
            }
            Self::Stale => f.write_str("a newer request of this client was already answered"),
            Self::NotMaster => f.write_str("this server is not the master"),
            Self::ManyResources => f.write_str("the server has no room for another resource"),
            Self::ManyClients => f.write_str("the server has no room for another client"),
        }
    }
}

impl Error for AskError {}

/// Whole milliseconds, in which the pool and its clients count.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
