//! The server as its clients see it: real clients over real ports.

mod behaviour;
mod http;
mod json;
mod rules;
mod running;
mod server;
mod v1;
