//! The messages of the core, as those of the proto file.
//!
//! A message is believed only if it can be right: see [`InvalidMessage`].

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::error::Error;
use std::fmt;
use std::time::Duration;

use tonic::Status;

use crate::amount::Amount;
use crate::fair::{Band, Demand, Want};
use crate::grpc::generated::{self as proto, Answer as Kind};
use crate::message::{
    Answer, AskError, Grant, MAX_NAME, Release, Request, ResourceRequest, Response, millis,
};

/// A message that cannot be right, and why. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InvalidMessage(String);

impl fmt::Display for InvalidMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for InvalidMessage {}

impl From<InvalidMessage> for Status {
    fn from(InvalidMessage(message): InvalidMessage) -> Self {
        Self::invalid_argument(message)
    }
}

fn invalid<T>(message: impl Into<String>) -> Result<T, InvalidMessage> {
    Err(InvalidMessage(message.into()))
}

/// Finds what cannot be right in a request before anything is changed.
pub(super) fn check_request(request: &Request, max_resources: usize) -> Result<(), InvalidMessage> {
    let names = request.resources.iter().map(|resource| &*resource.resource);
    check_names(&request.client, names, max_resources)?;
    request.resources.iter().try_for_each(|resource| {
        let name = &resource.resource;
        let is_shown = (1..=MAX_NAME).contains(&name.len());
        request.ask(resource).check().or_else(|error| match is_shown {
            true => invalid(format!("`{name}`: {error}")),
            false => invalid(error.to_string()),
        })
    })
}

/// Finds what cannot be right in a release.
pub(super) fn check_release(release: &Release, max_resources: usize) -> Result<(), InvalidMessage> {
    let names = release.resources.iter().map(|resource| &**resource);
    check_names(&release.client, names, max_resources)
}

fn check_names<'a>(
    client: &str,
    mut resources: impl ExactSizeIterator<Item = &'a str>,
    max: usize,
) -> Result<(), InvalidMessage> {
    let count = resources.len();
    if client.is_empty() {
        return invalid("the request names no client");
    }
    if client.len() > MAX_NAME {
        return invalid(format!("the name of the client is longer than {MAX_NAME} bytes"));
    }
    if !(1..=max).contains(&count) {
        return invalid(format!("a request is for 1 to {max} resources; this one is for {count}"));
    }
    let mut seen = HashSet::with_capacity(count);
    match resources.find(|resource| !seen.insert(*resource)) {
        Some(resource) => invalid(format!("the request names `{resource}` twice")),
        None => Ok(()),
    }
}

/// Reads a number of units.
///
/// A double holds every amount in full: a sum of millionths up to [`Amount::MAX`] has fewer than 53 bits.
fn amount(what: &str, resource: &str, units: f64) -> Result<Amount, InvalidMessage> {
    if !units.is_finite() || units < 0.0 {
        return invalid(format!(
            "`{what}` of `{resource}` is a finite number from 0, not {units:?}"
        ));
    }
    // A cast from a float saturates.
    Ok(Amount::from_millionths((units * 1e6).round() as u64))
}

/// A request from the wire. A client that numbers its requests does not send number 0.
pub(super) trait ReadRequest {
    fn read(self) -> Result<Request, InvalidMessage>;
}

/// Reads a request of a client or of a server. They differ in the name of the one that asks, and in what is wanted.
macro_rules! read_request {
    ($request:ty, $client:ident, |$resource:ident| $demands:expr, $learning:expr) => {
        impl ReadRequest for $request {
            fn read(self) -> Result<Request, InvalidMessage> {
                let resources = self.resource.into_iter().map(|$resource| {
                    let name = &$resource.resource_id;
                    let has = $resource.has.unwrap_or_default().capacity;
                    let outstanding = $resource.outstanding.unwrap_or(0.0);
                    Ok(ResourceRequest {
                        demands: $demands,
                        has: amount("has", name, has)?,
                        outstanding: amount("outstanding", name, outstanding)?,
                        learning: $learning,
                        resource: $resource.resource_id.into(),
                    })
                });
                Ok(Request {
                    resources: resources.collect::<Result<_, _>>()?,
                    client: self.$client.into(),
                    instance: self.instance.unwrap_or(0),
                    sequence: self.sequence.unwrap_or(0),
                    fence: self.fence.unwrap_or(0),
                })
            }
        }
    };
}

read_request!(
    proto::GetCapacityRequest,
    client_id,
    |resource| {
        let weight = resource.weight.unwrap_or(1);
        let demand = demand(&resource.resource_id, resource.priority, resource.wants, weight)?;
        vec![Demand { whole: resource.whole.unwrap_or(false), ..demand }]
    },
    false
);

