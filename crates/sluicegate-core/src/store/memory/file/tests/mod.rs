mod bytes;
mod crash;
mod disk;
mod folder;
#[cfg(unix)]
mod kill;
mod rows;
mod time;

use std::sync::Arc;
use std::time::Duration;

use self::disk::{Recorder, Stored};
use super::writer::Writer;
use super::{Opened, open};
use crate::clock::ManualClock;
use crate::key::KeyBuf;
use crate::limit::Limit;
use crate::store::Store;
use crate::store::charge::Charge;
use crate::store::memory::{Memory, MemoryBuilder};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

/// Limits of each kind of row.
fn limits() -> [Limit; 7] {
    [
        Limit::per_hour(10),
        Limit::fixed_window(10, HOUR),
        Limit::sliding_window(10, HOUR),
        Limit::per(7, HOUR),
        Limit::sliding_log(10, HOUR),
        Limit::per_hour(3).ban(HOUR),
        Limit::per_hour(10).named("carried").carried(),
    ]
}

/// A store on a disk that tests can look at.
struct StoreOnDisk {
    store: Memory,
    writer: Writer<Recorder>,
    disk: Recorder,
    opened: Opened,
}

impl StoreOnDisk {
    /// A store as it is after a start that finds `bytes` in the file.
    fn start(builder: MemoryBuilder, bytes: Option<Vec<u8>>) -> Self {
        let disk = Recorder::new(bytes);
        let (inner, writer, opened) = open(&builder, disk.clone()).expect("the disk does not fail");
        Self { store: Memory(Arc::new(inner), None), writer, disk, opened }
    }

    fn new(capacity: usize, clock: &ManualClock) -> Self {
        Self::start(Memory::builder().capacity(capacity).clock(clock), None)
    }

    fn write(&mut self) {
        self.writer.write(&self.store.0).expect("the disk does not fail");
    }

    /// The bytes in the file.
    fn file(&self) -> Vec<u8> {
        self.disk.file()
    }

    /// The store that a clean end and a start leave.
    fn restarted(mut self, capacity: usize, clock: &ManualClock) -> Self {
        self.write();
        let builder = Memory::builder().capacity(capacity).clock(clock);
        let kept = Self::start(builder, Some(self.file()));
        assert_eq!(kept.opened, Opened::default());
        kept
    }
}

fn charge(limit: Limit, key: u64, cost: u64) -> Charge {
    Charge::of(limit, KeyBuf::of(key), cost)
}

fn admits(store: &Memory, limit: Limit, key: u64) -> bool {
    store.take(&charge(limit, key, 1)).now().expect("room").is_admitted()
}

fn remaining(store: &Memory, limit: Limit, key: u64) -> u64 {
    let charge = charge(limit, key, 1);
    let outcome = store.peek(&charge).now().expect("peeks need no room");
    outcome.decision(&charge).remaining().expect("one limit")
}
