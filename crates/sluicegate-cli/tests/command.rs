//! The command as people and CI run it.

use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path
    }
}

fn sluicegate(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate"));
    command.args(arguments).env_remove("SLUICEGATE_REDIS").env_remove("SLUICEGATE_ADMIN_TOKEN");
    command.output().expect("the command")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_valid_file_is_described_and_a_descriptor_explained() {
    let files = Files::new();
    let file = files.write(
        "ratelimit.yaml",
        "domain: edge\ndescriptors:\n- key: user\n  detailed_metric: true\n  rate_limit: { unit: minute, requests_per_unit: 5 }\n",
    );
    let file = file.to_str().expect("a path");
    let checked = sluicegate(&[
        "check",
        "--envoy",
        file,
        "--descriptor",
        "user=alice",
        "--descriptor",
        "user=alice,path=/x",
    ]);
    let said = text(&checked.stdout);
    assert!(checked.status.success(), "{said}");
    assert!(said.contains("domain \"edge\", 1 limit\n"), "{said}");
    assert!(said.contains("ratelimit.yaml:4:") && said.contains("detailed_metric"), "{said}");
    assert!(said.contains("user=alice meets user: 5 per minute"), "{said}");
    assert!(said.contains("user=alice,path=/x meets no limit"), "{said}");
}

#[test]
fn a_file_with_errors_names_each_with_its_line_and_fails() {
    let files = Files::new();
    let file = files.write(
        "ratelimit.yaml",
        "domain: edge\ndescriptors:\n- key: user\n  rate_limit: { unit: fortnight, requests_per_unit: many }\n",
    );
    let checked = sluicegate(&["check", "--envoy", file.to_str().expect("a path")]);
    let said = text(&checked.stderr);
    assert_eq!(checked.status.code(), Some(1));
    assert!(said.contains("ratelimit.yaml:4:23:") && said.contains("fortnight"), "{said}");
    assert!(said.contains("many"), "{said}");
    assert_eq!(said.matches("fortnight").count(), 1, "{said}");
}

#[test]
fn two_files_with_one_domain_are_an_error() {
    let files = Files::new();
    let text_of = "domain: edge\ndescriptors:\n- key: user\n  rate_limit: { unit: day, requests_per_unit: 1 }\n";
    files.write("a.yaml", text_of);
    files.write("b.yaml", text_of);
    let checked = sluicegate(&["check", "--envoy", files.0.path().to_str().expect("a path")]);
    assert_eq!(checked.status.code(), Some(1));
    let said = text(&checked.stderr);
    assert!(said.contains("b.yaml") && said.contains("`edge`"), "{said}");
}

#[test]
fn a_request_is_explained_by_rules() {
    let files = Files::new();
    let file = files.write(
        "rules.toml",
        "[[rules]]\nname = \"login\"\nkey = \"ip\"\nlimits = [\"5/minute\"]\nwhen = { method = \"POST\", path = \"/login\" }\ncost = 2\n",
    );
    let file = file.to_str().expect("a path");
    let check = |more: &[&str]| {
        let checked = sluicegate(&[&["check", "--rules", file], more].concat());
        (checked.status.success(), text(&checked.stdout))
    };
    let (is_valid, said) =
        check(&["--method", "POST", "--path", "/login?next=/", "--ip", "192.0.2.7"]);
    assert!(is_valid && said.contains("POST /login is charged:\n  2 by login: 5/minute"), "{said}");
    let (is_valid, said) = check(&["--path", "/login"]);
    assert!(is_valid && said.contains("GET /login is charged by no limit"), "{said}");
    let (is_valid, said) = check(&["--method", "POST", "--path", "/login"]);
    assert!(!is_valid && said.contains("cannot be decided") && said.contains("address"), "{said}");
}

#[test]
fn what_is_wrong_with_the_options_is_said_before_anything_is_served() {
    let files = Files::new();
    let file = files.write(
        "ratelimit.yaml",
        "domain: edge\ndescriptors:\n- key: user\n  rate_limit: { unit: day, requests_per_unit: 1 }\n",
    );
    let file = file.to_str().expect("a path");
    for (more, what) in [
        (&["--admin", "0.0.0.0:0"][..], "token"),
        (&["--admin-token", "short"], "at least 16 bytes"),
        (&["--keys", "0"], "at least 1"),
        (&["--redis", "http://x"], "--redis"),
        (&["--log-level", "info,x=loud"], "--log-level"),
        (&["--grpc", "here"], "`off`"),
        (&["--tls-certificate", "x"], "--tls-key"),
        (&["--deadline-ms", "0"], "--deadline-ms"),
        (&["--connections", "0"], "at least 1"),
        (&["--admin", "off"], "every port is off"),
    ] {
        let ports = ["serve", "--envoy", file, "--http", "off", "--grpc", "off"];
        let arguments = match more[0] {
            "--grpc" => [&ports[..5], more].concat(),
            _ => [&ports[..], more].concat(),
        };
        let served = sluicegate(&arguments);
        let said = text(&served.stderr);
        assert!(!served.status.success(), "{more:?}");
        assert!(said.contains(what), "{more:?}: {said}");
    }
    assert_eq!(sluicegate(&["serve"]).status.code(), Some(2));
}

#[test]
fn an_example_that_no_file_can_explain_is_an_error() {
    let files = Files::new();
    let rules = files.write(
        "rules.toml",
        "[[rules]]\nname = \"all\"\nkey = { const = \"all\" }\nlimits = [\"5/minute\"]\n",
    );
    let domain = files.write("ratelimit.yaml", "domain: edge\ndescriptors: []\n");
    for (kind, file, example, missing) in [
        ("--rules", &rules, &["--descriptor", "user=alice"][..], "--envoy"),
        ("--envoy", &domain, &["--path", "/login"], "--rules"),
        ("--envoy", &domain, &["--method", "POST"], "--rules"),
        ("--envoy", &domain, &["--header", "x: y"], "--rules"),
        ("--envoy", &domain, &["--claim", "x=y"], "--rules"),
        ("--envoy", &domain, &["--ip", "192.0.2.7"], "--rules"),
        ("--envoy", &domain, &["--host", "x"], "--rules"),
    ] {
        let file = file.to_str().expect("a path");
        let checked = sluicegate(&[&["check", kind, file], example].concat());
        let said = text(&checked.stderr);
        assert_eq!(checked.status.code(), Some(2), "{example:?}: {said}");
        assert!(said.contains(missing), "{said}");
    }
}
