//! Runs a case.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use sluicegate::adapter::{HttpLimit, Refusal};
use sluicegate_core::Cost;
use sluicegate_core::limit::{LimitStatus, MAX_LIMITS};
use sluicegate_llm::TokenUsage;
use sluicegate_server::DescribedRequest;

use super::expectation::{Expectation, Observation, Tally};
use super::file::Outcome;
use super::plan::{Case, Response, Sender};
use crate::check::words;
use crate::virtual_time::{Limit, MOST_UNDER_WAY, Paid, Rules, Timeline, in_words, micros};

/// The most keys that a case counts: each limit takes up to 40 MB for them.
const KEYS: usize = 1 << 20;

/// How many differences of one expectation are shown.
const SHOWN: u64 = 3;

/// What became of a case.
pub(super) struct Outcomes {
    /// How many requests were sent.
    pub(super) requests: u64,
    /// What was not as expected, in lines.
    pub(super) differences: Vec<String>,
    /// What is probably a mistake of the case.
    pub(super) warnings: Vec<String>,
}

/// Sends the requests of a case to the rules, which have counted nothing before.
pub(super) fn run(case: &Case, rules: &Rules) -> Outcomes {
    let count: u64 = case.senders.iter().map(Sender::count).sum();
    // Each request has one key for each limit at most, and most cases have a few.
    let keys = count.saturating_mul(MAX_LIMITS as u64);
    let keys = usize::try_from(keys).unwrap_or(KEYS).clamp(1_024, KEYS);
    run_within(keys, case, rules)
}

/// The same with room for this many keys.
pub(super) fn run_within(keys: usize, case: &Case, rules: &Rules) -> Outcomes {
    rules.clock().set(Duration::from_micros(case.start));
    let limit = rules.limit(keys);
    let mut running = Running {
        case,
        results: case.senders.iter().map(|_| EntryResult::default()).collect(),
        together: EntryResult::default(),
    };
    let mut timeline = Timeline::new(rules.clock());
    for (at, sender) in case.senders.iter().enumerate() {
        timeline.begin(sender.first, at as u64, Event::Send { sender: at, sent: 0 });
    }
    while let Some((now, event)) = timeline.next() {
        match event {
            Event::Send { sender: at, sent } => {
                let sender = &case.senders[at];
                for (client, (_, request)) in sender.requests.iter().enumerate() {
                    let id = Id { sender: at, client, sent };
                    match rules.admit(&limit, &request.view()) {
                        Err(refusal) => running.saw(id, &Observation::refused(refusal, &limit)),
                        Ok(_) if timeline.len() > MOST_UNDER_WAY => {
                            let what = format!(
                                "more than {MOST_UNDER_WAY} responses are under way at {}",
                                since(now, case)
                            );
                            running.together.differences.push(what);
                            return running.finish();
                        }
                        Ok(paid) => {
                            let wait = paid.decision().wait();
                            let ends = now.saturating_add(micros(wait));
                            let ends = ends.saturating_add(sender.response.takes);
                            let paid = Box::new(paid);
                            timeline.end(ends, Event::End { id, begun: now, paid });
                        }
                    }
                }
                if sent + 1 < sender.times {
                    let next = now.saturating_add(sender.every);
                    timeline.begin(next, at as u64, Event::Send { sender: at, sent: sent + 1 });
                }
            }
            Event::End { id, begun, paid } => {
                let response = &case.senders[id.sender].response;
                let found = Observation::served(*paid, response);
                running.saw_at(id, begun, &found);
            }
        }
    }
    let store = &limit.enforcer().store;
    if store.turned_away() + store.counted_together() > 0 {
        let what = format!("the case has more than {keys} keys, and not each has its own count");
        running.together.differences.push(what);
    }
    running.finish()
}

enum Event {
    /// The clients of a sender send the request once more.
    Send { sender: usize, sent: u64 },
    /// A response ends.
    End { id: Id, begun: u64, paid: Box<Paid> },
}

/// Which request it is.
#[derive(Clone, Copy)]
struct Id {
    sender: usize,
    client: usize,
    sent: u64,
}

struct Running<'a> {
    case: &'a Case,
    /// Of each sender.
    results: Vec<EntryResult>,
    together: EntryResult,
}

/// What became of the requests of one expectation.
#[derive(Default)]
struct EntryResult {
    tally: Tally,
    different: u64,
    differences: Vec<String>,
}

impl Running<'_> {
    fn saw(&mut self, id: Id, found: &Observation) {
        let Sender { first, every, .. } = &self.case.senders[id.sender];
        self.saw_at(id, first.saturating_add(every.saturating_mul(id.sent)), found);
    }

    fn saw_at(&mut self, id: Id, begun: u64, found: &Observation) {
        let Self { case, results, together } = self;
        let sender = &case.senders[id.sender];
        let which = || which(id, begun, case);
        let result = &mut results[id.sender];
        result.tally.add(found);
        for (expect, result) in [(&sender.expect, result), (&case.expect, together)] {
            result.compare(expect.as_ref(), found, which);
        }
    }

    fn finish(mut self) -> Outcomes {
        for result in &self.results {
            self.together.tally.add_all(&result.tally);
        }
        let requests = self.together.tally.requests;
        let Self { case, results, together } = self;
        let (mut differences, mut warnings) = (Vec::new(), Vec::new());
        let of_senders = case.senders.iter().map(|sender| &sender.expect).zip(results);
        for (expect, result) in of_senders.chain([(&case.expect, together)]) {
            result.finish(expect.as_ref(), &mut differences, &mut warnings);
        }
        Outcomes { requests, differences, warnings }
    }
}

