//! The command as a service: what it tells systemd, and what a container asks it.
#![cfg(unix)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;

const RULES: &str = "[[rules]]\nname = \"api\"\nkey = \"ip\"\nlimits = [\"5/minute\"]\n";

/// A server on free ports. It ends with this.
struct Served {
    child: Child,
    /// Log lines in JSON.
    log: BufReader<std::process::ChildStderr>,
    directory: TempDir,
}

impl Served {
    fn start(set: impl FnOnce(&mut Command)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let rules = directory.path().join("rules.toml");
        std::fs::write(&rules, RULES).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate"));
        command.args(["serve", "--log", "json", "--no-watch", "--grpc", "off"]);
        command.args(["--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--rules"]).arg(rules);
        command.env_remove("SLUICEGATE_REDIS").env_remove("SLUICEGATE_ADMIN_TOKEN");
        command.env_remove("NOTIFY_SOCKET").stderr(Stdio::piped());
        set(&mut command);
        let mut child = command.spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        Self { child, log, directory }
    }

    /// Where a port is open, once the log says so.
    fn address(&mut self, port: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.log.read_line(&mut line).unwrap(), 0, "the server ended");
            if line.contains(&format!("\"port\":\"{port}\"")) {
                let (_, rest) = line.split_once("\"address\":\"").unwrap();
                return rest.split('"').next().unwrap().to_owned();
            }
        }
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn health(arguments: &[&str], token: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate"));
    command.arg("health").args(arguments).env_remove("SLUICEGATE_ADMIN_TOKEN");
    if let Some(token) = token {
        command.env("SLUICEGATE_ADMIN_TOKEN", token);
    }
    command.output().unwrap()
}

#[test]
fn systemd_is_told_when_the_server_is_ready_reloads_and_stops() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("notify");
    let manager = UnixDatagram::bind(&socket).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let told = || {
        let mut bytes = [0; 512];
        let length = manager.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    let mut served = Served::start(|command| {
        command.env("NOTIFY_SOCKET", &socket);
    });
    assert_eq!(told().trim(), "READY=1");
    let address = served.address("HTTP");
    assert!(health(&["--address", &address], None).status.success());

    served.signal("-HUP");
    let reloading = told();
    let words: Vec<_> = reloading.lines().collect();
    assert_eq!(words[0], "RELOADING=1");
    assert!(words[1].starts_with("MONOTONIC_USEC="), "{reloading}");
    assert_eq!(told().trim(), "READY=1");

    // A reload that fails ends too.
    std::fs::write(served.directory.path().join("rules.toml"), "[[rules]]\nname = 1\n").unwrap();
    served.signal("-HUP");
    assert!(told().starts_with("RELOADING=1"));
    assert_eq!(told().trim(), "READY=1");

    served.signal("-TERM");
    assert_eq!(told().trim(), "STOPPING=1");
    assert!(served.child.wait().unwrap().success());
}

#[test]
fn a_service_manager_that_is_away_does_not_stop_the_server() {
    let mut served = Served::start(|command| {
        command.env("NOTIFY_SOCKET", "/nonexistent/notify");
    });
    let address = served.address("HTTP");
    assert!(health(&["--address", &address], None).status.success());
}

#[test]
fn health_asks_both_ports_that_speak_http() {
    let mut served = Served::start(|_| ());
    for port in ["HTTP", "admin"] {
        let address = served.address(port);
        assert!(health(&["--address", &address], None).status.success(), "{port}");
        assert!(health(&["--address", &address, "--live"], None).status.success(), "{port}");
    }
}

#[test]
fn health_presents_the_token_of_the_admin_port() {
    let token = "a token of 20 bytes!";
    let mut served = Served::start(|command| {
        command.env("SLUICEGATE_ADMIN_TOKEN", token);
    });
    let address = served.address("admin");
    assert!(health(&["--address", &address], Some(token)).status.success());
    let refused = health(&["--address", &address], Some("another token of 20 bytes"));
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("401"), "{said}");
    let split = health(&["--address", &address], Some("a\r\nx: token of some bytes"));
    assert!(String::from_utf8_lossy(&split.stderr).contains("line break"));
}

#[test]
fn a_server_that_drains_is_live_but_not_ready() {
    let mut served = Served::start(|command| {
        command.args(["--drain-delay", "600"]);
    });
    let address = served.address("HTTP");
    served.signal("-TERM");
    let mut line = String::new();
    while !line.contains("\"stopping\"") {
        line.clear();
        assert_ne!(served.log.read_line(&mut line).unwrap(), 0, "the server ended");
    }
    let refused = health(&["--address", &address], None);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("/readyz answers 503"));
    assert!(health(&["--address", &address, "--live"], None).status.success());
}

#[test]
fn what_does_not_answer_like_a_server_is_not_healthy() {
    for (answer, said) in [
        (&b"HTTP/1.1 503 Service Unavailable\r\n\r\n"[..], "answers 503"),
        (b"HTTP/1.1 2000 OK\r\n\r\n", "does not speak HTTP"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "does not speak HTTP"),
        (b"", "does not speak HTTP"),
        (&[b'x'; 100_000], "does not speak HTTP"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(answer);
        });
        let output = health(&["--address", &address], None);
        server.join().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn a_server_that_never_answers_is_given_up_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    // Nobody accepts the connection. The system does so for the listener.
    let output = health(&["--address", &address, "--timeout-ms", "50"], None);
    assert_eq!(output.status.code(), Some(1));
    drop(listener);
}
