//! The simulation of leases: runs it, writes its tables into a page, and draws its charts.

use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
use std::fs;
use std::process::Command;

use crate::bench::draw_over_time;
use crate::step::{Failure, Step, TESTED, cargo, root};

const PAGE: &str = "docs/leases.md";
/// Where the samples are written.
const FOLDER: &str = "docs/simulation";

/// A chart: the scenario, and its title.
const CHARTS: [(u32, &str); 2] = [
    (7, "45 clients on three levels, an hour with a mishap a minute"),
    (8, "45 clients that want half, two of which want 1,000 after 150 s"),
];
const COLUMNS: [&str; 3] = ["could be used", "leased", "used"];

/// A line before each part of the output, and before the place on the page where it goes.
const PART: &str = "<!-- part: ";
const END: &str = "<!-- end -->";

/// Runs the simulation. Without arguments, that is 100 seeds, and the page and its charts are written anew. With
/// arguments, tables are printed only.
pub(crate) fn simulate(arguments: Vec<OsString>) -> Result<(), Failure> {
    if !arguments.is_empty() {
        let mut command = program();
        command.args(arguments);
        return Step::new("simulation", command).run();
    }
    let folder = root().join(FOLDER);
    fs::create_dir_all(&folder).map_err(|error| Failure(format!("{FOLDER}: {error}")))?;
    let mut command = program();
    command.arg("--out").arg(&folder);
    let printed = Step::new("simulation", command).output()?;

    let page = fs::read_to_string(root().join(PAGE)).map_err(|error| wrong(PAGE, error))?;
    let page = fill(&page, &printed)?;
    fs::write(root().join(PAGE), page).map_err(|error| wrong(PAGE, error))?;
    for (scenario, title) in CHARTS {
        let path = |kind| format!("{FOLDER}/scenario-{scenario}.{kind}");
        let csv = path("csv");
        let samples = fs::read_to_string(root().join(&csv)).map_err(|error| wrong(&csv, error))?;
        let svg = draw_over_time(title, &samples, &COLUMNS).map_err(|error| wrong(&csv, error))?;
        fs::write(root().join(path("svg")), svg).map_err(|error| wrong(FOLDER, error))?;
    }
    eprintln!("\n{PAGE}: written.");
    Ok(())
}

/// A few seeds, for a check before a merge.
pub(crate) fn simulate_shortly() -> Result<(), Failure> {
    let target = root().join("target");
    let mut build = cargo(["build", "--example", "simulate", "--target-dir"]);
    build.arg(&target).args(TESTED);
    Step::new("simulation, compiled", build).run()?;
    let mut command = Command::new(target.join(format!("debug/examples/simulate{EXE_SUFFIX}")));
    command.args(["--short", "--seeds", "5"]);
    Step::new("simulation", command).run()
}

fn program() -> Command {
    let mut command = cargo(["run", "--quiet", "--release", "--package", "sluicegate-lease"]);
    command.args(["--example", "simulate", "--"]);
    command
}

fn wrong(what: &str, error: impl std::fmt::Display) -> Failure {
    Failure(format!("{what}: {error}"))
}

/// Puts each part of the output into its place.
fn fill(page: &str, printed: &str) -> Result<String, Failure> {
    let mut page = page.to_owned();
    for part in printed.split(PART).skip(1) {
        let Some((name, text)) = part.split_once(" -->\n") else {
            return Err(Failure(format!("simulation: a part without a name: {part:?}")));
        };
        let begin = format!("{PART}{name} -->\n");
        let Some((before, rest)) = page.split_once(&begin) else {
            return Err(Failure(format!("{PAGE} has no place for `{name}`")));
        };
        let Some((_, after)) = rest.split_once(END) else {
            return Err(Failure(format!("{PAGE}: the place of `{name}` has no end")));
        };
        page = format!("{before}{begin}\n{}\n\n{END}{after}", text.trim());
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_goes_into_its_place() {
        let page = "# A\n<!-- part: a -->\nold\n<!-- end -->\nB\n<!-- part: b -->\n<!-- end -->\n";
        let filled = fill(page, "<!-- part: b -->\n\n2\n\n<!-- part: a -->\n1\n");
        let expected = "# A\n<!-- part: a -->\n\n1\n\n<!-- end -->\nB\n<!-- part: b -->\n\n2\n\n<!-- end -->\n";
        assert_eq!(filled.unwrap_or_else(|failure| panic!("{failure}")), expected);
    }

    #[test]
    fn a_part_without_a_place_is_an_error() {
        let problem =
            |page| fill(page, "<!-- part: a -->\n1\n").err().map(|error| error.to_string());
        assert_eq!(problem("# A").as_deref(), Some("docs/leases.md has no place for `a`"));
        assert!(problem("<!-- part: a -->\n").is_some());
    }

    #[test]
    fn the_page_has_a_place_for_each_part() {
        let page = fs::read_to_string(root().join(PAGE)).expect("the page");
        for part in ["use", "back", "crowd", "buckets"] {
            assert_eq!(page.matches(&format!("{PART}{part} -->\n")).count(), 1, "{part}");
        }
    }
}
