//! Simulates hours of clients, servers and mishaps: the real pool and the real client, in a world that is the same in
//! every run.
//!
//! ```sh
//! cargo xtask sim
//! cargo run --release -p sluicegate-lease --example simulate -- --seeds 10
//! ```
//!
//! prints tables, and fails if more was ever leased than there is, or less is used than promised. `--seed 7` runs one
//! seed alone, `--short` 90 seconds of the crowd instead of an hour, and `--out FOLDER` writes the samples there as CSV.

#[path = "../../tests/simulation/mod.rs"]
mod simulation;

mod crowd;
mod doorman;

use std::env;
use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let wishes = match Wishes::read(env::args().skip(1)) {
        Ok(wishes) => wishes,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(2);
        }
    };
    let mut problems = doorman::run(&wishes);
    problems.extend(crowd::run(&wishes));
    for problem in &problems {
        eprintln!("FAILED: {problem}");
    }
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What to run.
struct Wishes {
    seeds: Range<u64>,
    is_short: bool,
    out: Option<PathBuf>,
}

impl Wishes {
    fn read(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut wishes = Self { seeds: 0..100, is_short: false, out: None };
        let mut words = words;
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("`{word}` needs a value"));
            let number = |text: String| {
                text.parse::<u64>().map_err(|_| format!("`{text}` is not a number of seeds"))
            };
            match word.as_str() {
                "--seeds" => wishes.seeds = 0..number(value()?)?.max(1),
                "--seed" => {
                    let seed = number(value()?)?;
                    wishes.seeds = seed..seed.saturating_add(1);
                }
                "--short" => wishes.is_short = true,
                "--out" => wishes.out = Some(value()?.into()),
                _ => return Err(format!("`{word}`: see the top of examples/simulate/main.rs")),
            }
        }
        Ok(wishes)
    }

    /// Writes a file, if there is a folder for it.
    fn write(&self, name: &str, text: &str) {
        if let Some(folder) = &self.out {
            let path = folder.join(name);
            std::fs::write(&path, text)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }
}
