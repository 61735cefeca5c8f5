use std::time::Duration;

use super::{Unreadable, amount};
use crate::amount::Amount;
use crate::grpc::generated::{self as proto, Answer as Kind};
use crate::message::{Request, Response};
use crate::millis::millis;
use crate::pool::{Answer, AskError, Grant};

/// An answer for the wire.
pub(in crate::grpc) trait WriteResponse: Default {
    /// `now` is in seconds since 1970.
    fn write(request: &Request, response: &Response, now: i64) -> Self;

    /// Another server is the master; `None` if this one does not know which.
    fn redirect(master: Option<String>) -> Self;
}

/// An answer from the wire.
pub(in crate::grpc) trait ReadResponse {
    /// Another server is the master: its address, or an empty one.
    fn master(&mut self) -> Option<String>;

    /// Reads the answer to a request for these resources.
    fn read(self, resources: &[Box<str>]) -> Result<Response, Unreadable>;
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

            fn read(self, resources: &[Box<str>]) -> Result<Response, Unreadable> {
                let names = self.response.iter().map(|answer| &*answer.resource_id);
                if !names.eq(resources.iter().map(|resource| &**resource)) {
                    return Err(Unreadable::OtherResources);
                }
                let answers = self.response.into_iter().map(|answer| {
                    read(&answer.resource_id, answer.gets, answer.safe_capacity, answer.answer)
                });
                Ok(Response {
                    sequence: self.sequence.ok_or(Unreadable::NoSequence)?,
                    fence: self.fence.ok_or(Unreadable::NoSequence)?,
                    answers: answers.collect::<Result<_, _>>()?,
                })
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
) -> Result<Result<Answer, AskError>, Unreadable> {
    let kind = kind.unwrap_or(Kind::Grant.into());
    let length = |milliseconds: Option<u64>| {
        let missing = || Unreadable::NoLength { resource: resource.to_owned() };
        milliseconds.map(Duration::from_millis).ok_or_else(missing)
    };
    Ok(match Kind::try_from(kind).map_err(|_| Unreadable::Kind(kind))? {
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
