//! `serve --like envoy-ratelimit`: in the place of Envoy's rate limit service.

mod certificates;
mod management;
mod meanings;

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sluicegate_tests::servers::{Directory, Server};
use tokio::net::UnixStream;

use super::client::{Client, Sent};
use super::sluicegate::{FILE, Sluicegate, program};
use crate::dashboard::http::send;

/// What a deployment of that service has, with ports of its own and a limit of three requests a year.
fn started(redis: &Server, more: &[(&str, &str)]) -> Sluicegate {
    let address = redis.address().to_string();
    let redis = [("REDIS_SOCKET_TYPE", "tcp"), ("REDIS_URL", &*address)];
    started_with(&limited_to(3), &[&redis, more].concat())
}

/// A deployment with this file, which counts where its further variables say.
fn started_with(text: &str, more: &[(&str, &str)]) -> Sluicegate {
    let (command, directory, root) = deployment(text, more);
    Sluicegate::run(command, directory, root)
}

/// The command of a deployment, its directory, and the link to its files.
fn deployment(text: &str, more: &[(&str, &str)]) -> (Command, Directory, PathBuf) {
    let directory = Directory::make();
    let root = directory.path().join("current");
    version(directory.path(), "one", text);
    symlink("one", &root).expect("a link");
    let mut command = Command::new(program());
    command
        .args(["serve", "--like", "envoy-ratelimit"])
        .env_clear()
        .envs([("GRPC_PORT", "0"), ("PORT", "0"), ("DEBUG_PORT", "0")])
        .envs([("LOG_FORMAT", "json"), ("LOG_LEVEL", "info"), ("USE_STATSD", "false")])
        .env("RUNTIME_ROOT", &root)
        .envs([("RUNTIME_SUBDIRECTORY", "ratelimit"), ("RUNTIME_IGNOREDOTFILES", "true")])
        .envs(more.iter().copied());
    (command, directory, root)
}

/// A version of the folder of the service.
fn version(directory: &Path, name: &str, text: &str) {
    let folder = directory.join(name).join("ratelimit/config");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("edge.yaml"), text).expect("a file");
}

/// A file with a limit of this many requests a year.
fn limited_to(limit: u32) -> String {
    FILE.replace("4000000000", &limit.to_string())
}

