//! What proxies answer while the server is away, hangs or is slow, and how soon.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sluicegate_counterparts::sluicegate;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};

use crate::proxies::client::get;
use crate::proxies::program::Program;
use crate::proxies::scene::Scene;
use crate::proxies::{RULES, caddy, envoy, haproxy, nginx};

/// The page says at most 1 second. A busy machine takes longer, and a proxy that waits for the server does for ever.
const SOON: Duration = Duration::from_secs(4);

/// What a proxy answers, whether the request has passed, and why.
async fn assert_answers(proxy: &Program, scene: &Scene, status: &[u16], what: &str) {
    // More than once: some proxies remember.
    for _ in 0..2 {
        let before = scene.served();
        let begun = Instant::now();
        let answer = get(proxy.address, "/").await.status;
        let took = begun.elapsed();
        assert!(status.contains(&answer), "{what}: {answer}\n{}", proxy.log());
        assert!(took < SOON, "{what}: {took:?}\n{}", proxy.log());
        assert_eq!(scene.served() - before, usize::from(answer == 200), "{what}");
    }
}

/// Each way in which a server does not answer.
async fn assert_all_answer_in_time(scene: &Scene, what: &str) {
    let proxy = nginx::start_with(scene, str::to_owned).await;
    assert_answers(&proxy, scene, &[503], &format!("nginx, {what}")).await;
    let open = |text: &str| text.replace("# error_page 502 504", "error_page 502 504");
    let proxy = nginx::start_with(scene, open).await;
    assert_answers(&proxy, scene, &[200], &format!("nginx that lets pass, {what}")).await;

    let proxy = caddy::start_with(scene, "Caddyfile").await;
    assert_answers(&proxy, scene, &[502, 504], &format!("Caddy, {what}")).await;
    let proxy = caddy::start_with(scene, "Caddyfile-fail-open").await;
    assert_answers(&proxy, scene, &[200], &format!("Caddy that lets pass, {what}")).await;

    let proxy = haproxy::start_with(scene, str::to_owned).await;
    assert_answers(&proxy, scene, &[503], &format!("HAProxy, {what}")).await;
    let open = |text: &str| text.replace("pass_while_away = false", "pass_while_away = true");
    let proxy = haproxy::start_with(scene, open).await;
    assert_answers(&proxy, scene, &[200], &format!("HAProxy that lets pass, {what}")).await;

    for (file, closed, setting) in [
        (envoy::OVER_GRPC, 503, "failure_mode_allow"),
        (envoy::OVER_HTTP, 503, "failure_mode_allow"),
        (envoy::RATE_LIMIT, 503, "failure_mode_deny"),
    ] {
        for value in [true, false] {
            let set = |text: &str| {
                let other = format!("{setting}: {}", !value);
                text.replace(&other, &format!("{setting}: {value}"))
            };
            let passes = value == (setting == "failure_mode_allow");
            let proxy = envoy::start_with(scene, file, set).await;
            let status = if passes { 200 } else { closed };
            assert_answers(&proxy, scene, &[status], &format!("{file}, {value}, {what}")).await;
        }
    }
}

#[tokio::test]
async fn every_proxy_answers_in_time_while_the_server_is_stopped() {
    let server = Server::start();
    server.signal("-STOP");
    let scene = Scene::with_server_at(server.http, server.grpc).await;
    assert_all_answer_in_time(&scene, "stopped").await;
}

#[tokio::test]
async fn every_proxy_answers_in_time_while_the_server_is_killed() {
    let mut server = Server::start();
    server.signal("-KILL");
    server.child.wait().expect("an end");
    let scene = Scene::with_server_at(server.http, server.grpc).await;
    assert_all_answer_in_time(&scene, "killed").await;
}

#[tokio::test]
async fn every_proxy_answers_in_time_while_the_server_is_slow() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(read_only(stream));
        }
    });
    let scene = Scene::with_server_at(address, address).await;
    assert_all_answer_in_time(&scene, "slow").await;
}

/// Reads what comes, and never answers.
async fn read_only(mut stream: TcpStream) {
    let mut piece = [0; 4096];
    while stream.read(&mut piece).await.is_ok_and(|length| length > 0) {}
}

/// A server in a process of its own, which ends with this.
struct Server {
    child: Child,
    http: SocketAddr,
    grpc: SocketAddr,
}

impl Server {
    fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let rules = directory.path().join("rules.toml");
        std::fs::write(&rules, RULES).expect("a file");
        let mut command = Command::new(sluicegate());
        command.args(["serve", "--log", "json", "--no-watch", "--admin", "off"]);
        command.args(["--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--rules"]).arg(rules);
        command.env_remove("SLUICEGATE_REDIS").env_remove("SLUICEGATE_ADMIN_TOKEN");
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the program");
        let mut lines = BufReader::new(child.stderr.take().expect("a log")).lines();
        let mut address = |port: &str| {
            let port = format!("\"port\":\"{port}\"");
            let line = lines.find_map(|line| line.ok().filter(|line| line.contains(&port)));
            let line = line.expect("the server serves");
            let (_, rest) = line.split_once("\"address\":\"").expect("an address");
            rest.split('"').next().expect("an address").parse().expect("an address")
        };
        let grpc = address("gRPC");
        Self { http: address("HTTP"), grpc, child }
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().expect("kill").success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
