//! The machine that the benchmarks run on, and the time of the run.

use std::fmt;
use std::fs;
use std::process::Command;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::step::{Failure, root};

/// The machine, its system, its compiler, and the rivals: one line of Markdown for each.
#[derive(Debug)]
pub(super) struct Machine(String);

impl Machine {
    /// This machine. Unknown facts are left out.
    pub(super) fn here(releases: &[String]) -> Self {
        let line = |name, said: Vec<Option<String>>| {
            let said: Vec<_> = said.into_iter().flatten().collect();
            format!("- **{name}**: {}.\n", said.join(", "))
        };
        Self(
            [
                line("Machine", vec![processor(), cores(), caches(), memory()]),
                line("System", vec![kernel(), clock()]),
                line("Compiler", vec![output("rustc", &["--version"])]),
                line("Compared with", releases.iter().cloned().map(Some).collect()),
            ]
            .concat(),
        )
    }

    /// Fails if a page was measured on another machine, as `there` says.
    pub(super) fn check(&self, there: &str) -> Result<(), Failure> {
        match self.0.lines().find(|line| !there.contains(line)) {
            Some(here) if !there.trim().is_empty() => Err(Failure(format!(
                "BENCHMARKS.md cannot have some of its tables from here, because it does not say \
                 \"{here}\" as this machine would: run all of them"
            ))),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The command, the day and the commit.
pub(super) fn run_of(command: &str) -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    format!("`{command}`, {}, {}", date(seconds / 86_400), commit())
}

fn commit() -> String {
    let Some(commit) = output("git", &["rev-parse", "--short", "HEAD"]) else {
        return "no commit".to_owned();
    };
    // The files that the benchmarks themselves write do not count.
    let changes = [
        "status",
        "--porcelain",
        "--untracked-files=no",
        "--",
        ":!BENCHMARKS.md",
        ":!docs/benchmarks/*.md",
        ":!docs/bench-*.svg",
    ];
    match output("git", &changes) {
        Some(changes) if !changes.is_empty() => {
            format!("commit {commit} with changes")
        }
        _ => format!("commit {commit}"),
    }
}

fn processor() -> Option<String> {
    let (model, family) = (of_processor("model name")?, of_processor("cpu family"));
    let Some((family, number)) = family.zip(of_processor("model")) else { return Some(model) };
    Some(format!("{model} (family {family}, model {number})"))
}

fn cores() -> Option<String> {
    let cores = thread::available_parallelism().ok()?;
    let virtually = of_processor("flags")?.split(' ').any(|flag| flag == "hypervisor");
    let kind = if virtually { "virtual processors" } else { "processors" };
    Some(format!("{cores} {kind}"))
}

/// The data caches of a core: `48K L1, 1024K L2, 32768K L3`.
fn caches() -> Option<String> {
    let caches = (0..).map_while(|index| {
        let of = |what| file(&format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{what}"));
        Some((of("type")?, of("level")?, of("size")?))
    });
    let data = caches.filter(|(kind, ..)| kind != "Instruction");
    let sizes: Vec<_> = data.map(|(_, level, size)| format!("{size} L{level}")).collect();
    (!sizes.is_empty()).then(|| sizes.join(", "))
}

fn memory() -> Option<String> {
    let memory = file("/proc/meminfo")?;
    let line = memory.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(format!("{} GB of memory", (kilobytes * 1_024).div_ceil(1_000_000_000)))
}

/// Without the suffix that the distributor added to the release.
fn kernel() -> Option<String> {
    let system = output("uname", &["-sr"])?;
    system.split('-').next().map(str::to_owned)
}

fn clock() -> Option<String> {
    let source = file("/sys/devices/system/clocksource/clocksource0/current_clocksource")?;
    Some(format!("clock source {source}"))
}

/// What the first processor reports about itself.
fn of_processor(field: &str) -> Option<String> {
    let processors = file("/proc/cpuinfo")?;
    let mut fields = processors.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(name, _)| name.trim() == field).map(|(_, value)| value.trim().to_owned())
}

fn file(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).current_dir(root()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// The date `days` after 1970-01-01, as `2026-11-20`.
fn date(mut days: u64) -> String {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 1;
    for length in [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_its_date() {
        for (days, expected) in [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (11_322, "2000-12-31"),
            (20_777, "2026-11-20"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(date(days), expected, "{days}");
        }
    }

    #[test]
    fn a_page_from_another_machine_is_not_mended_here() {
        let here = Machine("- **Machine**: A.\n- **Compiler**: rustc 1.\n".to_owned());
        assert!(here.check("\n").is_ok());
        assert!(here.check(&format!("{here}- **Run**: then.\n")).is_ok());
        let failure = here.check("- **Machine**: A.\n- **Compiler**: rustc 2.\n").unwrap_err();
        assert!(failure.0.contains("\"- **Compiler**: rustc 1.\""), "{failure}");
    }

    #[test]
    fn a_run_says_what_when_and_of_what() {
        let run = run_of("cargo xtask bench");
        assert!(run.starts_with("`cargo xtask bench`, 2"), "{run}");
    }
}
