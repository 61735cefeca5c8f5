//! Files of Envoy's rate limit service where a policy file is expected: `check` and `Live`.

use std::fs;
use std::path::PathBuf;

use sluicegate_config::document::Key;
use sluicegate_config::envoy::Descriptors;
use sluicegate_config::{Environment, Format, Live, PolicyError, PolicyFile, check};
use sluicegate_core::rule::KnownLimits;
use tempfile::TempDir;

const EVERYTHING: &str = include_str!("documents/everything.yaml");

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PolicyFile {
        fs::write(self.path(name), text).expect("a file");
        PolicyFile::new(self.path(name)).format(Descriptors::default())
    }
}

fn open(text: &str) -> Result<Live, PolicyError> {
    Live::open(Files::new().write("a.yaml", text), Environment::new())
}

/// The limits that are in force, in words.
fn in_force(live: &Live) -> Vec<String> {
    let mut limits = Vec::new();
    live.each_limit(&mut |limit| limits.push(limit.to_string()));
    limits
}

#[test]
fn a_file_of_envoys_is_read_whatever_its_extension() {
    let files = Files::new();
    let text =
        "domain: d\ndescriptors:\n- key: user\n  rate_limit: { unit: hour, requests_per_unit: 7 }";
    let file = files.write("limits.yaml", text);
    let problems = Live::open(&file, Environment::new()).expect_err("a key");
    assert!(problems.to_string().contains("limits.yaml:3:8: "), "{problems}");
    assert!(problems.to_string().contains(".with(\"user\","), "{problems}");
    let file = files.write("limits", &text.replace("user", "remote_address"));
    let live = Live::open(&file, Environment::new()).expect("valid policies");
    assert!(in_force(&live)[0].starts_with("fixed 7/hour"));
}

#[test]
fn a_file_of_envoys_needs_its_format_to_be_named() {
    let files = Files::new();
    files.write("limits.yaml", EVERYTHING);
    let problems = check(files.path("limits.yaml")).expect_err("which format?");
    assert!(problems.to_string().contains("`PolicyFile::format`"), "{problems}");
}

#[test]
fn an_empty_file_is_refused_and_an_empty_list_is_not() {
    for text in [
        "",
        "# descriptors: []\n",
        "domain: descriptors",
        "domain: d\ndescriptors:\n",
        "domain: d\ndescriptors: ~\n",
        "domain: d\ndescriptors:\n- key: remote_address\n",
        "domain: d\ndescriptors:\n- { key: remote_address, rate_limit: null }\n",
    ] {
        let problems = open(text).expect_err("nothing is said");
        assert!(!problems.to_string().is_empty(), "{text}");
    }
    for text in [
        "domain: d\ndescriptors: []\n",
        "domain: d\ndescriptors:\n- { key: remote_address, rate_limit: { unlimited: true } }",
    ] {
        assert!(in_force(&open(text).expect(text)).is_empty(), "{text}");
    }
}

#[test]
fn every_beginning_of_a_file_is_refused_or_has_all_rules_that_it_seems_to_have() {
    let known = Descriptors::default().with("user", Key::Header("user".to_owned()));
    let format = Format::from(known);
    let mut accepted = 0;
    for end in (0..EVERYTHING.len()).filter(|end| EVERYTHING.is_char_boundary(*end)) {
        let prefix = &EVERYTHING[..end];
        let Ok((document, _)) = format.read(prefix) else { continue };
        let begins = |line: &&str| line.trim_start().starts_with("requests_per_unit:");
        let seem = prefix.lines().filter(begins).count();
        assert!(seem > 0, "{prefix}");
        assert!(document.rules.len() >= seem, "{prefix}");
        accepted += 1;
    }
    assert!(accepted > 0);
}

#[test]
fn a_file_of_envoys_is_checked_too() {
    let files = Files::new();
    let text = |unit: &str| {
        format!(
            "domain: edge\ndescriptors:\n  - key: remote_address\n    \
             rate_limit: {{ unit: {unit}, requests_per_unit: 10 }}\n"
        )
    };
    let report = check(files.write("edge.yaml", &text("second"))).expect("a report").to_string();
    assert!(report.contains("edge.yaml: 1 rule\n\nremote_address: by "), "{report}");
    assert!(report.contains("\n  fixed 10/second (`remote_address`)"), "{report}");
    let problems = check(files.write("edge.yml", &text("fortnight"))).expect_err("no unit");
    assert!(
        problems.to_string().contains("edge.yml:4:25: descriptors[0].rate_limit.unit: "),
        "{problems}"
    );
}

#[test]
fn settings_without_effect_are_warnings_of_a_report() {
    let text = "domain: d\ndescriptors:\n- { key: remote_address, detailed_metric: true, \
                rate_limit: { unit: day, requests_per_unit: 1 } }";
    let report = check(Files::new().write("limits.yaml", text)).expect("a report");
    let warnings: Vec<_> = report.warnings.iter().map(ToString::to_string).collect();
    assert!(warnings.iter().any(|warning| warning.starts_with("3:43: ")), "{warnings:?}");
}