async fn admitted(client: &mut Client, requests: u32) -> u32 {
    let mut admitted = 0;
    for _ in 0..requests {
        admitted += u32::from(client.send().await == Sent::Answered);
    }
    admitted
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_of_envoys_service_is_answered_from_its_folder_and_its_redis() {
    let redis = Server::start();
    let first = started(&redis, &[("CACHE_KEY_PREFIX", "edge_")]);
    assert_eq!(admitted(&mut Client::grpc(first.grpc).await, 5).await, 3);
    // Counts are in Redis, under the prefix, and a second server knows them.
    let second = started(&redis, &[("CACHE_KEY_PREFIX", "edge_")]);
    let mut client = Client::grpc(second.grpc).await;
    assert_eq!(admitted(&mut client, 1).await, 0);
    let rows = redis.cli(["KEYS", "sluicegate:edge_*"]).list();
    assert_eq!(rows.len(), 1, "{rows:?}");

    // Kubernetes and the service's own tools swap a link.
    let directory = second.file.parent().expect("a folder");
    version(directory, "two", &limited_to(7));
    symlink("two", directory.join("next")).expect("a link");
    std::fs::rename(directory.join("next"), &second.file).expect("a swap");
    second.says("policies reloaded");
    // Six were counted, as that service counts.
    assert_eq!(admitted(&mut client, 9).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_without_effect_are_named_in_the_log_and_shadow_mode_refuses_nothing() {
    let redis = Server::start();
    let server = started(&redis, &[("SHADOW_MODE", "true"), ("REDIS_POOL_SIZE", "9")]);
    server.says("REDIS_POOL_SIZE has no effect: one connection carries all commands");
    server.says("SLUICEGATE_ADMIN_TOKEN is not set");
    assert_eq!(admitted(&mut Client::grpc(server.grpc).await, 9).await, 9);
    let shown = shown(server.port("admin"), "/metrics").await;
    for line in [
        "ratelimit_service_global_shadow_mode 6",
        "sluicegate_decisions_total{policy=\"user\",verdict=\"admitted\"} 3",
        "sluicegate_decisions_total{policy=\"user\",verdict=\"shadowed\"} 6",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}\n{shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dashboards_of_envoys_service_find_their_metrics() {
    let redis = Server::start();
    let fields = ("LIMIT_RESPONSE_HEADERS_ENABLED", "true");
    let (address, path) = (("PROMETHEUS_ADDR", "127.0.0.1:0"), ("PROMETHEUS_PATH", "/m"));
    let server = started(&redis, &[("USE_PROMETHEUS", "true"), address, path, fields]);
    let mut client = Client::grpc(server.grpc).await;
    assert_eq!(admitted(&mut client, 5).await, 3);
    let folder = server.file.join("ratelimit/config");
    std::fs::write(folder.join("edge.yaml"), "domain: [").expect("a file");
    server.says("policies not reloaded");

    let stats = shown(server.port("admin"), "/stats").await;
    assert!(stats.contains("ratelimit.service.rate_limit.edge.user.over_limit: 2\n"), "{stats}");
    let exposed = shown(server.port("metrics"), "/m").await;
    // The port has no token, so it shows nothing else.
    assert_eq!(got(server.port("metrics"), "/v1/status").await.0, 404);
    let shown = shown(server.port("admin"), "/metrics").await;
    let all = |text: &str| text.lines().filter(|line| line.contains("ratelimit_")).count();
    assert_eq!(all(&exposed), all(&shown));
    // Three were within, of which the border of 0.8 leaves one apart.
    for line in [
        "ratelimit_service_rate_limit_total_hits{domain=\"edge\",key1=\"user\"} 5",
        "ratelimit_service_rate_limit_over_limit{domain=\"edge\",key1=\"user\"} 2",
        "ratelimit_service_rate_limit_near_limit{domain=\"edge\",key1=\"user\"} 1",
        "ratelimit_service_rate_limit_within_limit{domain=\"edge\",key1=\"user\"} 3",
        "ratelimit_service_rate_limit_shadow_mode{domain=\"edge\",key1=\"user\"} 0",
        "ratelimit_service_total_requests{grpc_method=\"ShouldRateLimit\"} 5",
        "ratelimit_service_response_time_seconds_count{grpc_method=\"ShouldRateLimit\"} 5",
        "ratelimit_service_should_rate_limit_error{err_type=\"redis_error\"} 0",
        "ratelimit_service_config_load_success 1",
        "ratelimit_service_config_load_error 1",
        "ratelimit_service_global_shadow_mode 0",
        "sluicegate_decisions_total{policy=\"user\",verdict=\"admitted\"} 3",
        "sluicegate_decisions_total{policy=\"user\",verdict=\"refused\"} 2",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}\n{shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn statsd_gets_what_is_counted_and_what_is_left_at_the_end() {
    let redis = Server::start();
    let there = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = there.local_addr().expect("an address").port().to_string();
    let (host, never) = (("STATSD_HOST", "127.0.0.1"), ("STATS_FLUSH_INTERVAL", "1h"));
    let more =
        [("USE_STATSD", "true"), host, ("STATSD_PORT", &port), never, ("EXTRA_TAGS", "zone:a")];
    let mut server = started(&redis, &more);
    assert_eq!(admitted(&mut Client::grpc(server.grpc).await, 5).await, 3);
    server.signal("TERM");
    assert!(server.ended().success());
    let mut lines = String::new();
    there.accept().expect("a connection").0.read_to_string(&mut lines).expect("lines");
    for line in [
        "ratelimit.service.rate_limit.edge.user.total_hits.__zone=a:5|c",
        "ratelimit.service.rate_limit.edge.user.over_limit.__zone=a:2|c",
        "ratelimit_server.ShouldRateLimit.total_requests.__zone=a:5|c",
        "ratelimit.service.config_load_success.__zone=a:1|c",
    ] {
        assert!(lines.lines().any(|told| told == line), "{line}\n{lines}");
    }

    // DogStatsD gets datagrams, one each interval.
    let there = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let port = there.local_addr().expect("an address").port().to_string();
    let often = ("STATS_FLUSH_INTERVAL", "10ms");
    let _server = started(
        &redis,
        &[
            ("USE_DOG_STATSD", "true"),
            host,
            ("STATSD_PORT", &port),
            often,
            ("EXTRA_TAGS", "zone:a"),
        ],
    );
    let mut datagram = [0; 2_000];
    let length = there.recv(&mut datagram).expect("a datagram");
    let told = String::from_utf8_lossy(&datagram[..length]);
    assert_eq!(told, "ratelimit.service.config_load_success:1|c|#zone:a\n");
}

async fn shown(port: SocketAddr, path: &str) -> String {
    let (status, body) = got(port, path).await;
    assert_eq!(status, 200, "{body}");
    body
}

async fn got(admin: SocketAddr, path: &str) -> (u16, String) {
    let address = admin.to_string();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    let (status, _, body) = send(&address, &request).await;
    (status, body)
}

/// As in a manifest that names the program of the service.
#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_that_names_the_services_program_starts_the_server() {
    let directory = Directory::make();
    version(directory.path(), "one", &limited_to(3));
    let named = directory.path().join("ratelimit");
    symlink(program(), &named).expect("a link");
    let mut command = Command::new(named);
    command.env_clear().env("RUNTIME_ROOT", directory.path().join("one"));
    command.envs([("RUNTIME_SUBDIRECTORY", "ratelimit"), ("LOG_FORMAT", "json")]);
    command.envs([("GRPC_PORT", "0"), ("PORT", "0"), ("DEBUG_PORT", "0"), ("LOG_LEVEL", "info")]);
    let root = directory.path().to_owned();
    let server = Sluicegate::run(command, directory, root);
    assert_eq!(admitted(&mut Client::grpc(server.grpc).await, 5).await, 3);
}

/// Envoy is a program of the same host, and asks by a socket.
#[tokio::test(flavor = "multi_thread")]
async fn calls_come_by_a_unix_socket_which_is_gone_with_the_server() {
    let (redis, directory) = (Server::start(), Directory::make());
    let socket = directory.path().join("ratelimit.sock");
    let uds = ("GRPC_UDS", socket.to_str().expect("a path"));
    let call = async || {
        let stream = UnixStream::connect(&socket).await.expect("a connection");
        Client::grpc_over(stream).await
    };
    let deploy = || {
        let address = redis.address().to_string();
        let redis = [("REDIS_SOCKET_TYPE", "tcp"), ("REDIS_URL", &*address), uds];
        let (command, directory, root) = deployment(&limited_to(3), &redis);
        Sluicegate::spawn(command, directory, root)
    };
    // A socket that a server has left behind is replaced.
    drop(std::os::unix::net::UnixListener::bind(&socket).expect("a socket"));
    let mut server = deploy();
    server.port("HTTP");
    assert_eq!(admitted(&mut call().await, 5).await, 3);
    // One that somebody listens at is not.
    let ended = deploy().ended();
    assert!(!ended.success());
    assert_eq!(admitted(&mut call().await, 1).await, 0);
    server.signal("TERM");
    assert!(server.ended().success());
    assert!(!socket.exists());
}

#[test]
fn a_variable_that_cannot_be_honoured_stops_the_start() {
    let mut command = Command::new(program());
    command.args(["serve", "--like", "envoy-ratelimit"]).env_clear();
    let ended = command.env("CONFIG_TYPE", "GRPC_XDS_DELTA").output().expect("the command");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(!ended.status.success(), "{said}");
    assert_eq!(
        said,
        "sluicegate: CONFIG_TYPE: `GRPC_XDS_DELTA` is not known, expected FILE or GRPC_XDS_SOTW\n"
    );
}

#[test]
fn the_ports_open_once_a_management_server_has_sent_policies_unless_nobody_is_to_wait() {
    let serve = |more: &[&str]| {
        let any = "127.0.0.1:0";
        let mut command = Command::new(program());
        command.args(["serve", "--grpc", any, "--http", any, "--admin", "off", "--log", "json"]);
        // Nobody listens at port 1.
        command.args(["--xds", "http://127.0.0.1:1"]).args(more).env_clear();
        command
    };
    let mut waiting = serve(&[]).stderr(Stdio::piped()).spawn().expect("the command");
    let said = BufReader::new(waiting.stderr.take().expect("a pipe")).lines();
    let said: Vec<_> = said.map_while(Result::ok).take(2).collect();
    waiting.kill().expect("it waits");
    waiting.wait().expect("its end");
    // Two threads say them.
    for what in ["waiting for the policies of xDS", "refused"] {
        assert!(said.iter().any(|line| line.contains(what)), "{said:?}");
    }

    let directory = Directory::make();
    let file = directory.path().to_owned();
    let server = Sluicegate::run(serve(&["--xds-no-wait"]), directory, file);
    server.says("What is in force stays in force");
}
