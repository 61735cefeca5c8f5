//! The proxy on real sockets.

mod access_log;
mod bounds;
mod breaking;
mod draining;
mod failing;
mod forwarding;
mod http2;
mod http2_application;
mod http2_frames;
mod listen_tls;
mod readme;
mod smuggling;
mod support;
mod tokens;
mod upgrades;
mod upstream_tls;
