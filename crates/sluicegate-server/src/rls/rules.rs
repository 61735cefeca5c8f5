//! Descriptors decided by rules: for a domain that no file of Envoy's service has.
//!
//! The descriptors of one request describe one request, so together they are what rules see. A key that says what it
//! is, such as `remote_address` or `path`, is that part of the request. Every key is a header and a claim too, and the
//! domain is the claim `domain`.

use std::collections::HashSet;
use std::time::Duration;

use sluicegate_config::envoy::service::{
    Answer, BadRequest, CurrentLimit, Hits, Request, Status, Unit,
};
use sluicegate_core::adapter::{Charge, Outcome, Refusal, Treatment};
use sluicegate_core::key::{Claims, Missing};
use sluicegate_core::limit::{Decision, LimitStatus, Verdict};
use sluicegate_core::rule::Rule as _;

use super::counters::Failure;
use crate::admission::{Admission, Pending};
use crate::request::{DescribedRequest, address};
use crate::rules::{Price, PricedRules, Rules};
use crate::service::Service;
use crate::text;

/// The most entries of all descriptors together, because each of them becomes a header field and a claim.
const MOST_ENTRIES: usize = 1_024;

/// Decides about a request by rules.
pub(super) async fn answer(
    service: &Service,
    rules: &Rules,
    request: &Request<'_>,
    deadline: Duration,
) -> Result<Answer, Failure> {
    request.check()?;
    let hits = hits(request)?;
    let decision = ask(service, rules, request, hits, deadline)?.decided().await?;
    Ok(match decision {
        Some(decision) if hits > 0 || !is_served(service, &decision) => {
            answered(request, decision, hits)
        }
        _ => without_limit(request, false),
    })
}

/// Whether the next request is served although a limit is spent: a look costs nothing, so no limit refuses it.
fn is_served(service: &Service, decision: &Decision) -> bool {
    let spent = |status: &LimitStatus| {
        let mut status = status.clone();
        status.refused |= status.remaining == 0 && !status.limit.is_shadow();
        status
    };
    let refused = Verdict::Refuse { retry_after: None };
    let debits = decision.statuses().map(|status| (&status.limit, 0));
    let decision = Outcome::from_parts(refused, decision.statuses().map(spent)).decision(debits);
    matches!(service.by_rules().gate.treat(&decision), Treatment::Degrade | Treatment::Shadow)
}

/// Asks the store about a request. It is described here, and not in a future.
fn ask(
    service: &Service,
    rules: &Rules,
    request: &Request<'_>,
    hits: u64,
    deadline: Duration,
) -> Result<Pending, BadRequest> {
    let entries = request.descriptors.iter().map(|descriptor| descriptor.entries.len());
    if entries.sum::<usize>() > MOST_ENTRIES {
        return Err(BadRequest::of_client(format!(
            "there are more than {MOST_ENTRIES} entries in all descriptors"
        )));
    }
    let described = described(request);
    let unusable = |missing: &Missing| {
        let is_garbled = || described.peer.is_none() && has(request, b"remote_address");
        match missing.is_client() || missing.is_server() && is_garbled() {
            true => BadRequest::of_client(missing.to_string()),
            false => BadRequest::new(missing.to_string()),
        }
    };
    let (rule, view) = (PricedRules { rules, price: Price::Times(hits) }, described.view());
    if hits == 0 {
        let mut owed = Charge::new();
        rule.charge(&view, &mut owed).map_err(|missing| unusable(&missing))?;
        return Ok(match owed.is_empty() {
            true => Pending::Decided(Ok(None)),
            false => service.peek(&owed, deadline),
        });
    }
    match service.admit(&rule, &view) {
        Admission::Refuse(Refusal::Incomplete(missing) | Refusal::Misconfigured(missing)) => {
            Err(unusable(&missing))
        }
        // Envoy does not say when the request ends, so what it holds is given back at once.
        admission => Ok(Service::pending(admission, deadline)),
    }
}

fn has(request: &Request<'_>, name: &[u8]) -> bool {
    let mut entries = request.descriptors.iter().flat_map(|descriptor| &descriptor.entries);
    entries.any(|(key, _)| key.eq_ignore_ascii_case(name))
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
    // Descriptors repeat what they have in common.
    let mut known = HashSet::new();
    let entries = request.descriptors.iter().flat_map(|descriptor| &descriptor.entries);
    for (key, value) in entries.filter(|entry| known.insert(**entry)) {
        let (key, text) = (text::of(key), text::of(value));
        match key.to_ascii_lowercase().as_str() {
            "remote_address" => described.peer = address(&text),
            "method" | ":method" => described.method = text.clone().into_owned(),
            "path" | ":path" => described.set_target(&text),
            "host" | "authority" | ":authority" => described.host = Some(text.clone().into_owned()),
            "route" => described.route = Some(text.clone().into_owned()),
            _ => {}
        }
        described.headers.push((key.clone().into_owned(), value.to_vec()));
        claims = claims.with(key.into_owned(), text.into_owned());
    }
    described.claims = claims.with("domain", request.domain.to_owned());
    described
}

/// The status of the tightest limit, for every descriptor.
fn answered(request: &Request<'_>, decision: Decision, hits: u64) -> Answer {
    let is_spent = hits == 0 && decision.remaining() == Some(0);
    let is_over = !decision.is_admitted() || is_spent;
    let limits = decision.statuses().filter(|status| !status.limit.is_shadow());
    let tightest = limits.min_by_key(|status| (!status.refused, status.remaining));
    let status = Status { is_over, would_be_over: is_over, ..status(tightest) };
    let statuses = vec![status; request.descriptors.len()];
    Answer { is_over, would_be_over: is_over, statuses, spent_quotas: None, decision }
}

/// An answer that names no limit.
pub(super) fn without_limit(request: &Request<'_>, is_over: bool) -> Answer {
    let status = Status { is_over, would_be_over: is_over, ..Status::default() };
    Answer {
        is_over,
        would_be_over: is_over,
        statuses: vec![status; request.descriptors.len()],
        spent_quotas: None,
        decision: Outcome::free().decision(&Charge::new()),
    }
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
