//! Requests that proxies ask about.

mod envoy;
mod forward;
mod server;
mod trust;

/// Two requests a minute for each address.
const RULES: &str = r#"
[[rules]]
name = "api"
key = "ip"
limits = ["2/minute"]
"#;
