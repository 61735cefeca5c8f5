//! Access logs of nginx, Caddy, HAProxy and Envoy in front of a server in trial mode, and their replay: the same requests
//! would have been refused.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use sluicegate_counterparts::sluicegate;
use sluicegate_tests::command::Sluicegate;

use crate::proxies::client::{get, get_as};
use crate::proxies::program::Program;
use crate::proxies::scene::Scene;
use crate::proxies::{caddy, envoy, haproxy, nginx};

/// Five at once, and one more each second.
const RULES: &str = "[[rules]]\nname = \"api\"\nkey = \"ip\"\nlimits = [\"60/minute burst 5\"]\nreject = \"shadow\"\n";
const BURST: i64 = 5;
const SECOND: i64 = 1_000_000;

/// How exactly the logs know when a request came, in microseconds: start and duration are in milliseconds.
const RESOLUTION: i64 = 2_000;

/// A server in trial mode, its rules, and an application.
struct Trial {
    scene: Scene,
    server: Sluicegate,
    folder: tempfile::TempDir,
}

/// A request that was sent and answered between two moments, in microseconds.
struct TrialRequest {
    client: u8,
    from: i64,
    until: i64,
    is_refused: bool,
}

impl Trial {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let rules = folder.path().join("rules.toml");
        fs::write(&rules, RULES).expect("a file");
        let rules = rules.to_str().expect("text");
        let options = ["--rules", rules, "--admin", "127.0.0.1:0", "--deadline-ms", "10000"];
        let server = Sluicegate::start(sluicegate(), "domain: none\ndescriptors: []\n", &options);
        let scene = Scene::with_server_at(server.http, server.grpc).await;
        Self { scene, server, folder }
    }

    fn log(&self) -> std::path::PathBuf {
        self.folder.path().join("access.log")
    }

    /// How many requests would have been refused so far.
    async fn refused(&self) -> u64 {
        let metrics = get(self.server.port("admin"), "/metrics").await.body;
        let is_one = |line: &&str| {
            line.starts_with("sluicegate_decisions_total{") && line.contains("verdict=\"shadowed\"")
        };
        let counts = metrics.lines().filter(is_one).filter_map(|line| line.rsplit_once(' '));
        counts.map(|(_, count)| count.parse::<u64>().expect("a number")).sum()
    }

    /// Clients send bursts through the proxy, one request after the other, some of them while others pause.
    async fn send_bursts(&self, proxy: &Program) -> Vec<TrialRequest> {
        const REQUESTS: usize = 60;
        let mut state = 1_u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let mut sent = Vec::new();
        let mut refused = 0;
        while sent.len() < REQUESTS {
            let client = 1 + next(6) as u8;
            for _ in 0..=next(8) {
                let from = now() - RESOLUTION;
                let answer = get_as(client, proxy.address, "/trial?a=b", &[]).await;
                let until = now() + RESOLUTION;
                assert_eq!(answer.status, 200, "{}", proxy.log());
                let before = std::mem::replace(&mut refused, self.refused().await);
                sent.push(TrialRequest { client, from, until, is_refused: refused > before });
            }
        }
        sent
    }

    /// What a replay of these lines by a file of rules says of the rule.
    fn replayed(&self, rules: &str, lines: &[&str]) -> Value {
        let log = self.folder.path().join("part.log");
        fs::write(&log, lines.join("\n")).expect("a file");
        let mut command = Command::new(sluicegate());
        command.arg("replay").arg(&log).args(["--json", "--rules"]);
        let output = command.arg(self.folder.path().join(rules)).output().expect("a replay");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let mut report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(report["requests"], lines.len(), "{said}");
        report["policies"][0].take()
    }

    /// Replays the log, which has a line for each request in their order, and compares each verdict.
    async fn compare(&self, sent: &[TrialRequest], log: impl Fn() -> String) {
        let is_one = |line: &&str| line.contains("/trial?a=b");
        // Some proxies write after some time.
        let mut text = log();
        for _ in 0..600 {
            if text.lines().filter(is_one).count() >= sent.len() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            text = log();
        }
        let lines: Vec<_> = text.lines().filter(is_one).collect();
        assert_eq!(lines.len(), sent.len(), "{text}");
        let (mut before, mut known) = (0, 0);
        let mut clients = HashMap::new();
        for (at, one) in sent.iter().enumerate() {
            let refused = count(&self.replayed("rules.toml", &lines[..=at]), "refused_on_trial");
            let is_refused = refused > std::mem::replace(&mut before, refused);
            let bucket = clients.entry(one.client).or_insert(Bucket { least: 0, most: 0 });
            let Some(expected) = bucket.ask(one) else { continue };
            known += 1;
            assert_eq!(one.is_refused, expected, "live, request {at}");
            assert_eq!(
                is_refused,
                expected,
                "replayed, request {at}:\n{}",
                lines[..=at].join("\n")
            );
        }
        let all = sent.len();
        let refused = sent.iter().filter(|one| one.is_refused).count();
        eprintln!(
            "{all} requests, {refused} would have been refused, {known} are known, {before} in the replay"
        );
        assert!(refused > all / 10, "{refused} of {all}");
        assert!(known > all / 2, "only {known} of {all} verdicts do not depend on milliseconds");
    }
}

