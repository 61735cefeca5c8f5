//! The conformance suite, on each kind of Redis server.

use std::sync::LazyLock;

use sluicegate_core::ManualClock;
use sluicegate_tests::conformance;
use sluicegate_tests::servers::Server;

use super::store::{by_hand, open, settled, shared, shared_cluster};

/// Valkey if it is installed, otherwise Redis once more.
fn valkey() -> &'static Server {
    static VALKEY: LazyLock<Option<Server>> = LazyLock::new(Server::valkey);
    VALKEY.as_ref().unwrap_or_else(|| {
        eprintln!("valkey-server is not installed: this runs on redis-server");
        shared()
    })
}

conformance!(a_server, |clock: &ManualClock| open(by_hand(clock).url(&shared().url())), settled);
conformance!(
    a_server_behind_a_socket,
    |clock: &ManualClock| open(by_hand(clock).url(&shared().socket_url())),
    settled
);
conformance!(valkey, |clock: &ManualClock| open(by_hand(clock).url(&valkey().url())), settled);
conformance!(
    a_cluster,
    |clock: &ManualClock| open(by_hand(clock).cluster(shared_cluster().urls())),
    settled
);
