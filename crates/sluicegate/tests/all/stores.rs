//! Stores that fail, or that cannot keep a limit.

use super::common::CLIENT;
use sluicegate::{Limit, Memory, RateLimitLayer};
use sluicegate_tests::stores::TestStore;

#[tokio::test]
#[should_panic(expected = "the store cannot keep the limit `100/minute`")]
async fn a_store_says_at_the_start_what_it_cannot_keep() {
    let store = TestStore::keeping(Memory::with_capacity(1), |_| false);
    let _ = RateLimitLayer::new(Limit::per_minute(100).by(CLIENT)).store(store);
}
