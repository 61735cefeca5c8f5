//! The admin port.

use std::net::SocketAddr;

use sluicegate_server::admin::Token;
use sluicegate_server::{Policies, Server, Service};

use super::http::send;

const TOKEN: &str = "0123456789abcdef";

fn server() -> Server {
    Server::new(Service::builder(Policies::new()).build().expect("a service"))
}

async fn ask(address: SocketAddr, token: &str) -> u16 {
    let head = "GET /rlconfig HTTP/1.1\r\nhost: x\r\nconnection: close\r\n";
    send(&address.to_string(), &format!("{head}{token}\r\n")).await.0
}

#[tokio::test]
async fn an_admin_port_that_is_open_to_others_needs_a_token() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let address = address.parse().expect("an address");
        let error = server().admin(address).bind().await.expect_err("no token").to_string();
        assert!(error.contains("token"), "{error}");
    }
    assert!(Token::new("short").is_none());
    let any = "0.0.0.0:0".parse().expect("an address");
    let token = Token::new(TOKEN).expect("a token");
    assert!(server().admin(any).token(token).bind().await.is_ok());
}

#[tokio::test]
async fn only_the_whole_token_opens_the_admin_port() {
    let any = "127.0.0.1:0".parse().expect("an address");
    let token = Token::new(TOKEN).expect("a token");
    let bound = server().admin(any).token(token).bind().await.expect("a port");
    let address = bound.addresses().admin.expect("a port");
    tokio::spawn(bound.run(std::future::pending()));
    for (field, status) in [
        ("", 401),
        ("authorization: Bearer 0123456789abcde\r\n", 401),
        ("authorization: Bearer 0123456789abcdef0\r\n", 401),
        ("authorization: Bearer \r\n", 401),
        ("authorization: Basic 0123456789abcdef\r\n", 401),
        ("authorization: Bearer 0123456789abcdef\r\n", 200),
        ("authorization: bearer 0123456789abcdef\r\n", 200),
        ("authorization: Bear\r\n", 401),
    ] {
        assert_eq!(ask(address, field).await, status, "{field}");
    }
}

/// A server with an admin port, whose answers are read as text.
async fn admin(server: Server) -> String {
    let any = "127.0.0.1:0".parse().expect("an address");
    let bound = server.admin(any).bind().await.expect("a port");
    let address = bound.addresses().admin.expect("a port");
    tokio::spawn(bound.run(std::future::pending()));
    address.to_string()
}

async fn request(address: &str, line: &str, fields: &str) -> (u16, String, String) {
    send(address, &format!("{line} HTTP/1.1\r\nconnection: close\r\n{fields}\r\n")).await
}

#[tokio::test]
async fn a_page_whose_name_was_pointed_at_this_host_reads_nothing() {
    let address = admin(server()).await;
    for path in ["/", "/v1/status", "/metrics", "/rlconfig", "/healthz"] {
        let (status, _, body) =
            request(&address, &format!("GET {path}"), "host: attacker.example:6070\r\n").await;
        assert_eq!(status, 403, "{path}");
        assert!(body.contains("127.0.0.1"), "{body}");
    }
    for host in [&*address, "localhost:6070"] {
        let (status, ..) = request(&address, "GET /v1/status", &format!("host: {host}\r\n")).await;
        assert_eq!(status, 200, "{host}");
    }
}

#[tokio::test]
async fn the_page_lets_nothing_run_that_is_not_its_own() {
    let address = admin(server()).await;
    for path in ["/", "/dashboard.css", "/dashboard.js", "/parts.js", "/picture.js", "/favicon.svg"]
    {
        let (status, head, body) =
            request(&address, &format!("GET {path}"), &format!("host: {address}\r\n")).await;
        assert_eq!(status, 200, "{path}");
        for field in [
            "content-security-policy: default-src 'none'; script-src 'self'",
            "frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
        ] {
            assert!(head.contains(field), "{path}: {head}");
        }
        assert!(!head.contains("unsafe"), "{head}");
        for inline in ["<script>", " style=", "onclick=", "onload=", "innerHTML", "https://"] {
            assert!(!body.contains(inline), "{path} has {inline}");
        }
    }
}

