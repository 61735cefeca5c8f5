//! Access logs as nginx, Caddy, HAProxy and Envoy write them, read by `sluicegate suggest`.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use sluicegate_counterparts::sluicegate;

use crate::proxies::client::{get_as, send};
use crate::proxies::program::Program;

/// Writes a configuration, with the address of the proxy and the path of its log in it.
fn write(text: &str, file: &Path, address: std::net::SocketAddr, log: &Path) {
    let log = log.to_str().expect("a path");
    let text = text.replace("PORT", &address.port().to_string()).replace("LOG", log);
    std::fs::write(file, text).expect("a file");
}

/// Three clients send 6, 2 and 1 requests with odd characters, and somebody sends what is no request. Returns the log.
async fn log_of(proxy: &Program, log: &Path) {
    for (client, requests) in [(1, 6), (2, 2), (3, 1)] {
        for number in 0..requests {
            let path = format!("/a%22b/{number}?c={number}&d=%20");
            let agent = ("user-agent", "an \"agent\"");
            get_as(client, proxy.address, &path, &[agent]).await;
        }
    }
    assert_eq!(send(proxy.address, "\u{16}\u{3}\u{1} no request\r\n\r\n").await, 400);
    // Envoy writes after some time, and HAProxy through a pipe.
    for _ in 0..600 {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        if text.lines().filter(|line| line.contains("/a%22b/")).count() == 9 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{}", std::fs::read_to_string(log).unwrap_or_default());
}

/// What the command says about the log.
fn said(log: &Path) -> String {
    let suggested =
        Command::new(sluicegate()).arg("suggest").arg(log).output().expect("the command");
    let said = String::from_utf8_lossy(&suggested.stderr).into_owned();
    let log = std::fs::read_to_string(log).unwrap_or_default();
    assert_eq!(suggested.status.code(), Some(1), "{said}\n{log}");
    assert!(said.contains("less than two minutes say nothing about a limit"), "{said}\n{log}");
    assert!(said.contains("9 requests of 3 clients in "), "{said}\n{log}");
    assert!(!said.contains("could not be read"), "{said}\n{log}");
    said
}

#[tokio::test]
async fn logs_of_nginx_are_read() {
    let folder = tempfile::tempdir().expect("a directory");
    let log = folder.path().join("access.log");
    for (format, name) in [
        ("", "combined"),
        (
            "log_format own escape=json '{\"msec\":$msec,\"remote_addr\":\"$remote_addr\",\"request\":\"$request\",\
             \"status\":$status,\"request_time\":$request_time,\"http_user_agent\":\"$http_user_agent\"}';",
            "json",
        ),
    ] {
        let _ = std::fs::remove_file(&log);
        let own = if format.is_empty() { "" } else { " own" };
        let nginx = Program::start("nginx", |command, directory, address| {
            let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
            let paths = paths.map(|name| format!("{name}_temp_path {name};\n")).concat();
            let text = format!(
                "daemon off; master_process off; pid nginx.pid; error_log stderr;\nevents {{}}\nhttp {{\n{paths}{format}\n\
                 access_log LOG{own};\nserver {{ listen 127.0.0.1:PORT; location / {{ return 200 ok; }} }}\n}}\n"
            );
            write(&text, &directory.join("nginx.conf"), address, &log);
            command.arg("-p").arg(directory).args(["-c", "nginx.conf", "-e", "stderr"]);
        })
        .await;
        log_of(&nginx, &log).await;
        let said = said(&log);
        assert!(
            said.contains(&format!(
                "format: {name}\nlines that were no requests of HTTP, and are left out: 1"
            )),
            "{said}"
        );
    }
}

#[tokio::test]
async fn logs_of_caddy_are_read() {
    let folder = tempfile::tempdir().expect("a directory");
    let log = folder.path().join("access.log");
    let caddy = Program::start("caddy", |command, directory, address| {
        let text = "{\n\tadmin off\n\tauto_https off\n}\nhttp://127.0.0.1:PORT {\n\tlog {\n\t\toutput file LOG\n\t}\n\trespond ok\n}\n";
        write(text, &directory.join("Caddyfile"), address, &log);
        command.env("XDG_DATA_HOME", directory).env("XDG_CONFIG_HOME", directory);
        command.args(["run", "--config", "Caddyfile", "--adapter", "caddyfile"]);
    })
    .await;
    log_of(&caddy, &log).await;
    assert!(said(&log).contains("format: caddy in JSON\n"));
}

#[tokio::test]
async fn logs_of_haproxy_are_read() {
    let folder = tempfile::tempdir().expect("a directory");
    let log = folder.path().join("access.log");
    let haproxy = Program::start("haproxy", |command, directory, address| {
        let text = "global\n  log stdout format raw local0\ndefaults\n  mode http\n  log global\n  option httplog\n  timeout client 5s\n  \
                    timeout server 5s\n  timeout connect 5s\nfrontend web\n  bind 127.0.0.1:PORT\n  http-request return status 200\n";
        write(text, &directory.join("haproxy.cfg"), address, &log);
        let file = std::fs::File::create(&log).expect("a file");
        command.stdout(file).args(["-db", "-f", "haproxy.cfg"]);
    })
    .await;
    log_of(&haproxy, &log).await;
    assert!(said(&log).contains("format: haproxy\n"));
}

#[tokio::test]
async fn logs_of_envoy_are_read() {
    let folder = tempfile::tempdir().expect("a directory");
    let log = folder.path().join("access.log");
    let envoy = Program::start("envoy", |command, directory, address| {
        write(ENVOY, &directory.join("envoy.yaml"), address, &log);
        command.args(["-c", "envoy.yaml", "--concurrency", "1", "--use-dynamic-base-id"]);
        command.args(["--file-flush-interval-msec", "100"]);
    })
    .await;
    log_of(&envoy, &log).await;
    let said = said(&log);
    assert!(
        said.contains(
            "format: envoy in JSON\nlines that were no requests of HTTP, and are left out: 1"
        ),
        "{said}"
    );
}

const ENVOY: &str = r#"
static_resources:
  listeners:
  - address: { socket_address: { address: 127.0.0.1, port_value: PORT } }
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: log
          access_log:
          - name: envoy.access_loggers.file
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog
              path: LOG
              log_format:
                json_format:
                  start_time: "%START_TIME%"
                  method: "%REQ(:METHOD)%"
                  path: "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%"
                  response_code: "%RESPONSE_CODE%"
                  duration: "%DURATION%"
                  bytes_sent: "%BYTES_SENT%"
                  authority: "%REQ(:AUTHORITY)%"
                  user_agent: "%REQ(USER-AGENT)%"
                  downstream_remote_address: "%DOWNSTREAM_REMOTE_ADDRESS%"
          http_filters:
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes: [{ match: { prefix: "/" }, direct_response: { status: 200, body: { inline_string: ok } } }]
"#;
