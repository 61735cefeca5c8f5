//! The throttle in front of handlers that compute, wait and stream, under more load than they can serve.

mod processors;
mod server;
mod waits;