/// A bucket by times that are not known exactly: when it will have drained, at least and at most.
struct Bucket {
    least: i64,
    most: i64,
}

impl Bucket {
    /// Whether a request is refused. `None`: it depends on when exactly it came. From then on, both may be true.
    fn ask(&mut self, TrialRequest { from, until, .. }: &TrialRequest) -> Option<bool> {
        let is_admitted = |drained: i64, now: i64| drained.max(now) - now <= (BURST - 1) * SECOND;
        let after =
            Self { least: self.least.max(*from) + SECOND, most: self.most.max(*until) + SECOND };
        if is_admitted(self.most, *from) {
            *self = after;
            Some(false)
        } else if !is_admitted(self.least, *until) {
            Some(true)
        } else {
            self.most = after.most;
            None
        }
    }
}

fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time");
    now.as_micros() as i64
}

fn count(policy: &Value, name: &str) -> u64 {
    policy[name].as_u64().unwrap_or_default()
}

fn read(log: &Path) -> String {
    fs::read_to_string(log).unwrap_or_default()
}

#[tokio::test]
async fn a_replay_of_nginx_refuses_what_the_server_would_have_refused() {
    let trial = Trial::new().await;
    let (log, coarse) = (trial.log(), trial.folder.path().join("coarse.log"));
    let proxy = nginx::start_with(&trial.scene, |server| {
        let format = "log_format own escape=json '{\"msec\":$msec,\"remote_addr\":\"$remote_addr\",\"request\":\"$request\",\
                      \"status\":$status,\"request_time\":$request_time}';";
        let logs = format!(
            "access_log {} own;\naccess_log {} combined;\nserver_name",
            log.display(),
            coarse.display()
        );
        format!("{format}\n{}", server.replace("server_name", &logs).replace("timeout 1s", "timeout 10s"))
    })
    .await;
    let sent = trial.send_bursts(&proxy).await;
    trial.compare(&sent, || read(&log)).await;
    // A log with whole seconds gives bounds, if the rule is in force.
    let rules = RULES.replace("reject = \"shadow\"", "");
    fs::write(trial.folder.path().join("enforced.toml"), rules).expect("a file");
    let text = read(&coarse);
    let policy = trial.replayed("enforced.toml", &text.lines().collect::<Vec<_>>());
    let live = sent.iter().filter(|one| one.is_refused).count() as u64;
    let bounds = &policy["bounds"];
    eprintln!("{bounds}, {live} live");
    assert!(
        count(bounds, "at_least") <= live && live <= count(bounds, "at_most"),
        "{policy} {live}"
    );
}

#[tokio::test]
async fn a_replay_of_caddy_refuses_what_the_server_would_have_refused() {
    let trial = Trial::new().await;
    let log = trial.log();
    let proxy = caddy::start_changed(&trial.scene, "Caddyfile", |site| {
        let log = format!("{{\n\tlog {{\n\t\toutput file {}\n\t}}\n\tforward_auth", log.display());
        site.replacen("{\n\tforward_auth", &log, 1).replace("timeout 1s", "timeout 10s")
    })
    .await;
    let sent = trial.send_bursts(&proxy).await;
    trial.compare(&sent, || read(&log)).await;
}

#[tokio::test]
async fn a_replay_of_haproxy_refuses_what_the_server_would_have_refused() {
    let trial = Trial::new().await;
    let proxy = haproxy::start_with(&trial.scene, |text| {
        let text =
            text.replace("timeout server 1s", "timeout server 10s").replace("= 2000", "= 20000");
        // The proxy of its own that asks the server writes no log.
        text.replace("global\n", "global\n    nbthread 1\n    log stdout format raw local0\n")
            .replace("frontend http\n", "frontend http\n    log global\n    option httplog\n")
    })
    .await;
    let sent = trial.send_bursts(&proxy).await;
    trial.compare(&sent, || proxy.log()).await;
}

#[tokio::test]
async fn a_replay_of_envoy_refuses_what_the_server_would_have_refused() {
    let trial = Trial::new().await;
    let log = trial.log();
    let proxy = envoy::start_with(&trial.scene, "envoy-ext-authz-http.yaml", |text| {
        let format = r#"json_format: { start_time: "%START_TIME%", method: "%REQ(:METHOD)%", path: "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%", response_code: "%RESPONSE_CODE%", duration: "%DURATION%", bytes_sent: "%BYTES_SENT%", authority: "%REQ(:AUTHORITY)%", user_agent: "%REQ(USER-AGENT)%", downstream_remote_address: "%DOWNSTREAM_REMOTE_ADDRESS%" }"#;
        let logged = format!(
            "stat_prefix: http\n          access_log:\n          - name: envoy.access_loggers.file\n            typed_config:\n              \
             \"@type\": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog\n              path: {}\n              \
             log_format: {{ {format} }}",
            log.display()
        );
        envoy::patient(text).replace("stat_prefix: http", &logged)
    })
    .await;
    let sent = trial.send_bursts(&proxy).await;
    trial.compare(&sent, || read(&log)).await;
}
