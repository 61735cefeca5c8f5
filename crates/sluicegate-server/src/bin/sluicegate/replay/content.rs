//! A report as a page shows it.

use sluicegate_core::adapter::peaks::Peaks;

use super::judge::Judge;
use super::policy::Policy;
use super::report::{PolicyReport, Report};
use super::text::OTHERWISE;
use crate::page::{Content, OverTime, Picture, PolicyContent, shown};
use crate::terminal::{grouped, margin, percent};

/// Most policies of a page.
const POLICIES: usize = 200;

/// The page of a report, with what `log` says of reading.
pub(super) fn content(report: &Report, judge: &Judge, log: &str) -> Content {
    let Report { rules, requests, outcomes, policies, .. } = report;
    let summary = match (&report.first, &report.last) {
        (Some(first), Some(last)) => format!("{requests} requests from {first} to {last}"),
        _ => "The log has no requests.".to_owned(),
    };
    let of = |name: &str| outcomes.get(name).copied().unwrap_or_default();
    let refused = of("refused") + of("redirected");
    let tiles = vec![
        ("requests", grouped(*requests as f64), ""),
        ("would be refused", grouped(refused as f64), "no"),
        ("share refused", percent(report.refused_share), "no"),
        ("policies", policies.len().to_string(), ""),
    ];
    let counted = &judge.counts.policies;
    let shown_policies = policies.iter().zip(counted).take(POLICIES);
    Content {
        heading: format!("What {} would have done", shown(rules)),
        summary,
        tiles,
        traffic: judge
            .traffic
            .as_ref()
            .map(|traffic| traffic.content("not refused", "would have been refused"))
            .unwrap_or_default(),
        policies: shown_policies.map(|(report, policy)| policy_content(report, policy)).collect(),
        how: how(report, judge, log),
        ..Content::default()
    }
}

fn policy_content(report: &PolicyReport, policy: &Policy) -> PolicyContent {
    let pairs =
        |pairs: &[(String, u64)]| pairs.iter().map(|(what, count)| (shown(what), *count)).collect();
    let picture = policy.peaks.as_ref().map(|peaks| {
        let steps = peaks.steps().into_iter();
        let steps = steps.map(|step| (step.level, step.keys, step.requests)).collect();
        Picture::new(policy.period, policy.count, steps)
    });
    // The page draws these.
    let is_drawn = |name: &str| ["when", "where", "who"].contains(&name);
    let facts = report.facts().into_iter().filter(|(name, _)| !is_drawn(name));
    PolicyContent {
        name: shown(&report.name),
        limit: shown(&report.limit),
        rule: shown(&report.rule),
        facts: facts.collect(),
        refused: report.refused,
        over_time: OverTime {
            seconds: report.over_time.seconds,
            refused: report.over_time.refused.clone(),
        },
        who: pairs(&report.who),
        paths: pairs(&report.paths),
        picture,
    }
}

/// How the figures were made.
fn how(report: &Report, judge: &Judge, log: &str) -> Vec<String> {
    let mut how = vec![
        "Each request of the log went through the rules at its time, as it would have live, in virtual time.".to_owned(),
        OTHERWISE.to_owned(),
        "A picture of clients has what each client asked for in windows of the clock, refused or not. What the line touches is \
         what a limit of fixed windows would have refused. It is exact at each number where the line stops. The policy itself \
         may have a burst or another algorithm: what it would have refused is in its table."
            .to_owned(),
        "A policy has no picture if it counts places and no requests, if responses change what it charges, or if it has several \
         limits."
            .to_owned(),
    ];
    for policy in judge.counts.policies.iter().take(POLICIES) {
        let sampled = policy.peaks.as_ref().filter(|peaks| peaks.one_in() > 1);
        how.extend(sampled.map(|peaks| sample(&policy.name, peaks)));
    }
    how.extend(report.against.as_ref().map(|changes| changes.to_string().trim_end().to_owned()));
    how.extend(report.unjudged.iter().map(ToString::to_string));
    how.extend(report.notes.iter().cloned());
    if report.policies.len() > POLICIES {
        how.push(format!("Only the first {POLICIES} policies are on this page."));
    }
    how.extend(log.lines().map(str::to_owned));
    how
}

fn sample(policy: &str, peaks: &Peaks) -> String {
    format!(
        "In the picture of {policy}, 1 client in {} is followed, chosen by a hash of its key. A share of clients is right within {} \
         with a certainty of 95 %.",
        peaks.one_in(),
        margin(peaks.followed())
    )
}
