//! The server as its clients see it: real clients over real ports.

mod admin;
mod behaviour;
mod bounds;
mod failing;
mod http;
mod json;
mod large;
mod redis;
mod rules;
mod running;
mod server;
mod tls;
mod v1;
