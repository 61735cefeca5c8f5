//! What there is to say about the state of a server, line by line.

use sluicegate_server::status::{
    Capacity, FailedCalls, Keys, LatencyStatus, PolicyStatus, Status, StoreStatus,
};

use super::table::Table;
use super::table::{count, rate, span, time};
use crate::terminal::escaped;

/// The verdicts that let a request go ahead.
const SERVED: [&str; 5] = ["admitted", "waited", "degraded", "shadowed", "uncounted"];

/// The most refused keys that are shown.
const MOST_KEYS: usize = 20;

/// A line of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    /// Whether it is the title of what follows.
    pub(super) is_title: bool,
}

/// The version of the server, and how long it has been up.
pub(super) fn heading(status: &Status) -> String {
    let stopping = if status.stopping { ", stopping" } else { "" };
    let up = span(status.uptime_seconds);
    format!("sluicegate {}, up {up}{stopping}", escaped(&status.version))
}

/// The rates, the latency and the store in one line.
pub(super) fn summary(status: &Status) -> String {
    let of = |what: &str| status.requests.get(what).map_or(0.0, |requests| requests.per_second);
    let (served, refused) = (rate(of("served")), rate(of("refused")));
    let failed = match of("failed") {
        failed if failed > 0.0 => format!(", failed {}/s", rate(failed)),
        _ => String::new(),
    };
    let away = if status.store.breaker.as_deref() == Some("open") { " (away)" } else { "" };
    let (p99, store) = (time(status.latency.p99_us), escaped(&status.store.kind));
    format!("served {served}/s, refused {refused}/s{failed}, p99 {p99}, store {store}{away}")
}

/// The whole state, at most this many columns of a terminal wide where that is possible.
pub(super) fn lines(status: &Status, width: Option<u16>) -> Vec<Line> {
    let mut lines = vec![Line { text: summary(status), is_title: false }];
    for (title, table) in [
        ("policies", policies(status)),
        ("refused most", refused(status)),
        (
            "latency of decisions in the last minute, measured for one in 64",
            latency(&status.latency, &status.failed_calls),
        ),
        ("store", store(&status.store)),
        ("leased capacity", capacity(&status.capacity)),
        ("if files were read again now", pending(status)),
        ("policies in force", in_force(status)),
    ] {
        lines.push(Line { text: String::new(), is_title: false });
        lines.push(Line { text: title.to_owned(), is_title: true });
        let rows = table.lines(width).into_iter();
        lines.extend(rows.map(|text| Line { text, is_title: false }));
    }
    lines
}

fn policies(status: &Status) -> Table {
    let mut table = Table::new(2);
    if !status.counting {
        table.row(["This server shows no metrics, so decisions are not counted."]);
    } else if status.policies.is_empty() {
        table.row(["No decision yet."]);
    } else {
        table.row([
            "admits/s",
            "refuses/s",
            "policy",
            "verdicts since the start",
            "limits, key and condition",
        ]);
    }
    for policy in &status.policies {
        let (served, refused) = rates(policy);
        let totals = policy.verdicts.iter().map(|(name, of)| format!("{name} {}", count(of.total)));
        let totals = totals.collect::<Vec<_>>().join(", ");
        let of = [policy.limits.join("; "), policy.rule.clone()];
        let of = of.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join(", ");
        table.row([&rate(served), &rate(refused), &policy.policy, &totals, &of]);
    }
    table
}

fn refused(status: &Status) -> Table {
    let mut keys: Vec<_> =
        status.refused.iter().flat_map(|of| of.keys.iter().map(move |key| (key, of))).collect();
    keys.sort_by_key(|(key, _)| std::cmp::Reverse(key.at_most));
    let mut table = Table::new(1);
    match status.keys {
        Keys::Unknown => table.row(["This server does not note refused keys."]),
        _ if keys.is_empty() => table.row(["Nobody."]),
        Keys::Digests => table.row(["refusals", "digest of the key ($..)", "policy"]),
        _ => table.row(["refusals", "key (#..: digest of a long one)", "policy"]),
    }
    for (key, of) in keys.into_iter().take(MOST_KEYS) {
        let times = match (count(key.at_least), count(key.at_most)) {
            (least, most) if least == most => most,
            (least, most) => format!("{least} to {most}"),
        };
        table.row([&times, &key.who, &of.policy]);
    }
    table
}

