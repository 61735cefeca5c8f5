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
fn a_file_of_a_proxy_is_described_and_a_circle_is_found() {
    let check = |listen: &str, upstream: &str| {
        let files = Files::new();
        let listen =
            if listen.is_empty() { "" } else { &format!("[listen]\naddress = \"{listen}\"\n") };
        let upstream = format!("[upstream]\nurl = \"{upstream}\"\n");
        let file = files.write("proxy.toml", &format!("rules = []\n{listen}{upstream}"));
        let checked = sluicegate(&["check", "--rules", file.to_str().expect("a path")]);
        assert!(checked.status.success(), "{}", text(&checked.stderr));
        text(&checked.stdout)
    };
    let said = check("0.0.0.0:8080", "https://app");
    assert!(said.contains("a proxy listens at 0.0.0.0:8080, for https://app"), "{said}");
    assert!(!said.contains("circle"), "{said}");
    for (listen, upstream, is_circle) in [
        ("0.0.0.0:8080", "http://127.0.0.1:8080", true),
        ("[::]:8080", "http://localhost:8080", true),
        ("10.0.0.7:80", "http://10.0.0.7", true),
        ("127.0.0.1:8080", "http://127.0.0.1:3000", false),
        ("10.0.0.7:80", "http://127.0.0.1", false),
    ] {
        let said = check(listen, upstream);
        assert_eq!(said.contains("circle"), is_circle, "{listen} {upstream}: {said}");
    }
    assert!(check("", "http://app").contains("`[upstream]` without `[listen]`"));
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
fn a_file_of_capacity_is_described_and_its_errors_have_their_lines() {
    let files = Files::new();
    let good = "[[capacity]]\nname = \"db\"\nlimit = \"1000/second burst 100\"\n\
        [[capacity.envoy]]\ndomain = \"edge\"\nbucket = { service = \"db\", tenant = \"*\" }\n";
    let file = files.write("capacity.toml", good);
    let checked = sluicegate(&["check", "--capacity", file.to_str().expect("a path")]);
    let said = text(&checked.stdout);
    assert!(checked.status.success(), "{said}");
    assert!(said.contains("db: 1000 a second, bursts of 100, leases of 20s\n"), "{said}");
    assert!(said.contains("domain edge, service=db, tenant=*, weight 1, band 0"), "{said}");

    let file = files.write("capacity.toml", &good.replace("1000/second", "1000/fortnight"));
    let checked = sluicegate(&["check", "--capacity", file.to_str().expect("a path")]);
    let said = text(&checked.stderr);
    assert_eq!(checked.status.code(), Some(1));
    assert!(said.contains("capacity.toml:3:9: capacity[0].limit:"), "{said}");
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
fn files_that_are_merged_are_checked_as_a_server_reads_them() {
    let limit = "rate_limit: { unit: day, requests_per_unit: 1 }";
    let check = |one: &str, other: &str| {
        let files = Files::new();
        files.write("a.yaml", &format!("domain: edge\ndescriptors:\n{one}"));
        files.write("b.yaml", &format!("domain: edge\ndescriptors:\n{other}"));
        let directory = files.0.path().to_str().expect("a path");
        let checked = sluicegate(&["check", "--envoy", directory, "--envoy-merge"]);
        (checked.status.code(), text(&checked.stderr))
    };
    let user = format!("- {{ key: user, {limit} }}\n");
    let path = format!("- {{ key: path, {limit} }}\n");
    assert_eq!(check(&user, &path), (Some(0), String::new()));
    let (code, said) = check(&user, &user);
    assert_eq!(code, Some(1));
    assert!(said.contains("b.yaml: descriptors: `user` is there already: "), "{said}");
    let wild = |name: &str| {
        let value = |at| format!("- {{ key: user, value: '{name}{at}*', {limit} }}\n");
        (0..200).map(value).collect::<String>()
    };
    let (code, said) = check(&wild("a"), &wild("b"));
    assert_eq!(code, Some(1));
    assert!(said.contains("`user` has more than 256 values with `*` together"), "{said}");
    // A file that is not valid is told once.
    let (code, said) = check(&user, "- { key: user, rate_limit: { unit: fortnight } }");
    assert_eq!((code, said.matches("fortnight").count()), (Some(1), 1), "{said}");
    // Two ways with one spelling are two limits.
    let below = format!("- key: a\n  value: b\n  {limit}\n");
    assert_eq!(check(&format!("- {{ key: a_b, {limit} }}\n"), &below).0, Some(0));
}

#[test]
fn a_proxy_provides_its_layers_itself() {
    let check = |proxy: &str| {
        let files = Files::new();
        let more = "rules = []\nhold_until = \"head\"\n\
            [throttle]\ncapacity = { in_flight = 9 }\nqueue = \"1 second\"\n";
        let file = files.write("proxy.toml", &format!("{more}{proxy}"));
        text(&sluicegate(&["check", "--rules", file.to_str().expect("a path")]).stdout)
    };
    let said = check(
        "[listen]\naddress = \"0.0.0.0:8080\"\n[upstream]\nurl = \"http://127.0.0.1:3000\"\n",
    );
    assert!(said.contains("a proxy listens at") && !said.contains("provided by"), "{said}");
    assert!(check("").contains("provided by the service:"));
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
        (&["--redis-lease"], "--redis"),
        (&["--redis-key-secret", "of sixteen bytes and more"], "--redis"),
        (&["--redis-key-secret", "fifteen bytes..\n", "--redis", "redis://x"], "at least 16 bytes"),
        (&["--redis-lease=1", "--redis", "redis://x"], "--redis-lease"),
        (&["--redis-cluster"], "--redis"),
        (&["--redis-sentinels", "redis://x"], "--redis"),
        (
            &["--redis", "redis://x", "--redis-cluster", "--redis-sentinels", "redis://y"],
            "--redis-sentinels",
        ),
        (&["--redis", "redis://", "--redis-sentinels", "redis://y"], "--redis"),
        (&["--redis", "redis://x,y", "--redis-cluster"], "--redis"),
        (
            &["--redis", "rediss://x", "--redis-authorities", "/nowhere"],
            "--redis-authorities: /nowhere",
        ),
        (&["--redis", "rediss://x", "--redis-certificate", "/nowhere"], "--redis-key"),
        (&["--redis-prefix", "x:"], "--redis"),
        (&["--log-level", "info,x=loud"], "--log-level"),
        (&["--grpc", "here"], "`off`"),
        (&["--tls-certificate", "x"], "--tls-key"),
        (&["--deadline-ms", "0"], "--deadline-ms"),
        (&["--connections", "0"], "at least 1"),
        (&["--keys", "18446744073709551615"], "--keys: expected less than 4294967296"),
        (&["--redis", "redi://x"], "expected `redis`, `rediss`"),
        (&["--log-level", "wran"], "`wran` is not a level"),
        (&["--log-level", "info,loud"], "`loud` is not a level"),
        (&["--grpc", "localhost:0"], "an IP address and a port"),
        (
            &["--tls-certificate", "/", "--tls-key", "/"],
            "/: the file cannot be read: it is a directory",
        ),
        (
            &["--tls-certificate", "/nowhere", "--tls-key", "/"],
            "/nowhere: the file cannot be read: No such file",
        ),
        (&["--tls-certificate", file, "--tls-key", "/"], "there is no certificate in PEM"),
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

/// A server sees no bodies: only clients of its HTTP port can tell it how many tokens a request uses.
#[test]
fn a_server_that_nobody_can_tell_the_tokens_does_not_start() {
    let files = Files::new();
    let rule = "[[rules]]\nname = \"tokens\"\nkey = \"ip\"\nlimits = [\"5/minute\"]\n\
                cost = { tokens = \"all\", default = 3 }\n";
    let file = files.write("rules.toml", rule);
    let file = file.to_str().expect("a path");
    let off =
        ["serve", "--rules", file, "--http", "off", "--grpc", "127.0.0.1:0", "--admin", "off"];
    let served = sluicegate(&off);
    let said = text(&served.stderr);
    assert_eq!(served.status.code(), Some(1), "{said}");
    assert!(said.contains("a rule counts tokens"), "{said}");

    let checked = sluicegate(&["check", "--rules", file]);
    assert!(text(&checked.stdout).contains("warning: a rule counts tokens."));
    let proxied = format!(
        "[listen]\naddress = \"127.0.0.1:0\"\n[upstream]\nurl = \"http://127.0.0.1:1\"\n{rule}"
    );
    let file = files.write("proxy.toml", &proxied);
    let checked = sluicegate(&["check", "--rules", file.to_str().expect("a path")]);
    let said = text(&checked.stdout);
    assert!(checked.status.success() && !said.contains("tokens."), "{said}");
    assert!(!said.contains("the layer that estimates tokens"), "{said}");
}

/// A server answers questions about requests, and passes none on.
#[test]
fn a_server_does_not_start_with_a_throttle_that_would_do_nothing() {
    let files = Files::new();
    let rules = "rules = []\n[throttle]\ncapacity = { in_flight = 5 }\nqueue = { cost = 1 }\n";
    let proxied = format!(
        "{rules}[listen]\naddress = \"127.0.0.1:0\"\n[upstream]\nurl = \"http://127.0.0.1:1\"\n"
    );
    for (name, written, is_checked) in
        [("served.toml", rules, false), ("proxied.toml", &proxied, true)]
    {
        let file = files.write(name, written);
        let file = file.to_str().expect("a path");
        let serve =
            ["serve", "--rules", file, "--http", "off", "--grpc", "127.0.0.1:0", "--admin", "off"];
        let served = sluicegate(&serve);
        let said = text(&served.stderr);
        assert_eq!(served.status.code(), Some(1), "{said}");
        assert!(said.contains("2:1: throttle: a server that passes no requests on"), "{said}");

        let checked = sluicegate(&["check", "--rules", file]);
        let said = text(&checked.stderr);
        assert_eq!(checked.status.success(), is_checked, "{said}");
        assert_eq!(said.contains("throttle: a server that passes"), !is_checked, "{said}");
    }
}

/// The proxies that ask a server are named by its option. A proxy has its file alone.
#[test]
fn a_file_without_proxies_is_warned_of_where_no_option_names_them() {
    let files = Files::new();
    let rule = "[[rules]]\nname = \"all\"\nkey = \"ip\"\nlimits = [\"5/minute\"]\n";
    let proxied = format!(
        "[listen]\naddress = \"127.0.0.1:0\"\n[upstream]\nurl = \"http://127.0.0.1:1\"\n{rule}"
    );
    for (name, written, is_warned) in
        [("served.toml", rule, false), ("proxied.toml", &proxied, true)]
    {
        let file = files.write(name, written);
        let checked = sluicegate(&["check", "--rules", file.to_str().expect("a path")]);
        let said = text(&checked.stdout);
        assert!(checked.status.success(), "{said}");
        assert_eq!(said.contains("behind a proxy, say so"), is_warned, "{said}");
    }
}

#[test]
fn a_file_that_was_given_to_the_wrong_option_is_an_error_that_names_the_right_one() {
    let files = Files::new();
    let rules = "[[rules]]\nname = \"all\"\nkey = \"global\"\nlimits = [\"5/minute\"]\n";
    let domain = "domain: edge\ndescriptors: []\n";
    for (kind, name, written, what) in [
        ("--rules", "limits.yaml", domain, "is named by `--envoy`"),
        ("--rules", "limits.yml", rules, "their names end in .toml or .json"),
        ("--rules", "limits.conf", rules, "has to end in .toml or .json"),
        ("--rules", "limits", rules, "has to end in .toml or .json"),
        ("--rules", "", "", "it is a directory, expected a file"),
        ("--capacity", "", "", "it is a directory, expected a file"),
        ("--capacity", "limits.yaml", domain, "is named by `--envoy`"),
        ("--envoy", "limits.toml", rules, "rules in TOML are named by `--rules`"),
        ("--envoy", "empty.yaml", "", "the file is empty, expected a map of fields"),
    ] {
        let path = match name {
            "" => files.0.path().to_owned(),
            name => files.write(name, written),
        };
        let path = path.to_str().expect("a path");
        for arguments in [
            &["check", kind, path][..],
            &["serve", kind, path, "--http", "off", "--grpc", "off", "--admin", "off"],
        ] {
            let ended = sluicegate(arguments);
            let said = text(&ended.stderr);
            assert_eq!(ended.status.code(), Some(1), "{arguments:?}: {said}");
            assert!(said.contains(what), "{arguments:?}: {said}");
            assert!(!said.contains("PolicyFile"), "{arguments:?}: {said}");
        }
    }
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

#[cfg(unix)]
#[test]
fn what_is_no_file_is_reported_at_once_and_not_read_without_end() {
    let files = Files::new();
    let pipe = files.0.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    for (kind, ending) in [("--rules", "toml"), ("--envoy", "yaml"), ("--capacity", "toml")] {
        let long = files.0.path().join("long").with_extension(ending);
        let made = std::fs::File::create(&long).and_then(|file| file.set_len(1 << 40));
        made.expect("a file of holes");
        for (path, what) in [
            (pipe.as_path(), "it is a pipe"),
            (std::path::Path::new("/dev/zero"), "it is a device"),
            (&long, "longer than 33554432 bytes"),
        ] {
            let checked = sluicegate(&["check", kind, path.to_str().expect("a path")]);
            let said = text(&checked.stderr);
            assert_eq!(checked.status.code(), Some(1), "{kind}: {said}");
            assert!(said.contains(what), "{kind}: {said}");
        }
    }
}

#[test]
fn what_a_file_says_does_nothing_to_the_terminal() {
    let files = Files::new();
    for (kind, name, written) in [
        (
            "--rules",
            "rules.toml",
            "[[rules]]\nname = \"all\"\nkey = { header = \"\\u001b[2J\" }\nlimits = [\"\\u001b[2J\"]\n",
        ),
        (
            "--capacity",
            "capacity.toml",
            "[[capacity]]\nname = \"\\u001b[2J\"\nlimit = \"\\u202e\"\n",
        ),
        (
            "--envoy",
            "ratelimit.yaml",
            "domain: edge\ndescriptors:\n- key: \"\\e[2J\"\n  x: \"\\u202e\"\n",
        ),
    ] {
        let file = files.write(name, written);
        let checked = sluicegate(&["check", kind, file.to_str().expect("a path")]);
        let said = text(&checked.stderr) + &text(&checked.stdout);
        assert_eq!(checked.status.code(), Some(1), "{said}");
        let is_harmful = |char: char| (char.is_control() && char != '\n') || char == '\u{202e}';
        assert!(!said.contains(is_harmful), "{said:?}");
    }
}

/// As in `sluicegate check .. | head -1`.
#[cfg(unix)]
#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let files = Files::new();
    let file = files.write(
        "rules.toml",
        "[[rules]]\nname = \"all\"\nkey = { const = \"all\" }\nlimits = [\"5/minute\"]\n",
    );
    let file = file.to_str().expect("a path");
    for arguments in [&["check", "--rules", file][..], &["man", "serve"], &["completions", "bash"]]
    {
        // The end for reading is closed before the command starts.
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate"));
        let ended = command.args(arguments).stdout(writer).output().expect("the command");
        let said = text(&ended.stderr);
        assert!(ended.status.success(), "{arguments:?}: {:?} {said}", ended.status);
        assert_eq!(said, "", "{arguments:?}");
    }
}