read_request!(
    proto::GetServerCapacityRequest,
    server_id,
    |resource| {
        let name = &resource.resource_id;
        let bands = resource.wants.iter().map(|band| {
            let weight = band.num_clients;
            let Ok(weight) = u64::try_from(weight) else {
                return invalid(format!("a weight of `{name}` is at least 1, not {weight}"));
            };
            let demand = demand(name, band.priority, band.wants, weight)?;
            Ok(Demand { whole: band.whole.unwrap_or(false), ..demand })
        });
        bands.collect::<Result<_, _>>()?
    },
    resource.learning.unwrap_or(false)
);

fn demand(resource: &str, band: i64, wants: f64, weight: u64) -> Result<Demand, InvalidMessage> {
    let Ok(band) = u8::try_from(band) else {
        return invalid(format!(
            "the priority of `{resource}` is a number from 0 to 255, not {band}"
        ));
    };
    let wants = amount("wants", resource, wants)?;
    Ok(Demand { band: Band(band), want: Want { wants, weight }, whole: false })
}

/// Writes the request of a client that has no clients of its own.
pub(super) fn write_request(request: Request) -> proto::GetCapacityRequest {
    let resources = request.resources.into_iter().map(|request| {
        let demand = request.demands.first().copied().unwrap_or(Demand::of(Amount::ZERO));
        proto::ResourceRequest {
            resource_id: request.resource.into(),
            priority: demand.band.0.into(),
            has: Some(held(request.has)),
            wants: demand.want.wants.as_f64(),
            weight: Some(demand.want.weight),
            outstanding: Some(request.outstanding.as_f64()),
            whole: Some(demand.whole),
        }
    });
    proto::GetCapacityRequest {
        resource: resources.collect(),
        client_id: request.client.into(),
        sequence: Some(request.sequence),
        fence: Some(request.fence),
        instance: Some(request.instance),
    }
}

/// Writes the request of a server.
pub(super) fn write_server_request(request: Request) -> proto::GetServerCapacityRequest {
    let band = |demand: &Demand| proto::PriorityBandAggregate {
        priority: demand.band.0.into(),
        num_clients: i64::try_from(demand.want.weight).unwrap_or(i64::MAX),
        wants: demand.want.wants.as_f64(),
        whole: Some(demand.whole),
    };
    let resources =
        request.resources.into_iter().map(|request| proto::ServerCapacityResourceRequest {
            resource_id: request.resource.into(),
            has: Some(held(request.has)),
            wants: request.demands.iter().map(band).collect(),
            outstanding: Some(request.outstanding.as_f64()),
            learning: Some(request.learning),
        });
    proto::GetServerCapacityRequest {
        resource: resources.collect(),
        server_id: request.client.into(),
        sequence: Some(request.sequence),
        fence: Some(request.fence),
        instance: Some(request.instance),
    }
}

fn held(amount: Amount) -> proto::Lease {
    proto::Lease { capacity: amount.as_f64(), ..proto::Lease::default() }
}

pub(super) fn read_release(release: proto::ReleaseCapacityRequest) -> Release {
    Release {
        client: release.client_id.into(),
        instance: release.instance.unwrap_or(0),
        sequence: release.sequence.unwrap_or(0),
        fence: release.fence.unwrap_or(0),
        resources: release.resource_id.into_iter().map(Into::into).collect(),
    }
}

pub(super) fn write_release(release: Release) -> proto::ReleaseCapacityRequest {
    proto::ReleaseCapacityRequest {
        client_id: release.client.into(),
        sequence: Some(release.sequence),
        fence: Some(release.fence),
        instance: Some(release.instance),
        resource_id: release.resources.into_iter().map(Into::into).collect(),
    }
}

/// An answer for the wire.
pub(super) trait WriteResponse: Default {
    /// `now` is in seconds since 1970.
    fn write(request: &Request, response: &Response, now: i64) -> Self;

    /// Another server is the master; `None` if this one does not know which.
    fn redirect(master: Option<String>) -> Self;
}

/// An answer from the wire.
pub(super) trait ReadResponse {
    /// Another server is the master: its address, or an empty one.
    fn master(&mut self) -> Option<String>;

    /// Reads the answer to a request for these resources.
    fn read(self, resources: &[Box<str>]) -> Result<Response, InvalidMessage>;
}

