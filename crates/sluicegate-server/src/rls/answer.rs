use std::fmt::Display;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use sluicegate_config::envoy::service::{
    Answer, BadRequest, Domains, Judgement, Plan, Question, Request,
};
use sluicegate_core::adapter::{Charge, Debit, Outcome};
use sluicegate_core::limit::{Decision, LimitStatus};
use sluicegate_core::store::{Store, StoreError};
use tokio::time::{Instant, timeout_at};

use super::counters::Failure;
use super::rules::{self, without_limit};
use crate::admission::Pending;
use crate::service::Service;
use crate::status::{RequestOutcome, Timing};

/// How often a report is cut to what is left, when others spend at the same moment.
const TURNS: usize = 3;

/// Decides about a request of Envoy, within `deadline`.
///
/// # Errors
///
/// If the request makes no sense, or the store cannot decide in time and the service refuses requests then.
pub(crate) async fn answer(
    service: &Service,
    request: &Request<'_>,
    deadline: Duration,
) -> Result<Answer, Failure> {
    let begun = service.dashboard().latency().begin();
    let answered = decided(service, request, deadline).await;
    let ended = match &answered {
        Ok(answer) if answer.is_over => RequestOutcome::Refused,
        Ok(_) => RequestOutcome::Served,
        Err(_) => RequestOutcome::Failed,
    };
    service.dashboard().latency().end(begun, ended);
    answered
}

async fn decided(
    service: &Service,
    request: &Request<'_>,
    deadline: Duration,
) -> Result<Answer, Failure> {
    let policies = service.policies();
    let domains = policies.domains();
    let answered = match service.rules() {
        Some(rules) if domains.named(request.domain).is_none() => {
            // What few requests need is boxed, so that the future of each request is small.
            Box::pin(rules::answer(service, rules, request, deadline)).await
        }
        _ => by_domains(service, &domains, request, deadline).await,
    };
    let answered = match answered {
        // Envoy lets a request pass whose call fails, and the client has the choice.
        Err(Failure::Bad(bad)) if bad.is_client() => {
            return Ok(without_limit(request, refused(service, &bad)));
        }
        answered => answered,
    };
    service.rls_counters().count(&answered);
    if let (Some(statistics), Err(failure)) = (service.statistics(), &answered) {
        statistics.failed(failure);
    }
    answered
}

/// Whether a request that was not read is over its limit, for this reason. It is counted.
pub(super) fn unread(service: &Service, why: &dyn Display) -> bool {
    let is_over = refused(service, why);
    let ended = if is_over { RequestOutcome::Refused } else { RequestOutcome::Served };
    service.dashboard().latency().end(Timing::default(), ended);
    is_over
}

/// Counts a request that the client has to change. Returns whether it is over its limit: it is, unless nothing is refused.
fn refused(service: &Service, why: &dyn Display) -> bool {
    service.rls_counters().count_bad();
    service.health().failed("rls", "refused", why);
    !service.envoy_settings().shadow
}

async fn by_domains(
    service: &Service,
    domains: &Domains,
    request: &Request<'_>,
    deadline: Duration,
) -> Result<Answer, Failure> {
    // What few requests need, and what only a store elsewhere needs, is boxed.
    match at_once(service, domains, request, deadline)? {
        AtOnce::Decided(answer, reports) if reports.is_empty() => Ok(answer),
        AtOnce::Decided(answer, reports) => {
            Box::pin(count_all(service, reports, Instant::now() + deadline)).await;
            Ok(answer)
        }
        AtOnce::Failed(error) => Err(error.into()),
        AtOnce::Pending(pending) => {
            Box::pin(later(service, domains, request, pending, deadline)).await
        }
    }
}

/// How far a request is decided without waiting.
enum AtOnce {
    /// The answer, and what to count besides.
    Decided(Answer, Vec<Charge>),
    /// The store cannot decide.
    Failed(StoreError),
    /// What the store says about the charge takes time; `None` if something is given back before it is asked.
    Pending(Option<Pending>),
}

/// Decides if the store answers at once. Plans and charges are large, and in a function that does not wait they are not
/// a part of the future, which is moved.
#[inline(never)]
fn at_once(
    service: &Service,
    domains: &Domains,
    request: &Request<'_>,
    deadline: Duration,
) -> Result<AtOnce, BadRequest> {
    let plan = Plan::new(domains, request, service.envoy_settings())?;
    if plan.credits().next().is_some() {
        return Ok(AtOnce::Pending(None));
    }
    Ok(match ask(service, &plan, deadline) {
        Pending::Decided(Ok(decision)) => {
            let (answer, reports) = judged(service, request, &plan, decision, &[]);
            AtOnce::Decided(answer, reports)
        }
        Pending::Decided(Err(error)) => AtOnce::Failed(error),
        pending @ Pending::Asked(_) => AtOnce::Pending(Some(pending)),
    })
}

fn ask(service: &Service, plan: &Plan<'_>, deadline: Duration) -> Pending {
    match plan.question() {
        Question::Nothing => Pending::Decided(Ok(Some(Outcome::free().decision(plan.charge())))),
        Question::Peek => service.peek(plan.charge(), deadline),
        Question::Take if service.envoy_settings().apart => service.count(plan.charge(), deadline),
        Question::Take => service.take(plan.charge().clone(), deadline),
    }
}

