//! `sluicegate suggest`

mod choice;
mod client;
mod content;
mod groups;
mod keying;
mod ladder;
mod population;
mod report;

#[cfg(test)]
mod picture_tests;
#[cfg(test)]
mod tests;

use std::collections::hash_map::DefaultHasher;
use std::error::Error;
use std::hash::{Hash as _, Hasher as _};
use std::path::PathBuf;

use clap::Args;

use self::choice::{Choice, Covered, Terms, choose};
use self::client::Arrival;
use self::content::content;
use self::groups::Groups;
pub(crate) use self::groups::group_of;
use self::keying::Keying;
use self::ladder::MINUTE;
use self::population::Population;
use self::report::Findings;
use crate::log::LogFiles;
use crate::page::{Content, Page, Traffic};
use crate::series::Peak;
use crate::terminal::{print, readable};

/// Suggests limits from the traffic in access logs.
///
/// It prints a file of rules on standard output, and what the rules are made of on standard error. Try
/// `sluicegate suggest access.log > rules.toml`, and then `sluicegate check --rules rules.toml`.
#[derive(Debug, Args)]
pub(crate) struct Suggest {
    #[command(flatten)]
    logs: LogFiles,
    /// The key that clients are told apart by, as in files of rules: `ip`, `{ header = "x-api-key" }` or `["ip", "host"]`.
    #[arg(long, value_name = "KEY", default_value = "ip")]
    by: String,
    /// The share of clients that the limits may have refused, before the room. Clients that look automatic do not count.
    #[arg(long, value_name = "SHARE", default_value = "0.1%", value_parser = share)]
    touch: f64,
    /// How many times as much as the traffic needed the limits let through.
    #[arg(long, value_name = "FACTOR", default_value = "2", value_parser = room)]
    room: f64,
    /// Proxies in front of the server that wrote the log: addresses and networks, separated by commas. What they say about their
    /// clients is believed.
    #[arg(long, value_name = "NETWORKS", value_delimiter = ',')]
    proxies: Vec<String>,
    /// The header in which the proxies name their clients, if it is not `x-forwarded-for`. The log has to have it.
    #[arg(long, value_name = "NAME")]
    client_header: Option<String>,
    /// Also writes a page for a browser, with pictures, into this file. The page loads nothing from elsewhere.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Shows the keys of clients that look automatic. Otherwise, they are numbered.
    #[arg(long)]
    show_keys: bool,
}

/// Reads a share such as `0.1%` or `0.001`.
fn share(text: &str) -> Result<f64, &'static str> {
    const EXPECTED: &str = "expected a share such as 0.1%";
    let (number, scale) =
        text.strip_suffix('%').map_or((text, 1.0), |number| (number.trim_end(), 100.0));
    let share = number.parse::<f64>().map_err(|_| EXPECTED)? / scale;
    (0.0..1.0).contains(&share).then_some(share).ok_or(EXPECTED)
}

/// Reads a factor.
fn room(text: &str) -> Result<f64, &'static str> {
    const EXPECTED: &str = "expected a factor between 1 and 1000, such as 2 or 1.5";
    let room = text.parse().map_err(|_| EXPECTED)?;
    (1.0..=1e3).contains(&room).then_some(room).ok_or(EXPECTED)
}

/// Most clients that are followed, each of which takes about 400 bytes.
const CLIENTS: usize = 1 << 19;

/// Most clients whose names are kept.
const NAMES: usize = 1 << 16;

pub(crate) fn run(options: &Suggest) -> Result<(), Box<dyn Error>> {
    let page = options.html.as_deref().map(Page::create).transpose()?;
    let Suggested { tables, rules, content } = suggest(options, CLIENTS)?;
    eprint!("{}", readable(&tables));
    print(rules.ok_or(TOO_SHORT)?.as_bytes())?;
    match (page, content) {
        (Some(page), Some(content)) => page.write(&content),
        _ => Ok(()),
    }
}

const TOO_SHORT: &str = "the log is too short: less than two minutes say nothing about a limit";

/// What the logs say.
struct Suggested {
    /// For people.
    tables: String,
    /// A file of rules, unless the log is [too short](TOO_SHORT).
    rules: Option<String>,
    /// For a page, if there is one.
    content: Option<Content>,
}