impl EntryResult {
    fn compare(
        &mut self,
        expect: Option<&Expectation>,
        found: &Observation,
        which: impl Fn() -> String,
    ) {
        let Some(expect) = expect else { return };
        let Some(expected) = expect.differs(found) else { return };
        self.different += 1;
        if self.different > SHOWN {
            return;
        }
        let Expectation { place, .. } = expect;
        self.differences.push(format!(
            "{place}: {}: {}, expected {expected}",
            which(),
            found.in_words()
        ));
        let statuses = found.decision.iter().flat_map(|decision| decision.statuses());
        self.differences.extend(statuses.map(|status| format!("    {}", state(status))));
    }

    fn finish(
        self,
        expect: Option<&Expectation>,
        differences: &mut Vec<String>,
        warnings: &mut Vec<String>,
    ) {
        differences.extend(self.differences);
        let Some(expect) = expect else { return };
        if self.different > SHOWN {
            let more = self.different - SHOWN;
            differences.push(format!("{}: and {more} more requests", expect.place));
        }
        let sums = expect.sums(&self.tally);
        differences.extend(sums.iter().map(|sum| format!("{}: in all: {sum}", expect.place)));
        if self.tally.limited == 0 && expect.is_plainly_served() {
            warnings.push(format!(
                "{}: no limit applies to these requests, so they could not be refused",
                expect.place
            ));
        }
        if self.tally.requests > 0 && !self.tally.has_served() && expect.is_of_waits() {
            warnings.push(format!("{}: no request was served, so none has waited", expect.place));
        }
    }
}

impl Sender {
    fn count(&self) -> u64 {
        self.times.saturating_mul(self.requests.len() as u64)
    }
}

impl Observation {
    /// Answers a request that goes ahead.
    fn served(mut paid: Paid, response: &Response) -> Self {
        let decision = paid.decision();
        let outcome = match paid.is_degraded() {
            true => Outcome::Degraded,
            false => Outcome::Served,
        };
        let mut answer = http::Response::new(());
        *answer.status_mut() = response.status;
        answer.headers_mut().clone_from(&response.headers);
        if let Some(cost) = response.cost {
            answer.extensions_mut().insert(Cost(cost));
        }
        if let Some(used) = response.tokens {
            let usage = TokenUsage::new();
            usage.report(used);
            usage.finish();
            answer.extensions_mut().insert(usage.running_cost());
        }
        // The head of the response comes with its end, which is here.
        drop(HttpLimit::close(&mut paid, &mut None, &mut answer));
        let wait = decision.wait();
        let (head, ()) = answer.into_parts();
        Self {
            outcome,
            status: head.status.as_u16(),
            headers: head.headers,
            wait,
            decision: Some(decision),
            lacks: None,
        }
    }

    /// Answers a request that does not.
    fn refused(refusal: Refusal, limit: &Arc<Limit>) -> Self {
        let (outcome, lacks) = match &refusal {
            Refusal::TooMany(_) | Refusal::NeverFits(..) => (Outcome::Refused, None),
            Refusal::Elsewhere(..) => (Outcome::Redirected, None),
            Refusal::Incomplete(missing) => (Outcome::Incomplete, Some(missing.to_string())),
            Refusal::Misconfigured(missing) => (Outcome::Failed, Some(missing.to_string())),
            other => (Outcome::Failed, Some(other.problem())),
        };
        let decision = refusal.decision().cloned();
        let response: http::Response<sluicegate::response::Body<()>> =
            limit.answer(refusal, &Request::new(()));
        let (head, _) = response.into_parts();
        Self {
            outcome,
            status: head.status.as_u16(),
            headers: head.headers,
            wait: Duration::ZERO,
            decision,
            lacks,
        }
    }
}

/// Which request it is, in words.
fn which(id: Id, begun: u64, case: &Case) -> String {
    let sender = &case.senders[id.sender];
    let (client, DescribedRequest { method, path, peer, .. }) = &sender.requests[id.client];
    let from = client.clone().or_else(|| peer.map(|peer| peer.to_string()));
    let from = from.map_or(String::new(), |from| format!(" from {from}"));
    let number = match sender.times {
        1 => String::new(),
        times => format!("request {} of {times}, ", id.sent + 1),
    };
    format!("{number}{method} {path}{from} at {}", since(begun, case))
}

/// A time since the case began.
fn since(at: u64, case: &Case) -> String {
    in_words(Duration::from_micros(at - case.start))
}

/// The state of a limit after a decision, in words.
fn state(status: &LimitStatus) -> String {
    let LimitStatus { limit, remaining, window, banned, .. } = status;
    let when = match window {
        Some(window) if window.is_zero() => String::new(),
        Some(window) => format!(", more in {}", in_words(*window)),
        None => ", more when a request ends".to_owned(),
    };
    let banned = if *banned { ", banned" } else { "" };
    let capacity = limit.capacity();
    format!("{}: {}: {remaining} of {capacity} left{when}{banned}", limit.name(), words(limit))
}