#[tokio::test]
async fn a_browser_shows_the_token_once_for_a_cookie_that_scripts_cannot_read() {
    let token = Token::new(TOKEN).expect("a token");
    let address = admin(server().token(token)).await;
    let host = format!("host: {address}\r\n");
    let bearer = format!("{host}authorization: Bearer {TOKEN}\r\n");
    // The page itself has no data, and any name will do.
    assert_eq!(request(&address, "GET /", "host: admin.example\r\n").await.0, 200);
    assert_eq!(request(&address, "GET /v1/status", &host).await.0, 401);
    let wrong = format!("{host}authorization: Bearer 0000000000000000\r\n");
    assert_eq!(request(&address, "POST /session", &wrong).await.0, 401);

    let (status, head, _) = request(&address, "POST /session", &bearer).await;
    let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie");
    assert_eq!(status, 204);
    assert!(cookie.ends_with("; path=/; httponly; samesite=strict"), "{cookie}");
    assert!(!head.contains(TOKEN), "{head}");
    let cookie = cookie.split(';').next().expect("a value");
    let with = |cookie: &str| format!("{host}cookie: other=1; {cookie}\r\n");
    let (status, head, _) = request(&address, "GET /v1/status", &with(cookie)).await;
    // The page offers to sign out, after a reload too.
    assert!(status == 200 && head.contains("sluicegate-session: 1"), "{head}");
    let (_, head, _) = request(&address, "GET /v1/status", &bearer).await;
    assert!(!head.contains("sluicegate-session"), "{head}");
    assert_eq!(
        request(&address, "GET /v1/status", &with(&cookie[..cookie.len() - 1])).await.0,
        401
    );
    // A wrong token is wrong, whatever else the browser sends.
    assert_eq!(
        request(&address, "GET /v1/status", &format!("{wrong}cookie: {cookie}\r\n")).await.0,
        401
    );

    let (status, head, _) = request(&address, "DELETE /session", &with(cookie)).await;
    assert!(status == 204 && head.contains("max-age=0"), "{head}");
}

#[tokio::test]
async fn a_cookie_opens_nothing_once_its_browser_has_signed_out() {
    let token = Token::new(TOKEN).expect("a token");
    let address = admin(server().token(token)).await;
    let host = format!("host: {address}\r\n");
    let bearer = format!("{host}authorization: Bearer {TOKEN}\r\n");
    let mut browsers = Vec::new();
    for _ in 0..2 {
        let (_, head, _) = request(&address, "POST /session", &bearer).await;
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: "));
        let cookie = cookie.and_then(|cookie| cookie.split(';').next()).expect("a cookie");
        browsers.push(format!("{host}cookie: {cookie}\r\n"));
    }
    assert_ne!(browsers[0], browsers[1]);
    // A copy gets no cookie of its own, which would stay.
    let (status, head, _) = request(&address, "POST /session", &browsers[0]).await;
    assert!(status == 401 && !head.contains("set-cookie"), "{head}");
    assert_eq!(request(&address, "DELETE /session", &browsers[0]).await.0, 204);
    assert_eq!(request(&address, "GET /v1/status", &browsers[0]).await.0, 401);
    assert_eq!(request(&address, "GET /v1/status", &browsers[1]).await.0, 200);
}

#[tokio::test]
async fn a_page_of_another_site_changes_nothing() {
    let token = Token::new(TOKEN).expect("a token");
    let address = admin(server().token(token)).await;
    for from in ["origin: http://attacker.example", "origin: null", "sec-fetch-site: cross-site"] {
        for line in ["POST /session", "DELETE /session", "POST /v1/status"] {
            let fields = format!("host: {address}\r\nauthorization: Bearer {TOKEN}\r\n{from}\r\n");
            assert_eq!(request(&address, line, &fields).await.0, 403, "{line} {from}");
        }
    }
}
