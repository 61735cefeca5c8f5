//! The unit of systemd.

use std::collections::BTreeSet;
use std::process::{Command, Output};

use sluicegate_counterparts::{find, root, sluicegate};

use crate::packaging::program::{assert_serves_as, read, served};

const FILE: &str = "packaging/systemd/sluicegate.service";

/// 0 is nothing that an attacker could do, 10 is everything, in tenths. systemd calls up to 2 "OK".
const EXPOSURE: &str = "15";

/// Runs systemd-analyze on the unit, with our program in its place.
fn analyze(arguments: &[&str], change: impl Fn(String) -> String) -> Output {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("sluicegate.service");
    let program = sluicegate().display().to_string();
    std::fs::write(&file, change(read(FILE)).replace("/usr/bin/sluicegate", &program))
        .expect("a file");
    let mut command = Command::new(find("systemd-analyze"));
    command.args(arguments).arg(file).output().expect("systemd-analyze")
}

#[test]
fn systemd_finds_nothing_wrong_with_the_unit() {
    let output = analyze(&["verify", "--man=no"], |text| text);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // It also says what is wrong with other units of the machine.
    assert!(!said.contains("sluicegate"), "{said}");
    let output = analyze(&["verify", "--man=no"], |text| text.replace("Type=notify", "Type=loud"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("sluicegate.service"));
}

#[test]
fn systemd_calls_the_exposure_of_the_unit_low() {
    let arguments = ["security", "--offline=true", "--no-pager", "--threshold", EXPOSURE];
    let output = analyze(&arguments, |text| text);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    let weaker =
        |text: String| text.replace("DynamicUser=yes\n", "").replace("NoNewPrivileges=yes\n", "");
    assert!(!analyze(&arguments, weaker).status.success());
}

/// A forbidden call would fail under systemd, and nowhere else.
#[test]
fn the_server_makes_only_system_calls_that_the_unit_allows() {
    let unit = read(FILE);
    let mut allowed = BTreeSet::new();
    for line in unit.lines().filter_map(|line| line.strip_prefix("SystemCallFilter=")) {
        for group in line.trim_start_matches('~').split(' ') {
            let calls = calls(group);
            match line.starts_with('~') {
                true => allowed.retain(|call| !calls.contains(call)),
                false => allowed.extend(calls),
            }
        }
    }
    assert!(allowed.contains("read") && !allowed.contains("mount"), "{allowed:?}");
    let directory = tempfile::tempdir().expect("a directory");
    let trace = directory.path().join("trace");
    let rules = format!("--rules={}", root().join("packaging/rules.toml").display());
    let mut strace = Command::new(find("strace"));
    // The program is our child, and not the one of strace.
    strace.args(["-D", "-f", "-qq", "--signal=none", "-o"]).arg(&trace);
    assert_serves_as(served(&[String::from("serve"), rules], Some(strace)));

    let trace = std::fs::read_to_string(trace).expect("a trace");
    let calls = trace.lines().filter_map(|line| line.split_whitespace().nth(1)?.split_once('('));
    // Of a thread that was killed before strace could look, it does not know the call.
    let calls = calls.map(|(call, _)| call.to_owned()).filter(|call| call != "???");
    let made: BTreeSet<_> = calls.collect();
    assert!(made.contains("epoll_wait") && made.contains("listen"), "{made:?}");
    let forbidden: Vec<_> = made.difference(&allowed).collect();
    assert!(forbidden.is_empty(), "{forbidden:?}");
}

/// The system calls of a group, and of the groups in it.
fn calls(group: &str) -> BTreeSet<String> {
    let mut command = Command::new(find("systemd-analyze"));
    let output = command.args(["syscall-filter", "--no-pager", group]).output().expect("a list");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut calls = BTreeSet::new();
    let names = text.lines().skip(1).map(str::trim);
    for name in names.filter(|name| !name.is_empty() && !name.starts_with('#')) {
        match name.starts_with('@') {
            true => calls.extend(self::calls(name)),
            false => drop(calls.insert(name.to_owned())),
        }
    }
    calls
}

#[test]
fn the_unit_waits_longer_than_a_drain() {
    let unit = read(FILE);
    let longest = unit.lines().find_map(|line| line.strip_prefix("TimeoutStopSec="));
    let longest: u32 = longest.expect("a time").parse().expect("seconds");
    let help = Command::new(sluicegate()).args(["serve", "-h"]).output().expect("the help");
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let (_, drain) = help.split_once("--drain <SECONDS>").expect("an option");
    let (_, default) = drain.split_once("[default: ").expect("a default");
    let default: u32 = default.split(']').next().expect("a number").parse().expect("seconds");
    assert!(longest > default, "{longest} {default}");
}

#[test]
fn the_unit_and_the_defaults_of_the_debian_package_start_the_same_server() {
    let options = "--rules /etc/sluicegate/rules.toml";
    assert!(read(FILE).contains(&format!("\nEnvironment=\"SLUICEGATE_OPTIONS={options}\"\n")));
    assert!(
        read("packaging/debian/default").contains(&format!("\nSLUICEGATE_OPTIONS=\"{options}\"\n"))
    );
}
