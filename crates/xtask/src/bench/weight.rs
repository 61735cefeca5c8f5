//! How many crates a limiter adds to an application, counted with `cargo tree`. Nothing is built.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use super::{program, read};
use crate::step::{Failure, cargo, root};

/// Its name on the command line, like those of the programs in `benches/`.
pub(super) const PROGRAM: &str = "weight";

const TITLE: &str = "Weight, crates to compile";

const NOTE: &str = "\
Direct and indirect dependencies, with those of build scripts and macros, on this system. Each crate has its default
features and the version that `Cargo.lock` holds. The application in axum also depends on `tokio` with its feature
`full`.";

/// A row. The name ends with the framework of the application.
struct Application {
    name: &'static str,
    /// The row that it is compared with.
    without: Option<&'static str>,
    dependencies: &'static [&'static str],
}

const AXUM: &[&str] = &["axum", "tokio"];
const ACTIX: &[&str] = &["actix-web"];

const APPLICATIONS: [Application; 11] = [
    Application { name: "an application, axum", without: None, dependencies: &[] },
    with("sluicegate-axum, axum", "an application, axum", &["sluicegate-axum"]),
    with("tower_governor, axum", "an application, axum", &["tower_governor"]),
    with("axum-governor, axum", "an application, axum", &["axum-governor"]),
    Application { name: "an application, actix-web", without: None, dependencies: &[] },
    with("sluicegate-actix, actix-web", "an application, actix-web", &["sluicegate-actix"]),
    with("actix-governor, actix-web", "an application, actix-web", &["actix-governor"]),
    with(
        "actix-extensible-rate-limit, actix-web",
        "an application, actix-web",
        &["actix-extensible-rate-limit"],
    ),
    Application {
        name: "sluicegate-core, alone",
        without: None,
        dependencies: &["sluicegate-core"],
    },
    Application { name: "sluicegate, alone", without: None, dependencies: &["sluicegate"] },
    Application { name: "governor, alone", without: None, dependencies: &["governor"] },
];

const fn with(
    name: &'static str,
    without: &'static str,
    dependencies: &'static [&'static str],
) -> Application {
    Application { name, without: Some(without), dependencies }
}

/// The table in the format of the programs; empty if none of these words is in its title.
pub(super) fn printed(words: &[String]) -> Result<String, Failure> {
    if !words.is_empty() && !words.iter().any(|word| TITLE.contains(word.as_str())) {
        return Ok(String::new());
    }
    let releases = program::releases(&read("benches/Cargo.toml")?, &read("Cargo.lock")?);
    let mut counts: Vec<(&str, usize)> = Vec::new();
    let mut table =
        format!("### {TITLE}\n\n| | crates | more than without it |\n| --- | ---: | ---: |\n");
    for application in &APPLICATIONS {
        let crates = application.crates(&releases)?.len();
        let without = application.without.and_then(|name| counts.iter().find(|row| row.0 == name));
        let more = without.map_or("–".to_owned(), |(_, count)| (crates - count).to_string());
        table += &format!("| {} | {crates} | {more} |\n", application.name);
        counts.push((application.name, crates));
    }
    table += &format!("\n{NOTE}\n\n");
    print!("{table}");
    Ok(table)
}

impl Application {
    /// Its dependencies with their versions.
    fn crates(&self, releases: &[String]) -> Result<BTreeSet<String>, Failure> {
        let directory = root().join("target/weight");
        let failed = |error| Failure(format!("target/weight: {error}"));
        fs::create_dir_all(directory.join("src")).map_err(failed)?;
        fs::write(directory.join("src/main.rs"), "fn main() {}\n").map_err(failed)?;
        fs::write(directory.join("Cargo.toml"), self.manifest(releases)).map_err(failed)?;
        fs::copy(root().join("Cargo.lock"), directory.join("Cargo.lock")).map_err(failed)?;

        let mut command = cargo(["tree", "--quiet", "--edges", "normal,build", "--prefix", "none"]);
        command.arg("--manifest-path").arg(directory.join("Cargo.toml"));
        output(command).map(|tree| crates_in(&tree))
    }

    fn manifest(&self, releases: &[String]) -> String {
        let framework = match self.name.split_once(", ") {
            Some((_, "axum")) => AXUM,
            Some((_, "actix-web")) => ACTIX,
            _ => &[],
        };
        let mut manifest = String::from(
            "[package]\nname = \"application\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
             [dependencies]\n",
        );
        for name in framework.iter().chain(self.dependencies) {
            let release =
                releases.iter().find_map(|release| release.strip_prefix(name)?.strip_prefix(' '));
            manifest += &match (*name, release) {
                ("tokio", _) => "tokio = { version = \"1\", features = [\"full\"] }\n".to_owned(),
                (_, Some(release)) => format!("{name} = \"={release}\"\n"),
                _ if name.starts_with("sluicegate") => {
                    format!("{name} = {{ path = {:?} }}\n", root().join("crates").join(name))
                }
                ("axum", _) => "axum = \"0.8\"\n".to_owned(),
                _ => format!("{name} = \"4\"\n"),
            };
        }
        manifest
    }
}

/// The lines of `cargo tree`, each crate once, without the application itself.
fn crates_in(tree: &str) -> BTreeSet<String> {
    let name = |line: &str| line.trim_end_matches(" (*)").to_owned();
    let lines = tree.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(name).filter(|line| !line.starts_with("application ")).collect()
}

fn output(mut command: Command) -> Result<String, Failure> {
    let output = command.output().map_err(|error| Failure(format!("cargo tree: {error}")))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            Err(Failure(format!("cargo tree: {}", String::from_utf8_lossy(&output.stderr).trim())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_counts_once_in_each_version_and_the_application_does_not() {
        let tree = "application v0.0.0 (/tmp)\naxum v0.8.1\nhttp v1.3.1\n\nhttp v0.2.12\nhttp v1.3.1 (*)\n";
        let expected = ["axum v0.8.1", "http v0.2.12", "http v1.3.1"].map(str::to_owned);
        assert_eq!(crates_in(tree), expected.into());
    }

    #[test]
    fn every_row_is_compared_with_one_above_it() {
        for (index, application) in APPLICATIONS.iter().enumerate() {
            let above = &APPLICATIONS[..index];
            let is_above = |name: &str| above.iter().any(|other| other.name == name);
            assert!(application.without.is_none_or(is_above), "{}", application.name);
        }
    }

    #[test]
    fn rivals_are_compared_in_the_release_that_the_benchmarks_pin() {
        let releases = ["tower_governor 0.8.0".to_owned()];
        let manifest = APPLICATIONS[2].manifest(&releases);
        assert!(manifest.contains("\ntower_governor = \"=0.8.0\"\n"), "{manifest}");
        assert!(manifest.contains("\naxum = \"0.8\"\n"), "{manifest}");
    }
}
