//! `sluicegate replay`

mod alternatives;
mod content;
mod counts;
mod durations;
mod evidence;
mod judge;
#[cfg(test)]
mod live_tests;
mod policy;
mod report;
#[cfg(test)]
mod tests;
mod text;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use sluicegate_core::adapter::KeyHash;
use sluicegate_core::key::KeySecret;
use sluicegate_core::observe::ShowKeys;

use self::content::content;
use self::judge::Judge;
use self::report::{Differences, Report};
use crate::log::{LogFiles, Records};
use crate::page::Page;
use crate::policies::Kind;
use crate::terminal::print;
use crate::virtual_time::{Rules, micros};

/// Tells what rules would have done to the requests of access logs.
///
/// Each request of the logs goes through the rules at its time, as it would have live, in virtual time. For each policy, the
/// report says how many requests it would have refused, of which clients, when and on which paths. It also names the fields that
/// the rules need and the logs lack.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    #[command(flatten)]
    logs: LogFiles,
    /// The file of rules in TOML or JSON.
    #[arg(long, value_name = "FILE")]
    rules: PathBuf,
    /// Another file of rules, such as that in force so far. The report says who is newly refused.
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
    /// Also writes the report as a page for a browser, with pictures, into this file. The page loads nothing from elsewhere.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Exits with 2 if a larger share of the requests is refused, for want of a key too, such as `0.1%`, or if there are more that
    /// a rule cannot judge.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    fail_above: Option<f64>,
    /// Shows the keys of clients, such as addresses, instead of digests that change with every run.
    #[arg(long)]
    show_keys: bool,
    /// How many keys each store of a limit has room for. Each takes 40 bytes or more, and about 200 where tiers and cases share
    /// what was spent.
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..))]
    keys: u32,
}

/// A share such as `0.1%`.
fn share(text: &str) -> Result<f64, &'static str> {
    const EXPECTED: &str = "expected a share from 0% to 100%, such as 0.1%";
    let percent = text.strip_suffix('%').ok_or(EXPECTED)?.trim_end();
    let percent = percent.parse::<f64>().map_err(|_| EXPECTED)?;
    if (0.0..=100.0).contains(&percent) { Ok(percent / 100.0) } else { Err(EXPECTED) }
}

pub(crate) fn run(options: &Replay) -> Result<ExitCode, Box<dyn Error>> {
    let keys = show_keys(options.show_keys)?;
    let page = options.html.as_deref().map(Page::create).transpose()?;
    let judge = |path: &Path| -> Result<Judge, Box<dyn Error>> {
        Kind::Rules.expect(path)?;
        Ok(Judge::new(Rules::open(path)?, options.keys as usize, KeyHash::new()))
    };
    let mut rules = judge(&options.rules)?;
    if page.is_some() {
        rules = rules.with_traffic(options.logs.zone()?);
    }
    let against = options.against.as_deref().map(judge).transpose()?;
    let mut against = against.map(Judge::without_alternatives);
    let mut records = options.logs.open()?;
    let differences = replay(&mut records, &mut rules, against.as_mut())?;
    let summary = records.summary();
    let mut report = Report::new(&options.rules.display().to_string(), &rules, &keys);
    if let Some(against) = &options.against {
        report.compare(&against.display().to_string(), &differences, &keys);
    }
    // Beside the report, which may be read by a program.
    let stopped = if summary.is_stopped { "\nstopped early: the report is of a part" } else { "" };
    eprintln!("{} lines{summary}{stopped}", summary.lines);
    let written = match options.json {
        true => serde_json::to_string_pretty(&report)? + "\n",
        false => report.to_string(),
    };
    print(written.as_bytes())?;
    if let Some(page) = page {
        page.write(&content(
            &report,
            &rules,
            &format!("{} lines{summary}{stopped}", summary.lines),
        ))?;
    }
    summary.check()?;
    let is_above = options.fail_above.is_some_and(|most| report.is_above(most));
    Ok(if is_above { ExitCode::from(2) } else { ExitCode::SUCCESS })
}

/// Most keys that are told newly refused.
const NEWLY_REFUSED: usize = 1 << 20;

/// Takes all records through the rules, and through other rules beside them.
fn replay(
    records: &mut Records,
    rules: &mut Judge,
    mut against: Option<&mut Judge>,
) -> Result<Differences, Box<dyn Error>> {
    let mut differences = Differences::default();
    while let Some(record) = records.next()? {
        let verdict = rules.judge(&record);
        let Some(before) = against.as_deref_mut().map(|against| against.judge(&record)) else {
            continue;
        };
        differences.refused_before += u64::from(before.is_turned_away());
        match (before.is_turned_away(), verdict.is_turned_away()) {
            (true, false) => differences.no_longer += 1,
            (false, true) => {
                differences.newly += 1;
                let Some((key, hash)) = verdict.key else { continue };
                let is_full = differences.who.len() >= NEWLY_REFUSED;
                if !is_full || differences.who.contains_key(&hash) {
                    differences.who.entry(hash).or_insert((key, 0)).1 += 1;
                }
            }
            _ => {}
        }
    }
    rules.finish();
    Ok(differences)
}

/// Keys as they are, or digests by a secret of this run.
fn show_keys(is_shown: bool) -> Result<ShowKeys, Box<dyn Error>> {
    if is_shown {
        return Ok(ShowKeys::Shown);
    }
    let mut secret = [0; 32];
    getrandom::fill(&mut secret)?;
    Ok(ShowKeys::Digest(KeySecret::new(&secret)))
}
