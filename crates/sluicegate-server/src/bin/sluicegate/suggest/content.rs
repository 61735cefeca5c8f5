//! What the log says, as a page shows it.

use std::time::Duration;

use super::ladder::{MINUTE, WINDOWS};
use super::report::{Findings, clients, requests};
use crate::page::{Content, Picture, Traffic, shown};
use crate::terminal::{grouped, percent, span};

/// Most characters of the rules. Paths are as long as clients make them.
const RULES: usize = 1 << 16;

/// The page, with what `log` says of reading.
pub(super) fn content(
    findings: &Findings<'_>,
    traffic: &Traffic,
    rules: &str,
    log: &str,
) -> Content {
    let Findings { population, terms, choice, peak, .. } = findings;
    let covered = (0..WINDOWS.len()).filter(|window| terms.covers(*window));
    let picture = |window: usize| {
        let steps = population.steps(window);
        let seconds = WINDOWS[window].seconds;
        // Without a limit, the line is above all clients.
        let highest = steps.last().map_or(1, |(level, ..)| *level);
        let limit = choice
            .as_ref()
            .map_or(highest, |choice| choice.most_in(f64::from(seconds)).max(1.0) as u64);
        Picture::new(Duration::from_secs(u64::from(seconds)), limit, steps)
    };
    let pictures: Vec<_> = covered.clone().map(picture).collect();
    let first = covered.clone().position(|window| window == MINUTE).unwrap_or_default();
    let all = requests(population.requests);
    let touched = choice.as_ref().map_or(0.0, |choice| choice.touched);
    Content {
        heading: "Limits from the traffic that was there".to_owned(),
        summary: format!("{all} of {} in {}", clients(findings.all()), span(terms.covered.whole())),
        tiles: vec![
            ("requests", grouped(population.requests as f64), ""),
            ("clients", grouped(findings.all()), ""),
            ("in the busiest minute", grouped(*peak as f64), ""),
            ("clients that the limits touch, at most", grouped(touched), "no"),
        ],
        traffic: traffic.content("requests", "were answered with 429"),
        pictures,
        first_picture: first,
        policies: Vec::new(),
        rules: Some(rules.chars().take(RULES).collect()),
        how: how(findings, log),
    }
}

/// How the figures were made.
fn how(findings: &Findings<'_>, log: &str) -> Vec<String> {
    let mut how = vec![
        "Each client is counted in windows of the clock: seconds, minutes, hours and days. What the line touches is what a limit of \
         fixed windows would have refused. It is exact at each number where the line stops. At first, the line is at what the \
         suggested limits let through in such a window."
            .to_owned(),
        "What a refused client does next, no log can tell: it waits, tries again or goes away. `sluicegate replay` shows which \
         requests a file of rules would have refused, and when."
            .to_owned(),
    ];
    let uncovered = (0..WINDOWS.len()).filter(|window| !findings.terms.covers(*window));
    let uncovered: Vec<_> = uncovered.map(|window| WINDOWS[window].name).collect();
    if !uncovered.is_empty() {
        let length = span(findings.terms.covered.whole());
        how.push(format!(
            "The log of {length} says nothing about windows of: {}.",
            uncovered.join(", ")
        ));
    }
    how.extend(findings.sample());
    if let Some(missing) = &findings.missing {
        how.push(format!(
            "{} of the requests could not be judged: {}",
            percent(findings.keyless_share()),
            shown(missing)
        ));
    }
    let (title, automatic) = findings.automatic_lines();
    if !automatic.is_empty() {
        how.push(title);
        how.extend(automatic.iter().map(|(name, what)| format!("{name}: {what}")));
    }
    how.extend(log.lines().map(str::to_owned));
    how
}
