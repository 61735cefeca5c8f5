//! Accuracy: the decisions of each limiter compared with those of an exact log, on the same traffic. Nothing here
//! measures time: every clock is turned by hand.

use std::iter;

use sluicegate_benches::accuracy::{
    Contestant, Findings, Rate, Traffic, judge, our_bucket, ours, rival_buckets, rivals,
};
use sluicegate_benches::{Table, Turns};

const COLUMNS: [&str; 9] = [
    "limiter",
    "asked",
    "admitted",
    "wrongly admitted",
    "wrongly refused",
    "most in one period",
    "beyond its promise",
    "by at most",
    "short of its promise",
];

fn main() {
    let turns = Turns::from_args();
    for traffic in Traffic::all() {
        let title = format!("Accuracy, {}", traffic.name);
        Table::print(&turns, &title, COLUMNS, |table| {
            let Traffic { rate, cost, requests, .. } = traffic;
            let end = if turns.is_measuring() { requests.len() } else { 1_000 };
            let all = iter::once(Contestant::exact(rate))
                .chain(ours(rate, cost))
                .chain(rivals(rate, cost));
            for contestant in all {
                let name = contestant.name;
                let findings = judge(rate, requests[..end].iter().copied(), contestant);
                table.row(name, &cells(&findings));
            }
        });
    }
    hazards(&turns);
}

fn cells(findings: &Findings) -> [String; 8] {
    [
        grouped(findings.asked),
        grouped(findings.admitted),
        grouped(findings.wrongly_admitted),
        grouped(findings.wrongly_refused),
        grouped(findings.most),
        grouped(findings.beyond_promise),
        match findings.by_at_most {
            part if part > 0.0 && part < 1.0 => format!("{:.4}", part.max(0.0001)),
            whole => grouped(whole.ceil() as u64),
        },
        grouped(findings.short_of_promise),
    ]
}

/// Traffic that broke some bucket, given to all of them.
fn hazards(turns: &Turns) {
    let columns = [
        "limiter",
        "10 are the most: spent, then idle for 17.5 s",
        "100 are the most: 5,124,097 at once",
    ];
    Table::print(turns, "Accuracy, hazards of buckets", columns, |table| {
        // If 64-bit multiplication may overflow, the time for this many tokens wraps to a few seconds.
        let cost = if cfg!(debug_assertions) { 101 } else { 5_124_097 };
        let idled = buckets(Rate::per_minute(60), 10).map(|mut bucket| {
            let mut admitted = |at| (0..30).filter(|_| bucket.take(at, 1).is_some()).count();
            assert_eq!(admitted(0), 10);
            let admitted = admitted(17_500_000);
            (bucket.name, admitted as u64)
        });
        let asked: Vec<_> = buckets(Rate::per_hour(1), 100)
            .map(|mut bucket| (bucket.name, bucket.take(0, cost).map_or(0, |_| cost)))
            .collect();
        for (name, after_idling) in idled {
            let at_once = asked.iter().find(|(other, _)| *other == name);
            let at_once = at_once.map_or("–".to_owned(), |(_, admitted)| grouped(*admitted));
            table.row(name, &[grouped(after_idling), at_once]);
        }
    });
}

fn buckets(rate: Rate, burst: u64) -> impl Iterator<Item = Contestant> {
    iter::once(our_bucket(rate, burst)).chain(rival_buckets(rate, burst))
}

/// `1234567` as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
