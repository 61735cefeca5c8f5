use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::TcpListener;
use std::ops::Range;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Below the ports that systems choose for outgoing connections, so no program gets one of these by chance. A server
/// that was killed finds its own port free when it is started again.
const PORTS: Range<u16> = 12_000..22_000;

/// The offset of the port on which cluster nodes talk among themselves.
const BUS: u16 = 10_000;

/// A port that is free now, with its bus port. Another process may take it first, so the caller has to check that its
/// server got it, and try another port if not. This process gets no port twice: servers of other tests may not listen
/// yet, or be down for a while.
pub(super) fn free() -> u16 {
    static GIVEN: LazyLock<Mutex<HashSet<u16>>> = LazyLock::new(Mutex::default);
    let random = std::iter::repeat_with(|| RandomState::new().hash_one(()));
    let width = u64::from(PORTS.end - PORTS.start);
    let mut drawn = random.map(|number| PORTS.start + (number % width) as u16).take(1_000);
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    drawn
        .find(|port| is_free(*port) && is_free(port + BUS) && given.insert(*port))
        .expect("one of ten thousand ports is free")
}

fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}
