//! The admin port.

use std::net::SocketAddr;

use sluicegate_server::admin::Token;
use sluicegate_server::{Policies, Server, Service};

use crate::http::send;

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
    ] {
        assert_eq!(ask(address, field).await, status, "{field}");
    }
}