/// Decides when the store has answered.
async fn later(
    service: &Service,
    domains: &Domains,
    request: &Request<'_>,
    pending: Option<Pending>,
    deadline: Duration,
) -> Result<Answer, Failure> {
    // However often the store is asked.
    let until = Instant::now() + deadline;
    // The plan that was asked about: the domains are the same.
    let plan = Plan::new(domains, request, service.envoy_settings())?;
    // First, so that what is given back is there for the request itself.
    let given = give_back(service, &plan, (until, deadline)).await;
    let pending = pending.unwrap_or_else(|| ask(service, &plan, left(until)));
    let decision = pending.decided().await?;
    let (answer, reports) = judged(service, request, &plan, decision, &given);
    count_all(service, reports, until).await;
    Ok(answer)
}

fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}

/// The answer, and what to count besides, once the store has answered about the charge of the plan.
fn judged(
    service: &Service,
    request: &Request<'_>,
    plan: &Plan<'_>,
    decision: Option<Decision>,
    given: &[Option<LimitStatus>],
) -> (Answer, Vec<Charge>) {
    let Some(decision) = decision else { return (without_limit(request, false), Vec::new()) };
    let now = service.clock().now();
    let Judgement { answer, give_back, reports } = plan.judge(decision, given, now);
    if service.envoy_settings().apart && plan.question() == Question::Take {
        service.observer().judged(service.clock(), &answer.decision, plan.charge());
    }
    if let Some(statistics) = service.statistics() {
        statistics.descriptors(plan, request, &answer);
    }
    if !give_back.is_empty() {
        let debits: Vec<_> = plan.charge().debits().zip(answer.decision.statuses()).collect();
        for (debit, status) in give_back.into_iter().filter_map(|at| debits.get(at)) {
            service.store().settle(debit, &status.receipt, 0);
        }
    }
    (answer, reports)
}

/// Gives the credits of a request back, all at once. Returns the status of each afterwards.
async fn give_back(
    service: &Service,
    plan: &Plan<'_>,
    time: (Instant, Duration),
) -> Vec<Option<LimitStatus>> {
    let credits = plan.credits();
    let mut giving: Vec<_> = credits
        .map(|(debit, hits)| (Box::pin(give_one_back(service, debit, hits, time)), None))
        .collect();
    poll_fn(|cx| {
        let mut is_over = true;
        for (credit, given) in giving.iter_mut().filter(|(_, given)| given.is_none()) {
            match credit.as_mut().poll(cx) {
                Poll::Ready(status) => *given = Some(status),
                Poll::Pending => is_over = false,
            }
        }
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    giving.into_iter().map(|(_, given)| given.flatten()).collect()
}

async fn give_one_back(
    service: &Service,
    debit: &Debit,
    hits: u64,
    (until, deadline): (Instant, Duration),
) -> Option<LimitStatus> {
    let nothing = Charge::of(debit.limit, debit.key, 0);
    let decision = service.take(nothing.clone(), left(until)).decided().await.ok().flatten();
    let mut status = decision.and_then(first)?;
    let mut charged = debit.clone();
    charged.cost = hits;
    service.store().settle(&charged, &status.receipt, 0);
    // A store elsewhere settles in the background. The answer to a call that follows on the same connection says that it
    // has, so that what is given back is there for a server that the client asks next. A slow store is not asked: the charge
    // of the request needs the time that is left.
    let decision = match left(until) > deadline * 2 / 3 {
        true => service.peek(&nothing, left(until)).decided().await.ok().flatten(),
        false => None,
    };
    Some(decision.and_then(first).unwrap_or_else(|| {
        let most = status.limit.capacity();
        status.remaining = status.remaining.saturating_add(hits).min(most);
        status
    }))
}

fn first(decision: Decision) -> Option<LimitStatus> {
    decision.statuses().next().cloned()
}

/// Counts reports. The answer says nothing about them, so it does not wait for a store elsewhere.
async fn count_all(service: &Service, reports: Vec<Charge>, until: Instant) {
    for report in reports {
        let (owned, deadline) = (service.clone(), service.deadline());
        let mut counting =
            Box::pin(async move { count(&owned, report, Instant::now() + deadline).await });
        // A store in this process is done with it at once.
        if poll_fn(|cx| Poll::Ready(counting.as_mut().poll(cx))).await.is_ready() {
            continue;
        }
        match Arc::clone(service.counting()).try_acquire_owned() {
            Ok(place) => drop(tokio::spawn(async move {
                counting.await;
                drop(place);
            })),
            // The caller waits, so that no more reports come than are counted.
            Err(_) => {
                let _ = timeout_at(until, counting).await;
            }
        }
    }
}

/// Counts a report as far as it fits.
async fn count(service: &Service, mut report: Charge, until: Instant) {
    for _ in 0..TURNS {
        let Some(debit) = report.debits().next().cloned() else { return };
        let decision = service.take(report, left(until)).decided().await.ok().flatten();
        let status = decision.as_ref().and_then(|decision| decision.statuses().next());
        let Some(status) = status else { return };
        let fits = debit.cost.min(status.remaining);
        if status.charged > 0 || fits == 0 {
            return;
        }
        report = Charge::of(debit.limit, debit.key, fits);
    }
}
