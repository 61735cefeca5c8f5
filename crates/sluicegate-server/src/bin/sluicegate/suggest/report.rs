//! What the log says, for people, and the rules that follow from it.

use std::fmt::Write as _;

use super::choice::{Choice, Terms};
use super::client::Client;
use super::keying::Keying;
use super::ladder::{MINUTE, WINDOWS, Window, candidates};
use super::population::Population;
use crate::terminal::{grouped, margin, percent, span};

/// What was found out.
pub(super) struct Findings<'a> {
    pub(super) keying: &'a Keying,
    pub(super) population: &'a Population,
    pub(super) terms: Terms,
    pub(super) choice: Option<Choice>,
    /// Groups of paths whose limits are much lower.
    pub(super) groups: Vec<(String, Choice)>,
    /// Requests without a key, and what is missing.
    pub(super) keyless: u64,
    pub(super) missing: Option<String>,
    /// Requests with the status 429.
    pub(super) refused: u64,
    /// The most requests of all clients in a minute.
    pub(super) peak: u64,
    /// The names of clients, if they may be shown.
    pub(super) names: &'a [String],
}

/// The name of a window with its article.
fn a(window: &str) -> String {
    match window {
        "hour" => "an hour".to_owned(),
        "10 seconds" => window.to_owned(),
        _ => format!("a {window}"),
    }
}

pub(super) fn requests(count: u64) -> String {
    if count == 1 { "1 request".to_owned() } else { format!("{} requests", grouped(count as f64)) }
}

pub(super) fn clients(count: f64) -> String {
    if count == 1.0 { "1 client".to_owned() } else { format!("{} clients", grouped(count)) }
}

