//! The middleware of actix-web. What it has in common with the other adapters is in the parity suite in `tests/`.

mod accounting;
mod answers;
mod common;
mod held;
mod length;
mod random_routes;
mod routes;
mod sockets;
mod types;
mod view;
mod watch;
mod workers;