macro_rules! response {
    ($response:ty, $resource:ident) => {
        impl WriteResponse for $response {
            fn write(request: &Request, response: &Response, now: i64) -> Self {
                let answers = request.resources.iter().zip(&response.answers);
                let answers = answers.map(|(asked, answer)| {
                    let (gets, safe_capacity, kind) = write(asked.has, answer, now);
                    proto::$resource {
                        resource_id: asked.resource.to_string(),
                        gets,
                        safe_capacity,
                        answer: Some(kind.into()),
                    }
                });
                Self {
                    response: answers.collect(),
                    mastership: None,
                    sequence: Some(response.sequence),
                    fence: Some(response.fence),
                }
            }

            fn redirect(master_address: Option<String>) -> Self {
                Self { mastership: Some(proto::Mastership { master_address }), ..Self::default() }
            }
        }

        impl ReadResponse for $response {
            fn master(&mut self) -> Option<String> {
                self.mastership.take().map(|master| master.master_address.unwrap_or_default())
            }

            fn read(self, resources: &[Box<str>]) -> Result<Response, InvalidMessage> {
                let names = self.response.iter().map(|answer| &*answer.resource_id);
                if !names.eq(resources.iter().map(|resource| &**resource)) {
                    return invalid("the answers are not for the resources that were asked for");
                }
                let (Some(sequence), Some(fence)) = (self.sequence, self.fence) else {
                    return invalid("the answer does not say which request it answers");
                };
                let answers = self.response.into_iter().map(|answer| {
                    read(&answer.resource_id, answer.gets, answer.safe_capacity, answer.answer)
                });
                Ok(Response { sequence, fence, answers: answers.collect::<Result<_, _>>()? })
            }
        }
    };
}

response!(proto::GetCapacityResponse, ResourceResponse);
response!(proto::GetServerCapacityResponse, ServerCapacityResourceResponse);

fn write(
    has: Amount,
    answer: &Result<Answer, AskError>,
    now: i64,
) -> (proto::Lease, Option<f64>, Kind) {
    match answer {
        Ok(Answer::Grant(grant)) => {
            let lease = lease(grant.capacity, grant.ttl, grant.refresh, now);
            (lease, Some(grant.safe.as_f64()), Kind::Grant)
        }
        // A client of Doorman reads this as a short grant of what it has.
        Ok(Answer::Keep(again)) => (lease(has, *again * 2, *again, now), None, Kind::Keep),
        Ok(Answer::AskAgain) => (proto::Lease::default(), None, Kind::AskAgain),
        Err(AskError::ManyResources) => (proto::Lease::default(), None, Kind::ManyResources),
        Err(AskError::ManyClients) => (proto::Lease::default(), None, Kind::ManyClients),
        // Others are found before a request is answered.
        Err(_) => (proto::Lease::default(), None, Kind::Stale),
    }
}

fn lease(capacity: Amount, ttl: Duration, refresh: Duration, now: i64) -> proto::Lease {
    let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    proto::Lease {
        expiry_time: now.saturating_add(seconds(ttl)),
        refresh_interval: seconds(refresh).max(1),
        capacity: capacity.as_f64(),
        ttl_ms: Some(millis(ttl)),
        refresh_ms: Some(millis(refresh)),
    }
}

fn read(
    resource: &str,
    gets: proto::Lease,
    safe: Option<f64>,
    kind: Option<i32>,
) -> Result<Result<Answer, AskError>, InvalidMessage> {
    let kind = kind.unwrap_or(Kind::Grant.into());
    let length = |milliseconds: Option<u64>| match milliseconds {
        Some(milliseconds) => Ok(Duration::from_millis(milliseconds)),
        None => invalid(format!(
            "the grant of `{resource}` does not say in milliseconds how long it lasts"
        )),
    };
    let Ok(kind) = Kind::try_from(kind) else {
        return invalid(format!("no kind of answer has the number {kind}"));
    };
    Ok(match kind {
        Kind::Grant => Ok(Answer::Grant(Grant {
            capacity: amount("capacity", resource, gets.capacity)?,
            ttl: length(gets.ttl_ms)?,
            refresh: length(gets.refresh_ms)?,
            safe: amount("safe_capacity", resource, safe.unwrap_or(0.0))?,
        })),
        Kind::Keep => Ok(Answer::Keep(length(gets.refresh_ms)?)),
        Kind::AskAgain => Ok(Answer::AskAgain),
        Kind::Stale => Err(AskError::Stale),
        Kind::ManyResources => Err(AskError::ManyResources),
        Kind::ManyClients => Err(AskError::ManyClients),
    })
}
