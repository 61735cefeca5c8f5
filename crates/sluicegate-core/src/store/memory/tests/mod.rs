mod capacity;
mod choices;
mod clock;
mod flood;
mod full;
mod known;
mod logs;
mod model;
mod size;
mod threads;

use std::time::Duration;

use super::Memory;
use crate::clock::ManualClock;
use crate::key::{KeyBuf, Part};
use crate::limit::{Decision, Limit, WhenFull};
use crate::store::charge::Charge;
use crate::store::{Store, StoreError};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
/// After this time, the table knows that a row has recovered.
const EXPIRED: Duration = Duration::from_millis(66);

fn memory(capacity: usize) -> (Memory, ManualClock) {
    let clock = ManualClock::new();
    (Memory::builder().capacity(capacity).clock(&clock).build(), clock)
}

fn key(number: u64) -> KeyBuf {
    let mut key = KeyBuf::new();
    number.write(&mut key);
    key
}

fn take(store: &Memory, limit: Limit, number: u64) -> Result<Decision, StoreError> {
    let charge = Charge::of(limit, key(number), 1);
    store.take(&charge).now().map(|outcome| outcome.decision(&charge))
}

/// Whether one more request is admitted by a store that has room.
fn admits(store: &Memory, limit: Limit, number: u64) -> bool {
    take(store, limit, number).expect("room").is_admitted()
}

fn remaining(store: &Memory, limit: Limit, number: u64) -> u64 {
    let charge = Charge::of(limit, key(number), 1);
    let outcome = store.peek(&charge).now().expect("peeks need no room");
    outcome.decision(&charge).remaining().expect("one limit")
}
