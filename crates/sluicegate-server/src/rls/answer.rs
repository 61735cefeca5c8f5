use std::time::Duration;

use sluicegate_core::adapter::{Charge, Outcome};
use sluicegate_core::limit::LimitStatus;
use sluicegate_core::store::{OnStoreError, Store};
use sluicegate_envoy::service::{Answer, Domains, Judgement, Plan, Question, Request, Status};

use super::failure::Failure;
use super::rules;
use crate::service::Service;
use crate::undecided::Undecided;

/// How often a report is cut to what is left, when others spend at the same moment.
const TURNS: usize = 3;

/// Decides about a request of Envoy, within `deadline`.
///
/// # Errors
///
/// If the request makes no sense, or the store cannot decide in time and the service refuses requests then.
pub async fn answer(
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
        Err(Failure::Undecided(_)) if service.on_store_error() == OnStoreError::Admit => {
            Ok(uncounted(request))
        }
        answered => answered,
    };
    service.rls_counters().count(&answered);
    answered
}

async fn by_domains(
    service: &Service,
    domains: &Domains,
    request: &Request<'_>,
    deadline: Duration,
) -> Result<Answer, Failure> {
    let plan = Plan::new(domains, request, service.envoy_settings())?;
    decide(service, &plan, deadline).await.map_err(Failure::Undecided)
}

async fn decide(
    service: &Service,
    plan: &Plan<'_>,
    deadline: Duration,
) -> Result<Answer, Undecided> {
    let charge = plan.charge();
    let decision = match plan.question() {
        Question::Nothing => Outcome::free().decision(charge),
        Question::Peek => service.peek(charge, deadline).await?,
        Question::Take => service.take(charge, deadline).await?,
    };
    let given = match plan.credits().next() {
        None => Vec::new(),
        Some(_) => Box::pin(give_back(service, plan, deadline)).await,
    };
    let Judgement { answer, give_back, reports } =
        plan.judge(decision, &given, service.clock().now());
    let debits: Vec<_> = charge.debits().zip(answer.decision.statuses()).collect();
    for (debit, status) in give_back.into_iter().filter_map(|at| debits.get(at)) {
        service.store().settle(debit, &status.receipt, 0);
    }
    for report in reports {
        Box::pin(count(service, report, deadline)).await;
    }
    Ok(answer)
}

/// Gives the credits of a request back. Returns the status of each afterwards.
async fn give_back(
    service: &Service,
    plan: &Plan<'_>,
    deadline: Duration,
) -> Vec<Option<LimitStatus>> {
    let mut given = Vec::new();
    for (debit, hits) in plan.credits() {
        let nothing = Charge::of(debit.limit, debit.key, 0);
        let decision = service.take(&nothing, deadline).await.ok();
        let status = decision.and_then(|decision| decision.statuses().next().cloned());
        given.push(status.map(|mut status| {
            let mut charged = debit.clone();
            charged.cost = hits;
            service.store().settle(&charged, &status.receipt, 0);
            let most = status.limit.capacity();
            status.remaining = status.remaining.saturating_add(hits).min(most);
            status
        }));
    }
    given
}

/// Counts a report as far as it fits.
async fn count(service: &Service, mut report: Charge, deadline: Duration) {
    for _ in 0..TURNS {
        let Ok(decision) = service.take(&report, deadline).await else { return };
        let Some((debit, status)) = report.debits().zip(decision.statuses()).next() else { return };
        let fits = debit.cost.min(status.remaining);
        if status.charged > 0 || fits == 0 {
            return;
        }
        report = Charge::of(debit.limit, debit.key, fits);
    }
}

/// The answer to a request that the store could not decide about and that is let through.
fn uncounted(request: &Request<'_>) -> Answer {
    Answer {
        is_over: false,
        statuses: vec![Status::default(); request.descriptors.len()],
        spent_quotas: None,
        decision: Outcome::free().decision(&Charge::new()),
    }
}
