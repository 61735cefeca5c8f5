//! Proxies in front of an application, that ask a server before they pass a request on.
//!
//! The configurations are those of `docs/proxies`, with other ports.

mod away;
pub(crate) mod caddy;
pub(crate) mod client;
pub(crate) mod envoy;
pub(crate) mod haproxy;
pub(crate) mod load;
pub(crate) mod nginx;
mod page;
pub(crate) mod program;
pub(crate) mod quotas;
mod readme;
mod redirected;
pub(crate) mod scene;

/// Two requests a minute for each address.
const RULES: &str = "[[rules]]\nname = \"api\"\nkey = \"ip\"\nlimits = [\"2/minute\"]\n";
