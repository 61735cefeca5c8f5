//! The server as its clients see it: real clients over real ports.

mod admin;
mod any_bytes;
mod any_head;
mod behaviour;
mod bounds;
#[cfg(unix)]
mod dear;
mod directories;
mod envoys_calls;
mod failing;
mod floods;
mod frames;
mod http;
mod json;
mod large;
mod masters;
mod plain;
mod quotas;
mod redis;
mod rules;
mod running;
mod server;
mod tls;
mod tools;
mod v1;
