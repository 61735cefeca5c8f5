//! Envoy's calls about a request of any bytes are answered, within steps that their length bounds, and a client that has
//! spent its limit is over it: `cargo fuzz run envoys_calls`.
#![no_main]

#[path = "../../crates/sluicegate-server/tests/server/serving/envoys_calls.rs"]
mod envoys_calls;

use std::sync::LazyLock;

use envoys_calls::Asked;
use libfuzzer_sys::fuzz_target;

static ASKED: LazyLock<Asked> = LazyLock::new(|| {
    let directory = tempfile::tempdir().expect("a directory");
    Asked::new(directory.path())
});

fuzz_target!(|head: &[u8]| ASKED.about(head));