impl Findings<'_> {
    /// The tables.
    pub(super) fn tables(&self) -> String {
        let mut text = String::new();
        let Self { population, terms, .. } = self;
        let _ = writeln!(
            text,
            "{} of {} in {}, {} in the busiest minute",
            requests(population.requests),
            clients(self.all()),
            span(terms.covered.whole()),
            grouped(self.peak as f64),
        );
        if let Some(sample) = self.sample() {
            let _ = writeln!(text, "{sample}");
        }
        if let Some(missing) = &self.missing {
            let share = self.keyless_share();
            let _ = writeln!(
                text,
                "requests that could not be judged: {} ({}): {missing}",
                grouped(self.keyless as f64),
                percent(share)
            );
        }
        if self.refused > 0 {
            let share = self.refused as f64 / population.requests as f64;
            let _ = writeln!(
                text,
                "requests that limits in force refused with 429: {} ({}). What their clients needed, the log does not say.",
                grouped(self.refused as f64),
                percent(share)
            );
        }
        self.distribution(&mut text);
        self.candidates(&mut text);
        self.automatic(&mut text);
        text
    }

    /// The share of requests without a key.
    pub(super) fn keyless_share(&self) -> f64 {
        self.keyless as f64 / (self.keyless + self.population.requests) as f64
    }

    /// How many clients there are.
    pub(super) fn all(&self) -> f64 {
        let population = self.population;
        population.clients.iter().map(|client| population.weight(client)).sum()
    }

    /// How exact the figures are, unless all clients are followed.
    pub(super) fn sample(&self) -> Option<String> {
        let one_in = self.population.one_in();
        let followed = self.population.clients.len();
        (one_in > 1).then(|| {
            format!(
                "Not all clients fit in memory: 1 of {one_in} was followed, and those who came most. A share of clients is right \
                 within {} with a certainty of 95 %.",
                margin(followed)
            )
        })
    }

    /// The highest count of clients in each window.
    fn distribution(&self, text: &mut String) {
        const SHARES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 1.0];
        let _ = writeln!(
            text,
            "\n{:<32}{:>10}{:>10}{:>10}{:>10}{:>12}",
            "the most requests of a client", "50 %", "90 %", "99 %", "99.9 %", "of all"
        );
        for (window, Window { name, .. }) in WINDOWS.iter().enumerate() {
            let _ = write!(text, "{:<32}", format!("  in {}", a(name)));
            if !self.terms.covers(window) {
                let _ = writeln!(
                    text,
                    "    {} say nothing about a limit for {}",
                    span(self.terms.covered.of(window)),
                    a(name)
                );
                continue;
            }
            let sorted = self.sorted(|client| f64::from(client.highest(window)));
            for (place, share) in SHARES.into_iter().enumerate() {
                let width = if place == 4 { 12 } else { 10 };
                let _ = write!(text, "{:>width$}", grouped(quantile(&sorted, share)));
            }
            text.push('\n');
        }
    }

    /// What limits of each window would do.
    fn candidates(&self, text: &mut String) {
        let population = self.population;
        let candidates = candidates();
        let _ = writeln!(
            text,
            "\n{:<32}{:>22}{:>22}",
            "a limit of", "refuses clients", "refuses requests"
        );
        for (window, Window { name, .. }) in WINDOWS.iter().enumerate() {
            if !self.terms.covers(window) {
                continue;
            }
            let sorted = self.sorted(|client| f64::from(client.highest(window)));
            let all: f64 = sorted.iter().map(|(_, weight)| weight).sum();
            let over = |limit: u64| -> f64 {
                let over = sorted.iter().filter(|(value, _)| *value > limit as f64);
                over.map(|(_, weight)| weight).sum()
            };
            let touched: Vec<_> = candidates.iter().map(|limit| over(*limit)).collect();
            // For each share of clients, the least limit that refuses no more.
            let rows = [0.1, 0.01, 0.001, 0.0]
                .map(|share| touched.partition_point(|touched| *touched > share * all));
            for (number, place) in rows.into_iter().enumerate() {
                let Some(limit) = candidates.get(place) else { continue };
                if rows[..number].contains(&place) {
                    continue;
                }
                let _ = writeln!(
                    text,
                    "{:<32}{:>22}{:>22}",
                    format!("  {} in {}", grouped(*limit as f64), a(name)),
                    format!("{} ({})", grouped(touched[place]), percent(touched[place] / all)),
                    percent(population.refused(window, *limit)),
                );
            }
        }
    }

    fn automatic(&self, text: &mut String) {
        let (title, lines) = self.automatic_lines();
        if lines.is_empty() {
            return;
        }
        let _ = writeln!(text, "\n{title}");
        for (name, what) in lines {
            let _ = writeln!(text, "  {name}: {what}");
        }
    }

    /// Clients that look automatic: how many, and about each of the busiest its name and what it does.
    pub(super) fn automatic_lines(&self) -> (String, Vec<(String, String)>) {
        let Some(choice) = &self.choice else { return Default::default() };
        let mut automatic = choice.automatic.clone();
        let requests = |at: usize| self.population.clients[at].requests;
        automatic.sort_by_key(|(at, _)| std::cmp::Reverse(requests(*at)));
        let count = automatic.len();
        let title = format!(
            "{} look{} automatic. The limits are made for {}.",
            clients(count as f64),
            if count == 1 { "s" } else { "" },
            if choice.leaves_out {
                "the others"
            } else {
                "all, because these are too many to be left out"
            }
        );
        let line = |(number, (at, effect)): (usize, (usize, Option<bool>))| {
            let client = &self.population.clients[at];
            let name = self.names.get(at).map_or_else(
                || format!("client {}", number + 1),
                |name| crate::terminal::escaped(name),
            );
            let effect = match effect {
                Some(true) => "the limits refuse it",
                Some(false) => "the limits let it through",
                None => "the limits may refuse it",
            };
            let requests = grouped(f64::from(client.requests));
            (name, format!("{requests} requests, {}; {effect}", client.habits()))
        };
        (title, automatic.into_iter().take(10).enumerate().map(line).collect())
    }

    fn sorted(&self, value: impl Fn(&Client) -> f64) -> Vec<(f64, f64)> {
        let population = self.population;
        let weighed =
            population.clients.iter().map(|client| (value(client), population.weight(client)));
        let mut sorted: Vec<_> = weighed.collect();
        sorted.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        sorted
    }

    /// A file of rules, with what they are made of, if there is a choice.
    pub(super) fn rules(&self, command: &str) -> Option<String> {
        let choice = self.choice.as_ref()?;
        let Terms { touch, room, covered, resolution } = self.terms;
        let mut text = format!("# {command}\n#\n");
        let requests = requests(self.population.requests);
        let mut comment = |what: String| {
            let _ = writeln!(text, "# {what}");
        };
        comment(format!("Made of {requests} in {}.", span(covered.whole())));
        comment(format!(
            "Chosen so that at most {} of the clients would have been refused, with room for {room} times as much.",
            percent(touch)
        ));
        let automatic = choice.automatic.len();
        if automatic > 0 && !choice.leaves_out {
            comment(format!(
                "Clients that look automatic are too many to be left out: {automatic}."
            ));
        } else if automatic > 0 {
            let touched =
                choice.automatic.iter().filter(|(_, effect)| *effect == Some(true)).count();
            comment(format!(
                "Clients that look automatic are left out: {automatic}. The limits refuse {touched} of them."
            ));
        }
        if let Some(missing) = &self.missing {
            let share = percent(self.keyless_share());
            comment(format!(
                "{share} of the requests are not among them, because they could not be judged: {missing}"
            ));
            if self.keying.is_lacking == Some(false) {
                comment(format!(
                    "Such a request is refused with 400. With `key = {{ optional = {} }}`, it passes without a limit.",
                    self.keying.key
                ));
            }
        }
        if f64::from(resolution) >= 1.0 {
            comment(
                "The log has whole seconds, so requests of one second count as a burst.".to_owned(),
            );
        }
        comment(
            "What a refused client does next, no log can tell. With `reject = \"shadow\"`, a rule only counts."
                .to_owned(),
        );
        if !self.keying.proxies.is_empty() {
            let _ = write!(text, "\n{}", self.keying.proxies);
        }
        self.rule(&mut text, "suggested", None, choice);
        for (number, (path, choice)) in self.groups.iter().enumerate() {
            self.rule(&mut text, &format!("suggested-{}", number + 2), Some(path), choice);
        }
        Some(text)
    }

    fn rule(&self, text: &mut String, name: &str, path: Option<&str>, choice: &Choice) {
        let what = path.map_or("A client".to_owned(), |path| format!("Beneath {path}, a client"));
        let Choice { fitted_rate, fitted_burst, touched, touched_share, people, .. } = choice;
        let _ = write!(
            text,
            "\n# {what} that is not refused needed {} a minute, with up to {} at once. Refuses at most {} of {}.\n",
            short(fitted_rate * 60.0),
            grouped(*fitted_burst),
            grouped(*touched),
            grouped(*people),
        );
        if *touched > 0.0 {
            // One of many clients may be an address that many people share.
            let share = percent(*touched_share);
            let _ = writeln!(text, "# These clients sent {share} of the requests.");
        }
        if path.is_none() && self.peak > 0 {
            let most = choice.most_in(f64::from(WINDOWS[MINUTE].seconds));
            let share = most / self.peak as f64;
            let _ = writeln!(
                text,
                "# One client gets at most {} a minute through, {} of the busiest minute of all.",
                grouped(most),
                percent(share)
            );
        }
        let _ = writeln!(text, "[[rules]]\nname = \"{name}\"\nkey = {}", self.keying.key);
        if let Some(path) = path {
            // A file such as `/index.php` counts in the group above it, unlike what is beneath it.
            let is_file = path.rsplit('/').next().is_some_and(|last| last.contains('.'));
            let itself = if is_file { String::new() } else { format!("\"{path}\", ") };
            let _ = writeln!(text, "when = {{ path = [{itself}\"{path}/{{*rest}}\"] }}");
        }
        let mut limits = choice.limits();
        // Both would have the name of the rule.
        limits.iter_mut().skip(1).for_each(|limit| *limit = format!("{limit} named {name}-quota"));
        let _ = writeln!(text, "limits = {limits:?}");
    }
}

/// A number with as many digits as say something.
fn short(number: f64) -> String {
    if number < 10.0 { format!("{number:.2}") } else { grouped(number) }
}

/// The value that a share of all does not exceed, of values in order with what each weighs.
pub(super) fn quantile(sorted: &[(f64, f64)], share: f64) -> f64 {
    let all: f64 = sorted.iter().map(|(_, weight)| weight).sum();
    let mut before = 0.0;
    let found = sorted.iter().find(|(_, weight)| {
        before += weight;
        before >= share * all
    });
    found.or(sorted.last()).map_or(0.0, |(value, _)| *value)
}