fn latency(of: &LatencyStatus, failed: &FailedCalls) -> Table {
    let mut table = Table::new(0);
    if failed.total > 0 {
        table.row(["calls that failed before a decision", &count(failed.total)]);
    }
    if of.measured == 0 {
        table.row(["Nothing measured."]);
        return table;
    }
    for (what, us) in [
        ("half within", of.p50_us),
        ("9 in 10 within", of.p90_us),
        ("99 in 100 within", of.p99_us),
        ("longest", of.max_us),
    ] {
        table.row([what, &time(us)]);
    }
    table
}

fn store(of: &StoreStatus) -> Table {
    let mut table = Table::new(0);
    table.row(["kind", &of.kind]);
    if let Some(keys) = of.keys {
        let room = of.room.map(|room| format!(" of {}", count(room))).unwrap_or_default();
        table.row(["keys, about", &format!("{}{room}", count(keys))]);
    }
    if let Some(breaker) = &of.breaker {
        table.row(["breaker", breaker]);
    }
    for (what, number) in [
        ("not counted, because it was full", of.turned_away),
        ("times the breaker opened", of.breaker_openings),
        ("connections made", of.connections),
        ("leased tokens in hand", of.tokens_in_hand),
        ("decided without Redis", of.decided_here),
        ("leased tokens that expired", of.expired),
    ] {
        if let Some(number) = number {
            table.row([what, &count(number)]);
        }
    }
    if of.longest_call_us.is_some() {
        table.row(["longest call", &time(of.longest_call_us)]);
    }
    for (kind, errors) in of.errors.iter().filter(|(_, errors)| **errors > 0) {
        table.row([&format!("errors: {}", kind.replace('_', " ")), &count(*errors)]);
    }
    table
}

fn capacity(of: &Capacity) -> Table {
    let mut table = Table::new(3);
    if of.resources.is_empty() {
        table.row(["No capacity is leased here."]);
    } else {
        table.row(["wants/s", "has/s", "capacity/s", "resource, client"]);
    }
    for resource in &of.resources {
        let [wants, has, all] = [resource.wants, resource.granted, resource.capacity].map(rate);
        table.row([&wants, &has, &all, &resource.resource]);
        for client in &resource.clients {
            let name = format!("  {}", client.client);
            table.row([&rate(client.wants), &rate(client.granted), "", &name]);
        }
        if resource.more > 0 {
            table.row(["", "", "", &format!("  and {} more clients", count(resource.more))]);
        }
    }
    for member in &of.members {
        let name = format!("{}: {}", member.member, member.role);
        table.row(["", "", "", &name]);
    }
    table
}

fn pending(status: &Status) -> Table {
    let mut table = Table::new(0);
    if status.pending.is_empty() {
        table.row(["No files."]);
    }
    for of in &status.pending {
        table.row([&format!("{}:", of.files)]);
        if of.problems.is_empty() && of.changes.is_empty() && of.more == 0 {
            table.row(["  nothing would change"]);
        }
        for problem in &of.problems {
            table.row([&format!("  problem: {problem}")]);
        }
        for change in &of.changes {
            table.row([&format!("  {change}")]);
        }
        if of.more > 0 {
            table.row([&format!("  and {} more", count(of.more))]);
        }
    }
    table
}

fn in_force(status: &Status) -> Table {
    let mut table = Table::new(0);
    for line in &status.in_force {
        table.row([line]);
    }
    if status.in_force_more > 0 {
        table.row([&format!("and {} more", count(status.in_force_more))]);
    }
    table
}

/// Decisions a second that let a request go ahead, and that did not.
fn rates(policy: &PolicyStatus) -> (f64, f64) {
    policy.verdicts.iter().fold((0.0, 0.0), |(served, refused), (name, rate)| {
        match SERVED.contains(&name.as_str()) {
            true => (served + rate.per_second, refused),
            false => (served, refused + rate.per_second),
        }
    })
}