fn suggest(options: &Suggest, most: usize) -> Result<Suggested, Box<dyn Error>> {
    let mut keying = Keying::new(&options.by, &options.proxies, options.client_header.as_deref())?;
    let mut records = options.logs.open()?;
    let mut population = Population::new(most);
    let mut groups = Groups::new();
    let mut names = Vec::new();
    let (mut keyless, mut missing, mut refused) = (0, None, 0);
    let mut peak = Peak::default();
    let mut traffic = match options.html {
        Some(_) => Some(Traffic::new(options.logs.zone()?)),
        None => None,
    };
    let (mut last, mut resolution, mut covered) = (None, 0, Covered::default());
    while let Some(record) = records.next()? {
        let before = last.replace(record.start).unwrap_or(record.start);
        covered.add(record.start.saturating_sub(before) as f64 / 1e9);
        // Of several logs, the coarsest.
        resolution = resolution.max(record.resolution);
        let key = match keying.client(&record) {
            Ok(Some(key)) => key,
            Ok(None) => continue,
            Err(what) => {
                keyless += 1;
                missing.get_or_insert(what);
                continue;
            }
        };
        refused += u64::from(record.status == Some(429));
        if let Some(traffic) = &mut traffic {
            let at = u64::try_from(record.start / 1_000).unwrap_or_default();
            traffic.add(at, record.status == Some(429));
        }
        let group = group_of(record.path);
        let agent = record.header("user-agent").map(hash);
        let arrival = Arrival { at: record.start, agent, group: hash(group) };
        peak.add(u64::try_from(record.start / 60_000_000_000).unwrap_or_default());
        let is_new = population.add(key, arrival);
        if is_new && options.show_keys && names.len() < NAMES {
            names.push(keying.name());
        }
        groups.add(group, key, arrival);
    }
    let summary = records.summary();
    summary.check()?;
    if population.clients.is_empty() {
        return Err(match missing {
            Some(missing) => format!("no request could be judged: {missing}{summary}"),
            None => format!("there are no requests to judge{summary}"),
        }
        .into());
    }
    groups.choose();
    let terms = Terms {
        touch: options.touch,
        room: options.room,
        covered,
        resolution: (resolution as f64 / 1e9) as f32,
    };
    let choice = terms.covers(MINUTE).then(|| choose(&population, &terms)).flatten();
    let groups = stricter(&groups, choice.as_ref(), &terms);
    // Names are in the order of clients, as long as none was let go.
    let names = if population.one_in() == 1 { &*names } else { &[] };
    let findings = Findings {
        keying: &keying,
        population: &population,
        terms,
        choice,
        groups,
        keyless,
        missing,
        refused,
        peak: peak.highest().1,
        names,
    };
    let mut log = summary.to_string().trim_start().to_owned();
    if summary.is_stopped {
        log.push_str("\nstopped: this is what was read until then");
    }
    let mut tables = log.clone();
    tables.push_str("\n\n");
    tables.push_str(&findings.tables());
    tables.push('\n');
    let rules = findings.rules(&options.words());
    let content = (traffic.zip(rules.as_deref()))
        .map(|(traffic, rules)| content(&findings, &traffic, rules, &log));
    Ok(Suggested { tables, rules, content })
}

/// Groups of paths where a client needs much less than everywhere.
fn stricter(groups: &Groups, of_all: Option<&Choice>, terms: &Terms) -> Vec<(String, Choice)> {
    /// A limit that is not much lower is not worth a rule.
    const MUCH: f64 = 5.0;
    /// What fewer clients did says little about the next one.
    const CLIENTS: f64 = 20.0;
    let Some(of_all) = of_all else { return Vec::new() };
    let choices = groups.populations.iter().filter_map(|(path, population)| {
        let choice = choose(population, terms)?;
        let is_stricter = choice.most_in(60.0) * MUCH <= of_all.most_in(60.0);
        (is_stricter && choice.people >= CLIENTS).then(|| (path.clone(), choice))
    });
    choices.collect()
}

impl Suggest {
    /// The command, for the first line of the file.
    fn words(&self) -> String {
        let Self { by, touch, room, .. } = self;
        // Without the digits that come of dividing.
        let percent = (touch * 1e8).round() / 1e6;
        format!("sluicegate suggest --by '{by}' --touch {percent}% --room {room}")
    }
}

fn hash(text: &str) -> u32 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish() as u32
}
