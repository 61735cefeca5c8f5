//! Descriptors decided by rules: for a domain that no file of Envoy's service has.
//!
//! The descriptors of one request describe one request, so together they are what rules see. A key that says what it
//! is, such as `remote_address` or `path`, is that part of the request. Every key is a header and a claim too, and the
//! domain is the claim `domain`.

use std::time::Duration;

use sluicegate_core::adapter::{Charge, Outcome};
use sluicegate_core::key::Claims;
use sluicegate_core::limit::{Decision, LimitStatus};
use sluicegate_envoy::service::{Answer, BadRequest, CurrentLimit, Hits, Request, Status, Unit};

use super::failure::Failure;
use crate::charge::{Rules, charge};
use crate::request::{DescribedRequest, address};
use crate::reserved::release;
use crate::service::Service;
use crate::undecided::Undecided;

/// Decides about a request by rules.
pub(super) async fn answer(
    service: &Service,
    rules: &Rules,
    request: &Request<'_>,
    deadline: Duration,
) -> Result<Answer, Failure> {
    request.check()?;
    let hits = hits(request)?;
    let described = described(request);
    let owed =
        charge(rules, &described, (hits != 1).then_some(|cost: u64| cost.saturating_mul(hits)));
    let owed = owed.map_err(|missing| BadRequest::new(missing.to_string()))?;
    let decision = decide(service, &owed, hits, deadline).await.map_err(Failure::Undecided)?;
    Ok(told(request, decision, hits))
}

async fn decide(
    service: &Service,
    owed: &Charge,
    hits: u64,
    deadline: Duration,
) -> Result<Decision, Undecided> {
    if owed.is_empty() {
        return Ok(Outcome::free().decision(owed));
    }
    match hits {
        0 => service.peek(owed, deadline).await,
        _ => {
            let decision = service.take(owed, deadline).await?;
            // Envoy does not say when the request ends.
            release(service.store(), owed, &decision);
            Ok(decision)
        }
    }
}

/// The most hits of any descriptor: they are one request.
fn hits(request: &Request<'_>) -> Result<u64, BadRequest> {
    let mut most = 0;
    for descriptor in &request.descriptors {
        most = most.max(match descriptor.hits {
            Hits::Spend(hits) | Hits::Report(hits) => hits,
            Hits::Look => 0,
            Hits::GiveBack(_) => {
                let what = "rules cannot give back: expected a domain of a file of Envoy's service";
                return Err(BadRequest::new(what));
            }
        });
    }
    Ok(most)
}

fn described(request: &Request<'_>) -> DescribedRequest {
    let mut described = DescribedRequest { path: "/".to_owned(), ..DescribedRequest::default() };
    let mut claims = Claims::new();
    let entries = request.descriptors.iter().flat_map(|descriptor| &descriptor.entries);
    for (key, value) in entries {
        match key.to_ascii_lowercase().as_str() {
            "remote_address" => described.peer = address(value),
            "method" | ":method" => described.method = (*value).to_owned(),
            "path" | ":path" => {
                let (path, query) = value.split_once('?').unzip();
                described.path = path.unwrap_or(value).to_owned();
                described.query = query.map(str::to_owned);
            }
            "host" | "authority" | ":authority" => described.host = Some((*value).to_owned()),
            "route" => described.route = Some((*value).to_owned()),
            _ => {}
        }
        let header = ((*key).to_owned(), (*value).to_owned());
        if !described.headers.contains(&header) {
            described.headers.push(header);
        }
        claims = claims.with((*key).to_owned(), (*value).to_owned());
    }
    described.claims = claims.with("domain", request.domain.to_owned());
    described
}

/// The status of the tightest limit, for every descriptor.
fn told(request: &Request<'_>, decision: Decision, hits: u64) -> Answer {
    let is_spent = hits == 0 && decision.remaining() == Some(0);
    let is_over = !decision.is_admitted() || is_spent;
    let limits = decision.statuses().filter(|status| !status.limit.is_shadow());
    let tightest = limits.min_by_key(|status| (!status.refused, status.remaining));
    let status = Status { is_over, would_be_over: is_over, ..status(tightest) };
    let statuses = vec![status; request.descriptors.len()];
    Answer { is_over, statuses, spent_quotas: None, decision }
}

fn status(tightest: Option<&LimitStatus>) -> Status {
    let count = |count| u32::try_from(count).unwrap_or(u32::MAX);
    Status {
        limit: tightest.and_then(current),
        remaining: tightest.map_or(0, |status| count(status.remaining)),
        until_reset: tightest.and_then(|status| status.window),
        ..Status::default()
    }
}

/// The limit, if it is a number of requests in one of the units of the protocol.
fn current(status: &LimitStatus) -> Option<CurrentLimit> {
    let unit = Unit::of(status.limit.period()?)?;
    let count = u32::try_from(status.limit.count()).ok()?;
    Some(CurrentLimit { count, unit, name: status.limit.name().to_string().into() })
}
